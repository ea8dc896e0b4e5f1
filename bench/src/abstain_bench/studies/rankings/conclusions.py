"""Conclusions of the rankings."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from abstain_bench.studies._sentences import counted, listed
from abstain_bench.studies._tables import Row, group_rows
from abstain_bench.studies.rankings.paper import IID, N_CHANGES_IN_TEXT
from abstain_bench.studies.rankings.ranked_studies import (
    ADJUSTED,
    FIRST_METRIC,
    METRIC_NAMES,
    PAIRED,
    SECOND_METRIC,
    UNADJUSTED,
)

#: Largest number of methods that a sentence lists.
_MAX_LISTED = 5


def conclude(tables: Mapping[str, Sequence[Row]], resamples: int) -> Iterator[str]:
    """Yield conclusions about the last selection: rank changes, significance and violations."""
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


def _total(rows: Sequence[Row], column: str) -> int:
    return sum(row[column] for row in rows)


def conclude_selections(rows: Sequence[Row]) -> str:
    """Compare the changes between the selections of settings."""
    groups = group_rows(rows, "selection")
    counts = "; ".join(
        f"with settings selected {selection}, {_total(group, 'changed')} of "
        f"{_total(group, 'methods')} ranks change, and the first three methods in "
        f"{counted(_total(group, 'top_3_changes'), 'study', 'studies')}"
        for selection, group in groups.items()
    )
    return f"Over {counted(len(rows) // len(groups), 'study', 'studies')}: {counts}."


def _conclude_changes(rows: Sequence[Row]) -> str:
    taus = [row["tau"] for row in rows]
    return (
        f"From {FIRST_METRIC.title} to {SECOND_METRIC.title}, {_total(rows, 'changed')} of "
        f"{_total(rows, 'methods')} ranks change, by at most "
        f"{max(row['largest_change'] for row in rows)}. The best method changes in "
        f"{_total(rows, 'best_changes')} and the first three in {_total(rows, 'top_3_changes')} of "
        f"{counted(len(rows), 'study', 'studies')}. The median of Kendall's tau is "
        f"{median(taus):.2f}, the minimum {min(taus):.2f}."
    )


def _conclude_swaps(rows: Sequence[Row]) -> Iterator[str]:
    if any("significant_swaps" not in row for row in rows):
        return
    n_swaps, n_significant = _total(rows, "swaps"), _total(rows, "significant_swaps")
    if not n_swaps:
        return
    conclusion = (
        "Only in these pairs is the contradiction between the metrics significant."
        if n_significant
        else "All these changes may be random variation of the test samples."
    )
    yield (
        f"{n_significant} of {counted(n_swaps, 'swapped pair')} of methods are significantly "
        f"different by both metrics (paired test). {conclusion}"
    )


def _conclude_tests(rows: Sequence[Row], resamples: int) -> Iterator[str]:
    rows_by_test = group_rows(rows, "test")
    tests = (UNADJUSTED, ADJUSTED, PAIRED)
    significant = {test: _total(rows_by_test.get(test, ()), "significant") for test in tests}
    yield (
        f"Of {_total(rows_by_test.get(PAIRED, ()), 'pairs')} pairs, {significant[UNADJUSTED]} are "
        f"significantly different by the test of the literature, Wilcoxon's test over {resamples} "
        f"bootstrap samples ({significant[ADJUSTED]} with Holm's adjustment), and "
        f"{significant[PAIRED]} by the paired test with Holm's adjustment. The first test treats "
        "resamples of one test set as independent, so its p-values decrease with their number for "
        "any data. An adjustment does not correct this."
    )
    if all("false_positives" in row for row in rows):
        wrong = {test: _total(rows_by_test.get(test, ()), "false_positives") for test in tests}
        n_different = _total(rows_by_test.get(PAIRED, ()), "truly_different")
        yield (
            "The true values are known here. The test of the literature has "
            f"{wrong[UNADJUSTED]} false positives among {significant[UNADJUSTED]} significant "
            f"pairs, {wrong[ADJUSTED]} of {significant[ADJUSTED]} with Holm's adjustment, and the "
            f"paired test {wrong[PAIRED]} of {significant[PAIRED]}. Its power is lower: "
            f"{n_different} pairs truly differ."
        )


def _conclude_violations(rows: Sequence[Row]) -> str:
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
    """Explain the violations of R2 that follow from equal failures."""
    n_same = sum(row["same_failures"] for row in rows)
    if n_same:
        yield (
            f"{n_same} of these {counted(len(rows), 'pair')} have the same failures and so the "
            f"same accuracy. {SECOND_METRIC.title} then ranks methods like the failure AUROC "
            f"(Traub et al. 2024, eq. 7), so every disagreement with {FIRST_METRIC.title} violates "
            "R2. For these pairs, only the number of disagreements is informative."
        )


def conclude_neighbors(rows: Sequence[Row]) -> Iterator[str]:
    """Count the pairs with adjacent mean ranks that the test of the literature contradicts."""
    if rows:
        yield (
            f"In {_total(rows, 'contradicts_rank')} of {counted(len(rows), 'pair')} of methods "
            "with adjacent mean ranks, the method with the worse mean rank is significantly better "
            "by the test of the literature on the same resamples, as the last paragraph of section "
            "4.1 of Traub et al. (2024) describes."
        )


def conclude_printed_top(rows: Sequence[Row], selection: str) -> str:
    """Compare the changes of the first three methods in print with the text of the paper."""
    iid_rows = [r for r in rows if r["selection"] == selection and r["study"].endswith(IID)]
    changed = [row["study"].removesuffix(IID) for row in iid_rows if row["top_3_changes"]]
    return (
        f"With settings selected {selection}, the first three methods change on {len(changed)} of "
        f"{len(iid_rows)} i.i.d. test sets ({', '.join(changed)}) by these ranks. Section 4.1 "
        f"states {N_CHANGES_IN_TEXT} of {len(iid_rows)}: there, methods are ranked by their mean "
        "rank over bootstrap resamples (figure 3), here by their values on the test sets (table "
        "4)."
    )


def _conclude_settings(settings: Sequence[Row], changes: Sequence[Row]) -> str:
    if not settings:
        return "Both metrics select the same settings on validation data for every method."
    counts = " and ".join(
        f"{_total(group, 'changed')} with settings selected {selection}"
        for selection, group in group_rows(changes, "selection").items()
    )
    methods = listed([row["method"] for row in settings], _MAX_LISTED)
    return (
        f"{FIRST_METRIC.title} and {SECOND_METRIC.title} select different settings for "
        f"{counted(len(settings), 'method')} ({methods}). Changed ranks: {counts}."
    )


def conclude_true_ranks(rows: Sequence[Row]) -> Iterator[str]:
    """Compare the ranks with the true ranks, if these are known."""
    first, second = (f"{metric}_true_rank" for metric in METRIC_NAMES)
    if not rows or first not in rows[0]:
        return
    n_different = sum(row[first] != row[second] for row in rows)
    errors = []
    for metric in (FIRST_METRIC, SECOND_METRIC):
        total = sum(
            abs(row[f"{metric.name}_rank"] - row[f"{metric.name}_true_rank"]) for row in rows
        )
        errors.append(f"{total / len(rows):.1f} by {metric.title}")
    yield (
        f"{n_different} of {len(rows)} true ranks differ between the metrics, so the changes are "
        "not only random variation of the samples. The mean absolute error of an estimated rank is "
        f"{' and '.join(errors)}."
    )
