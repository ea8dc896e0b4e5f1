"""Check a cascade on other data, with or without labels (`check_cascade`, `CascadeChecks`)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import Note
from abstain._foundation.scored import Scored
from abstain.confidence import ScoreState
from abstain.errors import InputError
from abstain.evaluation.cascade.data import AlignedStages, StageRequest, align_stages
from abstain.evaluation.notes import direction_warning
from abstain.evaluation.records import format_counts, warnings_first
from abstain.evaluation.rules.data import name_data_sets
from abstain.evaluation.rules.notes import LIKE_CALIBRATION, have_same_values
from abstain.evaluation.rules.record import CALIBRATION, CALIBRATION_VERDICT
from abstain.inference.intervals import check_level
from abstain.predictions import CostMatrix
from abstain.thresholds import RuleCheck
from abstain.thresholds.cascade import (
    PERSON,
    Cascade,
    CascadeFrontier,
    check_decisions,
    compute_frontier,
)
from abstain.typing import Scale

_NAN: Final = float("nan")


@dataclass(frozen=True)
class PathStage:
    """Counts and costs of the samples that reach one stage of a cascade.

    Attributes
    ----------
    name : str
        Name of the model, or "person" for the last stage, in which a person answers.
    n_reached : float
        Number of samples that reach the stage.
    n_answered : float
        Number of samples that the stage answers. The remaining samples go to the next stage.
    n_wrong : float
        Sum of the losses of the answers, or NaN if the losses are unknown. For 0/1 losses, the sum
        is the number of wrong answers.
    cost_per_sample, cost : float
        Cost of the stage for one sample, and for all samples that reach the stage.
    error_cost : float
        Cost of the wrong answers of the stage, or NaN if the losses are unknown.
    """

    name: str
    n_reached: float
    n_answered: float
    n_wrong: float
    cost_per_sample: float
    cost: float
    error_cost: float


@dataclass(frozen=True, eq=False)
class CascadeChecks(NotebookDisplay):
    """A cascade, and the results of its checks on other data sets.

    Attributes
    ----------
    cascade : Cascade
        The stages with their thresholds, and the guarantee.
    checks : tuple of RuleCheck
        One check for each data set, in the order of the input.
    level : float
        Confidence level of the intervals.
    frontier : CascadeFrontier or None
        All choices of thresholds on the calibration data, or None if these were not passed.
    notes : tuple of Note
        Notes about the cascade and the data. Warnings come first.
    is_binary : bool
        Whether every loss is 0 or 1. If True, a mean loss is a share of wrong answers.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> def simulate_stages(n):
    ...     confidence = rng.random(n)
    ...     return {
    ...         "small": (confidence, rng.random(n) > confidence),
    ...         "large": (confidence, rng.random(n) > 2 * confidence),
    ...     }
    >>> cascade = ab.set_cascade(simulate_stages(3000), max_risk=0.1)
    >>> checks = ab.check_cascade(cascade, {"later": simulate_stages(90_000)})
    >>> checks.frame().select("name", "verdict").rows()
    [('calibration', 'chosen here'), ('later', 'holds')]
    """

    cascade: Cascade
    checks: tuple[RuleCheck, ...]
    level: float
    frontier: CascadeFrontier | None = None
    notes: tuple[Note, ...] = ()
    is_binary: bool = True

    def __repr__(self) -> str:
        """Return a summary of the cascade, with the numbers of data sets and warnings."""
        n_warnings = sum(note.level == "warning" for note in self.notes)
        counts = format_counts({"data set": len(self), "warning": n_warnings})
        return f"CascadeChecks({self.cascade!s}; {counts}; .frame() has the numbers)"

    def __len__(self) -> int:
        """Return the number of data sets."""
        return len(self.checks)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for the calibration data, and then a row for each data set.

        The row of the calibration data has no intervals, because the thresholds were chosen on the
        same data.
        """
        plan = self.cascade.plan
        targets = {
            "max_risk": plan.max_risk,
            "capacity": plan.capacity,
            "delta": plan.delta,
            "level": self.level,
        }
        rows = [self._calibration_row(), *(check.row() for check in self.checks)]
        return [{**row, **targets} for row in rows]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)

    def path(self, check: RuleCheck | None = None, *, n: int = 1000) -> tuple[PathStage, ...]:
        """Return how many of n samples reach each stage and are answered by it, with costs.

        The shares and risks of the stages are taken from the check. Without a check, the shares
        are taken from the calibration data, and the risks are unknown.
        """
        cascade, plan = self.cascade, self.cascade.plan
        shares, risks = cascade.answered, (_NAN,) * len(cascade.answered)
        if check is not None:
            shares = tuple(stage.share for stage in check.stages)
            risks = tuple(stage.risk for stage in check.stages)
        costs = [*(stage.cost for stage in cascade.stages), plan.person_cost]
        is_run = [*(stage.answers != "none" for stage in cascade.stages), True]
        n_remaining = float(n)
        path = []
        for i, name in enumerate(cascade.names):
            n_answered = n * shares[i]
            n_reached = n_remaining if is_run[i] else 0.0
            n_wrong = n_answered * risks[i] if n_answered else 0.0
            stage = PathStage(
                name=name,
                n_reached=n_reached,
                n_answered=n_answered,
                n_wrong=n_wrong,
                cost_per_sample=costs[i],
                cost=n_reached * costs[i],
                error_cost=n_wrong * plan.error_cost if plan.error_cost else 0.0,
            )
            path.append(stage)
            n_remaining = max(n_remaining - n_answered, 0.0)
        return tuple(path)

    def _calibration_row(self) -> dict[str, Any]:
        """Return the row of the calibration data, which has no intervals."""
        cascade, plan = self.cascade, self.cascade.plan
        reviews = cascade.answered[-1]
        values = {"risk": cascade.risk, "reviews": reviews, "cost": cascade.cost}
        row: dict[str, Any] = {"name": CALIBRATION, "n": cascade.n}
        for name, value in values.items():
            row |= {name: value, f"{name}_low": _NAN, f"{name}_high": _NAN}
        row["excess"] = cascade.risk - plan.max_risk
        row["load_excess"] = reviews - plan.capacity if plan.has_capacity_limit else _NAN
        row["days_over"] = _NAN
        verdict = CALIBRATION_VERDICT if cascade.attainable else "unattainable"
        row |= dict.fromkeys(("risk_verdict", "load_verdict", "verdict"), verdict)
        for name, share in zip(cascade.names, cascade.answered, strict=True):
            row |= {f"answered_{name}": share, f"risk_{name}": _NAN}
        return row


def check_cascade(
    cascade: Cascade,
    data: Mapping[Any, Any],
    *,
    scores: Mapping[str, ScoreState] | None = None,
    loss: "str | CostMatrix | None" = None,
    scale: Scale | None = None,
    level: float = 0.95,
    calibration: Mapping[str, Any] | None = None,
    notes: Sequence[str | Note] = (),
) -> CascadeChecks:
    """Check the risk, the share of answers of each stage, the load and the cost of a cascade.

    Answers: does the guarantee of the cascade hold on these data, is the load of the person within
    the capacity, and what does it cost?

    Parameters
    ----------
    cascade : Cascade
        Result of `set_cascade`, or a cascade that was read from a file.
    data : mapping
        A mapping from each stage to its predictions, to a pair (confidence, loss), or to
        confidences without labels. Arrays have shape (n,), and all stages must contain the same
        samples. For several data sets, pass a mapping from their names to such mappings of stages.
        The key "person" may contain the losses of the person. By default, the person has the error
        rate with which the cascade was selected.
    scores : mapping from str to fitted score, optional
        Mapping from stages to fitted scores.
    loss : str or CostMatrix, optional
        Loss of a prediction, as for `set_cascade`.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of arrays and confidence columns. The scale is required if it may differ from the
        scale of the thresholds. If the scale is "score", the confidences are not converted.
    level : float, default=0.95
        Confidence level of all intervals.
    calibration : mapping, optional
        The calibration data of the cascade. If these data are passed, the result contains the
        frontier of risk and cost over all thresholds, and a warning if a data set contains the
        same samples.
    notes : sequence of str or Note
        Notes to add to those of the check, such as the notes of a file reader.

    Returns
    -------
    CascadeChecks
        The cascade and a `RuleCheck` for each data set. The verdict is "holds" if the interval of
        the risk lies at or below its target, and, if the share of reviews is limited, its interval
        lies at or below the limit. The verdict is "broken" if one of these intervals lies above
        its target.

    Raises
    ------
    InputError, MissingInputError
        If `cascade` is not a cascade, if the data lack a stage, if the stages have different
        samples, if the data have weights or groups, or if confidences may be on another scale than
        the thresholds.
    ShapeError, DomainError
        If values are invalid.

    See Also
    --------
    set_cascade : Choose a cascade.
    check_rule : Check a rule with one model.

    Notes
    -----
    Intervals of shares and of 0/1 losses are exact. If both the risk and the load are guaranteed,
    each interval has the level 1 - (1 - level)/2, so that both intervals hold jointly at `level`.
    The guarantee does not hold under a distribution shift.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> def simulate_stages(n, shift=0.0):
    ...     confidence = rng.random(n)
    ...     small = rng.random(n) > confidence - shift
    ...     large = small & (rng.random(n) < 0.5)
    ...     return {"small": (confidence, small), "large": (confidence, large)}
    >>> cascade = ab.set_cascade(simulate_stages(3000), max_risk=0.1)
    >>> data = {"same": simulate_stages(3000), "hard": simulate_stages(3000, shift=0.3)}
    >>> [(c.name, c.verdict) for c in ab.check_cascade(cascade, data).checks]
    [('same', 'holds'), ('hard', 'broken')]
    """
    if not isinstance(cascade, Cascade):
        raise InputError(f"`cascade` must be a Cascade; got {type(cascade).__name__}")
    level = check_level(level)
    request = StageRequest(loss, scores, cascade.stages, cascade.plan.person_error)
    data_sets = {
        name: align_stages(stages, replace(request, scale=scale), where=name)
        for name, stages in _name_stage_mappings(data)
    }
    calibration_data = None
    if calibration is not None:
        calibration_data = align_stages(calibration, request, where="calibration")
    checks = []
    for name, aligned in data_sets.items():
        answered = cascade.decide(*aligned.scores, scale=scale)
        checks.append(check_decisions(cascade, answered, aligned.data, name=name, level=level))
    all_notes = [
        *_cascade_notes(cascade),
        *_data_notes(data_sets, calibration_data),
        *_load_notes(cascade, checks),
        *(note if isinstance(note, Note) else Note("source", note) for note in notes),
    ]
    all_data = list(data_sets.values())
    frontier = None
    if calibration_data is not None:
        all_data.append(calibration_data)
        frontier = _frontier(cascade, calibration_data)
    return CascadeChecks(
        cascade=cascade,
        checks=tuple(checks),
        level=level,
        frontier=frontier,
        notes=warnings_first(all_notes),
        is_binary=all(a.data.losses is None or a.data.is_binary for a in all_data),
    )


def _name_stage_mappings(data: object) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the name and the stages of each data set; a single data set is named "data"."""
    if not isinstance(data, Mapping):
        raise InputError(
            f"`data` must map each stage to its predictions; got {type(data).__name__}"
        )
    if data and not all(isinstance(stages, Mapping) for stages in data.values()):
        return [("data", data)]
    named = name_data_sets(data)
    return [(name, stages) for _, name, stages in named if isinstance(stages, Mapping)]


def _frontier(cascade: Cascade, calibration: AlignedStages) -> CascadeFrontier | None:
    """Return the results of all thresholds on the calibration data; None if samples differ."""
    if calibration.data.n != cascade.n or calibration.data.losses is None:
        return None
    return compute_frontier(calibration.data, cascade.stages, cascade.plan)


def _cascade_notes(cascade: Cascade) -> Iterator[Note]:
    """Yield notes about the guarantee and the assumed error rate of the person."""
    if cascade.attainable:
        yield Note("guarantee", LIKE_CALIBRATION)
    if cascade.plan.person_error is not None:
        yield Note(
            "person",
            f"The {PERSON} is assumed to be wrong on {100 * cascade.plan.person_error:.3g}% of "
            "the samples that they review. This rate is not measured: samples that are hard for "
            "models are also hard for people. Pass the losses of the person on these samples to "
            "include them in the test.",
        )


def _data_notes(
    data_sets: Mapping[str, AlignedStages], calibration: AlignedStages | None
) -> Iterator[Note]:
    """Yield notes about reversed scores, reused calibration data and missing labels."""
    if calibration is not None:
        yield from _direction("calibration", calibration)
    for name, aligned in data_sets.items():
        yield from _direction(name, aligned)
    for name, aligned in data_sets.items():
        if calibration is not None and _has_same_confidences(aligned, calibration):
            yield Note.warning(
                "same_data",
                f"{name}: These seem to be the calibration data, on which the performance of the "
                "cascade is optimistic: check it on other data.",
            )
        if aligned.data.losses is None:
            yield Note(
                "no_labels",
                f"{name}: The data have no labels, so only the shares of answers are checked.",
            )


def _has_same_confidences(first: AlignedStages, second: AlignedStages) -> bool:
    """Return whether two data sets have the same confidences in every stage."""
    pairs = zip(first.data.confidences, second.data.confidences, strict=True)
    return all(have_same_values(a, b) for a, b in pairs)


def _direction(name: str, aligned: AlignedStages) -> Iterator[Note]:
    """Yield a warning for each stage whose failures have higher confidences than its successes."""
    for stage in aligned.stages:
        if stage.loss is None:
            continue
        samples = Scored(stage.score.values, stage.loss)
        warning = direction_warning(samples, is_column=stage.score.is_user_column)
        if warning:
            yield Note.warning("direction", f"{name}, {stage.name}: {warning}")


def _load_notes(cascade: Cascade, checks: Sequence[RuleCheck]) -> Iterator[Note]:
    """Yield a warning for each data set on which the person receives too many samples."""
    for check in checks:
        load = check.load
        if load is None or load.verdict != "broken" or not cascade.attainable:
            continue
        days = ""
        if not math.isnan(load.days_over):
            days = (
                f": on {100 * load.days_over:.3g}% of days there are more than "
                f"{cascade.plan.reviews}"
            )
        yield Note.warning(
            "load",
            f"{check.name}: {100 * load.reviews:.3g}% of the samples go to the {PERSON}, more "
            f"than the guaranteed {100 * cascade.plan.capacity:.3g}%{days}.",
        )
