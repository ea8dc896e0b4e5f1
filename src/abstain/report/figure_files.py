"""Figures as files, each beside the table of what it draws."""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from abstain._foundation.files import make_folder, write_atomically
from abstain.errors import InputError
from abstain.plots.drawable import Drawable
from abstain.tables.results import escaped

#: The kinds of files that a figure can be.
FORMATS = ("svg", "pdf", "png")


def write_displays(
    named: Iterable[tuple[str, Drawable]], folder: str | os.PathLike[str], formats: Sequence[str]
) -> list[Path]:
    """Write each figure in each format, and a CSV of what it draws; return the files."""
    place = Path(folder)
    _refuse_unknown(formats)
    make_folder(place)
    left = []
    for name, content in _drawn(named, formats):
        write_atomically(place / name, content)
        left.append(place / name)
    return left


def display_files(
    named: Iterable[tuple[str, Drawable]], formats: Sequence[str], folder: str = "figures"
) -> dict[str, bytes]:
    """Return the content of the files of `write_displays`, by their names in a folder."""
    _refuse_unknown(formats)
    return {f"{folder}/{name}": content for name, content in _drawn(named, formats)}


def _refuse_unknown(formats: Sequence[str]) -> None:
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown:
        msg = f"`formats` must be some of {', '.join(map(repr, FORMATS))}; got {unknown[0]!r}"
        raise InputError(msg)


def _drawn(
    named: Iterable[tuple[str, Drawable]], formats: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    for name, display in named:
        for kind in formats:
            with warnings.catch_warnings():
                # A name in letters that the font lacks is drawn as boxes; its table has it whole.
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
                image = display.image(f".{kind}")
            yield f"{name}.{kind}", image
        # As in the tables of results: no cell is run as a formula by a spreadsheet.
        yield f"{name}.csv", escaped(display.frame()).write_csv().encode()
