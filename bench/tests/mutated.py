"""Mutants of files of every kind, each read in this process; run as a program by test_mutants.py.

Prints one line of JSON a mutant, before and after, so that a crash or a hang names its mutant.
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

#: Seconds after which a reader hangs.
LONGEST = 30
TOKENS = [
    b'"', b",", b"\n", b"\x00", b"{", b"}", b"[" * 3000, b"9" * 5000, b"-1", b"NaN", b"1e999",
    b"18446744073709551616", b"\xff\xfe", b"\xef\xbb\xbf", b"true", b"null", b"'", b"=", b"\\u0000",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"PK\x01\x02", b'"label": 1, ',
]  # fmt: skip


def mutant(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a file in one to three places; half of the archives inside, and packed anew."""
    if content[:4] == b"PK\x03\x04" and rng.random() < 0.5:
        return repacked(content, rng)
    out = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(out) + 1))
        if rng.random() < 0.3:
            # Headers and footers are where formats can be hurt.
            at = int(rng.choice([at % 64, max(len(out) - 1 - at % 64, 0)]))
        length = int(2 ** rng.uniform(0, 8))
        kind = rng.integers(7)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            out[at : at + length] = rng.bytes(min(length, 8))
        elif kind == 2:
            del out[at : at + length]
        elif kind == 3:
            out[at:at] = out[at : at + length]
        elif kind == 4:
            out[at:at] = TOKENS[rng.integers(len(TOKENS))]
        elif kind == 5:
            del out[at:]
        else:
            out[at : at + length] = bytes([int(rng.choice([0, 255]))]) * length
    return bytes(out)


def repacked(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one member of an archive; its checksums are right."""
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(held, "w") as new:
        chosen = rng.integers(len(old.namelist()))
        for i, name in enumerate(old.namelist()):
            own = old.read(name)
            new.writestr(name, mutant(own, rng) if i == chosen else own)
    return held.getvalue()


def predictions(path: Path) -> None:
    """Read a table as every command does."""
    refused = []
    for options in ({}, {"missing": "drop", "probabilities": "p_*", "by": "group"}):
        try:
            read_predictions(path, **options)
        except AbstainError as error:
            refused.append(error)
    if len(refused) == 2:
        raise refused[0]


def folder(path: Path) -> None:
    read_predictions(path.parent)


def study(path: Path) -> None:
    data, _ = read_by_name((path,), Columns())
    StudyRequest(data).sources(())


def store(path: Path) -> None:
    result = Store.read(path.parent if path.name == "manifest.json" else path.parent.parent)
    for run in result.tested_runs[:2]:
        for exposure in result.exposures[:2]:
            result.scores(run, exposure.key, logits=True)


def scores(path: Path) -> None:
    result = Store.read(path.parent.parent)
    for kept in result.stored_runs:
        if path.name in kept.test_file:
            result.scores(kept.run, "iid", logits=True)


def toml(path: Path) -> None:
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


def tables(place: Path) -> dict:
    whole = frame()
    arrays = {
        "labels": whole["label"].to_numpy(),
        "probabilities": whole.select("p_0", "p_1", "p_2").to_numpy(),
        "confidence": whole["confidence"].to_numpy().astype(np.float16),
        "group": whole["group"].to_numpy().astype(str),
    }
    whole.write_csv(place / "a.csv")
    whole.write_csv(place / "a.tsv", separator="\t")
    for compression in ("snappy", "zstd", "uncompressed"):
        whole.write_parquet(place / f"{compression}.parquet", compression=compression)
    for compression in ("lz4", "zstd", "uncompressed"):
        whole.write_ipc(place / f"{compression}.feather", compression=compression)
    whole.write_ipc_stream(place / "a.arrow")
    whole.write_ndjson(place / "a.jsonl")
    np.savez(place / "plain.npz", **arrays)
    np.savez_compressed(place / "packed.npz", **arrays)
    shutil.copy(place / "a.csv", place / "study.csv")
    np.savez(place / "study.npz", **arrays)
    named = dict.fromkeys(sorted(place.iterdir()), predictions)
    return named | {place / "study.csv": study, place / "study.npz": study}


def shifts(place: Path) -> dict:
    rng = np.random.default_rng(0)
    place.mkdir()
    dataset = np.repeat([0, 1, 3], 8)
    logits = rng.normal(size=(24, 3))
    last = np.column_stack([rng.integers(0, 3, 24), dataset])
    for name, values in {
        "raw_logits": np.column_stack([logits, last]),
        "raw_logits_dist": rng.normal(size=(24, 3, 4)),
        "external_confids": rng.random(24),
        "external_confids_dist": rng.random((24, 4)),
        "encoded_output": np.column_stack([rng.normal(size=(24, 5)), dataset]),
    }.items():
        np.savez_compressed(place / name, values.astype(np.float16))
    return dict.fromkeys(sorted(place.iterdir()), folder)


def records(place: Path) -> dict:
    place.mkdir()
    for name, record in texts().items():
        save(record, place / f"{name}.json")
    save(ab.calibrate("msr", TRAIN, method="isotonic"), place / "calibrated.json")
    for i, state in enumerate(states()[::4]):
        save(state, place / f"{i}.npz")
    save(ab.calibrate(states()[0], TRAIN), place / "calibrated.npz")
    return dict.fromkeys(sorted(place.iterdir()), load)


def runs(place: Path) -> dict:
    made_store(place, seeds=1, n=20, severities=(1,), settings=("dropout0",))
    # Where the scores of others would be recorded.
    Additions(place).write(())
    tested = sorted((place / "jobs").glob("*.npz"))[:3]
    added = sorted((place / "added").glob("*.json"))
    return (
        {place / "manifest.json": store}
        | dict.fromkeys(tested, scores)
        | dict.fromkeys(added, store)
    )


def configurations(place: Path) -> dict:
    place.mkdir()
    shutil.copy(packaged_configuration("digits"), place / "digits.toml")
    text = '[benchmark]\ntask = "digits"\nseeds = [3]\nmetrics = ["augrc"]\n[arms.devries]\n'
    (place / "mine.toml").write_text(text, encoding="utf-8")
    (place / "other.toml").write_text(text, encoding="utf-8")
    return {
        place / "digits.toml": read_experiment,
        place / "mine.toml": toml,
        place / "other.toml": read_toml,
    }


def readers(place: Path) -> list:
    """Write a valid file of each kind; return each with the function that reads it."""
    (place / "tables").mkdir()
    return [
        *tables(place / "tables").items(),
        *shifts(place / "shifts").items(),
        *records(place / "records").items(),
        *runs(place / "runs").items(),
        *configurations(place / "configs").items(),
    ]


def outcome(path: Path, read) -> str:
    """Read one file; return "read", "refused", or what went wrong."""
    try:
        read(path)
    except AbstainError as error:
        return "refused" if "\n" not in str(error) and str(error) else f"words: {error!r}"
    except BaseException as error:  # noqa: BLE001 - what is looked for
        return f"raised {type(error).__name__}: {str(error)[:300]}"
    return "read"


def main(first: int, last: int) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        result = readers(Path(name))
        for path, read in result:
            said = outcome(path, read)
            if said != "read":
                print(
                    json.dumps({"i": -1, "file": path.name, "said": f"whole: {said}"}), flush=True
                )
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(first, last):
            path, read = result[i % len(result)]
            whole = path.read_bytes()
            path.write_bytes(mutant(whole, np.random.default_rng(i)))
            print(json.dumps({"i": i, "file": path.name}), flush=True)
            faulthandler.dump_traceback_later(LONGEST, exit=True)
            start = time.perf_counter()
            said = outcome(path, read)
            faulthandler.cancel_dump_traceback_later()
            path.write_bytes(whole)
            seconds = round(time.perf_counter() - start, 2)
            print(json.dumps({"i": i, "said": said, "seconds": seconds}), flush=True)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"megabytes": (after - before) >> 10}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
