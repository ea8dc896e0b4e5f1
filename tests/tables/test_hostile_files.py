"""Files that lie about their size, have no end, or are no files: refused in one sentence, at once."""

import io
import os
import time
import tracemalloc
import zipfile

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain._foundation import input_files
from abstain._foundation.archives import Archive
from abstain._foundation.toml import read_toml
from abstain.errors import AbstainError, DomainError, FileFormatError, InputError
from abstain.tables import load, read_predictions

MB = 1 << 20
GOOD = {"label": [0, 1, 1], "prediction": [0, 1, 0], "confidence": [0.9, 0.8, 0.7]}


def npy(shape, descr="<f8", content=b""):
    header = io.BytesIO()
    claimed = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(header, claimed)
    return header.getvalue() + content


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def plain(name):
    array = np.asarray(GOOD[name])
    return npy(array.shape, array.dtype.str, array.tobytes())


def inflating(path, size, **beside):
    """An archive of a few megabytes with an array of so many zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in beside.items():
            file.writestr(f"{name}.npy", content)
        with file.open("extra.npy", "w", force_zip64=True) as member:
            member.write(npy((size,), "|u1"))
            for _ in range(size // MB):
                member.write(bytes(MB))
    return path


@pytest.fixture
def peak():
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(input_files, "available_memory", lambda: 100 * MB)


# ------------------------------------------------------------------------------------ archives
def test_an_array_that_nobody_needs_is_not_inflated(tmp_path, peak):
    path = inflating(tmp_path / "preds.npz", 128 * MB, **{name: plain(name) for name in GOOD})
    assert path.stat().st_size < MB
    assert read_predictions(path).only().correct.tolist() == [True, True, False]
    assert peak() < 32 * MB


def test_an_array_that_is_needed_must_fit_the_memory(tmp_path, peak, little_memory):
    names = ("label", "confidence")
    path = inflating(tmp_path / "preds.npz", 128 * MB, **{name: plain(name) for name in names})
    with pytest.raises(FileFormatError, match=r"the array 'extra' takes 0\.1 GB, and 0\.1 GB"):
        read_predictions(path, prediction="extra")
    assert peak() < 32 * MB


def test_members_that_claim_more_than_the_file_can_hold(tmp_path):
    path = archive(tmp_path / "preds.npz", **{name: plain(name) for name in GOOD})
    lie = bytearray(path.read_bytes())
    # The uncompressed size of the first entry of the central directory.
    place = lie.index(b"PK\x01\x02") + 24
    lie[place : place + 4] = (4_000_000_000).to_bytes(4, "little")
    path.write_bytes(lie)
    with pytest.raises(FileFormatError, match=r"'label' claims 4,000,000,000 bytes, more than"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy((10**15,)), "claims 1,000,000,000,000,000 entries of float64, and 0 bytes"),
        (npy((10**15,), "|S0"), "entries without a size|no array|cannot be read as npz"),
        (npy((-1,)), "claims -1 entries|cannot be read as npz"),
        (plain("label").replace(b"'shape': (", b"'shape': (("), "cannot be read as npz"),
        (plain("label").replace(b"{", b"("), "cannot be read as npz"),
        (plain("label")[:40], "cannot be read as npz|claims"),
        (b"\x93NUMPY\x02\x00" + (1 << 31).to_bytes(4, "little"), "header of 2,147,483,648 bytes"),
        (b"\x93NUMPY\x01\x00\x01\x00", "no array"),
        (b"\x93NUMPY\x01\x00\x01\x00" + bytes(99), "cannot be read as npz"),
        (b"\x93NUMPY\x09\x00" + bytes(99), "unknown version"),
        (b"words", "something that is no array"),
        (b"", "something that is no array"),
    ],
)
def test_damaged_headers_of_arrays(tmp_path, member, message):
    path = archive(tmp_path / "preds.npz", label=member, prediction=plain("prediction"))
    with pytest.raises(FileFormatError, match=message) as caught:
        read_predictions(path)
    assert "\n" not in str(caught.value)


def test_a_name_that_no_file_can_have(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_predictions(tmp_path / "a\0b.csv")


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
@pytest.mark.parametrize("order", "<>")
def test_text_that_is_no_text(tmp_path, code, order):
    content = np.array([97, code, 98], order + "u4").tobytes()
    others = {name: plain(name) for name in ("prediction", "confidence")}
    path = archive(tmp_path / "preds.npz", label=npy((3,), order + "U1", content), **others)
    with pytest.raises(FileFormatError, match="contains invalid characters"):
        read_predictions(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["label.npy", "label"])
def test_two_arrays_of_one_name(tmp_path, second):
    path = tmp_path / "preds.npz"
    with zipfile.ZipFile(path, "w") as file:
        for name in ("label.npy", second):
            file.writestr(name, plain("label"))
    with pytest.raises(FileFormatError, match="two arrays named 'label'"):
        read_predictions(path)


def test_too_many_arrays(tmp_path):
    path = tmp_path / "preds.npz"
    with zipfile.ZipFile(path, "w") as file:
        for i in range(10_001):
            file.writestr(f"{i}.npy", b"")
    with pytest.raises(FileFormatError, match="10,001 arrays"):
        read_predictions(path)


def test_archives_give_what_numpy_gives(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "matrix": rng.random((5, 3)),
        "fortran": np.asfortranarray(rng.random((4, 6)).astype(np.float16)),
        "text": np.array(["a", "long word"]),
        "flags": rng.random(9) < 0.5,
        "number": np.array(3),
        "big": rng.integers(0, 9, (2, 2, 2)).astype(">i4"),
        "none": np.empty((0, 4)),
        "times": np.array(["2024-01-01"], "M8[ns]"),
    }
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", **arrays)
        result = Archive(tmp_path / "a.npz")
        assert list(result) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(result[name], array, strict=True)
        with pytest.raises(KeyError):
            result["absent"]


def test_labels_without_a_type_raise_an_error(tmp_path):
    records = np.zeros(3, dtype=[("a", "<i4"), ("b", "<i4")])
    for labels in (records, np.zeros(3, "V4")):
        np.savez(tmp_path / "preds.npz", **(GOOD | {"label": labels}))
        with pytest.raises(InputError, match="'label' contains records or untyped bytes"):
            read_predictions(tmp_path / "preds.npz")
        with pytest.raises(DomainError, match="`labels` must hold names or numbers; got records"):
            ab.Predictions(labels=labels, prediction=[0, 0, 1])


# ------------------------------------------------------------------------------------ texts
def sparse(path, size, start=b""):
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)
    return path


def test_ten_gigabytes_without_a_line_end(tmp_path, peak):
    path = tmp_path / "preds.csv"
    with path.open("wb") as file:
        for _ in range(65):
            file.write(b"a" * MB)
        file.truncate(10_000 * MB)
    start = time.perf_counter()
    with pytest.raises(FileFormatError, match="its first line, or a quote in it, does not end"):
        read_predictions(path)
    path.rename(tmp_path / "preds.jsonl")
    with pytest.raises(FileFormatError, match="does not end within 64 MB"):
        read_predictions(tmp_path / "preds.jsonl")
    assert time.perf_counter() - start < 30
    assert peak() < 300 * MB


def test_texts_larger_than_the_memory(tmp_path, little_memory):
    for name in ("preds.csv", "preds.jsonl"):
        path = sparse(tmp_path / name, 200 * MB, b'{"label": 1}\n')
        with pytest.raises(FileFormatError, match=r"its text takes 0\.2 GB"):
            read_predictions(path)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_tables_larger_than_the_memory(tmp_path, monkeypatch, suffix):
    frame = pl.DataFrame({name: [0] * 100_000 for name in GOOD})
    path = tmp_path / f"preds{suffix}"
    frame.write_parquet(path) if suffix == ".parquet" else frame.write_ipc(path)
    monkeypatch.setattr(input_files, "available_memory", lambda: MB)
    with pytest.raises(FileFormatError, match=r"100,000 rows takes 0\.0 GB"):
        read_predictions(path)


def test_configurations_and_records_have_a_largest_size(tmp_path):
    for name, read in (("a.toml", read_toml), ("a.json", load)):
        path = sparse(tmp_path / name, 17 * MB, b"{")
        with pytest.raises(FileFormatError, match="larger than 16 MB"):
            read(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"label": ' + "[" * 100_000, "nested too deeply"),
        ('{"label": ' + "9" * 5000 + "}", "thousands of digits"),
        ('{"label": 1, "label": 2, "prediction": 1, "confidence": 1}', "`label` occurs twice"),
        ('{"label" : 1, "label" : 2, "prediction": 1, "confidence": 1}', "occurs twice"),
        (
            '{"label": 1, "label": null, "prediction": 1, "confidence": 1}',
            "`label` occurs twice",
        ),
        (
            r'{"label": 1, "lab\u0065l": 2, "prediction": 1, "confidence": 1}',
            "`label` occurs twice",
        ),
    ],
)
def test_lines_of_json(tmp_path, line, message):
    path = tmp_path / "preds.jsonl"
    good = '{"label": 0, "prediction": 1, "confidence": 0.5, "note": "a\\": 1"}\n'
    path.write_text(good * 3 + line + "\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=rf"line 4 is not a JSON object .*{message}"):
        read_predictions(path)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"a": 1, "a": 2}', "\xff", "{"])
def test_records_of_json(tmp_path, text):
    (tmp_path / "rule.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"rule\.json cannot be loaded"):
        load(tmp_path / "rule.json")


# ------------------------------------------------------------------------------------ headers
@pytest.mark.parametrize(
    ("header", "names"),
    [
        ('label,prediction,confidence,"a ""b"" c"', ["a ", '"b"', " c"]),
        ('label,prediction,confidence,"two\nlines"', ["two\nlines"]),
        ('label;prediction;confidence;"x, y"', ["x, y"]),
        ('"two\n, lines";label;prediction;confidence', ["two\n, lines"]),
    ],
)
def test_a_header_is_one_record(tmp_path, header, names):
    path = tmp_path / "preds.csv"
    row = ("1;1;0.5;0" if ";" in header else "1,1,0.5,0") + "\n"
    if header.startswith('"two'):
        row = "0;1;1;0.5\n"
    path.write_text(header + "\n" + row, encoding="utf-8")
    name = "".join(names)
    reading_ = read_predictions(path, group=name)
    assert reading_.only().group.tolist() == [0]
    assert reading_.only().confidence["confidence"].tolist() == [0.5]


def test_repeated_names_behind_a_name_of_two_lines(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text('"two\nlines",label,prediction,confidence,label\n1,1,1,0.5,0\n', "utf-8")
    with pytest.raises(InputError, match="two columns named 'label'"):
        read_predictions(path)
    path.write_text('"a ""b""",label,prediction,confidence,"a ""b"""\n1,1,1,0.5,0\n', "utf-8")
    with pytest.raises(InputError, match="two columns named"):
        read_predictions(path)


def test_a_quote_that_is_not_closed(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text('"label,prediction,confidence\n' + "1,1,0.5\n" * 50_000, "utf-8")
    with pytest.raises(FileFormatError, match="check that each quote is closed"):
        read_predictions(path)


def test_a_blank_line_is_no_sample_and_a_blank_cell_is(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text("label,prediction,confidence\n1,1,0.5\n,,\n0,1,0.4\n", "utf-8")
    assert read_predictions(path).only().n == 2


def test_more_columns_than_can_be_meant(tmp_path):
    path = tmp_path / "preds.csv"
    wide = ",".join(f"x{i}" for i in range(1_000_000))
    path.write_text(f"label,prediction,confidence,{wide}\n", "utf-8")
    start = time.perf_counter()
    with pytest.raises(FileFormatError, match="1,000,003 columns; at most 200,000"):
        read_predictions(path)
    path = tmp_path / "preds.jsonl"
    path.write_text("{" + ", ".join(f'"x{i}": 1' for i in range(200_001)) + "}\n", "utf-8")
    with pytest.raises(FileFormatError, match="200,001 columns"):
        read_predictions(path)
    assert time.perf_counter() - start < 20


# ------------------------------------------------------------------------------------ no files
READERS = {
    "preds.csv": read_predictions,
    "preds.tsv": read_predictions,
    "preds.jsonl": read_predictions,
    "preds.parquet": read_predictions,
    "preds.feather": read_predictions,
    "preds.npz": read_predictions,
    "rule.json": load,
    "score.npz": load,
    "config.toml": read_toml,
}


@pytest.mark.parametrize("name", READERS)
def test_pipes_devices_folders_and_loops_are_named(tmp_path, name):
    path = tmp_path / name
    read = READERS[name]
    os.mkfifo(path)
    with pytest.raises(InputError, match="it is a pipe, not a file"):
        read(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="it is a device, not a file"):
        read(path)
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(InputError, match="a symbolic link that leads back to itself"):
        read(path)
    path.unlink()
    path.symlink_to("gone")
    with pytest.raises(InputError, match="it is a link to 'gone', which is not there"):
        read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(AbstainError, match=r"is a folder|no FD-Shifts results"):
        read(path)


@pytest.mark.parametrize("name", ["a\x00b.csv", "x" * 5000 + ".csv", "no/such/folder.csv"])
def test_paths_that_cannot_be(tmp_path, name):
    for read in (read_predictions, load):
        with pytest.raises(InputError):
            read(str(tmp_path / name))
