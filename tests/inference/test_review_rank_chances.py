"""Chances of ranks from influences against a naive loop that resamples rows and starts afresh."""

import numpy as np

from abstain._foundation.scored import validate_samples
from abstain.inference.influence import covariance
from abstain.inference.ranking import expected_ranks, rank_probabilities, ranks, superiority
from abstain.metrics import metric_named
from abstain.metrics.intervals import influence_matrix

RESAMPLES = 1500


def naive_augrc(confidence, loss):
    """Mean over the samples of (mid-rank - 1/2)/n times the loss, by counting."""
    _, place, count = np.unique(confidence, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    return float(middle[place] @ loss) / confidence.size**2


def test_probabilities_of_ranks_equal_those_of_resampled_rows():
    rng = np.random.default_rng(0)
    n, k = 4000, 5
    loss = (rng.random(n) < 0.15).astype(float)
    shared = rng.normal(size=n)
    scores = [
        np.round((-0.04 * i - 1) * loss + 0.8 * shared + 0.6 * rng.normal(size=n), 2)
        for i in range(k)
    ]
    values = np.array([naive_augrc(c, loss) for c in scores])
    joint = covariance(
        influence_matrix(metric_named("augrc"), [validate_samples(c, loss) for c in scores])
    )

    drawn = np.empty((RESAMPLES, k))
    for b in range(RESAMPLES):
        rows = rng.integers(n, size=n)
        drawn[b] = [naive_augrc(c[rows], loss[rows]) for c in scores]
    order = np.argsort(np.argsort(drawn, axis=1), axis=1)
    counted = np.array([[np.mean(order[:, i] == r) for r in range(k)] for i in range(k)])

    # Three standard errors of a counted share, and the 0.005 of the 10,000 draws.
    error = 3 * np.sqrt(0.25 / RESAMPLES) + 0.005
    chances = rank_probabilities(values, joint, lower_is_better=True)
    assert 0.1 < counted.max() < 0.9
    assert np.abs(chances - counted).max() < error
    mean = expected_ranks(values, joint, lower_is_better=True)
    assert np.abs(mean - 1 - order.mean(axis=0)).max() < 3 * order.std() / np.sqrt(RESAMPLES)
    wins = (drawn[:, :, None] < drawn[:, None, :]).mean(axis=0) + np.eye(k) / 2
    assert np.abs(superiority(values, joint, lower_is_better=True) - wins).max() < error
    assert np.abs(joint / np.cov(drawn.T) - 1).max() < 0.2


def test_rounding_of_values_and_covariance_is_a_tie():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3, 50)) * 1e-18
    values = np.array([0.5, 0.5 - 6e-17, 0.5 + 1.2e-16])
    for lower in (True, False):
        beaten = superiority(values, noise @ noise.T, lower_is_better=lower)
        assert (beaten == 0.5).all()
        assert (expected_ranks(values, noise @ noise.T, lower_is_better=lower) == 2).all()
        assert np.allclose(
            rank_probabilities(values, noise @ noise.T, lower_is_better=lower), 1 / 3
        )
        assert (ranks(values, lower_is_better=lower) == 2).all()
    assert ranks([np.inf, 1.0, -np.inf, np.inf], lower_is_better=True).tolist() == [3.5, 2, 1, 3.5]
    assert ranks([0.02, 0.02 + 1e-12], lower_is_better=True).tolist() == [1, 2]
