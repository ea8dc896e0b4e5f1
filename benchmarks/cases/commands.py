"""Whole commands on files of real sizes, start of Python included."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.cases import files
from benchmarks.cases.entry import AbsentError, Call, Contender, Race, Section, Sizes, Target, told
from benchmarks.measuring.processes import Command, abstain, python

SECTION = Section(
    "commands",
    "Whole commands",
    "As a process, start of Python included: the wall clock, the time of all processors, and "
    "the peak of resident memory of that process. The reference is a process that loads NumPy, "
    "sorts a million numbers ten times and counts to three million in Python.",
)

#: A folder of runs to report on (`make demo` leaves one); see `--runs`.
RUNS = "ABSTAIN_BENCH_RUNS"

#: The table of most commands, and what is done with it.
TABLE = Path("predictions.parquet")
EVERYTHING = "every metric with its interval, the page."

#: What is read off the pages that a command leaves: with its largest script, and without.
WHOLE, BESIDE = "page, MB", "beside its bundle, MB"
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


def work() -> Contender:
    """Return the reference of what is measured as a process."""
    return Contender("a process with some work", lambda _: python("-c", WORK), rounds=3)


def places(make: Callable[[Path, float], object]) -> Callable[[Path, float], Path]:
    """Return a set-up that makes files in the folder and hands out the folder.

    A small evaluation goes first, so that kernels are compiled and bytecode is there.
    """

    def setup(folder: Path, share: float) -> Path:
        small = files.predictions(folder / "warm.parquet", 500)
        abstain("evaluate", small, "--out", folder / "warm")()
        make(folder, share)
        return folder

    return setup


def pages(folder: Path) -> Callable[[], Mapping[str, float]]:
    """Return what reads the sizes of what a command left."""

    def sizes() -> Mapping[str, float]:
        left = [path for path in folder.rglob("*") if path.is_file()]
        pages = [path.read_text("utf-8") for path in left if path.suffix == ".html"]
        scripts = [max(map(len, _SCRIPT.findall(text)), default=0) for text in pages]
        whole = sum(len(text.encode()) for text in pages)
        return {WHOLE: whole / 1e6, BESIDE: (whole - sum(scripts)) / 1e6}

    return sizes


def run(*words: object, out: str = "") -> Callable[[Path], Call]:
    """Return what starts a command; names of files are in the folder of the race."""

    def start(folder: Path) -> Command:
        said = [folder / word if isinstance(word, Path) else word for word in words]
        if not out:
            return abstain(*said)
        to = folder / out
        return abstain(*said, "--out", to, left=pages(to))

    return start


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of this section."""
    yield from evaluations(sizes)
    yield _many_columns(sizes)
    yield _csv(sizes)
    yield from comparisons(sizes)
    yield _report()


def evaluations(sizes: Sizes) -> Iterator[Race]:
    """Yield `abstain evaluate` of few and of many rows, and of class scores."""
    yield _few_rows(sizes.page)
    # Of ten million one confidence is enough to see what each row takes.
    yield _rows(sizes.million, 3, (Target(5, "seconds"),), rounds=2)
    most = (Target(20, "seconds"), Target(1.5 * 1024, "MiB"))
    yield _rows(sizes.ten_million, 1, most, rounds=1)
    yield _class_scores(*sizes.wide)


def _few_rows(n: int) -> Race:
    limits = (Target(1.5, "seconds"), Target(0.4, BESIDE))
    return Race(
        f"abstain evaluate, {told(n)} rows",
        SECTION.name,
        places(lambda folder, _: files.predictions(folder / TABLE, n)),
        work(),
        (
            Contender("with page", run("evaluate", TABLE, out="out"), targets=limits),
            Contender("in the terminal", run("evaluate", TABLE), targets=(Target(1, "seconds"),)),
            Contender(
                "page, no intervals", run("evaluate", TABLE, "--interval", "none", out="bare")
            ),
        ),
        f"Parquet, three confidences, {EVERYTHING}",
        n=n,
        seconds=8,
        rounds=2,
        quick=True,
    )


def _rows(n: int, scores: int, targets: tuple[Target, ...], *, rounds: int) -> Race:
    number = {1: "one confidence", 3: "three confidences"}[scores]
    return Race(
        f"abstain evaluate, {told(n)} rows",
        SECTION.name,
        places(lambda folder, _: files.predictions(folder / TABLE, n, scores=scores)),
        work(),
        (
            Contender("with page", run("evaluate", TABLE, out="out"), targets=targets),
            Contender(
                "page, no intervals", run("evaluate", TABLE, "--interval", "none", out="bare")
            ),
        ),
        f"Parquet, {number}, {EVERYTHING}",
        n=n,
        seconds=1,
        rounds=rounds,
        quick=rounds > 1,
    )


def _class_scores(rows: int, classes: int) -> Race:
    wide = Path("wide.parquet")
    words = ("evaluate", wide, "--probabilities", "p_*", "--label", "label", "--metric", "augrc")
    most = (Target(6, "seconds"),)
    return Race(
        f"abstain evaluate, {told(rows)} x {classes} class scores",
        SECTION.name,
        places(lambda folder, _: files.class_scores(folder / wide, rows, classes)),
        work(),
        (
            Contender("one score", run(*words, "--score", "msr"), targets=most),
            Contender("every score", run(*words), targets=most),
        ),
        "Parquet without compression, one metric, in the terminal.",
        n=rows,
        seconds=1,
        rounds=2,
    )


def _many_columns(sizes: Sizes) -> Race:
    table = Path("columns.parquet")
    return Race(
        f"abstain evaluate, {sizes.columns} confidence columns of five rows",
        SECTION.name,
        places(lambda folder, _: files.many_columns(folder / table, 5, sizes.columns)),
        work(),
        (
            Contender(
                "one metric",
                run("evaluate", table, "--metric", "augrc"),
                targets=(Target(5, "seconds"),),
            ),
            Contender("every metric", run("evaluate", table), rounds=1),
        ),
        "In the terminal.",
        seconds=1,
        rounds=2,
    )


def _csv(sizes: Sizes) -> Race:
    wide, rows = Path("wide.csv"), sizes.million // 10
    chosen = ("--label", "label", "--prediction", "prediction", "--confidence", "confidence_3")
    return Race(
        f"abstain evaluate, CSV of {told(rows)} rows",
        SECTION.name,
        places(lambda folder, _: _write_csv(folder, rows)),
        work(),
        (
            Contender("5 columns", run("evaluate", Path("narrow.csv"), "--metric", "augrc")),
            Contender("1 of 100 columns", run("evaluate", wide, *chosen, "--metric", "augrc")),
        ),
        "One metric in the terminal; of the wide file only one confidence is asked for.",
        n=rows,
        seconds=1,
        rounds=2,
        quick=True,
    )


def _write_csv(folder: Path, rows: int) -> None:
    files.predictions(folder / "narrow.csv", rows)
    files.many_columns(folder / "wide.csv", rows, 98)


def comparisons(sizes: Sizes) -> Iterator[Race]:
    """Yield `abstain compare` of many scores."""
    rows, counts, resamples = sizes.compared
    table = Path("scores.parquet")
    limits = ((Target(6, "seconds"), Target(3, WHOLE)), (Target(25, "seconds"),))
    for count, targets in zip(counts, limits, strict=True):
        words = ("compare", table, "--metric", "aurc", "--metric", "augrc")
        drawn = run(*words, "--bootstrap", str(resamples), out="out")
        yield Race(
            f"abstain compare, {count} scores x {told(rows)} rows",
            SECTION.name,
            places(lambda folder, _, count=count: files.compared(folder / table, rows, count)),
            work(),
            (
                Contender(f"{resamples} resamples, tables, page", drawn, targets=targets),
                Contender("no resamples, in the terminal", run(*words)),
            ),
            "AURC and AUGRC.",
            n=rows,
            seconds=1,
            rounds=1,
            quick=count == counts[0],
        )


def _report() -> Race:
    return Race(
        "abstain benchmark report",
        SECTION.name,
        places(lambda folder, _: _store(folder / "runs")),
        work(),
        (
            Contender(
                "of a made store: 4 arms, 2 seeds, 14 exposures of 1,000",
                run("benchmark", "report", Path("runs"), out="report"),
            ),
            Contender(
                "of the runs that `make demo` leaves", _stored, targets=(Target(15, "seconds"),)
            ),
        ),
        "The store is made of simulated scores, so that nothing has to be trained.",
        seconds=1,
        rounds=1,
    )


def _store(folder: Path) -> None:
    from bench.tests.runs.made_store import made_store

    made_store(folder, n=1000)


def _stored(folder: Path) -> Command:
    if not os.environ.get(RUNS):
        raise AbsentError("no --runs FOLDER was given (`make demo` leaves demo-report/runs)")
    to = folder / "demo"
    return abstain("benchmark", "report", os.environ[RUNS], "--out", to, left=pages(to))
