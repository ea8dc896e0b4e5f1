"""`abstain benchmark report`: write tables, figures and pages of a run folder."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from abstain.cli.console import show_status
from abstain.cli.options import RunsFolder, Seed, list_option
from abstain.cli.output_folder import check_folder, current_command, write_and_print
from abstain.errors import InputError

if TYPE_CHECKING:
    from abstain_bench.results import BenchmarkResults
    from abstain_bench.runs.costs import Stopwatch
    from abstain_bench.runs.store import Store


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """Options for the evaluation of a benchmark."""

    metrics: Annotated[tuple[str, ...], list_option("Metrics of the run (default: all)")] = ()
    methods: Annotated[tuple[str, ...], list_option("Methods (default: all)")] = ()
    studies: Annotated[
        tuple[str, ...], list_option("Studies, such as iid corruption (default: all)")
    ] = ()
    level: Annotated[float, Parameter(help="Confidence level of intervals and tests")] = 0.95
    bootstrap: Annotated[
        int, Parameter(help="Number of resamples for the ranks (default: influence functions)")
    ] = 0
    risk: Annotated[float, Parameter(help="Largest risk of the decision rules")] = 0.05
    delta: Annotated[float, Parameter(help="Probability that their guarantee fails")] = 0.05
    outlier_cost: Annotated[
        float, Parameter(help="Cost of an accepted image of an unknown class, relative to an error")
    ] = 2.0
    seed: Seed = 0

    def options(self) -> dict[str, Any]:
        """Return the options of `results_of`."""
        options = {name: getattr(self, name) for name in self.__dataclass_fields__}
        options["rng"] = options.pop("seed")
        for name in ("metrics", "methods", "studies"):
            options[name] = list(options[name]) or None
        return options


_DEFAULT_EVALUATION = EvaluationOptions()

#: Name of the first page in the folder of the report.
_PAGE = "benchmark.html"
#: Name of the folder of the tables in the folder of the report.
_TABLES = "tables"


def report(
    folder: RunsFolder,
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="Folder for the page and the tables (default: FOLDER/report)")
    ] = None,
    beside: Annotated[
        tuple[Path, ...], list_option("Other folders of the same task to compare with")
    ] = (),
    rotations: Annotated[
        tuple[Path, ...],
        list_option(
            "Other folders with other held-out classes; all values are means over the folders"
        ),
    ] = (),
    data: Annotated[
        Path | None,
        Parameter(help="Folder of the data set, for images (default: the folder of the run)"),
    ] = None,
    published: Annotated[
        bool, Parameter(help="Compare with the published numbers for this task", negative=())
    ] = False,
    evaluation: Annotated[EvaluationOptions, Parameter(name="*")] = _DEFAULT_EVALUATION,
) -> None:
    """Compare the methods on every shift, and write a report with tables, figures and tests.

    The command writes benchmark.html, one page for all methods, one page per study, and each table
    as CSV, Parquet, LaTeX and Markdown. If the benchmark is unfinished, the report covers the
    networks that were tested and states that it is incomplete. Only the example images require
    torch.
    """
    from abstain_bench.pages import benchmark_terminal
    from abstain_bench.results import with_published
    from abstain_bench.runs.costs import Stopwatch, write_report_costs
    from abstain_bench.runs.store import MANIFEST, Store

    stores = _tested_stores(folder, *beside)
    rotated_stores = [Store.read(other) for other in rotations]
    manifests = [store.folder / MANIFEST for store in (*stores, *rotated_stores)]
    target = check_folder(out if out is not None else folder / "report", [_PAGE], manifests)
    stopwatch = Stopwatch()
    own_results, *other_results = _evaluate(stores, rotated_stores, evaluation, stopwatch)
    results = with_published(own_results) if published else own_results
    write_and_print(
        lambda: benchmark_terminal(results),
        lambda: _report_files(results, other_results, stores[0], data, stopwatch),
        target,
    )
    write_report_costs(stores[0].folder, stopwatch)


def _evaluate(
    stores: "list[Store]",
    rotated_stores: "list[Store]",
    evaluation: EvaluationOptions,
    stopwatch: "Stopwatch",
) -> "list[BenchmarkResults]":
    """Evaluate each folder of runs separately, or evaluate the mean over all rotations."""
    from abstain_bench.results import results_of, rotated_results

    options = evaluation.options()
    with show_status("Comparing the methods") as update_status:
        if rotated_stores:
            # The thresholds of different networks have no mean.
            del options["risk"], options["delta"]
            return [rotated_results([stores[0], *rotated_stores], **options)]
        options["on_study"] = lambda done, total: update_status(f"{done} of {total} studies")
        options["watch"] = stopwatch
        return [results_of(store, **options) for store in stores]


def _report_files(
    results: "BenchmarkResults",
    other_results: "list[BenchmarkResults]",
    store: "Store",
    data: Path | None,
    stopwatch: "Stopwatch",
) -> dict[str, bytes]:
    """Return a dictionary that maps the path of each output file to its content."""
    from abstain_bench.pages import benchmark_pictures, benchmark_site
    from abstain_bench.pages.benchmark.output import table_files

    config = store.config
    with stopwatch.measure("page"):
        data_folder = data or config.get("folder") or None
        images = benchmark_pictures(results, config.get("task", ""), data_folder)
        command = current_command()
        pages = benchmark_site(results, images=images, other_models=other_results, command=command)
    with stopwatch.measure("tables"):
        tables = {f"{_TABLES}/{name}": content for name, content in table_files(results).items()}
    return {name: page.encode() for name, page in pages.items()} | tables


def _tested_stores(*folders: Path) -> "list[Store]":
    """Read the folders of runs, which must share one task and contain tested networks."""
    from abstain_bench.runs.store import Store

    stores = [Store.read(folder) for folder in folders]
    first_task = stores[0].config.get("task")
    for store in stores:
        if not store.tested_runs:
            raise InputError(
                f"no run in {str(store.folder)!r} is tested yet; `abstain benchmark status "
                f"{shlex.quote(str(store.folder))}` prints its progress"
            )
        task = store.config.get("task")
        if task != first_task:
            raise InputError(
                f"`--beside` compares runs of one task; got {first_task!r} and {task!r}"
            )
    return stores
