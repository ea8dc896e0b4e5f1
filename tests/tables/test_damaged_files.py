"""Damaged files give the correct value or an error of abstain, never another value.

ABSTAIN_DAMAGED=5000 draws more of them.
"""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import abstain as ab
from abstain import streaming
from abstain.errors import AbstainError, FileFormatError
from abstain.tables import read_predictions

COUNT = int(os.environ.get("ABSTAIN_DAMAGED", "390"))


@pytest.mark.slow
def test_no_damage_changes_a_value_or_aborts_the_process(pytestconfig):
    run = subprocess.run(
        [sys.executable, "-m", "tests.tables.damaged", str(COUNT)],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        timeout=120 + COUNT,
        check=False,
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"ended in {lines[-1:]}: {run.stderr[-2000:]}"
    names = {line["i"]: line["file"] for line in lines if "file" in line}
    outcomes = [line for line in lines if "outcome" in line]
    allowed = {"correct", "rejected", "changed"}
    assert not [(names[o["i"]], o) for o in outcomes if o["outcome"] not in allowed]
    assert len(outcomes) == COUNT
    assert sum(o["outcome"] == "rejected" for o in outcomes) > COUNT / 2


# ------------------------------------------------------------------------------------ archives
def columns(n=300):
    rng = np.random.default_rng(0)
    confidence = rng.random(n)
    return {"confidence": confidence, "correct": rng.random(n) < confidence, "weight": np.ones(n)}


def flip(path, at, bit=4):
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.unlink()
    path.write_bytes(content)


def start_of_values(path, name):
    """Return the byte of an archive where the values of an uncompressed array begin."""
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo(name)
        return member.header_offset + member.compress_size - 100


def test_a_stream_compares_the_checksum_of_an_array(tmp_path):
    path = tmp_path / "preds.npz"
    # More than the 4,096 bytes that `zipfile` reads at once, and compares.
    np.savez(path, **columns(3000))
    flip(path, start_of_values(path, "confidence.npy"))
    with pytest.raises(FileFormatError, match=r"Bad CRC-32 for file 'confidence\.npy'"):
        ab.evaluate(ab.scan_predictions(path), metrics=["augrc"])


def test_an_archive_that_lost_an_array_raises_an_error(tmp_path):
    path = tmp_path / "preds.npz"
    np.savez(path, **columns())
    content = path.read_bytes()
    # The length of the comment of the second entry of the directory: it hides the third.
    entry = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
    flip(path, entry + 32, bit=6)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 2
    with pytest.raises(FileFormatError, match="3 members were written, but 2 exist"):
        read_predictions(path)


def test_tensors_are_compared_with_their_checksum(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "outputs.pth"
    torch.save({name: torch.tensor(values) for name, values in columns().items()}, path)
    whole = read_predictions(path).only().n
    assert whole == 300
    with zipfile.ZipFile(path) as archive:
        (member,) = (m for m in archive.infolist() if m.filename.endswith("data/0"))
    flip(path, member.header_offset + 30 + member.compress_size)
    with pytest.raises(FileFormatError, match="Bad CRC-32"):
        read_predictions(path)


def test_a_torch_file_in_several_parts_raises_a_readable_error(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "outputs.pth"
    torch.save({name: torch.tensor(values) for name, values in columns().items()}, path)
    # The locator of the large directory claims two disks.
    with path.open("ab") as file:
        file.write(b"PK\x06\x07" + bytes(12) + b"\x02\x00\x00\x00")
        file.write(b"PK\x05\x06" + bytes(18))
    with pytest.raises(FileFormatError, match="cannot be read as a file of torch"):
        read_predictions(path)


def test_a_short_array_is_skipped_with_its_rows(tmp_path):
    path = tmp_path / "preds.npz"
    arrays = columns()
    arrays["correct"] = arrays["correct"][:-1]
    np.savez(path, **arrays)
    with pytest.raises(AbstainError, match="'correct' must have 300 rows"):
        ab.evaluate(ab.scan_predictions(path, skip_bad=True), metrics=["augrc"])


# ------------------------------------------------------------------------------------ sorted rows
@pytest.fixture
def runs(tmp_path):
    rng = np.random.default_rng(0)
    c, x, w = rng.random(500), rng.random(500), 0.5 + rng.random(500)
    state = streaming.update(streaming.sorted_runs(tmp_path), c, x, w).flushed
    return streaming.update(state, c[::-1], x, w).flushed


@pytest.mark.parametrize("row", [0, 250, 499])
def test_a_changed_run_raises_an_error(runs, row):
    path = runs.runs[1].path
    rows = np.load(path)
    rows["times"][row] = 2**31
    path.unlink()
    np.save(path, rows)
    with pytest.raises(FileFormatError, match=r"no longer the run of 500 rows that was written"):
        streaming.compute(runs, "augrc")


def test_a_saved_state_remembers_the_checksums(runs, tmp_path):
    path = tmp_path / "state.npz"
    streaming.save(runs, path)
    assert streaming.compute(streaming.load(path), "augrc") == streaming.compute(runs, "augrc")
    flip(runs.runs[0].path, 5000)
    with pytest.raises(FileFormatError, match="no longer the run"):
        streaming.compute(streaming.load(path), "augrc")


def test_a_state_without_checksums_raises_an_error(runs, tmp_path):
    path = tmp_path / "state.npz"
    streaming.save(runs, path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive if name != "sha256"}
    np.savez(path, **(arrays | {"version": np.array(1)}))
    with pytest.raises(FileFormatError, match="contains no checksums of its run files"):
        streaming.load(path)


# ------------------------------------------------------------------------------------ surrogates
LINE = '{"label": "%s", "prediction": "a", "confidence": 0.9, "text": "cut \\ud83d"}\n'


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_half_a_surrogate_pair_is_a_replacement_character(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    lines = [LINE % label for label in ("a", "b\\ud800", "\\ud83d\\ude00")]
    path.write_text("".join(lines) if suffix == ".jsonl" else f"[{','.join(lines)}]")
    p = read_predictions(path).only()
    assert set(p.class_names) == {"a", "b\ufffd", "\U0001f600"}
    assert p.n == 3


def test_a_rule_with_half_a_surrogate_pair_is_read(tmp_path):
    rng = np.random.default_rng(0)
    p = ab.Predictions(confidence=rng.random(200), loss=rng.random(200) < 0.1)
    path = ab.save(ab.set_threshold(p, max_risk=0.3, method="sgr"), tmp_path / "rule.json")
    text = path.read_text().replace('"score": "confidence"', '"score": "\\ud800\\\\ud800"')
    path.write_text(text)
    rule = ab.load(path)
    assert rule.score == "\ufffd\\ud800"
    str(rule).encode()
