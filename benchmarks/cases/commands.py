"""Cases for commands on files, including the start of Python."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.cases import files
from benchmarks.cases.entry import (
    AbsentError,
    BenchmarkCase,
    Call,
    Section,
    Sizes,
    Target,
    Variant,
    format_size,
)
from benchmarks.measuring.processes import Command, abstain, python

SECTION = Section(
    "commands",
    "Whole commands",
    "The tables contain the wall time, the CPU time and the peak resident memory (MiB) of the "
    "process, including the start of Python. The reference is a process that imports NumPy, sorts "
    "a million numbers ten times and counts to three million in Python.",
)

#: Environment variable with the folder of runs from `make demo`, which `--runs` sets.
RUNS = "ABSTAIN_BENCH_RUNS"

#: Input file of most commands.
TABLE = Path("predictions.parquet")

#: Facts about the pages that a command writes: size with and without the JavaScript bundle.
PAGE_SIZE, PAGE_SIZE_WITHOUT_BUNDLE = "page, MB", "page without bundle, MB"
_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)

WORK = """
import numpy as np
x = np.random.default_rng(0).random(10**6)
for _ in range(10):
    np.sort(x)
total = 0
for i in range(3 * 10**6):
    total += i
"""


def work() -> Variant:
    """Return the reference of measured processes."""
    return Variant("reference process", lambda _: python("-c", WORK), rounds=3)


def setup_files(write: Callable[[Path, float], object]) -> Callable[[Path, float], Path]:
    """Return a setup that writes files into a folder and returns the folder.

    A small evaluation runs first, so that kernels and bytecode are compiled.
    """

    def setup(folder: Path, share: float) -> Path:
        small = files.predictions(folder / "warm.parquet", 500)
        abstain("evaluate", small, "--out", folder / "warm")()
        write(folder, share)
        return folder

    return setup


def page_sizes(folder: Path) -> Callable[[], Mapping[str, float]]:
    """Return a function that reads the sizes of the pages in a folder."""

    def sizes() -> Mapping[str, float]:
        pages = [path.read_text("utf-8") for path in folder.rglob("*.html")]
        scripts = [max(map(len, _SCRIPT.findall(text)), default=0) for text in pages]
        total = sum(len(text.encode()) for text in pages)
        return {
            PAGE_SIZE: total / 1e6,
            PAGE_SIZE_WITHOUT_BUNDLE: (total - sum(scripts)) / 1e6,
        }

    return sizes


def run(*arguments: object, out: str = "") -> Callable[[Path], Call]:
    """Return a function that prepares a command; paths are relative to the folder of the case."""

    def start(folder: Path) -> Command:
        absolute = [folder / word if isinstance(word, Path) else word for word in arguments]
        if not out:
            return abstain(*absolute)
        output = folder / out
        return abstain(*absolute, "--out", output, read_facts=page_sizes(output))

    return start


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of this section."""
    yield from evaluations(sizes)
    yield _many_columns(sizes)
    yield _csv(sizes)
    yield from comparisons(sizes)
    yield _report()


def evaluations(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield `abstain evaluate` on few and many rows, and on class scores."""
    yield _few_rows(sizes.page)
    # With ten million rows, one confidence suffices for the cost per row.
    yield _rows(sizes.million, 3, (Target(5, "seconds"),), rounds=2)
    targets = (Target(20, "seconds"), Target(1.5 * 1024, "MiB"))
    yield _rows(sizes.ten_million, 1, targets, rounds=1)
    yield _class_scores(*sizes.wide)


def _few_rows(n: int) -> BenchmarkCase:
    targets = (Target(1.5, "seconds"), Target(0.4, PAGE_SIZE_WITHOUT_BUNDLE))
    return BenchmarkCase(
        f"abstain evaluate, {format_size(n)} rows",
        SECTION.name,
        setup_files(lambda folder, _: files.predictions(folder / TABLE, n)),
        work(),
        (
            Variant("with page", run("evaluate", TABLE, out="out"), targets=targets),
            Variant("in the terminal", run("evaluate", TABLE), targets=(Target(1, "seconds"),)),
            Variant(
                "page, no intervals", run("evaluate", TABLE, "--interval", "none", out="plain")
            ),
        ),
        "Parquet file with three confidences, all metrics with intervals, and the page.",
        n=n,
        seconds=8,
        rounds=2,
        is_quick=True,
    )


def _rows(n: int, scores: int, targets: tuple[Target, ...], *, rounds: int) -> BenchmarkCase:
    confidences = {1: "one confidence", 3: "three confidences"}[scores]
    return BenchmarkCase(
        f"abstain evaluate, {format_size(n)} rows",
        SECTION.name,
        setup_files(lambda folder, _: files.predictions(folder / TABLE, n, scores=scores)),
        work(),
        (
            Variant("with page", run("evaluate", TABLE, out="out"), targets=targets),
            Variant(
                "page, no intervals", run("evaluate", TABLE, "--interval", "none", out="plain")
            ),
        ),
        f"Parquet file with {confidences}, all metrics with intervals, and the page.",
        n=n,
        seconds=1,
        rounds=rounds,
        is_quick=rounds > 1,
    )


def _class_scores(rows: int, classes: int) -> BenchmarkCase:
    wide = Path("wide.parquet")
    arguments = (
        "evaluate",
        wide,
        "--probabilities",
        "p_*",
        "--label",
        "label",
        "--metric",
        "augrc",
    )
    targets = (Target(6, "seconds"),)
    return BenchmarkCase(
        f"abstain evaluate, {format_size(rows)} x {classes} class scores",
        SECTION.name,
        setup_files(lambda folder, _: files.class_scores(folder / wide, rows, classes)),
        work(),
        (
            Variant("one score", run(*arguments, "--score", "msr"), targets=targets),
            Variant("every score", run(*arguments), targets=targets),
        ),
        "Uncompressed Parquet file, one metric, output in the terminal.",
        n=rows,
        seconds=1,
        rounds=2,
    )


def _many_columns(sizes: Sizes) -> BenchmarkCase:
    table = Path("columns.parquet")
    return BenchmarkCase(
        f"abstain evaluate, {sizes.columns} confidence columns of five rows",
        SECTION.name,
        setup_files(lambda folder, _: files.many_columns(folder / table, 5, sizes.columns)),
        work(),
        (
            Variant(
                "one metric",
                run("evaluate", table, "--metric", "augrc"),
                targets=(Target(5, "seconds"),),
            ),
            Variant("every metric", run("evaluate", table), rounds=1),
        ),
        "Output in the terminal.",
        seconds=1,
        rounds=2,
    )


def _csv(sizes: Sizes) -> BenchmarkCase:
    wide, rows = Path("wide.csv"), sizes.million // 10
    columns = ("--label", "label", "--prediction", "prediction", "--confidence", "confidence_3")
    return BenchmarkCase(
        f"abstain evaluate, CSV of {format_size(rows)} rows",
        SECTION.name,
        setup_files(lambda folder, _: _write_csv(folder, rows)),
        work(),
        (
            Variant("5 columns", run("evaluate", Path("narrow.csv"), "--metric", "augrc")),
            Variant("1 of 100 columns", run("evaluate", wide, *columns, "--metric", "augrc")),
        ),
        "One metric, output in the terminal. Of the file with 100 columns, one confidence is used.",
        n=rows,
        seconds=1,
        rounds=2,
        is_quick=True,
    )


def _write_csv(folder: Path, rows: int) -> None:
    files.predictions(folder / "narrow.csv", rows)
    files.many_columns(folder / "wide.csv", rows, 98)


def comparisons(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield `abstain compare` of many scores."""
    rows, counts, resamples = sizes.compared
    table = Path("scores.parquet")
    all_targets = ((Target(6, "seconds"), Target(3, PAGE_SIZE)), (Target(25, "seconds"),))
    for count, targets in zip(counts, all_targets, strict=True):
        arguments = ("compare", table, "--metric", "aurc", "--metric", "augrc")
        with_bootstrap = run(*arguments, "--bootstrap", str(resamples), out="out")
        yield BenchmarkCase(
            f"abstain compare, {count} scores x {format_size(rows)} rows",
            SECTION.name,
            setup_files(lambda folder, _, count=count: files.compared(folder / table, rows, count)),
            work(),
            (
                Variant(f"{resamples} resamples, tables, page", with_bootstrap, targets=targets),
                Variant("no resamples, in the terminal", run(*arguments)),
            ),
            "The metrics are AURC and AUGRC.",
            n=rows,
            seconds=1,
            rounds=1,
            is_quick=count == counts[0],
        )


def _report() -> BenchmarkCase:
    return BenchmarkCase(
        "abstain benchmark report",
        SECTION.name,
        setup_files(lambda folder, _: _write_runs(folder / "runs")),
        work(),
        (
            Variant(
                "simulated runs: 4 methods, 2 seeds, 14 test sets of 1,000",
                run("benchmark", "report", Path("runs"), out="report"),
            ),
            Variant("runs of `make demo`", _report_on_demo, targets=(Target(15, "seconds"),)),
        ),
        "The simulated runs have simulated scores, so no networks are trained.",
        seconds=1,
        rounds=1,
    )


def _write_runs(folder: Path) -> None:
    from bench.tests.runs.made_store import made_store

    made_store(folder, n=1000)


def _report_on_demo(folder: Path) -> Command:
    if not os.environ.get(RUNS):
        raise AbsentError("--runs FOLDER is missing (`make demo` writes demo-report/runs)")
    output = folder / "demo"
    arguments = ("benchmark", "report", os.environ[RUNS], "--out", output)
    return abstain(*arguments, read_facts=page_sizes(output))
