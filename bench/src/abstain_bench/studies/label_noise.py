"""What wrong labels do to AURC and AUGRC: the labels as given against the corrected ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import generator, seed_of
from abstain._foundation.scored import Scored
from abstain.curves import risk_coverage_curve, thin
from abstain.errors import InputError
from abstain.inference.ranking import ranks
from abstain.metrics.areas.augrc import AUGRC
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.contributions import compute_contributions
from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.plots.series import Series, SeriesDisplay
from abstain.predictions import Predictions, per_sample_loss
from abstain.simulate import logits
from abstain.typing import BoolArray, FloatArray, IntArray, Rng
from abstain_bench.studies._data import named_data
from abstain_bench.studies._sentences import counted, signed
from abstain_bench.studies._sources import confidence_of, usual_scores
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: The areas that are compared, and beside them how well failures are told.
_AREAS: Final = (AURC, AUGRC)
_METRICS: Final = (*_AREAS, FAILURE_AUROC)

#: The shares of the samples, the surest first, in which failures are counted.
_COVERAGES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

#: The column of corrected labels where no other is named.
_CORRECTED: Final = "corrected_labels"


@timed
def study_label_noise(
    file: str | Path | None = None,
    *,
    label: str | None = None,
    corrected: str = _CORRECTED,
    scores: Sequence[str] | None = None,
    noise: float = 0.01,
    n: int = 10_000,
    rng: Rng = 0,
) -> StudyResult:
    """Compare the metrics by labels as they were given with those by corrected labels.

    Answers: how many silent failures are errors of the labels, and which metric do they move most?

    Parameters
    ----------
    file : str or Path, optional
        Predictions with two columns (or arrays) of labels; by default simulated class scores, of
        whose labels some are replaced by those of another class.
    label : str, optional
        Column of the labels as given; by default the usual names.
    corrected : str, default="corrected_labels"
        Column of the corrected labels.
    scores : sequence of str, optional
        Scores of the file; by default the six of Zhou et al. that the file allows, else its
        confidences.
    noise : float, default=0.01
        The share of the simulated labels that are wrong, between 0 and 1.
    n : int, default=10000
        How many samples are simulated, at least 100.
    rng : int, Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (each metric of each score by either labels, its rank among the scores,
        and the share of an area that wrongly labeled samples add) and "silent" (failures among the
        surest samples, and how many of them are label errors); figures "silent" and "curves".

    Raises
    ------
    InputError
        The two columns of labels are equal, or a number is out of its range.
    UnknownNameError
        There is no such column or score.

    Notes
    -----
    A label error is a failure by the labels as given that is none by the corrected ones. A failure
    that only the corrected labels show is counted too: corrections that were looked for where a
    model disagrees find few of these. Cost: a sort for each score and metric.

    References
    ----------
    .. [1] Traub et al. (2024), section 4.2, https://arxiv.org/abs/2407.01032
    .. [2] Northcutt et al. (2021), Pervasive label errors in test sets,
       https://arxiv.org/abs/2103.14749

    Examples
    --------
    >>> found = study_label_noise(n=2000)
    >>> last = found.rows("silent")[-1]
    >>> last["samples"], last["failures"] > last["label_errors"] > 0
    (2000, True)
    """
    if file is None:
        share = checks.fraction(noise, "noise", high=1.0)
        size = checks.positive_int(n, "n")
        if size < 100:
            raise InputError(f"`n` must be at least 100, so that there are failures; got {size}")
        parts = {"simulated": _simulated(size, share, rng)}
        what: dict[str, Any] = {"noise": share, "n": size, "seed": seed_of(rng)}
    else:
        parts = _read(file, label, corrected)
        what = {"file": str(file), "corrected": corrected}
    cases = [
        case
        for name, (given, right) in parts.items()
        for case in _cases(name, given, right, scores)
    ]
    results = [row for name in parts for row in _rows([c for c in cases if c.data == name])]
    silent = [row for case in cases for row in case.silent()]
    return LABEL_NOISE.result(
        parameters=what,
        tables={"results": results, "silent": silent},
        figures=_figures(cases, silent),
        verdict=tuple(_verdict(cases, results)),
        shown=("results", "silent"),
    )


# -------------------------------------------------------------------------------- where labels are
_Labeled = tuple[Predictions, Predictions]


def _read(file: str | Path, label: str | None, corrected: str) -> dict[str, _Labeled]:
    """Read a file by either labels."""
    from abstain.tables import read_predictions

    given = named_data(read_predictions(file, label=label))
    right = named_data(read_predictions(file, label=corrected))
    for name, own in given.items():
        if np.array_equal(own.labels, right[name].labels):
            raise InputError(
                f"`label` and `corrected` must differ somewhere; the labels of {name!r} are the "
                f"same in {corrected!r} and the column that is taken for the labels as given"
            )
    # A part that stands alone is the file.
    named = [Path(file).stem] if len(given) == 1 else list(given)
    return {name: (given[own], right[own]) for name, own in zip(named, given, strict=True)}


def _simulated(n: int, noise: float, rng: Rng) -> _Labeled:
    """Draw class scores with their classes, and wrong labels for some of them."""
    first, second = generator(rng).spawn(2)
    drawn = logits().sample_logits(n, rng=first)
    classes = drawn.logits.shape[1]
    labels = np.asarray(drawn.labels)
    wrong = second.random(n) < noise
    other = (labels + second.integers(1, classes, n)) % classes
    given = np.where(wrong, other, labels)
    as_given, right = (Predictions(logits=drawn.logits, labels=own) for own in (given, labels))
    return as_given, right


# ------------------------------------------------------------------------------------ one score
@dataclass(frozen=True, eq=False)
class LabeledScore:
    """One score of one data set, whose failures are known by either labels.

    Attributes
    ----------
    data, score : str
        Their names.
    given, right : Scored
        By the labels as given and by the corrected ones.
    changed : bool ndarray of shape (n,)
        Whose labels differ.
    """

    data: str
    score: str
    given: Scored
    right: Scored
    changed: BoolArray

    @cached_property
    def errors(self) -> BoolArray:
        """The failures by the labels as given that are none."""
        return np.asarray((self.given.loss > 0) & (self.right.loss == 0))

    @cached_property
    def hidden(self) -> BoolArray:
        """The failures that the labels as given do not show."""
        return np.asarray((self.given.loss == 0) & (self.right.loss > 0))

    def share(self, area: str) -> float:
        """Return the share of an area by the labels as given that label errors add."""
        added = np.asarray(compute_contributions(self.given, area))
        return float(added[self.errors].sum() / added.sum())

    @property
    def order(self) -> IntArray:
        """The samples, the surest first; ties as they stand."""
        return np.asarray(np.argsort(-self.given.confidence, kind="stable"))

    def silent(self) -> Iterator[dict[str, Any]]:
        """Return how many failures among the surest samples are label errors."""
        for coverage in _COVERAGES:
            kept = self.order[: max(round(coverage * self.given.n), 1)]
            failures, errors = (
                int(np.count_nonzero(own[kept])) for own in (self.given.loss, self.errors)
            )
            yield {
                "data": self.data,
                "score": self.score,
                "coverage": coverage,
                "samples": len(kept),
                "failures": failures,
                "label_errors": errors,
                "share": errors / failures if failures else None,
                "hidden": int(np.count_nonzero(self.hidden[kept])),
            }


def _cases(
    name: str, given: Predictions, right: Predictions, scores: Sequence[str] | None
) -> Iterator[LabeledScore]:
    asked = tuple(scores or ()) or usual_scores(given)
    losses = [per_sample_loss(own, None).astype(np.float64) for own in (given, right)]
    changed = np.asarray(given.labels) != np.asarray(right.labels)
    for score in asked:
        values = np.asarray(confidence_of(score, given).values)
        before, after = (Scored(values, loss) for loss in losses)
        yield LabeledScore(name, score, before, after, changed)


def _rows(cases: Sequence[LabeledScore]) -> Iterator[dict[str, Any]]:
    """Return every metric of every score of one data set by either labels."""
    for metric in _METRICS:
        values = [
            [float(metric.compute(own).value) for own in (case.given, case.right)] for case in cases
        ]
        lower = metric.lower_is_better
        placed = ranks(np.array(values), lower_is_better=lower, ties="min").tolist()
        for case, (before, after), (first, second) in zip(cases, values, placed, strict=True):
            yield {
                "data": case.data,
                "score": case.score,
                "metric": metric.title,
                "given": before,
                "corrected": after,
                "change": after / before - 1 if before else None,
                "by_errors": case.share(metric.name) if metric in _AREAS else None,
                "rank_given": int(first),
                "rank_corrected": int(second),
            }


# -------------------------------------------------------------------------------- what it shows
def _figures(
    cases: Sequence[LabeledScore], silent: Sequence[Mapping[str, Any]]
) -> dict[str, SeriesDisplay]:
    first = {case.data: case for case in reversed(cases)}
    lines = [
        Series(f"{case.score}, {data}", tuple(x), tuple(y))
        for data, case in first.items()
        for x, y in [_line(silent, case)]
    ]
    curves = [
        Series(name, *_curve(own, panel), panel=f"{data}, {case.score}: {panel} risk")
        for data, case in first.items()
        for panel in ("selective", "generalized")
        for name, own in (("labels as given", case.given), ("corrected labels", case.right))
    ]
    coverage = "Coverage (share accepted, the surest first)"
    return {
        "silent": SeriesDisplay(
            tuple(lines),
            "Share of the failures among the surest samples that are label errors",
            coverage,
            "Label errors among the failures",
        ),
        "curves": SeriesDisplay(
            tuple(curves), "Risk by the labels as given and as corrected", coverage, "Risk"
        ),
    }


def _line(silent: Sequence[Mapping[str, Any]], case: LabeledScore) -> tuple[list[float], ...]:
    rows = [r for r in silent if (r["data"], r["score"]) == (case.data, case.score)]
    share = [float("nan") if r["share"] is None else float(r["share"]) for r in rows]
    return [float(r["coverage"]) for r in rows], share


def _curve(s: Scored, kind: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    curve = thin(risk_coverage_curve(s.confidence, s.loss))
    coverage: FloatArray = np.asarray(curve.coverage)
    risk = np.asarray(curve.risk) * (coverage if kind == "generalized" else 1.0)
    return tuple(coverage.tolist()), tuple(risk.tolist())


def _verdict(cases: Sequence[LabeledScore], results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for data in dict.fromkeys(case.data for case in cases):
        first = next(case for case in cases if case.data == data)
        yield _errors_said(first)
        yield _moved_said(first, [row for row in results if row["data"] == data])
        yield _ranks_said(data, [row for row in results if row["data"] == data])


def _errors_said(case: LabeledScore) -> str:
    failures, errors = (int(np.count_nonzero(own)) for own in (case.given.loss, case.errors))
    tenth = next(row for row in case.silent() if row["coverage"] == 0.1)
    surest = (
        f"{tenth['label_errors']} of {tenth['failures']}" if tenth["failures"] else "there is none"
    )
    hidden = int(np.count_nonzero(case.hidden))
    shows = counted(hidden, "failure shows", "failures show")
    return (
        f"{case.data}: {np.count_nonzero(case.changed)} of {case.given.n} labels differ. "
        f"{errors} of {failures} failures ({100 * errors / failures:.1f} %) are label errors; "
        f"among the surest tenth by {case.score} {surest}. "
        f"{shows} by the corrected labels alone."
    )


def _moved_said(case: LabeledScore, rows: Sequence[Mapping[str, Any]]) -> str:
    own = {r["metric"]: r for r in rows if r["score"] == case.score}
    aurc, augrc = (own[metric.title] for metric in _AREAS)
    more = aurc if abs(aurc["change"]) > abs(augrc["change"]) else augrc
    risk = case.right.loss.mean() / case.given.loss.mean() - 1
    told = "; ".join(
        f"{r['metric']} by {signed(100 * r['change'])} % (label errors: "
        f"{100 * r['by_errors']:.1f} % of it)"
        for r in (aurc, augrc)
    )
    return (
        f"{case.data}, {case.score}: corrected labels move {told}, where the error rate moves by "
        f"{signed(100 * risk)} %. {more['metric']} moves more."
    )


def _ranks_said(data: str, rows: Sequence[Mapping[str, Any]]) -> str:
    moved = {
        metric.title: sum(
            r["rank_given"] != r["rank_corrected"] for r in rows if r["metric"] == metric.title
        )
        for metric in _METRICS
    }
    scores = len({row["score"] for row in rows})
    told = ", ".join(f"{count} by {name}" for name, count in moved.items())
    return f"{data}: of {scores} scores so many have another rank: {told}."


#: The study in the catalogue.
LABEL_NOISE: Final = StudyEntry(
    name="label-noise",
    title="Silent failures that are label errors",
    question=(
        "How many of the most confident failures are errors of the labels, and how much does each "
        "metric move, and reorder the scores, when they are corrected?"
    ),
    source="Traub et al. (2024), section 4.2, https://arxiv.org/abs/2407.01032",
    run=study_label_noise,
    quick={"n": 2000},
    captions={
        "results": (
            "By errors: the share of the area by the labels as given that label errors add. Ranks "
            "are among the scores, the lowest of equal ones."
        ),
        "silent": (
            "Label errors: failures by the labels as given that are none. Hidden: failures that "
            "only the corrected labels show."
        ),
        "curves": "The surest samples are at the left, where few errors make much selective risk.",
    },
    glossary={"Silent failure": "A failure of high confidence, which no threshold rejects."},
)
