"""The swap test: its fast form, its size under exchangeability, its power, its edges."""

import itertools

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.errors import DomainError, InputError, ShapeError
from abstain.inference.permutation import permutation_test, permutation_test_by_ranks
from abstain.metrics import metric_named

AT_HALF = metric_named("selective_risk@50cov")


def two_scores(rng, n=150, risk=0.2, gap=0.0, round_to=None):
    """One classifier, two noisy views of the same difficulty; the first is better by `gap`."""
    hard = rng.normal(size=n)
    loss = (rng.random(n) < 2 * risk / (1 + np.exp(-2 * hard))).astype(float)
    first, second = (-hard + rng.normal(scale=s, size=n) for s in (1.0, 1.0 + gap))
    if round_to is not None:
        first, second = np.round(first, round_to), np.round(second, round_to)
    return (first, loss), (np.exp(second), loss)


def identity(u):
    return u


@pytest.mark.parametrize("round_to", [None, 0])
def test_the_fast_form_gives_the_same(round_to):
    first, second = two_scores(np.random.default_rng(0), gap=1, round_to=round_to)
    slow = permutation_test(ab.augrc, first, second, n_permutations=200, rng=3)
    fast = permutation_test_by_ranks(identity, first, second, n_permutations=200, rng=3)
    assert slow.difference == pytest.approx(ab.augrc(*first) - ab.augrc(*second), abs=1e-14)
    assert fast.difference == pytest.approx(slow.difference, abs=1e-14)
    assert fast.p_value == slow.p_value


def test_the_fast_form_with_two_classifiers_graded_losses_and_clusters():
    rng = np.random.default_rng(1)
    first, second = ((rng.normal(size=60), rng.random(60) ** 2) for _ in range(2))
    cluster = rng.integers(0, 12, size=60)
    slow = permutation_test(ab.augrc, first, second, n_permutations=100, rng=3, cluster=cluster)
    fast = permutation_test_by_ranks(
        identity, first, second, n_permutations=100, rng=3, cluster=cluster
    )
    assert fast.difference == pytest.approx(slow.difference, abs=1e-14)
    assert fast.p_value == slow.p_value


def test_size_under_exchangeability():
    rng = np.random.default_rng(2)
    p = np.array([
        permutation_test_by_ranks(identity, *two_scores(rng), n_permutations=199, rng=i).p_value
        for i in range(500)
    ])  # fmt: skip
    for alpha in (0.05, 0.2, 0.5):
        error = np.sqrt(alpha * (1 - alpha) / 500)
        assert abs((p <= alpha).mean() - alpha) < 3.5 * error


def test_size_of_clusters_that_are_swapped_together():
    rng = np.random.default_rng(3)
    p, naive = [], []
    for i in range(300):
        # Each cluster is hard or easy as a whole and has its own luck with each score.
        cluster = np.repeat(np.arange(20), 8)
        hard = 2 * rng.normal(size=20)[cluster]
        loss = (rng.random(160) < 0.4 / (1 + np.exp(-2 * hard))).astype(float)
        scores = [-hard + rng.normal(scale=2, size=20)[cluster] for _ in range(2)]
        pair = [(c, loss) for c in scores]
        p.append(
            permutation_test_by_ranks(
                identity, *pair, n_permutations=99, rng=i, cluster=cluster
            ).p_value
        )
        naive.append(permutation_test_by_ranks(identity, *pair, n_permutations=99, rng=i).p_value)
    assert abs(np.mean(np.array(p) <= 0.05) - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(np.array(naive) <= 0.05) > 0.1


def test_power():
    rng = np.random.default_rng(4)
    first, second = two_scores(rng, n=2000, gap=8.0)
    result = permutation_test_by_ranks(identity, first, second, n_permutations=499)
    assert (result.p_value, result.n_permutations) == (1 / 500, 499)
    assert result.difference < 0


def test_the_scale_of_the_confidences_does_not_matter():
    (a, loss), (b, _) = two_scores(np.random.default_rng(5))
    plain = permutation_test(ab.augrc, (a, loss), (b, loss), n_permutations=50)
    other = permutation_test(ab.augrc, (1000 * a - 5, loss), (np.log(b), loss), n_permutations=50)
    assert plain == other


def test_a_score_against_itself():
    first, _ = two_scores(np.random.default_rng(6))
    for found in (
        permutation_test(ab.augrc, first, first, n_permutations=20),
        permutation_test_by_ranks(identity, first, first, n_permutations=20),
    ):
        assert (found.difference, found.p_value) == (0.0, 1.0)


def at_half(confidence, loss):
    """The risk at half of the samples, which jumps where a tie group ends there."""
    return AT_HALF.compute(Scored(confidence, loss)).value


@pytest.mark.parametrize("statistic", [at_half, ab.augrc])
def test_tied_scores_are_swapped_on_joint_levels(statistic):
    # All swaps of the levels themselves, each with its loss; the scores hold other numbers of each.
    first, second = [2, 2, 2, 2, 1, 0, 1, 0, 2], [2, 2, 1, 2, 2, 0, 1, 1, 0]
    loss, other = [0, 0, 0, 0, 1, 1, 0, 1, 0], [0, 0, 0, 1, 1, 1, 0, 1, 1]
    level, losses = np.array([first, second], float), np.array([loss, other], float)
    results = []
    for swaps in itertools.product([False, True], repeat=9):
        c, x = (np.where(swaps, both[::-1], both) for both in (level, losses))
        results.append(statistic(c[0], x[0]) - statistic(c[1], x[1]))
    exact = np.mean(np.abs(results) >= abs(results[0]) - 1e-9)
    pair = (first, loss), (np.exp(second), other)
    test = permutation_test(statistic, *pair, n_permutations=4000)
    assert test.difference == pytest.approx(results[0])
    # Monte-Carlo error 0.8 %.
    assert test.p_value == pytest.approx(exact, abs=0.03)
    if statistic is ab.augrc:
        fast = permutation_test_by_ranks(identity, *pair, n_permutations=4000)
        assert fast.p_value == test.p_value


def test_joint_levels_keep_the_order_of_each_score():
    rng = np.random.default_rng(8)
    for _ in range(200):
        n = int(rng.integers(1, 60))
        loss = (rng.random(n) < 0.4).astype(float)
        a, b = (rng.integers(0, rng.integers(1, 20), n).astype(float) for _ in range(2))
        test = permutation_test(ab.augrc, (a, loss), (b, loss), n_permutations=1)
        assert test.difference == pytest.approx(ab.augrc(a, loss) - ab.augrc(b, loss), abs=1e-12)


def test_size_where_a_tie_group_ends_at_the_coverage():
    rng, p = np.random.default_rng(9), []
    for i in range(300):
        loss = (rng.random(200) < 0.3).astype(float)
        both = 0.8 * rng.normal(size=200) + 0.6 * rng.normal(size=(2, 200)) - loss
        # Levels of which the upper two hold half of the samples.
        first, second = np.digitize(both, [-1.5, -0.3, 0.7]).astype(float)
        p.append(
            permutation_test(
                at_half, (first, loss), (second, loss), n_permutations=59, rng=i
            ).p_value
        )
    assert abs((np.array(p) <= 0.05).mean() - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 300)


def test_undefined_statistics():
    first, second = two_scores(np.random.default_rng(7))
    with pytest.raises(InputError, match="the statistic is NaN on these data"):
        permutation_test(lambda c, x: float("nan"), first, second)
    values = iter([1.0, 0.0, *[float("nan")] * 20])
    test = permutation_test(lambda c, x: next(values), first, second, n_permutations=10)
    assert test.p_value == 1.0


def test_refusals():
    good = ([0.1, 0.2], [0, 1])
    with pytest.raises(ShapeError, match="same samples; got 2 and 3"):
        permutation_test(ab.augrc, good, ([0.1, 0.2, 0.3], [0, 1, 0]))
    with pytest.raises(ShapeError, match="`cluster`"):
        permutation_test_by_ranks(identity, good, good, cluster=[1])
    with pytest.raises(DomainError, match="`confidence` must be finite"):
        permutation_test(ab.augrc, good, ([0.1, np.nan], [0, 1]))
    with pytest.raises(InputError, match="`n_permutations`"):
        permutation_test(ab.augrc, good, good, n_permutations=0)
