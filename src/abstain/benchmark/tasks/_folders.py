"""Where the data sets of a task lie in the user's folder, and what to say where they do not."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from abstain.benchmark.data import Images
from abstain.benchmark.data.published.downloads import SOURCES
from abstain.errors import InputError, MissingInputError

ReadT = TypeVar("ReadT")


@dataclass(frozen=True)
class Sizes:
    """How much of a published data set is taken.

    Attributes
    ----------
    records : mapping
        By data set: what its reader takes as `records`; none for official versions.
    validation : int
        Pictures set aside of the i.i.d. test pictures to choose on.
    learned, tested : int
        The most pictures to learn from, and of an exposure, of data sets that are files; all are
        held in memory, as floats when they are scored.
    side : int
        Height and width of pictures that are files.
    """

    records: Mapping[str, int] = field(default_factory=dict)
    validation: int = 1000
    learned: int = 50_000
    tested: int = 10_000
    side: int = 64


OFFICIAL: Final = Sizes()


def find(name: str, folder: Path) -> Path | None:
    """Return the folder that holds a data set, or None."""
    source = SOURCES[name]
    for where in source.places:
        if any((folder / where).glob(source.mark)):
            return folder / where
    return None


def left_out(name: str, folder: Path, what: str) -> str:
    """Say that something is left out since a data set is not there."""
    source = SOURCES[name]
    missing = f"{source.places[0]}/{source.mark}".replace("*", "")
    return (
        f"{what}: {missing} is not in {str(folder)!r}; `abstain data fetch {name} --folder "
        f"{shlex.quote(str(folder))}` brings {source.title}"
    )


def required(name: str, folder: Path | None, read: Callable[[Path], ReadT]) -> ReadT:
    """Read what a task cannot do without; say how to get it where it is not there."""
    title, files = SOURCES[name].title, SOURCES[name].files
    fetched = f"`abstain data fetch {name} --folder DIR` brings them"
    how = fetched if files else SOURCES[name].note.rstrip(".")
    if folder is None:
        msg = f"the task needs the folder that the files of {title} are in (--data); {how}"
        raise MissingInputError(msg)
    try:
        return read(folder)
    except InputError as error:
        # What its reader says of the folder, but not what it says of an argument.
        if type(error) is not InputError:
            raise
        known = "abstain data fetch" if files else SOURCES[name].page
        msg = str(error) if known in str(error) else f"{error}; {how}"
        raise MissingInputError(msg) from None


def of_no_class(images: Images, classes: tuple[str, ...], shape: tuple[int, int, int]) -> Images:
    """Return the pictures of another data set, of which none is of a known class."""
    if images.shape != shape:
        msg = f"pictures of new classes must have the shape {shape}; got {images.shape}"
        raise InputError(msg)
    return Images(images.pixels, np.full(images.n, -1), classes, images.places)


def divided(images: Images, count: int) -> tuple[Images, Images]:
    """Set the first test pictures aside to choose on, as FD-Shifts does."""
    if not 0 < count < images.n:
        msg = f"{count:,} pictures to choose on must leave some of {images.n:,} to test"
        raise InputError(msg)
    return images.subset(np.arange(count)), images.subset(np.arange(count, images.n))
