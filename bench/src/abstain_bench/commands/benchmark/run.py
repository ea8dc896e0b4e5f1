"""`abstain benchmark run`: run the benchmark of a task or a configuration."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from abstain._foundation.lazy_imports import is_installed
from abstain.cli.console import (
    console,
    exit_on_interrupt,
    plain_text,
    print_text,
    progress_bar,
    show_status,
)
from abstain.cli.options import PrintConfig, list_option
from abstain.errors import AbstainError, InputError, MissingInputError, UnknownNameError
from abstain_bench.commands.console import JobLines, plain_table, print_line

if TYPE_CHECKING:
    from rich.table import Table

    from abstain_bench.runs.jobs import Outcome
    from abstain_bench.runs.specification import Config
    from abstain_bench.runs.specification.budget import Budget
    from abstain_bench.runs.store import Store
    from abstain_bench.runs.tasks.counts import ImageCounts

#: Default maximum number of parallel jobs, which leaves cores for other programs.
_MAX_DEFAULT_JOBS = 2
_STDERR = Console(stderr=True)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that replace fields of the configuration of the task or file."""

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
        """Return the overridden options, for `abstain_bench.runs.specification`."""
        options = {name: getattr(self, name) for name in self.__dataclass_fields__}
        options["folder"] = options.pop("data")
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in options.items()
            if value not in {None, ()}
        }


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Devices and processes of the jobs."""

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
    """Options of a dry run."""

    dry_run: Annotated[
        bool,
        Parameter(help="Print the number of jobs, GPU hours and disk space, and exit", negative=()),
    ] = False
    teraflops: Annotated[
        float,
        Parameter(help="Assumed speed of the GPU for --dry-run, in 10^12 operations per second"),
    ] = 10.0


_NO_CHANGES = RunOptions()
_DEFAULT_WORKERS = Workers()
_NO_DRY_RUN = DryRun()


def run(
    task: Annotated[str, Parameter(help="Task (`abstain list tasks`) or TOML file")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for all results")] = Path("runs"),
    options: Annotated[RunOptions, Parameter(name="*")] = _NO_CHANGES,
    workers: Annotated[Workers, Parameter(name="*")] = _DEFAULT_WORKERS,
    dry_run: Annotated[DryRun, Parameter(name="*")] = _NO_DRY_RUN,
    print_config: PrintConfig = False,
) -> None:
    """Train networks, select settings on validation data, and test the selected networks.

    The command prints each finished job and the values of each tested network. If the command is
    interrupted, run it again to continue. If jobs fail, the command exits with status 1 and keeps
    the results of the other jobs.
    """
    if not dry_run.dry_run and not is_installed("torch"):
        raise MissingInputError("a benchmark trains networks and needs torch: pip install torch")
    config = config_of(task, options.changes())
    if print_config:
        from abstain._foundation.toml import toml_text
        from abstain_bench.runs.specification import to_toml_tables

        sys.stdout.write(toml_text(to_toml_tables(config)))
        return
    if dry_run.dry_run:
        show_budget(config, dry_run.teraflops)
        return
    from abstain_bench.runs.store import JOBS

    _print_changes(out, config)
    with (
        exit_on_interrupt("the same command continues."),
        progress_bar() as bar,
        JobLines(bar, describe_result=result_text, folder=out / JOBS) as job_lines,
    ):
        from abstain_bench.runs.run import run_benchmark

        store, outcomes = run_benchmark(
            config,
            out,
            device=workers.device,
            jobs=_default_n_jobs() if workers.jobs is None else workers.jobs,
            engine=workers.engine,
            address=workers.address,
            on_outcome=job_lines,
        )
    _print_results(store)
    _print_end(outcomes, out)


def _print_results(store: "Store") -> None:
    """Print the notes of the jobs. If a network was tested, the summary is also printed."""
    from abstain_bench.pages import benchmark_terminal
    from abstain_bench.results import results_of
    from abstain_bench.runs.studies import studies_of

    for note in store.facts.get("notes", ()):
        print_line(_STDERR, f"Note: {note}")
    if not store.tested_runs:
        return
    # The summary must be available at once, so it omits most metrics and severities.
    studies = [study.name for study in studies_of(store.exposures) if study.headline]
    metrics = list(store.config["metrics"])[:1]
    try:
        with show_status("Comparing"):
            results = results_of(store, metrics=metrics, studies=studies)
        console().print(benchmark_terminal(results))
    except AbstainError as error:
        # The runs are stored nevertheless. Added scores may belong to networks that have changed.
        print_line(_STDERR, f"The summary is not available: {error}")


def config_of(task: str, changes: Mapping[str, Any]) -> "Config":
    """Return the configuration of a task, or read it from a file."""
    from abstain_bench.runs.specification import default_config, read_config, update_config
    from abstain_bench.runs.tasks import TASKS

    protocol = changes.get("protocol")
    if protocol and task not in TASKS:
        raise InputError(
            f"`--protocol {protocol}` requires a task (`abstain list tasks`); got {task!r}. A file "
            "contains all settings: start with a file that --print-config writes"
        )
    path = Path(task)
    if task not in TASKS and (path.suffix.lower() == ".toml" or path.is_file()):
        return update_config(read_config(path), **changes)
    try:
        TASKS[task]
    except UnknownNameError as error:
        raise InputError(f"{error} Names of configuration files must end in '.toml'.") from None
    return default_config(task, **changes)


def _print_changes(out: Path, config: "Config") -> None:
    """Raise an error that lists the differences if the folder belongs to another task."""
    from abstain_bench.runs.specification import to_plain
    from abstain_bench.runs.store import MANIFEST, Store, is_manifest_unreadable

    if not (out / MANIFEST).is_file() or is_manifest_unreadable(out):
        return
    previous = Store.read(out).config
    if "task" not in previous:
        # The folder contains only imported runs.
        return
    previous_task = previous["task"]
    if previous_task != config.task:
        raise InputError(
            f"the folder {str(out)!r} contains runs of the task {previous_task!r}; choose another "
            f"folder for {config.task!r} with --out"
        )
    changes = changes_in(previous, to_plain(config))
    if changes:
        print_line(
            _STDERR,
            "The folder contains runs of another configuration. They are used again if nothing "
            "that they depend on has changed:",
        )
        for change in changes:
            print_line(_STDERR, f"  {change}")


def result_text(outcome: "Outcome") -> str:
    """Return the text with the results of a tested network on the unshifted test images."""
    from abstain.metrics import METRICS
    from abstain.metrics.catalogue import CLASSIFIER_METRIC, DEFAULT_METRIC
    from abstain_bench.runs.methods import METHODS

    values_by_method = outcome.facts.get("first")
    if outcome.status != "done" or not isinstance(values_by_method, dict):
        return ""
    reported = _reported_methods(list(values_by_method))
    classifier_metric = METRICS[CLASSIFIER_METRIC]
    default_metric = METRICS[DEFAULT_METRIC]
    texts = []
    for name in reported[:1]:
        classifier_value = values_by_method[name].get(classifier_metric.name)
        if classifier_value is not None:
            texts.append(f"{classifier_metric.title} {classifier_value:.3f}")
    for name in reported:
        value = values_by_method[name].get(default_metric.name)
        if value is not None:
            texts.append(f"{default_metric.title} {value:.4f} ({METHODS[name].title})")
    return ", ".join(texts)


def _reported_methods(names: Sequence[str]) -> list[str]:
    """Select the softmax response and the learned confidence, or else the first method."""
    from abstain.confidence.registry import BASELINE
    from abstain_bench.runs.methods import METHODS

    methods = [name for name in names if name in METHODS]
    single_pass = [name for name in methods if not METHODS[name].uses_mean_prediction] or methods
    learned = [name for name in single_pass if "learned" in METHODS[name].needs]
    softmax = [name for name in single_pass if name.rpartition("_")[2] == BASELINE][:1]
    return list(dict.fromkeys([*softmax, *learned])) or single_pass[:1]


def _print_end(outcomes: Sequence["Outcome"], out: Path) -> None:
    """Print the logs of failed jobs and the command that writes the report."""
    from abstain_bench.runs.store import JOBS

    failed = [outcome for outcome in outcomes if not outcome.is_done]
    if failed:
        paths = [outcome.job.path(out / JOBS, ".log") for outcome in failed]
        logs = [str(path) for path in paths if path.is_file()]
        sentences = [f"{len(failed)} of {len(outcomes)} jobs failed or were skipped."]
        if logs:
            sentences.append(f"Their logs: {', '.join(logs)}.")
        sentences.append("The same command tries them again.")
        print_line(_STDERR, " ".join(sentences))
    print_text(
        f"Runs are in {out}; `abstain benchmark report {quote(str(out))}` writes the report."
    )
    if failed:
        sys.stdout.flush()
        raise SystemExit(1)


def _default_n_jobs() -> int:
    """Return the number of available cores, limited to `_MAX_DEFAULT_JOBS`."""
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    return min(_MAX_DEFAULT_JOBS, n_cores)


#: Fields that do not affect the results of a run, such as the location of the files.
_IGNORED_FIELDS = {"folder"}


def changes_in(previous: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Write one line for each field that differs between two configurations."""
    old_fields = dict(_fields(previous, ""))
    new_fields = dict(_fields(current, ""))
    changes = []
    for name in {**old_fields, **new_fields}:
        old, new = old_fields.get(name), new_fields.get(name)
        if name not in _IGNORED_FIELDS and old != new:
            changes.append(f"{name}: {_describe_change(old, new)}")
    return changes


def _fields(fields: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield each field as a name and a value, where nested fields have names with dots."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _describe_change(old: Any, new: Any) -> str:
    """Describe how a value changed; for lists, name the added and the removed values."""
    if not isinstance(old, list) or not isinstance(new, list):
        return f"{_value_text(old)} -> {_value_text(new)}"
    added = [value for value in new if value not in old]
    removed = [value for value in old if value not in new]
    differences = []
    if added:
        differences.append(f"with {_value_text(added)}")
    if removed:
        differences.append(f"without {_value_text(removed)}")
    return ", ".join(differences) or "in another order"


def _value_text(value: Any) -> str:
    if value is None:
        return "not set"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_GB = 1e9


def show_budget(config: "Config", teraflops: float) -> None:
    """Print the estimated number of jobs, GPU hours and disk space of a configuration."""
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
    heading = f"{config.task}, {config.model}, {len(config.seeds)} seeds"
    out.print(plain_text(f"{heading}: at most {budget.jobs:,} jobs"))
    out.print(_budget_table(budget))
    for sentence in (
        _images_text(counts, budget),
        _hours_text(budget, teraflops),
        "The numbers of tests are upper bounds: only settings that some method selects are tested.",
        *(f"Note: {note}." for note in reward_notes(config.arms, counts.classes)),
    ):
        out.print(plain_text(sentence), soft_wrap=True)


def _budget_table(budget: "Budget") -> "Table":
    """Return a table of the jobs, GPU hours and disk space of each stage, with the totals."""
    table = plain_table(("stage", "networks trained by"), ("jobs", "GPU hours", "disk, GB"))
    for row in budget.rows:
        names = (plain_text(row.stage), plain_text(row.arm))
        table.add_row(*names, f"{row.jobs:,}", _hours(row.hours), f"{row.size / _GB:.2f}")
    table.add_row("all", "", f"{budget.jobs:,}", _hours(budget.hours), f"{budget.size / _GB:.2f}")
    return table


def _images_text(counts: "ImageCounts", budget: "Budget") -> str:
    n_tested = sum(counts.exposures.values())
    return (
        f"Images: {counts.train:,} for training, {counts.validation:,} for validation, "
        f"{n_tested:,} in {len(counts.exposures)} test sets; "
        f"{budget.memory / _GB:.1f} GB of memory per process."
    )


def _hours_text(budget: "Budget", teraflops: float) -> str:
    if budget.hours is None:
        return "GPU hours: unknown, because the operations of this network are not counted."
    return (
        f"GPU hours: operations of the networks at an assumed {teraflops:g} TFLOP/s "
        "(--teraflops), without the time for reading images and computing scores."
    )


def _hours(hours: float | None) -> str:
    return "?" if hours is None else f"{hours:,.1f}"
