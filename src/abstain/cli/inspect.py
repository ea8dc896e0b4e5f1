"""`abstain inspect`: what files may hold, and the command that evaluates them so."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from abstain.cli.command_line import format_flag
from abstain.cli.console import console, plain_text, print_text
from abstain.cli.options import Files
from abstain.cli.predictions import expand_patterns
from abstain.cli.standard_input import original_name
from abstain.errors import InputError

if TYPE_CHECKING:
    from abstain.tables.proposals.columns import ColumnProposal
    from abstain.tables.table import DataTable

#: Columns that are named one by one.
_FEW = 4


def inspect(
    files: Files,
    /,
    *,
    run: Annotated[
        bool, Parameter(help="Run the command without confirmation", negative=())
    ] = False,
    out: Annotated[Path | None, Parameter(help="Folder for the output of the command")] = None,
) -> None:
    """Describe files of predictions and print the command that evaluates them.

    The command proposes roles, splits and directions from names and values. In a terminal, it
    asks whether to run the proposed command. `abstain FILE...` runs it immediately and prints
    what it used.
    """
    from abstain.tables.proposal import propose

    table, form = _read_numbers(_table_of(expand_patterns(files)))
    found = (*propose(table), *form)
    what = "keys" if table.has_keys else "columns"
    print_text(f"{table.source}: {table.n_rows:,} rows, {len(table.names):,} {what}")
    for one in found:
        print_text(f"  {one.role.replace('_', ' ')}: {_named(one)} ({one.reason})")
    arguments = [
        "evaluate",
        *_options(found, table.names),
        *([] if out is None else ["--out", str(out)]),
    ]
    _refuse_lacking(found, table.names)
    arguments += map(original_name, files)
    said = shlex.join(["abstain", *arguments])
    console().print(plain_text(said), style="bold", soft_wrap=True)
    if run or _agreed():
        from abstain.cli.main import run as run_command

        if status := run_command(arguments):
            raise SystemExit(status)


def _table_of(files: Sequence[Path]) -> "DataTable":
    """Open what is looked at: arrays of one set together, of other files the first."""
    from abstain.tables import array_files, hugging_face
    from abstain.tables.files import open_table

    if not files:
        raise InputError("name at least one file of predictions")
    if len(files) > 1 and array_files.are_arrays(files):
        return array_files.open_arrays(files)
    tables: list[DataTable] = []
    for file in files:
        if file.is_dir() and not hugging_face.is_saved(file):
            raise InputError(
                f"{file} is a folder: name a file of it, or run `abstain evaluate {file}`"
            )
        saved = hugging_face.saved_tables(file) if file.is_dir() else {"": open_table(file)}
        tables += saved.values()
    first = tables[0]
    for table in tables[1:]:
        lacking = [name for name in first.names if table.find(name) is None]
        if lacking:
            raise InputError(
                f"{table.source} has no column {lacking[0]!r}, and {first.source} has: inspect "
                "files of other columns by themselves"
            )
    return first


def _read_numbers(table: "DataTable") -> "tuple[DataTable, list[ColumnProposal]]":
    """Return the table with texts such as "90%" and "0,9" as numbers, and the option for them."""
    from abstain.tables.decimal_comma import with_numbers
    from abstain.tables.proposals.columns import ColumnProposal

    with_points = with_numbers(table, ".")
    with_commas = with_numbers(with_points, ",")
    changed = [
        name
        for name, kind in with_commas.kind_by_column.items()
        if kind != with_points.kind_by_column[name]
    ]
    if not changed:
        return with_points, []
    reason = f"numbers such as 0,9 in {changed[0]!r}"
    return with_commas, [ColumnProposal("decimal", (",",), reason)]


def _agreed() -> bool:
    """Ask on a terminal; elsewhere nobody answers."""
    return _on_terminal() and input("Run it? [Y/n] ").strip().lower() in {"", "y", "yes"}


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _named(one: "ColumnProposal") -> str:
    names = one.columns
    if len(names) <= _FEW:
        return ", ".join(map(repr, names))
    return f"{len(names)} columns, {names[0]!r} to {names[-1]!r}"


def _options(found: "Sequence[ColumnProposal]", names: Sequence[str]) -> list[str]:
    """Return the options that are not found by themselves."""
    out: list[str] = []
    for one in found:
        if not one.is_default:
            for name in _asked(one, names):
                out += shlex.split(format_flag(one.role, name))
    return out


def _asked(one: "ColumnProposal", names: Sequence[str]) -> Sequence[str]:
    """Return the columns, or the pattern that stands for all of them and for no other."""
    if one.role not in {"probabilities", "logits"} or len(one.columns) == 1:
        return one.columns
    first, last = min(one.columns), max(one.columns)
    size = next((i for i, c in enumerate(first) if last[i : i + 1] != c), len(first))
    common = first[:size]
    meant = {name for name in names if name.startswith(common)}
    plain = common and not set(common) & set("*?[")
    return (f"{common}*",) if plain and meant == set(one.columns) else one.columns


def _refuse_lacking(found: "Sequence[ColumnProposal]", names: Sequence[str]) -> None:
    """Say what could not be found, with the option that names it."""
    roles = {one.role for one in found}
    scores = roles & {"probabilities", "logits"}
    shown = ", ".join(names[:30])
    if not (
        roles & {"correct", "loss"} or ("label" in roles and (scores or "prediction" in roles))
    ):
        raise InputError(
            "nothing says which rows are right: name the columns with --label and --prediction, or "
            f"with --correct, of `abstain evaluate`. There are: {shown}"
        )
    if not (scores or "confidence" in roles):
        raise InputError(
            "nothing looks like a confidence: name it with --confidence, or class scores with "
            f"--probabilities or --logits, of `abstain evaluate`. There are: {shown}"
        )
