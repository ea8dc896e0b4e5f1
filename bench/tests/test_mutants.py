"""Damaged files are either read, or rejected with a one-line error of abstain.

The environment variable ABSTAIN_MUTANTS sets the number of files. Another process reads the files,
so that the test can report the file if the process crashes or does not finish.
"""

import json
import os
import subprocess
import sys

import pytest

N_FILES = int(os.environ.get("ABSTAIN_MUTANTS", "400"))


@pytest.mark.slow
def test_damaged_files_are_read_or_rejected(pytestconfig):
    pytest.importorskip("torch")  # benchmark configurations contain training objectives
    run = subprocess.run(
        [sys.executable, "-m", "bench.tests.mutated", "0", str(N_FILES)],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        timeout=120 + N_FILES,
        check=False,
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"last line {lines[-1:]}: {run.stderr[-2000:]}"
    results = [line for line in lines if "outcome" in line]
    names = {line["i"]: line["file"] for line in lines if "file" in line}
    problems = [
        (names[result["i"]], result)
        for result in results
        if result["outcome"] not in {"read", "rejected"}
    ]
    assert not problems
    assert len(results) == N_FILES
    assert max(result["seconds"] for result in results) < 20
    assert lines[-1]["megabytes"] < 500
