"""Confidences and runs from elsewhere: `abstain benchmark add-scores`, `export` and `import`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from abstain.cli.console import leave_word, say, working
from abstain.cli.options import RunsFolder, in_a_row, several

_EXPOSURES = (
    "what each data set of the folder is, in its order: validation, iid, corruption, "
    "sub-class:NAME, new-class:NAME, far-new-class:NAME, or skip"
)


def add_scores(
    folder: RunsFolder,
    file: Annotated[
        Path, Parameter(help="CSV, Parquet, Feather, JSON lines: run, exposure, row, confidences")
    ],
    /,
    *,
    name: Annotated[
        str | None, Parameter(help="of the method (default: the name of its column)")
    ] = None,
    title: Annotated[str, Parameter(help="the name that people read")] = "",
    column: Annotated[tuple[str, ...], several("a confidence (default: all other columns)")] = (),
    lower_is_safer: Annotated[
        bool, Parameter(help="the columns hold uncertainties", negative=())
    ] = False,
    replace: Annotated[
        bool, Parameter(help="replace a method that was added under this name", negative=())
    ] = False,
) -> None:
    """Add the confidences of someone else's method, to be ranked with those of the folder.

    One row a picture; `abstain benchmark export` writes a file with the columns run, exposure
    and row to compute confidences from.
    """
    from abstain_bench.runs.importing import add_scores as add

    with working("Adding"):
        found = add(
            folder,
            file,
            name=name,
            title=title,
            columns=column,
            lower_is_safer=lower_is_safer,
            replace=replace,
        )
    for note in found.notes:
        say(f"Note: {note}")
    names = ", ".join(method.name for method in found.methods)
    say(f"Added {names}; `abstain benchmark report {quote(str(folder))}` ranks it with the rest.")


def remove_scores(
    folder: RunsFolder,
    name: Annotated[str, Parameter(help="of the method, as it was added")],
    /,
) -> None:
    """Remove a method that was added to a folder of runs; the runs stay as they are."""
    from abstain_bench.runs.importing import remove_scores as remove

    found = remove(folder, name)
    say(f"Removed {found.name}; `abstain benchmark report {quote(str(folder))}` leaves it out.")


def export(
    folder: RunsFolder,
    file: Annotated[Path, Parameter(help="the file to write: NAME.parquet")],
    /,
    *,
    run: Annotated[str | None, Parameter(help="only this run (default: all tested ones)")] = None,
) -> None:
    """Write what the runs say of every picture, to compute confidences from."""
    from abstain_bench.runs.importing import export as write
    from abstain_bench.runs.store import Store

    with working("Writing"):
        found = write(Store.read(folder), run, file)
    say(f"{found.rows:,} rows of {len(found.runs)} runs, {found.classes} logits each")
    leave_word([found.path])


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Which network the results are of, beyond its arm and seed."""

    setting: Annotated[
        str, Parameter(help="what distinguishes it from others of its arm: dropout1-reward2.2")
    ] = ""
    model: Annotated[str, Parameter(help="its backbone")] = ""
    objective: Annotated[
        str, Parameter(help="of `abstain list objectives`, where --arm is another name")
    ] = ""
    held_out: Annotated[
        tuple[int, ...], in_a_row("classes that it was not trained on, in open-set studies")
    ] = ()
    stored_probabilities: Annotated[
        bool,
        Parameter(
            help="raw_logits.npz of an old DeepGamblers folder holds probabilities", negative=()
        ),
    ] = False


_NO_MORE = NetworkOptions()


def _missing_methods(reasons: Mapping[str, str]) -> str:
    """Summarize in one line which methods cannot be computed, by reason."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        general = reason.removeprefix(f"the method {name!r} ")
        names_by_reason.setdefault(general, []).append(name)
    groups = [f"{', '.join(names)} ({reason})" for reason, names in names_by_reason.items()]
    count = f"{len(reasons)} method{'s' * (len(reasons) > 1)}"
    return f"{count} cannot be computed: {'; '.join(groups)}"


def import_runs(
    results: Annotated[
        Path, Parameter(help="folder with raw_logits.npz, as FD-Shifts leaves it, or the one above")
    ],
    folder: Annotated[Path, Parameter(help="folder of runs; a new one where there is none")],
    /,
    *,
    arm: Annotated[
        str, Parameter(help="what the network was trained by: an objective, or vit, dg, tcp")
    ],
    seed: Annotated[int, Parameter(help="of the network")],
    exposures: Annotated[tuple[str, ...], in_a_row(_EXPOSURES)],
    whose: Annotated[NetworkOptions, Parameter(name="*")] = _NO_MORE,
    replace: Annotated[
        bool, Parameter(help="replace a run that was imported under this name", negative=())
    ] = False,
) -> None:
    """Make a run of results that FD-Shifts left, and score it as the others."""
    from abstain_bench.runs.importing import import_fd_shifts

    # A word on the command line, where a lone hyphen would begin an option.
    named = ["-" if name == "skip" else name for name in exposures]
    with working("Importing"):
        found = import_fd_shifts(
            results, folder, arm=arm, seed=seed, exposures=named, replaces=replace, **asdict(whose)
        )
    for note in found.notes:
        say(f"Note: {note}")
    if found.reasons:
        say(f"Note: {_missing_methods(found.reasons)}")
    say(
        f"Imported {found.run.name}: {len(found.methods)} methods on {len(found.exposures)} "
        f"exposures; `abstain benchmark report {quote(str(folder))}` reports on the folder."
    )
