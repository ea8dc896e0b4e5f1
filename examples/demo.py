"""A real benchmark in a minute or some: train, expose to shifts, rank, report.

``make demo`` and ``make study`` run this in a fresh environment. By hand::

    python -m examples.demo            # leaves demo-report/benchmark.html
    python -m examples.demo --study    # trains longer; leaves study-report/benchmark.html
    python -m examples.demo --small    # two epochs and few exposures: does it work here?

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

#: What is run, and the same for numbers that one may read: the networks learn three times as long.
#: `abstain benchmark run glyphs` is the whole of it.
CONFIG, STUDY = (Path(__file__).with_name(name) for name in ("demo.toml", "glyphs.toml"))

#: Instead, where nobody reads the numbers.
SMALL = (
    "--epochs 2 --corruptions fog --severities 3 "
    "--methods msr mcd_pe confidnet devries dg_res knn ens_msr"
)


def commands(out: Path, *, small: bool = False, study: bool = False) -> list[list[str]]:
    """Return what a user would type."""
    config, runs = os.path.relpath(STUDY if study else CONFIG), str(out / "runs")
    return [
        ["benchmark", "run", config, "--out", runs, *(SMALL.split() if small else [])],
        ["benchmark", "report", runs, "--out", str(out)],
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, write its report, and say where it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, help="folder to write to")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--small", action="store_true", help="only to see whether it works here")
    size.add_argument("--study", action="store_true", help="train longer, on more corruptions")
    asked = parser.parse_args(arguments)
    out = asked.out or Path("study-report" if asked.study else "demo-report")
    start = time.perf_counter()
    for command in commands(out, small=asked.small, study=asked.study):
        print("\n$ " + shlex.join(["abstain", *command]), flush=True)
        try:
            done = subprocess.run([sys.executable, "-m", "abstain", *command], check=False)
        except KeyboardInterrupt:
            # The command heard it too, and said what is left.
            sys.exit(130)
        if done.returncode != 0:
            sys.exit(done.returncode)
    seconds = time.perf_counter() - start
    print(f"\nThat took {seconds:.0f} s. Open {out / 'benchmark.html'} in a browser.")


if __name__ == "__main__":
    main()
