"""Folders of data sets: found, or an error that says what is there instead."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from abstain.errors import InputError, MissingInputError


@dataclass(frozen=True)
class Layout:
    """What the folder of a data set looks like.

    Attributes
    ----------
    title : str
        The name people read.
    marks : tuple of str
        Files and folders by which its folder is known; any one is enough.
    how : str
        What to do to have it, as words after "to have it,".
    inside : tuple of str
        Folders that its archive unpacks to, in which it may still lie.
    archives : tuple of str
        Archives that it comes in.
    pickled : mapping
        Files of versions made of pickles, and the version to take instead.
    """

    title: str
    marks: tuple[str, ...]
    how: str
    inside: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    pickled: Mapping[str, str] = field(default_factory=dict)


def place(folder: str | Path, layout: Layout) -> Path:
    """Return the folder that holds the files, or say what is there instead."""
    given = Path(folder)
    if not given.exists():
        msg = f"there is no folder {str(given)!r} to read {layout.title} from; {layout.how}"
        raise InputError(msg)
    if not given.is_dir():
        msg = f"{str(given)!r} is no folder; {layout.title} is read from a folder ({layout.how})"
        raise InputError(msg)
    for found in (given, *(given / name for name in layout.inside)):
        if any((found / mark).exists() for mark in layout.marks):
            return found
    raise InputError(_instead(given, layout))


def _instead(given: Path, layout: Layout) -> str:
    """Say why a folder cannot be read: not unpacked, made of pickles, or something else."""
    inside = [given, *sorted(p for p in given.iterdir() if p.is_dir())]
    for archive in layout.archives:
        if any((p / archive).is_file() for p in inside):
            return (
                f"{archive} in {str(given)!r} is not unpacked yet; unpack it there, or let "
                f"`abstain data fetch` do it"
            )
    for name, instead in layout.pickled.items():
        if any((p / name).is_file() for p in inside):
            return (
                f"{str(given)!r} holds {layout.title} as {name}, which is made of pickles and "
                f"never read, as they can run any code; take {instead}"
            )
    marks = " and ".join(layout.marks[:2])
    return f"{str(given)!r} does not hold {layout.title}: {marks} is missing; {layout.how}"


def needed(folder: Path, name: str, layout: Layout) -> Path:
    """Return a file or folder of the data set, which must be there."""
    path = folder / name
    if not path.exists():
        msg = f"{name} is missing in {str(folder)!r} (half extracted?); {layout.how}, again"
        raise InputError(msg)
    return path


def pillow() -> Any:
    """Return the module that reads pictures."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "PIL":
            raise
        msg = "JPEG and PNG pictures are read with Pillow: pip install 'abstain[benchmark]'"
        raise MissingInputError(msg) from None
    return Image
