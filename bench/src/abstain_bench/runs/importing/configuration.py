"""Facts from the configuration file that FD-Shifts writes next to its results."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from abstain.errors import InputError
from abstain_bench.runs.store import Run, Store

#: Paths of the configuration relative to a folder of results, and its maximum size.
_CONFIGS: Final = ("../hydra/config.yaml", "hydra/config.yaml", "config.yaml")
_MAX_BYTES: Final = 1 << 20
#: Held-out classes as FD-Shifts writes them: in brackets, or one class per line.
_OUT_CLASSES: Final = re.compile(
    r"^ *out_classes: *(?:\[([\d\s,]*)\]|((?:\n *- *\d+)+))", flags=re.MULTILINE
)
#: The more deeply indented lines below `network:`.
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


#: What identifies the model of a run, most reliable first: the name that the user gave, that of the
#: configuration, the number of features.
_MODEL_FACTS: Final = ("model", "configured_model", "n_features")


def check_same_model(store: Store, run: Run) -> list[str]:
    """Reject a run whose model differs from that of the runs of a folder.

    Settings and seeds of a method are compared within one model only, as in table 1 of Jaeger et
    al. (2023). A model is compared by the first fact that both runs have: the name that the user
    gave, the backbone in the configuration, or the number of features.
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
        value, expected = _model_fact(run, fact), _model_fact(other, fact)
        if value != expected:
            raise InputError(
                "all networks of a folder must have the same model, because the settings of a "
                f"method are selected among them; the run {other.name!r} has "
                f"{_format_model_fact(fact, expected)}, got {_format_model_fact(fact, value)}. "
                "Import networks of another model into another folder"
            )
    if not unknown:
        return []
    names = ", ".join(unknown[:3])
    more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
    note = (
        f"it is unknown whether this network has the same model as {names}{more}; set the model of "
        "every run with `model` (--model)"
    )
    return [note]


def _model_fact(run: Run, name: str) -> str:
    return str((run.model if name == "model" else run.facts.get(name)) or "")


def _format_model_fact(fact: str, value: str) -> str:
    return f"{value} features" if fact == "n_features" else f"the model {value!r}"
