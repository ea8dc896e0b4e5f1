"""`select_score`: the options of a confidence score, chosen on validation samples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.confidence import ConfidenceScore, FittedScore
from abstain.confidence.fitting import kind_named
from abstain.errors import AbstainError, InputError
from abstain.evaluation.fitting import MetricCriterion, fit_score, searches, telling
from abstain.evaluation.inputs import DEFAULT_METRIC
from abstain.metrics import Metric
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray

if TYPE_CHECKING:
    import polars as pl


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
        plain = {k: x if _plain(x) else str(x) for k, x in self.options.items()}
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

    def frame(self) -> "pl.DataFrame":
        """Return what was tried as a polars table: a column for each option, and the metric."""
        import polars as pl

        return pl.DataFrame(self.rows(), infer_schema_length=None)


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
        msg = (
            "`validation` must be other samples than `train`: a score that has seen them is too "
            "sure of them. Divide them with `subset`."
        )
        raise InputError(msg)
    kind_named(name)
    chosen = telling(metric)
    judge = MetricCriterion(chosen, validation, per_sample_loss(validation, loss))
    found = [
        (own, *_try(name, train, judge, {**options, **own}, loss))
        for own in _combinations(grid or {}, options)
    ]
    at = _best([value for _, _, value, _ in found], chosen)
    if at is None:
        msg = f"no candidate for {name!r} could be fitted and measured: {found[0][3]}"
        raise InputError(msg)
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
        told = {"metric": judge.metric.name, "loss": loss} if searches(name, options) else {}
        _refuse_one_loss(name, told)
        given: dict[str, Any] = {**told, **options}
        state = fit_score(name, train, **given)
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
        msg = f"`grid` must map options to lists of values to try; got {given!r}"
        raise InputError(msg)
    for option, values in grid.items():
        if option in options:
            msg = f"the option `{option}` is given twice: in `grid` and by itself"
            raise InputError(msg)
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            msg = f"`grid[{option!r}]` must be a list of values to try; got {values!r}"
            raise InputError(msg)
    for values in product(*grid.values()):
        plain = (x.item() if isinstance(x, np.generic) else x for x in values)
        yield dict(zip(grid, plain, strict=True))


def _refuse_one_loss(name: str, told: Mapping[str, Any]) -> None:
    if not isinstance(told.get("loss"), str | CostMatrix | None):
        msg = (
            f"`loss` is one array, but {name!r} also searches on `train`; give each `Predictions` "
            "its own `loss`"
        )
        raise InputError(msg)


def _plain(x: object) -> bool:
    return isinstance(x, bool | int | float | str)
