"""What a command does with freed memory, in a process of its own."""

import os
import subprocess
import sys

import pytest
from tests.processes import SRC

_FAULTS = """
import resource
import numpy as np
{first}
def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(20_000_000)
before = pages()
for _ in range(5):
    np.ones(20_000_000)
print(pages() - before)
"""


def faults(first: str) -> int:
    """Return how many pages the system cleared for arrays that take the place of others."""
    made = subprocess.run(
        [sys.executable, "-c", _FAULTS.format(first=first)],
        env=os.environ | {"PYTHONPATH": str(SRC), "NUMPY_MADVISE_HUGEPAGE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(made.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be told")
def test_a_command_keeps_the_memory_that_it_frees():
    kept = faults("from abstain.cli.memory import retain_freed_memory; retain_freed_memory()")
    assert faults("") > 100_000 > 1000 > kept
