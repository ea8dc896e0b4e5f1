"""Folders of FD-Shifts test results: raw_logits.npz and what lies beside it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.archives import Archive
from abstain._foundation.notes import COLUMNS, EXTERNAL_CONFIDENCE, READING, Note
from abstain._foundation.option_format import format_option
from abstain._foundation.subsample import subsampled_rows
from abstain.errors import FileFormatError, InputError, UnknownNameError, suggest
from abstain.predictions import Predictions
from abstain.tables._build import float16_notes
from abstain.tables._reading import Reading, ReadingOptions
from abstain.tables.column import Missing, count, from_array
from abstain.typing import Array, IntArray, Split

_OUTPUTS = {"logits": "raw_logits", "probabilities": "raw_output"}
_SAMPLES = {"logits": "logit_samples", "probabilities": "probability_samples"}
_LEFT_OUT = ("train_features.npz", "last_layer.npz", "attributions.csv")
#: Stands in the rows of a data set that has no such confidence; never reaches anyone.
_ABSENT = np.finfo(np.float64).min

_APPLICABLE = {"confidence", "missing", "by", "unknown_label"}

#: Corrupted images are stored as 15 corruptions x 5 levels x n, as the third test set.
_NOISE, _NOISE_BLOCKS = 2, 75
#: float16 holds every integer up to here.
_EXACT = 2048


@dataclass
class _Raw:
    """The arrays of a folder; rows of samples are matched by `place`, -1 for none."""

    kind: str
    scores: Array
    labels: IntArray
    dataset: IntArray
    samples: Array | None = None
    place: IntArray | None = None
    features: Array | None = None
    confidence: dict[str, Array] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def read_folder(path: Path, asked: ReadingOptions) -> Reading:
    """Read a folder of FD-Shifts test results; splits are its data sets by index."""
    folder = _results_in(path)
    _refuse_inapplicable(asked, path)
    raw = _output(folder)
    _mark_unknown(raw, asked)
    _samples(raw, folder)
    _features(raw, folder)
    _confidences(raw, folder, asked)
    raw.notes += [
        Note(READING, f"not used: {name}") for name in _LEFT_OUT if (folder / name).is_file()
    ]
    missing = Missing(asked.missing, path.name, raw.labels.size)
    for name, values in raw.confidence.items():
        raw.confidence[name] = missing.confidence(from_array(values, name)).values
    keep = np.ones(raw.labels.size, dtype=np.bool_)
    if missing.kept is not None:
        keep[:] = False
        keep[missing.kept] = True
    splits: dict[Split, Predictions] = {}
    notes: list[Note] = []
    for index in dict.fromkeys(raw.dataset[keep].tolist()):
        rows = np.flatnonzero(keep & (raw.dataset == index))
        part = _predictions(raw, rows, path.name)
        splits[("dataset", str(index)),] = part
        notes += float16_notes(part)
    return Reading(splits, tuple(dict.fromkeys([*raw.notes, *missing.notes, *notes])), path.name)


def _results_in(path: Path) -> Path:
    for folder in (path, path / "test_results"):
        if any((folder / f"{name}.npz").is_file() for name in _OUTPUTS.values()):
            return folder
    inside = sorted(p.name for p in path.iterdir())
    shown = f"it holds {', '.join(inside[:10])}" if inside else "it is empty"
    raise FileFormatError(
        f"the folder {str(path)!r} is no folder of FD-Shifts results, which hold raw_logits.npz "
        f"or raw_output.npz ({shown}); to read several files, name the files"
    )


def _refuse_inapplicable(asked: ReadingOptions, path: Path) -> None:
    surplus = [name for name in asked.given if name not in _APPLICABLE]
    if surplus:
        what = format_option(surplus[0])
        raise InputError(
            f"{what} does not apply to {path.name}: FD-Shifts files have no named columns"
        )
    if asked.by not in {(), ("dataset",)}:
        raise InputError(
            f"{format_option('by')} can only be 'dataset' for FD-Shifts results; got "
            f"{', '.join(asked.by)}"
        )


# ------------------------------------------------------------------------------------ files
def _array(folder: Path, name: str, axes: int) -> Array | None:
    """Load `arr_0` of a file of the folder; None when there is no such file."""
    path = folder / f"{name}.npz"
    if not path.exists():
        return None
    values: Array | None = Archive(path).get("arr_0")
    if values is None or values.ndim != axes or values.dtype.kind not in "fiu":
        got = "no such key" if values is None else f"{values.dtype} of shape {values.shape}"
        raise FileFormatError(
            f"{path.name} must hold numbers with {axes} axes under the key 'arr_0'; got {got}"
        )
    return values


def _output(folder: Path) -> _Raw:
    kind, values = "logits", _array(folder, _OUTPUTS["logits"], 2)
    both = (folder / "raw_output.npz").is_file()
    if values is None:
        kind, values, both = "probabilities", _array(folder, _OUTPUTS["probabilities"], 2), False
    if values is None or values.shape[0] == 0 or values.shape[1] < 4:
        raise FileFormatError(
            f"{_OUTPUTS[kind]}.npz must hold rows of at least two classes, a label and an index"
        )
    name = f"{_OUTPUTS[kind]}.npz"
    text = (
        f"took {kind} of {values.shape[1] - 2} classes; the last two columns are the label "
        "and the data set index (with val_tuning: 0 validation, 1 iid test, then noise, "
        "in-class and new-class sets in the order of hydra/config.yaml). Labels of a new-class "
        "set are the labels of that set: FD-Shifts counts all of them as failures"
    )
    notes = [Note(COLUMNS, text, source=name)]
    if both:
        text = "raw_output.npz is not used: raw_logits.npz has the logits behind it"
        notes.append(Note(READING, text))
    labels = _integers(values[:, -2], name, "labels")
    inexact = labels > _EXACT
    if values.dtype == np.float16 and inexact.any():
        text = (
            f"have labels above {_EXACT}, where float16 skips integers: they may be off by one or "
            "more"
        )
        notes.append(Note(READING, text, rows=count(inexact)))
    dataset = _integers(values[:, -1], name, "data set indexes")
    return _Raw(kind, values[:, :-2], labels, dataset, notes=notes)


def _integers(values: Array, name: str, what: str) -> IntArray:
    wide = values.astype(np.float64)
    bad = ~np.isfinite(wide) | (np.floor(wide) != wide)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise FileFormatError(
            f"{name}: {what} must be whole numbers; got {values[row]} in row {row}"
        )
    return wide.astype(np.int64)


def _mark_unknown(raw: _Raw, asked: ReadingOptions) -> None:
    """Labels without a class of the model become -1: no prediction can be right for them."""
    foreign = (raw.labels < 0) | (raw.labels >= raw.scores.shape[1])
    if foreign.any():
        text = "have labels beyond the classes of the model: always wrong"
        raw.notes.append(Note(READING, text, rows=count(foreign)))
    marks = [str(mark) for mark in asked.unknown_label]
    foreign |= np.isin(raw.labels.astype(str), marks)
    raw.labels[foreign] = -1


def _samples(raw: _Raw, folder: Path) -> None:
    name = f"{_OUTPUTS[raw.kind]}_dist"
    values = _array(folder, name, 3)
    if values is None:
        return
    if values.shape[1] != raw.scores.shape[1]:
        raise FileFormatError(
            f"{name}.npz must have shape (rows, {raw.scores.shape[1]} classes, samples); "
            f"got {values.shape}"
        )
    if values.shape[2] < 2:
        raw.notes.append(
            Note(READING, f"{name}.npz is not used: it holds a single sample for each row")
        )
        return
    raw.place = _match(raw, values.shape[0], name)
    # Samples are the last axis in the file and the middle one here; a view, not a copy.
    raw.samples = np.moveaxis(values, -1, 1)
    raw.notes.append(
        Note(COLUMNS, f"{_SAMPLES[raw.kind]} from {name}.npz ({values.shape[2]} a row)")
    )


def _match(raw: _Raw, rows: int, name: str) -> IntArray:
    """Return the row of the sample file for each row, -1 where it cannot be told.

    FD-Shifts may keep the sample files of all corrupted images beside outputs of a tenth of
    them. Its formula gives the rows of that tenth, and all other sets keep their order.
    """
    n, extra = raw.dataset.size, rows - raw.dataset.size
    place = np.arange(n)
    if extra == 0:
        return place
    noise = raw.dataset == _NOISE
    few = int(noise.sum())
    explained = (
        extra > 0
        and few > 0
        and few % _NOISE_BLOCKS == 0
        and (few + extra) % _NOISE_BLOCKS == 0
        and bool((np.diff(raw.dataset) >= 0).all())
    )
    if not explained:
        raise FileFormatError(
            f"{name}.npz has {rows:,} rows and {_OUTPUTS[raw.kind]}.npz has {n:,}; the rows "
            f"cannot be matched. Move {name}.npz out of the folder to read the rest"
        )
    place[raw.dataset > _NOISE] += extra
    n_all, n_taken = (few + extra) // _NOISE_BLOCKS, few // _NOISE_BLOCKS
    note = (
        f"{name}.npz has all {few + extra:,} corrupted images of data set {_NOISE}, of which "
        f"{few:,} are in {_OUTPUTS[raw.kind]}.npz"
    )
    taken = subsampled_rows(n_all, raw.scores.shape[1], n_all // n_taken)
    if taken.size != n_taken:
        place[noise] = -1
        note += (
            f". They are not the {taken.size:,} of {n_all:,} that FD-Shifts takes from each "
            f"corruption and severity, so data set {_NOISE} is read without it"
        )
    else:
        first = np.flatnonzero(noise)[0]
        blocks = n_all * np.arange(_NOISE_BLOCKS)
        place[noise] = first + (blocks[:, None] + taken).ravel()
        note += ": the rows that FD-Shifts takes from each corruption and severity"
    raw.notes.append(Note(READING, note))
    return place


def _features(raw: _Raw, folder: Path) -> None:
    values = _array(folder, "encoded_output", 2)
    if values is None:
        return
    same = values.shape[0] == raw.dataset.size
    if not same or values.shape[1] < 2 or not np.array_equal(values[:, -1], raw.dataset):
        raise FileFormatError(
            "encoded_output.npz does not belong to these outputs: its last column must be the "
            f"data set index of each of the {raw.dataset.size:,} rows; got shape {values.shape}. "
            "Move it out of the folder to read the rest"
        )
    raw.features = values[:, :-1]
    raw.notes.append(Note(COLUMNS, "features from encoded_output.npz"))


def _confidences(raw: _Raw, folder: Path, asked: ReadingOptions) -> None:
    values = _array(folder, "external_confids", 1)
    if values is not None:
        if values.size != raw.dataset.size:
            raise FileFormatError(
                f"external_confids.npz must have {raw.dataset.size:,} rows; got {values.size:,}"
            )
        raw.confidence["ext"] = values
    values = _array(folder, "external_confids_dist", 2)
    if values is not None:
        place = _match(raw, values.shape[0], "external_confids_dist")
        mean = values.mean(axis=1, dtype=np.float64)
        deviation = values.std(axis=1, dtype=np.float64)
        for own, of_rows in (("ext_mcd", mean), ("ext_waic", mean - deviation)):
            # Rows without a match are taken out again where the splits are made.
            raw.confidence[own] = np.where(place >= 0, of_rows[place], _ABSENT)
    for name in asked.confidence:
        if name not in raw.confidence:
            known = ", ".join(raw.confidence) or "none"
            raise UnknownNameError(
                f"{folder.name} has no confidence {name!r}.{suggest(name, raw.confidence)} "
                f"It has: {known}"
            )
    if asked.confidence:
        raw.confidence = {name: raw.confidence[name] for name in asked.confidence}
    raw.notes += [
        Note(EXTERNAL_CONFIDENCE, f"confidence {name!r} from the external confidences")
        for name in raw.confidence
    ]


# ------------------------------------------------------------------------------------ splits
def _predictions(raw: _Raw, rows: IntArray, source: str) -> Predictions:
    fields: dict[str, Any] = {raw.kind: raw.scores[rows], "labels": raw.labels[rows]}
    if (fields["labels"] == -1).any():
        fields["unknown_label"] = -1
    confidence = {name: values[rows] for name, values in raw.confidence.items()}
    confidence = {n: v for n, v in confidence.items() if not (v == _ABSENT).all()}
    if confidence:
        fields["confidence"] = confidence
    if raw.features is not None:
        fields["features"] = raw.features[rows]
    if raw.samples is not None and raw.place is not None and raw.place[rows[0]] >= 0:
        fields[_SAMPLES[raw.kind]] = raw.samples[raw.place[rows]]
    try:
        return Predictions(**fields)
    except InputError as error:
        raise type(error)(f"{source}, data set {raw.dataset[rows[0]]}: {error}") from None
