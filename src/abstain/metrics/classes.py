"""Labels and predictions of samples, risk curves of classes, and checks for rare classes."""

from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import (
    as_double,
    as_scalar,
    is_computed_by_own_library,
    is_on_device,
    move_to_library_of,
    namespace,
    to_numpy,
    without_gradient,
)
from abstain._foundation.scored import ClassView, Scored, validate_samples
from abstain._foundation.sorting import sort_descending
from abstain.errors import MissingInputError
from abstain.inference.influence import tail_sums
from abstain.metrics.influences import sample_weights
from abstain.metrics.rank_weights import vertex_area_weights
from abstain.predictions.outputs import validate_class_scores
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray, Scalar


def get_class_view(s: Scored) -> ClassView:
    """Return the labels and predictions of samples, or raise an error if there are no labels."""
    if s.class_view is None:
        raise MissingInputError("labels and predictions are required; got only confidence and loss")
    return s.class_view


def get_probabilities(view: ClassView) -> AnyArray:
    """Return the class probabilities, shape (n, K), or raise an error if there are none."""
    if view.probabilities is not None:
        return view.probabilities
    if view.log_probabilities is None:
        raise MissingInputError(
            "class probabilities or logits are required; got only labels and predictions"
        )
    return namespace(view.log_probabilities).exp(view.log_probabilities)


def log_probability_of_true_class(view: ClassView) -> AnyArray:
    """Return the log-probability of the true class of each sample, shape (n,).

    All labels must be known classes.
    """
    if view.log_probabilities is not None:
        return take_at_class(view.log_probabilities, view.labels)
    likelihood = take_at_class(get_probabilities(view), view.labels)
    with np.errstate(divide="ignore"):
        return namespace(likelihood).log(likelihood)


def take_at_class(values: FloatArray, labels: IntArray) -> AnyArray:
    """Return ``values[i, labels[i]]`` for each row i, shape (n,)."""
    xp = namespace(values)
    n_rows, n_classes = values.shape
    row_index = move_to_library_of(np.arange(n_rows), "rows", labels)
    flat_values = xp.reshape(values, (-1,))
    return xp.take(flat_values, row_index * n_classes + labels)


def is_true_class(labels: IntArray, values: FloatArray) -> AnyArray:
    """Return a mask of shape (n, K) that is True in the column of each label."""
    classes = move_to_library_of(np.arange(values.shape[1]), "classes", labels)
    return labels[:, None] == classes[None, :]


def select_rows(view: ClassView, rows: IntArray) -> ClassView:
    """Return the labels and predictions of the rows with these indices."""
    # A view may compute its probabilities lazily, so read each array once.
    p, log_p = view.probabilities, view.log_probabilities
    xp = namespace(rows)
    return ClassView(
        xp.take(view.labels, rows),
        xp.take(view.prediction, rows),
        view.classes,
        None if p is None else xp.take(p, rows, axis=0),
        None if log_p is None else xp.take(log_p, rows, axis=0),
    )


def class_codes(
    codes: AnyArray, name: str, *, length: int | None = None, classes: int = 0
) -> AnyArray:
    """Validate class codes, which are integers of at least -1 (unknown class).

    `classes` is the number of classes, or 0 if the number is unknown.
    """
    if is_on_device(codes) and _are_class_codes(codes, length, classes):
        xp = namespace(codes)
        return codes if xp.isdtype(codes.dtype, "integral") else xp.astype(codes, xp.int64)
    values = checks.finite(checks.vector(codes, name, length=length, reference="prediction"), name)
    rule = "must be a class code, an integer of at least -1 (unknown class)"
    checks.reject_entries(name, rule, values, (values != np.floor(values)) | (values < -1))
    if classes:
        checks.reject_entries(
            name, f"must be below {classes}, the number of classes", values, values >= classes
        )
    return values.astype(np.int64)


def _are_class_codes(x: AnyArray, length: int | None, classes: int) -> bool:
    """Return whether an array on a device contains valid class codes."""
    xp = namespace(x)
    if x.ndim != 1 or x.shape[0] == 0:
        return False
    if length and x.shape[0] != length:
        return False
    if not xp.isdtype(x.dtype, ("integral", "real floating")):
        return False
    if not xp.isdtype(x.dtype, "integral") and not bool(xp.all(x == xp.floor(x))):
        return False
    if bool(xp.min(x) < -1):
        return False
    return not classes or bool(xp.max(x) < classes)


def class_view_from_predictions(prediction: AnyArray, labels: AnyArray) -> ClassView:
    """Validate the predicted and true class codes of a public function, shape (n,)."""
    predicted = class_codes(prediction, "prediction")
    true_codes = class_codes(labels, "labels", length=int(predicted.shape[0]))
    true_codes = move_codes(true_codes, predicted)
    xp = namespace(predicted)
    n_classes = int(max(xp.max(true_codes), xp.max(predicted))) + 1
    return ClassView(true_codes, predicted, tuple(range(n_classes)))


def move_codes(codes: IntArray, reference: AnyArray) -> AnyArray:
    """Convert class codes to the array library and device of `reference`."""
    if isinstance(reference, np.ndarray):
        return to_numpy(codes, "labels")
    return move_to_library_of(codes, "labels", reference)


def class_view_from_probabilities(probabilities: AnyArray, labels: AnyArray) -> ClassView:
    """Validate the class probabilities (n, K) and true class codes (n,) of a public function."""
    keep_library = is_computed_by_own_library(probabilities)
    scores = validate_class_scores(None, probabilities, keep_library=keep_library)
    n_rows, n_classes = scores.values.shape
    true_codes = class_codes(labels, "labels", length=n_rows, classes=n_classes)
    classes = tuple(range(n_classes))
    if not keep_library:
        log_p = scores.log_probabilities()
        return ClassView(true_codes, log_p.argmax(axis=1), classes, np.exp(log_p), log_p)
    xp = namespace(scores.values)
    p = as_double(scores.values)
    p = p / xp.sum(p, axis=1, keepdims=True)
    predicted = xp.argmax(without_gradient(p), axis=1)
    return ClassView(move_codes(true_codes, predicted), predicted, classes, p)


def scored_with_classes(confidence: AnyArray, view: ClassView, weight: AnyArray | None) -> Scored:
    """Create samples from a validated confidence, labels and predictions.

    The loss is 1 for a wrong prediction and 0 for a correct one. All arrays are moved to the device
    of the confidence, without gradients.
    """
    c = without_gradient(confidence)

    def move(x: AnyArray, name: str) -> AnyArray:
        x = without_gradient(x)
        return move_to_library_of(x, name, c) if is_on_device(c) else to_numpy(x, name)

    labels = move(view.labels, "labels")
    prediction = move(view.prediction, "prediction")
    s = validate_samples(c, prediction != labels, weight)
    # A view may compute its probabilities lazily, so read each array once.
    p, log_p = view.probabilities, view.log_probabilities
    view_of_samples = ClassView(
        s.select_samples(labels),
        s.select_samples(prediction),
        view.classes,
        None if p is None else s.select_samples(move(p, "probabilities")),
        None if log_p is None else s.select_samples(move(log_p, "probabilities")),
    )
    return replace(s, class_view=view_of_samples)


def weighted_mean(values: FloatArray, weight: FloatArray | None) -> Scalar:
    """Return the weighted mean of `values`, shape (n,)."""
    xp = namespace(values)
    if weight is None:
        return as_scalar(xp.mean(values))
    return as_scalar(xp.sum(values * weight) / xp.sum(weight))


@dataclass(frozen=True, eq=False)
class ClassCells:
    """Samples sorted by class and, within a class, by decreasing confidence (NumPy only).

    A cell contains all samples of one class with the same confidence, so that the curve of a class
    has one point per cell. Samples of weight 0 are excluded.
    """

    #: Shape (n,). Indices of the rows in sorted order.
    rows: Array | slice
    #: Shape (n,). Index of the cell of each row.
    cell_of_row: Array
    #: Shape (c,). Index of the tie group and of the class of each cell. Classes without samples
    #: have no index.
    group: Array
    class_of_cell: Array
    #: Shape (c,). Cumulative weight and loss of the class, each cell included.
    through: FloatArray
    loss_through: FloatArray
    #: Shape (k,). Kish's effective sample size of each class.
    n_effective: FloatArray

    @classmethod
    def from_samples(cls, s: Scored) -> "ClassCells":
        """Sort samples into cells."""
        labels = get_class_view(s).labels
        rows, group = _rows_by_class_and_confidence(s, labels)
        codes = labels[rows]
        starts_class = np.append(True, codes[1:] != codes[:-1])
        starts_cell = starts_class | np.append(True, group[1:] != group[:-1])
        first_row_of_cell = np.flatnonzero(starts_cell)
        cell_starts_class = starts_class[first_row_of_cell]
        first_cell_of_class = np.flatnonzero(cell_starts_class)
        first_row_of_class = first_row_of_cell[first_cell_of_class]
        weighted_loss = s.loss[rows].astype(np.float64)
        weight = np.ones(weighted_loss.size) if s.weight is None else s.weight[rows]
        weighted_loss *= weight
        n_effective: FloatArray = np.add.reduceat(weight, first_row_of_class)
        if not s.has_unit_weights:
            squared_weight = np.add.reduceat(weight * weight, first_row_of_class)
            n_effective = n_effective**2 / squared_weight
        cell_weight = np.add.reduceat(weight, first_row_of_cell)
        cell_loss = np.add.reduceat(weighted_loss, first_row_of_cell)
        return cls(
            rows=rows,
            cell_of_row=np.cumsum(starts_cell, dtype=np.int32) - 1,
            group=group[first_row_of_cell],
            class_of_cell=np.cumsum(cell_starts_class, dtype=np.int32) - 1,
            through=_cumsum_by_segment(cell_weight, first_cell_of_class),
            loss_through=_cumsum_by_segment(cell_loss, first_cell_of_class),
            n_effective=n_effective,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes with samples."""
        return int(self.class_of_cell[-1]) + 1

    @property
    def risk(self) -> FloatArray:
        """Selective risk of the class at each cell."""
        return self.loss_through / self.through

    @property
    def is_last_of_class(self) -> BoolArray:
        """Whether each cell is the last of its class."""
        return np.append(self.class_of_cell[1:] != self.class_of_cell[:-1], True)

    @property
    def class_weight(self) -> FloatArray:
        """Weight of each class, shape (k,)."""
        return np.asarray(self.through[self.is_last_of_class])

    @property
    def coverage(self) -> FloatArray:
        """Accepted share of the class at each cell."""
        return np.asarray(self.through / self.class_weight[self.class_of_cell])

    @property
    def loss(self) -> FloatArray:
        """Total loss of each cell."""
        previous = np.append(0.0, self.loss_through[:-1])
        is_first_of_class = np.append(True, self.is_last_of_class[:-1])
        return self.loss_through - np.where(is_first_of_class, 0.0, previous)

    @property
    def balance_factor(self) -> FloatArray:
        """Factor W/(K W_k) of each cell, which gives equal weight to all K classes.

        W is the weight of all samples, and W_k is the weight of the class.
        """
        class_weight = self.class_weight
        factor = class_weight.sum() / (self.n_classes * class_weight)
        return np.asarray(factor[self.class_of_cell])

    def difference_to_next(self, group_values: FloatArray) -> FloatArray:
        """Return the value of each cell minus the value of the next cell of its class.

        The value of a cell is the value of its tie group. After the last cell, the value is 0.
        """
        value = group_values[self.group]
        next_value = np.where(self.is_last_of_class, 0.0, np.append(value[1:], 0.0))
        return value - next_value

    def sum_from_cell(self, x: FloatArray) -> FloatArray:
        """Return the sum of x over each cell and all later cells of its class."""
        last_cells = np.flatnonzero(self.is_last_of_class)[::-1]
        reversed_starts = x.size - 1 - last_cells
        return _cumsum_by_segment(x[::-1], reversed_starts)[::-1]


def class_cells(s: Scored) -> ClassCells:
    """Return the cells of the samples, which are computed once for all metrics."""
    return s.class_rows.cached(ClassCells.from_samples)


def _rows_by_class_and_confidence(s: Scored, labels: IntArray) -> tuple[Array | slice, Array]:
    """Sort the rows with positive weight by class and by decreasing confidence.

    The function returns the indices of the sorted rows and the tie group of each sorted row.
    """
    if s.precomputed_group_index is not None:
        # The rows of `Scored.class_rows` are already in this order.
        return slice(None), s.precomputed_group_index
    has_weight = None if s.weight is None else s.weight > 0
    by_confidence = sort_descending(s.confidence, has_weight)
    group_numbers = np.arange(by_confidence.group_ends.size, dtype=np.int32)
    group = np.repeat(group_numbers, by_confidence.group_sizes)
    codes = labels[by_confidence.order]
    if 0 <= codes.min() + 1 <= codes.max() < _MAX_COUNTING_SORT:
        # NumPy sorts 16-bit integers by counting (radix sort).
        codes = codes.astype(np.int16)
    by_class = np.argsort(codes, kind="stable")
    return by_confidence.order[by_class].astype(np.int32), group[by_class]


#: Class codes below this number fit into 16 bits.
_MAX_COUNTING_SORT = 1 << 15


def _cumsum_by_segment(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return cumulative sums that restart at each index of `starts`."""
    sums: FloatArray = np.cumsum(values)
    sum_before_segment = sums[starts] - values[starts]
    sums -= np.repeat(sum_before_segment, np.diff(starts, append=values.size))
    return sums


#: Minimum effective number of failures for an interval, including one pseudo-count per class.
MIN_FAILURES = 20

#: Minimum effective number of failures or successes, whichever is smaller, for an interval of the
#: balanced accuracy. The number includes one pseudo-count per class.
MIN_OF_EITHER_KIND = 5

#: Maximum share of the variance that the estimate misses because classes have few samples.
MAX_UNSEEN_SHARE = 0.2

#: Minimum number of accepted samples of a class for a reliable risk of the class.
FEW_ACCEPTED = 5

#: Maximum share of the variance from thresholds with fewer than `FEW_ACCEPTED` samples of one
#: class.
MAX_EARLY_SHARE = 0.15

#: Maximum share of the variance from thresholds with fewer than `FEW_ACCEPTED` samples, summed over
#: all classes.
MAX_TOTAL_EARLY_SHARE = 0.5


def reason_few_failures_of_class(s: Scored) -> str:
    """Return the reason why rare classes prevent an interval, or an empty string.

    If only the total number of failures is small, the interval contains a warning instead.
    """
    cells = class_cells(s)
    rows = s.class_rows
    counts = np.ones(rows.n_rows) if rows.row_counts is None else rows.row_counts
    n_failures_of_row = np.where(rows.loss > 0, counts, 0.0)[cells.rows]
    class_of_row = cells.class_of_cell[cells.cell_of_row]
    # One failure is added to each class, because a class without failures would have no variance.
    n_failures = sum_by_index(class_of_row, n_failures_of_row, cells.n_classes) + 1.0
    # The error rate of a class of m samples with f failures has a variance of about f/m^2.
    n_effective = _n_effective_of_sum(n_failures / cells.n_effective**2, n_failures)
    if n_effective < min(MIN_FAILURES, n_failures.sum() / 2):
        return _reason_too_few(n_effective, "failures", MIN_FAILURES)
    n_successes = np.maximum(cells.n_effective + 2.0 - n_failures, 1.0)
    return _reason_unseen_variance(n_failures, n_successes, cells.n_effective)


def reason_few_of_either_kind(s: Scored) -> str:
    """Return the reason why the balanced accuracy has no reliable interval, or an empty string.

    The interval is unreliable if rare classes have too few failures or too few successes.
    """
    view = get_class_view(s)
    all_weights = sample_weights(s)
    has_class = (view.labels >= 0) & (all_weights > 0)
    labels = view.labels[has_class]
    weight = all_weights[has_class]
    is_error = np.asarray(view.prediction[has_class] != labels, np.float64)
    # A row of a stream represents as many samples as its weight.
    squared_weight = weight if s.has_unit_weights else weight**2
    weight_by_class = np.bincount(labels, weight)
    is_present = weight_by_class > 0
    class_weight = weight_by_class[is_present]
    error_rate = np.bincount(labels, weight * is_error)[is_present] / class_weight
    size = class_weight**2 / np.bincount(labels, squared_weight)[is_present]
    # One failure and one success are added to each class.
    n_failures = error_rate * size + 1.0
    n_successes = (1.0 - error_rate) * size + 1.0
    # The rarer outcome determines the precision of the variance of a class.
    n_rarer = np.minimum(n_failures, n_successes)
    variance = n_failures * n_successes / (size + 2.0) / size**2
    n_effective = _n_effective_of_sum(variance, n_rarer)
    if n_effective < min(MIN_OF_EITHER_KIND, n_rarer.sum() / 2):
        return _reason_too_few(n_effective, "failures or successes", MIN_OF_EITHER_KIND)
    return _reason_unseen_variance(n_failures, n_successes, size)


def _n_effective_of_sum(variance: FloatArray, counts: FloatArray) -> float:
    """Return the effective number of counts for a sum of variances by Satterthwaite's rule."""
    return float(variance.sum() ** 2 / np.sum(variance**2 / counts))


def _reason_too_few(n_effective: float, kinds: str, n_required: int) -> str:
    """Return a message about rare classes, whose numbers exclude the pseudo-count."""
    n_observed = max(int(n_effective - 1.0), 0)
    return (
        f"a class is too rare: the variance is based on about {n_observed} "
        f"{kinds}; intervals and tests need at least {n_required - 1}"
    )


def _reason_unseen_variance(
    n_failures: FloatArray, n_successes: FloatArray, size: FloatArray
) -> str:
    """Return a message if small classes cause an underestimated variance, or an empty string.

    The arrays contain one entry per class, and the counts include one pseudo-count.
    """
    variance = n_failures * n_successes / (size + 2.0) / size**2
    # The variance estimate from m samples is too small by the share 1/m on average.
    unseen = float(np.sum(variance / size) / variance.sum())
    if unseen <= MAX_UNSEEN_SHARE:
        return ""
    return (
        f"classes are too rare: their few samples miss about {100 * unseen:.0f}% of the variance; "
        f"intervals and tests allow {100 * MAX_UNSEEN_SHARE:.0f}%"
    )


def reason_late_start_of_class(s: Scored) -> str:
    """Return a message if the selective risk of a rare class is too uncertain, or an empty string.

    The risk is uncertain at thresholds that accept few samples of the class.
    """
    cells = class_cells(s)
    groups = s.class_rows.groups
    loss_variance = _loss_variance_by_class(s, cells)
    n_accepted = cells.coverage * cells.n_effective[cells.class_of_cell]
    coverage = groups.cumulative_weight[cells.group] / groups.total_weight
    area_weight = np.append(tail_sums(vertex_area_weights(groups)), 0.0)
    width = cells.difference_to_next(area_weight)
    # The risk of a class with j accepted samples and loss variance v has the variance v/j. At the
    # coverage F, the class contributes 2 F v/j to the variance of the area.
    variance = 2 * loss_variance[cells.class_of_cell] * width * coverage / n_accepted
    # Before the first sample of a class, its risk is unknown and counts as 0. This causes an error
    # of about sqrt(v) F.
    is_first = np.append(True, cells.is_last_of_class[:-1])
    start = coverage[is_first] - groups.weight[cells.group[is_first]] / groups.total_weight
    variance_before_start = loss_variance * start**2
    total = float(variance.sum() + variance_before_start.sum())
    if total == 0:
        # All losses are 0.
        return ""
    early_variance = np.where(n_accepted < FEW_ACCEPTED, variance, 0.0)
    early_by_class = np.bincount(
        cells.class_of_cell, weights=early_variance, minlength=cells.n_classes
    )
    early_by_class = early_by_class + variance_before_start
    share = early_by_class.sum() / total
    # The errors of m similar classes average out, so their share is divided by sqrt(m).
    share_in_one_class = np.sqrt(np.sum(early_by_class**2)) / total
    if share_in_one_class <= MAX_EARLY_SHARE and share <= MAX_TOTAL_EARLY_SHARE:
        return ""
    return (
        f"a class is too rare: {100 * share:.0f}% of the variance comes from coverages at which "
        f"fewer than {FEW_ACCEPTED} samples of it are accepted"
    )


def _loss_variance_by_class(s: Scored, cells: ClassCells) -> FloatArray:
    """Return the variance of the loss in each class.

    Two pseudo-samples, one with loss 0 and one with the largest loss, are added to each class.
    """
    rows = s.class_rows
    loss = rows.loss.astype(np.float64)
    weight = sample_weights(rows)
    max_loss = float(loss[weight > 0].max())
    class_of_row = cells.class_of_cell[cells.cell_of_row]
    scale = cells.n_effective / cells.class_weight
    loss_sum = np.bincount(class_of_row, weights=(weight * loss)[cells.rows]) * scale
    square_sum = np.bincount(class_of_row, weights=(weight * loss**2)[cells.rows]) * scale
    n = cells.n_effective + 2
    mean = (loss_sum + max_loss) / n
    return np.asarray((square_sum + max_loss**2) / n - mean**2)
