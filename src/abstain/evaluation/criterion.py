"""`fit_score` and `select_score`: scores fitted, and their options chosen, by a metric."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.frames import AnyFrame, Backend, of_rows
from abstain.calibration.temperature import temperature_of
from abstain.confidence import ConfidenceScore, FittedScore, fit
from abstain.confidence.fitted_kinds import kind_named
from abstain.errors import AbstainError, DomainError, InputError, MissingInputError
from abstain.evaluation.counted_rows import counted
from abstain.evaluation.inputs import join
from abstain.metrics import Metric, metric_named
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray

#: What `fit_score` may fit a temperature by: a metric, or the labels by maximum likelihood.
METRIC, LIKELIHOOD = "metric", "nll"


@dataclass(frozen=True, eq=False)
class MetricCriterion:
    """A metric of the catalogue as what a search makes small: one better when higher, negated."""

    metric: Metric
    #: The samples, with the weights and class probabilities that the metric may look at.
    predictions: Predictions
    loss: Array

    def __call__(self, confidence: FloatArray, loss: Array) -> float:
        """Return the criterion of bare confidences; those in [0, 1] are probabilities."""
        inside = bool(confidence.min() >= 0 and confidence.max() <= 1)
        own = ConfidenceScore("", confidence, confidence if inside else None)
        return MetricCriterion(self.metric, self.predictions, loss).of_score(own)

    def of_score(self, own: ConfidenceScore) -> float:
        """Return the criterion of a score, lower is better; NaN where it is undefined."""
        value = self.value(own)
        return value if self.metric.lower_is_better else -value

    def value(self, own: ConfidenceScore) -> float:
        """Return the metric of a score; NaN where it is undefined."""
        s = join(self.predictions, own, self.loss)
        if missing := self.metric.reason_not_applicable(s):
            raise InputError(
                f"the metric {self.metric.name!r} does not apply to {own.name!r}: it {missing}"
            )
        return float(self.metric.compute(s).value)


def fit_score(
    name: str,
    predictions: Predictions,
    *,
    metric: str | None = None,
    by: str = METRIC,
    loss: "str | CostMatrix | AnyArray | None" = None,
    **options: Any,
) -> FittedScore:
    """Fit a confidence score, with its parameters chosen by a metric of the catalogue.

    Answers: what must this score know of these samples, and which of its parameters makes the
    metric best on them?

    Parameters
    ----------
    name : str
        A name in `abstain.confidence.FITTED`.
    predictions : Predictions
        What to fit on; for scores that search ("pnorm", "temperature") held-out samples.
    metric : str, optional
        What a search makes best, by its name in the catalogue; "augrc" by default. Only for
        scores that search.
    by : {"metric", "nll"}, default="metric"
        "nll" fits "temperature" to the labels by maximum likelihood instead.
    loss : str, CostMatrix or array of shape (n,), optional
        What counts as wrong in a search, as in `abstain.evaluate`.
    **options : optional
        Of the score, as for `abstain.confidence.fit`.

    Returns
    -------
    FittedScore
        Frozen; goes wherever the name of a score does.

    Raises
    ------
    UnknownNameError
        No such score or metric.
    InputError
        As for `abstain.confidence.fit`; a metric, a loss or `by` that the score has no use for;
        a metric that does not apply, or that does not look at the confidence.

    Notes
    -----
    A number that was chosen on some samples is too good on these: evaluate on others. Cost: one
    evaluation of the metric for each candidate; the likelihood takes some 20 passes.

    Examples
    --------
    >>> import abstain as ab
    >>> held_out = ab.Predictions(logits=[[4.0, 0.0]] * 4, labels=[0, 0, 0, 1])
    >>> state = ab.fit_score("temperature", held_out, by="nll")
    >>> state.score(held_out).probability.round(4).tolist()
    [0.75, 0.75, 0.75, 0.75]
    """
    checks.one_of(by, "by", (METRIC, LIKELIHOOD))
    predictions, loss = counted(predictions, loss)
    if by == LIKELIHOOD:
        return _by_likelihood(name, predictions, metric, loss, options)
    if not searches(name, options):
        if metric is not None or loss is not None:
            raise InputError(f"the score {name!r} searches nothing here; drop `metric` and `loss`")
        return fit(name, predictions, **options)
    chosen = telling(DEFAULT_METRIC if metric is None else metric)
    criterion = MetricCriterion(chosen, predictions, per_sample_loss(predictions, loss))
    return fit(name, predictions, criterion=criterion, **options)


def telling(name: str) -> Metric:
    """Return a metric that tells scores apart; refuse one that knows only the classifier."""
    metric = metric_named(name)
    if metric.identity.ignores_confidence:
        raise InputError(
            f"the metric {name!r} is the same for every confidence score, so nothing can be chosen "
            f"by it; use {DEFAULT_METRIC!r}, or fit a temperature with `by={LIKELIHOOD!r}`"
        )
    return metric


def searches(name: str, options: Mapping[str, Any]) -> bool:
    """Tell whether a score with these options searches, by a criterion."""
    return kind_named(name).searches and options.get("temperature") is None


def _by_likelihood(
    name: str, predictions: Predictions, metric: str | None, loss: object, options: dict[str, Any]
) -> FittedScore:
    if name != "temperature":
        raise InputError(f"`by='nll'` fits the score 'temperature'; got {name!r}")
    used = {
        "metric": metric,
        "loss": loss,
        **{k: options.get(k) for k in ("temperatures", "temperature")},
    }
    for argument, value in used.items():
        if value is not None:
            raise InputError(f"`by='nll'` looks at the labels alone; drop `{argument}`")
    scores, codes = predictions.class_scores, predictions.label_codes
    if scores is None:
        raise MissingInputError("`by='nll'` needs class scores; give `logits` or `probabilities`")
    if (codes < 0).any():
        raise DomainError(
            f"`by='nll'` needs samples of known classes; {int((codes < 0).sum())} are of none: "
            "leave them out with `subset`"
        )
    found = temperature_of(scores, codes, predictions.weight)
    return fit(name, predictions, **{**options, "temperature": found.temperature})


# --------------------------------------------------------------------- options by validation


@dataclass(frozen=True)
class Tried:
    """One choice of options and what came of it.

    Attributes
    ----------
    options : mapping
        Of the grid.
    value : float
        The metric on the validation samples; NaN where there is none.
    reason : str
        Why there is none, or empty.
    chosen : bool
        Whether it is the one that was chosen.
    """

    options: Mapping[str, Any]
    value: float
    reason: str = ""
    chosen: bool = False

    def row(self) -> dict[str, Any]:
        """Return it as a flat row: the options first, other than numbers and texts as text."""
        kinds = bool | int | float | str
        plain = {k: x if isinstance(x, kinds) else str(x) for k, x in self.options.items()}
        return {**plain, "value": self.value, "chosen": self.chosen, "reason": self.reason}


@dataclass(frozen=True, eq=False)
class SelectedScore:
    """A fitted score with the options that were best on validation samples.

    Goes wherever a score does: ``evaluate(test, scores=[selected])``.

    Attributes
    ----------
    state : FittedScore
        The score that was chosen.
    metric : str
        By which it was chosen.
    lower_is_better : bool
        The metric's direction.
    value : float
        The metric on the validation samples: too good, for it was chosen there.
    options : mapping
        The options that were chosen from the grid.
    tried : tuple of Tried
        Every choice, in order.
    """

    state: FittedScore
    metric: str
    lower_is_better: bool
    value: float
    options: Mapping[str, Any]
    tried: tuple[Tried, ...]

    @property
    def name(self) -> str:
        """The name of the score that was chosen."""
        return self.state.name

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples under the score that was chosen."""
        return self.state.score(predictions)

    def rows(self) -> list[dict[str, Any]]:
        """Return what was tried as flat rows."""
        rows = [tried.row() for tried in self.tried]
        for column in self.options:
            if len({type(row[column]) for row in rows}) > 1:
                rows = [{**row, column: str(row[column])} for row in rows]
        return rows

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return what was tried as a dataframe: a column for each option, and the metric."""
        return of_rows(self.rows(), backend)


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
    """Choose the options of a confidence score on validation samples.

    Answers: which neighbor, which shrinkage, which dimension is best, by the metric that counts?

    Parameters
    ----------
    name : str
        A name in `abstain.confidence.FITTED`.
    train : Predictions
        What each candidate is fitted on.
    validation : Predictions
        Other samples, on which the candidates are compared.
    grid : mapping from option to sequence, optional
        Values to try; every combination is, the last option fastest. Put the simplest first: of
        equally good candidates the first is chosen.
    metric : str, default="augrc"
        A name of the catalogue of metrics; its direction is known.
    loss : str, CostMatrix or array of shape (n,), optional
        What counts as wrong, as in `abstain.evaluate`; an array is that of the validation
        samples.
    **options : optional
        Of the score, the same for all candidates.

    Returns
    -------
    SelectedScore
        The state, what was chosen, and every candidate with its value (``.frame()``).

    Raises
    ------
    UnknownNameError
        No such score or metric.
    InputError
        The two samples are one, the grid is no grid, the metric does not look at the confidence,
        or no candidate can be fitted and measured.

    Notes
    -----
    A candidate that cannot be fitted is listed with the reason. Cost: one fit and one scoring
    for each candidate.

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
    >>> found = ab.select_score("knn", train, validation, grid={"k": [1, 10, 500]}, normalize=False)
    >>> found.options, found.name
    ({'k': 10}, 'knn@k=10,normalize=False')
    >>> found.frame()["reason"].to_list()[2]
    '`k` must be at most the 150 training samples; got 500'
    """
    if train is validation:
        raise InputError(
            "`validation` must be other samples than `train`: a score that has seen them is too "
            "sure of them. Divide them with `subset`."
        )
    kind_named(name)
    chosen = telling(metric)
    judge = MetricCriterion(chosen, validation, per_sample_loss(validation, loss))
    found = [
        (own, *_try(name, train, judge, {**options, **own}, loss))
        for own in _combinations(grid or {}, options)
    ]
    at = _best([value for _, _, value, _ in found], chosen)
    if at is None:
        raise InputError(f"no candidate for {name!r} could be fitted and measured: {found[0][3]}")
    tried = tuple(Tried(own, v, why, i == at) for i, (own, _, v, why) in enumerate(found))
    own, state, value, _ = found[at]
    return SelectedScore(state, chosen.name, chosen.lower_is_better, value, own, tried)


def _try(
    name: str,
    train: Predictions,
    judge: MetricCriterion,
    options: Mapping[str, Any],
    loss: "str | CostMatrix | AnyArray | None",
) -> tuple[Any, float, str]:
    """Fit and measure one candidate: its state, its value, and what stood in the way."""
    try:
        told = _told_to_search(name, judge, loss) if searches(name, options) else {}
        state = fit_score(name, train, **told, **options)
        value = judge.value(state.score(judge.predictions))
    except AbstainError as error:
        return None, float("nan"), str(error)
    undefined = f"the metric {judge.metric.name!r} is undefined here" if np.isnan(value) else ""
    return state, value, undefined


def _best(values: list[float], metric: Metric) -> int | None:
    """Return the place of the best value that is a number, of equal ones the first."""
    sign = 1.0 if metric.lower_is_better else -1.0
    known = [i for i, value in enumerate(values) if not np.isnan(value)]
    return min(known, key=lambda i: sign * values[i], default=None)


def _combinations(
    grid: Mapping[str, Sequence[Any]], options: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    given: object = grid
    if not isinstance(given, Mapping):
        raise InputError(f"`grid` must map options to lists of values to try; got {given!r}")
    for option, values in grid.items():
        if option in options:
            raise InputError(f"the option `{option}` is given twice: in `grid` and by itself")
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            raise InputError(f"`grid[{option!r}]` must be a list of values to try; got {values!r}")
    for values in product(*grid.values()):
        plain = (x.item() if isinstance(x, np.generic) else x for x in values)
        yield dict(zip(grid, plain, strict=True))


def _told_to_search(name: str, judge: MetricCriterion, loss: object) -> dict[str, Any]:
    if not isinstance(loss, str | CostMatrix | None):
        raise InputError(
            f"`loss` is one array, but {name!r} also searches on `train`; give each `Predictions` "
            "its own `loss`"
        )
    return {"metric": judge.metric.name, "loss": loss}
