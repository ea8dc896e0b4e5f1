"""Facts from the configuration that FD-Shifts leaves beside its results."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from abstain.errors import InputError
from abstain_bench.runs.store import Run, Store

#: Where a configuration lies, seen from a folder of results, and its bytes at most.
_CONFIGS: Final = ("../hydra/config.yaml", "hydra/config.yaml", "config.yaml")
_MAX_BYTES: Final = 1 << 20
#: As FD-Shifts writes it: in brackets, or one class a line.
_OUT_CLASSES: Final = re.compile(
    r"^ *out_classes: *(?:\[([\d\s,]*)\]|((?:\n *- *\d+)+))", flags=re.MULTILINE
)
#: The lines below `network:` that are indented further than it.
_NETWORK: Final = re.compile(r"^( *)network: *\n((?:\1 +\S.*(?:\n|\Z))+)", flags=re.MULTILINE)
_ENTRY: Final = r"^ *{}: *['\"]?([\w.+-]+)['\"]? *$"
_EMPTY: Final = {"", "null"}


def configured_held_out(folder: Path) -> tuple[int, ...]:
    """Return the classes that the configuration of a folder holds out, in increasing order.

    The result is empty if there is no configuration or it names no such classes.
    """
    for text in _configurations(folder):
        match = _OUT_CLASSES.search(text)
        if match is not None:
            codes = re.findall(r"\d+", match[1] or match[2] or "")
            return tuple(sorted({int(code) for code in codes}))
    return ()


def configured_model(folder: Path) -> str:
    """Return the backbone that the configuration of a folder names; empty if it names none.

    FD-Shifts names the backbone of most networks in `model.network.backbone`, and that of its plain
    vision transformer in `model.network.name`.
    """
    for text in _configurations(folder):
        network = _NETWORK.search(text)
        for key in ("backbone", "name") if network else ():
            entry = re.search(_ENTRY.format(key), network[2] if network else "", re.MULTILINE)
            if entry is not None and entry[1] not in _EMPTY:
                return entry[1]
    return ""


def _configurations(folder: Path) -> Iterator[str]:
    for name in _CONFIGS:
        path = folder / name
        if path.is_file() and path.stat().st_size <= _MAX_BYTES:
            yield path.read_text(encoding="utf-8", errors="replace")


#: What identifies the model of a run, the most reliable first: what the user named, what the
#: configuration names, the number of features.
_MODEL_FACTS: Final = ("model", "configured_model", "n_features")


def check_same_model(store: Store, run: Run) -> list[str]:
    """Reject a run whose model differs from that of the runs of a folder.

    Settings and seeds of a method are compared within one model only, as in table 1 of Jaeger et
    al. (2023). A model is compared by the first fact that both runs have: the name that the user
    gave, the backbone in the configuration, or the number of features.
    """
    unknown = []
    for kept in store.stored_runs:
        other = kept.run
        if other.name == run.name:
            continue
        common = [f for f in _MODEL_FACTS if _model_fact(other, f) and _model_fact(run, f)]
        if not common:
            unknown.append(other.name)
            continue
        own, theirs = (_model_fact(one, common[0]) for one in (run, other))
        if own != theirs:
            what = "features" if common[0] == "n_features" else "the model"
            raise InputError(
                "all networks of a folder must be of one model, since settings of a method are "
                f"chosen among all of them; the run {other.name!r} has {_named(what, theirs)}, "
                f"and got {_named(what, own)}. Import networks of another model into a folder of "
                "their own"
            )
    if not unknown:
        return []
    return [
        f"it is not known whether this network is of the same model as {', '.join(unknown[:3])}"
        + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
        + "; name the model of every run with `model` (--model)"
    ]


def _model_fact(run: Run, name: str) -> str:
    return str((run.model if name == "model" else run.facts.get(name)) or "")


def _named(what: str, value: str) -> str:
    return f"{value} features" if what == "features" else f"the model {value!r}"
