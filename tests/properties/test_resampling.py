"""Resampling by counts is resampling by rows: every metric of the catalogue, on the same draws."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.cases import rows, scored_cases
from tests.properties.test_catalogue import ALL

from abstain._foundation.scored import Scored
from abstain.inference.draws import Draws
from abstain.metrics import Metric
from abstain.metrics.resampling import replicates

GRADED = [metric for metric in ALL if not metric.measurement.needs]


def plans(n: int, seed: int, data: st.DataObject) -> Draws:
    """Draw a plan: i.i.d., in strata, by cluster, of another size."""
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    kind = data.draw(st.sampled_from(["i.i.d.", "strata", "cluster", "both", "size"]))
    return {
        "i.i.d.": lambda: Draws(n, 3, rng=seed),
        "strata": lambda: Draws(n, 3, rng=seed, strata=codes),
        "cluster": lambda: Draws(n, 3, rng=seed, cluster=codes),
        "both": lambda: Draws(n, 3, rng=seed, cluster=codes, strata=codes > 0),
        "size": lambda: Draws(n, 3, rng=seed, size=2),
    }[kind]()


def naive(metric: Metric, samples: list[Scored]) -> np.ndarray:
    return np.array(
        [
            np.nan if s.weight is not None and not s.weight.any() else metric.compute(s).value
            for s in samples
        ]
    )


def agree(metrics: list[Metric], s: Scored, draws: Draws) -> None:
    got = replicates([s], metrics, draws)[:, 0]
    counts = np.concatenate(list(draws), axis=1)
    samples = [rows(s, np.repeat(np.arange(s.n_rows), count)) for count in counts.T]
    for metric, values in zip(metrics, got, strict=True):
        expected = naive(metric, samples)
        scale = np.maximum(1.0, np.abs(np.where(np.isfinite(expected), expected, 1.0)))
        np.testing.assert_allclose(
            values / scale, expected / scale, rtol=0, atol=1e-12, err_msg=metric.name
        )


@given(s=scored_cases(least=2, most=20), seed=st.integers(0, 99), data=st.data())
@settings(max_examples=40)
def test_counts_are_rows(s: Scored, seed: int, data: st.DataObject) -> None:
    agree(ALL, s, plans(s.n_rows, seed, data))


@given(s=scored_cases(least=2, most=20), seed=st.integers(0, 99), data=st.data())
@settings(max_examples=25)
def test_counts_are_rows_with_weights(s: Scored, seed: int, data: st.DataObject) -> None:
    numbers = st.sampled_from([0, 1, 2, 3]) if data.draw(st.booleans()) else st.floats(0.1, 2)
    weight = np.array(
        data.draw(st.lists(numbers, min_size=s.n_rows, max_size=s.n_rows)), dtype=float
    )
    agree(ALL, replace(s, weight=weight), plans(s.n_rows, seed, data))


@given(s=scored_cases(least=2, most=20), seed=st.integers(0, 99), data=st.data())
@settings(max_examples=25)
def test_counts_are_rows_for_other_losses(s: Scored, seed: int, data: st.DataObject) -> None:
    loss = np.array(data.draw(st.lists(st.floats(0, 1), min_size=s.n_rows, max_size=s.n_rows)))
    agree(GRADED, replace(s, loss=loss), plans(s.n_rows, seed, data))
