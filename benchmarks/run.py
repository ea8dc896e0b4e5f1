"""Measure all variants, and write benchmarks/cases.json and docs/performance.md.

    python benchmarks/run.py                    # everything, about 10 minutes on two quiet cores
    python benchmarks/run.py --only 'peers*'    # some cases; the others keep their results
    python benchmarks/run.py --resume           # cases without a result, and failed ones
    python benchmarks/run.py --against          # lists quick variants that became slower
    python benchmarks/run.py --quick --to DIR   # tiny sizes, to test that everything works

With --against, the exit status is 1 if a variant became slower. The variants are entries of the
catalogue in benchmarks/cases. If a variant fails, the page contains the reason, and the other
variants are measured.
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
# Benchmarks import each other by full name. If abstain is not installed, the checkout is used.
sys.path.insert(0, str(ROOT))
if importlib.util.find_spec("abstain") is None:
    sys.path.append(str(ROOT / "src"))
    paths = (os.environ.get("PYTHONPATH"), str(ROOT / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

from benchmarks.cases import catalogue  # noqa: E402
from benchmarks.cases.accelerator import DEVICE  # noqa: E402
from benchmarks.cases.commands import RUNS  # noqa: E402
from benchmarks.cases.entry import FULL, SMALL, BenchmarkCase, Sizes  # noqa: E402
from benchmarks.cases.peers import FD_SHIFTS  # noqa: E402
from benchmarks.check import find_regressions  # noqa: E402
from benchmarks.figure import draw, panels  # noqa: E402
from benchmarks.measuring.rounds import Measurement, measure  # noqa: E402
from benchmarks.page import PAGE, page  # noqa: E402
from benchmarks.results import TABLE, CaseResult, Results  # noqa: E402

#: Duration of all rounds of a case in seconds, for --against and for --quick.
SECONDS_TO_CHECK, SECONDS_TO_TEST = 2.0, 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit status."""
    options = _parse(arguments)
    cases = _select_cases(options)
    if not cases:
        quick = "; --against measures only the quick ones" if options.against else ""
        print(f"no case or section has this name{quick} (see --list)", file=sys.stderr)
        return 2
    if options.list:
        _list(cases, Results.read(options.table))
        return 0
    if options.against:
        return compare_with_table(cases, Results.read(options.table))
    return measure_all(cases, options)


def measure_all(cases: Mapping[str, BenchmarkCase], options: argparse.Namespace) -> int:
    """Measure the cases one after the other, and write table and page after each."""
    options.to.mkdir(parents=True, exist_ok=True)
    publishes = options.to == ROOT
    table = TABLE if publishes else options.to / TABLE.name
    page_path = PAGE if publishes else options.to / PAGE.name
    results = Results.read(table) if options.resume or options.only else Results(table)
    for i, case in enumerate(cases.values(), 1):
        missing = results.missing_variants(case) if options.resume else []
        if options.resume and not missing:
            continue
        print(f"[{i}/{len(cases)}] {case.name} ...", end=" ", flush=True, file=sys.stderr)
        load, start = os.getloadavg()[0], time.perf_counter()
        seconds = SECONDS_TO_TEST if options.quick else None
        memory = ("--quick",) if options.quick else ()
        measurements = _measure(case, missing, seconds, memory)
        duration = time.perf_counter() - start
        results.add(case, CaseResult.now(measurements, load, duration))
        _write_page(results, catalogue(_sizes(options)), page_path)
        print(f"{duration:.0f} s", file=sys.stderr)
        for key, measurement in measurements.items():
            if measurement.reason.startswith("failed"):
                print(f"    {key}: {measurement.reason}", file=sys.stderr)
    return 0


def _write_page(results: Results, cases: Mapping[str, BenchmarkCase], path: Path) -> None:
    """Write the page and its figure."""
    figure = path.parent / "_static" / "performance.svg"
    lines = panels(results, cases)
    if lines:
        figure.parent.mkdir(exist_ok=True)
        draw(lines, figure)
    link = figure.relative_to(path.parent).as_posix() if lines else ""
    path.write_text(page(results, cases, figure=link), "utf-8")


def _list(cases: Mapping[str, BenchmarkCase], table: Results) -> None:
    """Print the cases with the seconds of their last measurement, and their variants."""
    for case in cases.values():
        stored = table.cases.get(case.name)
        print(f"{case.name} ({stored.duration:.0f} s)" if stored else case.name)
        for variant in case.variants:
            print(f"    {variant.key}")


def _measure(
    case: BenchmarkCase,
    variants: list[str],
    seconds: float | None,
    memory: tuple[str, ...] | None,
) -> Mapping[str, Measurement]:
    try:
        return measure(case, variants=variants, seconds=seconds, memory=memory)
    except Exception as error:  # noqa: BLE001  if a setup fails, the other cases are measured
        failed = Measurement(reason=f"failed: {type(error).__name__}: {error}")
        return {variant.key: failed for variant in (case.reference, *case.variants)}


def compare_with_table(cases: Mapping[str, BenchmarkCase], table: Results) -> int:
    """Print the variants that became slower than their stored results."""
    if not table.cases:
        print("There are no stored results: run `make bench` first.", file=sys.stderr)
        return 2
    n_regressions, start = 0, time.perf_counter()
    for case in cases.values():
        print(f"{case.name} ...", end=" ", flush=True, file=sys.stderr)
        regressions = list(find_regressions(case, table, _measure_again))
        n_regressions += len(regressions)
        status = f"{len(regressions)} worse" if regressions else "unchanged"
        print(status, file=sys.stderr)
        for regression in regressions:
            print(regression, flush=True)
    seconds = time.perf_counter() - start
    count = f"{n_regressions} numbers exceed" if n_regressions else "No number exceeds"
    print(f"{count} the stored value by more than 20%; {seconds:.0f} s.")
    return 1 if n_regressions else 0


def _measure_again(case: BenchmarkCase, variants: list[str]) -> Mapping[str, Measurement]:
    return _measure(case, variants, min(SECONDS_TO_CHECK, case.seconds), None)


def _sizes(options: argparse.Namespace) -> Sizes:
    return SMALL if options.quick else FULL


def _select_cases(options: argparse.Namespace) -> dict[str, BenchmarkCase]:
    patterns = options.only or ["*"]
    return {
        name: case
        for name, case in catalogue(_sizes(options)).items()
        if any(fnmatch(name, pattern) or fnmatch(case.section, pattern) for pattern in patterns)
        and (case.is_quick or not options.against)
    }


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="PATTERN", help="cases or sections")
    parser.add_argument("--resume", action="store_true", help="only missing and failed variants")
    parser.add_argument("--against", action="store_true", help="check the quick variants")
    parser.add_argument("--quick", action="store_true", help="tiny sizes; requires --to")
    parser.add_argument("--to", type=Path, default=ROOT, help="folder for the table and the page")
    parser.add_argument("--table", type=Path, default=TABLE, help="stored results for --against")
    parser.add_argument("--fd-shifts", metavar="FOLDER", help="checkout of IML-DKFZ/fd-shifts")
    parser.add_argument("--runs", metavar="FOLDER", help="runs of `make demo`, for a report")
    parser.add_argument("--device", help="device that replaces an accelerator: cpu; requires --to")
    parser.add_argument("--list", action="store_true", help="print the cases and their variants")
    options = parser.parse_args(arguments)
    for name in ("quick", "device"):
        if getattr(options, name) and options.to == ROOT and not (options.list or options.against):
            parser.error(f"--{name} needs --to FOLDER, because its numbers are not for publication")
    for variable, folder in ((FD_SHIFTS, options.fd_shifts), (RUNS, options.runs)):
        if folder:
            os.environ[variable] = str(Path(folder).resolve())
    if options.device:
        os.environ[DEVICE] = options.device
    return options


if __name__ == "__main__":
    sys.exit(main())
