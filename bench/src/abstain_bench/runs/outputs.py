"""`Outputs`: all that confidence scores may know of a trained network's answers."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import sealed
from abstain.errors import DomainError, InputError, ShapeError
from abstain.predictions import Predictions
from abstain.predictions.softmax import log_mean_probabilities, log_softmax, row_blocks
from abstain.typing import AnyArray, Array, FloatArray, IntArray

__all__ = ["Outputs", "ensemble_outputs"]

#: The label of a picture of no known class, which no answer is right for.
UNKNOWN = -1

_AXES = {
    "logits": "(n, K)",
    "features": "(n, d)",
    "samples": "(n, S, K)",
    "confidence": "(n,)",
    "sample_confidence": "(n, S)",
}


@dataclass(frozen=True, eq=False, repr=False)
class Outputs:
    """What one trained network says of n pictures: arrays on the host, read-only.

    Attributes
    ----------
    logits : float32 ndarray of shape (n, K)
        Class logits of the objective, without the class "abstain". Half precision is widened;
        float64 is kept.
    labels : int64 ndarray of shape (n,)
        The true classes; -1 for a picture of no known class.
    places : int64 ndarray of shape (n,)
        Which picture of the source each is. Copies of one share it.
    features : float32 ndarray of shape (n, d) or None
        What the last layer sees, with dropout off.
    samples : float32 ndarray of shape (n, S, K) or None
        Class logits of S >= 2 passes with dropout on, or of the members of an ensemble.
    confidence : float64 ndarray of shape (n,) or None
        The objective's own confidence, higher is more trusted; None where that is a function of
        the logits.
    sample_confidence : float64 ndarray of shape (n, S) or None
        The own confidence of each pass or member.

    Raises
    ------
    ShapeError
        Axes or lengths that do not go together, or no picture at all.
    DomainError
        NaN, infinities, labels that are neither a class nor -1, or places that are not whole.

    See Also
    --------
    abstain_bench.runs.passes.outputs_of : From a trained network.
    ensemble_outputs : From several.

    Examples
    --------
    >>> from abstain_bench.runs.outputs import Outputs
    >>> out = Outputs([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]], labels=[0, 0, -1], places=[4, 5, 9])
    >>> out.n, out.predictions().correct.tolist()
    (3, [True, False, False])
    >>> out.subset([2]).places.tolist()
    [9]
    """

    logits: FloatArray
    labels: IntArray
    places: IntArray
    features: FloatArray | None = None
    samples: FloatArray | None = None
    confidence: FloatArray | None = None
    sample_confidence: FloatArray | None = None

    def __post_init__(self) -> None:
        logits = _numbers(self.logits, "logits", None)
        n, classes = logits.shape
        if classes < 2:
            raise ShapeError(f"`logits` must have at least two classes; got shape {logits.shape}")
        own: dict[str, Any] = {
            "logits": logits,
            "labels": _labels(self.labels, n, classes),
            "places": _whole(self.places, "places", n),
        }
        for name in ("features", "samples", "confidence", "sample_confidence"):
            given = getattr(self, name)
            own[name] = None if given is None else _numbers(given, name, n)
        _refuse_unequal(own["samples"], own["sample_confidence"], classes)
        for name, array in own.items():
            object.__setattr__(self, name, None if array is None else sealed(array))

    def __repr__(self) -> str:
        """Say what is there, not the numbers."""
        there = {f.name: getattr(self, f.name) for f in fields(self)}
        shapes = [f"{name}={x.shape}" for name, x in there.items() if x is not None]
        return f"Outputs({', '.join(shapes)})"

    @property
    def n(self) -> int:
        """Number of pictures."""
        return len(self.logits)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.logits.shape[1])

    def predictions(self) -> Predictions:
        """Return the record that scores and metrics start from."""
        own = None if self.confidence is None else {"own": self.confidence}
        return Predictions(
            logits=self.logits,
            labels=self.labels,
            features=self.features,
            logit_samples=self.samples,
            confidence=own,
            unknown_label=UNKNOWN,
        )

    def subset(self, rows: AnyArray) -> "Outputs":
        """Return some of the pictures."""
        chosen = _rows(np.asarray(rows), self.n)
        there = ((f.name, getattr(self, f.name)) for f in fields(self))
        kept: dict[str, Any] = {name: x[chosen] for name, x in there if x is not None}
        return Outputs(**kept)


def ensemble_outputs(members: Sequence[Outputs]) -> Outputs:
    """Average what several networks say of the same pictures: a deep ensemble.

    Notes
    -----
    The mean is taken in log space and float64, so that no probability vanishes.

    References
    ----------
    .. [1] Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation
       using deep ensembles, https://arxiv.org/abs/1612.01474

    Examples
    --------
    >>> from abstain_bench.runs.outputs import Outputs, ensemble_outputs
    >>> one = Outputs([[0.0, 0.0]], labels=[0], places=[0])
    >>> two = Outputs([[50.0, 0.0]], labels=[0], places=[0])
    >>> both = ensemble_outputs([one, two])
    >>> both.logits.round(4).tolist(), both.samples.shape
    ([[-0.2877, -1.3863]], (1, 2, 2))
    """
    members = list(members)
    if len(members) < 2:
        raise InputError(f"`members` must hold at least two outputs; got {len(members)}")
    _refuse_other_pictures(members)
    first = members[0]
    logits = np.stack([member.logits for member in members], axis=1)
    mean = np.empty((first.n, first.classes), dtype=first.logits.dtype)
    for rows in row_blocks(first.n, len(members) * first.classes):
        mean[rows] = log_mean_probabilities(log_softmax(logits[rows].astype(np.float64)))
    own = [member.confidence for member in members if member.confidence is not None]
    each = np.stack(own, axis=1) if len(own) == len(members) else None
    return Outputs(mean, first.labels, first.places, samples=logits, sample_confidence=each)


def _refuse_other_pictures(members: list[Outputs]) -> None:
    first = members[0]
    for number, member in enumerate(members[1:], start=2):
        pairs: dict[str, tuple[Any, Any]] = {
            "shape of the logits": (member.logits.shape, first.logits.shape),
            "`labels`": (member.labels, first.labels),
            "`places`": (member.places, first.places),
        }
        for what, (found, expected) in pairs.items():
            if not np.array_equal(found, expected):
                raise InputError(
                    f"members of an ensemble must have answered about the same pictures; the "
                    f"{what} of member {number} and of member 1 differ"
                )


def checked_samples(samples: Any) -> None:
    """Refuse numbers of passes that no score can use."""
    is_whole = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    if not is_whole or samples < 0 or samples == 1:
        raise InputError(
            f"`samples` must be 0 (no passes with dropout) or at least 2; got {samples!r}"
        )


def _numbers(x: AnyArray, name: str, n: int | None) -> Array:
    """Return finite numbers of the right axes: float32 or wider, own confidences float64."""
    out, axes = np.asarray(x), _AXES[name]
    if out.ndim != axes.count(",") + (not axes.endswith(",)")) or not out.size:
        raise ShapeError(f"`{name}` must have shape {axes} and no empty axis; got {out.shape}")
    if n is not None and len(out) != n:
        raise ShapeError(
            f"`{name}` must have one row for each of the {n} rows of `logits`; got {len(out)}"
        )
    if out.dtype.kind not in "iuf":
        raise DomainError(f"`{name}` must hold numbers; got {out.dtype}")
    double = "confidence" in name or out.dtype.kind != "f" or out.dtype.itemsize > 4
    finite = checks.finite(out, name, hint="Did the training diverge?")
    return finite.astype(np.float64 if double else np.float32, copy=False)


def _whole(x: AnyArray, name: str, n: int) -> Array:
    """Return one whole number a picture."""
    out = checks.vector(x, name, length=n, like="logits")
    if out.dtype.kind not in "iu":
        raise DomainError(f"`{name}` must hold whole numbers; got {out.dtype}")
    return out.astype(np.int64, copy=False)


def _labels(x: AnyArray, n: int, classes: int) -> Array:
    """Return one class a picture, or -1."""
    out = _whole(x, "labels", n)
    rule = f"must lie in 0 to {classes - 1}, or be -1 (of no known class)"
    checks.refuse("labels", rule, out, (out < UNKNOWN) | (out >= classes))
    return out


def _refuse_unequal(samples: Array | None, own: Array | None, classes: int) -> None:
    """Refuse samples and their own confidences that do not go together."""
    if samples is not None and (samples.shape[1] < 2 or samples.shape[2] != classes):
        raise ShapeError(
            f"`samples` must have shape (n, S, {classes}), S at least 2; got {samples.shape}"
        )
    if own is not None and (samples is None or own.shape != samples.shape[:2]):
        found = "none" if samples is None else samples.shape
        raise ShapeError(f"`sample_confidence` {own.shape} must go with `samples`; got {found}")


def _rows(x: Array, n: int) -> Array:
    """Return which pictures are meant, as indices."""
    if x.dtype.kind == "b":
        checks.vector(x, "rows", length=n, like="logits")
        x = np.flatnonzero(x)
    if x.ndim != 1 or not x.size:
        raise ShapeError(
            f"`rows` must keep at least one picture, as indices or a mask; got {x.shape}"
        )
    if x.dtype.kind not in "iu":
        raise DomainError(f"`rows` must be whole numbers or a mask; got {x.dtype}")
    checks.refuse("rows", f"must index the {n} pictures", x, (x < -n) | (x >= n))
    return x
