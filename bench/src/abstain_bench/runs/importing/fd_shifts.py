"""Read a folder of FD-Shifts results.

The folder contains the outputs of one network for every test set. If classes were held out in
training, their logits and probabilities are removed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.archives import Archive
from abstain._foundation.notes import EXTERNAL_CONFIDENCE
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.report.formatting import join_first
from abstain.tables import read_predictions
from abstain.typing import BoolArray, IntArray
from abstain_bench.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain_bench.data.images import KINDS, renumber_classes
from abstain_bench.runs.outputs import network_outputs
from abstain_bench.runs.store import VALIDATION, ExposureFacts, Run, Store

#: Placeholder for a data set that is not imported.
LEFT_OUT: Final = "-"

#: Corruptions in the order in which FD-Shifts stacks them, each with severities 1 to 5.
_STACK_ORDER: Final = tuple(sorted(CORRUPTIONS))
_KINDS_WITH_NAME: Final = ("sub-class", "new-class", "far-new-class")


@dataclass(frozen=True, eq=False)
class ExposureOutputs:
    """Outputs of a network for one exposure or for the validation data.

    Attributes
    ----------
    facts : ExposureFacts
        The exposure.
    outputs : Predictions
        Outputs of the network.
    external : mapping from str to ndarray
        External confidences by their column names in `abstain.tables.read_predictions`.
    """

    facts: ExposureFacts
    outputs: Predictions
    external: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ResultsFolder:
    """The content of a folder of FD-Shifts results.

    Attributes
    ----------
    exposures : tuple of ExposureOutputs
        Exposures in the order of the data sets in the folder.
    classes : tuple of str
        Codes of the classes that have an output.
    train : Predictions or None
        Outputs for the training images, or None if the folder has no training features.
    last_layer : tuple of ndarray or None
        Weight and bias of the last layer with one row per class, or None if the folder lacks them.
    notes : tuple of str
        Remarks on the folder.
    has_logit_level : bool
        Whether the logits are known exactly. If False, the logits are known only up to an additive
        constant per image.
    """

    exposures: tuple[ExposureOutputs, ...]
    classes: tuple[str, ...]
    train: Predictions | None
    last_layer: tuple[Any, Any] | None
    notes: tuple[str, ...]
    has_logit_level: bool = True


def parse_exposures(exposures: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, str]]:
    """Return the kind and the name of the exposure for each data set in a folder.

    An entry is "validation", "iid", "corruption", a kind with a name such as "new-class:svhn", or
    "-" for a data set that is left out.
    """
    if isinstance(exposures, str) or len(exposures) != len(sizes):
        got = repr(exposures) if isinstance(exposures, str) else f"{len(exposures)} entries"
        listed = ", ".join(f"{i}: {n:,} images" for i, n in enumerate(sizes))
        raise InputError(
            "`exposures` must have one entry per data set in the folder: 'validation', 'iid', "
            "'corruption', 'sub-class:NAME', 'new-class:NAME', 'far-new-class:NAME', or '-' to "
            f"leave it out; got {got} for {len(sizes)} data sets ({listed})"
        )
    parsed = []
    for entry in exposures:
        kind, _, name = str(entry).partition(":")
        checks.one_of(kind, "exposures", (VALIDATION, *KINDS, LEFT_OUT))
        if (kind in _KINDS_WITH_NAME) != bool(name):
            rule = f"{kind}:NAME" if kind in _KINDS_WITH_NAME else f"{kind} without a name"
            raise InputError(f"`exposures` must have the form {rule!r}; got {entry!r}")
        parsed.append((kind, name or kind))
    for kind, name in parsed:
        if kind != LEFT_OUT and parsed.count((kind, name)) > 1:
            raise InputError(
                f"`exposures` must name each exposure once; got {f'{kind}:{name}'!r} twice"
            )
    if "iid" not in [kind for kind, _ in parsed]:
        raise InputError("`exposures` must contain 'iid', the reference of all others; got none")
    return parsed


def read_results(
    path: Path,
    exposures: Sequence[str],
    *,
    abstains: bool = False,
    stored_probabilities: bool = False,
) -> ResultsFolder:
    """Read a folder of FD-Shifts results, except data sets whose exposure is "-".

    `abstains` is True for DeepGamblers networks, which have an output for abstention. If
    `stored_probabilities` is True, the folder contains probabilities instead of logits.
    """
    if not path.is_dir():
        raise InputError(f"there is no folder {str(path)!r} of FD-Shifts results")
    if stored_probabilities and not abstains:
        raise InputError(
            "`stored_probabilities` is an option for DeepGamblers networks only (arm 'dg')"
        )
    reading = read_predictions(path)
    order = sorted(reading, key=lambda split: int(split[0][1]))
    kinds_and_names = parse_exposures(exposures, [reading[split].n for split in order])
    outputs: list[ExposureOutputs] = []
    # `score_network` adds a note with the methods of external confidences instead.
    notes = [str(note) for note in reading.notes if note.kind != EXTERNAL_CONFIDENCE]
    to_logits = logits_of_probabilities if stored_probabilities else np.asarray
    first_index = 0
    for split, (kind, name) in zip(order, kinds_and_names, strict=True):
        predictions = reading[split]
        if kind != LEFT_OUT:
            exposure = _exposure_outputs(predictions, kind, name, first_index, to_logits)
            if kind == "corruption":
                outputs += _split_corruptions(exposure, notes)
            else:
                outputs.append(exposure)
        # Images of different data sets have different indices.
        first_index += predictions.n
    array_folder = path if (path / "raw_logits.npz").is_file() else path / "test_results"
    train, last_layer = _training_outputs(array_folder, outputs, notes, abstains)
    classes = tuple(map(str, range(outputs[0].outputs.n_classes)))
    if stored_probabilities:
        notes.append(
            "the logits are the logarithms of the stored probabilities, so they are known up to a "
            "constant for each image"
        )
    return ResultsFolder(
        tuple(outputs), classes, train, last_layer, tuple(notes), not stored_probabilities
    )


def _exposure_outputs(
    predictions: Predictions,
    kind: str,
    name: str,
    first_index: int,
    to_logits: Callable[[Any], Any],
) -> ExposureOutputs:
    """Convert the predictions for a data set to the outputs for an exposure."""
    if predictions.logits is None:
        raise MissingInputError(
            "the folder holds probabilities (raw_output.npz) and no raw_logits.npz, which the "
            "methods of this benchmark require. Test the network with a version of FD-Shifts that "
            "writes logits"
        )
    labels = np.asarray(predictions.labels, dtype=np.int64)
    if kind in {"new-class", "far-new-class"}:
        # The labels of another data set are not classes of the network.
        labels = np.full_like(labels, -1)
    outputs = network_outputs(
        to_logits(predictions.logits),
        labels,
        first_index + np.arange(predictions.n),
        features=predictions.features,
        samples=predictions.logit_samples,
    )
    confidence = predictions.confidence or {}
    external = {column: np.asarray(array, np.float64) for column, array in confidence.items()}
    return ExposureOutputs(ExposureFacts(name, name, name, kind), outputs, external)


def logits_of_probabilities(probabilities: Any) -> Any:
    """Return the logarithms of softmax probabilities as logits.

    The logarithms equal the original logits minus a constant per row. A probability of 0 is
    replaced by half of the smallest positive number of its data type. The sum of a row may be below
    1, because the probability of abstention is not stored.
    """
    stored = np.asarray(probabilities)
    p = stored.astype(np.float64)
    # The tolerance allows for the rounding of each of the K probabilities.
    tolerance = p.shape[1] * float(np.finfo(stored.dtype).eps)
    if p.min() < 0 or p.max() > 1 or p.sum(axis=1).max() > 1 + tolerance:
        raise InputError(
            "raw_logits.npz holds no probabilities: they must lie in [0, 1] and add up to at most "
            "1 in each row. Import the folder without `stored_probabilities`"
        )
    is_positive = p > 0
    log_smallest = np.log(np.float64(np.finfo(stored.dtype).smallest_subnormal)) - np.log(2.0)
    log_positive = np.log(np.where(is_positive, p, 1.0))
    return np.where(is_positive, log_positive, log_smallest)


def _split_corruptions(stack: ExposureOutputs, notes: list[str]) -> list[ExposureOutputs]:
    """Split stacked images (15 corruptions x 5 severities x n) by corruption and severity."""
    n_blocks = len(_STACK_ORDER) * SEVERITIES
    n, remainder = divmod(stack.outputs.n, n_blocks)
    if remainder or not n:
        raise InputError(
            "the data set 'corruption' must hold 15 corruptions x 5 severities x n images; got "
            f"{stack.outputs.n:,}. If it is another shift, name it 'sub-class:NAME'"
        )
    labels = stack.outputs.labels.reshape(n_blocks, n)
    if (labels == labels[0]).all():
        shared_indices: IntArray = stack.outputs.ids[0] + np.tile(np.arange(n), n_blocks)
        stack = replace(stack, outputs=replace(stack.outputs, ids=shared_indices))
    else:
        notes.append(
            "the labels differ between corruptions, so their images are treated as different ones"
        )
    exposures = []
    for block in range(n_blocks):
        rows = np.arange(block * n, (block + 1) * n)
        corruption = _STACK_ORDER[block // SEVERITIES]
        severity = block % SEVERITIES + 1
        name = f"corruption-{corruption}"
        facts = ExposureFacts(
            f"{name}-{severity}", name, f"{name} {severity}", "corruption", corruption, severity
        )
        external = {column: array[rows] for column, array in stack.external.items()}
        exposures.append(ExposureOutputs(facts, stack.outputs.subset(rows), external))
    return exposures


def _training_outputs(
    folder: Path, exposures: Sequence[ExposureOutputs], notes: list[str], abstains: bool
) -> tuple[Predictions | None, tuple[Any, Any] | None]:
    """Return the outputs for the training images, and the weight and bias of the final layer.

    If a file or the features are missing, the result is None.
    """
    features_path = folder / "train_features.npz"
    last_layer_path = folder / "last_layer.npz"
    tested = exposures[0].outputs
    if not (features_path.is_file() and last_layer_path.is_file()) or tested.features is None:
        return None, None
    (table,) = _read_arrays(features_path, 1)
    width = tested.features.shape[1]
    weight, bias = _read_last_layer(last_layer_path, tested.n_classes, width, abstains)
    if table.ndim != 2 or table.shape[1] != width + 1:
        raise FileFormatError(
            f"train_features.npz must have {width} features and a label; got {table.shape}"
        )
    features = table[:, :-1].astype(np.float32)
    logits = features @ weight.astype(np.float32).T + bias.astype(np.float32)
    labels = table[:, -1].astype(np.int64)
    for path in (features_path, last_layer_path):
        # The reader notes that it does not use these files.
        if f"not used: {path.name}" in notes:
            notes.remove(f"not used: {path.name}")
    notes.append("features of training images from train_features.npz, with last_layer.npz")
    outputs = network_outputs(logits, labels, np.arange(len(labels)), features=features)
    return outputs, (weight, bias)


def _read_last_layer(path: Path, classes: int, width: int, abstains: bool) -> tuple[Any, Any]:
    """Return the weight, with one row per class, and the bias of the final layer."""
    weight, bias = _read_arrays(path, 2)
    # The stored layer of a DeepGamblers network may lack the row for abstention.
    allowed_n_rows = (classes, classes + 1) if abstains else (classes,)
    for n_rows in allowed_n_rows:
        if weight.shape == (n_rows, width) and bias.shape == (n_rows,):
            return weight[:classes], bias[:classes]
    msg = (
        f"last_layer.npz must hold a weight ({classes}, {width}) and a bias ({classes},), a row "
        f"for each class; got {weight.shape} and {bias.shape}"
    )
    if weight.shape == (classes + 1, width):
        msg += ". DeepGamblers has one row more: set the arm or objective 'dg'"
    raise FileFormatError(msg)


def _read_arrays(path: Path, count: int) -> list[Any]:
    """Return the arrays of an archive, and check that there are `count` arrays."""
    arrays = list(Archive(path).values())
    if len(arrays) != count:
        raise FileFormatError(f"{path.name} must hold {count} arrays; got {len(arrays)}")
    return arrays


# ------------------------------------------------------------------------------ open-set networks
#: Name of the exposure that contains the i.i.d. images of the held-out classes.
_HELD_OUT: Final = "held-out-classes"
_HELD_OUT_FACTS: Final = ExposureFacts(_HELD_OUT, _HELD_OUT, _HELD_OUT, "new-class")


def hold_out_classes(results: ResultsFolder, held_out: Sequence[int]) -> ResultsFolder:
    """Remove held-out classes from the results of a network that was trained without them.

    The i.i.d. images of these classes become the exposure "held-out-classes" of the kind
    "new-class". Validation images and shifted images of held-out classes are removed. InputError is
    raised if training images have a held-out class, or if the unshifted test images have none.
    """
    held_out_codes = _check_held_out(held_out, len(results.classes))
    _check_not_trained(results.train, held_out_codes)
    retained_codes = np.setdiff1d(np.arange(len(results.classes)), held_out_codes)
    exposures = []
    n_removed = 0
    for exposure in results.exposures:
        is_held_out = np.isin(exposure.outputs.labels, held_out_codes)
        if is_held_out.all():
            raise InputError(
                f"all images of the exposure {exposure.facts.key!r} have held-out classes"
            )
        exposures.append(_select_images_and_classes(exposure, ~is_held_out, retained_codes))
        if exposure.facts.kind != "iid":
            n_removed += int(is_held_out.sum())
            continue
        if not is_held_out.any():
            raise InputError(
                "`held_out` must be classes of some i.i.d. images; no i.i.d. image has these "
                "classes"
            )
        held_out_images = _select_images_and_classes(exposure, is_held_out, retained_codes)
        held_out_images = replace(held_out_images, facts=_HELD_OUT_FACTS)
    if any(exposure.facts.key == _HELD_OUT for exposure in exposures):
        raise InputError(
            f"`exposures` must not contain {_HELD_OUT!r}, which the i.i.d. images of these classes "
            "become"
        )
    note = (
        f"of the classes {_join(held_out_codes)}, which were held out, "
        f"{held_out_images.outputs.n:,} i.i.d. images are the exposure {_HELD_OUT!r}"
    )
    if n_removed:
        note += f"; {n_removed:,} images of {VALIDATION} or shifts are left out"
    train = results.train
    if train is not None:
        train = _select_outputs(train, np.arange(train.n), retained_codes)
    last_layer = results.last_layer
    if last_layer is not None:
        weight, bias = last_layer
        last_layer = weight[retained_codes], bias[retained_codes]
    return replace(
        results,
        exposures=(*exposures, held_out_images),
        classes=tuple(results.classes[code] for code in retained_codes),
        train=train,
        last_layer=last_layer,
        notes=(*results.notes, note),
    )


def _check_not_trained(train: Predictions | None, held_out_codes: Sequence[int]) -> None:
    """Raise an error if a training image has a held-out class."""
    if train is None:
        return
    trained = np.intersect1d(train.labels, held_out_codes).tolist()
    if trained:
        raise InputError(
            f"`held_out` must be classes that were not trained; got {_join(trained)}, which "
            "training images in train_features.npz have"
        )


def held_out_flag(codes: Iterable[int]) -> str:
    """Return the command-line option that specifies these classes."""
    return f"--held-out {' '.join(map(str, codes))}"


def untrained_class_notes(results: ResultsFolder) -> list[str]:
    """Return a note if i.i.d. test images have classes that no training image has."""
    if results.train is None:
        return []
    iid = next(exposure for exposure in results.exposures if exposure.facts.kind == "iid")
    labels = iid.outputs.labels
    untrained = np.setdiff1d(labels[labels >= 0], results.train.labels)
    if not untrained.size:
        return []
    note = (
        f"no training image has the classes {_join(untrained.tolist())}, but i.i.d. images do: "
        f"if these classes were held out, set `held_out` ({held_out_flag(untrained)})"
    )
    return [note]


def _check_held_out(held_out: Sequence[Any], n_classes: int) -> list[int]:
    """Return the sorted codes of the held-out classes, and check that two classes remain."""
    invalid = [code for code in held_out if type(code) is not int or not 0 <= code < n_classes]
    if invalid or len(set(held_out)) != len(held_out):
        got = repr(invalid[0]) if invalid else f"{_join(held_out)}, one of them twice"
        raise InputError(
            f"`held_out` must be different classes of the network, 0 to {n_classes - 1}; got {got}"
        )
    if n_classes - len(held_out) < 2:
        raise InputError(f"`held_out` must leave two classes of {n_classes}; got {_join(held_out)}")
    return sorted(held_out)


def _select_images_and_classes(
    exposure: ExposureOutputs, is_selected: BoolArray, classes: IntArray
) -> ExposureOutputs:
    rows = np.flatnonzero(is_selected)
    external = {column: array[rows] for column, array in exposure.external.items()}
    outputs = _select_outputs(exposure.outputs, rows, classes)
    return replace(exposure, outputs=outputs, external=external)


def _select_outputs(outputs: Predictions, rows: IntArray, classes: IntArray) -> Predictions:
    """Select rows and classes of the outputs, and renumber the classes from 0."""
    subset = outputs.subset(rows)
    samples = subset.logit_samples
    if samples is not None:
        samples = samples[:, :, classes]
    return replace(
        subset,
        logits=subset.logits[:, classes],
        labels=renumber_classes(subset.labels, outputs.n_classes, classes),
        logit_samples=samples,
        classes=None,
    )


def _join(codes: Sequence[int]) -> str:
    return ", ".join(map(str, codes))


#: Possible paths of the configuration relative to a folder of results.
_CONFIGS: Final = ("../hydra/config.yaml", "hydra/config.yaml", "config.yaml")
#: Maximum size of a configuration.
_MAX_BYTES: Final = 1 << 20
#: Matches the held-out classes in brackets or one per line. FD-Shifts writes both forms.
_OUT_CLASSES: Final = re.compile(
    r"^ *out_classes: *(?:\[([\d\s,]*)\]|((?:\n *- *\d+)+))", flags=re.MULTILINE
)
#: Matches the lines below `network:` that have a deeper indentation.
_NETWORK: Final = re.compile(
    r"^( *)network: *\n(?P<entries>(?:\1 +\S.*(?:\n|\Z))+)", flags=re.MULTILINE
)
_ENTRY: Final = r"^ *{}: *['\"]?(?P<value>[\w.+-]+)['\"]? *$"
_EMPTY: Final = {"", "null"}


def configured_held_out(folder: Path) -> tuple[int, ...]:
    """Return the sorted codes of the held-out classes in the configuration of a folder."""
    for text in _configurations(folder):
        match = _OUT_CLASSES.search(text)
        if match is not None:
            codes = re.findall(r"\d+", match[1] or match[2] or "")
            return tuple(sorted({int(code) for code in codes}))
    return ()


def configured_model(folder: Path) -> str:
    """Return the name of the backbone in the configuration, or an empty string."""
    for text in _configurations(folder):
        network = _NETWORK.search(text)
        if network is None:
            continue
        for key in ("backbone", "name"):
            entry = re.search(_ENTRY.format(key), network["entries"], re.MULTILINE)
            if entry is not None and entry["value"] not in _EMPTY:
                return entry["value"]
    return ""


def _configurations(folder: Path) -> Iterator[str]:
    for name in _CONFIGS:
        path = folder / name
        if path.is_file() and path.stat().st_size <= _MAX_BYTES:
            yield path.read_text(encoding="utf-8", errors="replace")


#: Facts that identify the model of a run, from the most to the least reliable.
_MODEL_FACTS: Final = ("model", "configured_model", "n_features")


def check_same_model(store: Store, run: Run) -> list[str]:
    """Raise an error if the model of a run differs from that of the other runs in a folder.

    Settings of a method can only be compared for the same model. Models are compared by their
    names, by the backbones in their configurations, or by the numbers of features. If some runs of
    the folder cannot be compared, the function returns a note.
    """
    unknown = []
    for stored in store.stored_runs:
        other = stored.run
        if other.name == run.name:
            continue
        common = [f for f in _MODEL_FACTS if _model_fact(other, f) and _model_fact(run, f)]
        if not common:
            unknown.append(other.name)
            continue
        fact = common[0]
        value = _model_fact(run, fact)
        expected = _model_fact(other, fact)
        if value != expected:
            text = "{} features" if fact == "n_features" else "the model {!r}"
            raise InputError(
                "all networks of a folder must have the same model, because the settings of a "
                f"method are selected among them; the run {other.name!r} has "
                f"{text.format(expected)}, got {text.format(value)}. "
                "Import networks of another model into another folder"
            )
    if not unknown:
        return []
    note = (
        f"it is unknown whether this network has the same model as {join_first(unknown, 3)}; set "
        "the model of every run with `model` (--model)"
    )
    return [note]


def _model_fact(run: Run, name: str) -> str:
    """Return a fact about a run as text, or an empty string if it is missing."""
    value = run.model if name == "model" else run.facts.get(name)
    return str(value or "")
