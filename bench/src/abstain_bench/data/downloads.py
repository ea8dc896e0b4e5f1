"""Download URLs, licenses, checksums and folders of published data sets."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array

_GIGABYTE = 1 << 30


@dataclass(frozen=True)
class Download:
    """A file of a data set.

    Attributes
    ----------
    name : str
        Name of the file.
    url : str
        Address of the file.
    md5 : str
        Published MD5 checksum, or empty.
    size : int
        Size in bytes, or 0 if it is unknown.
    exact : bool
        Whether `size` is exact. If False, `size` is an estimate of the required space.
    sha256 : str
        Published SHA-256 checksum, which is preferred to `md5`, or empty.
    into : str
        Subfolder of the requested folder for the file.
    archive : bool
        Whether the file is an archive that must be unpacked.
    unpacked : str
        Subfolder for the unpacked files.
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
        """The type and the value of the strongest published checksum, or two empty strings."""
        if self.sha256:
            return "sha256", self.sha256
        if self.md5:
            return "md5", self.md5
        return "", ""

    @property
    def checked(self) -> str:
        """Name of the strongest available check, which is one of `CHECKS`."""
        kind, _ = self.checksum
        if kind:
            return kind
        return "size" if self.exact and self.size else "archive"

    @property
    def max_size(self) -> int:
        """Maximum number of bytes to download, well above the size if the size is an estimate."""
        return self.size if self.exact else 2 * self.size + _GIGABYTE


@dataclass(frozen=True)
class DownloadSource:
    """A published data set and its files.

    Attributes
    ----------
    name : str
        Unique name of the data set.
    title : str
        Title in messages and tables.
    page : str
        Web page of the authors.
    license : str
        License, if the authors name one.
    files : tuple of Download
        Files to download, or an empty tuple if the user must obtain the data set manually.
    folder : str
        Subfolder of the requested folder with the unpacked files.
    places : tuple of str
        Subfolders of the data folder in which a task searches the data set.
    mark : str
        Pattern of the files that identify the data set.
    note : str
        Remark on the source of the checksums, or on how to obtain the data set manually.
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
        """Number of bytes to download."""
        return sum(file.size for file in self.files)

    @property
    def checked(self) -> str:
        """The weakest check among all files, or an empty string if there are no files."""
        kinds = [file.checked for file in self.files]
        return max(kinds, key=CHECKS.index, default="")

    def find(self, folder: Path) -> Path | None:
        """Return the folder of the data set inside `folder`, or None if it does not exist."""
        for place in self.places:
            path = folder / place
            if any(path.glob(self.mark)):
                return path
        return None


#: Checks of files from the strongest to the weakest. The check "archive" verifies the checksums
#: inside an archive.
CHECKS = ("sha256", "md5", "size", "archive")

#: All published data sets in downloads.toml by name.
SOURCES: Catalogue[DownloadSource] = Catalogue("published data set", list_command="data list")

for _name, _entry in tomllib.loads(
    (resources.files(__package__) / "downloads.toml").read_text(encoding="utf-8")
).items():
    _files = tuple(Download(**_file) for _file in _entry.pop("files", ()))
    _places = tuple(_entry.pop("places", ()))
    SOURCES.add(DownloadSource(_name, files=_files, places=_places, **_entry))


@dataclass(frozen=True)
class Layout:
    """Layout of the folder of a data set, by which the folder is recognized.

    Attributes
    ----------
    name : str
        Name in `SOURCES`, whose entry lists the possible subfolders and the archives.
    title : str
        Title in messages.
    marks : tuple of str
        Files and folders, each of which identifies the folder of the data set.
    subfolders, archives : tuple of str
        Further possible subfolders, and further names of archives.
    pickled : mapping
        Files of versions that contain pickled objects, with the version to use instead.
    """

    name: str
    title: str
    marks: tuple[str, ...]
    subfolders: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    pickled: Mapping[str, str] = field(default_factory=dict)

    @property
    def download_command(self) -> str:
        """Command line that downloads the data set."""
        return f"`abstain data fetch {self.name} --folder DIR`"

    def find_folder(self, folder: str | Path) -> Path:
        """Return `folder` or the subfolder of it that contains the files."""
        root = Path(folder)
        source = SOURCES[self.name]
        if not root.is_dir():
            raise InputError(
                f"there is no folder {str(root)!r} to read {self.title} from; "
                f"{self.download_command}"
            )
        subfolders = (*(source.places or (source.folder,)), *self.subfolders)
        candidates = [root, *(root / name for name in subfolders)]
        for candidate in candidates:
            if any((candidate / mark).exists() for mark in self.marks):
                return candidate
        raise InputError(self._describe_other_folder(root, source))

    def require(self, folder: Path, name: str) -> Path:
        """Return the path of a file or folder, or raise InputError if the path does not exist."""
        path = folder / name
        if not path.exists():
            raise InputError(
                f"{name} is missing in {str(folder)!r} (half extracted?); "
                f"{self.download_command}, again"
            )
        return path

    def _describe_other_folder(self, folder: Path, source: DownloadSource) -> str:
        """Explain why a folder does not contain the data set, and how to correct this."""
        folders = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        archives = [*(file.name for file in source.files if file.archive), *self.archives]
        for archive in archives:
            if any((path / archive).is_file() for path in folders):
                return (
                    f"{archive} in {str(folder)!r} is not unpacked yet; unpack it there, or let "
                    f"`abstain data fetch` do it"
                )
        for name, readable_version in self.pickled.items():
            if any((path / name).is_file() for path in folders):
                return (
                    f"{str(folder)!r} holds {self.title} as {name}, which is made of pickles and "
                    f"never read, as they can run any code; take {readable_version}: "
                    f"{self.download_command}"
                )
        marks = " and ".join(self.marks[:2])
        return (
            f"{str(folder)!r} does not hold {self.title}: {marks} is missing; "
            f"{self.download_command}"
        )


def expected_count(official: int, records: int | None) -> int:
    """Return the required number of images: `records`, or the official number by default."""
    return official if records is None else checks.positive_int(records, "records")


def check_labels(
    description: str, labels: Array, is_invalid: Array, rule: str, *, first: int = 0
) -> None:
    """Raise an error that names the first image with an invalid label, counted from `first`."""
    rows = np.flatnonzero(is_invalid)
    if rows.size:
        raise FileFormatError(
            f"{description}: image {first + rows[0]:,} has the label {labels[rows[0]]}, {rule}"
        )


def read_class_names(path: Path, count: int) -> tuple[str, ...]:
    """Read a file that contains one class name per line."""
    text = path.read_text(encoding="utf-8", errors="replace")
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if len(names) != count:
        raise FileFormatError(
            f"{path.name} must name the {count} classes, one a line; got {len(names)}"
        )
    return names
