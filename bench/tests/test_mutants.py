"""Thousands of damaged files: each is read, or refused with an error of ours in one line.

ABSTAIN_MUTANTS=5000 draws more of them. They are read in another process, so that what crashes it
or hangs has a number and a name.
"""

import json
import os
import subprocess
import sys

import pytest

COUNT = int(os.environ.get("ABSTAIN_MUTANTS", "400"))


@pytest.mark.slow
def test_every_reader_reads_or_refuses(pytestconfig):
    pytest.importorskip("torch")  # configurations of benchmarks name its objectives
    run = subprocess.run(
        [sys.executable, "-m", "bench.tests.mutated", "0", str(COUNT)],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        timeout=120 + COUNT,
        check=False,
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"ended in {lines[-1:]}: {run.stderr[-2000:]}"
    outcomes = [line for line in lines if "said" in line]
    names = {line["i"]: line["file"] for line in lines if "file" in line}
    wrong = [(names[o["i"]], o) for o in outcomes if o["said"] not in {"read", "refused"}]
    assert not wrong
    assert len(outcomes) == COUNT
    assert max(o["seconds"] for o in outcomes) < 20
    assert lines[-1]["megabytes"] < 500
