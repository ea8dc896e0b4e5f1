"""Confidence scores of logits that are computed from reshaped features (ReAct, ASH, SCALE)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.records import ClassNames, Number, Positive, axes
from abstain.confidence.energies import check_last_layer, compute_logits
from abstain.confidence.entry import ConfidenceScore, check_temperature
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    as_confidence_score,
    check_same_classes,
    feature_blocks,
    features_as_double,
    name_with_options,
)
from abstain.confidence.logit_scores import max_logit, negative_energy
from abstain.confidence.softmax_scores import max_softmax_response
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, FloatArray

#: Default percentiles. Sun et al. use 90 for ReAct. The percentiles of ASH and SCALE are choices of
#: this project. OpenOOD selects a percentile from 65 to 95 for each network.
REACT_PERCENTILE, ASH_PERCENTILE, SCALE_PERCENTILE = 90.0, 90.0, 85.0
#: Names of the scores that can be computed from the new logits.
Base = Literal["energy", "msr", "mls"]
BASES = get_args(Base)
#: Variants of ASH, which differ in how they change the largest activations.
Variant = Literal["sharpen", "binarize", "prune"]
VARIANTS = get_args(Variant)


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapedActivations(FittedScore):
    """A score of logits that the last layer computes from reshaped features.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : tuple
        Class names, in the order of the logits.
    base : {"energy", "msr", "mls"}
        The score that is computed from the logits.
    temperature : float
        Number that divides the logits. It is used if `base` is "energy" or "msr".
    weight : ndarray of shape (K, d)
        Weight of the last layer.
    bias : ndarray of shape (K,)
        Bias of the last layer.
    """

    classes: ClassNames
    base: Base
    temperature: Positive
    weight: Annotated[FloatArray, axes("K", "d")]
    bias: Annotated[FloatArray, axes("K")]

    @abstractmethod
    def reshape(self, x: FloatArray) -> FloatArray:
        """Return the reshaped features, shape (rows, d)."""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,), without labels."""
        check_same_classes(predictions, self.classes, self.name)
        values = np.empty(predictions.n)
        k, d = self.weight.shape
        for rows, x in feature_blocks(predictions, d, self.name, n_extra=k + d):
            with np.errstate(over="ignore", invalid="ignore"):
                shaped = self.reshape(x)
            logits = compute_logits(shaped, self.weight, self.bias)
            if self.base == "mls":
                values[rows] = max_logit(logits)
            else:
                score = negative_energy if self.base == "energy" else max_softmax_response
                values[rows] = score(logits, temperature=self.temperature)
        # The new logits may have another top class, so no probability of correctness is returned.
        return as_confidence_score(self.name, values)


# ---------------------------------------------------------------------------------------- ReAct
@dataclass(frozen=True, eq=False, kw_only=True)
class RectifiedActivations(ShapedActivations):
    """A score of logits from features that are clipped at a threshold.

    Attributes
    ----------
    name, classes, base, temperature, weight, bias
        As in `ShapedActivations`.
    threshold : float
        Upper limit of the features.
    """

    kind: ClassVar[str] = "react"

    threshold: Number

    def reshape(self, x: FloatArray) -> FloatArray:
        """Return the features, clipped at the threshold."""
        return np.minimum(x, self.threshold)


def fit_rectified(
    predictions: Predictions, *, percentile: Any, **options: Any
) -> RectifiedActivations:
    """Fit the threshold on the training features.

    The keyword arguments in `options` are passed to `_fit_shared_fields`.
    """
    share = checks.fraction(percentile, "percentile", high=100.0)
    fields = _fit_shared_fields(predictions, "react", **options)
    name = _score_name("react", fields, (share, REACT_PERCENTILE))
    threshold = float(np.percentile(features_as_double(predictions), share))
    return RectifiedActivations(name=name, threshold=threshold, **fields)


# ----------------------------------------------------------------------------------- ASH, SCALE
@dataclass(frozen=True, eq=False, kw_only=True)
class PrunedActivations(ShapedActivations):
    """A score of logits from the largest features of each sample. All other features become 0.

    Attributes
    ----------
    name, classes, base, temperature, weight, bias
        As in `ShapedActivations`.
    percentile : float
        Percentage of the features of a sample that is set to 0.
    variant : {"sharpen", "binarize", "prune"}
        Change of the remaining features: ASH-S ("sharpen"), ASH-B ("binarize") or ASH-P ("prune").
    """

    kind: ClassVar[str] = "ash"

    percentile: Number
    variant: Variant

    def reshape(self, x: FloatArray) -> FloatArray:
        """Return the largest features of each sample, changed as the variant specifies."""
        largest = _largest_features(x, self.percentile)
        reshaped = np.zeros_like(x)
        values = np.take_along_axis(x, largest, axis=1)
        if self.variant == "binarize":
            values = np.broadcast_to(x.sum(axis=1, keepdims=True) / largest.shape[1], values.shape)
        elif self.variant == "sharpen":
            values = values * _inverse_share(x, values)
        np.put_along_axis(reshaped, largest, values, axis=1)
        return reshaped


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledActivations(ShapedActivations):
    """A score of logits from features that are multiplied by a factor per sample.

    The factor increases as the share of the largest features in the sum of features decreases.

    Attributes
    ----------
    name, classes, base, temperature, weight, bias
        As in `ShapedActivations`.
    percentile : float
        Percentage of the features of a sample that are not among the largest.
    """

    kind: ClassVar[str] = "scale"

    percentile: Number

    def reshape(self, x: FloatArray) -> FloatArray:
        """Return all features, multiplied by the factor of their sample."""
        largest = _largest_features(x, self.percentile)
        return x * _inverse_share(x, np.take_along_axis(x, largest, axis=1))


def _largest_features(x: FloatArray, percentile: float) -> Any:
    """Return the indices of the largest features of each sample. Ties keep the column order."""
    n_largest = _number_of_largest(x.shape[1], percentile)
    return np.argsort(-x, axis=1, kind="stable")[:, :n_largest]


def _number_of_largest(d: int, percentile: float) -> int:
    return d - int(np.round(d * percentile / 100.0))


def _inverse_share(x: FloatArray, largest: FloatArray) -> FloatArray:
    """Return exp(sum of all features / sum of the largest features), shape (rows, 1).

    The value is 1 if the sum of the largest features is not positive.
    """
    largest_sum = largest.sum(axis=1, keepdims=True)
    is_positive = largest_sum > 0
    ratio = x.sum(axis=1, keepdims=True) / np.where(is_positive, largest_sum, 1.0)
    return np.asarray(np.where(is_positive, np.exp(np.where(is_positive, ratio, 0.0)), 1.0))


def fit_pruned(
    predictions: Predictions, *, percentile: Any, variant: Variant, **options: Any
) -> PrunedActivations:
    """Validate the options. No parameter is estimated from the training features."""
    checks.one_of(variant, "variant", VARIANTS)
    fields = _fit_shared_fields(predictions, "ash", **options)
    share = _check_percentile(percentile, fields)
    name = _score_name("ash", fields, (share, ASH_PERCENTILE), variant=(variant, "sharpen"))
    return PrunedActivations(name=name, percentile=share, variant=variant, **fields)


def fit_scaled(predictions: Predictions, *, percentile: Any, **options: Any) -> ScaledActivations:
    """Validate the options. No parameter is estimated from the training features."""
    fields = _fit_shared_fields(predictions, "scale", **options)
    share = _check_percentile(percentile, fields)
    name = _score_name("scale", fields, (share, SCALE_PERCENTILE))
    return ScaledActivations(name=name, percentile=share, **fields)


def _fit_shared_fields(
    predictions: Predictions, kind: str, *, last_layer: AnyArray, base: Base, temperature: Any
) -> dict[str, Any]:
    """Validate the options of all three scores, and return the fields of `ShapedActivations`."""
    checks.one_of(base, "base", BASES)
    value = check_temperature(temperature)
    if base == "mls" and value != 1:
        raise InputError(
            "a temperature does not change the order of the largest logit; drop `temperature`"
        )
    weight, bias = check_last_layer(last_layer, predictions, kind)
    classes = predictions.class_names or tuple(range(len(bias)))
    layer = {"weight": weight, "bias": bias}
    return {"classes": classes, "base": base, "temperature": value, **layer}


def _check_percentile(percentile: Any, fields: dict[str, Any]) -> float:
    share = checks.fraction(percentile, "percentile", high=100.0)
    d = fields["weight"].shape[1]
    if _number_of_largest(d, share) < 1:
        raise DomainError(f"`percentile` must keep at least one of the {d} features; got {share:g}")
    return share


def _score_name(
    kind: str, fields: dict[str, Any], percentile: tuple[float, float], **options: tuple[Any, Any]
) -> str:
    options |= {"base": (fields["base"], "energy"), "percentile": percentile}
    return name_with_options(kind, **options, T=(fields["temperature"], 1.0))


_FEATURES = frozenset({FitNeed.FEATURES})
_FEATURES_AND_LAYER = _FEATURES | {FitNeed.LAST_LAYER}
_DEFAULTS = {"base": "energy", "temperature": 1.0}

ENTRIES = (
    FittedKind(
        "react",
        "Rectified activations (ReAct)",
        fit_rectified,
        RectifiedActivations,
        "the energy of the logits after large features are cut off at a percentile of training",
        "Sun et al. (2021), https://arxiv.org/abs/2111.12797",
        _FEATURES_AND_LAYER,
        _FEATURES,
        {"percentile": REACT_PERCENTILE, **_DEFAULTS},
        required=("last_layer",),
    ),
    FittedKind(
        "ash",
        "Activation shaping (ASH)",
        fit_pruned,
        PrunedActivations,
        "the energy of the logits after all but the largest features of a sample are set to 0 and "
        "the largest are multiplied to compensate",
        "Djurisic et al. (2023), https://arxiv.org/abs/2209.09858",
        _FEATURES_AND_LAYER,
        _FEATURES,
        {"percentile": ASH_PERCENTILE, "variant": "sharpen", **_DEFAULTS},
        required=("last_layer",),
    ),
    FittedKind(
        "scale",
        "Activation scaling (SCALE)",
        fit_scaled,
        ScaledActivations,
        "the energy of the logits after the features of a sample are multiplied by a factor that "
        "decreases with the share of the largest features in their sum",
        "Xu et al. (2024), https://arxiv.org/abs/2310.00227",
        _FEATURES_AND_LAYER,
        _FEATURES,
        {"percentile": SCALE_PERCENTILE, **_DEFAULTS},
        required=("last_layer",),
    ),
)
