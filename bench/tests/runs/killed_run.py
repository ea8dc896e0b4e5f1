"""A small benchmark for a process of its own, to be killed: ``killed_run FOLDER JOBS ENGINE``."""

import sys
from pathlib import Path

from bench.tests.runs.test_run import smallest

from abstain_bench.runs.run import run_benchmark

if __name__ == "__main__":
    folder, jobs, engine = sys.argv[1:]
    run_benchmark(smallest(), Path(folder), jobs=int(jobs), engine=engine)
