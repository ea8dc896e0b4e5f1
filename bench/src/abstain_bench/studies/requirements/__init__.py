"""Test the requirements R1 to R5 for metrics on all selective classifiers with few samples."""

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
from abstain_bench.studies._display import Row
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies.requirements import closed_forms
from abstain_bench.studies.requirements.decisions import (
    READINGS,
    REQUIREMENTS,
    JudgedMetric,
    RequirementReading,
    conclusions,
    find_disagreements,
    is_in_scope,
    judge_metric,
    scope_note,
)
from abstain_bench.studies.requirements.verdicts import BROKEN, HOLDS, Counterexample, Verdict

if TYPE_CHECKING:
    from abstain_bench.runs.jobs import OnOutcome

#: Range of the option `orders`.
_MIN_ORDERS = 2
_MAX_ORDERS = 10

#: Maximum number of samples for the comparison of AURCs at equal accuracy and failure AUROC.
_MAX_EQUAL_FACTORS: Final = 7

_PAPER_URL: Final = "https://arxiv.org/abs/2407.01032"

#: Table text for requirements without a verdict in the paper.
NOT_STATED: Final = "not stated"

#: Suffix of the columns with the verdicts of the paper.
_PAPER_COLUMN: Final = "paper"


@timed
def study_requirements(
    *,
    metrics: Sequence[str] | None = None,
    orders: int = 7,
    out: str | Path | None = None,
    on_outcome: "OnOutcome | None" = None,
) -> StudyResult:
    """Test whether metrics meet the requirements R1 to R5.

    The study answers the question: does a metric always improve with a better classifier or a
    better score? All orders of successes and failures are tested for small numbers of samples. For
    each violated requirement, a counterexample with the fewest samples is reported. The study is
    deterministic.

    Parameters
    ----------
    metrics : sequence of str, optional
        Names of metrics (``abstain list metrics``). Names of metrics that contain a number are
        valid with other numbers. The default is all metrics of the catalogue and one example per
        family.
    orders : int, default=7
        Maximum number of samples for which all orders are tested, from 2 to 10.
    out : str or Path, optional
        Folder in which the verdicts are stored. An interrupted run is resumed from the stored
        verdicts. By default, verdicts are not stored.
    on_outcome : callable, optional
        Function that is called at the beginning (with status "begun") and at the end of the test of
        each family of metrics.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each metric and reading of a requirement), "summary" (one row
        for each metric), "against-the-paper" (verdicts of the paper that differ from the verdicts
        of all readings), "turning-point" (F1-AUC), "contributions" and "toy";
        figures "verdicts", "other-verdicts", "surface", "f1-auc", "contributions" and
        "toy-curves".

    Raises
    ------
    InputError
        If a metric does not exist or `orders` is out of range.

    Notes
    -----
    Confidences are distinct. If a metric depends on the values of the confidences, each order is
    tested with two sets of values. If a metric depends on classes, all label vectors are tested for
    up to 7 samples. If no counterexample is found, the orders of 20 samples with at most 2 failures
    are also tested. A counterexample proves that the metric violates the requirement. The verdict
    "holds" means only that no tested system is a counterexample. The study takes half a minute for
    all metrics, and a second for a single metric.

    References
    ----------
    .. [1] Traub et al. (2024), section 2.3, eq. 7 and 11, figure 2,
       https://arxiv.org/abs/2407.01032

    .. rubric:: Captions

    results
        Before and after: one letter for each sample, most confident first: o success, x failure,
        capitals for the second class, ? failure of an unknown class. Both have the same test set.
        For R3: two swaps and their improvements. n: number of samples of the smallest
        counterexample, or else the largest number that was tested exhaustively.
    summary
        Each reading of each requirement, and the requirements that the metric violates according to
        the paper, which states no verdict on the others.
    against-the-paper
        Verdicts of the paper with which no reading agrees, for variants of a metric too.
    turning-point
        Perfect rankings: the accuracy with the largest F1-AUC by number of samples. The last row is
        eq. 11.
    toy
        Most confident sample first, o success, x failure. CSF-1 and CSF-2 have equal accuracy and
        failure AUROC; CSF-3 is worse than CSF-1 in both. Found by search, because the paper shows
        its orders as an image only.
    toy-curves
        A failure with high confidence increases the selective risk at all higher coverages. It
        increases the generalized risk by the same amount as any other failure.
    contributions
        One failure among n samples. The formula of the paper for AUGRC, (N - k + 1)/N^2, is that of
        SELE; the trapezoid has (N - k + 1/2)/N^2.
    verdicts, other-verdicts
        Filled marks: verdicts of this study. Hollow marks: verdicts of the paper. Empty: the paper
        states no verdict.
    surface
        All panels have the same color scale. The ranking term converges to 0 at the right and at
        the top.
    f1-auc
        Where a line decreases, a better classifier with a perfect ranking has a worse F1-AUC.

    .. rubric:: Glossary

    Failure AUROC
        Share of pairs of a failure and a success that are in the right order.
    Counterexample
        Two systems on the same samples, for which the metric of the better one is not better.

    Examples
    --------
    >>> result = study_requirements(metrics=["augrc", "aurc"], orders=5)
    >>> worse = result.frame().filter(metric="aurc", requirement="R2", reading="weak")
    >>> worse.select("before", "after", "value_before", "value_after").rows()
    [('oxxxo', 'xooxx', 0.44333333333333336, 0.6266666666666666)]
    """
    names = _metric_names(metrics)
    max_samples = _check_orders(orders)
    judgments = _judge_metrics(names, max_samples, None if out is None else Path(out), on_outcome)
    contributions = closed_forms.contribution_rows(closed_forms.N_SAMPLES)
    toy_rows = closed_forms.toy_rows()
    return REQUIREMENTS_STUDY.result(
        parameters={"metrics": names, "orders": max_samples},
        tables={
            "results": [row for judgment in judgments.values() for row in _rows(judgment)],
            "summary": summary_rows(judgments.values()),
            "against-the-paper": [
                _disagreement_row(judgment, requirement)
                for judgment, requirement in find_disagreements(judgments)
            ],
            "turning-point": closed_forms.turning_point_rows(),
            "toy": toy_rows,
            "contributions": contributions,
        },
        main_tables=("summary", "against-the-paper", "turning-point", "toy"),
        figures={
            **_grids(judgments),
            "surface": closed_forms.surface(),
            "f1-auc": closed_forms.f1_figure(),
            "contributions": closed_forms.contribution_figure(contributions),
            "toy-curves": closed_forms.toy_figure(toy_rows),
        },
        notes=(scope_note(max_samples),),
        verdict=(
            *conclusions(judgments.values()),
            *_conclude_closed_forms(toy_rows, max_samples),
        ),
    )


def _judge_metrics(
    names: Sequence[str], orders: int, out: Path | None, on_outcome: "OnOutcome | None"
) -> dict[str, JudgedMetric]:
    """Return the verdicts on each metric, computed by one job per family of metrics."""
    from abstain_bench.studies._jobs import StudyJobs

    metrics = {name: metric_named(name) for name in names}
    families: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        families.setdefault(metric.identity.family.replace(" ", "-"), []).append(name)

    def judge_family(family: str) -> dict[str, Any]:
        judged = {name: judge_metric(metrics[name], orders) for name in families[family]}
        return {
            name: [_verdict_to_json(judgment.verdicts[reading]) for reading in READINGS]
            for name, judgment in judged.items()
        }

    spec = {"orders": orders, "metrics": sorted(names), "readings": list(READINGS)}
    jobs = StudyJobs("requirements", spec, out, on_outcome)
    rows_by_metric: dict[str, Any] = {}
    for rows_of_family in jobs.run(list(families), judge_family):
        rows_by_metric |= rows_of_family
    judgments = {}
    for name in names:
        verdicts = [_verdict_from_json(row) for row in rows_by_metric[name]]
        verdict_by_reading = dict(zip(READINGS, verdicts, strict=True))
        judgments[name] = JudgedMetric(metrics[name], verdict_by_reading)
    return judgments


def _verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    example = verdict.counterexample
    return {"n": verdict.n_samples, "example": None if example is None else asdict(example)}


def _verdict_from_json(stored: Mapping[str, Any]) -> Verdict:
    if stored["example"] is None:
        return Verdict(stored["n"])
    fields = dict(stored["example"])
    # Earlier versions stored the reason as "why".
    if "why" in fields:
        fields["reason"] = fields.pop("why")
    return Verdict(stored["n"], Counterexample(**fields))


def _metric_names(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the requested metrics; the default includes one example per family."""
    if metrics:
        requested = [metrics] if isinstance(metrics, str) else metrics
        return tuple(dict.fromkeys(metric_named(name).name for name in requested))
    family_examples = [family.example_name for family in FAMILIES]
    return tuple(dict.fromkeys([*METRICS, *family_examples]))


def _check_orders(orders: int) -> int:
    max_samples = checks.positive_int(orders, "orders")
    if not _MIN_ORDERS <= max_samples <= _MAX_ORDERS:
        raise InputError(
            f"`orders` must be {_MIN_ORDERS} to {_MAX_ORDERS}, because 2^n orders are tested; got "
            f"{orders}"
        )
    return max_samples


# ---------------------------------------------------------------------------------- tables
def _rows(judgment: JudgedMetric) -> Iterator[dict[str, Any]]:
    """Yield a row for each interpretation of a requirement."""
    for name, reading in READINGS.items():
        verdict = judgment.verdicts[name]
        yield {
            "metric": judgment.metric.name,
            "requirement": reading.requirement,
            "reading": reading.variant,
            "verdict": verdict.text,
            "paper": _paper_verdict_text(judgment, reading),
            "n": verdict.n_samples,
            **_counterexample_columns(verdict.counterexample),
        }


def _paper_verdict_text(judgment: JudgedMetric, reading: RequirementReading) -> str | None:
    """Return the verdict of the paper, or None if the paper does not state one."""
    if judgment.metric.identity.violated_requirements is None or not reading.is_from_paper:
        return None
    holds = judgment.paper_verdict(reading.requirement)
    return NOT_STATED if holds is None else _verdict_text(holds)


def _verdict_text(holds: bool) -> str:
    return HOLDS if holds else BROKEN


def _counterexample_columns(example: Counterexample | None) -> dict[str, Any]:
    """Return the columns that describe a counterexample, or None in each if there is none."""
    if example is None:
        return dict.fromkeys(asdict(Counterexample()))
    return asdict(example)


def summary_rows(judgments: Iterable[JudgedMetric]) -> list[dict[str, Any]]:
    """Return a row for each metric, with its verdicts and the violations that the paper names."""
    rows = []
    for judgment in judgments:
        violated = judgment.metric.identity.violated_requirements
        in_paper = "not judged" if violated is None else " ".join(violated) or "none"
        row: dict[str, Any] = {"metric": judgment.metric.name}
        for name, reading in READINGS.items():
            row[reading.column] = judgment.verdicts[name].holds
        rows.append({**row, "the_paper": in_paper})
    return rows


def _disagreement_row(judgment: JudgedMetric, requirement: str) -> dict[str, Any]:
    """Return a row that contains the verdict of the paper and a different verdict of this study."""
    verdicts = [judgment.verdicts[name] for name in judgment.readings_of(requirement)]
    examples = [
        verdict.counterexample for verdict in verdicts if verdict.counterexample is not None
    ]
    return {
        "metric": judgment.metric.name,
        "requirement": requirement,
        "this_study": _verdict_text(not examples),
        "paper": _verdict_text(bool(judgment.paper_verdict(requirement))),
        **_counterexample_columns(examples[0] if examples else None),
    }


# --------------------------------------------------------------------------------- figures
def _grids(judgments: Mapping[str, JudgedMetric]) -> dict[str, Drawable]:
    """Plot verdicts in two figures: metrics within the scope of the paper, and other metrics."""
    in_scope = {
        name: judgment for name, judgment in judgments.items() if is_in_scope(judgment.metric)
    }
    others = {name: judgment for name, judgment in judgments.items() if name not in in_scope}
    grids: dict[str, Drawable] = {}
    if in_scope:
        grids["verdicts"] = _grid(in_scope, "metrics over all thresholds or in the paper")
    if others:
        title = "working points, calibration, CWSA and classifier metrics"
        grids["other-verdicts"] = _grid(others, title)
    return grids


def _grid(judgments: Mapping[str, JudgedMetric], title: str) -> VerdictGridDisplay:
    """Plot verdicts with a row for each metric and a column for each interpretation.

    Hollow markers after the interpretations of a requirement are the verdicts of the paper.
    """
    cells = {name: _cells(judgment) for name, judgment in judgments.items()}
    columns: list[str] = []
    paper_columns: list[str] = []
    for requirement in REQUIREMENTS:
        columns += [
            reading.column for reading in READINGS.values() if reading.requirement == requirement
        ]
        paper_column = _paper_column(requirement)
        if any(paper_column in row for row in cells.values()):
            columns.append(paper_column)
            paper_columns.append(paper_column)
    return VerdictGridDisplay(
        cells, tuple(columns), f"Requirements: {title}", hollow_columns=tuple(paper_columns)
    )


def _cells(judgment: JudgedMetric) -> dict[str, str]:
    """Return the text of each verdict on a metric by column."""
    cells = {reading.column: judgment.verdicts[name].text for name, reading in READINGS.items()}
    for requirement in REQUIREMENTS:
        holds = judgment.paper_verdict(requirement)
        if holds is not None:
            cells[_paper_column(requirement)] = _verdict_text(holds)
    return cells


def _paper_column(requirement: str) -> str:
    return f"{requirement} {_PAPER_COLUMN}"


def _conclude_closed_forms(toy_rows: Sequence[Row], orders: int) -> Iterator[str]:
    """Yield conclusions about the toy example and the closed forms."""
    yield closed_forms.conclude_toy(toy_rows)
    n = min(orders, _MAX_EQUAL_FACTORS)
    yield closed_forms.conclude_equal_factors(closed_forms.areas_at_equal_factors(n), n)
    accuracy, maximum = closed_forms.turning_point()
    without_failures = float(closed_forms.best_f1_auc(1.0))
    yield (
        f"The F1-AUC of a perfect ranking has its maximum, {maximum:.4f}, at an accuracy of "
        f"{accuracy:.4f}. Without failures it is {without_failures:.4f} (eq. 11)."
    )


#: The study in the catalogue.
REQUIREMENTS_STUDY: Final = StudyEntry(
    name="requirements",
    title="Requirements R1 to R5 of metrics",
    question=(
        "Does each metric always improve with a better classifier or a better confidence score?"
    ),
    source=f"Traub et al. (2024), section 2.3, eq. 7 and 11, figure 2, {_PAPER_URL}",
    run=study_requirements,
    job_folders=("jobs",),
    quick={"orders": 3},
    terms={reading.column: reading.meaning for reading in READINGS.values()},
)
