"""Virtual-logit matching (ViM), and validation of the last layer of a network."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.records import ClassNames, NonNegative, axes
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import (
    FitNeed,
    FittedKind,
    FittedScore,
    as_confidence_score,
    check_feature_range,
    check_same_classes,
    feature_blocks,
    features_as_double,
    name_with_options,
)
from abstain.confidence.logit_scores import max_logit, negative_energy
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array, FloatArray


# ------------------------------------------------------------------------------------ ViM
@dataclass(frozen=True, eq=False, kw_only=True)
class VirtualLogit(FittedScore):
    """The ViM score: energy of the logits minus the scaled distance of the features to a subspace.

    Attributes
    ----------
    name : str
        Name of the score in results.
    classes : tuple
        Class names, in the order of the logits.
    origin : ndarray of shape (d,)
        Origin of the principal subspace of the training features: -pinv(weight) bias, or the mean
        of the features if no last layer was passed.
    complement : ndarray of shape (d, r)
        Orthonormal basis of the orthogonal complement of the principal subspace.
    alpha : float
        Mean of the largest logit divided by the mean distance to the subspace, both computed on
        the training samples.
    weight : ndarray of shape (K, d) or None
        Weight of the last layer. If the weight is set, logits are computed from the features.
    bias : ndarray of shape (K,) or None
        Bias of the last layer.
    """

    kind: ClassVar[str] = "vim"

    classes: ClassNames
    origin: Annotated[FloatArray, axes("d")]
    complement: Annotated[FloatArray, axes("d", "r")]
    alpha: NonNegative
    weight: Annotated[FloatArray, axes("K", "d")] | None
    bias: Annotated[FloatArray, axes("K")] | None

    def __post_init__(self) -> None:
        """Validate the fields, including that weight and bias are both set or both None."""
        super().__post_init__()
        if (self.weight is None) != (self.bias is None):
            missing = "weight" if self.weight is None else "bias"
            raise InputError(f"`{missing}` is missing; a last layer has a weight and a bias")

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        if self.weight is None and not predictions.has_logits:
            raise MissingInputError(
                f"the score {self.name!r} needs logits, since it was fitted without a last layer"
            )
        check_same_classes(predictions, self.classes, self.name)
        d, r = self.complement.shape
        n_extra = r + len(self.classes)
        values = np.empty(predictions.n)
        for block, x in feature_blocks(predictions, d, self.name, n_extra=n_extra):
            if self.weight is None or self.bias is None:
                logits = predictions.logits[block]
            else:
                logits = compute_logits(x, self.weight, self.bias)
            distance = residual_length(x - self.origin, self.complement)
            values[block] = negative_energy(logits) - self.alpha * distance
        return as_confidence_score(self.name, values)


def residual_length(x: FloatArray, complement: FloatArray) -> FloatArray:
    """Return the distance of each sample's features to the principal subspace."""
    with np.errstate(over="ignore", invalid="ignore"):
        length: FloatArray = np.sqrt(((x @ complement) ** 2).sum(axis=1))
    return length


def fit_virtual_logit(
    predictions: Predictions, *, dim: Any, last_layer: AnyArray | None, centered: Any
) -> VirtualLogit:
    """Fit the principal subspace and the scale `alpha`."""
    if not isinstance(centered, bool):
        raise InputError(f"`centered` must be True or False; got {centered!r}")
    x = features_as_double(predictions)
    n_dimensions = _subspace_dimension(dim, x.shape[1])
    weight, bias, logits = _last_layer_and_logits(predictions, x, last_layer)
    mean = x.mean(axis=0)
    origin = mean if weight is None or bias is None else -np.linalg.pinv(weight) @ bias
    # A last layer with tiny weights has an origin far from the features.
    check_feature_range(x - origin)
    complement = _complement_basis(x - mean if centered else x - origin, n_dimensions)
    mean_residual = float(residual_length(x - origin, complement).mean())
    if mean_residual <= 1e-12 * float(np.abs(x).max()):
        raise DomainError(
            f"the features lie in their principal subspace of {n_dimensions} dimensions, so "
            "nothing is left for a virtual logit; pass a smaller `dim`"
        )
    return VirtualLogit(
        name=name_with_options("vim", dim=(dim, None), centered=(centered, False)),
        classes=predictions.class_names or tuple(range(logits.shape[1])),
        origin=origin,
        complement=complement,
        alpha=_mean_max_logit(logits) / mean_residual,
        weight=weight,
        bias=bias,
    )


def _complement_basis(x: FloatArray, n_dimensions: int) -> FloatArray:
    """Return an orthonormal basis of the complement of the principal subspace, shape (d, r)."""
    # `eigh` sorts the eigenvectors by their second moment, smallest first.
    eigenvectors = np.linalg.eigh(x.T @ x / x.shape[0])[1]
    complement: FloatArray = eigenvectors[:, : x.shape[1] - n_dimensions]
    return complement


def _mean_max_logit(logits: Array) -> float:
    """Return the mean of the largest logits, which must be positive."""
    mean = float(max_logit(logits).mean())
    if mean <= 0:
        raise DomainError(
            "the mean of the largest logit must be above 0 to scale the virtual logit; got "
            f"{mean:.6g}. Pass raw logits, not logarithms of probabilities."
        )
    return mean


def _last_layer_and_logits(
    predictions: Predictions, x: FloatArray, last_layer: AnyArray | None
) -> tuple[FloatArray | None, FloatArray | None, Array]:
    """Return the weight and bias of the last layer (or None twice), and the logits."""
    if last_layer is not None:
        weight, bias = check_last_layer(last_layer, predictions, "vim")
        return weight, bias, compute_logits(x, weight, bias)
    if not predictions.has_logits:
        raise MissingInputError(
            "the score 'vim' needs logits, or the last layer: `last_layer=(weight, bias)`"
        )
    return None, None, predictions.logits


def _subspace_dimension(dim: Any, d: int) -> int:
    """Return the dimension of the principal subspace. The default follows the ViM paper."""
    if d < 2:
        raise DomainError(f"the score 'vim' needs at least 2 columns of `features`; got {d}")
    if dim is None and d >= 2048:
        return 1000
    if dim is None:
        return 512 if d >= 768 else d // 2
    if checks.positive_int(dim, "dim") >= d:
        raise DomainError(f"`dim` must be below the {d} columns of `features`; got {dim}")
    return int(dim)


# ------------------------------------------------------------------------------------ last layer
def check_last_layer(
    last_layer: AnyArray, predictions: Predictions, name: str
) -> tuple[FloatArray, FloatArray]:
    """Validate the last layer, and return its weight and bias."""
    if not isinstance(last_layer, list | tuple) or len(last_layer) != 2:
        raise InputError("`last_layer` must be a pair (weight of shape (K, d), bias of shape (K,))")
    weight = _layer_array(last_layer[0], "weight")
    bias = _layer_array(last_layer[1], "bias")
    d = predictions.features.shape[1]
    if weight.ndim != 2 or weight.shape[1] != d or bias.shape != weight.shape[:1]:
        is_transposed = weight.ndim == 2 and weight.shape[0] == d
        hint = " Transpose the weight." if is_transposed else ""
        raise ShapeError(
            f"`last_layer` must be a weight of shape (K, {d}) and a bias of shape (K,), with "
            f"{d} the columns of `features`; got shapes {weight.shape} and {bias.shape}.{hint}"
        )
    if predictions.class_names and weight.shape[0] != predictions.n_classes:
        raise ShapeError(
            f"`last_layer` has {weight.shape[0]} classes, the predictions {predictions.n_classes}; "
            "pass all classes to the predictions, in order, as `classes=`"
        )
    if predictions.has_logits:
        _check_layer_gives_logits(weight, bias, predictions, name)
    return weight, bias


def _layer_array(x: AnyArray, description: str) -> FloatArray:
    """Return the weight or the bias of the last layer as a finite float64 array."""
    array = to_numpy(x, f"last_layer {description}")
    if array.dtype.kind not in "biuf" or not array.size:
        raise DomainError(
            f"the {description} of `last_layer` must be an array of numbers; "
            f"got {array.dtype} values"
        )
    return checks.finite(array.astype(np.float64), f"last_layer {description}")


def _check_layer_gives_logits(
    weight: FloatArray, bias: FloatArray, predictions: Predictions, name: str
) -> None:
    """Raise an InputError if the last layer does not reproduce the logits from the features.

    The tolerance is about 5% of the standard deviation of the logits, to allow for half precision.
    """
    k, d = weight.shape
    for block, x in feature_blocks(predictions, d, name, n_extra=2 * k):
        logits = np.asarray(predictions.logits[block], dtype=np.float64)
        max_size = float(np.abs(logits).max()) or 1.0
        deviation = max_size * float((logits / max_size).std())
        tolerance = 0.05 * max(deviation, 1e-6) + 1e-3 * max_size
        with np.errstate(over="ignore", invalid="ignore"):
            difference = np.abs(x @ weight.T + bias - logits).max()
        # The difference is NaN if a logit overflows.
        if not difference <= tolerance:
            raise InputError(
                "`last_layer` does not compute the logits of these predictions: they differ by up "
                f"to {difference:.3g}. The features must be the input of the last layer; drop "
                "logits that were changed afterwards."
            )


def compute_logits(x: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """Compute the logits of the features, shape (n, K), and check that all are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        logits: FloatArray = x @ weight.T + bias
    hint = "Its features are too large; rescale them, for fitting too."
    return checks.finite(logits, "the logits of the last layer", hint=hint)


_FEATURES = frozenset({FitNeed.FEATURES})

ENTRIES = (
    FittedKind(
        "vim",
        "Virtual-logit matching (ViM)",
        fit_virtual_logit,
        VirtualLogit,
        "the energy of the logits minus a virtual logit: the scaled distance of the features from "
        "the principal subspace of the training data",
        "Wang et al. (2022), https://arxiv.org/abs/2203.10807",
        _FEATURES,
        _FEATURES,
        {"dim": None, "last_layer": None, "centered": False},
    ),
)
