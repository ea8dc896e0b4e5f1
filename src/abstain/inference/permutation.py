"""Permutation test that swaps the two scores of randomly selected samples.

Under the null hypothesis, the two scores are exchangeable. Two scores have no common scale, so each
confidence is replaced by its mid-rank in (0, 1). If the mid-ranks of two tie groups of different
scores are nearest to each other, both are replaced by their mean. Therefore, a swap does not split
a tie group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.random import as_generator
from abstain.errors import InputError, ShapeError
from abstain.typing import AnyArray, BoolArray, FloatArray, IntArray, Rng

#: Function of confidence and loss that returns a number, such as a metric.
Statistic: TypeAlias = Callable[[FloatArray, FloatArray], float]
#: Function of mid-ranks in (0, 1) that returns the weights of losses. It is the identity for AUGRC.
RankWeight: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class PermutationResult:
    """Result of a permutation test of the difference of two scores.

    Attributes
    ----------
    difference : float
        First minus second.
    p_value : float
        Two-sided p-value, which is at least 1/(n_permutations + 1).
    n_permutations : int
        Number of random swaps.
    """

    difference: float
    p_value: float
    n_permutations: int


def permutation_test(
    statistic: Statistic,
    first: tuple[AnyArray, AnyArray],
    second: tuple[AnyArray, AnyArray],
    *,
    n_permutations: int = 2000,
    rng: Rng = 0,
    cluster: AnyArray | None = None,
) -> PermutationResult:
    """Run a permutation test of the difference between two scores of the same samples.

    Answers: would so large a difference be rare if the two scores were interchangeable?

    Parameters
    ----------
    statistic : callable
        Function of confidence (n,) and loss (n,) that returns a number. The number must depend only
        on the order of the confidences.
    first, second : tuple of array (confidence (n,), loss (n,))
        The two scores on the same samples. If both scores belong to one classifier, their losses
        are equal.
    n_permutations : int, default=2000
        Number of random swaps.
    rng : int, Generator or None, default=0
        Seed of the swaps.
    cluster : array of shape (n,), optional
        Cluster of each sample, such as a patient or a site. The samples of a cluster are swapped
        together.

    Returns
    -------
    PermutationResult
        The difference and its p-value ``(1 + #|d*| >= |d|) / (1 + n_permutations)``.

    Raises
    ------
    ShapeError
        If the lengths differ.
    DomainError
        If a value is NaN or infinite, or a loss is negative.
    InputError
        If the statistic is NaN on the data, or `n_permutations` is not a positive integer.

    Notes
    -----
    The null hypothesis is that the scores are exchangeable. Exchangeability is stronger than
    equality of the metrics, which `bootstrap_difference` tests. Because the scores have no common
    scale, tie groups of both scores are matched by their mid-ranks. If the statistic is undefined
    after a swap, the swap counts as a larger difference. Each permutation requires two evaluations
    of the statistic. For rank-weighted metrics, `permutation_test_by_ranks` is faster.

    References
    ----------
    .. [1] Venkatraman and Begg (1996), A distribution-free procedure for comparing receiver
       operating characteristic curves from a paired experiment,
       https://doi.org/10.1093/biomet/83.4.835

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.inference.permutation import permutation_test
    >>> loss = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    >>> good, bad = list(range(10, 0, -1)), [1, 6, 2, 7, 3, 8, 4, 9, 5, 10]
    >>> result = permutation_test(ab.augrc, (good, loss), (bad, loss), n_permutations=999)
    >>> round(result.difference, 3), result.p_value < 0.1
    (-0.18, True)
    """
    levels, losses = _joint_scores(first, second)
    n_swaps = checks.positive_int(n_permutations, "n_permutations")
    n = levels.shape[1]
    swaps = _Swaps.for_clusters(n, cluster)
    random = as_generator(rng)

    def difference(is_swapped: BoolArray) -> float:
        """Return the difference of the statistics after a swap of samples."""
        confidence = np.where(is_swapped, levels[::-1], levels)
        loss = np.where(is_swapped, losses[::-1], losses)
        return float(statistic(confidence[0], loss[0])) - float(statistic(confidence[1], loss[1]))

    observed = difference(np.zeros(n, dtype=np.bool_))
    permuted = np.array([difference(swaps.draw(random)) for _ in range(n_swaps)])
    return _result(observed, permuted)


def permutation_test_by_ranks(
    phi: RankWeight,
    first: tuple[AnyArray, AnyArray],
    second: tuple[AnyArray, AnyArray],
    *,
    n_permutations: int = 2000,
    rng: Rng = 0,
    cluster: AnyArray | None = None,
) -> PermutationResult:
    """Run `permutation_test` for the mean of phi(mid-rank) x loss with a single sort.

    Answers: would so large a difference be rare if the two scores were interchangeable?

    Parameters
    ----------
    phi : callable
        Function of an array of mid-ranks in (0, 1) that returns the weights of losses. Pass
        ``lambda u: u`` for the AUGRC and ``lambda u: -np.log1p(-u)`` for the population form of the
        AURC.
    first, second, n_permutations, rng, cluster
        See `permutation_test`. The same seed yields the same swaps.

    Returns
    -------
    PermutationResult
        See `permutation_test`.

    Raises
    ------
    ShapeError, DomainError, InputError
        See `permutation_test`.

    Notes
    -----
    The function sorts the samples only once.

    References
    ----------
    .. [1] Venkatraman and Begg (1996), https://doi.org/10.1093/biomet/83.4.835

    Examples
    --------
    >>> from abstain.inference.permutation import permutation_test_by_ranks
    >>> loss = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    >>> good, bad = list(range(10, 0, -1)), [1, 6, 2, 7, 3, 8, 4, 9, 5, 10]
    >>> result = permutation_test_by_ranks(
    ...     lambda u: u, (good, loss), (bad, loss), n_permutations=999
    ... )
    >>> round(result.difference, 3), result.p_value < 0.1
    (-0.18, True)
    """
    levels, losses = _joint_scores(first, second)
    n_swaps = checks.positive_int(n_permutations, "n_permutations")
    n = levels.shape[1]
    swaps = _Swaps.for_clusters(n, cluster)
    random = as_generator(rng)
    scores = _SortedScores.from_levels(levels, losses)
    observed = scores.difference(phi, np.zeros(n, dtype=np.bool_))
    permuted = np.array([scores.difference(phi, swaps.draw(random)) for _ in range(n_swaps)])
    return _result(observed, permuted)


@dataclass(frozen=True, eq=False)
class _SortedScores:
    """The confidences of two scores of n samples, sorted together."""

    #: Shape (2 n,). Sample and loss of each entry, and whether it belongs to the second score.
    sample: IntArray
    loss: FloatArray
    is_second: BoolArray
    #: Shape (2 n,). Tie group of each entry.
    group: IntArray
    #: Index of the last entry of each tie group.
    group_last: IntArray
    #: Indices of the entries with a positive loss.
    failures: IntArray

    @classmethod
    def from_levels(cls, levels: FloatArray, losses: FloatArray) -> "_SortedScores":
        """Sort the comparable mid-ranks of both scores, shape (2, n)."""
        n = levels.shape[1]
        order = np.argsort(levels.ravel(), kind="stable")
        sorted_levels = levels.ravel()[order]
        loss = losses.ravel()[order]
        group_last = np.append(np.flatnonzero(np.diff(sorted_levels)), 2 * n - 1)
        group_sizes = np.diff(group_last, prepend=-1)
        return cls(
            sample=order % n,
            loss=loss,
            is_second=order >= n,
            group=np.repeat(np.arange(group_last.size), group_sizes),
            group_last=group_last,
            failures=np.flatnonzero(loss),
        )

    def difference(self, phi: RankWeight, is_swapped: BoolArray) -> float:
        """Return the mean of phi(mid-rank) x loss, first minus second, after a swap of samples."""
        n = is_swapped.size
        is_first = is_swapped[self.sample] == self.is_second
        n_first = np.cumsum(is_first)[self.group_last].astype(np.float64)
        n_second = (self.group_last + 1.0) - n_first
        total = self._weighted_loss(phi, is_first, n_first)
        total -= self._weighted_loss(phi, ~is_first, n_second)
        return float(total / n)

    def _weighted_loss(
        self, phi: RankWeight, is_member: BoolArray, n_through_group: FloatArray
    ) -> float:
        """Return the sum of phi(mid-rank) x loss over the entries of one score."""
        n = self.sample.size // 2
        mid_rank = n_through_group - np.diff(n_through_group, prepend=0.0) / 2
        failures = self.failures[is_member[self.failures]]
        weights = phi(mid_rank[self.group[failures]] / n)
        return float(weights @ self.loss[failures])


@dataclass(frozen=True, eq=False)
class _Swaps:
    """Random swaps, in which each sample or cluster is swapped with probability one half."""

    n_units: int
    #: Shape (n,). Cluster of each sample, or None without clusters.
    cluster: IntArray | None

    @classmethod
    def for_clusters(cls, n: int, cluster: AnyArray | None) -> "_Swaps":
        """Validate the clusters and encode their names as integers."""
        if cluster is None:
            return cls(n, None)
        names = to_numpy(cluster, "cluster")
        if names.shape != (n,):
            raise ShapeError(
                f"`cluster` must have one entry for each of the {n} samples; got shape "
                f"{names.shape}"
            )
        unique_names, codes = np.unique(names, return_inverse=True)
        return cls(unique_names.size, codes)

    def draw(self, random: np.random.Generator) -> BoolArray:
        """Return a random mask of the swapped samples, shape (n,)."""
        is_swapped = random.integers(2, size=self.n_units, dtype=np.uint8).astype(np.bool_)
        if self.cluster is None:
            return is_swapped
        return is_swapped[self.cluster]


def _joint_scores(
    first: tuple[AnyArray, AnyArray], second: tuple[AnyArray, AnyArray]
) -> tuple[FloatArray, FloatArray]:
    """Return comparable mid-ranks in (0, 1) and the losses of both scores, each of shape (2, n)."""
    mid_ranks = []
    groups = []
    losses = []
    for confidence, loss in (first, second):
        confidences = checks.confidence(confidence)
        _, group, count = np.unique(confidences, return_inverse=True, return_counts=True)
        mid_ranks.append((np.cumsum(count) - count / 2) / confidences.size)
        groups.append(group)
        losses.append(checks.loss(loss, length=confidences.size).astype(np.float64))
    if groups[0].size != groups[1].size:
        raise ShapeError(
            f"the scores must have the same samples; got {groups[0].size} and {groups[1].size}"
        )
    first_levels, second_levels = _joint_levels(mid_ranks[0], mid_ranks[1])
    levels = np.array([first_levels[groups[0]], second_levels[groups[1]]])
    return levels, np.array(losses)


def _joint_levels(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replace two mid-ranks that are nearest to each other by their mean.

    The arguments are the mid-ranks of the tie groups of each score, in ascending order. The
    function preserves the order.
    """
    nearest_second = _nearest_index(first, second)
    nearest_first = _nearest_index(second, first)
    first_index = np.flatnonzero(nearest_first[nearest_second] == np.arange(first.size))
    second_index = nearest_second[first_index]
    mean = (first[first_index] + second[second_index]) / 2
    joint_first = first.copy()
    joint_second = second.copy()
    joint_first[first_index] = mean
    joint_second[second_index] = mean
    return joint_first, joint_second


def _nearest_index(values: FloatArray, candidates: FloatArray) -> IntArray:
    """Return the index of the nearest candidate (the lower one of two) for each value."""
    after = np.clip(np.searchsorted(candidates, values), 1, max(candidates.size - 1, 1))
    before = after - 1
    after = np.minimum(after, candidates.size - 1)
    is_before_nearer = values - candidates[before] <= candidates[after] - values
    return np.where(is_before_nearer, before, after)


def _result(observed: float, permuted: FloatArray) -> PermutationResult:
    """Compute the p-value of the observed difference from the permuted differences."""
    if np.isnan(observed):
        raise InputError("the statistic is NaN on these data, so there is no difference to test")
    # The tolerance is for rounding, because the order of summation changes the last digits.
    threshold = abs(observed) * (1 - 1e-9)
    is_as_large = (np.abs(permuted) >= threshold) | np.isnan(permuted)
    p_value = (1 + int(np.count_nonzero(is_as_large))) / (1 + permuted.size)
    return PermutationResult(observed, p_value, permuted.size)
