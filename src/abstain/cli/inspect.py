"""`abstain inspect`: propose roles of columns, and print the command that evaluates the files."""

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
    from abstain.tables.proposal import ColumnProposal
    from abstain.tables.table import DataTable

#: Maximum number of columns that are listed.
_MAX_LISTED_COLUMNS = 4


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

    The command proposes the role of each column, the splits, and the directions of confidences,
    based on names and values. In a terminal, it asks whether to run the proposed command. `abstain
    FILE...` runs it immediately and prints what it used.
    """
    from abstain.tables.proposal import propose

    table = _open_representative_table(expand_patterns(files))
    table, number_proposals = _read_numbers(table)
    proposals = (*propose(table), *number_proposals)
    _print_proposals(table, proposals)
    _check_roles(proposals, table.names)
    arguments = ["evaluate", *_required_flags(proposals, table.names)]
    if out is not None:
        arguments += ["--out", str(out)]
    arguments += map(original_name, files)
    command = shlex.join(["abstain", *arguments])
    console().print(plain_text(command), style="bold", soft_wrap=True)
    if run or _is_confirmed():
        from abstain.cli.main import run as run_command

        exit_status = run_command(arguments)
        if exit_status:
            raise SystemExit(exit_status)


def _print_proposals(table: "DataTable", proposals: "Sequence[ColumnProposal]") -> None:
    """Print the size of a table, and the proposed columns for each role with the reason."""
    noun = "keys" if table.has_keys else "columns"
    print_text(f"{table.source}: {table.n_rows:,} rows, {len(table.names):,} {noun}")
    for proposal in proposals:
        role = proposal.role.replace("_", " ")
        print_text(f"  {role}: {_format_columns(proposal)} ({proposal.reason})")


def _open_representative_table(files: Sequence[Path]) -> "DataTable":
    """Open arrays as one table.

    If the files do not contain arrays, open the first file, whose columns all files must have.
    """
    from abstain.tables import hugging_face
    from abstain.tables.files import are_arrays, open_arrays, open_table

    if not files:
        raise InputError("name at least one file of predictions")
    if len(files) > 1 and are_arrays(files):
        return open_arrays(files)
    tables: list[DataTable] = []
    for file in files:
        if not file.is_dir():
            tables.append(open_table(file))
        elif hugging_face.is_saved(file):
            tables += hugging_face.saved_tables(file).values()
        else:
            raise InputError(
                f"{file} is a folder: name a file in it, or run `abstain evaluate {file}`"
            )
    first_table = tables[0]
    for table in tables[1:]:
        missing = [name for name in first_table.names if table.find(name) is None]
        if missing:
            raise InputError(
                f"{table.source} has no column {missing[0]!r}, but {first_table.source} has; "
                "inspect files with different columns separately"
            )
    return first_table


def _read_numbers(table: "DataTable") -> "tuple[DataTable, list[ColumnProposal]]":
    """Convert texts such as "90%" and "0,9" to numbers, and propose the corresponding option."""
    from abstain.tables.proposal import ColumnProposal

    with_points = table.with_numbers(".")
    with_commas = with_points.with_numbers(",")
    columns_with_commas = [
        name
        for name, kind in with_commas.kind_by_column.items()
        if kind != with_points.kind_by_column[name]
    ]
    if not columns_with_commas:
        return with_points, []
    reason = f"numbers such as 0,9 in {columns_with_commas[0]!r}"
    return with_commas, [ColumnProposal("decimal", (",",), reason)]


def _is_confirmed() -> bool:
    """Ask the user in a terminal. Return False elsewhere."""
    return _on_terminal() and input("Run it? [Y/n] ").strip().lower() in {"", "y", "yes"}


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _format_columns(proposal: "ColumnProposal") -> str:
    names = proposal.columns
    if len(names) <= _MAX_LISTED_COLUMNS:
        return ", ".join(map(repr, names))
    return f"{len(names)} columns, {names[0]!r} to {names[-1]!r}"


def _required_flags(
    proposals: "Sequence[ColumnProposal]", column_names: Sequence[str]
) -> list[str]:
    """Return the flags of the columns that `evaluate` does not select by default."""
    flags: list[str] = []
    for proposal in proposals:
        if proposal.is_default:
            continue
        for name in _names_or_pattern(proposal, column_names):
            flags += shlex.split(format_flag(proposal.role, name))
    return flags


def _names_or_pattern(proposal: "ColumnProposal", column_names: Sequence[str]) -> Sequence[str]:
    """Return a pattern that matches only these columns, or the columns if there is none."""
    if proposal.role not in {"probabilities", "logits"} or len(proposal.columns) == 1:
        return proposal.columns
    prefix = proposal.columns[0]
    while not all(name.startswith(prefix) for name in proposal.columns):
        prefix = prefix[:-1]
    has_wildcards = not set("*?[").isdisjoint(prefix)
    if not prefix or has_wildcards:
        return proposal.columns
    matches = {name for name in column_names if name.startswith(prefix)}
    return (f"{prefix}*",) if matches == set(proposal.columns) else proposal.columns


def _check_roles(proposals: "Sequence[ColumnProposal]", column_names: Sequence[str]) -> None:
    """Raise an error if no column is proposed for the correctness or for the confidence."""
    roles = {proposal.role for proposal in proposals}
    has_class_scores = not roles.isdisjoint({"probabilities", "logits"})
    has_grades = not roles.isdisjoint({"correct", "loss"})
    has_labels = "label" in roles and (has_class_scores or "prediction" in roles)
    columns = ", ".join(column_names[:30])
    if not (has_grades or has_labels):
        raise InputError(
            "no column seems to define correctness; name the columns with --label and "
            f"--prediction, or with --correct, of `abstain evaluate`. The columns are: {columns}"
        )
    if not (has_class_scores or "confidence" in roles):
        raise InputError(
            "no column seems to be a confidence; name it with --confidence, or class scores with "
            f"--probabilities or --logits, of `abstain evaluate`. The columns are: {columns}"
        )
