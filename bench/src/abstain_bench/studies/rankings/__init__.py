"""Does it matter which metric ranks the methods? AURC against AUGRC, study by study."""

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
from abstain_bench.studies._inputs import check_repeats
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies.rankings.changes import AFTER, BEFORE, PAIRED, UNADJUSTED
from abstain_bench.studies.rankings.conclusions import (
    of_printed_top,
    of_selections,
    true_ranks,
    verdict,
)
from abstain_bench.studies.rankings.figures import (
    changes_figure,
    curves_figure,
    every_map_figure,
    maps_figure,
    rankings_figure,
)
from abstain_bench.studies.rankings.paper import printed_changes, printed_ranks
from abstain_bench.studies.rankings.piece import TABLES, tables_of, together
from abstain_bench.studies.rankings.simulation import METHODS, RISKS, simulated

if TYPE_CHECKING:
    from abstain_bench.runs.jobs import OnOutcome
    from abstain_bench.studies.rankings.folder import RankedFolder

#: The tables that are open at once.
_SHOWN: Final = ("changes", "tests", "settings", "violations", "failures")

_PAPER: Final = "https://arxiv.org/abs/2407.01032"


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
    """Rank methods by AURC and by AUGRC, and say what changes, how surely, and why.

    Answers: does it matter which of the two metrics ranks the methods of a benchmark?

    Parameters
    ----------
    runs : str or Path, optional
        The folder of a benchmark (`abstain benchmark run`); by default simulated methods of which
        the true areas are known.
    published : bool, default=False
        Take the ranks that Traub et al. print instead (table 4): what changes there, without tests
        and samples.
    methods : sequence of str, optional
        Methods of the runs; by default all.
    studies : sequence of str, optional
        Studies of the runs; by default those of the main table.
    bootstrap : int, default=500
        Resamples of each test set, at least 2.
    level : float, default=0.95
        Confidence level of the tests and intervals.
    ties : {"mean", "min"}, default="min"
        Which rank equal methods have; published tables have the lowest.
    n : int, default=2000
        Samples of each simulated data set, at least 20.
    rng : int, Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.
    out : str or Path, optional
        The folder in which each study of the runs is kept when it is there, to go on from after a
        kill; by default none is.
    on_outcome : callable, optional
        Told of each study of the runs when it begins (its status is "begun") and when it is there.

    Returns
    -------
    StudyResult
        Tables "results" (ranks of each method in each study, by either metric, on the test set and
        on average over the resamples), "changes" (of each study), "tests" (pairs that the
        literature's test and the paired one tell apart), "neighbors" (methods with adjacent mean
        ranks, and whether the literature's test contradicts them), "disagreements" (pairs that the
        metrics order differently), "violations" (of R2), "failures" (the samples responsible),
        "pairs" (every pair by either test) and, of runs, "settings" (chosen differently); figures
        "changes", "rankings", "significance", "maps-published" and "maps-paired" (a panel a
        study), "curves", and of runs "failures" with the pictures.

    Raises
    ------
    InputError
        A number is too small, or no run was tested.
    UnknownNameError
        There is no such method or study.
    FileFormatError
        `runs` is no folder of runs, or damaged.

    Notes
    -----
    Values are means over the networks of a method; resamples are of the test set and the same for
    all methods and networks. Settings are chosen on validation data, each metric by itself or both
    by AUGRC. Cost: 4 s simulated; of runs a resampling of each study, twice where the metrics
    choose different settings.

    References
    ----------
    .. [1] Traub et al. (2024), section 4, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> found = study_rankings(bootstrap=50, n=300)
    >>> found.frame("changes")["study"].to_list()
    ['easy', 'usual', 'hard', 'shifted']
    """
    checks.one_of(ties, "ties", TIES)
    asked = _Asked(check_repeats(bootstrap), check_level(level), ties, as_seed(rng))
    if published:
        return _of_print(runs, methods, studies)
    parameters = {
        "runs": f"{len(METHODS)} simulated methods, {len(RISKS)} data sets of {n} samples"
        if runs is None
        else str(runs),
        "bootstrap": asked.resamples,
        "level": asked.level,
        "ties": ties,
        "seed": asked.seed,
    }
    if runs is not None:
        folder = _folder(runs, methods, studies, asked)
        pieces = _pieces(folder, asked, None if out is None else Path(out), on_outcome)
        return RANKINGS.result(parameters=parameters, **_found(pieces, folder, asked))
    if methods is not None or studies is not None:
        raise InputError(
            "`methods` and `studies` are those of a folder of runs; give `runs`, or drop them"
        )
    ranked = simulated(n=_size(n), resamples=asked.resamples, level=asked.level, seed=asked.seed)
    piece = tables_of([replace(one, ties=ties) for one in ranked])
    return RANKINGS.result(parameters=parameters, **_found([piece], None, asked))


def _size(n: int) -> int:
    size = checks.positive_int(n, "n")
    if size < 20:
        raise InputError(f"`n` must be at least 20, so that methods differ; got {size}")
    return size


def _of_print(
    runs: str | Path | None, methods: Sequence[str] | None, studies: Sequence[str] | None
) -> StudyResult:
    """Say what changes in the published tables."""
    if runs is not None or methods is not None or studies is not None:
        raise InputError(
            "`published` takes the printed tables; drop it, or `runs`, `methods` and `studies`"
        )
    rows = printed_ranks()
    changes = list(printed_changes(rows))
    tables: dict[str, Any] = {"results": rows, "changes": changes, "tests": []}
    own, shared = dict.fromkeys(row["selection"] for row in rows)
    return RANKINGS.result(
        parameters={"ranks": "as printed by Traub et al. (2024), table 4"},
        tables={name: of for name, of in tables.items() if of},
        figures={"changes": changes_figure(rows, shared), "changes-own": changes_figure(rows, own)},
        verdict=(*verdict(tables, 0), of_printed_top(changes, own), of_selections(changes)),
        main_tables=("changes",),
    )


@dataclass(frozen=True)
class _Asked:
    resamples: int
    level: float
    ties: Ties
    seed: int


def _folder(
    runs: str | Path,
    methods: Sequence[str] | None,
    studies: Sequence[str] | None,
    asked: _Asked,
) -> "RankedFolder":
    from abstain.evaluation.comparison import Plan
    from abstain_bench.runs.store import Store
    from abstain_bench.studies.rankings.folder import RankedFolder

    plan = Plan.from_options(
        level=asked.level,
        bootstrap=asked.resamples,
        rng=asked.seed,
        published_test=True,
        skip_slow=True,
    )
    return RankedFolder(Store.read(runs), plan, methods, studies)


def _pieces(
    folder: "RankedFolder", asked: _Asked, out: Path | None, told: "OnOutcome | None"
) -> list[dict[str, Any]]:
    """Return what is said of each study of the runs, kept or found now."""
    from abstain_bench.studies._jobs import StudyJobs

    def make(study: str) -> Mapping[str, Any]:
        ranked = [replace(one, ties=asked.ties) for one in folder.ranked(study)]
        return tables_of(ranked, folder)

    methods = sorted({one.method for own in folder.best.values() for one in own})
    spec = {**vars(asked), "methods": methods, "data": folder.digest(), "tables": TABLES}
    return [*StudyJobs("rankings", spec, out, told).run(list(folder.studies), make)]


def _found(
    pieces: Sequence[Mapping[str, Any]], folder: "RankedFolder | None", asked: _Asked
) -> dict[str, Any]:
    whole = together(pieces)
    if not whole["changes"]:
        raise InputError(
            "no study has two methods with numbers of both metrics; name others, or drop them"
        )
    tables: dict[str, Any] = {name: whole[name] for name in TABLES}
    figures, notes = _figures(whole, asked.level), []
    if folder is not None:
        tables["settings"] = folder.chosen
        notes.append(_SEEDS)
    if folder is not None and whole["pictures"]:
        from abstain_bench.studies.rankings.pictures import pictures_figure

        drawn, why = pictures_figure(folder, whole["pictures"])
        figures |= {"failures": drawn} if drawn else {}
        notes += [f"Without pictures: {why}."] if why else []
    said = [*verdict(tables, asked.resamples), *true_ranks(tables["results"])]
    return {
        "tables": tables,
        "figures": figures,
        "notes": tuple(notes),
        "verdict": tuple(said),
        "main_tables": tuple(name for name in _SHOWN if name in tables),
    }


def _figures(whole: Mapping[str, Sequence[dict[str, Any]]], level: float) -> dict[str, Any]:
    selections = list(dict.fromkeys(row["selection"] for row in whole["results"]))
    last = selections[-1]
    figures: dict[str, Any] = {"changes": changes_figure(whole["results"], last)}
    if len(selections) > 1:
        figures["changes-own"] = changes_figure(whole["results"], selections[0])
    own = [row for row in whole["results"] if row["selection"] == last]
    figures["rankings"] = rankings_figure(own)
    pairs = whole["pairs"]
    if whole["tests"]:
        study = _most_told_apart([row for row in whole["tests"] if row["selection"] == last])
        figures["significance"] = maps_figure(own, pairs, study, level)
        figures["maps-published"] = every_map_figure(own, pairs, UNADJUSTED, level)
        figures["maps-paired"] = every_map_figure(own, pairs, PAIRED, level)
    if whole["violations"]:
        strongest = whole["violations"][0]["study"]
        figures["curves"] = curves_figure(
            [row for row in whole["curves"] if row["study"] == strongest]
        )
    return {name: display for name, display in figures.items() if display is not None}


def _most_told_apart(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return the study in which the paired test finds most."""
    found: dict[str, int] = {}
    for row in tests:
        own = row["told_apart"] if row["test"] == PAIRED else 0
        found[row["study"]] = found.get(row["study"], 0) + own
    return max(found, key=lambda study: found[study])


_SEEDS: Final = (
    "Resamples and tests are of the test samples, with the networks as they are: what other "
    "networks of the same recipe would change is not in them."
)

_MAPS: Final = (
    "A study in two squares, by AURC and by AUGRC; methods stand in the order of their values, so "
    "what is found lies above the diagonal. Blue: the row is found better than the column."
)

#: The study in the catalogue.
RANKINGS: Final = StudyEntry(
    name="rankings",
    title="Rankings by AURC and by AUGRC",
    question=(
        f"Do {BEFORE.title} and {AFTER.title} rank the same methods first, are the changes more "
        "than chance, and which failures make them?"
    ),
    source=f"Traub et al. (2024), section 4, figs. 3, 4, 6 and 7, tables 3 and 4, {_PAPER}",
    run=study_rankings,
    quick={"bootstrap": 100, "n": 1000},
    captions={
        "results": "Every method in every study; the mean rank is that over the resamples.",
        "changes": (
            "Swaps: pairs that change places. Decided: those of which the paired test is sure by "
            "both metrics."
        ),
        "tests": (
            "Pairs that each test tells apart. Wrongly: those that are said to be better and truly "
            "are not, where the truth is known."
        ),
        "disagreements": (
            "Pairs that the metrics order differently; better and worse are by AUGRC. Preferred "
            "by: how much lower the AURC of the worse one is, as a share. Responsible: so many "
            "failures turn the AURC. Of methods with the same failures, every pair violates R2."
        ),
        "neighbors": (
            "Methods with adjacent mean ranks over the resamples. Better: by Wilcoxon's test on "
            "these, without adjustment; it contradicts the rank where it prefers the lower one."
        ),
        "violations": (
            "The strongest violation of R2 in each study: by how much the better method is ahead, "
            "and how many of its failures turn the AURC."
        ),
        "failures": (
            "The gap is what a sample adds to the metric of the better method less that of the "
            "worse; less sure is the share of the samples that a method trusts less."
        ),
        "settings": "Methods whose settings the metrics choose differently on validation data.",
        "pairs": (
            "Every pair by either test, before it is counted. Better: by the test as published, "
            "without adjustment, or by the paired one; adjusted: by Holm."
        ),
        "rankings": (
            "A panel a study, by the mean rank over the resamples. Blue and dashed: better by the "
            "second metric, orange: worse."
        ),
        "maps-published": f"{_MAPS} This test treats resamples of one test set as independent.",
        "maps-paired": _MAPS,
        "significance": (
            "At the left the literature's test, which treats resamples of one test set as "
            "independent; at the right the paired test of the same numbers. Blue: the row is "
            "found better than the column."
        ),
        "curves": "The strongest violation: the first failures decide the AURC.",
    },
    job_folders=("jobs",),
    glossary={
        "R2": (
            "The metric is better where accuracy or the order of failures is better and neither is "
            "worse (Traub et al., section 2)."
        ),
        "Rank then aggregate": "Ranks on each resample, then the rank of their mean.",
        "AURC": "Area under the selective risk over coverage: high-confidence failures count most.",
        "AUGRC": "Area under the generalized risk over coverage: a failure counts by its rank.",
        "AUROC": "The chance that a success is trusted more than a failure.",
        "Kendall's tau": "1 where two rankings are the same, -1 where one is the reverse.",
    },
)
