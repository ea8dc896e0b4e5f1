"""Whether an imported run is of the pictures that the other runs of a folder are of."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from abstain.benchmark.others.fd_shifts import Part
from abstain.benchmark.outputs import Outputs
from abstain.benchmark.runs import VALIDATION, RunScores
from abstain.benchmark.store import Store
from abstain.errors import InputError

__all__ = ["same_pictures"]


def same_pictures(store: Store, parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts in the order of a store, with its places; refuse other pictures."""
    by_key = {part.facts.key: part for part in parts}
    wanted = [one.key for one in store.exposures]
    there = [key for key in by_key if key != VALIDATION]
    if set(there) != set(wanted):
        lacking = ", ".join(key for key in wanted if key not in there)
        surplus = ", ".join(key for key in there if key not in wanted)
        msg = (
            "all runs of a folder must be tested on the same exposures; of those of the folder "
            f"these are missing: {lacking or 'none'}; these are not in it: {surplus or 'none'}"
        )
        raise InputError(msg)
    out = []
    for key in ([VALIDATION] if VALIDATION in by_key else []) + wanted:
        own, part = _first_said(store, key), by_key[key]
        if own is None:
            out.append(part)
            continue
        _refuse_other(key, part.outputs, own)
        out.append(replace(part, outputs=replace(part.outputs, places=own.places)))
    return tuple(out)


def _first_said(store: Store, key: str) -> RunScores | None:
    for kept in store.kept:
        if kept.validation if key == VALIDATION else kept.tested:
            return store.scores(kept.run, key, logits=True)
    return None


def _refuse_other(key: str, outputs: Outputs, own: RunScores) -> None:
    classes = outputs.classes if own.logits is None else own.logits.shape[1]
    if outputs.n != own.n or outputs.classes != classes:
        msg = (
            f"the exposure {key!r} of the folder has {own.n:,} pictures and {classes} classes; got "
            f"{outputs.n:,} and {outputs.classes}"
        )
        raise InputError(msg)
    if not np.array_equal(outputs.labels, own.labels):
        row = int(np.flatnonzero(outputs.labels != own.labels)[0])
        msg = (
            f"the exposure {key!r} must be of the same pictures in the same order as in the "
            f"folder, or nothing can be compared; the label of picture {row} is "
            f"{own.labels[row]} there, and got {outputs.labels[row]}"
        )
        raise InputError(msg)
