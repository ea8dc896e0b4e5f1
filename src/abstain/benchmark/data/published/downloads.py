"""Where published data sets are, what their files weigh, and under which licence they come."""

import tomllib
from dataclasses import dataclass
from importlib import resources

from abstain._foundation.catalogue import Catalogue

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


#: By what files are checked, the best first.
CHECKS = ("sha256", "md5", "size", "archive")

#: Every published data set by name, as downloads.toml has it.
SOURCES: Catalogue[DownloadSource] = Catalogue("published data set", listed="data list")

for _name, _entry in tomllib.loads(
    (resources.files(__package__) / "downloads.toml").read_text(encoding="utf-8")
).items():
    _files = tuple(Download(**_file) for _file in _entry.pop("files", ()))
    _places = tuple(_entry.pop("places", ()))
    SOURCES.add(DownloadSource(_name, files=_files, places=_places, **_entry))
