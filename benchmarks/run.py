"""Measure every contender, and write benchmarks/cases.json and docs/performance.md.

    python benchmarks/run.py                    # all of it, some 10 minutes of two quiet cores
    python benchmarks/run.py --only 'peers*'    # some races, the others as they were
    python benchmarks/run.py --resume           # what is not in the table yet, or failed
    python benchmarks/run.py --against          # the quick contenders again: is one slower?
    python benchmarks/run.py --quick --to DIR   # tiny sizes, to see whether everything works

With --against the exit status is 1 where one is. A contender is an entry of the catalogue in
benchmarks/cases; the page, the table and the check are made from it. If a contender fails, the
table gives the reason, and the others are measured.
"""

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The benchmarks import each other by full name; the package is the installed one, if there is one.
sys.path.insert(0, str(ROOT))
if importlib.util.find_spec("abstain") is None:
    sys.path.append(str(ROOT / "src"))
    paths = (os.environ.get("PYTHONPATH"), str(ROOT / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

from benchmarks.cases import catalogue  # noqa: E402
from benchmarks.cases.accelerator import DEVICE  # noqa: E402
from benchmarks.cases.commands import RUNS  # noqa: E402
from benchmarks.cases.entry import FULL, SMALL, Race  # noqa: E402
from benchmarks.cases.peers import FD_SHIFTS  # noqa: E402
from benchmarks.check import checked  # noqa: E402
from benchmarks.figure import draw, panels  # noqa: E402
from benchmarks.measuring.rounds import Found, measured  # noqa: E402
from benchmarks.page import PAGE, page  # noqa: E402
from benchmarks.results import TABLE, Measured, Results  # noqa: E402

#: How long the rounds of a race go on where it is only checked, or only tried.
CHECKED, TRIED = 2.0, 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit status."""
    asked = _asked(arguments)
    races = _chosen(asked)
    if not races:
        quick = "; --against takes the quick ones only" if asked.against else ""
        print(f"no race or section is named so{quick} (see --list)", file=sys.stderr)
        return 2
    if asked.list:
        _list(races, Results.read(asked.table))
        return 0
    if asked.against:
        return against(races, Results.read(asked.table))
    return everything(races, asked)


def everything(races: Mapping[str, Race], asked: argparse.Namespace) -> int:
    """Measure the races one after the other, and write table and page after each."""
    asked.to.mkdir(parents=True, exist_ok=True)
    whole = not (asked.resume or asked.only)
    table = asked.to / TABLE.name if asked.to != ROOT else TABLE
    results = Results(table) if whole else Results.read(table)
    shown = asked.to / PAGE.name if asked.to != ROOT else PAGE
    for i, race in enumerate(races.values(), 1):
        wanted = results.lacking(race) if asked.resume else []
        if asked.resume and not wanted:
            continue
        print(f"[{i}/{len(races)}] {race.name} ...", end=" ", flush=True, file=sys.stderr)
        load, start = os.getloadavg()[0], time.perf_counter()
        seconds = TRIED if asked.quick else None
        memory = ("--quick",) if asked.quick else ()
        found = _measured(race, wanted, seconds, memory)
        took = time.perf_counter() - start
        results.add(race, Measured.now(found, load, took))
        _written(results, catalogue(_sizes(asked)), shown)
        failed = [key for key, one in found.items() if one.reason.startswith("failed")]
        print(f"{took:.0f} s{_told(failed, found)}", file=sys.stderr)
    return 0


def _written(results: Results, races: Mapping[str, Race], shown: Path) -> None:
    """Write the page, and the picture beside it."""
    picture = shown.parent / "_static" / "performance.svg"
    found = panels(results, races)
    if found:
        picture.parent.mkdir(exist_ok=True)
        draw(found, picture)
    figure = picture.relative_to(shown.parent).as_posix() if found else ""
    shown.write_text(page(results, races, figure=figure), "utf-8")


def _list(races: Mapping[str, Race], table: Results) -> None:
    """Name the races with the seconds that they took last, and their contenders."""
    for race in races.values():
        known = table.races.get(race.name)
        took = f" ({known.took:.0f} s)" if known else ""
        print(
            race.name + took, *(f"    {contender.key}" for contender in race.contenders), sep="\n"
        )


def _measured(
    race: Race, contenders: list[str], seconds: float | None, memory: tuple[str, ...] | None
) -> Mapping[str, Found]:
    try:
        return measured(race, contenders=contenders, seconds=seconds, memory=memory)
    except Exception as error:  # noqa: BLE001  a set-up that fails: the other races go on
        reason = f"failed: {type(error).__name__}: {error}"
        return {
            contender.key: Found(reason=reason) for contender in (race.reference, *race.contenders)
        }


def _told(failed: list[str], found: Mapping[str, Found]) -> str:
    return "".join(f"\n    {key}: {found[key].reason}" for key in failed)


def against(races: Mapping[str, Race], table: Results) -> int:
    """Say which contenders became slower than in the table."""
    if not table.races:
        print("There is no table yet: `make bench` writes it.", file=sys.stderr)
        return 2
    worse, start = [], time.perf_counter()
    for race in races.values():
        print(f"{race.name} ...", end=" ", flush=True, file=sys.stderr)
        own = list(checked(race, table, _again))
        worse += own
        print(f"{len(own)} worse" if own else "as it was", file=sys.stderr)
        for one in own:
            print(one, flush=True)
    seconds = time.perf_counter() - start
    count = f"{len(worse)} numbers are" if worse else "Nothing is"
    print(f"{count} more than 20 % above the table; {seconds:.0f} s.")
    return 1 if worse else 0


def _again(race: Race, contenders: list[str]) -> Mapping[str, Found]:
    return _measured(race, contenders, min(CHECKED, race.seconds), None)


def _sizes(asked: argparse.Namespace):
    return SMALL if asked.quick else FULL


def _chosen(asked: argparse.Namespace) -> dict[str, Race]:
    races = catalogue(_sizes(asked))
    patterns = asked.only or ["*"]
    return {
        name: race
        for name, race in races.items()
        if any(fnmatch(name, pattern) or fnmatch(race.section, pattern) for pattern in patterns)
        and (race.quick or not asked.against)
    }


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="PATTERN", help="races or sections")
    parser.add_argument("--resume", action="store_true", help="only what is lacking or failed")
    parser.add_argument("--against", action="store_true", help="check the quick contenders")
    parser.add_argument("--quick", action="store_true", help="tiny sizes; goes with --to")
    parser.add_argument("--to", type=Path, default=ROOT, help="folder for the table and the page")
    parser.add_argument("--table", type=Path, default=TABLE, help="what --against compares with")
    parser.add_argument("--fd-shifts", metavar="FOLDER", help="a checkout of IML-DKFZ/fd-shifts")
    parser.add_argument("--runs", metavar="FOLDER", help="runs of `make demo` to report on")
    parser.add_argument("--device", help="stands in for an accelerator: cpu; goes with --to")
    parser.add_argument("--list", action="store_true", help="name the races and their contenders")
    asked = parser.parse_args(arguments)
    for option, given in (("--quick", asked.quick), ("--device", asked.device)):
        if given and asked.to == ROOT and not (asked.list or asked.against):
            parser.error(f"{option} needs --to FOLDER: its numbers are no ones to publish")
    for name, given in ((FD_SHIFTS, asked.fd_shifts), (RUNS, asked.runs)):
        if given:
            os.environ[name] = str(Path(given).resolve())
    if asked.device:
        os.environ[DEVICE] = asked.device
    return asked


if __name__ == "__main__":
    sys.exit(main())
