"""Where published data sets are: at their authors', under which licence, and in a folder here."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import numpy as np

from abstain._foundation.catalogue import Catalogue
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array

_GIGABYTE = 1 << 30


@dataclass(frozen=True)
class Download:
    """One file of a data set.

    Attributes
    ----------
    name : str
        What the file is called.
    url : str
        Its address.
    md5 : str
        Its published MD5 checksum; empty where none is published.
    size : int
        Its bytes; 0 where unknown.
    exact : bool
        Whether the size is known to the byte; otherwise it only tells the space needed.
    sha256 : str
        Its published SHA-256 checksum, by which it is checked; empty where none is published.
    into : str
        The folder it goes to, below the one that is asked for.
    archive : bool
        Whether it is unpacked.
    unpacked : str
        The folder it is unpacked in.
    """

    name: str
    url: str
    md5: str = ""
    size: int = 0
    exact: bool = True
    sha256: str = ""
    into: str = ""
    archive: bool = False
    unpacked: str = ""

    @property
    def checksum(self) -> tuple[str, str]:
        """The best published checksum and its kind, such as "sha256"; both empty without one."""
        known = (("sha256", self.sha256), ("md5", self.md5))
        return next(((kind, own) for kind, own in known if own), ("", ""))

    @property
    def checked(self) -> str:
        """By what it is checked: sha256, md5, size, or archive (what the archive itself holds)."""
        return self.checksum[0] or ("size" if self.exact and self.size else "archive")

    @property
    def most(self) -> int:
        """Bytes that are fetched at most: those published, or far more than is roughly known."""
        return self.size if self.exact else 2 * self.size + _GIGABYTE


@dataclass(frozen=True)
class DownloadSource:
    """Where a data set comes from.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    page : str
        The page of the authors.
    license : str
        Under which terms it comes, as far as its authors say.
    files : tuple of Download
        What is fetched; nothing where it can only be had by hand.
    folder : str
        Where it lies afterwards, below the folder that was asked for.
    places : tuple of str
        The folders in which a task looks for it, below that one.
    mark : str
        A file, or a pattern of files, by which it is known to be there.
    note : str
        What else one must know: how to have it by hand, whose checksums these are.
    """

    name: str
    title: str
    page: str
    license: str
    files: tuple[Download, ...] = ()
    folder: str = ""
    places: tuple[str, ...] = ()
    mark: str = ""
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes to fetch."""
        return sum(file.size for file in self.files)

    @property
    def checked(self) -> str:
        """By what its files are checked, the weakest where they differ; empty without files."""
        kinds = [file.checked for file in self.files]
        return max(kinds, key=CHECKS.index, default="")

    def find(self, folder: Path) -> Path | None:
        """Return the folder that holds it, at or below the one given; None where none does."""
        there = (folder / where for where in self.places if any((folder / where).glob(self.mark)))
        return next(there, None)


#: By what files are checked, the best first.
CHECKS = ("sha256", "md5", "size", "archive")

#: Every published data set by name, as downloads.toml has it.
SOURCES: Catalogue[DownloadSource] = Catalogue("published data set", list_command="data list")

for _name, _entry in tomllib.loads(
    (resources.files(__package__) / "downloads.toml").read_text(encoding="utf-8")
).items():
    _files = tuple(Download(**_file) for _file in _entry.pop("files", ()))
    _places = tuple(_entry.pop("places", ()))
    SOURCES.add(DownloadSource(_name, files=_files, places=_places, **_entry))


@dataclass(frozen=True)
class Layout:
    """The folder of a data set, and what is said where it is not as it must be.

    Attributes
    ----------
    name : str
        In `SOURCES`, which knows the folders that it may lie in and the archives it comes in.
    title : str
        The name people read.
    marks : tuple of str
        Files and folders by which its folder is known; any one is enough.
    inside, archives : tuple of str
        More folders in which it may lie, and archives under other names.
    pickled : mapping
        Files of versions made of pickles, and the version to take instead.
    """

    name: str
    title: str
    marks: tuple[str, ...]
    inside: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    pickled: Mapping[str, str] = field(default_factory=dict)

    @property
    def how(self) -> str:
        """What to do to have it."""
        return f"`abstain data fetch {self.name} --folder DIR`"

    def place(self, folder: str | Path) -> Path:
        """Return the folder that holds the files, or say what is there instead."""
        given, source = Path(folder), SOURCES[self.name]
        if not given.exists():
            raise InputError(
                f"there is no folder {str(given)!r} to read {self.title} from; {self.how}"
            )
        if not given.is_dir():
            raise InputError(
                f"{str(given)!r} is no folder; {self.title} is read from a folder ({self.how})"
            )
        inside = (*(source.places or (source.folder,)), *self.inside)
        for found in (given, *(given / name for name in inside)):
            if any((found / mark).exists() for mark in self.marks):
                return found
        raise InputError(self._instead(given, source))

    def needed(self, folder: Path, name: str) -> Path:
        """Return a file or folder of the data set, which must be there."""
        path = folder / name
        if not path.exists():
            raise InputError(
                f"{name} is missing in {str(folder)!r} (half extracted?); {self.how}, again"
            )
        return path

    def _instead(self, given: Path, source: DownloadSource) -> str:
        """Say why a folder cannot be read: not unpacked, made of pickles, or something else."""
        inside = [given, *sorted(p for p in given.iterdir() if p.is_dir())]
        for archive in (*(file.name for file in source.files if file.archive), *self.archives):
            if any((p / archive).is_file() for p in inside):
                return (
                    f"{archive} in {str(given)!r} is not unpacked yet; unpack it there, or let "
                    f"`abstain data fetch` do it"
                )
        for name, instead in self.pickled.items():
            if any((p / name).is_file() for p in inside):
                return (
                    f"{str(given)!r} holds {self.title} as {name}, which is made of pickles and "
                    f"never read, as they can run any code; take {instead}: {self.how}"
                )
        marks = " and ".join(self.marks[:2])
        return f"{str(given)!r} does not hold {self.title}: {marks} is missing; {self.how}"


def check_labels(what: str, labels: Array, wrong: Array, rule: str, *, first: int = 0) -> None:
    """Refuse a file in which the labels of some images are wrong; name the first of them."""
    rows = np.flatnonzero(wrong)
    if rows.size:
        raise FileFormatError(
            f"{what}: image {first + rows[0]:,} has the label {labels[rows[0]]}, {rule}"
        )


def class_names(path: Path, count: int) -> tuple[str, ...]:
    """Read the names of the classes, one a line."""
    text = path.read_text(encoding="utf-8", errors="replace")
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if len(names) != count:
        raise FileFormatError(
            f"{path.name} must name the {count} classes, one a line; got {len(names)}"
        )
    return names
