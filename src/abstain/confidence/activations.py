"""Confidence scores that modify the features of a network and recompute the logits.

The scores in this module are ReAct, ASH and SCALE.
"""

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

#: Default percentiles. Sun et al. use 90 for ReAct. The other defaults are choices of this project.
REACT_PERCENTILE, ASH_PERCENTILE, SCALE_PERCENTILE = 90.0, 90.0, 85.0
#: Names of the scores that can be computed from the new logits.
Base = Literal["energy", "msr", "mls"]
BASES = get_args(Base)
#: Variants of ASH, which differ in how they change the largest activations.
Variant = Literal["sharpen", "binarize", "prune"]
VARIANTS = get_args(Variant)


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapedActivations(FittedScore):
    """Base class of scores that modify the features and recompute the logits.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : tuple
        Class names, in the order of the logits.
    base : {"energy", "msr", "mls"}
        Name of the score that is computed from the new logits.
    temperature : float
        Divisor of the new logits, unless `base` is "mls".
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
        """Return the modified features of n samples, shape (n, d)."""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        check_same_classes(predictions, self.classes, self.name)
        values = np.empty(predictions.n)
        k, d = self.weight.shape
        for block, features in feature_blocks(predictions, d, self.name, n_extra=k + d):
            with np.errstate(over="ignore", invalid="ignore"):
                new_features = self.reshape(features)
            logits = compute_logits(new_features, self.weight, self.bias)
            values[block] = self._score_logits(logits)
        # The new logits may have another top class, so no probability of correctness is returned.
        return as_confidence_score(self.name, values)

    def _score_logits(self, logits: FloatArray) -> AnyArray:
        if self.base == "mls":
            return max_logit(logits)
        if self.base == "energy":
            return negative_energy(logits, temperature=self.temperature)
        return max_softmax_response(logits, temperature=self.temperature)


# ---------------------------------------------------------------------------------------- ReAct
@dataclass(frozen=True, eq=False, kw_only=True)
class RectifiedActivations(ShapedActivations):
    """The ReAct score, which is computed from the logits of clipped features.

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
        """Clip the features at the threshold."""
        return np.minimum(x, self.threshold)


def fit_rectified(
    predictions: Predictions, *, percentile: Any, **options: Any
) -> RectifiedActivations:
    """Fit the threshold of ReAct as a percentile of the training features.

    `options` contains the keyword arguments of `_fit_shared_fields`.
    """
    share = checks.fraction(percentile, "percentile", high=100.0)
    fields = _fit_shared_fields(predictions, "react", **options)
    name = _score_name("react", fields, (share, REACT_PERCENTILE))
    threshold = float(np.percentile(features_as_double(predictions), share))
    return RectifiedActivations(name=name, threshold=threshold, **fields)


# ----------------------------------------------------------------------------------- ASH, SCALE
@dataclass(frozen=True, eq=False, kw_only=True)
class PrunedActivations(ShapedActivations):
    """The ASH score, which is computed from the logits of the largest features of each sample.

    All but the largest features are set to 0.

    Attributes
    ----------
    name, classes, base, temperature, weight, bias
        As in `ShapedActivations`.
    percentile : float
        Percentage of the features of a sample that is set to 0.
    variant : {"sharpen", "binarize", "prune"}
        Modification of the remaining features: ASH-S ("sharpen"), ASH-B ("binarize") or ASH-P
        ("prune").
    """

    kind: ClassVar[str] = "ash"

    percentile: Number
    variant: Variant

    def reshape(self, x: FloatArray) -> FloatArray:
        """Modify the largest features of each sample, and set its other features to 0."""
        index = _largest_features(x, self.percentile)
        largest = np.take_along_axis(x, index, axis=1)
        new_features = np.zeros_like(x)
        if self.variant == "binarize":
            equal_value = x.sum(axis=1, keepdims=True) / index.shape[1]
            largest = np.broadcast_to(equal_value, largest.shape)
        elif self.variant == "sharpen":
            largest = largest * _inverse_share(x, largest)
        np.put_along_axis(new_features, index, largest, axis=1)
        return new_features


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledActivations(ShapedActivations):
    """The SCALE score, which is computed from the logits of rescaled features.

    The features of a sample are multiplied by exp(sum of all features / sum of the largest
    features).

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
        """Multiply the features of each sample by the factor of the sample."""
        index = _largest_features(x, self.percentile)
        largest = np.take_along_axis(x, index, axis=1)
        return x * _inverse_share(x, largest)


def _largest_features(x: FloatArray, percentile: float) -> Any:
    """Return the indices of the largest features of each sample. Ties keep the column order."""
    n_largest = _number_of_largest(x.shape[1], percentile)
    return np.argsort(-x, axis=1, kind="stable")[:, :n_largest]


def _number_of_largest(d: int, percentile: float) -> int:
    return d - int(np.round(d * percentile / 100.0))


def _inverse_share(x: FloatArray, largest: FloatArray) -> FloatArray:
    """Return exp(sum of all features / sum of the largest features), shape (n, 1).

    If the sum of the largest features is not positive, the value is 1.
    """
    largest_sum = largest.sum(axis=1, keepdims=True)
    is_positive = largest_sum > 0
    ratio = x.sum(axis=1, keepdims=True) / np.where(is_positive, largest_sum, 1.0)
    return np.asarray(np.where(is_positive, np.exp(np.where(is_positive, ratio, 0.0)), 1.0))


def fit_pruned(
    predictions: Predictions, *, percentile: Any, variant: Variant, **options: Any
) -> PrunedActivations:
    """Validate the options of ASH, which has no fitted parameters."""
    checks.one_of(variant, "variant", VARIANTS)
    fields = _fit_shared_fields(predictions, "ash", **options)
    share = _check_percentile(percentile, fields)
    name = _score_name("ash", fields, (share, ASH_PERCENTILE), variant=(variant, "sharpen"))
    return PrunedActivations(name=name, percentile=share, variant=variant, **fields)


def fit_scaled(predictions: Predictions, *, percentile: Any, **options: Any) -> ScaledActivations:
    """Validate the options of SCALE, which has no fitted parameters."""
    fields = _fit_shared_fields(predictions, "scale", **options)
    share = _check_percentile(percentile, fields)
    name = _score_name("scale", fields, (share, SCALE_PERCENTILE))
    return ScaledActivations(name=name, percentile=share, **fields)


def _fit_shared_fields(
    predictions: Predictions, kind: str, *, last_layer: AnyArray, base: Base, temperature: Any
) -> dict[str, Any]:
    """Validate the common options, and return the fields of `ShapedActivations`."""
    checks.one_of(base, "base", BASES)
    value = check_temperature(temperature)
    if base == "mls" and value != 1:
        raise InputError(
            "a temperature does not change the order of the largest logit; drop `temperature`"
        )
    weight, bias = check_last_layer(last_layer, predictions, kind)
    return {
        "classes": predictions.class_names or tuple(range(len(bias))),
        "base": base,
        "temperature": value,
        "weight": weight,
        "bias": bias,
    }


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
