"""A folder of FD-Shifts results as what one network says of each exposure.

The classes that an open-set network never learned are taken out of what it says.
"""

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
from abstain.tables import read_predictions
from abstain.typing import IntArray
from abstain_bench.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain_bench.data.exposures import KINDS
from abstain_bench.data.images import numbered_anew
from abstain_bench.runs.outputs import network_outputs
from abstain_bench.runs.store import VALIDATION, ExposureFacts

#: Stands for a data set that is not wanted.
LEFT_OUT: Final = "-"

#: The corruptions in the order in which FD-Shifts stacks them, each in severities 1 to 5.
_STACKED: Final = tuple(sorted(CORRUPTIONS))
_NAMED: Final = ("sub-class", "new-class", "far-new-class")


@dataclass(frozen=True, eq=False)
class ExposureOutputs:
    """What a network says of one exposure; the kind of the validation data is "validation".

    `external` are the external confidences by the names of the reader.
    """

    facts: ExposureFacts
    outputs: Predictions
    external: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ResultsFolder:
    """What lies in a folder of results, in the order of its data sets.

    `classes` are the codes of those that the network has an output for. `train` and `layer`, its
    weight and bias with one row for each class, are there where the features of the training
    images and the last layer are. Where `has_logit_level` is False, the logits of each image
    are known up to a constant.
    """

    parts: tuple[ExposureOutputs, ...]
    classes: tuple[str, ...]
    train: Predictions | None
    layer: tuple[Any, Any] | None
    notes: tuple[str, ...]
    has_logit_level: bool = True


def named_exposures(given: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, str]]:
    """Return kind and name of each data set of a folder, in the order of its index.

    Given as "validation", "iid", "corruption", "-" to leave it out, or a kind with a name such as
    "new-class:svhn".
    """
    if isinstance(given, str) or len(given) != len(sizes):
        got = repr(given) if isinstance(given, str) else f"{len(given)} entries"
        found = ", ".join(f"{i}: {n:,} images" for i, n in enumerate(sizes))
        raise InputError(
            "`exposures` must say of each data set in the folder what it is, such as 'validation', "
            "'iid', 'corruption', 'sub-class:NAME', 'new-class:NAME', 'far-new-class:NAME' or '-' "
            f"to leave it out; got {got} for {len(sizes)} data sets ({found})"
        )
    out = [_kind_and_name(one) for one in given]
    wanted = [one for one in out if one[0] != LEFT_OUT]
    for one in wanted:
        if wanted.count(one) > 1:
            raise InputError(
                f"`exposures` must name each exposure once; got {':'.join(one)!r} twice"
            )
    if "iid" not in [kind for kind, _ in out]:
        raise InputError("`exposures` must hold 'iid', which all else is compared with; got none")
    return out


def _kind_and_name(given: str) -> tuple[str, str]:
    kind, _, name = str(given).partition(":")
    checks.one_of(kind, "exposures", (VALIDATION, *KINDS, LEFT_OUT))
    if (kind in _NAMED) != bool(name):
        rule = f"{kind}:NAME" if kind in _NAMED else f"{kind} without a name"
        raise InputError(
            f"`exposures` must say {rule!r}, as it is known from its kind; got {given!r}"
        )
    return kind, name or kind


def told_by(
    path: Path,
    exposures: Sequence[str],
    *,
    abstains: bool = False,
    stored_probabilities: bool = False,
) -> ResultsFolder:
    """Read what a folder of FD-Shifts results holds of the data sets that are wanted.

    A network that `abstains`, as those of DeepGamblers, has an output for it. It is the last row of
    the last layer, and no class: the logits are without it already. With `stored_probabilities`
    the folder holds probabilities in the place of its logits, see `logits_of_probabilities`.
    """
    if not path.is_dir():
        raise InputError(f"there is no folder {str(path)!r} of FD-Shifts results")
    if stored_probabilities and not abstains:
        raise InputError(
            "`stored_probabilities` is an option for DeepGamblers networks only (arm 'dg')"
        )
    reading = read_predictions(path)
    order = sorted(reading, key=lambda split: int(split[0][1]))
    named = named_exposures(exposures, [reading[split].n for split in order])
    parts: list[ExposureOutputs] = []
    # Which method the external confidences are is said by those who know the network.
    notes = [str(note) for note in reading.notes if note.kind != EXTERNAL_CONFIDENCE]
    for split, (kind, name) in zip(order, named, strict=True):
        # Images of two data sets are never the same one.
        first = sum(reading[other].n for other in order[: order.index(split)])
        if kind == LEFT_OUT:
            continue
        to_logits = logits_of_probabilities if stored_probabilities else np.asarray
        whole = _part(reading[split], kind, name, first, to_logits)
        parts += _blocks(whole, notes) if kind == "corruption" else [whole]
    inside = path if (path / "raw_logits.npz").is_file() else path / "test_results"
    train, layer = _training(inside, parts, notes, abstains)
    classes = tuple(map(str, range(parts[0].outputs.n_classes)))
    if stored_probabilities:
        notes.append(
            "the logits are the logarithms of the stored probabilities, so they are known up to a "
            "constant for each image"
        )
    level = not stored_probabilities
    return ResultsFolder(tuple(parts), classes, train, layer, tuple(notes), level)


def _part(
    said: Predictions, kind: str, name: str, first: int, to_logits: Callable[[Any], Any]
) -> ExposureOutputs:
    if said.logits is None:
        raise MissingInputError(
            "the folder holds probabilities (raw_output.npz) and no raw_logits.npz; from those the "
            "methods of this benchmark cannot be computed. Test the network with a version of "
            "FD-Shifts that writes logits"
        )
    labels = np.asarray(said.labels, dtype=np.int64)
    if kind in {"new-class", "far-new-class"}:
        # Those of another data set: no class of the network is right.
        labels = np.full_like(labels, -1)
    outputs = network_outputs(
        to_logits(said.logits),
        labels,
        first + np.arange(said.n),
        features=said.features,
        samples=said.logit_samples,
    )
    external = {name: np.asarray(x, np.float64) for name, x in (said.confidence or {}).items()}
    return ExposureOutputs(ExposureFacts(name, name, name, kind), outputs, external)


def logits_of_probabilities(probabilities: Any) -> Any:
    """Return logits from a softmax over the classes and abstention, without that of abstention.

    The logarithm of a softmax is the logits less a constant for each row, so every score that
    compares the classes of an image is that of the logits. Probabilities that were rounded to 0
    are set to half of the smallest number of their type.
    """
    p = np.asarray(probabilities)
    wide = p.astype(np.float64)
    # Each of the K probabilities is rounded.
    excess = p.shape[1] * float(np.finfo(p.dtype).eps)
    if wide.min() < 0 or wide.max() > 1 or wide.sum(axis=1).max() > 1 + excess:
        raise InputError(
            "raw_logits.npz holds no probabilities: they must lie in [0, 1] and add up to at most "
            "1 in each row. Import the folder without `stored_probabilities`"
        )
    smallest = np.log(np.float64(np.finfo(p.dtype).smallest_subnormal)) - np.log(2.0)
    return np.where(wide > 0, np.log(np.where(wide > 0, wide, 1.0)), smallest)


def _blocks(whole: ExposureOutputs, notes: list[str]) -> list[ExposureOutputs]:
    """Split corrupted images, which are stacked as 15 corruptions x 5 severities x n."""
    blocks = len(_STACKED) * SEVERITIES
    n, rest = divmod(whole.outputs.n, blocks)
    if rest or not n:
        raise InputError(
            f"the data set 'corruption' must hold 15 corruptions x 5 severities x n images; got "
            f"{whole.outputs.n:,}. If it is another shift, call it 'sub-class:NAME'"
        )
    labels = whole.outputs.labels.reshape(blocks, n)
    if (labels == labels[0]).all():
        shared: IntArray = whole.outputs.ids[0] + np.tile(np.arange(n), blocks)
        whole = replace(whole, outputs=replace(whole.outputs, ids=shared))
    else:
        notes.append(
            "the labels differ from one corruption to the next, so that their images are taken "
            "as different ones"
        )
    out = []
    for block in range(blocks):
        rows = np.arange(block * n, (block + 1) * n)
        corruption, severity = _STACKED[block // SEVERITIES], block % SEVERITIES + 1
        name = f"corruption-{corruption}"
        facts = ExposureFacts(
            f"{name}-{severity}", name, f"{name} {severity}", "corruption", corruption, severity
        )
        external = {key: x[rows] for key, x in whole.external.items()}
        out.append(ExposureOutputs(facts, whole.outputs.subset(rows), external))
    return out


def _training(
    folder: Path, parts: Sequence[ExposureOutputs], notes: list[str], abstains: bool
) -> tuple[Predictions | None, tuple[Any, Any] | None]:
    """Return what is known of the training images, which some methods are fitted on."""
    paths = [folder / name for name in ("train_features.npz", "last_layer.npz")]
    if not all(path.is_file() for path in paths) or parts[0].outputs.features is None:
        return None, None
    table = _only(paths[0], 1)[0]
    width, classes = parts[0].outputs.features.shape[1], parts[0].outputs.n_classes
    weight, bias = _layer(paths[1], classes, width, abstains)
    if table.ndim != 2 or table.shape[1] != width + 1:
        raise FileFormatError(
            f"train_features.npz must have {width} features and a label; got {table.shape}"
        )
    features = table[:, :-1].astype(np.float32)
    logits = features @ weight.astype(np.float32).T + bias.astype(np.float32)
    labels = table[:, -1].astype(np.int64)
    notes[:] = [note for note in notes if note not in {f"not used: {path.name}" for path in paths}]
    notes.append("features of training images from train_features.npz, with last_layer.npz")
    outputs = network_outputs(logits, labels, np.arange(len(labels)), features=features)
    return outputs, (weight, bias)


def _layer(path: Path, classes: int, width: int, abstains: bool) -> tuple[Any, Any]:
    """Return weight and bias of the last layer, one row for each class."""
    weight, bias = _only(path, 2)
    # Those of DeepGamblers may have been cut to the classes, as their logits are.
    for rows in (classes, classes + 1)[: 1 + abstains]:
        if weight.shape == (rows, width) and bias.shape == (rows,):
            return weight[:classes], bias[:classes]
    msg = (
        f"last_layer.npz must hold a weight ({classes}, {width}) and a bias ({classes},), a row "
        f"for each class; got {weight.shape} and {bias.shape}"
    )
    if weight.shape == (classes + 1, width):
        msg += ". One row more is that of DeepGamblers: say so with the arm or objective 'dg'"
    raise FileFormatError(msg)


def _only(path: Path, count: int) -> list[Any]:
    """Return the arrays of an archive, which has so many of them."""
    arrays = list(Archive(path).values())
    if len(arrays) != count:
        raise FileFormatError(f"{path.name} must hold {count} arrays; got {len(arrays)}")
    return arrays


# ------------------------------------------------------------------------------ open-set networks
#: The exposure that i.i.d. images of these classes become.
_KEY: Final = "held-out-classes"
_FACTS: Final = ExposureFacts(_KEY, _KEY, _KEY, "new-class")


def without(told: ResultsFolder, held_out: Sequence[int]) -> ResultsFolder:
    """Return what a network says of the classes it learned, and as new classes the others.

    Their outputs are left out. I.i.d. images of them are an exposure "held-out-classes" to new
    classes; of validation and shifted images those of them are left out. Refused where they are
    no classes of the network, fewer than two are left, or training images or no i.i.d. ones are
    of them.
    """
    out = _checked(held_out, len(told.classes))
    _refuse_learned(told, out)
    keep = np.setdiff1d(np.arange(len(told.classes)), out)
    parts, left = [], 0
    for part in told.parts:
        known = ~np.isin(part.outputs.labels, out)
        if not known.any():
            raise InputError(
                f"all images of the exposure {part.facts.key!r} are of classes held out"
            )
        parts.append(_reduced(part, np.flatnonzero(known), keep))
        if part.facts.kind == "iid":
            new = _held_out(part, np.flatnonzero(~known), keep)
        else:
            left += int((~known).sum())
    if any(part.facts.key == _KEY for part in parts):
        raise InputError(
            f"`exposures` must not name one {_KEY!r}: the i.i.d. images of these classes are it"
        )
    note = (
        f"of the classes {_listed(out)}, which were held out, {new.outputs.n:,} i.i.d. images "
        f"are the exposure {_KEY!r}"
    )
    note += f"; {left:,} images of {VALIDATION} or shifts are left out" if left else ""
    train, layer = told.train, told.layer
    return replace(
        told,
        parts=(*parts, new),
        classes=tuple(told.classes[code] for code in keep),
        train=None if train is None else _of_classes(train, np.arange(train.n), keep),
        layer=None if layer is None else (layer[0][keep], layer[1][keep]),
        notes=(*told.notes, note),
    )


def flag(codes: Iterable[int]) -> str:
    """Return the option of the command line that names these classes."""
    return f"--held-out {' '.join(map(str, codes))}"


def never_learned(told: ResultsFolder) -> Iterator[str]:
    """Say which classes are tested and in no training image, where those are known."""
    if told.train is None:
        return
    tested = next(part for part in told.parts if part.facts.kind == "iid").outputs.labels
    lacking = np.setdiff1d(tested[tested >= 0], told.train.labels)
    if lacking.size:
        yield (
            f"no training image is of the classes {_listed(lacking.tolist())}, and i.i.d. ones "
            f"are: if these were held out of training, say so with `held_out` ({flag(lacking)})"
        )


def _checked(held_out: Sequence[int], classes: int) -> list[int]:
    # A command line gives integers; a call may give anything.
    given: Sequence[Any] = held_out
    wrong = [code for code in given if type(code) is not int or not 0 <= code < classes]
    if wrong or len(set(held_out)) != len(held_out):
        what = repr(wrong[0]) if wrong else f"{_listed(held_out)}, one of them twice"
        raise InputError(
            f"`held_out` must be different classes of the network, 0 to {classes - 1}; got {what}"
        )
    if classes - len(held_out) < 2:
        raise InputError(f"`held_out` must leave two classes of {classes}; got {_listed(held_out)}")
    return sorted(held_out)


def _refuse_learned(told: ResultsFolder, out: Sequence[int]) -> None:
    seen = () if told.train is None else np.intersect1d(told.train.labels, out).tolist()
    if seen:
        raise InputError(
            f"`held_out` must be classes that were not learned; got {_listed(seen)}, which "
            "training images in train_features.npz are of"
        )


def _reduced(part: ExposureOutputs, rows: IntArray, keep: IntArray) -> ExposureOutputs:
    external = {name: values[rows] for name, values in part.external.items()}
    return replace(part, outputs=_of_classes(part.outputs, rows, keep), external=external)


def _held_out(part: ExposureOutputs, rows: IntArray, keep: IntArray) -> ExposureOutputs:
    if not rows.size:
        raise InputError(
            "`held_out` must be classes of some i.i.d. images; got none of any such image"
        )
    return replace(_reduced(part, rows, keep), facts=_FACTS)


def _of_classes(outputs: Predictions, rows: IntArray, keep: IntArray) -> Predictions:
    """Return some rows, with the outputs of the classes to keep, which are counted anew."""
    own = outputs.subset(rows)
    return replace(
        own,
        logits=own.logits[:, keep],
        labels=numbered_anew(own.labels, outputs.n_classes, keep),
        logit_samples=None if own.logit_samples is None else own.logit_samples[:, :, keep],
        classes=None,
    )


def _listed(codes: Sequence[int]) -> str:
    return ", ".join(map(str, codes))
