"""Energies of logits and features: virtual-logit matching (ViM), and what it knows of layers."""

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
    confidences,
    doubles,
    feature_blocks,
    option_name,
    refuse_extreme,
    refuse_other_classes,
)
from abstain.confidence.logit_scores import max_logit, negative_energy
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array, FloatArray


# ------------------------------------------------------------------------------------ ViM
@dataclass(frozen=True, eq=False, kw_only=True)
class VirtualLogit(FittedScore):
    """Energy of the logits minus the scaled distance from the principal subspace.

    Attributes
    ----------
    name : str
        The name that results carry.
    classes : tuple
        The class names, in the order of the logits.
    origin : ndarray of shape (d,)
        Where the subspace starts: -pinv(weight) bias, or the mean of the features.
    complement : ndarray of shape (d, r)
        Orthonormal directions that are not in the principal subspace.
    alpha : float
        The mean largest logit over the mean distance, both on the training samples.
    weight : ndarray of shape (K, d) or None
        The last layer's weight, when it was given: then logits come from it.
    bias : ndarray of shape (K,) or None
        The last layer's bias.
    """

    kind: ClassVar[str] = "vim"

    classes: ClassNames
    origin: Annotated[FloatArray, axes("d")]
    complement: Annotated[FloatArray, axes("d", "r")]
    alpha: NonNegative
    weight: Annotated[FloatArray, axes("K", "d")] | None
    bias: Annotated[FloatArray, axes("K")] | None

    def __post_init__(self) -> None:
        """Check every field, and that the last layer is whole."""
        super().__post_init__()
        if (self.weight is None) != (self.bias is None):
            missing = "weight" if self.weight is None else "bias"
            raise InputError(f"`{missing}` is missing; a last layer has a weight and a bias")

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        if self.weight is None and not predictions.has_logits:
            raise MissingInputError(
                f"the score {self.name!r} needs logits, since it was fitted without a last layer"
            )
        refuse_other_classes(predictions, self.classes, self.name)
        d, r = self.complement.shape
        values = np.empty(predictions.n)
        for rows, x in feature_blocks(predictions, d, self.name, also=r + len(self.classes)):
            energy = negative_energy(self._logits(x, predictions, rows))
            values[rows] = energy - self.alpha * residual(x - self.origin, self.complement)
        return confidences(self.name, values)

    def _logits(self, x: FloatArray, predictions: Predictions, rows: slice) -> Array:
        if self.weight is None or self.bias is None:
            own: Array = predictions.logits[rows]
            return own
        return logits_of(x, self.weight, self.bias)


def residual(x: FloatArray, complement: FloatArray) -> FloatArray:
    """Return the length of each row outside the principal subspace."""
    with np.errstate(over="ignore", invalid="ignore"):
        out: FloatArray = np.sqrt(((x @ complement) ** 2).sum(axis=1))
    return out


def fit_virtual_logit(
    predictions: Predictions, *, dim: Any, last_layer: AnyArray | None, centered: Any
) -> VirtualLogit:
    """Fit the subspace and the scale of the virtual logit."""
    if not isinstance(centered, bool):
        raise InputError(f"`centered` must be True or False; got {centered!r}")
    x = doubles(predictions)
    dim_used = _dimension(dim, x.shape[1])
    weight, bias, logits = _outputs(predictions, x, last_layer)
    origin = x.mean(axis=0) if weight is None or bias is None else -np.linalg.pinv(weight) @ bias
    away = x - origin
    # A last layer of tiny weights has its origin far off.
    refuse_extreme(away)
    complement = _complement(x - x.mean(axis=0) if centered else away, dim_used)
    far = float(residual(away, complement).mean())
    if far <= 1e-12 * float(np.abs(x).max()):
        raise DomainError(
            f"the features lie in their principal subspace of {dim_used} dimensions, so nothing "
            "is left for a virtual logit; pass a smaller `dim`"
        )
    top = float(max_logit(logits).mean())
    if top <= 0:
        raise DomainError(
            "the mean of the largest logit must be above 0 to scale the virtual logit; got "
            f"{top:.6g}. Pass raw logits, not logarithms of probabilities."
        )
    return VirtualLogit(
        name=option_name("vim", dim=(dim, None), centered=(centered, False)),
        classes=predictions.class_names or tuple(range(logits.shape[1])),
        origin=origin,
        complement=complement,
        alpha=top / far,
        weight=weight,
        bias=bias,
    )


def _outputs(
    predictions: Predictions, x: FloatArray, given: AnyArray | None
) -> tuple[FloatArray | None, FloatArray | None, Array]:
    """Return the last layer, if given, and the logits."""
    if given is not None:
        weight, bias = last_layer_of(given, predictions, "vim")
        return weight, bias, logits_of(x, weight, bias)
    if not predictions.has_logits:
        raise MissingInputError(
            "the score 'vim' needs logits, or the last layer: `last_layer=(weight, bias)`"
        )
    return None, None, predictions.logits


def _dimension(dim: Any, d: int) -> int:
    """Return the dimension of the principal subspace: the authors' rule where none is asked for."""
    if d < 2:
        raise DomainError(f"the score 'vim' needs at least 2 columns of `features`; got {d}")
    if dim is None:
        return 1000 if d >= 2048 else 512 if d >= 768 else d // 2
    if checks.positive_int(dim, "dim") >= d:
        raise DomainError(f"`dim` must be below the {d} columns of `features`; got {dim}")
    return int(dim)


def _complement(x: FloatArray, dim: int) -> FloatArray:
    """Return the directions of least second moment, all but `dim`."""
    vectors: FloatArray = np.linalg.eigh(x.T @ x / x.shape[0])[1]
    return vectors[:, : x.shape[1] - dim]


# ------------------------------------------------------------------------------------ last layer
def last_layer_of(given: AnyArray, predictions: Predictions, name: str) -> tuple[FloatArray, ...]:
    """Validate (weight (K, d), bias (K,)) of the last layer against features and logits."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise InputError("`last_layer` must be a pair (weight of shape (K, d), bias of shape (K,))")
    weight, bias = (_floats(x, part) for x, part in zip(given, ("weight", "bias"), strict=True))
    d = predictions.features.shape[1]
    if weight.ndim != 2 or weight.shape[1] != d or bias.shape != weight.shape[:1]:
        turned = " Transpose the weight." if weight.shape[:1] == (d,) and weight.ndim == 2 else ""
        raise ShapeError(
            f"`last_layer` must be a weight of shape (K, {d}) and a bias of shape (K,), with "
            f"{d} the columns of `features`; got shapes {weight.shape} and {bias.shape}.{turned}"
        )
    if predictions.class_names and weight.shape[0] != predictions.n_classes:
        raise ShapeError(
            f"`last_layer` has {weight.shape[0]} classes, the predictions {predictions.n_classes}; "
            "give the predictions all of them, in order, as `classes=`"
        )
    if predictions.has_logits:
        _refuse_another_layer(weight, bias, predictions, name)
    return weight, bias


def _floats(x: AnyArray, part: str) -> FloatArray:
    out = to_numpy(x, f"last_layer {part}")
    if out.dtype.kind not in "biuf" or not out.size:
        raise DomainError(
            f"the {part} of `last_layer` must be an array of numbers; got {out.dtype} values"
        )
    return checks.finite(out.astype(np.float64), f"last_layer {part}")


def _refuse_another_layer(
    weight: FloatArray, bias: FloatArray, predictions: Predictions, name: str
) -> None:
    """Refuse a layer that does not make these logits of these features.

    A twentieth of their spread lets half precision pass, and no layer of another model.
    """
    for rows, x in feature_blocks(predictions, weight.shape[1], name, also=2 * weight.shape[0]):
        given = np.asarray(predictions.logits[rows], dtype=np.float64)
        largest = float(np.abs(given).max()) or 1.0
        spread = largest * float((given / largest).std())
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs(x @ weight.T + bias - given).max()
        if not off <= 0.05 * max(spread, 1e-6) + 1e-3 * largest:
            raise InputError(
                f"`last_layer` does not give the logits of these predictions: they differ by up "
                f"to {off:.3g}. The features must be what the last layer takes; drop logits that "
                "were changed afterwards."
            )


def logits_of(x: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """Return the logits of features, (rows, K); non-finite ones are refused with their cause."""
    with np.errstate(over="ignore", invalid="ignore"):
        out: FloatArray = x @ weight.T + bias
    hint = "Its features are too large; rescale them, for fitting too."
    return checks.finite(out, "the logits of the last layer", hint=hint)


_FEATURES = frozenset({FitNeed.FEATURES})

ENTRIES = (
    FittedKind(
        "vim",
        "Virtual-logit matching (ViM)",
        fit_virtual_logit,
        VirtualLogit,
        "the energy of the logits minus a virtual logit: how far the features leave the subspace "
        "in which those of the training data vary most",
        "Wang et al. (2022), https://arxiv.org/abs/2203.10807",
        _FEATURES,
        _FEATURES,
        {"dim": None, "last_layer": None, "centered": False},
    ),
)
