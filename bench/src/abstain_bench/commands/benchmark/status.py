"""`abstain benchmark status`: progress of the runs in a folder."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from abstain.cli.console import console, format_duration, plain_text
from abstain.cli.options import RunsFolder
from abstain.errors import UnknownNameError, suggest
from abstain_bench.commands.console import plain_table, progress_text

if TYPE_CHECKING:
    from abstain_bench.runs.costs import Cost, CostRow
    from abstain_bench.runs.progress import Progress
    from abstain_bench.runs.selection import SelectedSetting


def status(
    folder: RunsFolder,
    /,
    *,
    metric: Annotated[
        str | None, Parameter(help="Metric of the displayed settings (default: the first)")
    ] = None,
    costs: Annotated[
        bool, Parameter(help="Also print the time of each stage and score", negative=())
    ] = False,
) -> None:
    """Print the progress of a run: finished and failed jobs, and the selected settings so far."""
    from abstain_bench.runs.progress import read_progress

    progress = read_progress(folder)
    metrics = list(dict.fromkeys(selection.metric for selection in progress.selected))
    if metric is not None and metrics and metric not in metrics:
        hint = suggest(metric, metrics)
        raise UnknownNameError(
            f"no setting was selected by {metric!r}.{hint} Metrics: {', '.join(metrics)}"
        )
    out = console()
    out.print(plain_text(f"{_configuration_text(progress)}; {_size_text(progress)} in {folder}"))
    if progress.arms:
        out.print(_objectives_table(progress))
    for arm, count in progress.imported.items():
        out.print(plain_text(f"Imported: {_format_plural(count, 'run')} of {arm}"))
    displayed_metric = metric or next(iter(metrics), "")
    selections = [
        selection for selection in progress.selected if selection.metric == displayed_metric
    ]
    if selections:
        out.print()
        out.print(_selections_table(selections, is_final=progress.is_validated))
    if costs:
        _print_costs(progress.costs)
    _print_remaining(progress)


def _format_plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _configuration_text(progress: "Progress") -> str:
    """Return the name of the task, the name of the model and the number of seeds."""
    config = progress.store.config
    if "task" not in config:
        return "Imported runs"
    seeds = _format_plural(len(config["seeds"]), "seed")
    return f"{config['task']}, {config['model']}, {seeds}"


def _print_costs(costs: "Sequence[Cost]") -> None:
    """Print the number of jobs and the duration of each stage, and the duration of each score."""
    from abstain_bench.runs.costs import costs_by_score, costs_by_stage

    by_stage = costs_by_stage(costs)
    by_score = costs_by_score(costs)
    out = console()
    if by_stage:
        table = _costs_table("Time by stage", ("stage", "part"), by_stage)
        table.columns[1].no_wrap = False
        out.print()
        out.print(table)
    if by_score:
        out.print()
        out.print(_costs_table("Time by score (fitting and computing)", ("score",), by_score))
    out.print()


def _costs_table(title: str, names: "Sequence[str]", rows: "Sequence[CostRow]") -> Table:
    table = plain_table(names, ("jobs", "seconds", "share"), title=title)
    for row in rows:
        labels = (plain_text(label) for label in row.labels)
        table.add_row(*labels, str(row.jobs), f"{row.seconds:.1f}", f"{row.share:.0%}")
    return table


def _print_remaining(progress: "Progress") -> None:
    """Print which jobs are running, interrupted or failed, and whether all jobs are complete."""
    out = console()
    for step in progress.running_jobs:
        out.print(plain_text(f"Running: {step.name}: {progress_text(step)}"))
    if progress.unfinished_trainings:
        names = ", ".join(progress.unfinished_trainings)
        out.print(plain_text(f"Interrupted, with a checkpoint: {names}"))
    for failure in progress.failures:
        out.print(plain_text(f"Failed: {failure.name}: {failure.error}. Log: {failure.log}"))
    if progress.is_finished:
        state = "The run is complete"
    elif progress.failures:
        state = "The run is incomplete. The same `run` command continues it and repeats failed jobs"
    else:
        state = "The run is incomplete. If it is not running, the same `run` command continues it"
    # Imported runs have no jobs.
    time_text = f"; time of all jobs: {format_duration(progress.seconds)}" if progress.arms else ""
    out.print(plain_text(f"{state}{time_text}."))


def _objectives_table(progress: "Progress") -> Table:
    """Return a table with the numbers of finished networks for each training objective."""
    counts = ("networks", "trained", "validated", "to test", "tested")
    table = plain_table(["arm"], counts)
    for arm in progress.arms:
        # The number of networks to test is unknown until all networks are validated.
        to_test = str(arm.n_to_test) if progress.is_validated else "?"
        numbers = (arm.n_networks, arm.n_trained, arm.n_validated)
        table.add_row(plain_text(arm.arm), *map(str, numbers), to_test, str(arm.n_tested))
    return table


def _selections_table(selections: "list[SelectedSetting]", *, is_final: bool) -> Table:
    """Return a table with the selected setting of each method."""
    so_far = "" if is_final else " so far"
    title = f"Settings selected{so_far} by {selections[0].metric} on validation data"
    table = plain_table(("method", "arm", "setting"), ("mean", "settings tried"), title=title)
    for selection in selections:
        names = (plain_text(name) for name in (selection.method, selection.arm, selection.setting))
        table.add_row(*names, f"{selection.value:.4g}", str(len(selection.tried)))
    return table


def _size_text(progress: "Progress") -> str:
    """Format the size of the folder of runs with a unit from bytes to GB."""
    size = float(progress.size)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
