"""Fit confidence scores and select their options by a metric (`fit_score`, `select_score`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.frames import AnyFrame, Backend, frame_from_rows
from abstain.calibration.temperature import fit_temperature_of_scores
from abstain.confidence import ConfidenceScore, FittedScore, fit
from abstain.confidence.fitted_kinds import find_fitted_kind
from abstain.errors import AbstainError, DomainError, InputError, MissingInputError
from abstain.evaluation.inputs import join, positive_weight_rows
from abstain.metrics import Metric, metric_named
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray

#: Objectives of `fit_score`. "nll" is the negative log-likelihood of the labels.
METRIC, LIKELIHOOD = "metric", "nll"


@dataclass(frozen=True, eq=False)
class MetricCriterion:
    """Objective function to minimize: the metric, or its negative if higher values are better."""

    metric: Metric
    #: The samples with their weights and class probabilities, which some metrics require.
    predictions: Predictions
    loss: Array

    def __call__(self, confidence: FloatArray, loss: Array) -> float:
        """Compute the objective for confidences, which are probabilities if all lie in [0, 1]."""
        is_probability = bool(confidence.min() >= 0 and confidence.max() <= 1)
        score = ConfidenceScore("", confidence, confidence if is_probability else None)
        return replace(self, loss=loss).of_score(score)

    def of_score(self, score: ConfidenceScore) -> float:
        """Return the objective for a score, or NaN if the metric is undefined."""
        value = self.value(score)
        return value if self.metric.lower_is_better else -value

    def value(self, score: ConfidenceScore) -> float:
        """Return the metric of a score, or NaN if the metric is undefined."""
        s = join(self.predictions, score, self.loss)
        reason = self.metric.reason_not_applicable(s)
        if reason:
            raise InputError(
                f"the metric {self.metric.name!r} does not apply to {score.name!r}: it {reason}"
            )
        return float(self.metric.compute(s).value)


def fit_score(
    name: str,
    predictions: Predictions,
    *,
    metric: str | None = None,
    objective: str = METRIC,
    loss: "str | CostMatrix | AnyArray | None" = None,
    **options: Any,
) -> FittedScore:
    """Fit a confidence score, and optimize its parameters by a metric.

    Answers: which parameters of this score give the best metric on these samples?

    Parameters
    ----------
    name : str
        A name in `abstain.confidence.FITTED`.
    predictions : Predictions
        Samples on which the score is fitted. For "pnorm" and "temperature", whose parameters are
        searched, pass held-out samples.
    metric : str, optional
        Name of the metric that the search optimizes. The default is "augrc". Only pass a metric
        for scores whose parameters are searched.
    objective : {"metric", "nll"}, default="metric"
        The criterion of the fit. "nll" is only valid for the score "temperature", which is then
        fitted to the labels by maximum likelihood.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss from which the search computes the metric, as in `abstain.evaluate`.
    **options : optional
        Options of the score, as for `abstain.confidence.fit`.

    Returns
    -------
    FittedScore
        The fitted score. All functions that accept the name of a score also accept a fitted score.

    Raises
    ------
    UnknownNameError
        If a score or metric does not exist.
    InputError
        If `abstain.confidence.fit` rejects the arguments, if the score does not use `metric`,
        `loss` or `objective`, if the metric does not apply, or if the metric does not depend on the
        confidence.

    Notes
    -----
    The metric is optimistically biased on the samples of the search, so evaluate the score on other
    samples. The search evaluates the metric once for each candidate. The maximum-likelihood fit
    requires about 20 passes over the samples.

    Examples
    --------
    >>> import abstain as ab
    >>> held_out = ab.Predictions(logits=[[4.0, 0.0]] * 4, labels=[0, 0, 0, 1])
    >>> state = ab.fit_score("temperature", held_out, objective="nll")
    >>> state.score(held_out).probability.round(4).tolist()
    [0.75, 0.75, 0.75, 0.75]
    """
    checks.one_of(objective, "by", (METRIC, LIKELIHOOD))
    predictions, loss = positive_weight_rows(predictions, loss)
    if objective == LIKELIHOOD:
        return _fit_temperature_by_likelihood(name, predictions, metric, loss, options)
    if not is_searched(name, options):
        if metric is not None or loss is not None:
            raise InputError(
                f"the score {name!r} has no parameters to search; drop `metric` and `loss`"
            )
        return fit(name, predictions, **options)
    criterion = MetricCriterion(
        metric_of_confidence(DEFAULT_METRIC if metric is None else metric),
        predictions,
        per_sample_loss(predictions, loss),
    )
    return fit(name, predictions, criterion=criterion, **options)


def metric_of_confidence(name: str) -> Metric:
    """Return a metric by name; raise InputError if it does not depend on the confidence."""
    metric = metric_named(name)
    if metric.identity.ignores_confidence:
        raise InputError(
            f"the metric {name!r} is the same for every confidence score, so it cannot select "
            f"parameters; use {DEFAULT_METRIC!r}, or fit a temperature with "
            f"`objective={LIKELIHOOD!r}`"
        )
    return metric


def is_searched(name: str, options: Mapping[str, Any]) -> bool:
    """Return whether parameters are searched when a score is fitted with these options."""
    return find_fitted_kind(name).searches and options.get("temperature") is None


def _fit_temperature_by_likelihood(
    name: str, predictions: Predictions, metric: str | None, loss: object, options: dict[str, Any]
) -> FittedScore:
    """Return the temperature score that maximizes the likelihood of the labels."""
    if name != "temperature":
        raise InputError(f"`objective='nll'` fits the score 'temperature'; got {name!r}")
    unused = {
        "metric": metric,
        "loss": loss,
        "temperatures": options.get("temperatures"),
        "temperature": options.get("temperature"),
    }
    for argument, value in unused.items():
        if value is not None:
            raise InputError(f"`objective='nll'` uses only the labels; drop `{argument}`")
    scores, codes = predictions.class_scores, predictions.label_codes
    if scores is None:
        raise MissingInputError(
            "`objective='nll'` needs class scores; give `logits` or `probabilities`"
        )
    if (codes < 0).any():
        raise DomainError(
            "`objective='nll'` needs samples of known classes; "
            f"{int((codes < 0).sum())} samples have an unknown class: exclude them with `subset`"
        )
    fitted = fit_temperature_of_scores(scores, codes, predictions.weight)
    return fit(name, predictions, **{**options, "temperature": fitted.temperature})


# --------------------------------------------------------------------- options by validation


@dataclass(frozen=True)
class Candidate:
    """One combination of options with its metric on the validation samples.

    Attributes
    ----------
    options : mapping
        The values of the options in the grid.
    value : float
        The metric on the validation samples. An undefined value is NaN, and `reason` states why.
    reason : str
        Reason why the value is NaN, or an empty string.
    is_selected : bool
        Whether this combination was selected.
    """

    options: Mapping[str, Any]
    value: float
    reason: str = ""
    is_selected: bool = False

    def row(self) -> dict[str, Any]:
        """Return the candidate as a flat row, in which non-scalar options become text."""
        row: dict[str, Any] = {}
        for option, value in self.options.items():
            is_scalar = isinstance(value, bool | int | float | str)
            row[option] = value if is_scalar else str(value)
        results = {"value": self.value, "selected": self.is_selected, "reason": self.reason}
        return row | results


@dataclass(frozen=True, eq=False)
class SelectedScore:
    """A fitted score whose options were selected on validation samples.

    The result can be passed to every function that accepts a score, such as ``evaluate(test,
    scores=[selected])``.

    Attributes
    ----------
    state : FittedScore
        The selected score.
    metric : str
        Name of the metric by which the score was selected.
    lower_is_better : bool
        Whether lower values of the metric are better.
    value : float
        The metric on the validation samples. This value is optimistically biased, because the
        score was selected on the same samples.
    options : mapping
        The selected options of the grid.
    candidates : tuple of Candidate
        All combinations of options in the order of the grid.
    """

    state: FittedScore
    metric: str
    lower_is_better: bool
    value: float
    options: Mapping[str, Any]
    candidates: tuple[Candidate, ...]

    @property
    def name(self) -> str:
        """The name of the selected score."""
        return self.state.name

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidences of other samples with the selected score."""
        return self.state.score(predictions)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each candidate; the values of an option have a common type."""
        rows = [candidate.row() for candidate in self.candidates]
        for option in self.options:
            types = {type(row[option]) for row in rows}
            if len(types) > 1:
                rows = [{**row, option: str(row[option])} for row in rows]
        return rows

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the candidates as a dataframe with one column for each option and the metric."""
        return frame_from_rows(self.rows(), backend)


def select_score(
    name: str,
    train: Predictions,
    validation: Predictions,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    metric: str = DEFAULT_METRIC,
    loss: "str | CostMatrix | AnyArray | None" = None,
    **options: Any,
) -> SelectedScore:
    """Select the options of a confidence score on validation samples.

    Answers: which number of neighbors, shrinkage or dimension gives the best metric?

    Parameters
    ----------
    name : str
        A name in `abstain.confidence.FITTED`.
    train : Predictions
        Samples on which each candidate is fitted.
    validation : Predictions
        Other samples, on which the candidates are compared.
    grid : mapping from option to sequence, optional
        Values of each option. All combinations are evaluated, and the last option varies fastest.
        If several candidates have the best value, the first is selected. Therefore list the
        simplest values first.
    metric : str, default="augrc"
        Name of the metric. Whether lower or higher values are better depends on the metric.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss of a prediction, as in `abstain.evaluate`. An array contains the losses of the
        validation samples.
    **options : optional
        Options of the score that are the same for all candidates.

    Returns
    -------
    SelectedScore
        The fitted score with its options, and all candidates with their metrics.

    Raises
    ------
    UnknownNameError
        If a score or metric does not exist.
    InputError
        If `train` and `validation` are the same object, if `grid` is invalid, if the metric does
        not depend on the confidence, or if no candidate can be fitted and evaluated.

    Notes
    -----
    The table of candidates states why a candidate cannot be fitted. Each candidate requires one
    fit and one evaluation of the score.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 2))
    >>> predictions = ab.Predictions(
    ...     features=x, prediction=np.zeros(300, int), labels=(x**2).sum(1) > 3, classes=[0, 1]
    ... )
    >>> train, validation = predictions.subset(slice(150)), predictions.subset(slice(150, None))
    >>> grid = {"k": [1, 10, 500]}
    >>> selected = ab.select_score("knn", train, validation, grid=grid, normalize=False)
    >>> selected.options, selected.name
    ({'k': 10}, 'knn@k=10,normalize=False')
    >>> selected.frame()["reason"].to_list()[2]
    '`k` must be at most the 150 training samples; got 500'
    """
    if train is validation:
        raise InputError(
            "`validation` must contain other samples than `train`, because a fitted score is "
            "overconfident on its training samples. Split the samples with `subset`."
        )
    find_fitted_kind(name)
    selection_metric = metric_of_confidence(metric)
    criterion = MetricCriterion(selection_metric, validation, per_sample_loss(validation, loss))
    states: list[FittedScore | None] = []
    candidates: list[Candidate] = []
    for combination in _combinations(grid or {}, options):
        candidate_options = {**options, **combination}
        state: FittedScore | None = None
        value, reason = float("nan"), ""
        try:
            state = _fit_candidate(name, train, criterion, candidate_options, loss)
            value = criterion.value(state.score(validation))
        except AbstainError as error:
            reason = str(error)
        else:
            if np.isnan(value):
                reason = f"the metric {selection_metric.name!r} is undefined"
        states.append(state)
        candidates.append(Candidate(combination, value, reason))
    index = _best_index(candidates, selection_metric)
    best_state = None if index is None else states[index]
    if index is None or best_state is None:
        raise InputError(
            f"no candidate for {name!r} could be fitted and evaluated: {candidates[0].reason}"
        )
    candidates[index] = replace(candidates[index], is_selected=True)
    return SelectedScore(
        state=best_state,
        metric=selection_metric.name,
        lower_is_better=selection_metric.lower_is_better,
        value=candidates[index].value,
        options=candidates[index].options,
        candidates=tuple(candidates),
    )


def _fit_candidate(
    name: str,
    train: Predictions,
    criterion: MetricCriterion,
    options: Mapping[str, Any],
    loss: "str | CostMatrix | AnyArray | None",
) -> FittedScore:
    """Fit the score with the options of a candidate, and search its other parameters."""
    if not is_searched(name, options):
        return fit_score(name, train, **options)
    if not isinstance(loss, str | CostMatrix | None):
        raise InputError(
            f"`loss` is one array, but {name!r} also searches on `train`; pass the loss of each "
            "data set to its `Predictions`"
        )
    return fit_score(name, train, metric=criterion.metric.name, loss=loss, **options)


def _best_index(candidates: Sequence[Candidate], metric: Metric) -> int | None:
    """Return the index of the first candidate with the best value, or None if all are NaN."""
    values = np.array([candidate.value for candidate in candidates])
    if np.isnan(values).all():
        return None
    return int(np.nanargmin(values) if metric.lower_is_better else np.nanargmax(values))


def _combinations(
    grid: Mapping[str, Sequence[Any]], options: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Validate a grid of options, and yield all combinations."""
    mapping: object = grid
    if not isinstance(mapping, Mapping):
        raise InputError(f"`grid` must map options to lists of values; got {mapping!r}")
    for option, values in grid.items():
        if option in options:
            raise InputError(f"the option `{option}` is passed twice: in `grid` and separately")
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            raise InputError(f"`grid[{option!r}]` must be a list of values; got {values!r}")
    for combination in product(*grid.values()):
        python_values = [v.item() if isinstance(v, np.generic) else v for v in combination]
        yield dict(zip(grid, python_values, strict=True))
