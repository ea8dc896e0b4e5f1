"""Two processes on gloo train as one does: the same losses, the same gradients."""

from pathlib import Path

import pytest
from tests.processes import results_of_two_and_one

torch = pytest.importorskip("torch")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

WORKER = Path(__file__).with_name("rank_worker.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each of two processes found, and what one process finds."""
    return results_of_two_and_one(WORKER, tmp_path_factory.mktemp("processes"))


@pytest.mark.parametrize("case", [
    "aurc", "augrc, ties", "partial", "soft", "soft, ranking alone", "queue", "soft and queue",
    "sample weights", "last batch empty on one", "function",
])  # fmt: skip
def test_two_processes_train_as_one(found, case):
    alone = found["alone"][case]
    assert found["0"][case] == pytest.approx(alone, rel=0, abs=1e-12)
    # The last number is the evaluation of the first process.
    assert found["1"][case] == pytest.approx(alone[: len(found["1"][case])], rel=0, abs=1e-12)
    assert max(map(abs, alone)) > 1e-3


def test_the_processes_did_see_different_samples(found):
    values = [found[name]["own"][0] for name in ("0", "1", "alone")]
    assert len(set(values)) == 3


def test_trouble_on_one_process_is_told_to_all(found):
    for name in ("0", "1"):
        assert found[name]["nan"] == [True]
        assert "the batches of all processes are empty" in found[name]["empty"]
