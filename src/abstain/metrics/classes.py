"""Labels and predictions of samples, sums by class and tie group, checks for rare classes."""

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
    """Return the class view of a `Scored` that meets `Need.CLASSES`."""
    if s.class_view is None:
        raise MissingInputError("labels and predictions are required; got only confidence and loss")
    return s.class_view


def get_probabilities(view: ClassView) -> AnyArray:
    """Return the class probabilities (n, K) of a view that meets `Need.PROBABILITIES`."""
    if view.probabilities is not None:
        return view.probabilities
    if view.log_probabilities is None:
        raise MissingInputError(
            "class probabilities or logits are required; got only labels and predictions"
        )
    return namespace(view.log_probabilities).exp(view.log_probabilities)


def log_probability_of_true_class(view: ClassView) -> AnyArray:
    """Return the log-probability of each true class, shape (n,).

    The view must meet `Need.PROBABILITIES`, and all labels must be known classes.
    """
    if view.log_probabilities is not None:
        return take_at_class(view.log_probabilities, view.labels)
    likelihood = take_at_class(get_probabilities(view), view.labels)
    with np.errstate(divide="ignore"):
        return namespace(likelihood).log(likelihood)


def take_at_class(values: FloatArray, labels: IntArray) -> AnyArray:
    """Return the entry of each row in the column of its label, shape (n,)."""
    xp, (n, classes) = namespace(values), values.shape
    rows = move_to_library_of(np.arange(n), "rows", labels)
    return xp.take(xp.reshape(values, (-1,)), rows * classes + labels)


def is_true_class(labels: IntArray, values: FloatArray) -> AnyArray:
    """Return a mask of shape (n, K) that is True in the column of each label."""
    classes = move_to_library_of(np.arange(values.shape[1]), "classes", labels)
    return labels[:, None] == classes[None, :]


def select_rows(view: ClassView, rows: IntArray) -> ClassView:
    """Return the class view of the rows with these indices."""
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

    If `classes` is positive, the codes must be below it.
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
    if x.ndim != 1 or x.shape[0] != (length or x.shape[0]) or x.shape[0] == 0:
        return False
    if not xp.isdtype(x.dtype, ("integral", "real floating")):
        return False
    has_integers = xp.isdtype(x.dtype, "integral") or bool(xp.all(x == xp.floor(x)))
    if not has_integers or bool(xp.min(x) < -1):
        return False
    return not classes or bool(xp.max(x) < classes)


def class_view_from_predictions(prediction: AnyArray, labels: AnyArray) -> ClassView:
    """Validate predicted and true class codes (n,) of a public function."""
    predicted = class_codes(prediction, "prediction")
    true_codes = class_codes(labels, "labels", length=int(predicted.shape[0]))
    true_codes = move_codes(true_codes, predicted)
    xp = namespace(predicted)
    n_classes = int(max(xp.max(true_codes), xp.max(predicted))) + 1
    return ClassView(true_codes, predicted, tuple(range(n_classes)))


def move_codes(codes: IntArray, reference: AnyArray) -> AnyArray:
    """Move class codes to the library and device of `reference`."""
    if isinstance(reference, np.ndarray):
        return to_numpy(codes, "labels")
    return move_to_library_of(codes, "labels", reference)


def class_view_from_probabilities(probabilities: AnyArray, labels: AnyArray) -> ClassView:
    """Validate class probabilities (n, K) and class codes (n,) of a public function."""
    keep_library = is_computed_by_own_library(probabilities)
    scores = validate_class_scores(None, probabilities, keep_library=keep_library)
    n, classes = scores.values.shape
    true_codes = class_codes(labels, "labels", length=n, classes=classes)
    if not keep_library:
        log_p = scores.log_probabilities()
        return ClassView(
            true_codes, log_p.argmax(axis=1), tuple(range(classes)), np.exp(log_p), log_p
        )
    xp, p = namespace(scores.values), as_double(scores.values)
    p = p / xp.sum(p, axis=1, keepdims=True)
    predicted = xp.argmax(without_gradient(p), axis=1)
    return ClassView(move_codes(true_codes, predicted), predicted, tuple(range(classes)), p)


def scored_with_classes(confidence: AnyArray, view: ClassView, weight: AnyArray | None) -> Scored:
    """Validate a confidence and combine it with a class view on the device of the confidence.

    The loss is 1 for wrong predictions and 0 for correct predictions. The result has no gradients.
    """
    c = without_gradient(confidence)
    away = is_on_device(c)

    def move(x: AnyArray, name: str) -> AnyArray:
        fixed = without_gradient(x)
        return move_to_library_of(fixed, name, c) if away else to_numpy(fixed, name)

    labels, prediction = move(view.labels, "labels"), move(view.prediction, "prediction")
    p, log_p = view.probabilities, view.log_probabilities
    s = validate_samples(c, prediction != labels, weight)
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

    A cell contains all samples of one class with the same confidence. The curves of a class have
    one vertex per cell. Samples of weight 0 are excluded.
    """

    #: Shape (n,). Indices of the rows in sorted order.
    rows: Array | slice
    #: Shape (n,). The cell of each row.
    cell_of_row: Array
    #: Shape (c,). Tie group and class of each cell. Only classes with samples are numbered.
    group: Array
    class_of_cell: Array
    #: Shape (c,). Weight and loss of the samples of the class that are accepted at each cell.
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
        new_class = np.append(True, codes[1:] != codes[:-1])
        first = new_class | np.append(True, group[1:] != group[:-1])
        starts = np.flatnonzero(first)
        opens = np.flatnonzero(new_class[starts])
        mass = s.loss[rows].astype(np.float64)
        weight = np.ones(mass.size) if s.weight is None else s.weight[rows]
        mass *= weight
        class_weight = np.add.reduceat(weight, starts[opens])
        n_effective: FloatArray = class_weight
        if not s.has_unit_weights:
            n_effective = class_weight**2 / np.add.reduceat(weight * weight, starts[opens])
        return cls(
            rows,
            np.cumsum(first, dtype=np.int32) - 1,
            group[starts],
            np.cumsum(new_class[starts], dtype=np.int32) - 1,
            _segment_cumsum(np.add.reduceat(weight, starts), opens),
            _segment_cumsum(np.add.reduceat(mass, starts), opens),
            n_effective,
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
        before = np.append(0.0, self.loss_through[:-1])
        return self.loss_through - np.where(
            np.append(True, self.is_last_of_class[:-1]), 0.0, before
        )

    @property
    def balance_factor(self) -> FloatArray:
        """Factor W/(K W_k) of each cell, which gives all K classes equal weight."""
        mass = self.class_weight
        return np.asarray((mass.sum() / (self.n_classes * mass))[self.class_of_cell])

    def difference_to_next(self, group_values: FloatArray) -> FloatArray:
        """Return the group value of each cell minus that of the next cell of its class."""
        value = group_values[self.group]
        next_value = np.where(self.is_last_of_class, 0.0, np.append(value[1:], 0.0))
        return value - next_value

    def sum_from_cell(self, x: FloatArray) -> FloatArray:
        """Return the sum of values over each cell and the later cells of its class."""
        ends = np.flatnonzero(self.is_last_of_class)[::-1]
        return _segment_cumsum(x[::-1], x.size - 1 - ends)[::-1]


def class_cells(s: Scored) -> ClassCells:
    """Return the cells of the samples, which the samples cache."""
    return s.class_rows.cached(ClassCells.from_samples)


def _rows_by_class_and_confidence(s: Scored, labels: IntArray) -> tuple[Array | slice, Array]:
    """Return the sorted rows with positive weight, and the tie group of each row."""
    if s.precomputed_group_index is not None:
        # The rows of `Scored.class_rows` are already in this order.
        return slice(None), s.precomputed_group_index
    runs = sort_descending(s.confidence, None if s.weight is None else s.weight > 0)
    codes = labels[runs.order]
    if 0 <= codes.min() + 1 <= codes.max() < _MAX_COUNTING_SORT:
        # NumPy sorts 16-bit integers by counting (radix sort).
        codes = codes.astype(np.int16)
    order = np.argsort(codes, kind="stable")
    group = np.repeat(np.arange(runs.group_ends.size, dtype=np.int32), runs.group_sizes)
    return runs.order[order].astype(np.int32), group[order]


#: Class codes below this number fit into 16 bits.
_MAX_COUNTING_SORT = 1 << 15


def _segment_cumsum(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return cumulative sums that restart at each index of `starts`."""
    sums: FloatArray = np.cumsum(values)
    offset = sums[starts] - values[starts]
    sums -= np.repeat(offset, np.diff(starts, append=values.size))
    return sums


#: Minimum effective number of failures for the variance. The number includes one pseudo-count per
#: class.
MIN_FAILURES = 20

#: Minimum effective number for balanced accuracy. The number is the smaller of the failures and the
#: successes in each class, and both include one pseudo-count.
MIN_OF_EITHER_KIND = 5

#: Maximum share of the variance that the estimate misses because classes have few samples.
MAX_UNSEEN_SHARE = 0.2

#: If a threshold accepts fewer samples of a class, the risk of the class and its variance estimate
#: are unreliable.
FEW_ACCEPTED = 5

#: Maximum share of the variance from thresholds with fewer than `FEW_ACCEPTED` samples of one
#: class.
MAX_EARLY_SHARE = 0.15

#: Maximum share of the variance from thresholds with fewer than `FEW_ACCEPTED` samples, summed over
#: all classes.
MAX_TOTAL_EARLY_SHARE = 0.5


def reason_few_failures_of_class(s: Scored) -> str:
    """Return the reason if rare classes have too few failures for an interval, or "".

    The error rate of a class of m samples with f failures has a variance of about f/m^2.
    Satterthwaite's rule yields the effective number of failures for the sum over classes. A
    pseudo-count of one failure is added to each class, because a rare class without failures would
    have no variance. If the classes are about equally frequent and the total number of failures is
    small, the interval has a warning instead.
    """
    cells, rows = class_cells(s), s.class_rows
    counts = np.ones(rows.n_rows) if rows.row_counts is None else rows.row_counts
    n_failures = np.where(rows.loss > 0, counts, 0.0)[cells.rows]
    class_of_row = cells.class_of_cell[cells.cell_of_row]
    failures = sum_by_index(class_of_row, n_failures, cells.n_classes) + 1.0
    effective = _n_effective_of_sum(failures / cells.n_effective**2, failures)
    if effective < min(MIN_FAILURES, failures.sum() / 2):
        return _reason_too_few(effective, "failures", MIN_FAILURES)
    successes = np.maximum(cells.n_effective + 2.0 - failures, 1.0)
    return _reason_unseen_variance(failures, successes, cells.n_effective)


def reason_few_of_either_kind(s: Scored) -> str:
    """Return the reason if rare classes have too few failures or successes, or "".

    The rule is for balanced accuracy. The accuracy of a class of m samples with f failures and g
    successes has the variance f g/m^3. The smaller of f and g determines the precision of this
    variance. The rule otherwise equals `reason_few_failures_of_class`. The limit is lower, because
    all samples of a class have equal weight.
    """
    view, weight = get_class_view(s), sample_weights(s)
    has_class = (view.labels >= 0) & (weight > 0)
    labels, weight = view.labels[has_class], weight[has_class]
    is_error = np.asarray(view.prediction[has_class] != labels, np.float64)
    # A row of a stream represents as many samples as its weight.
    squared = weight if s.has_unit_weights else weight**2
    class_weight = np.bincount(labels, weight)
    failed_weight = np.bincount(labels, weight * is_error)
    squared_weight = np.bincount(labels, squared)
    is_present = class_weight > 0
    error_rate = failed_weight[is_present] / class_weight[is_present]
    size = class_weight[is_present] ** 2 / squared_weight[is_present]
    failures = error_rate * size + 1.0
    successes = (1.0 - error_rate) * size + 1.0
    fewer = np.minimum(failures, successes)
    effective = _n_effective_of_sum(failures * successes / (size + 2.0) / size**2, fewer)
    if effective < min(MIN_OF_EITHER_KIND, fewer.sum() / 2):
        kinds = "failures or successes"
        return _reason_too_few(effective, kinds, MIN_OF_EITHER_KIND)
    return _reason_unseen_variance(failures, successes, size)


def _n_effective_of_sum(variance: FloatArray, counts: FloatArray) -> float:
    """Return the effective number of counts for a sum of variances by Satterthwaite's rule."""
    return float(variance.sum() ** 2 / np.sum(variance**2 / counts))


def _reason_too_few(effective: float, kinds: str, needed: int) -> str:
    """Return the reason; `effective` includes the pseudo-count of each class."""
    return (
        f"a class is too rare: the variance is based on about {max(int(effective - 1.0), 0)} "
        f"{kinds}; intervals and tests need at least {needed - 1}"
    )


def _reason_unseen_variance(failures: FloatArray, successes: FloatArray, size: FloatArray) -> str:
    """Return the reason if rare classes lead to an underestimated variance, or "".

    The expected value of the variance estimate from m samples is the variance times 1 - 1/m. The
    counts of failures and successes include one pseudo-count per class.
    """
    variance = failures * successes / (size + 2.0) / size**2
    unseen = float(np.sum(variance / size) / variance.sum())
    if unseen <= MAX_UNSEEN_SHARE:
        return ""
    return (
        f"classes are too rare: their few samples miss about {100 * unseen:.0f}% of the variance; "
        f"intervals and tests allow {100 * MAX_UNSEEN_SHARE:.0f}%"
    )


def reason_late_start_of_class(s: Scored) -> str:
    """Return the reason if the selective risk of a rare class is too uncertain, or "".

    At a threshold that accepts j samples of a class, the risk of the class is a mean of j losses.
    If j is small, this mean is far from normally distributed, and its variance estimate is
    unreliable. The errors of m similar classes average out, so the share of one class is divided by
    sqrt(m).

    Let a threshold accept the share F of all samples and j samples of a class. The risk of the
    class has the variance v/j, where v is the variance of the loss in the class. The contribution
    of the class to the variance of the area is the sum of 2 F v/j over coverage. At thresholds that
    accept no sample of a class, the class contributes 0 instead of its unknown risk. The resulting
    error has the size sqrt(v) F.
    """
    cells, groups = class_cells(s), s.class_rows.groups
    loss_variance = _loss_variance_by_class(s, cells)
    accepted = cells.coverage * cells.n_effective[cells.class_of_cell]
    coverage = groups.cumulative_weight[cells.group] / groups.total_weight
    width = cells.difference_to_next(np.append(tail_sums(vertex_area_weights(groups)), 0.0))
    variance = 2 * loss_variance[cells.class_of_cell] * width * coverage / accepted
    is_first = np.append(True, cells.is_last_of_class[:-1])
    start = coverage[is_first] - groups.weight[cells.group[is_first]] / groups.total_weight
    unseen = loss_variance * start**2
    total = float(variance.sum() + unseen.sum())
    if total == 0:
        # All losses are 0.
        return ""
    early = np.where(accepted < FEW_ACCEPTED, variance, 0.0)
    by_class = np.bincount(cells.class_of_cell, weights=early, minlength=cells.n_classes) + unseen
    share = by_class.sum() / total
    share_in_one_class = np.sqrt(np.sum(by_class**2)) / total
    if share_in_one_class <= MAX_EARLY_SHARE and share <= MAX_TOTAL_EARLY_SHARE:
        return ""
    return (
        f"a class is too rare: {100 * share:.0f}% of the variance comes from coverages at which "
        f"fewer than {FEW_ACCEPTED} samples of it are accepted"
    )


def _loss_variance_by_class(s: Scored, cells: ClassCells) -> FloatArray:
    """Return the variance of the loss in each class, with a pseudo-count for each outcome."""
    rows = s.class_rows
    loss = rows.loss.astype(np.float64)
    weight = sample_weights(rows)
    max_loss = float(loss[weight > 0].max())
    class_of_row = cells.class_of_cell[cells.cell_of_row]
    scale = cells.n_effective / cells.class_weight
    n = cells.n_effective + 2
    loss_sums = np.bincount(class_of_row, weights=(weight * loss)[cells.rows]) * scale
    square_sums = np.bincount(class_of_row, weights=(weight * loss**2)[cells.rows]) * scale
    return np.asarray((square_sums + max_loss**2) / n - ((loss_sums + max_loss) / n) ** 2)
