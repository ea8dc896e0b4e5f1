"""`abstain benchmark status`: how far the runs of a folder are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from abstain.cli.console import console, format_duration, plain_text
from abstain.cli.options import RunsFolder
from abstain.errors import UnknownNameError, suggest
from abstain_bench.commands.job_lines import step_said

if TYPE_CHECKING:
    from abstain_bench.runs.costs import Cost
    from abstain_bench.runs.progress import Progress
    from abstain_bench.runs.selection import Chosen


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
    from abstain_bench.runs.progress import progress_of

    found = progress_of(folder)
    metrics = list(dict.fromkeys(one.metric for one in found.chosen))
    if metric is not None and metrics and metric not in metrics:
        msg = f"no setting was chosen by {metric!r}.{suggest(metric, metrics)} There are "
        raise UnknownNameError(msg + ", ".join(metrics))
    out = console()
    out.print(plain_text(f"{_what(found)}; {_size(found)} in {folder}"))
    if found.arms:
        out.print(_arms(found))
    for arm, count in found.imported.items():
        out.print(plain_text(f"Imported: {count} run{'s' * (count > 1)} of {arm}"))
    shown = metric or (metrics[0] if metrics else "")
    chosen = [one for one in found.chosen if one.metric == shown]
    if chosen:
        out.print()
        out.print(_choices(chosen, final=found.validated))
    if costs:
        _print_costs(found.costs)
    _print_rest(found)


def _what(found: "Progress") -> str:
    config = found.store.config
    if "task" not in config:
        return "Runs from elsewhere"
    seeds = len(config["seeds"])
    return f"{config['task']}, {config['model']}, {seeds} seed{'s' * (seeds > 1)}"


def _print_costs(costs: "Sequence[Cost]") -> None:
    """Print a table of the stages, and one of the scores."""
    from abstain_bench.runs.costs import by_score, by_stage

    out = console()
    for title, names, rows in (
        ("What each stage took", ("stage", "part"), by_stage(costs)),
        ("What each score took, fitted and computed", ("score",), by_score(costs)),
    ):
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.title, table.title_justify, table.title_style = title, "left", "bold"
        for name in names:
            table.add_column(name, no_wrap=len(names) == 1)
        for name in ("jobs", "seconds", "share"):
            table.add_column(name, justify="right")
        for row in rows:
            words = (plain_text(word) for word in row.words)
            table.add_row(*words, str(row.jobs), f"{row.seconds:.1f}", f"{row.share:.0%}")
        if rows:
            out.print()
            out.print(table)
    out.print()


def _print_rest(found: "Progress") -> None:
    out = console()
    for step in found.running:
        out.print(plain_text(f"Going on: {step.name}: {step_said(step)}"))
    if found.begun:
        out.print(plain_text(f"Begun, and kept in part: {', '.join(found.begun)}"))
    for failure in found.failed:
        out.print(plain_text(f"Failed: {failure.name}: {failure.error}. Its log: {failure.log}"))
    if found.over:
        words = "All is done"
    elif found.failed:
        words = "Not all is done. The command that began this goes on, and tries again what failed"
    else:
        words = "Not all is done. Unless a run is going on, the command that began it goes on"
    # Imported runs have no jobs.
    took = f"; the jobs so far took {format_duration(found.seconds)}" if found.arms else ""
    out.print(plain_text(f"{words}{took}."))


def _arms(found: "Progress") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("arm", no_wrap=True)
    for name in ("networks", "trained", "validated", "to test", "tested"):
        table.add_column(name, justify="right")
    for arm in found.arms:
        # What is tested is known once all are validated.
        to_test = str(arm.to_test) if found.validated else "?"
        numbers = (arm.networks, arm.trained, arm.validated)
        table.add_row(plain_text(arm.arm), *map(str, numbers), to_test, str(arm.tested))
    return table


def _choices(chosen: "list[Chosen]", *, final: bool) -> Table:
    so_far = "" if final else " so far"
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.title = f"Settings chosen{so_far} by {chosen[0].metric} on validation data"
    table.title_justify, table.title_style = "left", "bold"
    for name in ("method", "arm", "setting"):
        table.add_column(name, no_wrap=True)
    table.add_column("mean", justify="right")
    table.add_column("of settings", justify="right")
    for one in chosen:
        names = (plain_text(name) for name in (one.method, one.arm, one.setting))
        table.add_row(*names, f"{one.value:.4g}", str(len(one.tried)))
    return table


def _size(found: "Progress") -> str:
    size = float(found.size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
