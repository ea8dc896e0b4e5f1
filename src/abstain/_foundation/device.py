"""Tie groups and areas of arrays that live on a device: sorted there, only the result comes home.

Written against the array API, so that PyTorch on CUDA, CuPy, and in the tests PyTorch on the
CPU and array_api_strict, all run the same lines.
"""

from typing import Any, NamedTuple

from abstain._foundation import checks
from abstain._foundation.arrays import beside, is_on_device, namespace, to_numpy
from abstain._foundation.packed import Areas, area_sums
from abstain._foundation.ranks import TieGroups
from abstain.typing import AnyArray


class _Samples(NamedTuple):
    """Validated arrays of one library on one device, and its namespace."""

    xp: Any
    confidence: Any
    loss: Any
    weight: Any


class _Groups(NamedTuple):
    """What `TieGroups` holds, still on the device."""

    confidence: Any
    weight: Any
    loss: Any
    count: Any


def group_ties_on_device(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
) -> TieGroups:
    """Validate and group samples where they lie; bring the groups to the host.

    Parameters
    ----------
    confidence : array of shape (n,)
        Of any array-API library; decides the device.
    loss : array of shape (n,)
        Of the same library or on the host.
    weight : array of shape (n,) or None
        Likewise; samples of weight 0 are left out.

    Returns
    -------
    TieGroups
        NumPy arrays.
    """
    groups = _grouped(_validated(confidence, loss, weight))
    return TieGroups(*(to_numpy(part, "confidence") for part in groups))


def areas_on_device(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None) -> Areas:
    """Validate, sort and integrate where the samples lie; bring five numbers to the host.

    Parameters
    ----------
    confidence : array of shape (n,)
        Of any array-API library; decides the device.
    loss : array of shape (n,)
        Of the same library or on the host.
    weight : array of shape (n,) or None
        Likewise.

    Returns
    -------
    Areas
        Python numbers.
    """
    samples = _validated(confidence, loss, weight)
    xp = samples.xp
    groups = _grouped(samples)
    aurc, augrc = area_sums(xp, groups.weight, groups.loss)
    return Areas(
        aurc,
        augrc,
        float(xp.sum(groups.loss)) / float(xp.sum(groups.weight)),
        int(samples.confidence.shape[0]),
        int(xp.count_nonzero(samples.loss)),
        int(xp.sum(groups.count[groups.count > 1])),
    )


def _validated(confidence: AnyArray, loss: AnyArray, weight: AnyArray | None) -> _Samples:
    xp = namespace(confidence)
    # Checked on the host where they are there: text would make the library of the device fail.
    loss = beside(loss if is_on_device(loss) else checks.loss(loss), "loss", confidence)
    weight = None if weight is None else beside(_numbers(weight), "weight", confidence)
    if not _sound(xp, confidence, loss, weight):
        # The host's checks find the first offending entry and say what is wrong with it.
        host = checks.confidence(to_numpy(confidence, "confidence"))
        checks.loss(to_numpy(loss, "loss"), length=host.size)
        checks.weight(weight, length=host.size)
    if not xp.isdtype(confidence.dtype, "real floating"):
        confidence = xp.astype(confidence, xp.float64)
    elif xp.finfo(confidence.dtype).bits < 32:
        confidence = xp.astype(confidence, xp.float32)
    loss = xp.astype(loss, xp.float64)
    return _Samples(
        xp, confidence, loss, weight if weight is None else xp.astype(weight, xp.float64)
    )


def _numbers(weight: AnyArray) -> AnyArray:
    return weight if is_on_device(weight) else checks.vector(weight, "weight")


def _sound(xp: Any, confidence: Any, loss: Any, weight: Any) -> bool:
    """Tell whether the arrays obey every rule, without bringing them to the host."""
    given = [x for x in (confidence, loss, weight) if x is not None]
    if any(x.ndim != 1 or x.shape != confidence.shape for x in given) or confidence.shape[0] == 0:
        return False
    kinds = ("bool", "real floating", "integral")
    if not all(xp.isdtype(x.dtype, kinds) and _finite(xp, x) for x in given):
        return False
    signed = [x for x in given[1:] if not xp.isdtype(x.dtype, "bool")]
    return not any(bool(xp.any(x < 0)) for x in signed) and (
        weight is None or bool(xp.any(weight != 0))
    )


def _finite(xp: Any, x: Any) -> bool:
    return not xp.isdtype(x.dtype, "real floating") or bool(xp.all(xp.isfinite(x)))


def _grouped(samples: _Samples) -> _Groups:
    xp, confidence, loss, weight = samples
    if weight is not None:
        kept = weight > 0
        confidence, loss, weight = confidence[kept], loss[kept], weight[kept]
    order = xp.argsort(confidence, descending=True)
    confidence, loss = xp.take(confidence, order), xp.take(loss, order)
    weight = None if weight is None else xp.take(weight, order)
    n = confidence.shape[0]
    inner = xp.nonzero(confidence[1:] != confidence[:-1])[0]
    last = xp.concat((inner, beside([n - 1], "confidence", inner)))
    count = _steps(xp, last + 1)
    if weight is None:
        total = xp.astype(count, xp.float64)
    else:
        loss = loss * weight
        total = _summed(xp, weight, last, count)
    return _Groups(xp.take(confidence, last), total, _summed(xp, loss, last, count), count)


def _summed(xp: Any, x: Any, last: Any, count: Any) -> Any:
    """Sum `x` within groups that end at `last`."""
    mass = _steps(xp, xp.take(xp.cumulative_sum(x), last))
    # A difference of long sums is rounded: a sample alone is known exactly, no sum is below 0.
    return xp.where(count == 1, xp.take(x, last), xp.where(mass > 0, mass, xp.zeros_like(mass)))


def _steps(xp: Any, x: Any) -> Any:
    return xp.concat((x[:1], x[1:] - x[:-1]))
