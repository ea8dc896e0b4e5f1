"""ViM: the energy of the logits minus a virtual logit, how far features leave their subspace."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.records import ClassNames, NotNegative, axes
from abstain.confidence._entry import ConfidenceScore
from abstain.confidence._fit_data import (
    confidences,
    doubles,
    feature_blocks,
    last_layer,
    logits_of,
    refuse_extreme,
    refuse_other_classes,
)
from abstain.confidence.fitted import FittedScore, option_name
from abstain.confidence.logit_scores import max_logit, negative_energy
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, Array, FloatArray


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
    alpha: NotNegative
    weight: Annotated[FloatArray, axes("K", "d")] | None
    bias: Annotated[FloatArray, axes("K")] | None

    def __post_init__(self) -> None:
        """Check every field, and that the last layer is whole."""
        super().__post_init__()
        if (self.weight is None) != (self.bias is None):
            missing = "weight" if self.weight is None else "bias"
            msg = f"`{missing}` is missing; a last layer has a weight and a bias"
            raise InputError(msg)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        if self.weight is None and not predictions.has_logits:
            msg = f"the score {self.name!r} needs logits, since it was fitted without a last layer"
            raise MissingInputError(msg)
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
    predictions: Predictions, *, dim: Any, last_layer: AnyArray | None
) -> VirtualLogit:
    """Fit the subspace and the scale of the virtual logit."""
    x = doubles(predictions)
    dim_used = _dimension(dim, x.shape[1])
    weight, bias, logits = _outputs(predictions, x, last_layer)
    origin = x.mean(axis=0) if weight is None or bias is None else -np.linalg.pinv(weight) @ bias
    away = x - origin
    # A last layer of tiny weights has its origin far off.
    refuse_extreme(away)
    complement = _complement(away, dim_used)
    far = float(residual(away, complement).mean())
    if far <= 1e-12 * float(np.abs(x).max()):
        msg = (
            f"the features lie in their principal subspace of {dim_used} dimensions, so nothing "
            "is left for a virtual logit; pass a smaller `dim`"
        )
        raise DomainError(msg)
    top = float(max_logit(logits).mean())
    if top <= 0:
        msg = (
            "the mean of the largest logit must be above 0 to scale the virtual logit; got "
            f"{top:.6g}. Pass raw logits, not logarithms of probabilities."
        )
        raise DomainError(msg)
    return VirtualLogit(
        name=option_name("vim", dim=(dim, None)),
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
        weight, bias = last_layer(given, predictions, "vim")
        return weight, bias, logits_of(x, weight, bias)
    if not predictions.has_logits:
        msg = "the score 'vim' needs logits, or the last layer: `last_layer=(weight, bias)`"
        raise MissingInputError(msg)
    return None, None, predictions.logits


def _dimension(dim: Any, d: int) -> int:
    """Return the dimension of the principal subspace: the authors' rule where none is asked for."""
    if d < 2:
        msg = f"the score 'vim' needs at least 2 columns of `features`; got {d}"
        raise DomainError(msg)
    if dim is None:
        return 1000 if d >= 2048 else 512 if d >= 768 else d // 2
    if checks.positive_int(dim, "dim") >= d:
        msg = f"`dim` must be below the {d} columns of `features`; got {dim}"
        raise DomainError(msg)
    return int(dim)


def _complement(x: FloatArray, dim: int) -> FloatArray:
    """Return the directions of least second moment, all but `dim`."""
    vectors: FloatArray = np.linalg.eigh(x.T @ x / x.shape[0])[1]
    return vectors[:, : x.shape[1] - dim]
