"""What the archive of a monitor may hold, field by field: held to it on reading, not in use."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from abstain._foundation import records
from abstain._foundation.json_records import refuse, shown
from abstain._foundation.records import Chance, Count, Fraction, Natural, NotNegative, Text
from abstain.monitoring.plan import RiskKind
from abstain.monitoring.watches import WATCHES, WatchName
from abstain.typing import Array, Scale

_PLAN: Final[dict[str, Any]] = {
    "delta": Chance,
    "scale": Scale,
    "coverage": tuple[Fraction, Fraction] | None,
    "uncertain": bool,
    "max_risk": Chance | None,
    "kind": RiskKind,
    "label_share": Chance | None,
    "patience": Natural,
    "remember": Natural,
    # msgspec has no bound of 64 bits: that one is checked apart.
    "seed": Annotated[int, Meta(ge=0)],
}
_WATCH: Final[dict[str, Any]] = {
    "n": Count,
    "total": NotNegative,
    "recent": Fraction,
    "alarmed": bool,
    "since": Count,
    "steps": Count,
}
_ALARM: Final[dict[str, Any]] = {
    "watch": WatchName,
    "at": Count,
    "reason": Text,
    "acknowledged": bool,
}
_COUNTS: Final[dict[str, Any]] = dict.fromkeys(
    ("replayed", "repeated", "abstained", "unasked"), Count
)
_WHOLE: Final[dict[str, Any]] = {
    "spread": NotNegative | None,
    "first": Count,
    "settled": tuple[Count, Count, Count],
    "events": Count,
    "stride": Natural,
    "read": list[list[Any]],
}
#: See `FilePosition`. Some file systems number files with all of 64 bits.
_POSITION: Final = tuple[Text, Count, Count, Annotated[int, Meta(ge=0)], str]
_POSITION_FORM_2: Final = tuple[Text, Count, Count]
#: Of each array what it is made of, and how long its axes are: those of one name alike.
_ARRAYS: Final[dict[str, tuple[str, tuple[str | int, ...]]]] = {
    "keys": ("uint64", ("predictions",)),
    "flags": ("uint8", ("predictions",)),
    "answers": ("uint64", ("predictions",)),
    "items": ("float64", ("items", 5)),
    "names": ("uint8", ("characters",)),
    "sums": ("float64", (7,)),
    "early_keys": ("uint64", ("early",)),
    "early_loss": ("float64", ("early",)),
    "early_label": ("uint64", ("early",)),
    "history": ("float64", ("points", 9)),
}
_REFERENCE: Final[dict[str, tuple[str, tuple[str | int, ...]]]] = {
    "edges": ("float64", ("edges",)),
    "breaks": ("float64", ("edges",)),
    "gaps": ("int64", ("blocks",)),
    "urn": ("int64", ("blocks",)),
}


def refuse_fields(plain: Mapping[str, Any]) -> None:
    """Refuse plain values that a monitor cannot hold; an InputError names the field."""
    _held(plain, _WHOLE, "")
    _held(plain["plan"], _PLAN, "plan.")
    if plain["plan"]["seed"] >= 2**64:
        refuse(f"`plan.seed` must be below 2^64; got {shown(plain['plan']['seed'])}")
    _held(plain["counts"], _COUNTS, "counts.")
    for i, position in enumerate(plain["read"]):
        # Three values in states of form 2.
        kind = _POSITION_FORM_2 if len(position) == 3 else _POSITION
        records.value(position, kind, f"read[{i}]")
    for name, kinds in (("watches", _WATCH), ("alarms", _ALARM)):
        for i, part in enumerate(records.value(plain[name], list[Any], name)):
            _held(part, kinds, f"{name}[{i}].")


def refuse_arrays(arrays: Mapping[str, Array]) -> None:
    """Refuse arrays of other kinds, lengths or values; an InputError names the array."""
    wanted, lengths = dict(_ARRAYS), dict[str, int]()
    if "edges" in arrays:
        wanted |= _REFERENCE
        if "risk" in arrays:
            wanted["risk"] = ("float64", ("blocks",))
    for name, (kind, axes) in wanted.items():
        x = arrays[name]
        fits = x.dtype == kind and x.ndim == len(axes)
        held = zip(axes, x.shape, strict=False)
        if not fits or any(n != _length(axis, n, lengths) for axis, n in held):
            said = ", ".join(str(lengths.get(str(axis), axis)) for axis in axes)
            refuse(f"`{name}` must be {kind} of shape ({said}); got {x.dtype} of shape {x.shape}")
    for name in ("sums", "edges", "breaks"):
        _refuse(name, arrays, np.isfinite(arrays.get(name, 0.0)), "finite")
    for name in (f"held_{watch}" for watch in WATCHES):
        x = arrays.get(name, np.zeros(0))
        good = x.dtype == "float64" and np.isfinite(x).all() and (x >= 0).all()
        _refuse(name, arrays, good, "finite float64 numbers of at least 0")
    if "edges" in arrays:
        _refuse_reference(arrays)
    _refuse_history(arrays)
    place, predicted, chance = arrays["items"].T[:3]
    good = (predicted >= 0) & (predicted <= 1) & (chance > 0) & (chance <= 1) & (place >= 0)
    is_requested, loss = arrays["items"].T[3:]
    good = good & np.isin(is_requested, (0, 1)) & _is_loss_or_nan(loss)
    _refuse("early_loss", arrays, _is_loss_or_nan(arrays["early_loss"]), "in [0, 1], or NaN")
    rule = "rising whole places, a failure in [0, 1], and a chance above 0 and at most 1"
    rising = (np.diff(place) > 0).all() and (place % 1 == 0).all()
    _refuse("items", arrays, good.all() and rising, rule)


def _is_loss_or_nan(values: Array) -> Array:
    return np.isnan(values) | ((values >= 0) & (values <= 1))


def _refuse_history(arrays: Mapping[str, Array]) -> None:
    """Refuse points of the history that no monitor records."""
    history = arrays["history"]
    sums, capitals = history[:, : -len(WATCHES)], history[:, -len(WATCHES) :]
    good = np.isfinite(sums).all() and (sums >= 0).all() and (np.diff(history[:, 0]) > 0).all()
    _refuse("history", arrays, good, "finite and at least 0, with rising events")
    is_on = np.array([f"held_{watch}" in arrays for watch in WATCHES])
    # The capital of a watch that is off is NaN.
    good = (capitals[:, is_on] >= 0).all() and np.isfinite(capitals[:, is_on]).all()
    good = good and np.isnan(capitals[:, ~is_on]).all()
    _refuse("history", arrays, good, "a finite capital of at least 0 for each watch that is on")


def _refuse_reference(arrays: Mapping[str, Array]) -> None:
    edges, gaps, urn = (arrays[name] for name in ("edges", "gaps", "urn"))
    _refuse("edges", arrays, (np.diff(edges) >= 0).all(), "rising")
    _refuse("gaps", arrays, gaps.size == edges.size + 1 and (gaps > 0).all(), "one more than edges")
    _refuse("urn", arrays, (urn >= gaps).all(), "nowhere below `gaps`")
    if "risk" in arrays:
        risk = arrays["risk"]
        _refuse("risk", arrays, ((risk >= 0) & (risk <= 1)).all(), "in [0, 1]")


def _held(found: Any, kinds: Mapping[str, Any], of: str) -> None:
    """Refuse a part without one of the fields, or with another value in it."""
    if not isinstance(found, Mapping):
        refuse(f"`{of[:-1]}` must be an object with its fields; got {shown(found)}")
    for name, kind in kinds.items():
        if name not in found:
            refuse(f"the field `{of}{name}` is missing")
        records.value(found[name], kind, of + name)


def _length(axis: str | int, n: int, lengths: dict[str, int]) -> int:
    return axis if isinstance(axis, int) else lengths.setdefault(axis, n)


def _refuse(name: str, arrays: Mapping[str, Array], good: Any, rule: str) -> None:
    if name in arrays and not np.all(good):
        refuse(f"the values of `{name}` must be {rule}")
