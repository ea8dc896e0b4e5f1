"""Compare the rankings of methods by AURC and AUGRC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.errors import InputError
from abstain.inference.intervals import check_level
from abstain.inference.ranking import TIES, Ties
from abstain.typing import Rng
from abstain_bench.studies._display import Row, group_rows, unique_values
from abstain_bench.studies._inputs import check_repeats
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies.rankings.conclusions import (
    all_maps_figure,
    changes_figure,
    conclude,
    conclude_printed_top,
    conclude_selections,
    conclude_true_ranks,
    curves_figure,
    printed_changes,
    printed_rank_rows,
    rankings_figure,
    study_maps_figure,
)
from abstain_bench.studies.rankings.ranked_studies import (
    FIRST_METRIC,
    PAIRED,
    SECOND_METRIC,
    UNADJUSTED,
)
from abstain_bench.studies.rankings.simulation import METHODS, RISKS, simulate_rankings
from abstain_bench.studies.rankings.tables import TABLES, join_tables, make_tables

if TYPE_CHECKING:
    from abstain_bench.runs.jobs import OnOutcome
    from abstain_bench.studies.rankings.folder import RankedFolder

#: Names of the tables that the terminal and the page display.
_MAIN_TABLES: Final = ("changes", "tests", "settings", "violations", "failures")

#: Version of the columns of stored tables.
_COLUMNS_VERSION: Final = 2

_MIN_SAMPLES: Final = 20

_PAPER_URL: Final = "https://arxiv.org/abs/2407.01032"


@timed
def study_rankings(
    runs: str | Path | None = None,
    *,
    published: bool = False,
    methods: Sequence[str] | None = None,
    studies: Sequence[str] | None = None,
    bootstrap: int = 500,
    level: float = 0.95,
    ties: Ties = "min",
    n: int = 2000,
    rng: Rng = 0,
    out: str | Path | None = None,
    on_outcome: "OnOutcome | None" = None,
) -> StudyResult:
    """Rank methods by AURC and by AUGRC, and analyze the differences.

    The study answers the questions: do both metrics rank the methods of a benchmark differently,
    are the differences significant, and which failures cause the differences?

    Parameters
    ----------
    runs : str or Path, optional
        Folder of a benchmark (`abstain benchmark run`). By default, methods with known true areas
        are simulated.
    published : bool, default=False
        Whether to use the ranks in table 4 of Traub et al. The result then contains no tests and no
        samples.
    methods : sequence of str, optional
        Methods of the runs. By default, all methods.
    studies : sequence of str, optional
        Studies of the runs. The default is the studies of the main table.
    bootstrap : int, default=500
        Number of resamples of each test set, at least 2.
    level : float, default=0.95
        Confidence level of the tests and intervals.
    ties : {"mean", "min"}, default="min"
        Rank of tied methods. Published tables contain minimum ranks.
    n : int, default=2000
        Number of samples of each simulated data set, at least 20.
    rng : int, Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.
    out : str or Path, optional
        Folder in which the results of each study are stored. An interrupted run is resumed from the
        stored results. By default, results are not stored.
    on_outcome : callable, optional
        Function that is called at the beginning (with status "begun") and at the end of each study
        of the runs.

    Returns
    -------
    StudyResult
        Tables "results" (ranks of each method by both metrics), "changes" (summary of the rank
        changes), "tests" (numbers of significant pairs), "neighbors" (methods with adjacent mean
        ranks), "disagreements" (pairs that the metrics rank in opposite orders), "violations"
        (strongest violations of R2), "failures" (samples that cause the violations) and "pairs"
        (all pairs of methods); figures "changes", "rankings", "significance", "maps-published",
        "maps-paired" and "curves". If runs are evaluated, the result also contains the table
        "settings" and the figure "failures" with images.

    Raises
    ------
    InputError
        If an option is out of range or no run was tested.
    UnknownNameError
        If a method or a study does not exist.
    FileFormatError
        If `runs` is not a folder of runs, or if a file is damaged.

    Notes
    -----
    Metrics are averaged over the networks of a method. The same bootstrap resamples of the test set
    are used for all methods and networks. Settings are selected on the validation data, either by
    each metric separately or by AUGRC for both metrics. The simulation takes 4 s. For runs, each
    test set is resampled once, or twice if the two metrics select different settings.

    References
    ----------
    .. [1] Traub et al. (2024), section 4, https://arxiv.org/abs/2407.01032

    .. rubric:: Captions

    results
        Each row contains the ranks of a method in a study. Mean ranks are means over the resamples.
    changes
        A swap is a pair of methods that the metrics rank in opposite orders. A swap is significant
        if the methods are significantly different by both metrics (paired test).
    tests
        Numbers of significant pairs. If the true values are known, a false positive is a
        significant pair whose better method is not truly better.
    disagreements
        Pairs of methods that the metrics rank in opposite orders. The better method is better by
        AUGRC. The relative preference is the relative excess of AURC of the better method. The
        column "responsible" counts the failures without which the metrics agree. All disagreements
        of methods with the same failures violate R2.
    neighbors
        Methods with adjacent mean ranks over the resamples. The better method is significantly
        better by Wilcoxon's test on the same resamples, without adjustment. The test contradicts
        the rank if the better method has the worse mean rank.
    violations
        Differences between the better and the worse method for the strongest violation of R2 in
        each study. The column "responsible" counts the failures without which AURC agrees.
    failures
        A gap is the contribution of a sample to the metric of the better method minus its
        contribution to the metric of the worse method. A confidence quantile is the share of
        samples with a lower confidence.
    settings
        Methods for which the metrics select different settings on validation data.
    pairs
        Each row contains a test of a pair of methods. The better method is significantly better by
        the published test without adjustment, or by the paired test. Adjusted p-values use Holm's
        method.
    rankings
        Each panel contains the mean ranks over the resamples in a study. Blue, dashed lines are
        methods with a better rank by the second metric. Orange lines are methods with a worse rank.
    maps-published
        Each study has a map for AURC and a map for AUGRC. Methods are sorted by their values, so
        significant pairs are above the diagonal. In blue cells, the row is significantly better
        than the column. This test treats resamples of one test set as independent.
    maps-paired
        Each study has a map for AURC and a map for AUGRC. Methods are sorted by their values, so
        significant pairs are above the diagonal. In blue cells, the row is significantly better
        than the column.
    significance
        The left maps contain the test of the literature, which treats resamples of one test set as
        independent. The right maps contain the paired test of the same values. In blue cells, the
        row is significantly better than the column.
    curves
        Curves of the strongest violation. The most confident failures determine the AURC.

    .. rubric:: Glossary

    R2
        Requirement that a metric improves if accuracy or the ranking of failures improves and
        neither gets worse (Traub et al., section 2).
    Rank then aggregate
        Ranking of methods by their mean rank over the resamples.
    AURC
        Area under the selective risk-coverage curve. Failures with high confidence have the largest
        weight.
    AUGRC
        Area under the generalized risk-coverage curve. The weight of a failure is its rank.
    AUROC
        Probability that a success has a higher confidence than a failure.
    Kendall's tau
        Rank correlation, which is 1 for equal rankings and -1 for opposite rankings.

    Examples
    --------
    >>> result = study_rankings(bootstrap=50, n=300)
    >>> result.frame("changes")["study"].to_list()
    ['easy', 'usual', 'hard', 'shifted']
    """
    checks.one_of(ties, "ties", TIES)
    options = _Options(check_repeats(bootstrap), check_level(level), ties, as_seed(rng))
    if published:
        if runs is not None or methods is not None or studies is not None:
            raise InputError(
                "`published` uses the printed tables; omit it, or omit `runs`, `methods` and "
                "`studies`"
            )
        return _rank_published()
    if runs is not None:
        folder = _open_folder(runs, methods, studies, options)
        source = str(runs)
        study_tables = _rank_folder(folder, options, None if out is None else Path(out), on_outcome)
    else:
        if methods is not None or studies is not None:
            raise InputError(
                "`methods` and `studies` apply to a folder of runs; pass `runs`, or omit them"
            )
        folder = None
        source = f"{len(METHODS)} simulated methods, {len(RISKS)} data sets of {n} samples"
        study_tables = [_rank_simulated(_check_size(n), options)]
    return RANKINGS.result(
        parameters={
            "runs": source,
            "bootstrap": options.resamples,
            "level": options.level,
            "ties": ties,
            "seed": options.seed,
        },
        **_result_fields(study_tables, folder, options),
    )


@dataclass(frozen=True)
class _Options:
    """Validated options of the study."""

    resamples: int
    level: float
    ties: Ties
    seed: int


def _check_size(n: int) -> int:
    """Raise an error if the number of simulated samples is too small."""
    size = checks.positive_int(n, "n")
    if size < _MIN_SAMPLES:
        raise InputError(f"`n` must be at least {_MIN_SAMPLES}, so that methods differ; got {size}")
    return size


def _rank_published() -> StudyResult:
    """Compare the published ranks by AURC and AUGRC."""
    rows = printed_rank_rows()
    changes = list(printed_changes(rows))
    separate, common = unique_values(rows, "selection")
    return RANKINGS.result(
        parameters={"ranks": "as printed by Traub et al. (2024), table 4"},
        tables={"results": rows, "changes": changes},
        figures={
            "changes": changes_figure(rows, common),
            "changes-own": changes_figure(rows, separate),
        },
        verdict=(
            *conclude({"changes": changes, "tests": []}, 0),
            conclude_printed_top(changes, separate),
            conclude_selections(changes),
        ),
        main_tables=("changes",),
    )


def _rank_simulated(n: int, options: _Options) -> dict[str, list[dict[str, Any]]]:
    ranked = simulate_rankings(
        n=n, resamples=options.resamples, level=options.level, seed=options.seed
    )
    return make_tables([replace(studies, ties=options.ties) for studies in ranked])


def _open_folder(
    runs: str | Path,
    methods: Sequence[str] | None,
    studies: Sequence[str] | None,
    options: _Options,
) -> "RankedFolder":
    """Read a folder of runs, and select its methods and studies."""
    from abstain.evaluation.comparison import Plan
    from abstain_bench.runs.store import Store
    from abstain_bench.studies.rankings.folder import RankedFolder

    plan = Plan.from_options(
        level=options.level,
        bootstrap=options.resamples,
        rng=options.seed,
        published_test=True,
        skip_slow=True,
    )
    return RankedFolder(Store.read(runs), plan, methods, studies)


def _rank_folder(
    folder: "RankedFolder",
    options: _Options,
    out: Path | None,
    on_outcome: "OnOutcome | None",
) -> list[dict[str, Any]]:
    """Compute the tables of each study, with one job per study."""
    from abstain_bench.studies._jobs import StudyJobs

    def rank_study(study: str) -> Mapping[str, Any]:
        ranked = [replace(studies, ties=options.ties) for studies in folder.rank_study(study)]
        return make_tables(ranked, folder)

    settings = [s for by_metric in folder.settings_by_metric.values() for s in by_metric]
    spec = {
        "resamples": options.resamples,
        "level": options.level,
        "ties": options.ties,
        "seed": options.seed,
        "methods": sorted({setting.method for setting in settings}),
        "data": folder.digest(),
        "tables": TABLES,
        "columns": _COLUMNS_VERSION,
    }
    jobs = StudyJobs("rankings", spec, out, on_outcome)
    return [*jobs.run(list(folder.studies), rank_study)]


def _result_fields(
    study_tables: Sequence[Mapping[str, Any]], folder: "RankedFolder | None", options: _Options
) -> dict[str, Any]:
    """Create tables, figures, notes and conclusions, which are fields of `StudyResult`."""
    joined = join_tables(study_tables)
    if not joined["changes"]:
        raise InputError(
            "no study has two methods with values of both metrics; request others, or omit "
            "`methods` and `studies`"
        )
    tables: dict[str, Any] = {name: joined[name] for name in TABLES}
    figures = _figures(joined, options.level)
    notes = []
    if folder is not None:
        tables["settings"] = folder.different_settings
        notes.append(_NETWORKS_NOTE)
        if joined["images"]:
            from abstain_bench.studies.rankings.folder import failure_images_figure

            images, reason = failure_images_figure(folder, joined["images"])
            if images is not None:
                figures["failures"] = images
            if reason:
                notes.append(f"Without images: {reason}.")
    return {
        "tables": tables,
        "figures": figures,
        "notes": tuple(notes),
        "verdict": (
            *conclude(tables, options.resamples),
            *conclude_true_ranks(tables["results"]),
        ),
        "main_tables": tuple(name for name in _MAIN_TABLES if name in tables),
    }


def _figures(tables: Mapping[str, Sequence[Row]], level: float) -> dict[str, Any]:
    """Create the figures, most of which use the last selection of settings."""
    selections = unique_values(tables["results"], "selection")
    selection = selections[-1]
    rows = [row for row in tables["results"] if row["selection"] == selection]
    pairs = tables["pairs"]
    figures: dict[str, Any] = {
        "changes": changes_figure(tables["results"], selection),
        "rankings": rankings_figure(rows),
    }
    if len(selections) > 1:
        figures["changes-own"] = changes_figure(tables["results"], selections[0])
    if tables["tests"]:
        tests = [row for row in tables["tests"] if row["selection"] == selection]
        study = _study_with_most_significant_pairs(tests)
        figures["significance"] = study_maps_figure(rows, pairs, study, level)
        figures["maps-published"] = all_maps_figure(rows, pairs, UNADJUSTED, level)
        figures["maps-paired"] = all_maps_figure(rows, pairs, PAIRED, level)
    if tables["violations"]:
        strongest = tables["violations"][0]["study"]
        figures["curves"] = curves_figure(
            [row for row in tables["curves"] if row["study"] == strongest]
        )
    return {name: figure for name, figure in figures.items() if figure is not None}


def _study_with_most_significant_pairs(tests: Sequence[Row]) -> str:
    """Return the study with the most significant pairs according to the paired test."""
    n_significant: dict[str, int] = {}
    for study, rows in group_rows(tests, "study").items():
        n_significant[study] = sum(row["significant"] for row in rows if row["test"] == PAIRED)
    return max(n_significant, key=lambda study: n_significant[study])


_NETWORKS_NOTE: Final = (
    "Resamples and tests include the sampling error of the test samples, given the trained "
    "networks. They do not include the variation between networks of the same recipe."
)

#: The study in the catalogue.
RANKINGS: Final = StudyEntry(
    name="rankings",
    title="Rankings by AURC and by AUGRC",
    question=(
        f"Do {FIRST_METRIC.title} and {SECOND_METRIC.title} rank methods differently, are the "
        "differences significant, and which failures cause them?"
    ),
    source=f"Traub et al. (2024), section 4, figs. 3, 4, 6 and 7, tables 3 and 4, {_PAPER_URL}",
    run=study_rankings,
    quick={"bootstrap": 100, "n": 1000},
    job_folders=("jobs",),
)
