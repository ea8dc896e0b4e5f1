"""`abstain benchmark run`: from a task or a configuration to a folder of runs."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from abstain._foundation.optional_packages import is_installed
from abstain.cli.console import console, exit_on_interrupt, print_text, progress_bar, show_status
from abstain.cli.options import PrintConfig, list_option
from abstain.errors import AbstainError, InputError, MissingInputError
from abstain.plots.words import visible
from abstain_bench.commands.benchmark.budget import show_budget
from abstain_bench.commands.job_lines import JobLines

if TYPE_CHECKING:
    from abstain_bench.runs.jobs import Outcome
    from abstain_bench.runs.specification import Config
    from abstain_bench.runs.store import Store

#: Jobs at a time, at most, unless more are asked for: what others do on the machine goes on.
_JOBS = 2


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is asked for otherwise than the task or the file says."""

    seeds: Annotated[int | None, Parameter(help="Number of networks per setting")] = None
    data: Annotated[Path | None, Parameter(help="Folder of a published data set")] = None
    model: Annotated[str | None, Parameter(help="Network (`abstain list models`)")] = None
    epochs: Annotated[
        int | None, Parameter(help="Number of epochs (default: that of the task or file)")
    ] = None
    samples: Annotated[
        int | None, Parameter(help="Number of Monte Carlo dropout passes; 0 for none")
    ] = None
    methods: Annotated[
        tuple[str, ...], list_option("Confidence scores (default: all; `abstain list scores`)")
    ] = ()
    metrics: Annotated[
        tuple[str, ...],
        list_option("Metrics, each with its own selected settings (`abstain list metrics`)"),
    ] = ()
    arms: Annotated[
        tuple[str, ...], list_option("Training objectives (default: all of the task)")
    ] = ()
    corruptions: Annotated[
        tuple[str, ...], list_option("Corruptions (`abstain list corruptions`; default: all)")
    ] = ()
    severities: Annotated[
        tuple[int, ...], list_option("Severities of the corruptions, 1 to 5 (default: all)")
    ] = ()
    precision: Annotated[
        Literal["32-true", "16-mixed", "bf16-mixed"] | None,
        Parameter(help="Floating-point precision of the training"),
    ] = None
    weights: Annotated[Path | None, Parameter(help="File with pretrained weights")] = None
    side: Annotated[
        int | None, Parameter(help="Height and width of the input images in pixels")
    ] = None
    protocol: Annotated[
        str | None,
        Parameter(help="Settings of a published benchmark (`abstain list protocols`)"),
    ] = None

    def changes(self) -> dict[str, Any]:
        """Return what was asked for, as `abstain_bench.runs.specification.changed` takes it."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found["folder"] = found.pop("data")
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
            if value not in {None, ()}
        }


@dataclass(frozen=True, kw_only=True)
class Workers:
    """What the jobs run on."""

    device: Annotated[str, Parameter(help="Device of torch: cpu, cuda, or cuda:0,cuda:1")] = "cpu"
    jobs: Annotated[
        int | None,
        Parameter(
            help="Number of parallel jobs with one thread each (default: 2, or 1 on one core)"
        ),
    ] = None
    engine: Annotated[
        Literal["processes", "dask"],
        Parameter(help="Engine of the jobs; dask requires abstain[scale]"),
    ] = "processes"
    address: Annotated[
        str, Parameter(help="Address of a dask scheduler (default: workers on this machine)")
    ] = ""


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Whether anything is done, and how fast the GPU is that it would be done by."""

    dry_run: Annotated[
        bool,
        Parameter(help="Print the number of jobs, GPU hours and disk space, and exit", negative=()),
    ] = False
    teraflops: Annotated[
        float,
        Parameter(help="Assumed speed of the GPU for --dry-run, in 10^12 operations per second"),
    ] = 10.0


_AS_IT_IS, _THIS_MACHINE, _DONE = RunOptions(), Workers(), DryRun()


def run(
    task: Annotated[str, Parameter(help="Task (`abstain list tasks`) or TOML file")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for all results")] = Path("runs"),
    asked: Annotated[RunOptions, Parameter(name="*")] = _AS_IT_IS,
    machine: Annotated[Workers, Parameter(name="*")] = _THIS_MACHINE,
    dry: Annotated[DryRun, Parameter(name="*")] = _DONE,
    print_config: PrintConfig = False,
) -> None:
    """Train networks, select settings on validation data, and test the selected networks.

    The command prints each finished job and the values of each tested network. After an
    interruption, the same command continues. The exit status is 1 if jobs failed; the results of
    the other jobs are kept.
    """
    if not dry.dry_run:
        _refuse_torchless()
    from abstain_bench.runs.store import JOBS

    config = config_of(task, asked.changes())
    if print_config or dry.dry_run:
        _tell(config, None if print_config else dry)
        return
    _say_changes(out, config)
    with (
        exit_on_interrupt("the same command goes on from here."),
        progress_bar() as bar,
        JobLines(bar, found=numbers, folder=out / JOBS) as lines,
    ):
        from abstain_bench.runs.run import run_benchmark

        store, outcomes = run_benchmark(
            config,
            out,
            device=machine.device,
            jobs=min(_JOBS, _cores()) if machine.jobs is None else machine.jobs,
            engine=machine.engine,
            address=machine.address,
            on_outcome=lines,
        )
    _show_all(store)
    _end(outcomes, out)


def _show_all(store: "Store") -> None:
    """Say what the jobs noted, and print what was found."""
    for note in store.facts.get("notes", ()):
        _note(f"Note: {note}")
    try:
        _show(store)
    except AbstainError as error:
        # What was run is there all the same: scores of others may be of networks that have changed.
        _note(f"There is no summary: {error}")


def _refuse_torchless() -> None:
    if not is_installed("torch"):
        raise MissingInputError("a benchmark trains networks and needs torch: pip install torch")


def config_of(task: str, changes: Mapping[str, Any]) -> "Config":
    """Return the configuration of a task, or that of a file."""
    from abstain_bench.runs.specification import default_config, read_config, update_config
    from abstain_bench.runs.tasks import TASKS

    if task in TASKS:
        return default_config(task, **changes)
    if protocol := changes.get("protocol"):
        raise InputError(
            f"the protocol {protocol!r} is of a task (`abstain list tasks`); got {task!r}. A file "
            "says all itself: begin with one that --print-config wrote"
        )
    path = Path(task)
    if path.suffix.lower() == ".toml" or path.is_file():
        return update_config(read_config(path), **changes)
    try:
        _ = TASKS[task]
    except InputError as error:
        raise InputError(f"{error} A configuration is a file whose name ends in '.toml'.") from None
    raise AssertionError


def _tell(config: "Config", dry: DryRun | None) -> None:
    """Print what a run would take, or its configuration."""
    from abstain._foundation.toml import toml_text
    from abstain_bench.runs.specification import to_toml_tables

    if dry is None:
        sys.stdout.write(toml_text(to_toml_tables(config)))
    else:
        show_budget(config, dry.teraflops)


def _say_changes(out: Path, config: "Config") -> None:
    """Refuse a folder of another task; say what is otherwise than it was in the folder."""
    from abstain_bench.runs.specification import to_plain
    from abstain_bench.runs.store import MANIFEST, Store, is_manifest_unreadable

    if not (out / MANIFEST).is_file() or is_manifest_unreadable(out):
        return
    before = Store.read(out).config
    if "task" not in before:
        # Runs from elsewhere.
        return
    if (task := before["task"]) != config.task:
        raise InputError(
            f"the folder {str(out)!r} holds runs of the task {task!r}; choose another one for "
            f"{config.task!r} with --out"
        )
    said = changes_in(before, to_plain(config))
    if said:
        words = (
            "The folder has runs of another configuration. They are kept, and used again where "
            "nothing that they depend on has changed:"
        )
        for line in [words, *(f"  {one}" for one in said)]:
            _note(line)


def numbers(outcome: "Outcome") -> str:
    """Return the numbers of a network that was just tested, on i.i.d. pictures."""
    from abstain.confidence.registry import BASELINE
    from abstain.metrics import METRICS
    from abstain.metrics.catalogue import CLASSIFIER_METRIC, DEFAULT_METRIC
    from abstain_bench.runs.methods import METHODS

    first = outcome.facts.get("first")
    if outcome.status != "done" or not isinstance(first, dict) or not first:
        return ""
    known = [name for name in first if name in METHODS]
    # Its own confidence and the softmax say most; those by several passes are in the tables.
    one_pass = [name for name in known if not METHODS[name].uses_mean_prediction] or known
    own = [name for name in one_pass if "learned" in METHODS[name].needs]
    softmax = [name for name in one_pass if name.rpartition("_")[2] == BASELINE][:1]
    shown = list(dict.fromkeys([*softmax, *own])) or one_pass[:1]
    beside, primary = METRICS[CLASSIFIER_METRIC], METRICS[DEFAULT_METRIC]
    right = first[shown[0]].get(beside.name) if shown else None
    said = [] if right is None else [f"{beside.title} {right:.3f}"]
    values = {METHODS[name].title: first[name].get(primary.name) for name in shown}
    said += [
        f"{primary.title} {value:.4f} ({title})"
        for title, value in values.items()
        if value is not None
    ]
    return ", ".join(said)


def _show(store: "Store") -> None:
    """Print the summary, where anything was tested."""
    if not store.tested_runs:
        return
    from abstain_bench.pages import benchmark_terminal
    from abstain_bench.results import results_of
    from abstain_bench.runs.studies import studies_of

    # The report has all metrics, and each severity; this is to be seen at once.
    studies = [study.name for study in studies_of(store.exposures) if study.headline]
    with show_status("Comparing"):
        found = results_of(store, metrics=list(store.config["metrics"])[:1], studies=studies)
    console().print(benchmark_terminal(found))


def _end(outcomes: Sequence["Outcome"], out: Path) -> None:
    """Name the logs of jobs that failed, and what makes the report."""
    from abstain_bench.runs.store import JOBS

    failed = [outcome for outcome in outcomes if not outcome.is_done]
    if failed:
        logs = [str(path) for one in failed if (path := one.job.path(out / JOBS, ".log")).is_file()]
        words = f"{len(failed)} of {len(outcomes)} jobs failed or were left out. "
        words += f"Their logs: {', '.join(logs)}. " if logs else ""
        words += "The same command tries them again."
        _note(words)
    said = f"Runs are in {out}; `abstain benchmark report {quote(str(out))}` writes the report."
    print_text(said)
    if failed:
        sys.stdout.flush()
        raise SystemExit(1)


def _note(words: str) -> None:
    """Say something beside the results: on standard error, and with no markup read from it."""
    Console(stderr=True).print(visible(words), markup=False, highlight=False, soft_wrap=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: Where the files are is no part of what a run depends on.
_SAME = {"folder"}


def changes_in(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each field that differs."""
    old, new = dict(_fields(before, "")), dict(_fields(now, ""))
    names = [name for name in {**old, **new} if name not in _SAME]
    return [
        f"{name}: {_difference(old.get(name), new.get(name))}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _fields(found: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _difference(old: Any, new: Any) -> str:
    """Say what came and went of two lists, or both values."""
    if isinstance(old, list) and isinstance(new, list):
        came = [value for value in new if value not in old]
        went = [value for value in old if value not in new]
        said = [
            f"{word} {_said(some)}" for word, some in (("with", came), ("without", went)) if some
        ]
        return ", ".join(said) or "in another order"
    return f"{_said(old)} -> {_said(new)}"


def _said(value: Any) -> str:
    if value is None:
        return "not there"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
