"""States in files: arrays without pickles, written whole or not at all, and checked when read."""

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.archives import Archive
from abstain._foundation.files import open_atomically
from abstain.errors import FileFormatError, InputError
from abstain.streaming.blocks import SortedRun
from abstain.streaming.groups import GroupCounts
from abstain.streaming.histogram import Histogram
from abstain.streaming.passes import CutCounts, FailureCounts
from abstain.streaming.runs import SortedRuns
from abstain.streaming.scales import checked_bins, checked_scale
from abstain.streaming.tally import Tally, tally_of
from abstain.typing import Array

#: Of the format of a saved state. Version 1 kept no checksums of sorted runs.
VERSION = 2

_READABLE = (1, VERSION)

Saved: TypeAlias = Histogram | GroupCounts | FailureCounts | CutCounts | SortedRuns


def save(state: Saved, path: str | Path) -> None:
    """Write a state to a file.

    Answers: how do I keep a stream over a restart, or send it to another process?

    Parameters
    ----------
    state : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        Stays as it is.
    path : str or Path
        A file that ends in ``.npz``; one that is there is replaced.

    Raises
    ------
    InputError
        If the name ends in something else, or the file cannot be written.

    Notes
    -----
    Arrays of NumPy without pickles, with a version. The file appears whole or not at all, also if
    the process is killed. For sorted runs, the file holds the names and SHA-256 checksums of their
    files, which stay where they are; a run that differs from its checksum is rejected when it is
    read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.init(), [0.9, 0.8], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     streaming.save(state, Path(folder) / "state.npz")
    ...     streaming.load(Path(folder) / "state.npz").n
    2
    """
    place = _place(path)
    said = {"kind": np.array(type(state).__name__), "version": np.array(VERSION)}
    arrays: dict[str, Any] = said | _arrays(state)
    with open_atomically(place) as file:
        np.savez(file, **arrays)


def load(path: str | Path) -> Saved:
    """Read a state that `save` wrote.

    Answers: where was I?

    Parameters
    ----------
    path : str or Path
        A file that ends in ``.npz``.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        The state as it was.

    Raises
    ------
    InputError
        If there is no such file.
    FileFormatError
        If the file is damaged, holds no state, or one of another version.

    Notes
    -----
    What each array claims to be is checked before it is read; nothing in a file is run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.one_pass(), [0.9, 0.8], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     streaming.save(state, Path(folder) / "state.npz")
    ...     streaming.compute(streaming.load(Path(folder) / "state.npz")).value
    0.125
    """
    place = _place(path)
    archive = Archive(place)
    kind = _kind(archive)
    try:
        state = _READERS[kind](archive)
    except FileFormatError:
        raise
    except (InputError, KeyError, TypeError, ValueError) as error:
        what = f"no array {error}" if isinstance(error, KeyError) else str(error)
        raise FileFormatError(f"{place.name} is damaged: {what}") from None
    return state


def _place(path: str | Path) -> Path:
    place = Path(os.fspath(path))
    if place.suffix != ".npz":
        raise InputError(f"`path` must end in '.npz'; got {str(place)!r}")
    return place


def _kind(archive: Archive) -> str:
    kind = str(archive["kind"]) if "kind" in archive else ""
    if kind not in _READERS or "version" not in archive:
        raise FileFormatError(
            f"{archive.source} holds no state of a stream; write one with `streaming.save`"
        )
    version = archive["version"]
    if kind == SortedRuns.__name__ and version.shape == () and version == 1:
        raise FileFormatError(
            f"{archive.source} has no checksums of its files of rows, which abstain has kept since "
            f"version {VERSION} of this format; sort the samples again"
        )
    if version.shape != () or version not in _READABLE:
        raise FileFormatError(
            f"{archive.source} is a state of version {version!s}; this abstain reads versions "
            f"1 and {VERSION}. Read it with the abstain that wrote it"
        )
    return kind


# ---------------------------------------------------------------------------------------- arrays
def _arrays(state: Any) -> dict[str, Array]:
    """Return all that a state is made of, by name."""
    if isinstance(state, SortedRuns):
        return _arrays_of_runs(state.flushed)
    if isinstance(state, CutCounts):
        state = state.settled
    out: dict[str, Array] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, FailureCounts | Tally):
            settled = value.settled if isinstance(value, Tally) else value
            out |= {f"{field.name}.{name}": x for name, x in _arrays(settled).items()}
        elif field.name != "waiting":
            out[field.name] = np.asarray(value)
    return out


def _arrays_of_runs(state: SortedRuns) -> dict[str, Array]:
    weighted = -1 if state.weighted is None else int(state.weighted)
    said = {name: getattr(state, name) for name in ("memory", "n", "total", "binary", "precision")}
    text = {"folder": str(state.folder.absolute())}
    paths = np.array([str(run.path.absolute()) for run in state.runs], dtype=np.str_)
    rows = np.array([run.rows for run in state.runs], dtype=np.int64)
    checksums = np.array([run.sha256 for run in state.runs], dtype=np.str_)
    listed = {"weighted": np.array(weighted), "paths": paths, "rows": rows, "sha256": checksums}
    return listed | {name: np.array(value) for name, value in (said | text).items()}


def _tally(archive: Archive, name: str) -> Tally:
    return tally_of(archive[f"{name}.value"], archive[f"{name}.count"], name)


def _number(archive: Archive, name: str, least: int = 0) -> int:
    found = archive[name]
    if found.shape != () or found.dtype.kind != "i" or found < least:
        raise InputError(f"{name!r} must be a whole number of at least {least}")
    return int(found)


def _bits(archive: Archive, name: str = "precision") -> int:
    bits = _number(archive, name)
    if bits not in {16, 32, 64}:
        raise InputError(f"{name!r} must be 16, 32 or 64; got {bits}")
    return bits


def _counts(archive: Archive, name: str, size: int) -> Array:
    found = archive[name]
    if found.shape != (size,) or found.dtype != np.int64 or (found < 0).any():
        raise InputError(f"{name!r} must be {size} counts")
    return found


def _failures(archive: Archive, within: str = "") -> FailureCounts:
    tally = _tally(archive, f"{within}tally")
    bits = _bits(archive, f"{within}precision")
    n = _number(archive, f"{within}n", int(tally.count.sum()))
    return FailureCounts(n, tally, bits)


def _groups(archive: Archive) -> GroupCounts:
    right, wrong = _tally(archive, "right"), _tally(archive, "wrong")
    n = _number(archive, "n")
    if n != right.count.sum() + wrong.count.sum():
        raise InputError(f"'n' must be the sum of all counts; got {n}")
    return GroupCounts(right, wrong, n, _bits(archive))


def _cuts(archive: Archive) -> CutCounts:
    first = _failures(archive, "first.")
    cut = archive["cut"]
    if cut.ndim != 1 or cut.dtype.kind != "f" or not (cut[1:] > cut[:-1]).all():
        raise InputError("'cut' must be ascending numbers")
    state = CutCounts(
        first,
        cut,
        _counts(archive, "failed", cut.size),
        _counts(archive, "at", cut.size),
        _counts(archive, "between", cut.size + 1),
        _number(archive, "seen"),
        _number(archive, "seen_failures"),
    )
    successes = int(state.at.sum() + state.between.sum())
    if int(state.failed.sum()) != first.failures or successes != state.seen - state.seen_failures:
        raise InputError("its counts do not add up")
    return state


def _histogram(archive: Archive) -> Histogram:
    count = archive["count"]
    bins, scale = checked_bins(int(count.size)), checked_scale(str(archive["scale"]))
    floats = {name: archive[name] for name in ("weight", "loss", "least", "most")}
    for name, x in floats.items():
        if x.shape != (bins,) or x.dtype != np.float64 or np.isnan(x).any():
            raise InputError(f"{name!r} must be {bins} numbers")
    state = Histogram(
        scale,
        _counts(archive, "count", bins),
        **floats,
        largest_loss=float(archive["largest_loss"]),
        binary=bool(archive["binary"]),
        precision=_bits(archive),
    )
    if not (state.weight >= 0).all() or not (state.least <= state.most)[state.count > 0].all():
        raise InputError("its bins hold what no samples make")
    return state


def _runs(archive: Archive) -> SortedRuns:
    paths, rows, checksums = archive["paths"], archive["rows"], archive["sha256"]
    has_shape = rows.shape == checksums.shape == paths.shape
    if paths.ndim != 1 or paths.dtype.kind != "U" or checksums.dtype.kind != "U" or not has_shape:
        raise InputError(
            "'paths' must be names of files, with a number of rows and a checksum each"
        )
    runs = zip(paths.tolist(), rows.tolist(), checksums.tolist(), strict=True)
    weighted = _number(archive, "weighted", -1)
    return SortedRuns(
        Path(str(archive["folder"])),
        _number(archive, "memory", 1),
        tuple(SortedRun(Path(path), n_rows, checksum) for path, n_rows, checksum in runs),
        n=_number(archive, "n"),
        total=checks.number(archive["total"], "total"),
        weighted=None if weighted < 0 else bool(weighted),
        binary=bool(archive["binary"]),
        precision=_bits(archive),
    )


_READERS: dict[str, Callable[[Archive], Saved]] = {
    "Histogram": _histogram,
    "GroupCounts": _groups,
    "FailureCounts": _failures,
    "CutCounts": _cuts,
    "SortedRuns": _runs,
}
