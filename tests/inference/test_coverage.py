"""Tests of the coverage of intervals, with a few settings of `benchmarks/interval_coverage.py`."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

DRAWS = 1000
#: Three standard errors of a share of 95% from that many draws.
NOISE = 3 * np.sqrt(0.05 * 0.95 / DRAWS)


@pytest.fixture(scope="module")
def simulation(root: Path):
    spec = importlib.util.spec_from_file_location(
        "coverage_simulation", root / "benchmarks" / "interval_coverage.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
@pytest.mark.parametrize(("n", "rate"), [(100, 0.1), (300, 0.1), (1000, 0.05), (1000, 0.2)])
def test_coverage_and_false_positives(simulation, n: int, rate: float, ties: bool) -> None:
    shares = simulation.shares_of_draws(n, rate, ties=ties, draws=DRAWS, seed=11)
    n_expected = n * rate
    for name, n_few in (("augrc", 10), ("aurc", 25)):
        *coverages, false_positives = shares[name]
        for coverage in coverages:
            # Intervals may be too wide if failures are few, but not too short.
            assert coverage > 0.93 - NOISE
            assert coverage < (0.97 if n_expected > 2 * n_few else 1.0) + NOISE
        assert false_positives < 0.05 + NOISE
        if n_expected >= 2 * n_few:
            assert false_positives > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
def test_intervals_from_five_failures_are_not_too_short(simulation, ties: bool) -> None:
    shares = simulation.shares_of_draws(100, 0.05, ties=ties, draws=DRAWS, seed=12)
    for name in ("augrc", "aurc"):
        assert shares[name][:3].min() > 0.93 - NOISE
