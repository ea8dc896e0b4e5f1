"""Binned calibration errors, which compare the confidence with the accuracy in bins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import (
    as_double_like,
    as_scalar,
    is_numpy,
    namespace,
    value_with_gradient,
    without_gradient,
)
from abstain._foundation.device import validate_weight_like
from abstain._foundation.scored import MetricValue, Scored, validate_samples
from abstain.curves.bin_sums import bin_sums
from abstain.curves.reliability import (
    BINNINGS,
    CONFIDENCE_HINT,
    LOSS_HINT,
    Binning,
    bin_means,
    cached_reliability_curve,
)
from abstain.errors import InputError
from abstain.inference.draws import BLOCK_SIZE, Draws
from abstain.inference.resampled_areas import map_in_threads
from abstain.metrics.classes import class_view_from_probabilities, get_class_view, get_probabilities
from abstain.metrics.entry import (
    DisplayOptions,
    Family,
    Identity,
    Measurement,
    Metric,
    Need,
    value_with_warning,
)
from abstain.typing import AnyArray, Array, FloatArray, IntArray, Scalar

#: Number of probabilities that are binned at once.
_BLOCK = 1 << 20


def compute_ece(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> MetricValue:
    """Compute the mean absolute difference between confidence and accuracy over the bins."""
    curve = cached_reliability_curve(s, bins, binning)
    difference = curve.accuracy - curve.confidence
    return MetricValue(_mean_absolute_difference(curve.weight, difference, curve.total))


def _mean_absolute_difference(
    weight: FloatArray, difference: FloatArray, total_weight: float
) -> Scalar:
    """Return the weighted mean of the absolute differences over the nonempty bins."""
    xp = namespace(weight)
    is_nonempty = weight > 0
    absolute_difference = xp.abs(difference[is_nonempty])
    return as_scalar(xp.sum(absolute_difference * weight[is_nonempty]) / total_weight)


def compute_ece_right_open(s: Scored, bins: int) -> MetricValue:
    """Compute the ECE over bins [a, b), as in the CWSA reference code.

    No bin contains the samples of confidence 1, but the divisor includes their weight.
    """
    # `np.linspace` rounds the edges as the reference code does. The last of the bins + 1 bins
    # contains the samples of confidence 1.
    edges = as_double_like(np.linspace(0.0, 1.0, bins + 1)[1:], s.probability_or_confidence)
    sums = bin_sums(s, edges, side="right")
    mean_confidence, accuracy = bin_means(sums)
    difference = accuracy - mean_confidence
    total_weight = float(namespace(sums.weight).sum(sums.weight))
    value = _mean_absolute_difference(sums.weight[:bins], difference[:bins], total_weight)
    return MetricValue(value)


def compute_mce(s: Scored, bins: int = 15, binning: Binning = "equal_width") -> MetricValue:
    """Compute the largest absolute difference between confidence and accuracy over the bins."""
    curve = cached_reliability_curve(s, bins, binning)
    is_nonempty = curve.weight > 0
    difference = (curve.accuracy - curve.confidence)[is_nonempty]
    return MetricValue(as_scalar(s.xp.max(s.xp.abs(difference))))


def compute_classwise_ece(
    s: Scored, bins: int = 15, binning: Binning = "equal_width"
) -> MetricValue:
    """Compute the mean over classes of the ECE of each class against the rest."""
    view = get_class_view(s)
    # Rounding errors are clipped, because a probability above 1 would be beyond the last bin.
    p = get_probabilities(view)
    p = value_with_gradient(p, namespace(p).clip(without_gradient(p), 0.0, 1.0))
    if is_numpy(p) and binning == "equal_width":
        return MetricValue(_classwise_ece_equal_width(p, view.labels, s.weight, bins))
    total = 0.0
    for k in range(p.shape[1]):
        one_vs_rest = Scored(p[:, k], view.labels != k, s.weight, p[:, k])
        total = total + compute_ece(one_vs_rest, bins, binning).value
    return MetricValue(total / p.shape[1])


def _classwise_ece_equal_width(
    p: FloatArray, labels: IntArray, weight: FloatArray | None, bins: int
) -> float:
    """Compute the class-wise ECE with bins of equal width for blocks of classes."""
    n_samples, n_classes = p.shape
    w = np.ones(n_samples) if weight is None else weight
    # The edges have the precision of the probabilities, as in `equal_width_bins`.
    edges = (np.arange(1, bins) / bins).astype(p.dtype)
    total_difference = 0.0
    block_size = max(_BLOCK // n_samples, 1)
    for start in range(0, n_classes, block_size):
        block = p[:, start : start + block_size]
        n_block_classes = block.shape[1]
        n_cells = bins * n_block_classes
        # One cell for each class and bin.
        cell = np.searchsorted(edges, block, side="left") + bins * np.arange(n_block_classes)
        weighted_p = w[:, None] * block
        expected_weight = np.bincount(cell.ravel(), weighted_p.ravel(), n_cells)
        rows = np.flatnonzero((labels >= start) & (labels < start + n_block_classes))
        cell_of_true_class = cell[rows, labels[rows] - start]
        observed_weight = np.bincount(cell_of_true_class, w[rows], n_cells)
        total_difference += float(np.abs(observed_weight - expected_weight).sum())
    return total_difference / float(w.sum() * n_classes)


#: Number of bins of the ECE in the catalogue.
_DEFAULT_BINS = 15

#: Maximum number of clusters for which the matrix of bins and clusters is dense.
_MAX_DENSE_CLUSTERS = 4096


def ece_replicates(
    scored_sets: Sequence[Scored], draws: Draws, *, threads: int | None = None
) -> FloatArray:
    """Compute the ECE (15 bins of equal width) in every resample, shape (scores, resamples).

    The value is NaN in a resample in which all samples have weight 0.
    """
    matrices = [_difference_matrix(s, draws.cluster) for s in scored_sets]
    first_row_of_cluster = None
    if draws.cluster is not None:
        # The bootstrap draws entire clusters, so one row represents each cluster.
        _, first_row_of_cluster = np.unique(draws.cluster, return_index=True)
        if first_row_of_cluster.size <= _MAX_DENSE_CLUSTERS:
            matrices = [np.vstack([matrix.toarray() for matrix in matrices])]
    replicates = np.empty((len(scored_sets), draws.resamples))

    def compute_block(block: int) -> None:
        row_counts = draws.counts(block)
        if first_row_of_cluster is not None:
            row_counts = row_counts[first_row_of_cluster]
        counts = row_counts.astype(np.float64)
        n_resamples = counts.shape[1]
        sums = np.vstack([matrix @ counts for matrix in matrices])
        sums = sums.reshape(-1, _DEFAULT_BINS + 1, n_resamples)
        absolute_difference = np.abs(sums[:, :-1]).sum(axis=1)
        weight = sums[:, -1]
        block_values = np.full(weight.shape, np.nan)
        np.divide(absolute_difference, weight, out=block_values, where=weight > 0)
        start = BLOCK_SIZE * block
        replicates[:, start : start + n_resamples] = block_values

    map_in_threads(compute_block, range(draws.n_blocks), threads)
    return replicates


def _difference_matrix(s: Scored, cluster: IntArray | None) -> Any:
    """Return the matrix of weight x (accuracy - confidence) by bin and by sample or cluster.

    The sparse matrix has a row for each bin and a last row with the weights. Its columns are the
    samples, or the clusters if `cluster` is passed.
    """
    from scipy.sparse import csr_matrix

    rows = np.arange(s.n_rows) if s.weight is None else np.flatnonzero(s.weight > 0)
    weight = np.ones(rows.size) if s.weight is None else s.weight[rows]
    p = s.probability_or_confidence[rows]
    difference = weight * (1.0 - s.loss[rows].astype(np.float64) - p.astype(np.float64))
    edges = (np.arange(1, _DEFAULT_BINS) / _DEFAULT_BINS).astype(p.dtype)
    bin_index: Array = np.searchsorted(edges, p)
    weight_row = np.full(rows.size, _DEFAULT_BINS)
    column = rows if cluster is None else cluster[rows]
    n_columns = s.n_rows if cluster is None else int(cluster.max()) + 1
    row_index = np.concatenate((bin_index, weight_row))
    column_index = np.concatenate((column, column))
    entries = np.concatenate((difference, weight))
    return csr_matrix((entries, (row_index, column_index)), shape=(_DEFAULT_BINS + 1, n_columns))


Convention = Literal["right_closed", "right_open"]
_CONVENTIONS = ("right_closed", "right_open")


def _checked_scored(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None, bins: int, binning: str
) -> Scored:
    """Validate the arguments of a public function; confidences and losses must lie in [0, 1]."""
    s = validate_samples(confidence, loss, weight, uses_values=True)
    checks.unit_interval(s.confidence, "confidence", hint=CONFIDENCE_HINT)
    checks.unit_interval(s.loss, "loss", hint=LOSS_HINT)
    checks.positive_int(bins, "bins")
    checks.one_of(binning, "binning", BINNINGS)
    return s


def ece(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    bins: int = 15,
    binning: Binning = "equal_width",
    convention: Convention = "right_closed",
    weight: AnyArray | None = None,
) -> float:
    """Compute the expected calibration error (ECE).

    Answers: averaged over bins, how far is the confidence from the accuracy?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence in [0, 1], interpreted as the probability of a correct prediction.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss.
    bins : int, default=15
        Number of bins.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Whether bins have equal width in confidence or about equal weight.
    convention : {"right_closed", "right_open"}, default="right_closed"
        "right_closed" uses bins (a, b], and the first bin also contains 0. "right_open" uses bins
        [a, b), as in the CWSA reference code with ``bins=10``. In the CWSA reference code, no bin
        contains the samples of confidence 1.0, but the divisor n includes them.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a confidence or loss is outside [0, 1], or a weight is
        negative.
    InputError
        If `bins`, `binning` or `convention` is invalid, or right-open bins of equal mass are
        requested.

    Notes
    -----
    Bins of equal mass do not split tied confidences. The value is never NaN. The ECE does not
    measure how well the confidence ranks the samples. For example, a constant confidence that
    equals the accuracy has an ECE of 0. The function makes one pass over the samples, which it
    sorts first for bins of equal mass.

    References
    ----------
    .. [1] Guo et al. (2017), On calibration of modern neural networks, section 2,
       https://arxiv.org/abs/1706.04599

    Examples
    --------
    >>> from abstain.metrics import ece
    >>> round(ece([1.0, 0.9, 0.4, 0.3], [0, 0, 1, 0], bins=2), 4)
    0.1
    """
    s = _checked_scored(confidence, loss, weight, bins, binning)
    if checks.one_of(convention, "convention", _CONVENTIONS) == "right_closed":
        return value_with_warning(compute_ece(s, bins, binning), "ece")
    if binning != "equal_width":
        raise InputError(f"`binning` must be 'equal_width' for right-open bins; got {binning!r}")
    return value_with_warning(compute_ece_right_open(s, bins), "ece")


def mce(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    bins: int = 15,
    binning: Binning = "equal_width",
    weight: AnyArray | None = None,
) -> float:
    """Compute the maximum calibration error (MCE).

    Answers: in the worst bin, how far is the confidence from the accuracy?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        See `ece`.
    bins : int, default=15
        Number of bins.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Whether bins have equal width in confidence or about equal weight.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `ece`.

    Notes
    -----
    The bins are those of `ece`, without empty bins. A bin with one sample can determine the value,
    so the MCE of few samples is large. The cost is that of `ece`.

    References
    ----------
    .. [1] Guo et al. (2017), On calibration of modern neural networks, section 2,
       https://arxiv.org/abs/1706.04599

    Examples
    --------
    >>> from abstain.metrics import mce
    >>> round(mce([1.0, 0.9, 0.4, 0.3], [0, 0, 1, 0], bins=2), 4)
    0.15
    """
    s = _checked_scored(confidence, loss, weight, bins, binning)
    return value_with_warning(compute_mce(s, bins, binning), "mce")


def classwise_ece(
    probabilities: AnyArray,
    labels: AnyArray,
    *,
    bins: int = 15,
    binning: Binning = "equal_width",
    weight: AnyArray | None = None,
) -> float:
    """Compute the class-wise expected calibration error.

    Answers: averaged over bins and classes, how far is the probability of a class from its
    frequency?

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Class probabilities.
    labels : array of shape (n,)
        True class codes from 0 to K - 1; -1 for a sample of an unknown class.
    bins : int, default=15
        Number of bins.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Whether bins have equal width in probability or about equal weight.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **lower is better**. With many classes, most probabilities are near 0, so
        the value is near 0.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If probabilities are negative or do not sum to 1, a label is not a class, or a weight is
        negative.
    InputError
        If `bins` or `binning` is invalid.

    Notes
    -----
    The bins of each class are those of `ece`. For each class, samples of unknown classes count as
    samples of other classes. The mean includes classes without samples. The value is never NaN. The
    running time for K classes is K times that of `ece`.

    References
    ----------
    .. [1] Kull et al. (2019), Beyond temperature scaling, section 2,
       https://arxiv.org/abs/1910.12656

    Examples
    --------
    >>> from abstain.metrics import classwise_ece
    >>> round(classwise_ece([[0.9, 0.1], [0.6, 0.4]], [0, 1], bins=2), 4)
    0.25
    """
    checks.positive_int(bins, "bins")
    checks.one_of(binning, "binning", BINNINGS)
    view = class_view_from_probabilities(probabilities, labels)
    is_error = view.prediction != view.labels
    s = Scored(is_error, is_error, validate_weight_like(weight, view.labels), class_view=view)
    return value_with_warning(compute_classwise_ece(s, bins, binning), "classwise_ece")


_MEASUREMENT = Measurement(
    compute=compute_ece,
    needs=frozenset({Need.UNIT_CONFIDENCE, Need.UNIT_LOSS}),
    rank_based=False,
    monotone=False,
    gradients=frozenset({"loss", "confidence"}),
    no_influence_reason="it is a sum of absolute values over bins, which has no derivative at a "
    "calibrated bin",
)

_ECE = Identity(
    name="ece",
    title="ECE",
    family="calibration",
    lower_is_better=True,
    meaning="Averaged over 15 bins, the confidence differs from the accuracy by {value}.",
    source="Guo et al. (2017), https://arxiv.org/abs/1706.04599",
    convention="15 bins of equal width, (a, b]",
    function="ece(confidence, loss)",
)


def _make_ece(name: str, number: str) -> Metric | None:
    """Return the metric ``ece@{bins}bins``, or None if the number of bins is invalid."""
    bins = int(number) if number.isdecimal() else 0
    if not 1 <= bins <= _MAX_BINS:
        return None
    identity = replace(
        _ECE,
        name=name,
        title=f"ECE in {bins} bins",
        meaning=_ECE.meaning.replace("15 bins", f"{bins} bins"),
        convention=f"{bins} bins of equal width, (a, b]",
        function=f"ece(confidence, loss, bins={bins})",
    )
    return Metric(identity, replace(_MEASUREMENT, compute=lambda s: compute_ece(s, bins)))


#: Maximum number of bins.
_MAX_BINS = 100_000

FAMILIES = (Family("ece@{}bins", _make_ece, ("20",)),)

ENTRIES = (
    Metric(_ECE, replace(_MEASUREMENT, replicates=ece_replicates), DisplayOptions(headline=8)),
    Metric(
        replace(
            _ECE,
            name="ece_equal_mass",
            title="ECE, equal-mass bins",
            meaning="Averaged over 15 bins of equal weight, the confidence differs from the "
            "accuracy by {value}.",
            source="Nguyen and O'Connor (2015), https://arxiv.org/abs/1508.05154",
            convention="15 bins of equal weight, ties kept together",
            function="ece(confidence, loss, binning='equal_mass')",
        ),
        replace(_MEASUREMENT, compute=lambda s: compute_ece(s, binning="equal_mass")),
    ),
    Metric(
        replace(
            _ECE,
            name="mce",
            title="MCE",
            meaning="In the worst of 15 bins, the confidence differs from the accuracy by {value}.",
            function="mce(confidence, loss)",
        ),
        replace(
            _MEASUREMENT,
            compute=compute_mce,
            no_influence_reason="it is a maximum over bins, which has no derivative at ties",
        ),
    ),
    Metric(
        replace(
            _ECE,
            name="classwise_ece",
            title="class-wise ECE",
            meaning="Averaged over bins and classes, the probability of a class differs from its "
            "frequency by {value}.",
            source="Kull et al. (2019), https://arxiv.org/abs/1910.12656",
            function="classwise_ece(probabilities, labels)",
            ignores_confidence=True,  # it depends on the class probabilities only
        ),
        replace(
            _MEASUREMENT,
            compute=compute_classwise_ece,
            needs=frozenset({Need.PROBABILITIES}),
            rank_based=True,
            gradients=frozenset({"probabilities"}),
        ),
    ),
)
