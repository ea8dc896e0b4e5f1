"""Time abstain against its peers: `python benchmarks/run.py [--quick]`.

Every section is a function from the options to lines of Markdown; add one to `SECTIONS` for
another benchmark (an end-to-end `abstain evaluate` of a file, say).
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import endtoend
import resampling
from cases import KINDS, SIZES, case
from contenders import CONTENDERS
from memory import peak_extra
from table import machine, markdown, number, versions
from timing import measure

OURS, PEERS = list(CONTENDERS)[:2], list(CONTENDERS)[2:]


def main() -> None:
    options = _options()
    sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))
    print(f"Machine: {machine()}\n\nVersions: {versions()}\n")
    for section in SECTIONS:
        for line in section(options):
            print(line, flush=True)
        print()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 10^5 samples, in seconds")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind")
    return parser.parse_args()


def _sizes(options: argparse.Namespace) -> list[int]:
    return [n for n in SIZES if n <= 10**5 or not options.quick]


def areas(options: argparse.Namespace) -> Iterator[str]:
    """AURC and AUGRC from arrays in memory."""
    header = ["n", "case", *(f"{name}, ns" for name in CONTENDERS)]
    header += [f"{peer} / {ours}" for peer in ("t-u", "sk") for ours in ("numba", "NumPy")]
    rows, absent = [], {}
    for kind in options.kind or KINDS:
        for n in _sizes(options):
            timings, missing = measure(case(kind, n), seconds=0.3 if options.quick else 3)
            absent |= missing
            best = {name: timing.best for name, timing in timings.items()}
            ratios = [_ratio(best, peer, ours) for peer in PEERS for ours in OURS]
            rows.append(
                [f"{n:.0e}".replace("+0", ""), kind]
                + [number(best.get(name)) for name in CONTENDERS]
                + [number(ratio, 1) for ratio in ratios]
            )
            print(".", end="", file=sys.stderr, flush=True)
    yield "### Time: best of interleaved rounds, ns a sample; and ratios of the peers to abstain\n"
    yield markdown(header, rows)
    yield from (f"\n{name} is absent: {reason}" for name, reason in absent.items())


def _ratio(best: dict[str, float], peer: str, ours: str) -> float | None:
    return best[peer] / best[ours] if peer in best and ours in best else None


def memory(options: argparse.Namespace) -> Iterator[str]:
    """Peak extra memory of one call."""
    n = max(_sizes(options))
    rows = [
        [f"{n:.0e}".replace("+0", ""), kind]
        + [number(peak_extra(kind, n, name), 1) for name in CONTENDERS]
        for kind in options.kind or KINDS
    ]
    yield "### Memory: peak extra resident bytes a sample, each in a fresh process\n"
    yield markdown(["n", "case", *CONTENDERS], rows)


def end_to_end(options: argparse.Namespace) -> Iterator[str]:
    """The command line on a large file."""
    yield from endtoend.section(10**5 if options.quick else endtoend.ROWS)


def bootstrap(options: argparse.Namespace) -> Iterator[str]:
    """The bootstrap of many scores."""
    yield from resampling.section(quick=options.quick)


# The end first: memory() leaves the largest children behind, whose peak would count as its own.
SECTIONS = (end_to_end, areas, bootstrap, memory)


if __name__ == "__main__":
    main()
