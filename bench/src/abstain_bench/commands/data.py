"""Define the command `abstain data`, which lists and downloads published data sets."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from abstain.cli.console import console, interactive_stderr, print_text

#: Notes on data sets without a published SHA-256, by the available check.
_WEAKER_CHECKS = {
    "md5": "no SHA-256 is published for it; it has the published MD5, which can be forged",
    "size": "no checksum is published for it; it has the published size",
    "archive": "no checksum is published for it; only the internal checksums of the archive were "
    "verified, which do not confirm its origin",
}

data = App(name="data", help="Download and list published data sets.")


@data.command(name="fetch")
def fetch_data(
    name: Annotated[str, Parameter(help="Data set (`abstain data list`)")],
    /,
    *,
    folder: Annotated[Path, Parameter(help="Folder for the files")],
    mirror: Annotated[str | None, Parameter(help="Address (http, https) of a mirror")] = None,
    keep: Annotated[bool, Parameter(help="Keep the archives after unpacking")] = True,
) -> None:
    """Download a data set, verify its checksums and unpack it; repeat the command to resume."""
    from abstain_bench.data.fetching import SOURCES, fetch

    stderr = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=stderr,
        disable=interactive_stderr() is None,
    )
    tasks: dict[str, TaskID] = {}

    def update_progress(file: str, done: int, total: int) -> None:
        if file not in tasks:
            tasks[file] = progress.add_task(file, total=total or None)
        progress.update(tasks[file], completed=done, total=total or None)

    with progress:
        data_folder = fetch(name, folder, mirror=mirror, keep=keep, progress=update_progress)
    weaker_check = _WEAKER_CHECKS.get(SOURCES[name].checked)
    if weaker_check:
        stderr.print(f"Note: {weaker_check}", soft_wrap=True)
    print_text(f"The data set is in {data_folder}")


@data.command(name="list")
def list_data() -> None:
    """List the data sets that can be downloaded, and explain how to obtain the others."""
    from abstain_bench.data.fetching import SOURCES

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "description", "size", "checked by", "license"):
        table.add_column(column, no_wrap=column in {"name", "size"}, overflow="fold")
    for source in SOURCES.values():
        size = f"{source.size / 1e9:.1f} GB" if source.size >= 1e8 else ""
        checked = source.checked or "by hand only"
        table.add_row(source.name, source.title, size, checked, source.license)
    table.caption = (
        "Names for `abstain data fetch NAME --folder DIR`; docs/data.md describes the files. Other "
        "checks than SHA-256: no SHA-256 is published; archive: internal checksums only"
    )
    console().print(table)
