"""Output of `abstain benchmark run --dry-run`: jobs, GPU hours and disk space of a run."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from abstain.cli.console import console, plain_text

if TYPE_CHECKING:
    from abstain_bench.runs.specification import Config
    from abstain_bench.runs.specification.budget import Budget

_GB = 1e9


def show_budget(config: "Config", teraflops: float) -> None:
    """Print the jobs, GPU hours and disk space of a configuration."""
    from abstain_bench.runs.specification.arms import reward_notes
    from abstain_bench.runs.specification.budget import budget_of
    from abstain_bench.runs.tasks.counts import count_images, published_counts

    corruption_options = (config.corruptions, config.severities)
    counts = published_counts(config.task, config.data, *corruption_options)
    if counts is None:
        folder = Path(config.folder) if config.folder else None
        counts = count_images(config.task, folder, config.data, *corruption_options)
    budget = budget_of(config, counts, teraflops=teraflops)
    out = console()
    seeds = len(config.seeds)
    out.print(
        plain_text(f"{config.task}, {config.model}, {seeds} seeds: at most {budget.jobs:,} jobs")
    )
    out.print(_table(budget))
    notes = [f"Note: {note}." for note in reward_notes(config.arms, counts.classes)]
    for sentence in [*_budget_sentences(budget), *notes]:
        out.print(plain_text(sentence), soft_wrap=True)


def _table(budget: "Budget") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("stage", "networks trained by"):
        table.add_column(name, no_wrap=True)
    for name in ("jobs", "GPU hours", "disk, GB"):
        table.add_column(name, justify="right")
    for row in budget.rows:
        names = (plain_text(row.stage), plain_text(row.arm))
        table.add_row(*names, f"{row.jobs:,}", _hours(row.hours), f"{row.size / _GB:.2f}")
    table.add_row("all", "", f"{budget.jobs:,}", _hours(budget.hours), f"{budget.size / _GB:.2f}")
    return table


def _hours(hours: float | None) -> str:
    return "?" if hours is None else f"{hours:,.1f}"


def _budget_sentences(budget: "Budget") -> list[str]:
    counts = budget.counts
    n_tested = sum(counts.exposures.values())
    sizes = (
        f"Images: {counts.train:,} for training, {counts.validation:,} for validation, "
        f"{n_tested:,} in {len(counts.exposures)} test sets; "
        f"{budget.memory / _GB:.1f} GB of memory per process."
    )
    sentences = [sizes]
    if budget.hours is not None:
        sentences.append(
            f"GPU hours: operations of the networks at an assumed {budget.teraflops:g} TFLOP/s "
            "(--teraflops), without the time for reading images and computing scores."
        )
    else:
        sentences.append(
            "GPU hours: unknown, because the operations of this network are not counted."
        )
    sentences.append(
        "The numbers of tests are upper bounds: only settings that some method selects are tested."
    )
    return sentences
