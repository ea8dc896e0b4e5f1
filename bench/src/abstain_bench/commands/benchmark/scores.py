"""`abstain benchmark add-scores`, `remove-scores`, `export` and `import`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from abstain.cli.console import print_text, print_written_files, show_status
from abstain.cli.options import RunsFolder, list_option, repeatable

_EXPOSURES = (
    "Kind of each data set of the folder, in its order: validation, iid, corruption, "
    "sub-class:NAME, new-class:NAME, far-new-class:NAME, or skip"
)


def add_scores(
    folder: RunsFolder,
    file: Annotated[
        Path,
        Parameter(
            help="CSV, Parquet, Feather or JSON lines file with run, exposure, row, confidences"
        ),
    ],
    /,
    *,
    name: Annotated[
        str | None, Parameter(help="Name of the method (default: the name of its column)")
    ] = None,
    title: Annotated[str, Parameter(help="Title of the method")] = "",
    column: Annotated[
        tuple[str, ...], repeatable("Column with a confidence (default: all other columns)")
    ] = (),
    lower_is_safer: Annotated[
        bool, Parameter(help="Negate the columns, which are uncertainties", negative=())
    ] = False,
    replace: Annotated[
        bool, Parameter(help="Replace an added method with this name", negative=())
    ] = False,
) -> None:
    """Add the confidence scores of another method to a benchmark, so that the method is ranked.

    The file of scores contains one row per image. `abstain benchmark export` writes a file with the
    columns run, exposure and row, from which you can compute confidences.
    """
    from abstain_bench.runs.importing import add_scores as add

    with show_status("Adding"):
        added = add(
            folder,
            file,
            name=name,
            title=title,
            columns=column,
            lower_is_safer=lower_is_safer,
            replace=replace,
        )
    for note in added.notes:
        print_text(f"Note: {note}")
    names = ", ".join(method.name for method in added.methods)
    print_text(
        f"Added {names}; `abstain benchmark report {quote(str(folder))}` includes it in the "
        "ranking."
    )


def remove_scores(
    folder: RunsFolder,
    name: Annotated[str, Parameter(help="Name of the added method")],
    /,
) -> None:
    """Remove an added method from a folder of runs."""
    from abstain_bench.runs.importing import remove_scores as remove

    removed = remove(folder, name)
    print_text(f"Removed {removed.name} from the ranking.")


def export(
    folder: RunsFolder,
    file: Annotated[Path, Parameter(help="Output file: NAME.parquet")],
    /,
    *,
    run: Annotated[str | None, Parameter(help="Run (default: all tested runs)")] = None,
) -> None:
    """Export the network outputs of all runs, with one row per image, to compute new scores."""
    from abstain_bench.runs.importing import export as write
    from abstain_bench.runs.store import Store

    with show_status("Writing"):
        exported = write(Store.read(folder), run, file)
    print_text(
        f"{exported.rows:,} rows of {len(exported.runs)} runs, {exported.classes} logits each"
    )
    print_written_files([exported.path])


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Properties of the network, in addition to its training objective and seed."""

    setting: Annotated[
        str, Parameter(help="Setting of the network, such as dropout1-reward2.2")
    ] = ""
    model: Annotated[str, Parameter(help="Backbone of the network")] = ""
    objective: Annotated[
        str, Parameter(help="Objective (`abstain list objectives`), if --arm is another name")
    ] = ""
    held_out: Annotated[tuple[int, ...], list_option("Held-out classes of an open-set study")] = ()
    stored_probabilities: Annotated[
        bool,
        Parameter(
            help="Read raw_logits.npz as probabilities (old DeepGamblers folders)", negative=()
        ),
    ] = False


_DEFAULT_NETWORK = NetworkOptions()


def _missing_methods(reasons: Mapping[str, str]) -> str:
    """Return one line that lists the methods that cannot be computed, grouped by reason."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        general_reason = reason.removeprefix(f"the method {name!r} ")
        names_by_reason.setdefault(general_reason, []).append(name)
    groups = [f"{', '.join(names)} ({reason})" for reason, names in names_by_reason.items()]
    noun = "method" if len(reasons) == 1 else "methods"
    return f"{len(reasons)} {noun} cannot be computed: {'; '.join(groups)}"


def import_runs(
    results: Annotated[
        Path, Parameter(help="Results folder of FD-Shifts with raw_logits.npz, or its parent")
    ],
    folder: Annotated[Path, Parameter(help="Folder of runs; created if it does not exist")],
    /,
    *,
    arm: Annotated[str, Parameter(help="Training of the network: an objective, or vit, dg, tcp")],
    seed: Annotated[int, Parameter(help="Seed of the network")],
    exposures: Annotated[tuple[str, ...], list_option(_EXPOSURES)],
    network: Annotated[NetworkOptions, Parameter(name="*")] = _DEFAULT_NETWORK,
    replace: Annotated[
        bool, Parameter(help="Replace an imported run with this name", negative=())
    ] = False,
) -> None:
    """Import a folder of FD-Shifts results as a run, and compute its confidence scores."""
    from abstain_bench.runs.importing import import_fd_shifts

    # On the command line, `skip` stands for the hyphen, because a hyphen would start an option.
    exposure_names = ["-" if name == "skip" else name for name in exposures]
    with show_status("Importing"):
        imported = import_fd_shifts(
            results,
            folder,
            arm=arm,
            seed=seed,
            exposures=exposure_names,
            replaces=replace,
            **asdict(network),
        )
    for note in imported.notes:
        print_text(f"Note: {note}")
    if imported.reasons:
        print_text(f"Note: {_missing_methods(imported.reasons)}")
    print_text(
        f"Imported {imported.run.name}: {len(imported.methods)} methods on "
        f"{len(imported.exposures)} exposures; "
        f"`abstain benchmark report {quote(str(folder))}` writes the report."
    )
