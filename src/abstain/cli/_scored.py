"""Predictions with the score of a rule, whose column may have an unusual name."""

from dataclasses import replace
from pathlib import Path

from abstain.cli._read import read
from abstain.cli.columns import Columns
from abstain.confidence import applicable
from abstain.errors import MissingInputError
from abstain.tables import Reading
from abstain.tables._files import open_table


def read_scored(path: Path, columns: Columns, score: str) -> Reading:
    """Read predictions with a score; its column is looked for by its name when not named."""
    try:
        reading = read((path,), columns)
    except MissingInputError:
        if columns.confidence or not has_column(path, score):
            raise
        return read((path,), replace(columns, confidence=(score,)))
    lacking = score and score not in applicable(next(iter(reading.values())))
    if lacking and not columns.confidence and has_column(path, score):
        return read((path,), replace(columns, confidence=(score,)))
    return reading


def has_column(path: Path, name: str) -> bool:
    """Tell whether a file has a score as a column of numbers, as it is or turned around."""
    if path.is_dir():
        return False
    kinds = open_table(path).kinds
    return "number" in {kinds.get(name), kinds.get(name.removeprefix("-"))}
