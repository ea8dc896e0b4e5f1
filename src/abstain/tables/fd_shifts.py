"""Read the test results of FD-Shifts from a folder with raw_logits.npz and related files."""

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
from abstain.tables.column import MissingEntries, count_rows, from_array
from abstain.typing import Array, IntArray, Split

_OUTPUTS = {"logits": "raw_logits", "probabilities": "raw_output"}
_SAMPLES = {"logits": "logit_samples", "probabilities": "probability_samples"}
_IGNORED_FILES = ("train_features.npz", "last_layer.npz", "attributions.csv")
#: Placeholder for rows of data sets without a confidence. It is removed before the result.
_NO_CONFIDENCE = np.finfo(np.float64).min

_SUPPORTED_OPTIONS = {"confidence", "missing", "by", "unknown_label"}

#: Index of the data set of corrupted images, and its number of corruptions times severities.
_NOISE_DATASET, _N_CORRUPTIONS = 2, 75
#: Largest integer up to which float16 represents every integer.
_MAX_EXACT_FLOAT16 = 2048


@dataclass
class _Results:
    """The arrays in a folder of FD-Shifts results."""

    #: Either "logits" or "probabilities".
    kind: str
    class_scores: Array
    labels: IntArray
    dataset_index: IntArray
    #: Samples of class scores, shape (number of rows in their file, S, K).
    samples: Array | None = None
    #: Row in the file of samples for each row of class scores, or -1 if the row is unknown.
    sample_rows: IntArray | None = None
    features: Array | None = None
    confidence: dict[str, Array] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @property
    def n_classes(self) -> int:
        return int(self.class_scores.shape[1])

    @property
    def n_rows(self) -> int:
        return self.dataset_index.size

    def add_note(self, text: str) -> None:
        self.notes.append(Note(READING, text))


def read_folder(path: Path, options: ReadingOptions) -> Reading:
    """Read a folder of FD-Shifts test results. Each data set becomes a split."""
    folder = _find_results_folder(path)
    _check_options(options, path)
    results = _read_class_scores(folder)
    _merge_unknown_labels(results, options)
    _add_samples(results, folder)
    _add_features(results, folder)
    _add_confidences(results, folder, options)
    for name in _IGNORED_FILES:
        if (folder / name).is_file():
            results.add_note(f"not used: {name}")
    missing = MissingEntries(options.missing, path.name, results.n_rows)
    for name, values in results.confidence.items():
        results.confidence[name] = missing.fill_confidence(from_array(values, name)).values
    is_retained = np.ones(results.n_rows, dtype=np.bool_)
    if missing.retained_rows is not None:
        is_retained[:] = False
        is_retained[missing.retained_rows] = True
    splits: dict[Split, Predictions] = {}
    notes = [*results.notes, *missing.notes]
    for index in dict.fromkeys(results.dataset_index[is_retained].tolist()):
        rows = np.flatnonzero(is_retained & (results.dataset_index == index))
        predictions = _make_predictions(results, rows, path.name)
        splits[("dataset", str(index)),] = predictions
        notes += float16_notes(predictions)
    return Reading(splits, tuple(dict.fromkeys(notes)), path.name)


def _find_results_folder(path: Path) -> Path:
    """Return the folder with the class scores.

    This is the given folder or one of its subfolders.
    """
    for folder in (path, path / "test_results"):
        if any((folder / f"{name}.npz").is_file() for name in _OUTPUTS.values()):
            return folder
    names = sorted(file.name for file in path.iterdir())
    contents = f"it contains {', '.join(names[:10])}" if names else "it is empty"
    raise FileFormatError(
        f"the folder {str(path)!r} has no FD-Shifts results, that is, neither raw_logits.npz nor "
        f"raw_output.npz ({contents}); to read several files, name the files"
    )


def _check_options(options: ReadingOptions, path: Path) -> None:
    """Raise an error if an option requires named columns, which FD-Shifts files do not have."""
    unsupported = [name for name in options.non_default if name not in _SUPPORTED_OPTIONS]
    if unsupported:
        raise InputError(
            f"{format_option(unsupported[0])} does not apply to {path.name}: FD-Shifts files "
            "have no named columns"
        )
    if options.by not in {(), ("dataset",)}:
        raise InputError(
            f"{format_option('by')} can only be 'dataset' for FD-Shifts results; "
            f"got {', '.join(options.by)}"
        )


# ------------------------------------------------------------------------------------ files
def _load_array(folder: Path, name: str, ndim: int) -> Array | None:
    """Load the array `arr_0` of a file in the folder, or return None if the file does not exist."""
    path = folder / f"{name}.npz"
    if not path.exists():
        return None
    values: Array | None = Archive(path).get("arr_0")
    if values is None or values.ndim != ndim or values.dtype.kind not in "fiu":
        got = "no such key" if values is None else f"{values.dtype} of shape {values.shape}"
        raise FileFormatError(
            f"{path.name} must contain numbers with {ndim} axes under the key 'arr_0'; got {got}"
        )
    return values


def _read_class_scores(folder: Path) -> _Results:
    """Read class scores, labels and data set indices.

    Logits are preferred to probabilities.
    """
    kind = "logits"
    values = _load_array(folder, _OUTPUTS[kind], 2)
    has_unused_probabilities = values is not None and (folder / "raw_output.npz").is_file()
    if values is None:
        kind = "probabilities"
        values = _load_array(folder, _OUTPUTS[kind], 2)
    name = f"{_OUTPUTS[kind]}.npz"
    if values is None or values.shape[0] == 0 or values.shape[1] < 4:
        raise FileFormatError(
            f"{name} must contain rows with at least two class scores, a label and an index"
        )
    text = (
        f"read {kind} of {values.shape[1] - 2} classes; the last two columns are the label "
        "and the data set index (with val_tuning: 0 validation, 1 iid test, then noise, "
        "in-class and new-class sets in the order of hydra/config.yaml). Labels of a new-class "
        "set are the labels of that set: FD-Shifts counts all of them as failures"
    )
    notes = [Note(COLUMNS, text, source=name)]
    if has_unused_probabilities:
        text = "raw_output.npz is not used, because raw_logits.npz has its logits"
        notes.append(Note(READING, text))
    labels = _to_integers(values[:, -2], name, "labels")
    is_inexact = labels > _MAX_EXACT_FLOAT16
    if values.dtype == np.float16 and is_inexact.any():
        text = (
            f"have labels above {_MAX_EXACT_FLOAT16}, which may differ from the true label by one "
            "or more, because float16 does not represent all integers there"
        )
        notes.append(Note(READING, text, rows=count_rows(is_inexact)))
    dataset_index = _to_integers(values[:, -1], name, "data set indexes")
    return _Results(kind, values[:, :-2], labels, dataset_index, notes=notes)


def _to_integers(values: Array, file_name: str, description: str) -> IntArray:
    """Convert floats to integers, or raise an error for fractions."""
    numbers = values.astype(np.float64)
    is_invalid = ~np.isfinite(numbers) | (np.floor(numbers) != numbers)
    if is_invalid.any():
        row = int(np.flatnonzero(is_invalid)[0])
        raise FileFormatError(
            f"{file_name}: {description} must be whole numbers; got {values[row]} in row {row}"
        )
    return numbers.astype(np.int64)


def _merge_unknown_labels(results: _Results, options: ReadingOptions) -> None:
    """Replace labels that are not classes by -1.

    Predictions for samples with the label -1 are always wrong.
    """
    is_unknown = (results.labels < 0) | (results.labels >= results.n_classes)
    if is_unknown.any():
        text = "have labels outside the classes of the model, so predictions are always wrong"
        results.notes.append(Note(READING, text, rows=count_rows(is_unknown)))
    unknown_labels = list(map(str, options.unknown_label))
    is_unknown |= np.isin(results.labels.astype(str), unknown_labels)
    results.labels[is_unknown] = -1


def _add_samples(results: _Results, folder: Path) -> None:
    """Add the Monte Carlo samples of class scores, if the folder contains them."""
    name = f"{_OUTPUTS[results.kind]}_dist"
    values = _load_array(folder, name, 3)
    if values is None:
        return
    if values.shape[1] != results.n_classes:
        raise FileFormatError(
            f"{name}.npz must have shape (rows, {results.n_classes} classes, samples); "
            f"got {values.shape}"
        )
    n_samples = values.shape[2]
    if n_samples < 2:
        results.add_note(f"{name}.npz is not used: it has a single sample per row")
        return
    results.sample_rows = _match_rows(results, values.shape[0], name)
    # This view makes samples the middle axis. In the file, they are the last axis.
    results.samples = np.moveaxis(values, -1, 1)
    text = f"{_SAMPLES[results.kind]} from {name}.npz ({n_samples} per row)"
    results.notes.append(Note(COLUMNS, text))


def _match_rows(results: _Results, n_file_rows: int, name: str) -> IntArray:
    """Return, for each row of class scores, the matching row of another file, or -1 if unknown.

    The file with class scores may contain only a tenth of the corrupted images, while the other
    file contains all of them. FD-Shifts selects this tenth by a fixed formula. All other images
    have the same order in both files.
    """
    n_rows = results.n_rows
    n_extra = n_file_rows - n_rows
    matched_rows = np.arange(n_rows)
    if n_extra == 0:
        return matched_rows
    is_noise = results.dataset_index == _NOISE_DATASET
    n_noise = int(is_noise.sum())
    n_noise_in_file = n_noise + n_extra
    is_subsampled = (
        n_extra > 0
        and n_noise > 0
        and n_noise % _N_CORRUPTIONS == 0
        and n_noise_in_file % _N_CORRUPTIONS == 0
        and bool((np.diff(results.dataset_index) >= 0).all())
    )
    class_scores_file = f"{_OUTPUTS[results.kind]}.npz"
    if not is_subsampled:
        raise FileFormatError(
            f"{name}.npz has {n_file_rows:,} rows and {class_scores_file} has {n_rows:,}; the rows "
            f"cannot be matched. Move {name}.npz out of the folder to read the other files"
        )
    matched_rows[results.dataset_index > _NOISE_DATASET] += n_extra
    n_images = n_noise_in_file // _N_CORRUPTIONS
    n_selected = n_noise // _N_CORRUPTIONS
    note = (
        f"{name}.npz has all {n_noise_in_file:,} corrupted images of data set {_NOISE_DATASET}, of "
        f"which {n_noise:,} are in {class_scores_file}"
    )
    selected_images = subsampled_rows(n_images, results.n_classes, n_images // n_selected)
    if selected_images.size == n_selected:
        first_noise_row = np.flatnonzero(is_noise)[0]
        first_images = n_images * np.arange(_N_CORRUPTIONS)
        noise_rows = (first_images[:, None] + selected_images).ravel()
        matched_rows[is_noise] = first_noise_row + noise_rows
        note += ": the rows that FD-Shifts selects for each corruption and severity"
    else:
        matched_rows[is_noise] = -1
        note += (
            f". FD-Shifts would select {selected_images.size:,} of {n_images:,} for each "
            f"corruption and severity, so the rows of data set {_NOISE_DATASET} cannot be matched "
            "and it is read without this file"
        )
    results.add_note(note)
    return matched_rows


def _add_features(results: _Results, folder: Path) -> None:
    """Add the features, if the folder contains them."""
    values = _load_array(folder, "encoded_output", 2)
    if values is None:
        return
    has_features = values.shape[0] == results.n_rows and values.shape[1] >= 2
    if not has_features or not np.array_equal(values[:, -1], results.dataset_index):
        raise FileFormatError(
            "encoded_output.npz does not match the class scores: its last column must be the "
            f"data set index of each of the {results.n_rows:,} rows; got shape {values.shape}. "
            "Move it out of the folder to read the other files"
        )
    results.features = values[:, :-1]
    results.notes.append(Note(COLUMNS, "features from encoded_output.npz"))


def _add_confidences(results: _Results, folder: Path, options: ReadingOptions) -> None:
    """Add the external confidences, including means over Monte Carlo samples."""
    values = _load_array(folder, "external_confids", 1)
    if values is not None:
        if values.size != results.n_rows:
            raise FileFormatError(
                f"external_confids.npz must have {results.n_rows:,} rows; got {values.size:,}"
            )
        results.confidence["ext"] = values
    values = _load_array(folder, "external_confids_dist", 2)
    if values is not None:
        file_rows = _match_rows(results, values.shape[0], "external_confids_dist")
        has_match = file_rows >= 0
        mean = values.mean(axis=1, dtype=np.float64)
        deviation = values.std(axis=1, dtype=np.float64)
        for name, confidence in (("ext_mcd", mean), ("ext_waic", mean - deviation)):
            results.confidence[name] = np.where(has_match, confidence[file_rows], _NO_CONFIDENCE)
    for name in options.confidence:
        if name not in results.confidence:
            available = ", ".join(results.confidence) or "none"
            raise UnknownNameError(
                f"{folder.name} has no confidence {name!r}."
                f"{suggest(name, results.confidence)} Available: {available}"
            )
    if options.confidence:
        results.confidence = {name: results.confidence[name] for name in options.confidence}
    results.notes += [
        Note(EXTERNAL_CONFIDENCE, f"confidence {name!r} from the external confidences")
        for name in results.confidence
    ]


# ------------------------------------------------------------------------------------ splits
def _make_predictions(results: _Results, rows: IntArray, source: str) -> Predictions:
    """Return the `Predictions` of one data set."""
    arguments: dict[str, Any] = {
        results.kind: results.class_scores[rows],
        "labels": results.labels[rows],
    }
    if (arguments["labels"] == -1).any():
        arguments["unknown_label"] = -1
    confidence = {name: values[rows] for name, values in results.confidence.items()}
    confidence = {n: v for n, v in confidence.items() if not (v == _NO_CONFIDENCE).all()}
    if confidence:
        arguments["confidence"] = confidence
    if results.features is not None:
        arguments["features"] = results.features[rows]
    if results.samples is not None and results.sample_rows is not None:
        sample_rows = results.sample_rows[rows]
        if sample_rows[0] >= 0:
            arguments[_SAMPLES[results.kind]] = results.samples[sample_rows]
    try:
        return Predictions(**arguments)
    except InputError as error:
        dataset_index = results.dataset_index[rows[0]]
        raise type(error)(f"{source}, data set {dataset_index}: {error}") from None
