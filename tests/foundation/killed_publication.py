"""A program that publishes in child processes, each killed at one step later than the last.

An audit hook sees every step that Python takes in the file system, just before it is taken.
Called as `killed_publication.py FOLDER fresh|again`.
"""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from abstain._foundation.files import MANIFEST, publish

_STEPS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")
OLD = {"report.html": b"old", "results.csv": b"1", "gone.csv": b"g", "figures/a.svg": b"a"}
NEW = {"report.html": b"new", "results.csv": b"2", "more.csv": b"m", "figures/b.svg": b"b"}


def killed_at(step: int, folder: Path) -> bool:
    """Publish in a child that is killed before a step; tell whether it came that far."""
    if (child := os.fork()) == 0:
        left = [step]

        def hook(event: str, _: object) -> None:
            if event in _STEPS:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)

        sys.addaudithook(hook)
        publish(folder, NEW, {"command": "new"}, extra_hashes={})
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def content(folder: Path) -> dict[str, bytes]:
    result = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in result
        if not path.relative_to(folder).parts[0].startswith(".")
    }


def state(folder: Path) -> str:
    """Return which set stands there, or how a reader sees that it is none."""
    result = content(folder)
    receipt = result.pop(MANIFEST, None)
    if not result:
        return "nothing"
    if receipt is None:
        assert (folder / ".abstain-publishing").is_dir(), "nothing says that it is no whole set"
        assert "report.html" in result, "tables without a page"
        return "between"
    hashes = {name: hashlib.sha256(held).hexdigest() for name, held in result.items()}
    assert hashes.items() >= json.loads(receipt)["files"].items()
    assert result in (OLD, NEW) or (folder / ".abstain-publishing").is_dir()
    return "new" if result["report.html"] == b"new" else "old"


def main(place: Path, *, again: bool) -> list[str]:
    calls, step, going = [], 0, True
    # It matters when the machine dies, not when the program does, and is slow.
    os.fsync = lambda _: None
    while going:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        folder = place / "out"
        if again:
            publish(folder, OLD, {"command": "old"}, extra_hashes={})
        going = killed_at(step, folder)
        calls.append(state(folder))
        publish(folder, NEW, {"command": "new"}, extra_hashes={})
        assert state(folder) == "new"
        assert content(folder).keys() == {*NEW, MANIFEST}, "the next run repairs it"
        assert not (folder / ".abstain-publishing").exists()
        step += 1
    return calls


if __name__ == "__main__":
    print(*main(Path(sys.argv[1]), again=sys.argv[2] == "again"))
