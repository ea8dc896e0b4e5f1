"""Figures as files, each beside the table of what it draws."""

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from abstain._foundation.files import make_folder, write_atomically
from abstain.errors import InputError
from abstain.plots._drawable import Drawable
from abstain.tables.results import escaped

#: The kinds of files that a figure can be.
FORMATS = ("svg", "pdf", "png")


def write_displays(
    named: Iterable[tuple[str, Drawable]], folder: str | os.PathLike[str], formats: Sequence[str]
) -> list[Path]:
    """Write each figure in each format, and a CSV of what it draws; return the files."""
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown:
        msg = f"`formats` must be some of {', '.join(map(repr, FORMATS))}; got {unknown[0]!r}"
        raise InputError(msg)
    place = Path(folder)
    make_folder(place)
    left = []
    for name, display in named:
        left += [_draw(display, place / f"{name}.{kind}") for kind in formats]
        left.append(_write_table(display, place / f"{name}.csv"))
    return left


def _draw(display: Drawable, path: Path) -> Path:
    with warnings.catch_warnings():
        # A name in letters that the font lacks is drawn as boxes; its table has it whole.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        return display.save(path)


def _write_table(display: Drawable, path: Path) -> Path:
    # As in the tables of results: no cell is run as a formula by a spreadsheet.
    text = escaped(display.frame()).write_csv()
    write_atomically(path, text.encode())
    return path
