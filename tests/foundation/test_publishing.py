"""A set of files is in a folder whole or not at all, and never in the place of another's file."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.foundation import killed_publication

from abstain._foundation.files import (
    MANIFEST,
    check_output_folder,
    lock_file,
    publish,
    published_hashes,
)
from abstain.errors import InputError

OLD, NEW = killed_publication.OLD, killed_publication.NEW
content = killed_publication.content


def put(folder, files, **more):
    publish(folder, files, {"command": "abstain"}, extra_hashes=more.get("extra_hashes", {}))


def refused(folder, files, **more):
    with pytest.raises(InputError) as found:
        put(folder, files, **more)
    return str(found.value)


@pytest.mark.skipif(sys.platform == "win32", reason="the program forks")
@pytest.mark.parametrize(("mode", "seen"), [("fresh", ["nothing", "new"]), ("again", None)])
def test_killed_at_every_step_it_is_the_old_set_or_the_new_or_repaired(tmp_path, mode, seen):
    program = [sys.executable, killed_publication.__file__, str(tmp_path / "place"), mode]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    states = done.stdout.split()
    # In a new folder there is no moment between; in an old one only that of the renames.
    assert list(dict.fromkeys(states)) == (seen or ["old", "between", "new"])
    assert len(states) > 10


def test_the_receipt_knows_every_file(tmp_path):
    put(tmp_path / "a" / "b", OLD)
    left = content(tmp_path / "a" / "b")
    receipt = json.loads(left.pop(MANIFEST))
    assert left == OLD
    assert receipt["command"] == "abstain"
    assert receipt["files"] == {n: hashlib.sha256(held).hexdigest() for n, held in OLD.items()}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"], "nothing is left beside"


def test_the_set_before_makes_room_and_files_of_others_stay(tmp_path):
    put(tmp_path, OLD)
    (tmp_path / "mine.csv").write_text("mine")
    (tmp_path / "figures" / "mine.svg").write_text("mine")
    (tmp_path / "gone.csv").write_text("edited by hand")
    put(tmp_path, NEW)
    left = content(tmp_path)
    assert left.keys() == {*NEW, MANIFEST, "mine.csv", "figures/mine.svg", "gone.csv"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("name", "said"),
    [("results.csv", "is not from abstain"), (MANIFEST, "is not from abstain")],
)
def test_a_file_of_others_is_not_replaced(tmp_path, name, said):
    (tmp_path / name).write_text('{"files": {"results.csv": "x"}}')
    before = content(tmp_path)
    message = refused(tmp_path, NEW)
    assert name in message
    assert said in message
    assert "move it away, or choose another folder" in message
    with pytest.raises(InputError, match=said):
        check_output_folder(tmp_path, NEW, extra_hashes={})
    assert content(tmp_path) == before


def test_a_file_that_somebody_changed_is_not_replaced(tmp_path):
    put(tmp_path, OLD)
    (tmp_path / "results.csv").write_text("with a note")
    assert "results.csv' was changed since abstain wrote it" in refused(tmp_path, NEW)
    assert (tmp_path / "report.html").read_bytes() == b"old"
    # Under names that the next set has not, changes are nobody's trouble.
    (tmp_path / "results.csv").write_bytes(b"1")
    (tmp_path / "gone.csv").write_text("changed")
    put(tmp_path, NEW)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_are_not_written_through(tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    put(out, {"report.html": b"1"})
    (out / "figures").symlink_to(elsewhere)
    assert "is not a folder" in refused(out, NEW)
    (out / "figures").unlink()
    (out / "report.html").rename(elsewhere / "report.html")
    (out / "report.html").symlink_to(elsewhere / "report.html")
    assert "report.html" in refused(out, NEW)
    assert (elsewhere / "report.html").read_bytes() == b"1"
    # The folder itself may be one.
    (tmp_path / "link").symlink_to(elsewhere)
    (elsewhere / "report.html").unlink()
    put(tmp_path / "link", NEW)
    assert content(elsewhere).keys() == {*NEW, MANIFEST}


def test_names_of_a_receipt_reach_nothing_outside(tmp_path):
    outside, out = tmp_path / "outside.csv", tmp_path / "out"
    outside.write_bytes(b"x")
    put(out, OLD)
    receipt = json.loads((out / MANIFEST).read_text())
    key = hashlib.sha256(b"x").hexdigest()
    for name in ("../outside.csv", str(outside), "a/../../outside.csv", ".hidden", "a/b/c.csv"):
        receipt["files"][name] = key
    (out / MANIFEST).write_text(json.dumps(receipt))
    assert published_hashes(out).keys() == {*OLD, MANIFEST}
    put(out, NEW)
    assert outside.exists()


@pytest.mark.parametrize("text", ["[1]", "{", "[" * 100_000, '{"kind": "abstain output"}'])
def test_what_is_no_receipt_makes_nothing_ours(tmp_path, text):
    put(tmp_path, OLD)
    (tmp_path / MANIFEST).write_text(text)
    assert "is not from abstain" in refused(tmp_path, NEW)
    assert content(tmp_path).keys() == {*OLD, MANIFEST}


def test_files_known_otherwise_are_replaced(tmp_path):
    (tmp_path / "results.csv").write_bytes(b"x")
    put(tmp_path, NEW, extra_hashes={"results.csv": hashlib.sha256(b"x").hexdigest()})
    assert (tmp_path / "results.csv").read_bytes() == NEW["results.csv"]


def test_a_set_in_parts_is_completed_only_over_files_that_are_ours(tmp_path):
    put(tmp_path / "other", NEW)
    put(tmp_path / "out", OLD)
    (tmp_path / "other").rename(tmp_path / "out" / ".abstain-publishing")
    (tmp_path / "out" / ".abstain-publishing" / ".before.json").write_text("{}")
    with pytest.raises(InputError, match="is not replaced"):
        check_output_folder(tmp_path / "out", [], extra_hashes={})
    (tmp_path / "out" / ".abstain-publishing" / ".before.json").write_text("no JSON")
    with pytest.raises(InputError, match=r"\.before\.json' is damaged .*; remove the folder"):
        check_output_folder(tmp_path / "out", [], extra_hashes={})
    assert content(tmp_path / "out").keys() == {*OLD, MANIFEST}


def test_what_was_staged_long_ago_is_swept(tmp_path):
    for name, age in (("old", 7200), ("new", 60)):
        folder = tmp_path / f".abstain-{name}.tmp"
        folder.mkdir()
        (folder / "report.html").touch()
        then = folder.stat().st_mtime - age
        os.utime(folder, (then, then))
    put(tmp_path, NEW)
    assert [p.name for p in tmp_path.glob(".abstain-*")] == [".abstain-new.tmp"]


def test_a_place_that_cannot_be_written_raises_an_error_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(InputError, match="is a file, not a folder"):
            check_output_folder(place, [], extra_hashes={})

    def full(*_, **__):
        raise PermissionError(13, "no")

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(InputError, match=r"out' cannot be written: you may not write there"):
        check_output_folder(tmp_path / "out", [], extra_hashes={})
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "and nothing is made"


def test_a_full_disk_leaves_the_set_before(tmp_path, monkeypatch):
    put(tmp_path, OLD)
    before = content(tmp_path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refused(tmp_path, NEW)
    assert content(tmp_path) == before
    assert not list(tmp_path.glob(".abstain-*"))


PUBLISHER = """
import sys, time
from pathlib import Path
from abstain._foundation.files import publish
while time.time() < float(sys.argv[3]):
    pass
files = {"report.html": sys.argv[2].encode() * 1000, f"{sys.argv[2]}.csv": b"x"}
publish(Path(sys.argv[1]), files, {}, extra_hashes={})
"""


def test_several_runs_publish_to_one_new_folder(tmp_path):
    folder, start = tmp_path / "out", str(time.time() + 1.5)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, str(folder), name, start],
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for name in "abc"
    ]
    errors = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], errors
    # The set of the last one, whole.
    (table,) = folder.glob("*.csv")
    assert {path.name for path in folder.iterdir()} == {"report.html", table.name, MANIFEST}
    assert (folder / "report.html").read_text() == table.stem * 1000
    assert set(published_hashes(folder)) == {"report.html", table.name, MANIFEST}


def test_a_lock_excludes_other_processes_until_theirs_ends(tmp_path):
    path = tmp_path / "counts.lock"
    program = (
        "import sys, pathlib; from abstain._foundation.files import lock_file\n"
        "with lock_file(pathlib.Path(sys.argv[1]), 'busy'): print('held', flush=True); input()"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
    )
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(InputError, match="busy"), lock_file(path, "busy"):
        pass
    # The system releases it however the process ends.
    other.kill()
    other.communicate()
    with lock_file(path, "busy"):
        pass


def test_a_file_system_without_locks_locks_nothing(tmp_path, monkeypatch):
    def refused_lock(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("filelock.FileLock.acquire", refused_lock)
    with lock_file(tmp_path / "counts.lock", "busy"):
        pass
    monkeypatch.undo()
    blocked = tmp_path / "file"
    blocked.write_text("")
    with (
        pytest.raises(InputError, match="cannot be written"),
        lock_file(blocked / "a.lock", "busy"),
    ):
        pass
