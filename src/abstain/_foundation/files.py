"""Files, and sets of files in a folder, that appear whole or not at all.

A set comes with a receipt of what it was made from. Everything is written beside its place first. A
folder that is not there yet appears with all of its files at once. In one that is there, the step
from the old set to the new one is a handful of renames; a run that is killed among them leaves the
rest of the new set in a folder of its own, and whoever publishes there next completes it.
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

#: Seconds.
_HOUR = 3600


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the place and move there, so that a killed run leaves no half file."""
    with open_atomically(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at its place when all is written."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            # Without this a crash of the machine may keep the new name and lose the content.
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
    """Take away what writers left that were killed an hour ago or longer.

    A younger file may belong to somebody who is still writing it.
    """
    for path in folder.glob(pattern):
        # It may be gone, or another's.
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _HOUR:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


#: What file systems without locks answer.
_NO_LOCKS: Final = frozenset({errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL})

#: Seconds that a run waits for another one to publish to the same folder.
_MAX_WAIT: Final = 60.0


@contextlib.contextmanager
def lock_file(path: Path, msg: str, *, wait: float = 0.0) -> Iterator[None]:
    """Lock a file against other processes; raise InputError with a message if it stays locked.

    The system releases the lock when the process ends, however it does; the file stays and is
    empty. Without locks in the file system nothing is locked.

    Parameters
    ----------
    path : Path
        The file, which is made if it does not exist.
    msg : str
        The message if another process holds the lock.
    wait : float, default=0.0
        Seconds to wait for the other process.
    """
    # Most commands write nothing, and need not wait for its modules to load.
    from filelock import FileLock, Timeout

    with contextlib.ExitStack() as stack:
        try:
            # No other object has this lock, so that threads of one process exclude each other too.
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
    """Make a folder and those above it; refuse a path on which something else stands."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {str(path)!r} cannot be written: {describe_os_error(path / '_', error)}"
        ) from error


def describe_os_error(path: Path, error: OSError) -> str:
    """Say what stands in the way of a file; the system's own words where nothing is plainer."""
    above = [p for p in path.parents if p.exists() and not p.is_dir()]
    if above:
        return f"{str(above[0])!r} is a file, not a folder"
    if path.is_dir():
        return "it is a folder"
    if isinstance(error, FileNotFoundError) and not path.parent.exists():
        return f"the folder {str(path.parent)!r} does not exist"
    if isinstance(error, PermissionError):
        return "you may not write there"
    return error.strerror or str(error)


# ------------------------------------------------------------------------------------ sets
#: What a set was made from, and the hash of each file. It is there only while the set is whole.
MANIFEST: Final = "receipt.json"

#: The rest of a set that is complete on the disk and not yet in its place.
_GOING_ON: Final = ".abstain-publishing"

#: What a receipt says that it is.
_KIND: Final = "abstain output"

#: In that folder, the files of the set before.
_BEFORE: Final = ".before.json"

#: A file of ours lies in the folder or one level below, and is not hidden. Nothing else is touched.
_NAME: Final = re.compile(r"(?:[^./\\][^/\\]*/)?[^./\\][^/\\]*")

#: A receipt names tens of files; more than this is none.
_MOST_BYTES: Final = 1 << 20


def check_output_folder(
    folder: Path, names: Iterable[str], *, extra_hashes: Mapping[str, str]
) -> None:
    """Refuse a folder that cannot be written to, or that holds others' files under these names.

    `known` are files without a receipt that are ours nevertheless, with their hashes. What a
    killed run left behind is completed first.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        make_folder(folder)
    probe = there / f".abstain-{secrets.token_hex(4)}.tmp"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        _cannot(folder, error)
    with _one_at_a_time(folder):
        _complete(folder)
        _refuse_others(folder, names, {**extra_hashes, **published_hashes(folder)})


def publish(
    folder: Path,
    files: Mapping[str, bytes],
    metadata: Mapping[str, Any],
    *,
    extra_hashes: Mapping[str, str],
) -> None:
    """Make the files the set of this folder, with a receipt that also says what is `said`.

    What the set before had and this one has not is taken away, unless somebody changed it.
    """
    with _one_at_a_time(folder):
        # Late files of a killed run count as the set before.
        _complete(folder)
        before = {**extra_hashes, **published_hashes(folder)}
        _refuse_others(folder, files, before)
        receipt = {
            "kind": _KIND,
            **metadata,
            "files": {name: _hash(content) for name, content in sorted(files.items())},
        }
        content = {**files, MANIFEST: (json.dumps(receipt, indent=1) + "\n").encode()}
        try:
            if folder.exists():
                content[_BEFORE] = json.dumps(before).encode()
                _commit(_staged(folder, content), folder / _GOING_ON)
            else:
                make_folder(folder.parent)
                _commit(_staged(folder.parent, content), folder)
        except OSError as error:
            _cannot(folder, error)
        _complete(folder)


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep other processes of this user and machine from publishing to the folder meanwhile.

    The lock lies among the temporary files: the folder may not exist yet, and the one above it may
    be closed to us.
    """
    user = getattr(os, "getuid", int)()
    key = _hash(os.fsencode(folder.resolve()))[:16]
    lock = Path(tempfile.gettempdir()) / f"abstain-{user}-{key}.lock"
    msg = f"another run has been writing to {str(folder)!r} for {_MAX_WAIT:.0f} s; end it first"
    with lock_file(lock, msg, wait=_MAX_WAIT):
        yield


def published_hashes(folder: Path) -> dict[str, str]:
    """Return the files of the set in this folder by its receipt, with their hashes."""
    text = _read(folder / MANIFEST)
    if text is None:
        return {}
    try:
        receipt = parse_object(text)
    except InputError:
        return {}
    # Somebody else's file of that name makes nothing ours.
    if receipt.get("kind") != _KIND:
        return {}
    return {**_files(receipt), MANIFEST: _hash(text.encode())}


def _files(receipt: Mapping[str, Any]) -> dict[str, str]:
    found = receipt.get("files")
    return valid_set_names(found) if isinstance(found, dict) else {}


def valid_set_names(hashes: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes of the names that lie in the folder of a set or one level below."""
    return {name: str(key) for name, key in hashes.items() if _NAME.fullmatch(name)}


def _read(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _refuse_others(folder: Path, names: Iterable[str], *known: Mapping[str, str]) -> None:
    """Refuse names under which something stands that is not one of the known files."""
    for name in (*names, MANIFEST):
        path = folder / name
        keys = {files[name] for files in known if name in files}
        if not _is(path, keys) and (path.exists() or path.is_symlink()):
            what = "was changed since abstain wrote it" if keys else "is not from abstain"
            what = "is a folder" if path.is_dir() else what
            raise InputError(
                f"{str(path)!r} {what}, so it is not replaced; "
                "move it away, or choose another folder"
            )
        above = path.parent
        if above != folder and (above.is_symlink() or (above.exists() and not above.is_dir())):
            raise InputError(
                f"{str(above)!r} is no folder of files; move it away, or choose another folder"
            )


def _is(path: Path, keys: Iterable[str]) -> bool:
    """Tell whether it is a file with one of these hashes; a link is none."""
    wanted = set(keys)
    if not wanted or path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        return False
    return file_sha256(path) in wanted


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _staged(place: Path, content: Mapping[str, bytes]) -> Path:
    """Write all files to a new hidden folder, so that they survive a crash; return it."""
    remove_stale_files(place, ".abstain-*.tmp")
    folder = place / f".abstain-{secrets.token_hex(4)}.tmp"
    folder.mkdir()
    try:
        for name, held in content.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            with path.open("xb") as file:
                file.write(held)
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _commit(staged: Path, place: Path) -> None:
    """Move the folder to its name: before this nothing has happened, after it all will."""
    try:
        staged.rename(place)
        _settle(place.parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _complete(folder: Path) -> None:
    """Bring the rest of a set to its place, if there is one."""
    going_on = folder / _GOING_ON
    if not going_on.is_dir():
        return
    try:
        # The receipt is the last to move: without it all is in its place.
        if (going_on / MANIFEST).exists():
            new, before = (_journal(going_on / name) for name in (MANIFEST, _BEFORE))
            _replace(going_on, folder, _files(new), before)
        shutil.rmtree(going_on)
    except OSError as error:
        _cannot(folder, error)


def _journal(path: Path) -> dict[str, Any]:
    try:
        return parse_object(_read(path) or "")
    except InputError as error:
        raise InputError(
            f"{str(path)!r} is damaged ({error}); remove the folder that it is in"
        ) from None


def _replace(
    going_on: Path, folder: Path, files: Mapping[str, str], before: Mapping[str, str]
) -> None:
    late = [name for name in files if (going_on / name).is_file()]
    receipt = {MANIFEST: _hash((going_on / MANIFEST).read_bytes())}
    _refuse_others(folder, late, before, files, receipt)
    # From here until the new one comes, no receipt vouches for what is there.
    (folder / MANIFEST).unlink(missing_ok=True)
    # The page first: it is whole by itself, and never do tables stand there without one.
    for name in sorted(late, key=lambda name: (not name.endswith(".html"), name)):
        (folder / name).parent.mkdir(exist_ok=True)
        # Another run may be completing the same set.
        with contextlib.suppress(FileNotFoundError):
            (going_on / name).replace(folder / name)
    for name, key in before.items():
        if name not in files and name != MANIFEST and _NAME.fullmatch(name):
            _take_away(folder / name, key)
    _settle(folder)
    with contextlib.suppress(FileNotFoundError):
        (going_on / MANIFEST).replace(folder / MANIFEST)
    _settle(folder)


def _take_away(path: Path, key: str) -> None:
    """Remove a file of the set before, and its folder if nothing else is in it."""
    if _is(path, [key]):
        path.unlink()
        with contextlib.suppress(OSError):
            # The folder of the set itself holds the rest of it.
            path.parent.rmdir()


def _settle(folder: Path) -> None:
    """Have the names in a folder survive a crash of the machine, where the system can."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _cannot(folder: Path, error: OSError) -> NoReturn:
    raise InputError(
        f"the folder {str(folder)!r} cannot be written: {describe_os_error(folder / '_', error)}"
    ) from error
