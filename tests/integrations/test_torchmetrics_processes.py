"""Two processes on gloo give the number of one."""

from pathlib import Path

import pytest
from tests.processes import results_of_two_and_one

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

WORKER = Path(__file__).with_name("torchmetrics_worker.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each of two processes found, and what one process finds."""
    return results_of_two_and_one(WORKER, tmp_path_factory.mktemp("processes"))


@pytest.mark.parametrize("case", [
    "exact", "bounded", "one process without samples", "bounded, one without samples",
    "threshold", "mixed types", "mixed types, bounded", "collection", "forward", "synced by hand",
])  # fmt: skip
def test_two_processes_give_the_number_of_one(found, case):
    assert found["0"][case] == found["1"][case] == found["alone"][case]


def test_graded_losses_differ_by_the_rounding_of_sums(found):
    assert found["0"]["graded"] == found["1"]["graded"]
    assert found["0"]["graded"] == pytest.approx(found["alone"]["graded"], rel=1e-14)


def test_the_processes_did_see_different_samples(found):
    values = [found[name]["own"][0] for name in ("0", "1", "alone")]
    assert len(set(values)) == 3
    # The bounded case is one where something was lost.
    _, low, high, _ = found["alone"]["bounded"]
    rounding = 1e-14
    assert low - rounding <= found["alone"]["exact"][0] <= high + rounding
