"""Two processes on gloo keep one price of hints and one set of targets."""

from itertools import pairwise
from pathlib import Path

import pytest
from tests.processes import results_of_two_and_one

torch = pytest.importorskip("torch")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

WORKER = Path(__file__).with_name("objectives_worker.py")


def test_two_processes_are_as_one(tmp_path):
    result = results_of_two_and_one(WORKER, tmp_path)
    first, second, expected = result["0"], result["1"], result["alone"]
    assert first == second
    assert first["targets"] == pytest.approx(expected["targets"], abs=1e-6)
    assert first["prices"] == pytest.approx(expected["prices"], rel=1e-6)
    steps = [after / before for before, after in pairwise([0.1, *first["prices"]])]
    assert min(steps) < 1 < max(steps)  # the price went both ways
