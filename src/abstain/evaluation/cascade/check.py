"""`check_cascade`: a cascade on other data, with labels or without."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from abstain._foundation.notes import Note
from abstain._foundation.scored import Scored
from abstain.confidence import ScoreState
from abstain.errors import InputError
from abstain.evaluation.cascade.data import AlignedStages, StageRequest, align_stages
from abstain.evaluation.cascade.record import CascadeChecks
from abstain.evaluation.notes import direction_warning
from abstain.evaluation.records import warnings_first
from abstain.evaluation.rules.data import name_data_sets
from abstain.evaluation.rules.notes import LIKE_CALIBRATION, have_same_values
from abstain.inference.intervals import check_level
from abstain.predictions import CostMatrix
from abstain.thresholds import RuleCheck
from abstain.thresholds.cascade import (
    PERSON,
    Cascade,
    CascadeFrontier,
    check_decisions,
    frontier_of,
)
from abstain.typing import Scale


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
    """Check a cascade on other data: risk, who answers, the load of the person, cost.

    Answers: does it still keep its promise there, can people still keep up, and what does it cost?

    Parameters
    ----------
    cascade : Cascade
        From `set_cascade` or a file.
    data : mapping
        From the name of each stage to its predictions, (confidence, loss), or confidences alone
        where no labels are known; shape (n,), on the same samples. Or a mapping from name to such
        mappings: several data sets. Under "person" may stand the person's losses; by default what
        the cascade was chosen with is assumed.
    scores : mapping from str to fitted score, optional
        Of stages whose score is one that was fitted: its state.
    loss : str or CostMatrix, optional
        As for `set_cascade`.
    scale : {"log-odds", "probability", "score"}, optional
        What arrays and confidence columns are measured in, where they might be on another scale
        than the thresholds; "score" compares them as they are.
    level : float, default=0.95
        Of every interval.
    calibration : mapping, optional
        The data that it was chosen on: for the picture of all choices of thresholds, and to notice
        when they are among the data it is checked on.
    notes : sequence of str or Note
        Sentences to carry into the findings, such as those of the reader of a file.

    Returns
    -------
    CascadeChecks
        The cascade and a `RuleCheck` for each data set, with `rows` and `frame`. One "holds"
        where the interval of the risk, and of the share of reviews if that is limited, lies at or
        below its target; it is "broken" where one lies above. An empty mapping checks nothing.

    Raises
    ------
    InputError, MissingInputError
        `cascade` is none; data that lack a stage, or other samples for each stage; weights or
        groups; confidences that may be on another scale than the thresholds.
    ShapeError, DomainError
        Bad values.

    See Also
    --------
    set_cascade : Choose one.
    check_rule : The same for one threshold.

    Notes
    -----
    Intervals of shares and of 0/1 losses are exact. Where risk and load are both promised each
    interval is at the level 1 - (1 - level)/2, so that the verdict is right at the level. No
    guarantee covers a shift.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> def said(n, shift=0.0):
    ...     sure = rng.random(n)
    ...     wrong = rng.random(n) > sure - shift
    ...     return {"small": (sure, wrong), "large": (sure, wrong & (rng.random(n) < 0.5))}
    >>> cascade = ab.set_cascade(said(3000), max_risk=0.1)
    >>> checks = ab.check_cascade(cascade, {"same": said(3000), "hard": said(3000, shift=0.3)})
    >>> [(c.name, c.verdict) for c in checks.checks]
    [('same', 'holds'), ('hard', 'broken')]
    """
    given: object = cascade
    if not isinstance(given, Cascade):
        raise InputError(f"`cascade` must be a Cascade; got {type(given).__name__}")
    level = check_level(level)
    sets = _sets(data)
    wanted = StageRequest(loss, scores, cascade.stages, cascade.plan.person_error)
    parts = [align_stages(own, replace(wanted, scale=scale), where=name) for name, own in sets]
    chosen_on = (
        None if calibration is None else align_stages(calibration, wanted, where="calibration")
    )
    found = tuple(
        check_decisions(
            cascade, cascade.decide(*part.scores, scale=scale), part.data, name=name, level=level
        )
        for (name, _), part in zip(sets, parts, strict=True)
    )
    told = [n if isinstance(n, Note) else Note("source", n) for n in notes]
    said = [*_of_cascade(cascade), *_of_parts(sets, parts, chosen_on), *_of_checks(cascade, found)]
    seen = [*parts, *([chosen_on] if chosen_on else [])]
    return CascadeChecks(
        cascade=cascade,
        checks=found,
        level=level,
        frontier=None if chosen_on is None else _frontier(cascade, chosen_on),
        notes=warnings_first([*said, *told]),
        is_binary=all(part.data.losses is None or part.data.binary for part in seen),
    )


def _sets(data: object) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(data, Mapping):
        raise InputError(
            f"`data` must map the name of each stage to what it says; got {type(data).__name__}"
        )
    if data and not all(isinstance(own, Mapping) for own in data.values()):
        return [("data", data)]
    return [(name, own) for _, name, own in name_data_sets(data) if isinstance(own, Mapping)]


def _frontier(cascade: Cascade, known: AlignedStages) -> CascadeFrontier | None:
    """Measure again what the cascade was chosen from: the same for the same samples."""
    if known.data.n != cascade.n or known.data.losses is None:
        return None
    return frontier_of(known.data, cascade.stages, cascade.plan)


def _of_cascade(cascade: Cascade) -> Iterator[Note]:
    plan = cascade.plan
    if cascade.attainable:
        yield Note(
            "guarantee",
            LIKE_CALIBRATION,
        )
    if plan.person_error is not None:
        rate = f"{100 * plan.person_error:.3g} %"
        yield Note(
            "person",
            f"The {PERSON} is taken to be wrong on {rate} of the samples sent there. That is said, "
            "not measured: hard samples are hard for people too. Losses of the person on these "
            "samples make it part of what is tested.",
        )


def _of_parts(
    sets: list[tuple[str, Mapping[str, Any]]],
    parts: list[AlignedStages],
    chosen_on: AlignedStages | None,
) -> Iterator[Note]:
    known = [] if chosen_on is None else [("calibration", chosen_on)]
    for name, part in [*known, *((n, p) for (n, _), p in zip(sets, parts, strict=True))]:
        yield from _direction(name, part)
    for (name, _), part in zip(sets, parts, strict=True):
        pairs = (
            []
            if chosen_on is None
            else zip(part.data.confidences, chosen_on.data.confidences, strict=True)
        )
        if chosen_on is not None and all(have_same_values(a, b) for a, b in pairs):
            yield Note.warning(
                "same_data",
                f"{name}: This looks like the calibration data itself, on which a cascade looks "
                "better than it is: check it on others.",
            )
        if part.data.losses is None:
            yield Note(
                "no_labels", f"{name}: No labels are known here, so only who answers is checked."
            )


def _direction(name: str, part: AlignedStages) -> Iterator[Note]:
    """Warn of confidences by which the samples that are answered are the worse ones."""
    for stage in part.stages:
        if stage.loss is None:
            continue
        said = direction_warning(
            Scored(stage.score.values, stage.loss), is_column=stage.score.is_user_column
        )
        if said:
            yield Note.warning("direction", f"{name}, {stage.name}: {said}")


def _of_checks(cascade: Cascade, found: tuple[RuleCheck, ...]) -> Iterator[Note]:
    for check in found:
        load = check.load
        if load is None or load.verdict != "broken" or not cascade.attainable:
            continue
        days = ""
        if not math.isnan(load.days_over):
            share = f"{100 * load.days_over:.3g} %"
            days = f": on {share} of days there are more than {cascade.plan.reviews}"
        yield Note.warning(
            "load",
            f"{check.name}: {100 * load.reviews:.3g} % of the samples go to the {PERSON}, more "
            f"than the {100 * cascade.plan.capacity:.3g} % promised{days}.",
        )
