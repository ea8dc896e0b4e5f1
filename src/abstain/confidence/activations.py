"""Logit scores of features whose activations are reshaped first: ReAct, ASH, SCALE."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.records import ClassNames, Number, Positive, axes
from abstain.confidence.energies import last_layer_of, logits_of
from abstain.confidence.entry import ConfidenceScore, positive_temperature
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    confidences,
    doubles,
    feature_blocks,
    option_name,
    refuse_other_classes,
)
from abstain.confidence.logit_scores import max_logit, negative_energy
from abstain.confidence.softmax_scores import max_softmax_response
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, FloatArray

#: Percentiles where none is given: of ReAct that of Sun et al.; those of ASH and SCALE are ours.
#: OpenOOD chooses them for each network, from 65 to 95.
REACT, ASH, SCALE = 90.0, 90.0, 85.0
#: What the logits may be scored by.
Base = Literal["energy", "msr", "mls"]
BASES = get_args(Base)
#: What becomes of the activations that ASH leaves.
Variant = Literal["sharpen", "binarize", "prune"]
VARIANTS = get_args(Variant)


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapedActivations(FittedScore):
    """A logit score of features that are reshaped, sample by sample.

    Attributes
    ----------
    name : str
        The name that results carry.
    classes : tuple
        The class names, in the order of the logits.
    base : {"energy", "msr", "mls"}
        The score of the logits.
    temperature : float
        Divides the logits, for "energy" and "msr".
    weight : ndarray of shape (K, d)
        The last layer's weight.
    bias : ndarray of shape (K,)
        The last layer's bias.
    """

    classes: ClassNames
    base: Base
    temperature: Positive
    weight: Annotated[FloatArray, axes("K", "d")]
    bias: Annotated[FloatArray, axes("K")]

    @abstractmethod
    def shaped(self, x: FloatArray) -> FloatArray:
        """Return the features reshaped, shape (rows, d)."""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        refuse_other_classes(predictions, self.classes, self.name)
        values = np.empty(predictions.n)
        k, d = self.weight.shape
        for rows, x in feature_blocks(predictions, d, self.name, also=k + d):
            with np.errstate(over="ignore", invalid="ignore"):
                shaped = self.shaped(x)
            values[rows] = self._of(logits_of(shaped, self.weight, self.bias))
        # No probability: the new logits may prefer another class than the prediction.
        return confidences(self.name, values)

    def _of(self, logits: FloatArray) -> FloatArray:
        score = negative_energy if self.base == "energy" else max_softmax_response
        plain = self.base == "mls"
        out: FloatArray = (
            max_logit(logits) if plain else score(logits, temperature=self.temperature)
        )
        return out


# ---------------------------------------------------------------------------------------- ReAct
@dataclass(frozen=True, eq=False, kw_only=True)
class RectifiedActivations(ShapedActivations):
    """A logit score of features whose large values are cut off.

    Attributes
    ----------
    name, classes, base, temperature, weight, bias
        As in `ShapedActivations`.
    threshold : float
        Features above it are set to it.
    """

    kind: ClassVar[str] = "react"

    threshold: Number

    def shaped(self, x: FloatArray) -> FloatArray:
        """Return the features, none above the threshold."""
        return np.minimum(x, self.threshold)


def fit_rectified(
    predictions: Predictions,
    *,
    last_layer: AnyArray,
    percentile: Any,
    base: Base,
    temperature: Any,
) -> RectifiedActivations:
    """Fit the threshold on the training features."""
    share = checks.fraction(percentile, "percentile", high=100.0)
    cooled = _temperature(base, temperature)
    weight, bias = last_layer_of(last_layer, predictions, RectifiedActivations.kind)
    return RectifiedActivations(
        name=_name("react", base, (share, REACT), cooled),
        classes=_classes(predictions, bias),
        threshold=float(np.percentile(doubles(predictions), share)),
        base=base,
        temperature=cooled,
        weight=weight,
        bias=bias,
    )


# ----------------------------------------------------------------------------------- ASH, SCALE
@dataclass(frozen=True, eq=False, kw_only=True)
class PrunedActivations(ShapedActivations):
    """A logit score of features of which only the largest of each sample are left.

    Attributes
    ----------
    name, classes, base, temperature, weight, bias
        As in `ShapedActivations`.
    percentile : float
        How many of a sample's features are set to 0, in percent.
    variant : {"sharpen", "binarize", "prune"}
        What becomes of the rest: ASH-S, ASH-B or ASH-P.
    """

    kind: ClassVar[str] = "ash"

    percentile: Number
    variant: Variant

    def shaped(self, x: FloatArray) -> FloatArray:
        """Return the largest features of each sample, sharpened or all alike."""
        largest = _largest(x, self.percentile)
        kept = np.zeros_like(x)
        values = np.take_along_axis(x, largest, axis=1)
        if self.variant == "binarize":
            values = np.broadcast_to(x.sum(axis=1, keepdims=True) / largest.shape[1], values.shape)
        elif self.variant == "sharpen":
            values = values * _sharpness(x, values)
        np.put_along_axis(kept, largest, values, axis=1)
        return kept


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledActivations(ShapedActivations):
    """A logit score of features, each sample's multiplied by how little its largest hold.

    Attributes
    ----------
    name, classes, base, temperature, weight, bias
        As in `ShapedActivations`.
    percentile : float
        How many of a sample's features are not among its largest, in percent.
    """

    kind: ClassVar[str] = "scale"

    percentile: Number

    def shaped(self, x: FloatArray) -> FloatArray:
        """Return all features, scaled sample by sample."""
        largest = _largest(x, self.percentile)
        return x * _sharpness(x, np.take_along_axis(x, largest, axis=1))


def _largest(x: FloatArray, percentile: float) -> Any:
    """Return the places of the largest features of each sample, of equal ones the first."""
    kept = _kept(x.shape[1], percentile)
    return np.argsort(-x, axis=1, kind="stable")[:, :kept]


def _kept(d: int, percentile: float) -> int:
    return d - int(np.round(d * percentile / 100.0))


def _sharpness(x: FloatArray, largest: FloatArray) -> FloatArray:
    """Return exp of the sum of all over that of the largest, shape (rows, 1); 1 without any.

    At most the exponential of how many times more features there are.
    """
    held = largest.sum(axis=1, keepdims=True)
    some = held > 0
    ratio = x.sum(axis=1, keepdims=True) / np.where(some, held, 1.0)
    return np.asarray(np.where(some, np.exp(np.where(some, ratio, 0.0)), 1.0))


def fit_pruned(
    predictions: Predictions,
    *,
    last_layer: AnyArray,
    percentile: Any,
    variant: Variant,
    base: Base,
    temperature: Any,
) -> PrunedActivations:
    """Check the options; nothing is learned of the training features."""
    checks.one_of(variant, "variant", VARIANTS)
    cooled = _temperature(base, temperature)
    weight, bias = last_layer_of(last_layer, predictions, PrunedActivations.kind)
    share = _percentile(percentile, weight.shape[1])
    return PrunedActivations(
        name=_name("ash", base, (share, ASH), cooled, variant=(variant, "sharpen")),
        classes=_classes(predictions, bias),
        percentile=share,
        variant=variant,
        base=base,
        temperature=cooled,
        weight=weight,
        bias=bias,
    )


def fit_scaled(
    predictions: Predictions,
    *,
    last_layer: AnyArray,
    percentile: Any,
    base: Base,
    temperature: Any,
) -> ScaledActivations:
    """Check the options; nothing is learned of the training features."""
    cooled = _temperature(base, temperature)
    weight, bias = last_layer_of(last_layer, predictions, ScaledActivations.kind)
    share = _percentile(percentile, weight.shape[1])
    return ScaledActivations(
        name=_name("scale", base, (share, SCALE), cooled),
        classes=_classes(predictions, bias),
        percentile=share,
        base=base,
        temperature=cooled,
        weight=weight,
        bias=bias,
    )


def _percentile(percentile: Any, d: int) -> float:
    share = checks.fraction(percentile, "percentile", high=100.0)
    if _kept(d, share) < 1:
        raise DomainError(
            f"`percentile` must leave one of the {d} features at least; got {share:g}"
        )
    return share


def _temperature(base: str, temperature: Any) -> float:
    checks.one_of(base, "base", BASES)
    cooled = positive_temperature(temperature)
    if base == "mls" and cooled != 1:
        raise InputError(
            "a temperature does not change the order of the largest logit; drop `temperature`"
        )
    return cooled


def _name(
    kind: str, base: str, percentile: tuple[float, float], cooled: float, **more: tuple[Any, Any]
) -> str:
    return option_name(kind, **more, base=(base, "energy"), percentile=percentile, T=(cooled, 1.0))


def _classes(predictions: Predictions, bias: FloatArray) -> tuple[Any, ...]:
    return predictions.class_names or tuple(range(len(bias)))


_FEATURES = frozenset({FitNeed.FEATURES})
_LAYERED = _FEATURES | {FitNeed.LAST_LAYER}

ENTRIES = (
    FittedKind(
        "react",
        "Rectified activations (ReAct)",
        fit_rectified,
        RectifiedActivations,
        "the energy of the logits after large features are cut off at a percentile of training",
        "Sun et al. (2021), https://arxiv.org/abs/2111.12797",
        _LAYERED,
        _FEATURES,
        {"percentile": REACT, "base": "energy", "temperature": 1.0},
        required=("last_layer",),
    ),
    FittedKind(
        "ash",
        "Activation shaping (ASH)",
        fit_pruned,
        PrunedActivations,
        "the energy of the logits after all but the largest features of a sample are set to 0, and "
        "these made larger by what was taken away",
        "Djurisic et al. (2023), https://arxiv.org/abs/2209.09858",
        _LAYERED,
        _FEATURES,
        {"percentile": ASH, "variant": "sharpen", "base": "energy", "temperature": 1.0},
        required=("last_layer",),
    ),
    FittedKind(
        "scale",
        "Activation scaling (SCALE)",
        fit_scaled,
        ScaledActivations,
        "the energy of the logits after a sample's features are scaled by how little of their sum "
        "its largest hold",
        "Xu et al. (2024), https://arxiv.org/abs/2310.00227",
        _LAYERED,
        _FEATURES,
        {"percentile": SCALE, "base": "energy", "temperature": 1.0},
        required=("last_layer",),
    ),
)
