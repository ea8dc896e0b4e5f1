"""Write files atomically, and publish sets of files to an output folder.

The manifest of a set, ``receipt.json``, contains the inputs of the run and the hash of each file.
All files are first written to a hidden folder and then moved to the output folder. If a run is
killed during the move, the next run with this output folder completes the move.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from abstain._foundation.json_records import parse_object
from abstain.errors import InputError

#: Age in seconds from which a temporary file is stale.
_STALE_AFTER = 3600


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, and rename the file when it is complete."""
    with open_atomically(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file for writing, and rename it to `path` when the block succeeds."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            # Without this call, a crash of the machine can keep the name and lose the content.
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written: {describe_os_error(path, error)}"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_stale_files(folder: Path, pattern: str = ".*.tmp") -> None:
    """Remove temporary files that are older than an hour and belong to killed runs."""
    for path in folder.glob(pattern):
        # The file may have been removed already, or it may belong to another user.
        with contextlib.suppress(OSError):
            age = time.time() - path.stat().st_mtime
            if age <= _STALE_AFTER:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


#: Error numbers of file systems that do not support locks.
_NO_LOCKS: Final = frozenset({errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL})

#: Time in seconds that a run waits while another run publishes to the same folder.
_MAX_WAIT: Final = 60.0


@contextlib.contextmanager
def lock_file(path: Path, msg: str, *, wait: float = 0.0) -> Iterator[None]:
    """Lock a file against other processes, or raise an InputError if another process has the lock.

    On file systems without locks, this function has no effect.

    Parameters
    ----------
    path : Path
        The lock file, which is created if it does not exist.
    msg : str
        Error message if another process holds the lock.
    wait : float, default=0.0
        Time in seconds to wait for the other process.
    """
    # The package is imported here, because most commands write no files.
    from filelock import FileLock, Timeout

    with contextlib.ExitStack() as stack:
        try:
            # Threads of one process also exclude each other, because each call has a new lock.
            stack.enter_context(FileLock(path, timeout=wait))
        except Timeout as error:
            raise InputError(msg) from error
        except NotImplementedError:  # pragma: no cover  # some network file systems
            pass
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                text = f"{str(path)!r} cannot be written: {describe_os_error(path, error)}"
                raise InputError(text) from error
        yield


def make_folder(path: Path) -> None:
    """Create a folder and its parents. A failure raises an InputError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {str(path)!r} cannot be written: {describe_os_error(path / '_', error)}"
        ) from error


def describe_os_error(path: Path, error: OSError) -> str:
    """Describe why a file cannot be written, as a clause of an error message."""
    files_above = [p for p in path.parents if p.exists() and not p.is_dir()]
    if files_above:
        return f"{str(files_above[0])!r} is a file, not a folder"
    if path.is_dir():
        return "it is a folder"
    if isinstance(error, FileNotFoundError) and not path.parent.exists():
        return f"the folder {str(path.parent)!r} does not exist"
    if isinstance(error, PermissionError):
        return "you may not write there"
    return error.strerror or str(error)


# ------------------------------------------------------------------------------------ sets
#: Name of the manifest. It exists only if all files of the set exist.
MANIFEST: Final = "receipt.json"

#: Hidden folder with the files of a set that have not been moved to the output folder yet.
_PENDING_FOLDER: Final = ".abstain-publishing"

#: Value of the field `kind` in a manifest.
_MANIFEST_KIND: Final = "abstain output"

#: File in the pending folder that contains the hashes of the previous set.
_PREVIOUS_FILE: Final = ".before.json"

#: Valid names of the files of a set, which are in its folder or one level below and not hidden.
#: Files with other names are never changed.
_VALID_NAME: Final = re.compile(r"(?:[^./\\][^/\\]*/)?[^./\\][^/\\]*")

#: Maximum size of a manifest in bytes. A manifest lists some tens of files.
_MAX_MANIFEST_BYTES: Final = 1 << 20


def check_output_folder(
    folder: Path, names: Iterable[str], *, extra_hashes: Mapping[str, str]
) -> None:
    """Raise an InputError if the folder is not writable or contains unrelated files.

    Unrelated files have a name in `names` but no known hash. `extra_hashes` contains the hashes of
    files that abstain wrote without a manifest. First, a partial publication by a killed run is
    completed.
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        make_folder(folder)
    probe = existing / f".abstain-{secrets.token_hex(4)}.tmp"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        _raise_unwritable(folder, error)
    with _publication_lock(folder):
        _complete_publication(folder)
        _reject_other_files(folder, names, {**extra_hashes, **published_hashes(folder)})


def publish(
    folder: Path,
    files: Mapping[str, bytes],
    metadata: Mapping[str, Any],
    *,
    extra_hashes: Mapping[str, str],
) -> None:
    """Publish the files to a folder as one set, and add `metadata` to its manifest.

    Files of the previous set are removed if the new set does not contain them and the user did not
    change them.
    """
    with _publication_lock(folder):
        _complete_publication(folder)
        previous_hashes = {**extra_hashes, **published_hashes(folder)}
        _reject_other_files(folder, files, previous_hashes)
        content = {**files, MANIFEST: _manifest(files, metadata)}
        try:
            if folder.exists():
                content[_PREVIOUS_FILE] = json.dumps(previous_hashes).encode()
                _move_into_place(_stage(folder, content), folder / _PENDING_FOLDER)
            else:
                make_folder(folder.parent)
                _move_into_place(_stage(folder.parent, content), folder)
        except OSError as error:
            _raise_unwritable(folder, error)
        _complete_publication(folder)


def _manifest(files: Mapping[str, bytes], metadata: Mapping[str, Any]) -> bytes:
    """Return the manifest of a set as JSON."""
    hashes = {name: _sha256(content) for name, content in sorted(files.items())}
    manifest = {"kind": _MANIFEST_KIND, **metadata, "files": hashes}
    return (json.dumps(manifest, indent=1) + "\n").encode()


@contextlib.contextmanager
def _publication_lock(folder: Path) -> Iterator[None]:
    """Lock the folder against publication by other processes of this user on this machine."""
    # The lock file is in the folder for temporary files, because the output folder may not exist.
    user = getattr(os, "getuid", int)()
    key = _sha256(os.fsencode(folder.resolve()))[:16]
    lock = Path(tempfile.gettempdir()) / f"abstain-{user}-{key}.lock"
    msg = f"another run has been writing to {str(folder)!r} for {_MAX_WAIT:.0f} s; end it first"
    with lock_file(lock, msg, wait=_MAX_WAIT):
        yield


def published_hashes(folder: Path) -> dict[str, str]:
    """Return the hashes of the files of a published set from its manifest."""
    text = _read_small_text(folder / MANIFEST)
    if text is None:
        return {}
    try:
        manifest = parse_object(text)
    except InputError:
        return {}
    # Another program may use the same file name.
    if manifest.get("kind") != _MANIFEST_KIND:
        return {}
    return {**_file_hashes(manifest), MANIFEST: _sha256(text.encode())}


def _file_hashes(manifest: Mapping[str, Any]) -> dict[str, str]:
    hashes = manifest.get("files")
    return valid_set_names(hashes) if isinstance(hashes, dict) else {}


def valid_set_names(hashes: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes of files whose names are valid in a set."""
    return {
        name: str(hash_value) for name, hash_value in hashes.items() if _VALID_NAME.fullmatch(name)
    }


def _read_small_text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_MANIFEST_BYTES:
            return None
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _reject_other_files(folder: Path, names: Iterable[str], *hashes: Mapping[str, str]) -> None:
    """Raise an InputError if an existing file has none of the given hashes."""
    for name in (*names, MANIFEST):
        path = folder / name
        known_hashes = {files[name] for files in hashes if name in files}
        _reject_other_file(path, known_hashes)
        if path.parent != folder:
            _reject_link_or_file(path.parent)


def _reject_other_file(path: Path, known_hashes: set[str]) -> None:
    """Raise an InputError if an existing path is not a file with one of the hashes."""
    exists = path.exists() or path.is_symlink()
    if not exists or _has_hash(path, known_hashes):
        return
    if path.is_dir():
        reason = "is a folder"
    elif known_hashes:
        reason = "was changed since abstain wrote it"
    else:
        reason = "is not from abstain"
    raise InputError(
        f"{str(path)!r} {reason}, so it is not replaced; move it away, or choose another folder"
    )


def _reject_link_or_file(folder: Path) -> None:
    """Raise an InputError if an existing path is not a folder."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{str(folder)!r} is not a folder; move it away, or choose another folder")


def _has_hash(path: Path, hashes: Iterable[str]) -> bool:
    """Return whether a path is a regular file with one of the hashes, not a link."""
    expected_hashes = set(hashes)
    is_link = path.is_symlink() or path.parent.is_symlink()
    if not expected_hashes or is_link or not path.is_file():
        return False
    return file_sha256(path) in expected_hashes


def file_sha256(path: Path) -> str:
    """Return the SHA-256 hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _stage(parent: Path, content: Mapping[str, bytes]) -> Path:
    """Write all files to a new hidden folder, and return the path of the folder."""
    remove_stale_files(parent, ".abstain-*.tmp")
    folder = parent / f".abstain-{secrets.token_hex(4)}.tmp"
    folder.mkdir()
    try:
        for name, data in content.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            with path.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _move_into_place(staged: Path, destination: Path) -> None:
    """Rename the complete folder, or remove it if this fails."""
    try:
        staged.rename(destination)
        _sync_folder(destination.parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _complete_publication(folder: Path) -> None:
    """Move all pending files to the output folder, including files of killed runs."""
    pending = folder / _PENDING_FOLDER
    if not pending.is_dir():
        return
    try:
        # The manifest is moved last, so without it all files are already published.
        if (pending / MANIFEST).exists():
            manifest = _read_journal(pending / MANIFEST)
            previous_hashes = _read_journal(pending / _PREVIOUS_FILE)
            _replace_files(pending, folder, _file_hashes(manifest), previous_hashes)
        shutil.rmtree(pending)
    except OSError as error:
        _raise_unwritable(folder, error)


def _read_journal(path: Path) -> dict[str, Any]:
    try:
        return parse_object(_read_small_text(path) or "")
    except InputError as error:
        raise InputError(
            f"{str(path)!r} is damaged ({error}); remove the folder that it is in"
        ) from None


def _replace_files(
    pending: Path, folder: Path, hashes: Mapping[str, str], previous_hashes: Mapping[str, str]
) -> None:
    """Move the pending files to the output folder, and remove obsolete files."""
    remaining = [name for name in hashes if (pending / name).is_file()]
    manifest_hash = {MANIFEST: _sha256((pending / MANIFEST).read_bytes())}
    _reject_other_files(folder, remaining, previous_hashes, hashes, manifest_hash)
    # A set without a manifest is incomplete, so the old manifest is removed first.
    (folder / MANIFEST).unlink(missing_ok=True)
    # The page is moved first, because tables must not exist without the page.
    pages = [name for name in remaining if name.endswith(".html")]
    other_files = [name for name in remaining if not name.endswith(".html")]
    for name in sorted(pages) + sorted(other_files):
        (folder / name).parent.mkdir(exist_ok=True)
        # Another run may complete the same set at the same time.
        with contextlib.suppress(FileNotFoundError):
            (pending / name).replace(folder / name)
    for name, hash_value in previous_hashes.items():
        if name not in hashes and name != MANIFEST and _VALID_NAME.fullmatch(name):
            _remove_file(folder / name, hash_value)
    _sync_folder(folder)
    with contextlib.suppress(FileNotFoundError):
        (pending / MANIFEST).replace(folder / MANIFEST)
    _sync_folder(folder)


def _remove_file(path: Path, hash_value: str) -> None:
    """Remove a file if it has this hash. Also remove its folder if it becomes empty."""
    if not _has_hash(path, [hash_value]):
        return
    path.unlink()
    with contextlib.suppress(OSError):
        # This call fails if the folder is not empty.
        path.parent.rmdir()


def _sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk, if the operating system supports this."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _raise_unwritable(folder: Path, error: OSError) -> NoReturn:
    raise InputError(
        f"the folder {str(folder)!r} cannot be written: {describe_os_error(folder / '_', error)}"
    ) from error
