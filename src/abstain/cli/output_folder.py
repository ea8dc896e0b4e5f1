"""What `--out` leaves: one set of files with a receipt, published together."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, overload

import abstain as ab
from abstain._foundation.files import (
    MANIFEST,
    check_output_folder,
    file_sha256,
    publish,
    valid_set_names,
)
from abstain._foundation.input_files import read_json_object
from abstain.cli.command_line import ARGUMENTS
from abstain.cli.console import console, print_written_files, show_status
from abstain.cli.standard_input import original_name
from abstain.errors import AbstainError

#: The page of every command but the benchmark's, and the main table.
REPORT, RESULTS = "report.html", ("results.parquet", "results.csv")


#: What is read of a folder of results.
_INPUT_PATTERNS: Final = ("*.npz", "test_results/*.npz", "*.arrow", "*/*.arrow")


@dataclass(frozen=True)
class OutputFolder:
    """A folder that a set can be published to, and the files that the set is made from."""

    #: Need not exist yet.
    folder: Path
    #: With size and time, as they were before they were read.
    inputs: tuple[tuple[Path, tuple[int, int] | None], ...]

    def write(self, files: Mapping[str, bytes]) -> list[Path]:
        """Publish the files, all or none; return what to name: files, and folders of files."""
        said = {
            "abstain": ab.__version__,
            "command": current_command(),
            "inputs": [_describe_input(path, known) for path, known in self.inputs],
        }
        publish(self.folder, files, said, extra_hashes=files_of_earlier_version(self.folder))
        remove_old_manifest(self.folder)
        return [self.folder / name for name in dict.fromkeys(n.split("/")[0] for n in files)]


def current_command() -> str:
    """Return the command line in progress, as a shell takes it."""
    return shlex.join(["abstain", *ARGUMENTS.get()])


@overload
def check_folder(folder: None, names: Iterable[str], inputs: Sequence[Path | None]) -> None: ...
@overload
def check_folder(
    folder: Path, names: Iterable[str], inputs: Sequence[Path | None]
) -> OutputFolder: ...
@overload
def check_folder(
    folder: Path | None, names: Iterable[str], inputs: Sequence[Path | None]
) -> OutputFolder | None: ...
def check_folder(
    folder: Path | None, names: Iterable[str], inputs: Sequence[Path | None]
) -> OutputFolder | None:
    """Check the folder of `--out`, if one is given, before any work is done.

    `names` are those that will surely be among the files. Refused are a folder that cannot be
    written to, and one where a file of such a name is not ours.
    """
    if folder is None:
        return None
    check_output_folder(folder, names, extra_hashes=files_of_earlier_version(folder))
    files = [file for path in inputs if path is not None for file in _input_files(path)]
    return OutputFolder(folder, tuple((path, _file_state(path)) for path in files))


def check_folder_for_large_inputs(
    folder: Path | None, names: Iterable[str], inputs: Sequence[Path]
) -> OutputFolder | None:
    """Do the same for files too large to be read once more for their hashes."""
    to = check_folder(folder, names, ())
    return None if to is None else OutputFolder(to.folder, tuple((path, None) for path in inputs))


def make_files(
    tables: Mapping[str, Sequence[Any]],
    page: str,
    drawn: object = None,
    formats: Sequence[str] = (),
) -> dict[str, bytes]:
    """Return the files of tables that have rows, of the page, and of the figures of a result."""
    from abstain.report.output import figure_files
    from abstain.tables.results import result_files

    files: dict[str, bytes] = {}
    for name, rows in tables.items():
        if rows:
            files |= result_files(rows, name)
    files[REPORT] = page.encode()
    return files | figure_files(drawn, formats) if formats else files


def write_and_print(
    screen: Callable[[], Any],
    files: Callable[[], Mapping[str, bytes]],
    to: OutputFolder | None,
    *,
    before: Sequence[Path] = (),
    after: Sequence[Path] = (),
) -> None:
    """Leave the files, if there is a place for them, print what was found, and name the files.

    Also named are those that were left `before`, and those that lie there `after` them.
    """
    # Files first: whoever reads the table through `head` closes the pipe early.
    try:
        with show_status("Writing"):
            left = [] if to is None else to.write(files())
    except (AbstainError, OSError):
        # What was found is not lost with the place for its files.
        console().print(screen())
        raise
    console().print(screen())
    print_written_files([*before, *left, *after])


def _input_files(path: Path) -> list[Path]:
    """Return the file, or the archives of a folder of results."""
    inside = (
        [found for ending in _INPUT_PATTERNS for found in path.glob(ending)]
        if path.is_dir()
        else []
    )
    return sorted(inside) or [path]


def _file_state(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file does; None for what is no file."""
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _describe_input(path: Path, known: tuple[int, int] | None) -> dict[str, Any]:
    """Say which file was read; the hash is left out where it changed meanwhile."""
    key = file_sha256(path) if known is not None and path.is_file() else None
    same = key is not None and _file_state(path) == known
    return {"name": original_name(path), "sha256": key if same else None}


#: The list that studies left before there were receipts: tables and figures, with their hashes.
OLD_MANIFEST: Final = ".abstain-files.json"

#: What every page says of itself, in its first lines.
_PAGE_MARK: Final = b'<meta name="generator" content="abstain '
_PAGE_HEAD_BYTES: Final = 2000


def files_of_earlier_version(folder: Path) -> dict[str, str]:
    """Return the files that an earlier version left here, with their hashes.

    A page is recognized by its mark, and only beside such a page are the others: the tables and
    figures of a study's list, and `results.csv` where it is what `results.parquet` is as text.
    """
    if (folder / MANIFEST).exists():
        return {}
    pages = [name for name in ("report.html", "benchmark.html") if _is_page(folder / name)]
    if not pages:
        return {}
    return _old_manifest_hashes(folder) | {
        name: file_sha256(folder / name) for name in _matching_tables(folder) + pages
    }


def remove_old_manifest(folder: Path) -> None:
    """Take the list of an earlier version away, once a receipt says more."""
    if _old_manifest_hashes(folder):
        (folder / OLD_MANIFEST).unlink(missing_ok=True)


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _PAGE_MARK in file.read(_PAGE_HEAD_BYTES)


def _old_manifest_hashes(folder: Path) -> dict[str, str]:
    """Return the names and hashes in the list; none if it is damaged or no regular file."""
    try:
        return valid_set_names(read_json_object(folder / OLD_MANIFEST))
    except AbstainError:
        return {}


def _matching_tables(folder: Path) -> list[str]:
    """Return the names of the main tables where one was surely written from the other."""
    import polars as pl

    from abstain.tables.results import result_files

    names = ["results.parquet", "results.csv"]
    if not all((folder / name).is_file() for name in names):
        return []
    try:
        rows = pl.read_parquet(folder / names[0], glob=False, hive_partitioning=False)
        same = result_files(rows)[names[1]] == (folder / names[1]).read_bytes()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, AbstainError):
        # Damaged, or of another writer.
        return []
    return names if same else []
