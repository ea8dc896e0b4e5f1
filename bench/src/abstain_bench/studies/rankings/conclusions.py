"""Create the figures and conclusions of the study, and read the published ranks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

import numpy as np

from abstain.evaluation.comparison import PairedDifference
from abstain.plots.rank_changes import RankChange, RankChangesDisplay
from abstain.plots.ranks import RankingChangeDisplay, RankingChangesDisplay
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.significance import SignificanceMapDisplay, SignificanceMapsDisplay
from abstain.report.formatting import join_first
from abstain_bench.published import table
from abstain_bench.studies._display import Row, counted, group_rows, total
from abstain_bench.studies.rankings.ranked_studies import (
    ADJUSTED,
    FIRST_METRIC,
    METRIC_NAMES,
    PAIRED,
    SECOND_METRIC,
    UNADJUSTED,
    summarize_changes,
)

#: Published table with ranks by AURC and by AUGRC for two selections of settings.
_TABLE = "augrc_table_4"

#: Suffix of the names of studies with i.i.d. test data.
IID: Final = " iid"

#: Number of i.i.d. test sets, among six, on which the first three methods change (section 4.1).
N_CHANGES_IN_TEXT: Final = 5


def printed_rank_rows() -> list[dict[str, Any]]:
    """Return a row with the published ranks for each selection, study and method."""
    ranks: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in table(_TABLE):
        study = f"{cell['dataset']} {cell['study']}"
        key = (str(cell["block"]), study, str(cell["printed"]))
        ranks.setdefault(key, {})[str(cell["metric"])] = float(cell["number"] or 0)
    first, second = METRIC_NAMES
    return [
        {
            "selection": selection,
            "study": study,
            "method": method,
            **{f"{metric}_rank": method_ranks[metric] for metric in METRIC_NAMES},
            "change": method_ranks[second] - method_ranks[first],
        }
        for (selection, study, method), method_ranks in ranks.items()
    ]


def printed_changes(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a summary of the rank changes for each selection and study."""
    groups: dict[tuple[str, str], list[Row]] = group_rows(rows, "selection", "study")
    for (selection, study), group in groups.items():
        yield {"selection": selection, "study": study, **summarize_changes(group)}


#: Maximum number of methods in a map with p-values.
_MAX_MAP_METHODS = 12
#: Maximum number of methods in a panel of a figure with many panels.
_MAX_PANEL_METHODS = 16

_METRIC_TITLES: Final = f"{FIRST_METRIC.title} and {SECOND_METRIC.title}"

#: Text about the validity of each test.
_VALIDITY: Final = {UNADJUSTED: "as published, not valid", PAIRED: "valid"}


def changes_figure(rows: Sequence[Row], selection: str) -> RankChangesDisplay:
    """Plot the ranks of all methods by AURC and AUGRC in all studies."""
    selected = [row for row in rows if row["selection"] == selection]
    mean_ranks = {
        method: sum(row[f"{SECOND_METRIC.name}_rank"] for row in group) / len(group)
        for method, group in group_rows(selected, "method").items()
    }
    # Methods with equal mean ranks keep their order.
    order = sorted(mean_ranks, key=lambda method: mean_ranks[method])
    sorted_rows = sorted(selected, key=lambda row: order.index(row["method"]))
    cells = []
    for row in sorted_rows:
        first_rank = row[f"{FIRST_METRIC.name}_rank"]
        second_rank = row[f"{SECOND_METRIC.name}_rank"]
        cells.append(RankChange(row["method"], row["study"], first_rank, second_rank))
    settings = f"; settings selected {selection}" if selection else ""
    return RankChangesDisplay(
        tuple(cells),
        f"Ranks by {FIRST_METRIC.title} → {SECOND_METRIC.title}{settings}. Blue: better by "
        f"{SECOND_METRIC.title}",
    )


def rankings_figure(rows: Sequence[Row]) -> RankingChangesDisplay:
    """Plot the ranks of the best methods by AURC and AUGRC, with a panel per study.

    If all rows contain mean ranks over resamples, these are plotted.
    """
    has_resamples = all(
        f"{metric}_resampled_rank" in row for row in rows for metric in METRIC_NAMES
    )
    suffix = "resampled_rank" if has_resamples else "rank"
    first = f"{FIRST_METRIC.name}_{suffix}"
    second = f"{SECOND_METRIC.name}_{suffix}"
    rows_by_study = group_rows(rows, "study")
    panels = {}
    for study, group in rows_by_study.items():
        best = sorted(group, key=lambda row: min(row[first], row[second]))[:_MAX_PANEL_METHODS]
        ranks = {row["method"]: (row[first], row[second]) for row in best}
        panels[study] = RankingChangeDisplay(*METRIC_NAMES, ranks, (), None)
    kind = "mean rank over the resamples" if has_resamples else "test sets"
    title = f"Rankings by {_METRIC_TITLES} ({kind}){_restriction(rows_by_study.values())}"
    return RankingChangesDisplay(panels, title)


def _restriction(groups: Iterable[Sequence[Row]]) -> str:
    """Return text about omitted methods, or an empty string."""
    n_methods = max(map(len, groups), default=0)
    if n_methods <= _MAX_PANEL_METHODS:
        return ""
    return f"; the best {_MAX_PANEL_METHODS} of {n_methods} methods"


def study_maps_figure(
    rows: Sequence[Row], pairs: Sequence[Row], study: str, level: float
) -> SignificanceMapsDisplay | None:
    """Plot the significant pairs in one study for each combination of metric and test."""
    study_rows = [row for row in rows if row["study"] == study]
    maps = {}
    for metric in (FIRST_METRIC, SECOND_METRIC):
        for test, validity in _VALIDITY.items():
            significance = _significance_map(
                study_rows, pairs, metric.name, test, level=level, max_methods=_MAX_MAP_METHODS
            )
            if significance is not None:
                maps[f"{metric.title}: {test} ({validity})"] = significance
    if not maps:
        return None
    restriction = ""
    if len(study_rows) > _MAX_MAP_METHODS:
        restriction = f", the best {_MAX_MAP_METHODS} of {len(study_rows)} methods"
    title = f"Row better than column in {study}{restriction}: two tests of the same values"
    return SignificanceMapsDisplay(maps, title)


def all_maps_figure(
    rows: Sequence[Row], pairs: Sequence[Row], test: str, level: float
) -> SignificanceMapsDisplay | None:
    """Plot the significant pairs by one test for each combination of study and metric."""
    rows_by_study = group_rows(rows, "study")
    maps = {}
    for study, study_rows in rows_by_study.items():
        for metric in (FIRST_METRIC, SECOND_METRIC):
            significance = _significance_map(
                study_rows, pairs, metric.name, test, level=level, max_methods=_MAX_PANEL_METHODS
            )
            if significance is not None:
                maps[f"{study}, {metric.title}"] = significance
    if not maps:
        return None
    restriction = _restriction(rows_by_study.values())
    return SignificanceMapsDisplay(
        maps, f"Row better than column: {test} ({_VALIDITY[test]}){restriction}"
    )


def _significance_map(
    rows: Sequence[Row],
    pairs: Sequence[Row],
    metric: str,
    test: str,
    *,
    level: float,
    max_methods: int,
) -> SignificanceMapDisplay | None:
    """Plot the significant pairs in a study by one metric and one test, if there are any.

    The best methods by AUGRC are shown, sorted by the given metric.
    """
    best = sorted(rows, key=lambda row: row[SECOND_METRIC.name])[:max_methods]
    methods = [row["method"] for row in sorted(best, key=lambda row: row[metric])]
    key = (rows[0]["study"], metric, test)
    adjusted_column = "p_value" if test == UNADJUSTED else "adjusted_p_value"
    differences = []
    for row in pairs:
        is_displayed = row["first"] in methods and row["second"] in methods
        if not is_displayed or (row["study"], row["metric"], row["test"]) != key:
            continue
        difference = PairedDifference(
            metric,
            (),
            row["first"],
            row["second"],
            0.0,
            p_value=row["p_value"],
            adjusted=row[adjusted_column],
            better=row["better"],
            test=test,
            valid=test == PAIRED,
        )
        differences.append(difference)
    if not differences:
        return None
    return SignificanceMapDisplay(tuple(methods), tuple(differences), level)


def curves_figure(curves: Sequence[Row]) -> SeriesDisplay:
    """Plot the selective and generalized risks of two methods that the metrics rank differently."""
    series = []
    for row in curves:
        coverage = np.array(row["coverage"])
        risk = np.array(row["risk"])
        for panel, plotted_risk in (
            ("Selective risk", risk),
            ("Generalized risk", coverage * risk),
        ):
            series.append(
                Series(
                    row["method"],
                    tuple(coverage.tolist()),
                    tuple(plotted_risk.tolist()),
                    panel=panel,
                )
            )
    better, worse = (row["method"] for row in curves)
    title = (
        f"{SECOND_METRIC.title} prefers {better}, {FIRST_METRIC.title} {worse}: "
        f"{curves[0]['study']}, first run"
    )
    return SeriesDisplay(tuple(series), title, "Coverage", "", log_x=False)


#: Maximum number of methods that a sentence lists.
_MAX_LISTED = 5


def conclude(tables: Mapping[str, Sequence[Row]], resamples: int) -> Iterator[str]:
    """Yield conclusions for the last selection of settings."""
    selection = tables["changes"][-1]["selection"]

    def selected(name: str) -> list[Row]:
        return [row for row in tables.get(name, ()) if row["selection"] == selection]

    yield _conclude_changes(selected("changes"))
    yield from _conclude_swaps(selected("changes"))
    if tables["tests"]:
        yield from _conclude_tests(selected("tests"), resamples)
    yield from conclude_neighbors(selected("neighbors"))
    if tables.get("disagreements"):
        yield _conclude_violations(tables["disagreements"])
        yield from _explain_same_failures(tables["disagreements"])
    if "settings" in tables:
        yield _conclude_settings(tables["settings"], tables["changes"])


def conclude_selections(rows: Sequence[Row]) -> str:
    """Report the number of rank changes for each selection of settings."""
    groups = group_rows(rows, "selection")
    texts = []
    for selection, group in groups.items():
        n_studies = counted(total(group, "top_3_changes"), "study", "studies")
        texts.append(
            f"with settings selected {selection}, {total(group, 'changed')} of "
            f"{total(group, 'methods')} ranks change, and the first three methods in {n_studies}"
        )
    counts = "; ".join(texts)
    return f"Over {counted(len(rows) // len(groups), 'study', 'studies')}: {counts}."


def _conclude_changes(rows: Sequence[Row]) -> str:
    """Report the rank changes and Kendall's tau."""
    taus = [row["tau"] for row in rows]
    return (
        f"From {FIRST_METRIC.title} to {SECOND_METRIC.title}, {total(rows, 'changed')} of "
        f"{total(rows, 'methods')} ranks change, by at most "
        f"{max(row['largest_change'] for row in rows)}. The best method changes in "
        f"{total(rows, 'best_changes')} and the first three in {total(rows, 'top_3_changes')} of "
        f"{counted(len(rows), 'study', 'studies')}. The median of Kendall's tau is "
        f"{median(taus):.2f}, the minimum {min(taus):.2f}."
    )


def _conclude_swaps(rows: Sequence[Row]) -> Iterator[str]:
    """Report how many swapped pairs are significantly different by both metrics."""
    if any("significant_swaps" not in row for row in rows):
        return
    n_swaps = total(rows, "swaps")
    n_significant = total(rows, "significant_swaps")
    if not n_swaps:
        return
    if n_significant:
        conclusion = "Only in these pairs is the contradiction between the metrics significant."
    else:
        conclusion = "All these changes may be random variation of the test samples."
    yield (
        f"{n_significant} of {counted(n_swaps, 'swapped pair')} of methods are significantly "
        f"different by both metrics (paired test). {conclusion}"
    )


def _conclude_tests(rows: Sequence[Row], resamples: int) -> Iterator[str]:
    """Report the number of significant pairs and, if the truth is known, of false positives."""
    rows_by_test: dict[str, list[Row]] = {UNADJUSTED: [], ADJUSTED: [], PAIRED: []}
    rows_by_test |= group_rows(rows, "test")
    significant = {test: total(group, "significant") for test, group in rows_by_test.items()}
    yield (
        f"Of {total(rows_by_test[PAIRED], 'pairs')} pairs, {significant[UNADJUSTED]} are "
        f"significantly different by the test of the literature, Wilcoxon's test over {resamples} "
        f"bootstrap samples ({significant[ADJUSTED]} with Holm's adjustment), and "
        f"{significant[PAIRED]} by the paired test with Holm's adjustment. The first test treats "
        "resamples of one test set as independent, so its p-values decrease with their number for "
        "any data. An adjustment does not correct this."
    )
    if all("false_positives" in row for row in rows):
        wrong = {test: total(group, "false_positives") for test, group in rows_by_test.items()}
        n_different = total(rows_by_test[PAIRED], "truly_different")
        yield (
            "The true values are known here. The test of the literature has "
            f"{wrong[UNADJUSTED]} false positives among {significant[UNADJUSTED]} significant "
            f"pairs, {wrong[ADJUSTED]} of {significant[ADJUSTED]} with Holm's adjustment, and the "
            f"paired test {wrong[PAIRED]} of {significant[PAIRED]}. Its power is lower: "
            f"{n_different} pairs truly differ."
        )


def _conclude_violations(rows: Sequence[Row]) -> str:
    """Report the number of disagreements, of violations of R2, and of failures that cause them."""
    violations = [row for row in rows if row["violates_R2"]]
    conclusion = (
        f"The metrics rank {counted(len(rows), 'pair')} of methods of the same networks in "
        f"opposite orders. In {len(violations)} of them, {FIRST_METRIC.title} prefers a method "
        "that is worse by accuracy or AUROC and better by neither, which violates R2."
    )
    if not violations:
        return conclusion
    n_responsible = median(row["responsible"] for row in violations)
    share = median(row["responsible"] / row["failures"] for row in violations)
    return (
        f"{conclusion} The median number of failures that cause the violation is "
        f"{n_responsible:g}, {100 * share:.1f}% of all failures."
    )


def _explain_same_failures(rows: Sequence[Row]) -> Iterator[str]:
    """Explain why disagreements between methods with identical failures violate R2."""
    n_same = sum(row["same_failures"] for row in rows)
    if n_same:
        yield (
            f"{n_same} of these {counted(len(rows), 'pair')} have the same failures and so the "
            f"same accuracy. {SECOND_METRIC.title} then ranks methods like the failure AUROC "
            f"(Traub et al. 2024, eq. 7), so every disagreement with {FIRST_METRIC.title} violates "
            "R2. For these pairs, only the number of disagreements is informative."
        )


def conclude_neighbors(rows: Sequence[Row]) -> Iterator[str]:
    """Report how often the test used in the literature contradicts adjacent mean ranks."""
    if rows:
        yield (
            f"In {total(rows, 'contradicts_rank')} of {counted(len(rows), 'pair')} of methods "
            "with adjacent mean ranks, the method with the worse mean rank is significantly better "
            "by the test of the literature on the same resamples, as the last paragraph of section "
            "4.1 of Traub et al. (2024) describes."
        )


def conclude_printed_top(rows: Sequence[Row], selection: str) -> str:
    """Compare the changes among the first three methods with the text of the paper."""
    iid_rows = [row for row in rows if row["selection"] == selection and row["study"].endswith(IID)]
    changed = [row["study"].removesuffix(IID) for row in iid_rows if row["top_3_changes"]]
    return (
        f"With settings selected {selection}, the first three methods change on {len(changed)} of "
        f"{len(iid_rows)} i.i.d. test sets ({', '.join(changed)}) by these ranks. Section 4.1 "
        f"states {N_CHANGES_IN_TEXT} of {len(iid_rows)}: there, methods are ranked by their mean "
        "rank over bootstrap resamples (figure 3), here by their values on the test sets (table "
        "4)."
    )


def _conclude_settings(settings: Sequence[Row], changes: Sequence[Row]) -> str:
    """Report for which methods AURC and AUGRC select different settings."""
    if not settings:
        return "Both metrics select the same settings on validation data for every method."
    counts = " and ".join(
        f"{total(group, 'changed')} with settings selected {selection}"
        for selection, group in group_rows(changes, "selection").items()
    )
    methods = join_first([row["method"] for row in settings], _MAX_LISTED)
    return (
        f"{FIRST_METRIC.title} and {SECOND_METRIC.title} select different settings for "
        f"{counted(len(settings), 'method')} ({methods}). Changed ranks: {counts}."
    )


def conclude_true_ranks(rows: Sequence[Row]) -> Iterator[str]:
    """Compare the ranks with the true ranks if these are known."""
    first = f"{FIRST_METRIC.name}_true_rank"
    second = f"{SECOND_METRIC.name}_true_rank"
    if not rows or first not in rows[0]:
        return
    n_different = sum(row[first] != row[second] for row in rows)
    errors = []
    for metric in (FIRST_METRIC, SECOND_METRIC):
        total_error = sum(
            abs(row[f"{metric.name}_rank"] - row[f"{metric.name}_true_rank"]) for row in rows
        )
        errors.append(f"{total_error / len(rows):.1f} by {metric.title}")
    yield (
        f"{n_different} of {len(rows)} true ranks differ between the metrics, so the changes are "
        "not only random variation of the samples. The mean absolute error of an estimated rank is "
        f"{' and '.join(errors)}."
    )
