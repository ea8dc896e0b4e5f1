"""Select the thresholds of a cascade of models on calibration data (`set_cascade`)."""

from collections.abc import Mapping
from typing import Any

from abstain._foundation import checks
from abstain._foundation.option_format import format_option
from abstain.confidence import ScoreState
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.evaluation.cascade.data import (
    AlignedStages,
    StageRequest,
    align_stages,
    check_stage_names,
)
from abstain.predictions import CostMatrix
from abstain.thresholds.cascade import (
    ERROR,
    PERSON,
    Cascade,
    CascadePlan,
    CascadeStage,
    compute_frontier,
    daily_share,
    select_cascade,
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
    """Choose the thresholds of a cascade with a guaranteed risk and the lowest cost.

    A cascade runs several models in order until one is confident enough to answer. A person
    answers the remaining samples.

    Answers: at which confidences may the small model and the large model answer, so that the error
    rate of all answers is at most `max_risk`, people can handle their load, and the cost is lowest?

    Parameters
    ----------
    stages : mapping from str to Predictions, or (confidence, loss)
        The models by name, in the order in which they are run, on the same calibration samples.
        The samples must not be training samples of a model or of a fitted score. Arrays have shape
        (n,). If samples have `ids`, the stages are aligned by these ids. Weights and groups are
        not supported. The key "person" may contain the losses of the person on these samples, or
        their error rate, by default 0.
    max_risk : float
        The largest mean loss of all answers, including answers of the person, between 0 and 1.
    delta : float, default=0.05
        The probability, over calibration sets, with which the guarantee may fail.
    capacity : float, optional
        The largest share of the samples that may go to the person, in [0, 1]. Pass 0 if no person
        is available. If `per_day` is passed, `capacity` is the number of samples that the person
        can review in a day.
    per_day : int, optional
        The maximum number of samples that arrive in a day.
    overflow : float, default=0.05
        The share of days on which there may be more reviews than `capacity`. It requires `per_day`.
    costs : mapping from str to float, optional
        Cost of each stage for one sample, and of a review ("person"), in any unit. The entry
        "error" is the cost of a loss of 1, by default 0. By default, only reviews have a cost, so
        their number is minimized.
    scores : mapping from str to str or fitted score, optional
        Score of each stage. The default is the only confidence column, or "msr" if there are only
        class scores.
    loss : str or CostMatrix, optional
        Loss in [0, 1]. The default is the loss of the predictions if they have one, and the 0/1
        loss otherwise.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of arrays and confidence columns. The default is "probability" if all values of a
        stage are in [0, 1], and "score" otherwise. For a score that is computed from predictions,
        the scale is known and need not be passed.
    ordered_by : float, default=0.5
        The share of the samples that determines the order of the tests. The remaining samples are
        used for the tests.
    seed : int, default=0
        Seed of the random split of the samples.

    Returns
    -------
    Cascade
        The thresholds and their guarantee. If no thresholds can be certified, the person answers
        all samples, and the cascade states the reason. Stages that do not reduce the cost are
        omitted.

    Raises
    ------
    InputError, MissingInputError
        If there are no stages or more than seven, if the stages have different samples or only one
        sample, if the data have weights or groups, or if `costs` lacks a stage.
    ShapeError, DomainError
        If values are invalid or a loss is above 1.

    See Also
    --------
    set_threshold : Select the threshold of a single model, which answers or abstains.
    check_cascade : Check a cascade on other data.

    Notes
    -----
    The guarantees for risk and load hold jointly: with probability at least 1 - `delta`, the true
    risk of all answers is at most `max_risk` *and* the true share of reviews is at most the
    capacity. With `per_day`, this share is computed by `daily_share`, so that the number of
    reviews rarely exceeds the capacity of a day.

    The method is Pareto testing [2]_, a form of learn then test [1]_. On the first part of the
    samples, combinations of thresholds on the Pareto front of p-value and cost are computed and
    ordered from the safest to the cheapest. On the second part, these combinations are tested in
    this order at level `delta`, until the first failure. Among the combinations that pass, the
    function selects the one with the lowest cost on all samples.

    The p-value of a combination is the larger of the p-values of the risk and the load. The test
    of the load is an exact binomial test, as is the test of the risk for 0/1 losses. For other
    losses, and if an error rate of the person is assumed, the Hoeffding-Bentkus test of the risk
    is used. Candidate thresholds are confidences of the first part, or evenly spaced quantiles of
    these confidences if there are many. For any number of stages, about 2^14 combinations are
    evaluated. Tied samples are answered by the same stage.

    The guarantee is valid for independent samples from any single distribution and for a fixed
    seed. If you select the best of several seeds, the guarantee does not hold. The code of [2]_
    instead orders the combinations by risk, and returns the full model if none passes.

    The cost is one pass over the samples, and one test for each combination on the Pareto front.

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
    >>> difficulty = rng.random(4000)
    >>> small = (1 - difficulty, rng.random(4000) < 0.6 * difficulty**2)
    >>> large = (1 - difficulty**2, rng.random(4000) < 0.3 * difficulty**4)
    >>> cascade = ab.set_cascade(
    ...     {"small": small, "large": large},
    ...     max_risk=0.05,
    ...     capacity=0.15,
    ...     costs={"small": 1, "large": 10, "person": 200},
    ... )
    >>> cascade.attainable, [round(share, 2) for share in cascade.answered]
    (True, [0.2, 0.73, 0.07])
    """
    mapping: object = stages
    if not isinstance(mapping, Mapping) or not any(name != PERSON for name in mapping):
        raise MissingInputError(
            "`stages` must map the name of each model to its predictions or (confidence, loss); "
            f"got {type(stages).__name__}"
        )
    aligned = align_stages(stages, StageRequest(loss, scores, scale=scale))
    plan = CascadePlan(
        max_risk=max_risk,
        delta=delta,
        **_capacity_options(capacity, per_day, overflow),
        **_cost_options(costs),
        person_error=aligned.person_error,
        ordered_by=ordered_by,
        seed=seed,
    )
    frontier = compute_frontier(aligned.data, _cascade_stages(aligned, costs), plan)
    return select_cascade(frontier, aligned.data)


def _capacity_options(
    capacity: float | None, per_day: int | None, overflow: float
) -> dict[str, Any]:
    """Validate the capacity of the person, and return it as options of `CascadePlan`."""
    capacity_option, per_day_option = format_option("capacity"), format_option("per_day")
    if per_day is None:
        share = 1.0 if capacity is None else capacity
        if share > 1:
            raise InputError(
                f"{capacity_option} must be a share in [0, 1], or a number of samples with "
                f"{per_day_option}; got {capacity!r}"
            )
        return {"capacity": checks.fraction(share, "capacity")}
    if capacity is None:
        raise MissingInputError(
            f"{per_day_option} requires {capacity_option}, the number of samples that the person "
            "can review in a day"
        )
    if capacity != int(checks.number(capacity, "capacity")):
        raise InputError(
            f"{capacity_option} must be an integer number of samples with {per_day_option}; got "
            f"{capacity!r}. For a share of the samples, drop {per_day_option}"
        )
    if capacity > per_day:
        raise DomainError(
            f"{capacity_option} must be at most {per_day_option}, {per_day}; got {capacity!r}. "
            "Drop both if the person can review all samples"
        )
    return {
        "capacity": daily_share(capacity, per_day, overflow=overflow),
        "reviews": int(capacity),
        "arrivals": per_day,
        "overflow": overflow,
    }


def _cost_options(costs: Mapping[str, float] | None) -> dict[str, Any]:
    """Return the cost of a review and the cost of an error as options of `CascadePlan`."""
    if costs is None:
        return {}
    if PERSON not in costs:
        raise MissingInputError(
            f"`costs` must contain the cost of a review as {PERSON!r}; got {', '.join(costs)}"
        )
    return {"person_cost": costs[PERSON], "error_cost": costs.get(ERROR, 0.0)}


def _cascade_stages(
    aligned: AlignedStages, costs: Mapping[str, float] | None
) -> tuple[CascadeStage, ...]:
    """Return the stages with their costs, scores and scales."""
    names = [stage.name for stage in aligned.stages]
    if costs is not None:
        stage_costs = {name: cost for name, cost in costs.items() if name != ERROR}
        rule = f"`costs` must have an entry for each of {', '.join((*names, PERSON))}"
        check_stage_names(stage_costs, names, rule)
    return tuple(
        CascadeStage(
            stage.name,
            cost=0.0 if costs is None else costs[stage.name],
            score=stage.score.name,
            scale=stage.score.scale,
        )
        for stage in aligned.stages
    )
