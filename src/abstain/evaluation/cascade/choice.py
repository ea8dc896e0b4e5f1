"""`set_cascade`: what several models say of the same samples, to a cascade."""

from collections.abc import Mapping
from typing import Any

from abstain._foundation import checks
from abstain._foundation.option_format import format_option
from abstain.confidence import ScoreState
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.evaluation.cascade.data import AlignedStages, StageRequest, align_stages
from abstain.predictions import CostMatrix
from abstain.thresholds.cascade import (
    ERROR,
    PERSON,
    Cascade,
    CascadePlan,
    CascadeStage,
    chosen_of,
    daily_share,
    frontier_of,
)
from abstain.typing import Scale


def set_cascade(
    stages: Mapping[str, Any],
    *,
    max_risk: float,
    delta: float = 0.05,
    capacity: float | None = None,
    per_day: int | None = None,
    overflow: float = 0.05,
    costs: Mapping[str, float] | None = None,
    scores: Mapping[str, str | ScoreState] | None = None,
    loss: "str | CostMatrix | None" = None,
    scale: Scale | None = None,
    ordered_by: float = 0.5,
    seed: int = 0,
) -> Cascade:
    """Choose who answers: a model, a larger one, a person; with a guaranteed risk, at least cost.

    Answers: from which confidence on may the small model answer, from which the large one, so that
    at most this share of all answers is wrong, people can keep up, and it costs least?

    Parameters
    ----------
    stages : mapping from str to Predictions, or (confidence, loss)
        The models by name, in the order in which they are asked, on the same calibration samples:
        not those that trained a model or fitted a score. Arrays of shape (n,). Samples with `ids`
        are matched by them; weights and groups are refused. Under "person" may stand the losses of
        the person on these samples, or the share of the person's answers that is wrong, by default
        0.
    max_risk : float
        The largest mean loss of all answers, the person's among them; between 0 and 1.
    delta : float, default=0.05
        The chance, over calibration sets, that the promise fails.
    capacity : float, optional
        The largest share of the samples that may go to the person, in [0, 1]; 0 for nobody. With
        `per_day`, how many samples the person can do in a day.
    per_day : int, optional
        How many samples arrive in a day, at most.
    overflow : float, default=0.05
        With `per_day`, the share of days on which there may be more than `capacity`.
    costs : mapping from str to float, optional
        Of running each stage on one sample and of a review ("person"), in any unit; "error" is what
        a loss of 1 costs, 0 where it is left out. By default a review costs 1 and all else nothing:
        the least is sent to the person.
    scores : mapping from str to str or fitted score, optional
        The score of a stage, where its predictions leave a choice. By default the only confidence
        column, or "msr" where there are class scores alone.
    loss : str or CostMatrix, optional
        What counts as wrong; by default that of the predictions, or 0/1. In [0, 1].
    scale : {"log-odds", "probability", "score"}, optional
        What arrays and confidence columns are measured in. By default a probability where all of a
        stage's lie in [0, 1], else a unit of its own. The scale of a computed score is known.
    ordered_by : float, default=0.5
        The share of the samples that says in which order choices are tested; the others test.
    seed : int, default=0
        By which the samples are divided.

    Returns
    -------
    Cascade
        Thresholds with what they promise; or the reason why nothing can be promised, and what comes
        closest. A stage that does not pay is not run.

    Raises
    ------
    InputError, MissingInputError
        No stages, or more than seven; stages on other samples, or on one; weights or groups; costs
        that lack a stage.
    ShapeError, DomainError
        Bad values; losses above 1.

    See Also
    --------
    set_threshold : One model, which answers or abstains.
    check_cascade : What it keeps on other data.

    Notes
    -----
    Risk and load are promised together: except with chance `delta`, the true risk of all answers is
    at most `max_risk` *and* the true share that goes to the person at most the capacity. By days
    this share is `daily_share`, so that on nearly all days there are no more than the person can
    do.

    Pareto testing [2]_, a form of learn then test [1]_: one part of the samples finds the choices
    of thresholds that no other beats in evidence and cost, and their order, from the surest to the
    cheapest; the other part tests them in that order at level delta and stops at the first that
    fails. A choice is tested by the larger of two p-values, of the risk (exact binomial for 0/1
    losses, Hoeffding-Bentkus for others and for a person who is wrong at a given rate) and of the
    load (exact binomial). Of what passes, the cheapest on all samples is taken. Thresholds are
    confidences of the first part, or evenly spread ones where they are many: about 2^14 choices are
    measured for any number of stages. Ties are answered together.

    Valid for independent samples of one law, whatever the law, for one seed: the best of several
    is no longer covered. The code of [2]_ divides the samples
    in halves too and orders by the risk; it falls back to the full model where nothing passes,
    where here nothing is promised.

    Cost: one pass over the samples, one test for each choice on the frontier.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then test,
       https://arxiv.org/abs/2110.01052
    .. [2] Laufer-Goldshtein, Fisch, Barzilay and Jaakkola (2023), Efficiently controlling multiple
       risks with Pareto testing, https://arxiv.org/abs/2210.07913

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> hard = rng.random(4000)
    >>> small = (1 - hard, rng.random(4000) < 0.6 * hard**2)
    >>> large = (1 - hard**2, rng.random(4000) < 0.3 * hard**4)
    >>> cascade = ab.set_cascade(
    ...     {"small": small, "large": large},
    ...     max_risk=0.05,
    ...     capacity=0.15,
    ...     costs={"small": 1, "large": 10, "person": 200},
    ... )
    >>> cascade.attainable, [round(share, 2) for share in cascade.answered]
    (True, [0.2, 0.73, 0.07])
    """
    given = _stages(stages)
    known = align_stages(given, StageRequest(loss, scores, scale=scale))
    plan = CascadePlan(
        max_risk=max_risk,
        delta=delta,
        **_capacity(capacity, per_day, overflow),
        **_prices(costs),
        person_error=known.person_error,
        ordered_by=ordered_by,
        seed=seed,
    )
    return chosen_of(frontier_of(known.data, _priced(known, costs), plan), known.data)


def _stages(stages: object) -> Mapping[str, Any]:
    if not isinstance(stages, Mapping) or not any(name != PERSON for name in stages):
        raise MissingInputError(
            "`stages` must map the name of each model to its predictions or (confidence, loss); "
            f"got {type(stages).__name__}"
        )
    return stages


def _capacity(capacity: float | None, per_day: int | None, overflow: float) -> dict[str, Any]:
    if per_day is None:
        share = 1.0 if capacity is None else capacity
        if share > 1:
            raise InputError(
                f"{format_option('capacity')} must be a share in [0, 1], or a number of samples "
                f"with {format_option('per_day')}; got {capacity!r}"
            )
        return {"capacity": checks.fraction(share, "capacity")}
    if capacity is None:
        raise MissingInputError(
            f"{format_option('per_day')} needs {format_option('capacity')}: how many of these "
            "samples the person can do"
        )
    if capacity != int(checks.number(capacity, "capacity")):
        raise InputError(
            f"{format_option('capacity')} must be a whole number of samples with "
            f"{format_option('per_day')}; got {capacity!r}. For a share of the samples drop "
            f"{format_option('per_day')}"
        )
    if capacity > per_day:
        raise DomainError(
            f"{format_option('capacity')} must be at most {format_option('per_day')}, {per_day}; "
            f"got {capacity!r}. Leave both out where the person can do everything"
        )
    days = {"reviews": int(capacity), "arrivals": per_day, "overflow": overflow}
    return {"capacity": daily_share(capacity, per_day, overflow=overflow), **days}


def _prices(costs: Mapping[str, float] | None) -> dict[str, Any]:
    if costs is None:
        return {}
    if PERSON not in costs:
        raise MissingInputError(
            f"`costs` must hold what a review costs, as {PERSON!r}; got {', '.join(costs)}"
        )
    return {"person_cost": costs[PERSON], "error_cost": costs.get(ERROR, 0.0)}


def _priced(known: AlignedStages, costs: Mapping[str, float] | None) -> tuple[CascadeStage, ...]:
    """Return the stages with their costs and what their thresholds are measured in."""
    names = [stage.name for stage in known.stages]
    if costs is not None:
        strange = [name for name in costs if name not in {*names, PERSON, ERROR}]
        lacking = [name for name in names if name not in costs]
        if strange or lacking:
            what = f"lacks {lacking[0]!r}" if lacking else f"has {strange[0]!r}, which is no stage"
            msg = f"`costs` must have one for each of {', '.join((*names, PERSON))}; it {what}"
            raise MissingInputError(msg) if lacking else InputError(msg)
    return tuple(
        CascadeStage(
            stage.name,
            cost=0.0 if costs is None else costs[stage.name],
            score=stage.score.name,
            scale=stage.score.scale,
        )
        for stage in known.stages
    )
