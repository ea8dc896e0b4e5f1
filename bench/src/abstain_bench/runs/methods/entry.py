"""`Method`, a confidence score for networks of one training objective, and its computation.

If one method cannot be fitted or computed, the other methods are not affected.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue, match_spelling
from abstain.confidence import ConfidenceScore, ScoreState, score
from abstain.confidence.energies import compute_logits
from abstain.confidence.fitted_score import features_as_double
from abstain.errors import AbstainError, InputError, MissingInputError
from abstain.evaluation import fit_score
from abstain.evaluation.score_selection import LIKELIHOOD
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

ValueT = TypeVar("ValueT")

#: Inputs that a method can need, with their descriptions in messages. Inputs that also exist in
#: `abstain.confidence.ScoreNeed` have the same names.
NEEDS: dict[str, str] = {
    "features": "the inputs of the last layer (`features`)",
    "samples": "passes with dropout on (`samples`)",
    "learned": "the confidence that the objective learned (`confidence`)",
    "last_layer": "the last layer (`weight` and `bias`)",
    "ensemble": "outputs of several networks (`ensemble_outputs`)",
}

#: Splits that a method can be fitted on. An empty string means that nothing is fitted.
FITTED_ON = ("", "train", "validation", "train and validation")


@dataclass(frozen=True, eq=False)
class FitData:
    """Outputs of a network for the training and validation images, on which methods are fitted.

    Attributes
    ----------
    train : abstain.Predictions, optional
        Outputs for the training images of the network.
    validation : abstain.Predictions, optional
        Outputs for i.i.d. images that the network was not trained on.
    weight : ndarray of shape (K, d), optional
        Weight of the last layer.
    bias : ndarray of shape (K,), optional
        Bias of the last layer.
    """

    train: Predictions | None = None
    validation: Predictions | None = None
    weight: Array | None = None
    bias: Array | None = None

    def split(self, name: str) -> Predictions:
        """Return the training or validation outputs for images with known classes.

        Raises
        ------
        MissingInputError
            If there are no outputs for the split.
        """
        outputs: Predictions | None = getattr(self, name)
        if outputs is None:
            raise MissingInputError(f"there are no outputs for the {name} images; give `{name}`")
        is_known = outputs.label_codes >= 0
        return outputs if is_known.all() else outputs.subset(is_known)


@dataclass(frozen=True)
class Method:
    """A confidence score for networks that are trained with one objective.

    Attributes
    ----------
    name : str
        Unique name of the method, which tables also display.
    title : str
        Title in reports.
    source : str
        Paper or code that defines the method.
    objective : str
        Training objective of the networks, as a name in `abstain.training.OBJECTIVES`.
    needs : frozenset of str
    score : str or callable
        Name of a score for `abstain.confidence.score`, which is in `SCORES` or is a column of
        learned confidences. Alternatively, a function that receives `FitData` and returns a fitted
        `ScoreState`.
    fitted_on : str
        Splits on which `score` is fitted, which are "train", "validation" or "train and
        validation". An empty value means that nothing is fitted.
    meaning : str
        Short description of the confidence.
    same_as : str
        Name of another method with the same scores, or empty. A method with this attribute is
        computed only if it is requested.
    is_default : bool
        Whether trained networks are scored with the method by default. Imported networks are scored
        with every method of their objective.

    Raises
    ------
    InputError
        If a required input or a split does not exist, or if a method for ensembles is fitted.
    """

    name: str
    title: str
    source: str
    objective: str
    needs: frozenset[str]
    score: str | Callable[[FitData], ScoreState]
    fitted_on: str = ""
    meaning: str = ""
    same_as: str = ""
    is_default: bool = True

    def __post_init__(self) -> None:
        checks.one_of(self.fitted_on, "fitted_on", FITTED_ON)
        for need in sorted(self.needs):
            if need not in NEEDS:
                listed = ", ".join(map(repr, NEEDS))
                raise InputError(
                    f"`needs` of the method {self.name!r} must be of {listed}; got {need!r}"
                )
        if self.fitted_on and "ensemble" in self.needs:
            # An ensemble has no outputs besides those on which it is evaluated.
            raise InputError(
                f"a method of ensembles must not be fitted; {self.name!r} is, on "
                f"{self.fitted_on!r}. Leave `fitted_on` empty"
            )

    @property
    def uses_mean_prediction(self) -> bool:
        """Whether the method evaluates the mean prediction of several passes or networks."""
        return not self.needs.isdisjoint({"samples", "ensemble"})

    @property
    def fitted_splits(self) -> tuple[str, ...]:
        """Names of the splits on which the method is fitted."""
        return tuple(self.fitted_on.split(" and ")) if self.fitted_on else ()

    def missing_to_fit(self, data: FitData) -> str:
        """Describe the missing inputs for fitting the method, or return an empty string."""
        missing = []
        if "last_layer" in self.needs and (data.weight is None or data.bias is None):
            missing.append(NEEDS["last_layer"])
        for name in self.fitted_splits:
            outputs: Predictions | None = getattr(data, name)
            if outputs is None:
                missing.append(f"outputs for the {name} images")
            elif "features" in self.needs and outputs.features is None:
                missing.append(f"{NEEDS['features']} of the {name} images")
        if not missing:
            return ""
        return f"the method {self.name!r} needs {'; '.join(missing)}"

    def missing_to_score(self, outputs: Predictions) -> str:
        """Describe the missing inputs for computing the scores, or return an empty string."""
        is_available = {
            "features": outputs.features is not None,
            "samples": outputs.has_samples,
            "learned": bool(outputs.confidence),
            "last_layer": True,
            # `ensemble_outputs` stores the logits of the members as samples and no features.
            "ensemble": outputs.has_samples and outputs.features is None,
        }
        missing = [
            description
            for need, description in NEEDS.items()
            if need in self.needs and not is_available[need]
        ]
        if not missing:
            return ""
        return f"the method {self.name!r} needs {'; '.join(missing)}"


#: All methods in the order of tables.
METHODS: Catalogue[Method] = Catalogue("method", list_command="list scores")


def update_method_names(values: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """Replace outdated method names in the keys, which contain hyphens."""
    return {match_spelling(name, METHODS): value for name, value in values.items()}


def methods_of(
    objectives: Iterable[str], *, missing: Collection[str] = (), all_scores: bool = False
) -> tuple[Method, ...]:
    """Return the methods for networks with the given training objectives, without aliases.

    Methods that need an input in `missing` are omitted; methods that are optional are omitted
    unless `all_scores` is True.

    Examples
    --------
    >>> from abstain_bench.runs.methods import methods_of
    >>> [method.name for method in methods_of(["confidnet"], missing={"samples"})]
    ['confidnet']
    """
    objectives = set(objectives)
    return tuple(
        method
        for method in METHODS.values()
        if method.objective in objectives
        and method.needs.isdisjoint(missing)
        and not method.same_as
        and (method.is_default or all_scores)
    )


class Scores(dict[str, FloatArray]):
    """Confidence scores by method name. If a method fails, its scores are NaN for all images.

    Attributes
    ----------
    reasons : dict of str to str
        Reason for the failure of each failed method.
    seconds : dict of str to float
        Duration of the computation of each method.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, str] = {}
        self.seconds: dict[str, float] = {}


@dataclass(frozen=True, eq=False)
class FittedMethods:
    """Several methods that are fitted on the same outputs.

    Attributes
    ----------
    methods : tuple of Method
        All methods, including those whose fit failed.
    scores : mapping of str to str or ScoreState
        Name of a score or the fitted score of each method that could be fitted.
    reasons : mapping of str to str
        Reason for each method that could not be fitted.
    seconds : mapping of str to float
        Duration of fitting of each method.
    """

    methods: tuple[Method, ...]
    scores: Mapping[str, str | ScoreState]
    reasons: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def score(self, outputs: Predictions) -> Scores:
        """Compute the confidence scores of images by each method."""
        result = Scores()
        for method in self.methods:
            reason = self.reasons.get(method.name, "")
            if not reason:
                start = perf_counter()
                try:
                    result[method.name] = self._confidence(method, outputs)
                except Exception as error:  # noqa: BLE001  the other methods are computed
                    reason = _failure_reason(error)
                result.seconds[method.name] = perf_counter() - start
            if reason:
                result[method.name] = np.full(outputs.n, np.nan)
                result.reasons[method.name] = reason
        return result

    def _confidence(self, method: Method, outputs: Predictions) -> FloatArray:
        """Compute the confidence scores of images by a fitted method."""
        missing = method.missing_to_score(outputs)
        if missing:
            raise MissingInputError(missing)
        values = score(self.scores[method.name], outputs).values
        label = f"confidence of {method.name}"
        return checks.confidence(values, label, length=outputs.n).astype(np.float64)


def fit_all(methods: Iterable[str | Method], data: FitData) -> FittedMethods:
    """Fit several methods on the outputs of a network.

    Examples
    --------
    >>> from abstain_bench.runs.methods import FitData, fit_all
    >>> from abstain_bench.runs.outputs import network_outputs
    >>> outputs = network_outputs([[2.0, 0.0], [0.0, 1.0]], [0, 0], [0, 1])
    >>> fit_all(["knn"], FitData(train=outputs, validation=outputs)).reasons["knn"]
    "the method 'knn' needs the inputs of the last layer (`features`) of the train images"
    """
    selected = tuple(METHODS[method] if isinstance(method, str) else method for method in methods)
    scores: dict[str, str | ScoreState] = {}
    reasons: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for method in selected:
        start = perf_counter()
        missing = method.missing_to_fit(data)
        if missing:
            reasons[method.name] = missing
            continue
        try:
            if isinstance(method.score, str):
                scores[method.name] = method.score
            else:
                scores[method.name] = method.score(data)
        except Exception as error:  # noqa: BLE001  the other methods are fitted
            reasons[method.name] = _failure_reason(error)
        seconds[method.name] = perf_counter() - start
    return FittedMethods(selected, scores, reasons, seconds)


def score_all(methods: Iterable[str | Method], data: FitData, outputs: Predictions) -> Scores:
    """Fit several methods, and compute the confidence scores of images by each method.

    Parameters
    ----------
    methods : iterable of str or Method
        Methods, or their names in `METHODS`.
    data : FitData
        Outputs that the methods are fitted on.
    outputs : abstain.Predictions
        Outputs of the same network for the n images to be scored, in the form that
        `network_outputs` returns. The labels are not used.

    Returns
    -------
    Scores
        Scores by method name, as float64 arrays of shape (n,). If a method lacks an input or fails,
        its scores are NaN, and ``.reasons`` contains the reason.

    Raises
    ------
    UnknownNameError
        If a method does not exist.

    See Also
    --------
    fit_all : Fit methods once and compute the scores of several outputs.

    Examples
    --------
    >>> from abstain_bench.runs.methods import FitData, score_all
    >>> from abstain_bench.runs.outputs import network_outputs
    >>> outputs = network_outputs([[2.0, 0.0], [0.0, 1.0]], [0, 0], [0, 1])
    >>> scores = score_all(["msr", "mcd_pe"], FitData(outputs, outputs), outputs)
    >>> scores["msr"].tolist()
    [2.0, 1.0]
    >>> scores.reasons
    {'mcd_pe': "the method 'mcd_pe' needs passes with dropout on (`samples`)"}
    """
    return fit_all(methods, data).score(outputs)


def _failure_reason(error: Exception) -> str:
    """Return the first line of an error message, with the type of a foreign exception."""
    lines = str(error).splitlines()
    if isinstance(error, AbstainError) and lines:
        return lines[0]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


FitFunction: TypeAlias = Callable[[FitData], ScoreState]


def fit_temperature(data: FitData) -> ScoreState:
    """Fit the temperature of the logits by maximum likelihood on the validation images."""
    return fit_score("temperature", data.split("validation"), objective=LIKELIHOOD)


def fit_pnorm(data: FitData) -> ScoreState:
    """Select the exponent of the p-norm on the validation images."""
    return fit_score("pnorm", data.split("validation"), metric=DEFAULT_METRIC)


def fitted_on_train(
    kind: str, *, last_layer: bool = False, n_first: int | None = None, **options: Any
) -> FitFunction:
    """Return a function that fits a score of `FITTED` on the training images.

    The score is fitted on the first `n_first` images, or on all images if `n_first` is None.
    """

    def fit(data: FitData) -> ScoreState:
        """Fit the score on the outputs for the training images."""
        train = data.split("train")
        if n_first is not None:
            train = train.subset(np.arange(min(n_first, train.n)))
        fit_options = dict(options)
        if last_layer:
            fit_options["last_layer"] = (data.weight, data.bias)
        return fit_score(kind, train, **fit_options)

    return fit


@dataclass(frozen=True, eq=False)
class LastLayerScore:
    """A score of `FITTED` that only requires the weight and the bias of the final layer."""

    name: str
    weight: Array | None
    bias: Array | None

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Check that the final layer matches the logits, and compute scores of shape (n,)."""
        last_layer = (self.weight, self.bias)
        return fit_score(self.name, predictions, last_layer=last_layer).score(predictions)


def fitted_react_with_temperature(percentile: float) -> FitFunction:
    """Return a function that fits ReAct and then a temperature on validation images."""

    def fit(data: FitData) -> ScoreState:
        """Fit ReAct, then the temperature of its logits, then ReAct with this temperature."""
        train = data.split("train")
        validation = data.split("validation")
        options: dict[str, Any] = {
            "base": "msr",
            "percentile": percentile,
            "last_layer": (data.weight, data.bias),
        }
        plain: Any = fit_score("react", train, **options)
        clipped_features = plain.reshape(features_as_double(validation))
        logits = compute_logits(clipped_features, plain.weight, plain.bias)
        rectified = Predictions(logits=logits, labels=validation.labels)
        tempered: Any = fit_score("temperature", rectified, objective=LIKELIHOOD)
        return fit_score("react", train, temperature=tempered.temperature, **options)

    return fit
