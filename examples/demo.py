"""Run a complete benchmark in about two minutes: train networks, rank methods, write a report.

``make demo`` and ``make study`` run this script in a new environment. To run it yourself::

    python -m examples.demo            # writes demo-report/benchmark.html
    python -m examples.demo --study    # trains longer; writes study-report/benchmark.html
    python -m examples.demo --small    # two epochs and few exposures; tests the installation

The benchmark trains two networks with each of four training objectives on letters in 20 typefaces.
It evaluates all confidence scores on i.i.d. letters, corrupted letters, unseen typefaces and images
without a letter. Nothing is downloaded. If the run is interrupted, the next run continues it.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

#: Configurations of the demo and of `--study`, whose networks are trained three times as long.
#: `abstain benchmark run glyphs` runs the full benchmark.
CONFIG, STUDY = (Path(__file__).with_name(name) for name in ("demo.toml", "glyphs.toml"))

#: Options of `--small`, which tests the installation. The resulting numbers are not meaningful.
SMALL_OPTIONS = (
    "--epochs 2 --corruptions fog --severities 3 "
    "--methods msr mcd_pe confidnet devries dg_res knn ens_msr"
)


def commands(out: Path, *, small: bool = False, study: bool = False) -> list[list[str]]:
    """Return the arguments of the `abstain` commands that the demo runs."""
    config = os.path.relpath(STUDY if study else CONFIG)
    runs = str(out / "runs")
    return [
        ["benchmark", "run", config, "--out", runs, *(SMALL_OPTIONS.split() if small else [])],
        ["benchmark", "report", runs, "--out", str(out)],
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, write its report, and print the path of the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, help="folder to write to")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--small", action="store_true", help="test the installation only")
    size.add_argument("--study", action="store_true", help="train longer, on more corruptions")
    options = parser.parse_args(arguments)
    out = options.out or Path("study-report" if options.study else "demo-report")
    start = time.perf_counter()
    for command in commands(out, small=options.small, study=options.study):
        print("\n$ " + shlex.join(["abstain", *command]), flush=True)
        try:
            process = subprocess.run([sys.executable, "-m", "abstain", *command], check=False)
        except KeyboardInterrupt:
            # The command also receives the interrupt and prints a message.
            sys.exit(130)
        if process.returncode != 0:
            sys.exit(process.returncode)
    seconds = time.perf_counter() - start
    print(f"\nThe demo took {seconds:.0f} s. Open {out / 'benchmark.html'} in a browser.")


if __name__ == "__main__":
    main()
