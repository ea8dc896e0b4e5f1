"""`abstain benchmark report`: from a folder of runs to tables, figures and one page."""

import shlex
from collections.abc import Callable
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
    """What is computed from the runs."""

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
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found["rng"] = found.pop("seed")
        for name in ("metrics", "methods", "studies"):
            found[name] = list(found[name]) or None
        return found


_USUAL = EvaluationOptions()

#: In the folder of the report.
_PAGE, _TABLES = "benchmark.html", "tables"


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
        bool, Parameter(help="put what the papers print for this task beside", negative=())
    ] = False,
    evaluated: Annotated[EvaluationOptions, Parameter(name="*")] = _USUAL,
) -> None:
    """Compare the methods on every shift in tables with intervals and tests, figures and pages.

    The command writes benchmark.html, a page for all methods and a page for each study, and the
    tables as CSV, Parquet, LaTeX and Markdown. The report of an unfinished run contains the
    networks that are tested, and states this. Torch is required only for the example images.
    """
    from abstain_bench.pages import benchmark_terminal
    from abstain_bench.results import with_published
    from abstain_bench.runs.costs import Stopwatch, write_report_costs
    from abstain_bench.runs.store import MANIFEST, Store

    store, *others = _tested(folder, *beside)
    turned = [Store.read(other) for other in rotations]
    manifests = [one.folder / MANIFEST for one in (store, *turned, *others)]
    to = check_folder(out if out is not None else folder / "report", [_PAGE], manifests)
    watch = Stopwatch()
    with show_status("Comparing the methods") as told:
        every = [store, *(turned or others)]
        several = _rotated(every, evaluated) if turned else _each(every, evaluated, watch, told)
        found, *compared = several
    found = with_published(found) if published else found
    write_and_print(
        lambda: benchmark_terminal(found), lambda: _files(found, compared, store, data, watch), to
    )
    write_report_costs(store.folder, watch)


def _files(
    found: "BenchmarkResults",
    compared: "list[BenchmarkResults]",
    store: "Store",
    data: Path | None,
    watch: "Stopwatch",
) -> dict[str, bytes]:
    from abstain_bench.pages import benchmark_pictures, benchmark_site
    from abstain_bench.pages.benchmark.output import table_files

    own = store.config
    with watch.of("page"):
        pictures = benchmark_pictures(found, own.get("task", ""), data or own.get("folder") or None)
        pages = benchmark_site(found, pictures=pictures, beside=compared, command=current_command())
    with watch.of("tables"):
        tables = {f"{_TABLES}/{name}": held for name, held in table_files(found).items()}
    return {name: page.encode() for name, page in pages.items()} | tables


def _tested(*folders: Path) -> "list[Store]":
    """Read folders of one task, each of which has a run that was tested."""
    from abstain_bench.runs.store import Store

    stores = [Store.read(folder) for folder in folders]
    for one in stores:
        if not one.tested_runs:
            raise InputError(
                f"no run of {str(one.folder)!r} is tested yet; `abstain benchmark status "
                f"{shlex.quote(str(one.folder))}` says how far it is"
            )
        _refuse_other_task(one, stores[0])
    return stores


def _each(
    stores: "list[Store]",
    evaluated: EvaluationOptions,
    watch: "Stopwatch",
    told: Callable[[str], None],
) -> "list[BenchmarkResults]":
    """Return what each folder says, and tell how far it is."""
    from abstain_bench.results import results_of

    options = {
        "on_study": lambda over, total: told(f"{over} of {total} studies"),
        "watch": watch,
        **evaluated.options(),
    }
    return [results_of(one, **options) for one in stores]


def _rotated(stores: "list[Store]", evaluated: EvaluationOptions) -> "list[BenchmarkResults]":
    """Return the mean over folders that hold out other classes; no thresholds are set."""
    from abstain_bench.results import rotated_results

    given = evaluated.options()
    for name in ("risk", "delta"):
        del given[name]
    return [rotated_results(stores, **given)]


def _refuse_other_task(other: "Store", store: "Store") -> None:
    tasks = [one.config.get("task") for one in (store, other)]
    if tasks[0] != tasks[1]:
        raise InputError(f"`--beside` compares runs of one task; got {tasks[0]!r} and {tasks[1]!r}")
