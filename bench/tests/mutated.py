"""Damage files of every kind, and read each damaged file. `test_mutants.py` runs this program.

The program prints a line of JSON before and after each file is read, so that the output identifies
the file if the process crashes or does not finish.
"""

import faulthandler
import io
import json
import resource
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from bench.tests.runs.made_store import made_store
from tests.confidence.fitted_cases import TRAIN, states
from tests.tables.test_saved import texts

import abstain as ab
from abstain._foundation.toml import read_toml
from abstain.cli.options import Columns
from abstain.cli.predictions import read_by_name
from abstain.errors import AbstainError
from abstain.tables import load, read_predictions, save
from abstain_bench.runs.store import Additions, Store
from abstain_bench.studies._inputs import StudyRequest
from abstain_bench.studies.finetuning.experiment import packaged_configuration, read_experiment

#: Seconds after which the process is aborted.
TIMEOUT = 30
TOKENS = [
    b'"', b",", b"\n", b"\x00", b"{", b"}", b"[" * 3000, b"9" * 5000, b"-1", b"NaN", b"1e999",
    b"18446744073709551616", b"\xff\xfe", b"\xef\xbb\xbf", b"true", b"null", b"'", b"=", b"\\u0000",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"PK\x01\x02", b'"label": 1, ',
]  # fmt: skip


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a file at one to three positions.

    In half of the cases, a member of an archive is changed instead of the archive itself.
    """
    if content[:4] == b"PK\x03\x04" and rng.random() < 0.5:
        return mutate_archive_member(content, rng)
    out = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(len(out) + 1))
        if rng.random() < 0.3:
            # Damage to headers and footers affects readers most.
            start = int(rng.choice([start % 64, max(len(out) - 1 - start % 64, 0)]))
        length = int(2 ** rng.uniform(0, 8))
        kind = rng.integers(7)
        if kind == 0 and out:
            out[start % len(out)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            out[start : start + length] = rng.bytes(min(length, 8))
        elif kind == 2:
            del out[start : start + length]
        elif kind == 3:
            out[start:start] = out[start : start + length]
        elif kind == 4:
            out[start:start] = TOKENS[rng.integers(len(TOKENS))]
        elif kind == 5:
            del out[start:]
        else:
            out[start : start + length] = bytes([int(rng.choice([0, 255]))]) * length
    return bytes(out)


def mutate_archive_member(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one member of an archive, and write an archive with valid checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(buffer, "w") as target:
        selected = rng.integers(len(source.namelist()))
        for i, name in enumerate(source.namelist()):
            member = source.read(name)
            target.writestr(name, mutate(member, rng) if i == selected else member)
    return buffer.getvalue()


def read_table(path: Path) -> None:
    """Read a table with two sets of options; raise an error if both fail."""
    errors = []
    for options in ({}, {"missing": "drop", "probabilities": "p_*", "by": "group"}):
        try:
            read_predictions(path, **options)
        except AbstainError as error:
            errors.append(error)
    if len(errors) == 2:
        raise errors[0]


def read_folder(path: Path) -> None:
    read_predictions(path.parent)


def read_study_input(path: Path) -> None:
    data, _ = read_by_name((path,), Columns())
    StudyRequest(data).sources(())


def read_store(path: Path) -> None:
    store = Store.read(path.parent if path.name == "manifest.json" else path.parent.parent)
    for run in store.tested_runs[:2]:
        for exposure in store.exposures[:2]:
            store.scores(run, exposure.key, logits=True)


def read_scores(path: Path) -> None:
    store = Store.read(path.parent.parent)
    for stored in store.stored_runs:
        if path.name in stored.test_file:
            store.scores(stored.run, "iid", logits=True)


def read_benchmark_config(path: Path) -> None:
    from abstain_bench.runs.specification import read_config

    read_config(path)


def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 60)
    return pl.DataFrame(
        {
            "label": rng.integers(0, 3, 60),
            "prediction": p.argmax(axis=1),
            "confidence": p.max(axis=1),
            "group": rng.choice(["a", "b"], 60),
            **{f"p_{i}": p[:, i] for i in range(3)},
        }
    )


def write_tables(folder: Path) -> dict:
    folder.mkdir()
    data = frame()
    arrays = {
        "labels": data["label"].to_numpy(),
        "probabilities": data.select("p_0", "p_1", "p_2").to_numpy(),
        "confidence": data["confidence"].to_numpy().astype(np.float16),
        "group": data["group"].to_numpy().astype(str),
    }
    data.write_csv(folder / "a.csv")
    data.write_csv(folder / "a.tsv", separator="\t")
    for compression in ("snappy", "zstd", "uncompressed"):
        data.write_parquet(folder / f"{compression}.parquet", compression=compression)
    for compression in ("lz4", "zstd", "uncompressed"):
        data.write_ipc(folder / f"{compression}.feather", compression=compression)
    data.write_ipc_stream(folder / "a.arrow")
    data.write_ndjson(folder / "a.jsonl")
    np.savez(folder / "plain.npz", **arrays)
    np.savez_compressed(folder / "packed.npz", **arrays)
    shutil.copy(folder / "a.csv", folder / "study.csv")
    np.savez(folder / "study.npz", **arrays)
    readers = dict.fromkeys(sorted(folder.iterdir()), read_table)
    return readers | dict.fromkeys(sorted(folder.glob("study.*")), read_study_input)


def write_fd_shifts_outputs(folder: Path) -> dict:
    rng = np.random.default_rng(0)
    folder.mkdir()
    dataset = np.repeat([0, 1, 3], 8)
    logits = rng.normal(size=(24, 3))
    last_columns = np.column_stack([rng.integers(0, 3, 24), dataset])
    for name, values in {
        "raw_logits": np.column_stack([logits, last_columns]),
        "raw_logits_dist": rng.normal(size=(24, 3, 4)),
        "external_confids": rng.random(24),
        "external_confids_dist": rng.random((24, 4)),
        "encoded_output": np.column_stack([rng.normal(size=(24, 5)), dataset]),
    }.items():
        np.savez_compressed(folder / name, values.astype(np.float16))
    return dict.fromkeys(sorted(folder.iterdir()), read_folder)


def write_records(folder: Path) -> dict:
    folder.mkdir()
    for name, record in texts().items():
        save(record, folder / f"{name}.json")
    save(ab.calibrate("msr", TRAIN, method="isotonic"), folder / "calibrated.json")
    for i, state in enumerate(states()[::4]):
        save(state, folder / f"{i}.npz")
    save(ab.calibrate(states()[0], TRAIN), folder / "calibrated.npz")
    return dict.fromkeys(sorted(folder.iterdir()), load)


def write_runs(folder: Path) -> dict:
    made_store(folder, seeds=1, n=20, severities=(1,), settings=("dropout0",))
    # Write the file that lists added scores.
    Additions(folder).write(())
    score_files = sorted((folder / "jobs").glob("*.npz"))[:3]
    addition_files = sorted((folder / "added").glob("*.json"))
    return (
        {folder / "manifest.json": read_store}
        | dict.fromkeys(score_files, read_scores)
        | dict.fromkeys(addition_files, read_store)
    )


def write_configurations(folder: Path) -> dict:
    folder.mkdir()
    shutil.copy(packaged_configuration("digits"), folder / "digits.toml")
    text = '[benchmark]\ntask = "digits"\nseeds = [3]\nmetrics = ["augrc"]\n[arms.devries]\n'
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    (folder / "other.toml").write_text(text, encoding="utf-8")
    return {
        folder / "digits.toml": read_experiment,
        folder / "mine.toml": read_benchmark_config,
        folder / "other.toml": read_toml,
    }


def write_files(folder: Path) -> list:
    """Write valid files of each kind; return pairs of a path and the function that reads the file."""
    return [
        *write_tables(folder / "tables").items(),
        *write_fd_shifts_outputs(folder / "shifts").items(),
        *write_records(folder / "records").items(),
        *write_runs(folder / "runs").items(),
        *write_configurations(folder / "configs").items(),
    ]


def outcome(path: Path, read) -> str:
    """Read a file; return "read", "rejected", or a description of the problem."""
    try:
        read(path)
    except AbstainError as error:
        is_one_line = bool(str(error)) and "\n" not in str(error)
        return "rejected" if is_one_line else f"message: {error!r}"
    except BaseException as error:  # noqa: BLE001 - any other exception is a problem
        return f"raised {type(error).__name__}: {str(error)[:300]}"
    return "read"


def main(first: int, last: int) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        files = write_files(Path(name))
        for path, read in files:
            result = outcome(path, read)
            if result != "read":
                print_json(i=-1, file=path.name, outcome=f"undamaged file: {result}")
        memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(first, last):
            path, read = files[i % len(files)]
            content = path.read_bytes()
            path.write_bytes(mutate(content, np.random.default_rng(i)))
            print_json(i=i, file=path.name)
            faulthandler.dump_traceback_later(TIMEOUT, exit=True)
            start = time.perf_counter()
            result = outcome(path, read)
            faulthandler.cancel_dump_traceback_later()
            path.write_bytes(content)
            print_json(i=i, outcome=result, seconds=round(time.perf_counter() - start, 2))
        memory_after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print_json(megabytes=(memory_after - memory_before) >> 10)


def print_json(**fields) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
