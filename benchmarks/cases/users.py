"""Cases for the commands that users run most, on files of three sizes."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.cases import files
from benchmarks.cases.commands import run, setup_files, work
from benchmarks.cases.entry import BenchmarkCase, Section, Sizes, Variant

SECTION = Section(
    "users",
    "Time and memory of the main commands",
    "The table contains the wall time and the peak memory of the process, including the start of "
    "Python. The Parquet file has a confidence (float32) and a correctness (int8) per row. "
    "`evaluate` computes all metrics with intervals and writes a report. With `--engine stream`, "
    "the memory depends on the number of distinct confidences instead of the number of rows. The "
    "values were measured on two cores without other load.",
    cell="seconds",
)


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield one case per number of rows."""
    table = Path("results.parquet")
    columns = ("--confidence", "confidence", "--correct", "correct")
    commands = {
        "abstain evaluate FILE --out DIR": run("evaluate", table, *columns, out="evaluate"),
        "abstain evaluate FILE --engine stream --out DIR": run(
            "evaluate", table, *columns, "--engine", "stream", out="stream"
        ),
        "abstain threshold FILE --max-risk 0.02": run(
            "threshold", table, *columns, "--max-risk", "0.02"
        ),
    }
    for n in sizes.users:
        yield BenchmarkCase(
            f"commands for users, {n:,} rows",
            SECTION.name,
            setup_files(lambda folder, _, n=n: files.correctness(folder / table, n)),
            work(),
            tuple(Variant(name, prepare) for name, prepare in commands.items()),
            n=n,
            seconds=0.0,
            rounds=2 if n <= 10**6 else 1,
            column=f"{n:,} rows",
        )
