"""Saved files with a few damaged bytes, read in a process of their own by test_damaged_files.py.

Prints one line of JSON for each damaged file, before and after it is read, so that the last line
names a file that aborts the process or hangs.
"""

import faulthandler
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import abstain as ab
from abstain import streaming
from abstain.confidence import fit
from abstain.errors import AbstainError
from abstain.tables import load, save

#: Seconds after which a reader hangs.
LONGEST = 20
#: Arrays larger than the 4,096 bytes that `zipfile` reads and compares at once.
N_SAMPLES = 800


class Case(NamedTuple):
    """A file that is damaged, and the value that is computed from it and the files beside it."""

    damaged: Path
    read: Callable[[], Any]
    #: Whether the format has checksums, so that no damage may change the value.
    has_checksum: bool


def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    confidence = rng.random(N_SAMPLES)
    return {
        "confidence": confidence,
        "loss": (rng.random(N_SAMPLES) > confidence) * rng.random(N_SAMPLES),
        "weight": 0.5 + rng.random(N_SAMPLES),
    }


def area(path: Path) -> float:
    return ab.evaluate(path, metrics=["augrc"]).value("augrc")


def area_in_stream(path: Path) -> float:
    scan = ab.scan_predictions(path, weight="weight")
    return ab.evaluate(scan, metrics=["augrc"]).value("augrc")


def archives(folder: Path) -> list[Case]:
    np.savez(folder / "stored.npz", **columns())
    np.savez_compressed(folder / "packed.npz", **columns())
    cases = []
    for name in ("stored.npz", "packed.npz"):
        for read in (area, area_in_stream):
            path = folder / name
            cases.append(Case(path, lambda path=path, read=read: read(path), has_checksum=True))
    return cases


def sorted_rows(folder: Path) -> list[Case]:
    c, x, w = columns().values()
    state = streaming.sorted_runs(folder / "runs", memory=1 << 16)
    for part in np.split(np.arange(N_SAMPLES), 4):
        state = streaming.update(state, c[part], x[part], w[part]).flushed
    path = folder / "state.npz"
    streaming.save(state, path)

    def read() -> float:
        return streaming.compute(streaming.load(path), "augrc").value

    return [Case(damaged, read, has_checksum=True) for damaged in (path, state.runs[0].path)]


def records(folder: Path) -> list[Case]:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 60)
    train = ab.Predictions(
        features=rng.normal(size=(60, 3)) + labels[:, None], prediction=labels, labels=labels
    )
    score = save(fit("mahalanobis", train), folder / "score.npz")
    c, x, _ = columns().values()
    rule = save(
        ab.set_threshold(ab.Predictions(confidence=c, loss=x > 0), max_risk=0.4, method="sgr"),
        folder / "rule.json",
    )
    return [
        Case(score, lambda: list(load(score).score(train).values), has_checksum=True),
        # People may edit a rule, so it has no checksum.
        Case(rule, lambda: load(rule).threshold, has_checksum=False),
    ]


def values_of(path: Path) -> list:
    return _as_lists(ab.read_predictions(path).only())


def values_in_stream(path: Path) -> list:
    batches = ab.scan_predictions(path).batches()
    return [_as_lists(p) for batch in batches for p in batch.splits.values()]


def _as_lists(p: ab.Predictions) -> list:
    return [p.confidence["confidence"].tolist(), p.loss.tolist()]


def tables(folder: Path) -> list[Case]:
    cases = []
    for compression in ("zstd", "uncompressed"):
        path = folder / f"{compression}.parquet"
        pl.DataFrame(columns()).write_parquet(path, compression=compression, row_group_size=100)
        cases += [
            Case(path, lambda path=path, read=read: read(path), has_checksum=False)
            for read in (values_of, values_in_stream)
        ]
    return cases


def tensors(folder: Path) -> list[Case]:
    try:
        import torch
    except ImportError:
        return []
    path = folder / "outputs.pth"
    torch.save({name: torch.tensor(values) for name, values in columns().items()}, path)
    return [Case(path, lambda: area(path), has_checksum=True)]


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip up to three bits or write up to three bytes, often near an end; or cut the file."""
    out = bytearray(content)
    if rng.random() < 0.15:
        return bytes(out[: rng.integers(len(out))])
    for _ in range(rng.integers(1, 4)):
        near_end = rng.random() < 0.4
        at = len(out) - 1 - int(rng.integers(min(600, len(out)))) if near_end else None
        at = int(rng.integers(len(out))) if at is None else at
        is_flip = rng.random() < 0.6
        out[at] = out[at] ^ (1 << int(rng.integers(8))) if is_flip else int(rng.integers(256))
    return bytes(out)


def outcome(case: Case, correct: Any) -> str:
    """Return "correct", "rejected", "changed" where nothing can detect it, or what is wrong."""
    try:
        value = case.read()
    except AbstainError as error:
        return "rejected" if str(error) and "\n" not in str(error) else f"message: {error!r}"
    except BaseException as error:  # noqa: BLE001 - what is looked for
        return f"raised {type(error).__name__}: {str(error)[:200]}"
    if value == correct:
        return "correct"
    return f"silently {value!r:.60} in place of {correct!r:.60}" if case.has_checksum else "changed"


def main(n_files: int) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        cases: list[Case] = []
        for i, make in enumerate((archives, sorted_rows, records, tables, tensors)):
            folder = Path(name) / str(i)
            folder.mkdir()
            cases += make(folder)
        correct = [case.read() for case in cases]
        for i in range(n_files):
            case = cases[i % len(cases)]
            whole = case.damaged.read_bytes()
            damaged = damage(whole, np.random.default_rng(i))
            print(json.dumps({"i": i, "file": case.damaged.name}), flush=True)
            # Another file takes its place, so that nothing remembered of it is used.
            case.damaged.unlink()
            case.damaged.write_bytes(damaged)
            faulthandler.dump_traceback_later(LONGEST, exit=True)
            said = outcome(case, correct[i % len(cases)])
            faulthandler.cancel_dump_traceback_later()
            case.damaged.unlink()
            case.damaged.write_bytes(whole)
            print(json.dumps({"i": i, "outcome": said}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
