"""Write the files of `--out` as one set, with a manifest (`receipt.json`)."""

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
from abstain.errors import AbstainError, InputError

#: The main page of every command except the benchmark, and the files of the main table.
REPORT, RESULTS = "report.html", ("results.parquet", "results.csv")

#: Tables for papers.
PAPER_TABLES: Final = ("table.tex", "table.md")


#: Files that are read from a folder of results.
_INPUT_PATTERNS: Final = ("*.npz", "test_results/*.npz", "*.arrow", "*/*.arrow")


@dataclass(frozen=True)
class OutputFolder:
    """The folder of `--out`, and the input files of the command."""

    #: The folder may not exist yet.
    folder: Path
    #: Input files, with their size and modification time before they were read.
    inputs: tuple[tuple[Path, tuple[int, int] | None], ...]

    def describe_inputs(self) -> list[dict[str, Any]]:
        """Return the name and the hash of each input file. The hash of a changed file is None."""
        return [_describe_input(path, state) for path, state in self.inputs]

    def write(self, files: Mapping[str, bytes]) -> list[Path]:
        """Write all files or none, and return the paths of the top-level files and folders."""
        metadata = {
            "abstain": ab.__version__,
            "command": current_command(),
            "inputs": self.describe_inputs(),
        }
        publish(self.folder, files, metadata, extra_hashes=files_of_earlier_version(self.folder))
        remove_old_manifest(self.folder)
        top_level_names = dict.fromkeys(name.split("/")[0] for name in files)
        return [self.folder / name for name in top_level_names]


def current_command() -> str:
    """Return the current command line, quoted for a shell."""
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
    """Check, before the computation, that files can be written to the folder of `--out`.

    An error is raised if the folder is not writable, or if it contains a file with one of the
    `names` that abstain did not write.
    """
    if folder is None:
        return None
    if folder.suffix in {".html", ".md", ".tex", ".pdf"} and not folder.exists():
        raise InputError(
            f"--out must be a folder, which will contain the report and its tables; got {folder}. "
            f"Use --out {folder.with_suffix('')}"
        )
    check_output_folder(folder, names, extra_hashes=files_of_earlier_version(folder))
    files: list[Path] = []
    for path in inputs:
        if path is not None:
            files += _input_files(path)
    return OutputFolder(folder, tuple((file, _file_state(file)) for file in files))


def check_folder_for_large_inputs(
    folder: Path | None, names: Iterable[str], inputs: Sequence[Path]
) -> OutputFolder | None:
    """Check the folder of `--out`. The manifest contains no hashes of large input files."""
    output = check_folder(folder, names, ())
    if output is None:
        return None
    return OutputFolder(output.folder, tuple((path, None) for path in inputs))


def make_files(
    tables: Mapping[str, Sequence[Any]],
    page: str,
    plotted_result: object = None,
    formats: Sequence[str] = (),
) -> dict[str, bytes]:
    """Return the contents of the tables, of the HTML page and of the figures of a result."""
    from abstain.report.output import figure_files
    from abstain.tables.results import result_files

    files: dict[str, bytes] = {}
    for name, rows in tables.items():
        if rows:
            files |= result_files(rows, name)
    files[REPORT] = page.encode()
    if formats:
        files |= figure_files(plotted_result, formats)
    return files


def write_and_print(
    screen: Callable[[], Any],
    files: Callable[[], Mapping[str, bytes]],
    output: OutputFolder | None,
    *,
    before: Sequence[Path] = (),
    after: Sequence[Path] = (),
) -> None:
    """Write the files to the folder of `--out`, and print the results and the written paths.

    The paths `before` are printed before the written paths, and the paths `after` are printed last.
    """
    # Files are written first, because a reader such as `head` closes the pipe early.
    try:
        with show_status("Writing"):
            written = [] if output is None else output.write(files())
    except (AbstainError, OSError):
        # The results are printed even if they cannot be written.
        console().print(screen())
        raise
    console().print(screen())
    print_written_files([*before, *written, *after])


def _input_files(path: Path) -> list[Path]:
    """Return a list with the file, or with the input files in a folder of results."""
    if not path.is_dir():
        return [path]
    files = [file for pattern in _INPUT_PATTERNS for file in path.glob(pattern)]
    return sorted(files) or [path]


def _file_state(path: Path) -> tuple[int, int] | None:
    """Return the size and the modification time of a file, or None if it is not a file."""
    if not path.is_file():
        return None
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _describe_input(path: Path, state: tuple[int, int] | None) -> dict[str, Any]:
    """Return the name and the hash of an input file. If the file has changed, the hash is None."""
    sha256 = file_sha256(path) if state is not None and path.is_file() else None
    is_unchanged = sha256 is not None and _file_state(path) == state
    return {"name": original_name(path), "sha256": sha256 if is_unchanged else None}


#: Manifest of studies in earlier versions. It contains the hashes of tables and figures.
OLD_MANIFEST: Final = ".abstain-files.json"

#: Text in the first lines of every page.
_PAGE_MARK: Final = b'<meta name="generator" content="abstain '
_PAGE_HEAD_BYTES: Final = 2000


def files_of_earlier_version(folder: Path) -> dict[str, str]:
    """Return the names and hashes of the files in a folder that an older abstain wrote.

    If the folder contains no HTML page of abstain, the result is empty. The result includes the
    files in the manifest of a study. It includes the files results.parquet and results.csv if they
    contain the same table.
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
    """Remove the manifest of an earlier version. A new manifest must exist."""
    if _old_manifest_hashes(folder):
        (folder / OLD_MANIFEST).unlink(missing_ok=True)


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _PAGE_MARK in file.read(_PAGE_HEAD_BYTES)


def _old_manifest_hashes(folder: Path) -> dict[str, str]:
    """Return the names and hashes in the old manifest, or an empty mapping if it is damaged."""
    try:
        return valid_set_names(read_json_object(folder / OLD_MANIFEST))
    except AbstainError:
        return {}


def _matching_tables(folder: Path) -> list[str]:
    """Return the names of the main tables if both contain the same table."""
    import polars as pl

    from abstain.tables.results import result_files

    names = ["results.parquet", "results.csv"]
    if not all((folder / name).is_file() for name in names):
        return []
    try:
        rows = pl.read_parquet(folder / names[0], glob=False, hive_partitioning=False)
        has_same_contents = result_files(rows)[names[1]] == (folder / names[1]).read_bytes()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, AbstainError):
        # The files are damaged, or another program wrote them.
        return []
    return names if has_same_contents else []
