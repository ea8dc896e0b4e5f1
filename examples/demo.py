"""A real benchmark in minutes: train, expose to shifts, rank, report.

``make demo`` runs this in a fresh environment. By hand::

    python -m examples.demo            # leaves demo-report/benchmark.html
    python -m examples.demo --small    # one epoch and few exposures: does it work here?

Four ways to train, two networks each, on letters in 20 typefaces; every confidence score on i.i.d.
letters, corrupted ones, unseen typefaces, and pictures that are no letter. Nothing is downloaded.
Stopped, it goes on where it was.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

#: What is run; `abstain benchmark run glyphs` is the whole of it.
CONFIG = Path(__file__).with_name("glyphs.toml")

#: Instead, where nobody reads the numbers.
SMALL = (
    "--epochs 2 --samples 2 --corruptions fog --severities 3 "
    "--methods msr mcd-pe confidnet devries dg-res knn ens-msr"
)


def commands(out: Path, *, small: bool = False) -> list[list[str]]:
    """Return what a user would type."""
    config, runs = os.path.relpath(CONFIG), str(out / "runs")
    return [
        ["benchmark", "run", config, "--out", runs, *(SMALL.split() if small else [])],
        ["benchmark", "report", runs, "--out", str(out)],
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, write its report, and say where it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=Path("demo-report"), help="folder to write to")
    parser.add_argument("--small", action="store_true", help="only to see whether it works here")
    asked = parser.parse_args(arguments)
    start = time.perf_counter()
    for command in commands(asked.out, small=asked.small):
        print("\n$ " + shlex.join(["abstain", *command]), flush=True)
        try:
            done = subprocess.run([sys.executable, "-m", "abstain", *command], check=False)
        except KeyboardInterrupt:
            # The command heard it too, and said what is left.
            sys.exit(130)
        if done.returncode != 0:
            sys.exit(done.returncode)
    seconds = time.perf_counter() - start
    print(f"\nThat took {seconds:.0f} s. Open {asked.out / 'benchmark.html'} in a browser.")


if __name__ == "__main__":
    main()
