"""Save states of streams to NumPy archives without pickles, and load them."""

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
from abstain.streaming.groups import GroupCounts, ValueCounts, checked_value_counts
from abstain.streaming.histogram import Histogram
from abstain.streaming.passes import CutCounts, FailureCounts
from abstain.streaming.runs import SortedRun, SortedRuns
from abstain.streaming.scales import check_bins, check_scale
from abstain.typing import Array

#: Version of the file format. Version 1 had no checksums of sorted runs. Versions 1 and 2 used the
#: array names in `_OLD_NAMES`.
VERSION = 3

_READABLE_VERSIONS = (1, 2, VERSION)

#: Array names of versions 1 and 2, by their current names.
_OLD_NAMES = {
    "min_confidence": "least",
    "max_confidence": "most",
    "successes": "right",
    "failures": "wrong",
    "value_counts": "tally",
    "cuts": "cut",
    "n_failures_at_cut": "failed",
    "n_successes_at_cut": "at",
    "n_successes_between_cuts": "between",
    "n_samples": "seen",
    "n_failures": "seen_failures",
}

State: TypeAlias = Histogram | GroupCounts | FailureCounts | CutCounts | SortedRuns


def save(state: State, path: str | Path) -> None:
    """Write the state of a stream to a file, from which another process can continue.

    Parameters
    ----------
    state : Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        The state to save, which is not modified.
    path : str or Path
        Path of the file with the suffix ``.npz``. An existing file is replaced.

    Raises
    ------
    InputError
        If the path has another suffix or the file cannot be written.

    Notes
    -----
    The file is a NumPy archive without pickles. The file is written atomically, so it is complete
    or does not exist. The state of sorted runs only contains the paths and SHA-256 checksums of
    the run files. If a run file was changed after saving, an error is raised when it is read.

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
    path = _check_path(path)
    header = {"kind": np.array(type(state).__name__), "version": np.array(VERSION)}
    arrays: dict[str, Any] = header | _arrays_of_state(state)
    with open_atomically(path) as file:
        np.savez(file, **arrays)


def load(path: str | Path) -> State:
    """Read the state of a stream from a file that `save` wrote.

    Parameters
    ----------
    path : str or Path
        Path of the file with the suffix ``.npz``.

    Returns
    -------
    Histogram, GroupCounts, FailureCounts, CutCounts or SortedRuns
        The saved state.

    Raises
    ------
    InputError
        If the file does not exist.
    FileFormatError
        If the file is damaged, contains no state or has an unsupported version.

    Notes
    -----
    Before an array is read, its type and shape are validated. The file cannot execute code.

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
    path = _check_path(path)
    archive = Archive(path)
    kind = _read_kind(archive)
    try:
        return _READERS[kind](archive)
    except FileFormatError:
        raise
    except KeyError as error:
        raise FileFormatError(f"{path.name} is damaged: no array {error}") from None
    except (InputError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path.name} is damaged: {error}") from None


def _check_path(path: str | Path) -> Path:
    """Check that the path has the suffix ``.npz``."""
    checked_path = Path(os.fspath(path))
    if checked_path.suffix != ".npz":
        raise InputError(f"`path` must end in '.npz'; got {str(checked_path)!r}")
    return checked_path


def _read_kind(archive: Archive) -> str:
    """Check that the version of the file is supported, and return the class name of the state."""
    kind = str(archive["kind"]) if "kind" in archive else ""
    if kind not in _READERS or "version" not in archive:
        raise FileFormatError(
            f"{archive.source} contains no state of a stream; write one with `streaming.save`"
        )
    version = archive["version"]
    if kind == SortedRuns.__name__ and version.shape == () and version == 1:
        raise FileFormatError(
            f"{archive.source} contains no checksums of its run files, which abstain requires "
            "since version 2 of this format; sort the samples again"
        )
    if version.shape != () or version not in _READABLE_VERSIONS:
        raise FileFormatError(
            f"{archive.source} has format version {version!s}; this abstain reads versions "
            f"1 to {VERSION}. Read it with the abstain that wrote it"
        )
    return kind


# ---------------------------------------------------------------------------------------- arrays
def _arrays_of_state(state: Any) -> dict[str, Array]:
    """Return the fields of a state as arrays by name.

    The name of a field of a nested state has the form "outer.inner".
    """
    if isinstance(state, SortedRuns):
        return _arrays_of_runs(state.flushed)
    if isinstance(state, CutCounts | ValueCounts):
        state = state.finalized
    arrays: dict[str, Array] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, FailureCounts | ValueCounts):
            for name, array in _arrays_of_state(value).items():
                arrays[f"{field.name}.{name}"] = array
        elif field.name != "pending":
            arrays[field.name] = np.asarray(value)
    return arrays


def _arrays_of_runs(state: SortedRuns) -> dict[str, Array]:
    """Return the fields of sorted runs, with paths and checksums of their files, as arrays."""
    # -1 stands for None, which means that the state contains no sample.
    weighted = -1 if state.weighted is None else int(state.weighted)
    paths = [str(run.path.absolute()) for run in state.runs]
    return {
        "memory": np.array(state.memory),
        "n": np.array(state.n),
        "total": np.array(state.total),
        "binary": np.array(state.binary),
        "precision": np.array(state.precision),
        "folder": np.array(str(state.folder.absolute())),
        "weighted": np.array(weighted),
        "paths": np.array(paths, dtype=np.str_),
        "rows": np.array([run.n_rows for run in state.runs], dtype=np.int64),
        "sha256": np.array([run.sha256 for run in state.runs], dtype=np.str_),
    }


def _read_array(archive: Archive, name: str) -> Array:
    """Return the array with this name, which has another name in files of versions 1 and 2."""
    if name in archive:
        return archive[name]
    old_name = ".".join(_OLD_NAMES.get(part, part) for part in name.split("."))
    return archive[old_name if old_name in archive else name]


def _read_value_counts(archive: Archive, name: str) -> ValueCounts:
    """Read counts of distinct values, and check that they are consistent."""
    values = _read_array(archive, f"{name}.value")
    counts = _read_array(archive, f"{name}.count")
    return checked_value_counts(values, counts, name)


def _read_number(archive: Archive, name: str, minimum: int = 0) -> int:
    """Read an integer that is at least the minimum."""
    number = _read_array(archive, name)
    if number.shape != () or number.dtype.kind != "i" or number < minimum:
        raise InputError(f"{name!r} must be an integer of at least {minimum}")
    return int(number)


def _read_precision(archive: Archive, name: str = "precision") -> int:
    """Read the number of bits of a floating-point type."""
    bits = _read_number(archive, name)
    if bits not in {16, 32, 64}:
        raise InputError(f"{name!r} must be 16, 32 or 64; got {bits}")
    return bits


def _read_counts(archive: Archive, name: str, size: int) -> Array:
    """Read an array of `size` non-negative integers."""
    counts = _read_array(archive, name)
    if counts.shape != (size,) or counts.dtype != np.int64 or (counts < 0).any():
        raise InputError(f"{name!r} must be {size} counts")
    return counts


def _read_failure_counts(archive: Archive, prefix: str = "") -> FailureCounts:
    """Read the state of the first of two passes."""
    value_counts = _read_value_counts(archive, f"{prefix}value_counts")
    precision = _read_precision(archive, f"{prefix}precision")
    n = _read_number(archive, f"{prefix}n", int(value_counts.count.sum()))
    return FailureCounts(n, value_counts, precision)


def _read_group_counts(archive: Archive) -> GroupCounts:
    """Read the counts of successes and failures, and check that they add up."""
    successes = _read_value_counts(archive, "successes")
    failures = _read_value_counts(archive, "failures")
    n = _read_number(archive, "n")
    if n != successes.count.sum() + failures.count.sum():
        raise InputError(f"'n' must be the sum of all counts; got {n}")
    return GroupCounts(successes, failures, n, _read_precision(archive))


def _read_cut_counts(archive: Archive) -> CutCounts:
    """Read the state of the second of two passes, and check that its counts are consistent."""
    first = _read_failure_counts(archive, "first.")
    cuts = _read_array(archive, "cuts")
    if cuts.ndim != 1 or cuts.dtype.kind != "f" or not (cuts[1:] > cuts[:-1]).all():
        raise InputError("'cuts' must be ascending numbers")
    state = CutCounts(
        first=first,
        cuts=cuts,
        n_failures_at_cut=_read_counts(archive, "n_failures_at_cut", cuts.size),
        n_successes_at_cut=_read_counts(archive, "n_successes_at_cut", cuts.size),
        n_successes_between_cuts=_read_counts(archive, "n_successes_between_cuts", cuts.size + 1),
        n_samples=_read_number(archive, "n_samples"),
        n_failures=_read_number(archive, "n_failures"),
    )
    n_failures = int(state.n_failures_at_cut.sum())
    n_successes = int(state.n_successes_at_cut.sum() + state.n_successes_between_cuts.sum())
    if n_failures != first.n_failures or n_successes != state.n_samples - state.n_failures:
        raise InputError("its counts do not add up")
    return state


def _read_histogram(archive: Archive) -> Histogram:
    """Read a histogram, and check that its bins are consistent."""
    bins = check_bins(int(archive["count"].size))
    scale = check_scale(str(archive["scale"]))
    arrays = {}
    for name in ("weight", "loss", "min_confidence", "max_confidence"):
        array = _read_array(archive, name)
        if array.shape != (bins,) or array.dtype != np.float64 or np.isnan(array).any():
            raise InputError(f"{name!r} must be {bins} numbers")
        arrays[name] = array
    state = Histogram(
        scale,
        _read_counts(archive, "count", bins),
        **arrays,
        largest_loss=float(archive["largest_loss"]),
        binary=bool(archive["binary"]),
        precision=_read_precision(archive),
    )
    is_ordered = (state.min_confidence <= state.max_confidence) | (state.count == 0)
    if (state.weight < 0).any() or not is_ordered.all():
        raise InputError("its bins contradict each other")
    return state


def _read_sorted_runs(archive: Archive) -> SortedRuns:
    """Read the state of sorted runs, without the samples in the run files."""
    paths = archive["paths"]
    n_rows = archive["rows"]
    checksums = archive["sha256"]
    have_equal_shapes = n_rows.shape == checksums.shape == paths.shape
    are_texts = paths.dtype.kind == "U" and checksums.dtype.kind == "U"
    if paths.ndim != 1 or not are_texts or not have_equal_shapes:
        raise InputError(
            "'paths' must be names of files, with a number of rows and a checksum each"
        )
    runs = [
        SortedRun(Path(path), size, checksum)
        for path, size, checksum in zip(
            paths.tolist(), n_rows.tolist(), checksums.tolist(), strict=True
        )
    ]
    weighted = _read_number(archive, "weighted", -1)
    return SortedRuns(
        folder=Path(str(archive["folder"])),
        memory=_read_number(archive, "memory", 1),
        runs=tuple(runs),
        n=_read_number(archive, "n"),
        total=checks.number(archive["total"], "total"),
        weighted=None if weighted < 0 else bool(weighted),
        binary=bool(archive["binary"]),
        precision=_read_precision(archive),
    )


_READERS: dict[str, Callable[[Archive], State]] = {
    "Histogram": _read_histogram,
    "GroupCounts": _read_group_counts,
    "FailureCounts": _read_failure_counts,
    "CutCounts": _read_cut_counts,
    "SortedRuns": _read_sorted_runs,
}
