"""Open-set results: the classes that a network never learned, taken out of what it says."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain.benchmark.others.fd_shifts import ExposureOutputs, ResultsFolder
from abstain.benchmark.outputs import Outputs
from abstain.benchmark.store import VALIDATION, ExposureFacts
from abstain.errors import InputError
from abstain.typing import IntArray

#: The exposure that i.i.d. pictures of these classes become.
_KEY: Final = "held-out-classes"
_FACTS: Final = ExposureFacts(_KEY, _KEY, _KEY, "new-class")

#: Where a configuration lies, seen from a folder of results, and its bytes at most.
_CONFIGS: Final = ("../hydra/config.yaml", "hydra/config.yaml", "config.yaml")
_LARGEST: Final = 1 << 20
#: As FD-Shifts writes it: in brackets, or one class a line.
_LISTED: Final = re.compile(
    r"^ *out_classes: *(?:\[([\d\s,]*)\]|((?:\n *- *\d+)+))", flags=re.MULTILINE
)


def configured(folder: Path) -> tuple[int, ...]:
    """Return the classes that the configuration of a folder of results holds out, in order.

    Empty where there is no configuration, in the folder or the one above, or it names none.
    """
    for name in _CONFIGS:
        path = folder / name
        if path.is_file() and path.stat().st_size <= _LARGEST:
            found = _LISTED.search(path.read_text(encoding="utf-8", errors="replace"))
            if found is not None:
                codes = re.findall(r"\d+", found[1] or found[2] or "")
                return tuple(sorted({int(code) for code in codes}))
    return ()


def without(told: ResultsFolder, held_out: Sequence[int]) -> ResultsFolder:
    """Return what a network says of the classes it learned, and as new classes the others.

    Their outputs are left out. I.i.d. pictures of them are an exposure "held-out-classes" to new
    classes; of validation and shifted pictures those of them are left out. Refused where they are
    no classes of the network, fewer than two are left, or training pictures or no i.i.d. ones are
    of them.
    """
    out = _checked(held_out, len(told.classes))
    _refuse_learned(told, out)
    keep = np.setdiff1d(np.arange(len(told.classes)), out)
    parts, left = [], 0
    for part in told.parts:
        known = ~np.isin(part.outputs.labels, out)
        if not known.any():
            msg = f"all pictures of the exposure {part.facts.key!r} are of classes held out"
            raise InputError(msg)
        parts.append(_reduced(part, np.flatnonzero(known), keep))
        if part.facts.kind == "iid":
            new = _held_out(part, np.flatnonzero(~known), keep)
        else:
            left += int((~known).sum())
    if any(part.facts.key == _KEY for part in parts):
        msg = f"`exposures` must not name one {_KEY!r}: the i.i.d. pictures of these classes are it"
        raise InputError(msg)
    note = (
        f"of the classes {_listed(out)}, which were held out, {new.outputs.n:,} i.i.d. pictures "
        f"are the exposure {_KEY!r}"
    )
    note += f"; {left:,} pictures of {VALIDATION} or shifts are left out" if left else ""
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
    """Say which classes are tested and in no training picture, where those are known."""
    if told.train is None:
        return
    tested = next(part for part in told.parts if part.facts.kind == "iid").outputs.labels
    lacking = np.setdiff1d(tested[tested >= 0], told.train.labels)
    if lacking.size:
        yield (
            f"no training picture is of the classes {_listed(lacking.tolist())}, and i.i.d. ones "
            f"are: if these were held out of training, say so with `held_out` ({flag(lacking)})"
        )


def _checked(held_out: Sequence[int], classes: int) -> list[int]:
    # A command line gives integers; a call may give anything.
    given: Sequence[Any] = held_out
    wrong = [code for code in given if type(code) is not int or not 0 <= code < classes]
    if wrong or len(set(held_out)) != len(held_out):
        what = repr(wrong[0]) if wrong else f"{_listed(held_out)}, one of them twice"
        msg = f"`held_out` must be different classes of the network, 0 to {classes - 1}; got {what}"
        raise InputError(msg)
    if classes - len(held_out) < 2:
        msg = f"`held_out` must leave two classes of {classes}; got {_listed(held_out)}"
        raise InputError(msg)
    return sorted(held_out)


def _refuse_learned(told: ResultsFolder, out: Sequence[int]) -> None:
    seen = () if told.train is None else np.intersect1d(told.train.labels, out).tolist()
    if seen:
        msg = (
            f"`held_out` must be classes that were not learned; got {_listed(seen)}, which "
            "training pictures in train_features.npz are of"
        )
        raise InputError(msg)


def _reduced(part: ExposureOutputs, rows: IntArray, keep: IntArray) -> ExposureOutputs:
    external = {name: values[rows] for name, values in part.external.items()}
    return replace(part, outputs=_of_classes(part.outputs, rows, keep), external=external)


def _held_out(part: ExposureOutputs, rows: IntArray, keep: IntArray) -> ExposureOutputs:
    if not rows.size:
        msg = "`held_out` must be classes of some i.i.d. pictures; got none of any such picture"
        raise InputError(msg)
    return replace(_reduced(part, rows, keep), facts=_FACTS)


def _of_classes(outputs: Outputs, rows: IntArray, keep: IntArray) -> Outputs:
    """Return some rows, with the outputs of the classes to keep, which are counted anew."""
    own = outputs.subset(rows)
    code = np.full(outputs.classes + 1, -1)  # the last one is that of the label -1
    code[keep] = np.arange(len(keep))
    return replace(
        own,
        logits=own.logits[:, keep],
        labels=code[own.labels],
        samples=None if own.samples is None else own.samples[:, :, keep],
    )


def _listed(codes: Sequence[int]) -> str:
    return ", ".join(map(str, codes))
