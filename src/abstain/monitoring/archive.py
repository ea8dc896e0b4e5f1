"""A monitor as plain values and arrays, for `abstain.tables.save` and `load`."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from abstain._foundation import json_records, records
from abstain._foundation.arrays import read_only
from abstain._foundation.json_records import raise_error, short_repr
from abstain._foundation.records import (
    Fraction,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    OpenFraction,
    PositiveInt,
)
from abstain.errors import FileFormatError
from abstain.inference.exchangeability import RankBlocks
from abstain.monitoring.followed_file import FilePosition, Read
from abstain.monitoring.ledger import Ledger
from abstain.monitoring.plan import MonitorPlan, RiskKind
from abstain.monitoring.reference import Reference
from abstain.monitoring.requests import Requests
from abstain.monitoring.running import COLUMNS
from abstain.monitoring.state import Counts, MonitorState
from abstain.monitoring.watches import WATCHES, Alarm, Watch, WatchName, WatchTally
from abstain.thresholds import DecisionRule
from abstain.typing import Array, Scale

KIND: Final = "monitor"
#: The form of new archives, and those that can be read. Form 2 has no inodes and hashes of files.
FORM: Final = 3
_FORMS: Final = (2, FORM)

# ------------------------------------------------------------------------ rules of the fields
_PLAN: Final[dict[str, Any]] = {
    "delta": OpenFraction,
    "scale": Scale,
    "coverage": tuple[Fraction, Fraction] | None,
    "uncertain": bool,
    "max_risk": OpenFraction | None,
    "kind": RiskKind,
    "label_share": OpenFraction | None,
    "patience": PositiveInt,
    "remember": PositiveInt,
    # msgspec has no bound of 64 bits: that one is checked apart.
    "seed": Annotated[int, Meta(ge=0)],
}
_WATCH: Final[dict[str, Any]] = {
    "n": NonNegativeInt,
    "total": NonNegative,
    "recent": Fraction,
    "alarmed": bool,
    "since": NonNegativeInt,
    "steps": NonNegativeInt,
}
_ALARM: Final[dict[str, Any]] = {
    "watch": WatchName,
    "at": NonNegativeInt,
    "reason": NonEmptyText,
    "acknowledged": bool,
}
_COUNTS: Final[dict[str, Any]] = dict.fromkeys(
    ("replayed", "repeated", "abstained", "unasked"), NonNegativeInt
)
_WHOLE: Final[dict[str, Any]] = {
    "spread": NonNegative | None,
    "first": NonNegativeInt,
    "settled": tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt],
    "events": NonNegativeInt,
    "stride": PositiveInt,
    "read": list[list[Any]],
}
#: See `FilePosition`. Some file systems number files with all of 64 bits.
_POSITION: Final = tuple[
    NonEmptyText, NonNegativeInt, NonNegativeInt, Annotated[int, Meta(ge=0)], str
]
_POSITION_FORM_2: Final = tuple[NonEmptyText, NonNegativeInt, NonNegativeInt]
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
        raise_error(f"`plan.seed` must be below 2^64; got {short_repr(plain['plan']['seed'])}")
    _held(plain["counts"], _COUNTS, "counts.")
    for i, position in enumerate(plain["read"]):
        # Three values in states of form 2.
        kind = _POSITION_FORM_2 if len(position) == 3 else _POSITION
        records.check_value(position, kind, f"read[{i}]")
    for name, kinds in (("watches", _WATCH), ("alarms", _ALARM)):
        for i, part in enumerate(records.check_value(plain[name], list[Any], name)):
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
            raise_error(
                f"`{name}` must be {kind} of shape ({said}); got {x.dtype} of shape {x.shape}"
            )
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
        raise_error(f"`{of[:-1]}` must be an object with its fields; got {short_repr(found)}")
    for name, kind in kinds.items():
        if name not in found:
            raise_error(f"the field `{of}{name}` is missing")
        records.check_value(found[name], kind, of + name)


def _length(axis: str | int, n: int, lengths: dict[str, int]) -> int:
    return axis if isinstance(axis, int) else lengths.setdefault(axis, n)


def _refuse(name: str, arrays: Mapping[str, Array], good: Any, rule: str) -> None:
    if name in arrays and not np.all(good):
        raise_error(f"the values of `{name}` must be {rule}")


# ------------------------------------------------------------------------ writing and reading
def to_arrays(
    plan: MonitorPlan, seen: MonitorState, read: Read
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return all of a monitor: what `from_arrays` makes the same one of.

    The predictions that are known by their ids are cut to those that count, so that the content
    does not depend on how the stream was cut into calls.
    """
    ledger = seen.ledger.last(plan.remember)
    plain = {
        "kind": KIND,
        "form": FORM,
        "rule": json.loads(plan.rule.to_json()),
        "plan": {name: getattr(plan, name) for name in _PLAN},
        "spread": None if plan.reference is None else _or_none(plan.reference.spread),
        "first": ledger.first,
        "settled": [seen.requests.n, seen.requests.labeled, seen.requests.missing],
        "watches": [
            {**asdict(w.tally), "alarmed": w.alarmed, "since": w.since, "steps": _steps(w)}
            for w in seen.watches
        ],
        "counts": asdict(seen.counts),
        "events": seen.events,
        "stride": seen.stride,
        "alarms": [asdict(alarm) for alarm in seen.alarms],
        "read": [list(part) for part in read],
    }
    names = json.dumps(seen.requests.names).encode()
    arrays = {
        "keys": ledger.keys,
        "flags": ledger.flags,
        "answers": ledger.answers,
        "items": seen.requests.items,
        "names": np.frombuffer(names, np.uint8),
        "sums": seen.requests.sums,
        "early_keys": np.array([key for key, _ in seen.early], np.uint64),
        "early_loss": np.array([loss for _, (loss, _) in seen.early], np.float64),
        "early_label": np.array([label for _, (_, label) in seen.early], np.uint64),
        "history": np.array(seen.history, np.float64).reshape(len(seen.history), COLUMNS),
    }
    arrays |= {f"held_{w.name}": w.wager.money for w in seen.watches if w.wager is not None}
    if plan.reference is not None and seen.urn is not None:
        blocks, risk = plan.reference.blocks, plan.reference.risk
        arrays |= {"edges": blocks.edges, "breaks": blocks.tie_breakers, "gaps": blocks.n_gaps}
        arrays |= {"urn": seen.urn} | ({} if risk is None else {"risk": risk})
    return plain, arrays


def from_arrays(
    plain: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[MonitorPlan, MonitorState, Read]:
    """Make a monitor of what `to_arrays` gave.

    Raises
    ------
    FileFormatError
        Another form, or a part that is missing or does not fit the others.
    """
    json_records.pop_version(dict(plain), "form", _FORMS)
    with json_records.invalid_file_errors("state of a monitor"):
        try:
            refuse_fields(plain)
            refuse_arrays(arrays)
            return _made(plain, arrays)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FileFormatError(
                f"a part of the monitor is missing or damaged: {error!r}"
            ) from error


def _made(
    plain: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[MonitorPlan, MonitorState, Read]:
    plan = _plan(plain, arrays)
    watches = zip(plan.begun(), plain["watches"], strict=True)
    owners, losses, labels = (arrays[f"early_{name}"] for name in ("keys", "loss", "label"))
    early = zip(owners.tolist(), zip(losses.tolist(), labels.tolist(), strict=True), strict=True)
    keys, flags, answers = (read_only(arrays[name]) for name in ("keys", "flags", "answers"))
    ledger = Ledger(keys, flags, answers, int(plain["first"]))
    names = tuple(records.check_value(json.loads(arrays["names"].tobytes()), list[str], "names"))
    if len(names) != len(arrays["items"]):
        raise FileFormatError(
            f"`names` must be one for each of {len(arrays['items'])} items; got {len(names)}"
        )
    requests = Requests(
        read_only(arrays["items"]), names, read_only(arrays["sums"]), *map(int, plain["settled"])
    )
    seen = MonitorState(
        ledger=ledger,
        requests=requests,
        watches=tuple(_watch(watch, told, arrays) for watch, told in watches),
        counts=Counts(**plain["counts"]),
        urn=read_only(arrays["urn"]) if "urn" in arrays else None,
        early=tuple(early),
        history=tuple(map(tuple, arrays["history"].tolist())),
        events=plain["events"],
        stride=plain["stride"],
        alarms=tuple(Alarm(**alarm) for alarm in plain["alarms"]),
    )
    return plan, seen, tuple(FilePosition(*position) for position in plain["read"])


def _plan(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> MonitorPlan:
    told = dict(plain["plan"])
    told["coverage"] = None if told["coverage"] is None else tuple(told["coverage"])
    known = None
    if "edges" in arrays:
        blocks = RankBlocks(*(read_only(arrays[name]) for name in ("edges", "breaks", "gaps")))
        spread = float("nan") if plain["spread"] is None else plain["spread"]
        known = Reference(blocks, read_only(arrays["risk"]) if "risk" in arrays else None, spread)
    rule = DecisionRule.from_json(json.dumps(plain["rule"]))
    return MonitorPlan(rule=rule, reference=known, **told)


def _watch(watch: Watch, told: Mapping[str, Any], arrays: Mapping[str, Array]) -> Watch:
    wager = watch.wager
    if wager is not None:
        held = arrays[f"held_{watch.name}"]
        if held.shape != wager.money.shape:
            raise FileFormatError(f"the bets on the {watch.name} have the shape {held.shape}")
        wager = replace(wager, money=read_only(held), n_values=int(told["steps"]))
    tally = WatchTally(told["n"], told["total"], told["recent"])
    return replace(watch, wager=wager, tally=tally, alarmed=told["alarmed"], since=told["since"])


def _steps(watch: Watch) -> int:
    return 0 if watch.wager is None else watch.wager.n_values


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
