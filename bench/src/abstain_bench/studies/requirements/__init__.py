"""What Traub et al. (2024) ask of a metric, decided for each by trying all small systems."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.metrics import METRICS, metric_named
from abstain.metrics.catalogue import FAMILIES
from abstain.plots.drawable import Drawable
from abstain.plots.verdict_grid import VerdictGridDisplay
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies._tables import Row
from abstain_bench.studies.requirements import closed_forms, toy
from abstain_bench.studies.requirements.conclusions import CAPTIONS, GLOSSARY, note, verdict
from abstain_bench.studies.requirements.decisions import (
    READINGS,
    REQUIREMENTS,
    JudgedMetric,
    RequirementReading,
    disagreements,
    is_meant,
    judged,
)
from abstain_bench.studies.requirements.verdicts import Decided, Example

if TYPE_CHECKING:
    from abstain_bench.runs.jobs import OnOutcome

#: The least and the most samples of which all orders are tried.
_LEAST, _MOST = 2, 10

#: Samples of which the AURC of equal accuracy and failure AUROC is compared, at most.
_SPREAD_OF: Final = 7

#: The paper.
_PAPER: Final = "https://arxiv.org/abs/2407.01032"

#: What is written of a requirement.
VERDICTS: Final = {True: "holds", False: "broken"}

#: What is written of a requirement that the paper does not name where it judges the metric.
NOT_NAMED: Final = "not named"

#: What the paper says, as a column.
_SAID: Final = "paper"


@timed
def study_requirements(
    *,
    metrics: Sequence[str] | None = None,
    orders: int = 7,
    out: str | Path | None = None,
    on_outcome: "OnOutcome | None" = None,
) -> StudyResult:
    """Decide for each metric which of the requirements R1 to R5 it meets.

    Answers: does a better classifier, or a better score, always get the better number? Every order
    of right and wrong of a few samples is tried, and a smallest counterexample is shown for each
    requirement that is broken. Nothing is drawn.

    Parameters
    ----------
    metrics : sequence of str, optional
        Metrics (``abstain list metrics``), with other numbers too. By default the whole catalogue
        and an example of each family that takes numbers.
    orders : int, default=7
        Every order of right and wrong of up to so many samples is tried, 2 to 10.
    out : str or Path, optional
        The folder in which what is decided of each family of metrics is kept when it is there, to
        go on from after a kill; by default none is.
    on_outcome : callable, optional
        Told of each family when it begins (its status is "begun") and when it is decided.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each metric and reading of a requirement, with the smallest
        counterexample), "summary" (one row a metric), "against-the-paper" (verdicts that no
        reading shares with the paper), "turning-point" (F1-AUC), "contributions" and "toy";
        figures "verdicts", "other-verdicts", "surface", "f1-auc", "contributions" and
        "toy-curves".

    Raises
    ------
    InputError
        If there is no such metric or `orders` is out of range.

    Notes
    -----
    Confidences are distinct. A metric that reads their values is shown each order on two scales;
    one that reads classes is shown every vector of labels, of up to 7 samples. What holds there
    is also asked of the orders of 20 samples with at most 2 failures. A counterexample is a
    proof; "holds" is as far as these go. Cost: half a minute for all metrics, a second for one.

    References
    ----------
    .. [1] Traub et al. (2024), section 2.3, eq. 7 and 11, figure 2,
       https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> found = study_requirements(metrics=["augrc", "aurc"], orders=5)
    >>> worse = found.frame().filter(metric="aurc", requirement="R2", reading="weak")
    >>> worse.select("before", "after", "value_before", "value_after").rows()
    [('oxxxo', 'xooxx', 0.44333333333333336, 0.6266666666666666)]
    """
    names = _names(metrics)
    most = _orders(orders)
    judgments = _judgments(names, most, None if out is None else Path(out), on_outcome)
    contributions, toys = closed_forms.contribution_rows(toy.N), toy.toy_rows()
    rows = [row for judgment in judgments.values() for row in _rows(judgment)]
    apart = [_apart(*found) for found in disagreements(judgments)]
    return REQUIREMENTS_STUDY.result(
        parameters={"metrics": names, "orders": most},
        tables={
            "results": rows,
            "summary": summary_rows(judgments.values()),
            "against-the-paper": apart,
            "turning-point": closed_forms.turning_rows(),
            "toy": toys,
            "contributions": contributions,
        },
        main_tables=("summary", "against-the-paper", "turning-point", "toy"),
        figures={
            **_grids(judgments),
            "surface": closed_forms.surface(),
            "f1-auc": closed_forms.f1_figure(),
            "contributions": closed_forms.contribution_figure(contributions),
            "toy-curves": toy.toy_figure(toys),
        },
        notes=(note(most),),
        verdict=(*verdict(judgments.values()), *_illustrated(toys, most)),
    )


def _judgments(
    names: Sequence[str], orders: int, out: Path | None, told: "OnOutcome | None"
) -> dict[str, JudgedMetric]:
    """Decide for each metric, family by family; what was kept is not decided again."""
    from abstain_bench.studies._jobs import StudyJobs

    metrics = {name: metric_named(name) for name in names}
    families: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        families.setdefault(metric.identity.family.replace(" ", "-"), []).append(name)

    def make(family: str) -> dict[str, Any]:
        own = {name: judged(metrics[name], orders).found for name in families[family]}
        return {
            name: [asdict(found[reading]) for reading in READINGS] for name, found in own.items()
        }

    spec = {"orders": orders, "metrics": sorted(names), "readings": list(READINGS)}
    pieces = StudyJobs("requirements", spec, out, told).run(list(families), make)
    rows = {name: own for piece in pieces for name, own in piece.items()}
    return {name: JudgedMetric(metrics[name], dict(_read(rows[name]))) for name in names}


def _read(rows: Sequence[Row]) -> Iterator[tuple[str, Decided]]:
    """Return what was decided of one metric, by the readings."""
    for name, row in zip(READINGS, rows, strict=True):
        example = row["example"]
        yield name, Decided(row["n"], None if example is None else Example(**example))


def _names(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Return the metrics that are asked for: all, with one of each family, where none is."""
    if metrics:
        given = [metrics] if isinstance(metrics, str) else metrics
        return tuple(dict.fromkeys(metric_named(name).name for name in given))
    return tuple(dict.fromkeys([*METRICS, *(family.example_name for family in FAMILIES)]))


def _orders(orders: int) -> int:
    most = checks.positive_int(orders, "orders")
    if not _LEAST <= most <= _MOST:
        raise InputError(
            f"`orders` must be {_LEAST} to {_MOST}, since 2^n orders are tried; got {orders}"
        )
    return most


# ---------------------------------------------------------------------------------- the tables
def _rows(judgment: JudgedMetric) -> Iterator[dict[str, Any]]:
    for name, reading in READINGS.items():
        found = judgment.found[name]
        yield {
            "metric": judgment.metric.name,
            "requirement": reading.requirement,
            "reading": reading.way,
            "verdict": found.verdict,
            "paper": _of_paper(judgment, reading),
            "n": found.n,
            **_written(found.example),
        }


def _of_paper(judgment: JudgedMetric, reading: RequirementReading) -> str | None:
    """Return the paper's verdict on a reading; None for its unjudged metrics and our readings."""
    if judgment.metric.identity.violated_requirements is None or not reading.of_paper:
        return None
    holds = judgment.paper(reading.requirement)
    return NOT_NAMED if holds is None else VERDICTS[holds]


def _written(example: Example | None) -> dict[str, Any]:
    """Return the columns of a counterexample, which are empty where there is none."""
    return asdict(example) if example else dict.fromkeys(asdict(Example()))


def summary_rows(judgments: Iterable[JudgedMetric]) -> list[dict[str, Any]]:
    """Return one row a metric: each reading, and what the paper says that it breaks."""
    return [
        {
            "metric": j.metric.name,
            **{reading.column: j.found[name].holds for name, reading in READINGS.items()},
            "the_paper": said_broken(j),
        }
        for j in judgments
    ]


def said_broken(judgment: JudgedMetric) -> str:
    """Write what the paper says that a metric breaks."""
    breaks = judgment.metric.identity.violated_requirements
    return "not judged" if breaks is None else " ".join(breaks) or "none"


def _apart(judgment: JudgedMetric, requirement: str) -> dict[str, Any]:
    """Return a verdict that no reading shares with the paper, with the counterexample to it."""
    examples = [e for n in judgment.of(requirement) if (e := judgment.found[n].example)]
    return {
        "metric": judgment.metric.name,
        "requirement": requirement,
        "here": VERDICTS[not examples],
        "paper": VERDICTS[bool(judgment.paper(requirement))],
        **_written(examples[0] if examples else None),
    }


# --------------------------------------------------------------------------------- the figures
def _grids(judgments: Mapping[str, JudgedMetric]) -> dict[str, Drawable]:
    """Draw metrics over all thresholds, or that the paper judges, and the others apart."""
    first = {name: j for name, j in judgments.items() if is_meant(j.metric)}
    parts = {
        "verdicts": (first, "metrics over all thresholds, and others that the paper judges"),
        "other-verdicts": (
            {n: j for n, j in judgments.items() if n not in first},
            "working points, calibration, CWSA and the classifier",
        ),
    }
    return {name: _grid(*part) for name, part in parts.items() if part[0]}


def _grid(judgments: Mapping[str, JudgedMetric], said: str) -> VerdictGridDisplay:
    cells = {name: _cells(judgment) for name, judgment in judgments.items()}
    known = {column for row in cells.values() for column in row}
    columns = [
        column
        for requirement in REQUIREMENTS
        for column in (
            *(r.column for r in READINGS.values() if r.requirement == requirement),
            f"{requirement} {_SAID}",
        )
        if column in known
    ]
    elsewhere = tuple(column for column in columns if column.endswith(_SAID))
    return VerdictGridDisplay(cells, tuple(columns), f"Requirements: {said}", elsewhere)


def _cells(judgment: JudgedMetric) -> dict[str, str]:
    ours = {r.column: judgment.found[n].verdict for n, r in READINGS.items()}
    known = {f"{r} {_SAID}": judgment.paper(r) for r in REQUIREMENTS}
    return ours | {name: VERDICTS[holds] for name, holds in known.items() if holds is not None}


def _illustrated(toys: Sequence[Row], orders: int) -> Iterator[str]:
    """Say what the closed forms and the toy show."""
    yield toy.toy_said(toys)
    n = min(orders, _SPREAD_OF)
    yield closed_forms.spread_said(closed_forms.unexplained(n), n)
    accuracy, most = closed_forms.turning_point()
    right = float(closed_forms.best_f1_auc(1.0))
    yield (
        f"The F1-AUC of a perfect ranking is largest, {most:.4f}, at an accuracy of {accuracy:.4f} "
        f"and {right:.4f} where all is right (eq. 11)."
    )


#: The study in the catalogue.
REQUIREMENTS_STUDY: Final = StudyEntry(
    name="requirements",
    title="What a metric must meet: requirements R1 to R5",
    question="Does a better classifier, or a better score, always get the better number?",
    source=f"Traub et al. (2024), section 2.3, eq. 7 and 11, figure 2, {_PAPER}",
    run=study_requirements,
    job_folders=("jobs",),
    quick={"orders": 3},
    captions=CAPTIONS,
    glossary=GLOSSARY,
)
