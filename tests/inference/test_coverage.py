"""Intervals hold the truth as often as they say: benchmarks/interval_coverage.py, a few cells of it."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

DRAWS = 1000
#: Three Monte-Carlo errors of 95 % from that many draws.
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
    found = simulation.cell(n, rate, ties=ties, draws=DRAWS, seed=11)
    expected = n * rate
    for name, few in (("augrc", 10), ("aurc", 25)):
        *held, positives = found[name]
        for share in held:
            # Too wide is no harm where failures are few; too short is.
            assert share > 0.93 - NOISE
            assert share < (0.97 if expected > 2 * few else 1.0) + NOISE
        assert positives < 0.05 + NOISE
        if expected >= 2 * few:
            assert positives > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True], ids=["", "ties"])
def test_five_failures_are_held_too(simulation, ties: bool) -> None:
    found = simulation.cell(100, 0.05, ties=ties, draws=DRAWS, seed=12)
    for name in ("augrc", "aurc"):
        assert found[name][:3].min() > 0.93 - NOISE
