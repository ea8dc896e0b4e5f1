"""What `abstain benchmark run --dry-run` prints: jobs, hours and disk, before anything is done."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from abstain.cli.console import console, plain_text

if TYPE_CHECKING:
    from abstain_bench.runs.specification import Config
    from abstain_bench.runs.specification.budget import Budget

_GB = 1e9


def show_budget(config: "Config", teraflops: float) -> None:
    """Print what a configuration would take."""
    from abstain_bench.runs.specification.arms import reward_notes
    from abstain_bench.runs.specification.budget import budget_of
    from abstain_bench.runs.tasks.counts import counts_of, published_counts

    asked = (config.corruptions, config.severities)
    counts = published_counts(config.task, config.data, *asked)
    if counts is None:
        folder = Path(config.folder) if config.folder else None
        counts = counts_of(config.task, folder, config.data, *asked)
    found = budget_of(config, counts, teraflops=teraflops)
    out = console()
    seeds = len(config.seeds)
    out.print(
        plain_text(f"{config.task}, {config.model}, {seeds} seeds: at most {found.jobs:,} jobs")
    )
    out.print(_table(found))
    notes = [f"Note: {note}." for note in reward_notes(config.arms, counts.classes)]
    for words in [*_said(found), *notes]:
        out.print(plain_text(words), soft_wrap=True)


def _table(found: "Budget") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("stage", "networks trained by"):
        table.add_column(name, no_wrap=True)
    for name in ("jobs", "GPU hours", "disk, GB"):
        table.add_column(name, justify="right")
    for row in found.rows:
        words = (plain_text(row.stage), plain_text(row.arm))
        table.add_row(*words, f"{row.jobs:,}", _hours(row.hours), f"{row.size / _GB:.2f}")
    table.add_row("all", "", f"{found.jobs:,}", _hours(found.hours), f"{found.size / _GB:.2f}")
    return table


def _hours(hours: float | None) -> str:
    return "?" if hours is None else f"{hours:,.1f}"


def _said(found: "Budget") -> list[str]:
    counts = found.counts
    tested = sum(counts.exposures.values())
    words = (
        f"Pictures: {counts.train:,} to learn from, {counts.validation:,} to choose on, {tested:,} "
        f"in {len(counts.exposures)} exposures; {found.memory / _GB:.1f} GB of memory a process."
    )
    said = [words]
    if found.hours is not None:
        said.append(
            f"Hours: operations of the networks over {found.teraflops:g} TFLOP/s, assumed "
            "(--teraflops); reading pictures and computing scores come on top."
        )
    else:
        said.append("Hours: not known; nobody counted what a pass of this network costs.")
    said.append(
        "Tests are those of all settings. Only settings that some method chose are tested, so the "
        "lines of tests are the most that it can be."
    )
    return said
