"""Convert a monitor to JSON values and arrays, for `abstain.tables.save` and `load`.

Some keys differ from the attribute names, because files of earlier versions must be readable.
"""

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
from abstain.monitoring.followed_file import FilePosition, ReadPositions
from abstain.monitoring.plan import MonitorPlan, Reference, RiskKind
from abstain.monitoring.running import COLUMNS
from abstain.monitoring.state import (
    WATCHES,
    Alarm,
    Counts,
    Ledger,
    MonitorState,
    Requests,
    Watch,
    WatchName,
    WatchTally,
)
from abstain.thresholds import DecisionRule
from abstain.typing import Array, Scale

KIND: Final = "monitor"
#: Version of the format, and all versions that can be read. Version 2 has no inodes and file
#: hashes.
FORM: Final = 3
_FORMS: Final = (2, FORM)

#: Keys of files that differ from the attribute names of `MonitorPlan`.
_PLAN_ATTRIBUTES: Final = {"uncertain": "is_coverage_estimated", "kind": "risk_kind"}

# ------------------------------------------------------------------------ types of the fields
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
    # msgspec does not support the bound 2^64, so the seed is validated separately.
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
_TOP_LEVEL: Final[dict[str, Any]] = {
    "spread": NonNegative | None,
    "first": NonNegativeInt,
    "settled": tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt],
    "events": NonNegativeInt,
    "stride": PositiveInt,
    "read": list[list[Any]],
}
#: Types of the fields of `FilePosition`. Some file systems use all 64 bits of an inode number.
_POSITION: Final = tuple[
    NonEmptyText, NonNegativeInt, NonNegativeInt, Annotated[int, Meta(ge=0)], str
]
_POSITION_FORM_2: Final = tuple[NonEmptyText, NonNegativeInt, NonNegativeInt]
#: Data type and axes of each array. Axes with the same name have the same length.
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


def check_fields(plain: Mapping[str, Any]) -> None:
    """Validate the JSON values. An invalid field raises an InputError that names the field."""
    _check_mapping(plain, _TOP_LEVEL, "")
    _check_mapping(plain["plan"], _PLAN, "plan.")
    if plain["plan"]["seed"] >= 2**64:
        raise_error(f"`plan.seed` must be below 2^64; got {short_repr(plain['plan']['seed'])}")
    _check_mapping(plain["counts"], _COUNTS, "counts.")
    for i, position in enumerate(plain["read"]):
        # Positions have three values in version 2 of the format.
        kind = _POSITION_FORM_2 if len(position) == 3 else _POSITION
        records.check_value(position, kind, f"read[{i}]")
    _check_list_of_mappings(plain, "watches", _WATCH)
    _check_list_of_mappings(plain, "alarms", _ALARM)


def check_arrays(arrays: Mapping[str, Array]) -> None:
    """Validate types, shapes and values of the arrays. An InputError names an invalid array."""
    _check_types_and_shapes(arrays)
    for name in ("sums", "edges", "breaks"):
        _check_values(name, arrays, np.isfinite(arrays.get(name, 0.0)), "finite")
    for watch in WATCHES:
        name = f"held_{watch}"
        values = arrays.get(name, np.zeros(0))
        is_valid = values.dtype == "float64" and np.isfinite(values).all() and (values >= 0).all()
        _check_values(name, arrays, is_valid, "finite float64 numbers of at least 0")
    if "edges" in arrays:
        _check_reference(arrays)
    _check_history(arrays)
    _check_values("early_loss", arrays, _is_loss_or_nan(arrays["early_loss"]), "in [0, 1], or NaN")
    _check_items(arrays)


def _check_items(arrays: Mapping[str, Array]) -> None:
    """Validate the array `Requests.items` of answers and their labels."""
    number, predicted, probability, is_requested, loss = arrays["items"].T
    is_valid = (
        (number >= 0)
        & (predicted >= 0)
        & (predicted <= 1)
        & (probability > 0)
        & (probability <= 1)
        & np.isin(is_requested, (0, 1))
        & _is_loss_or_nan(loss)
    )
    is_increasing = (np.diff(number) > 0).all() and (number % 1 == 0).all()
    rule = "increasing integer numbers, a failure in [0, 1], and a probability in (0, 1]"
    _check_values("items", arrays, is_valid.all() and is_increasing, rule)


def _check_types_and_shapes(arrays: Mapping[str, Array]) -> None:
    """Validate the data type and the shape of each array."""
    required = dict(_ARRAYS)
    if "edges" in arrays:
        required |= _REFERENCE
        if "risk" in arrays:
            required["risk"] = ("float64", ("blocks",))
    # The first array with a named axis determines the length of this axis.
    lengths: dict[str, int] = {}
    for name, (dtype, axes) in required.items():
        array = arrays[name]
        is_valid = array.dtype == dtype and array.ndim == len(axes)
        for axis, n in zip(axes, array.shape, strict=False):
            required_length = axis if isinstance(axis, int) else lengths.setdefault(axis, n)
            is_valid = is_valid and n == required_length
        if not is_valid:
            shape = ", ".join(str(lengths.get(str(axis), axis)) for axis in axes)
            raise_error(
                f"`{name}` must be {dtype} of shape ({shape}); got {array.dtype} of shape "
                f"{array.shape}"
            )


def _is_loss_or_nan(values: Array) -> Array:
    return np.isnan(values) | ((values >= 0) & (values <= 1))


def _check_history(arrays: Mapping[str, Array]) -> None:
    """Validate the points of the history."""
    history = arrays["history"]
    sums = history[:, : -len(WATCHES)]
    capitals = history[:, -len(WATCHES) :]
    is_increasing = (np.diff(history[:, 0]) > 0).all()
    is_valid = np.isfinite(sums).all() and (sums >= 0).all() and is_increasing
    _check_values("history", arrays, is_valid, "finite and at least 0, with increasing events")
    is_on = np.array([f"held_{watch}" in arrays for watch in WATCHES])
    has_capital = np.isfinite(capitals) & (capitals >= 0)
    # The capital of an inactive watch is NaN.
    is_valid = np.where(is_on, has_capital, np.isnan(capitals)).all()
    rule = "a finite capital of at least 0 for each watch that is on"
    _check_values("history", arrays, is_valid, rule)


def _check_reference(arrays: Mapping[str, Array]) -> None:
    """Validate the summary of the calibration data."""
    edges = arrays["edges"]
    gaps = arrays["gaps"]
    urn = arrays["urn"]
    _check_values("edges", arrays, (np.diff(edges) >= 0).all(), "non-decreasing")
    is_valid = gaps.size == edges.size + 1 and (gaps > 0).all()
    _check_values("gaps", arrays, is_valid, "positive, with one more entry than `edges`")
    _check_values("urn", arrays, (urn >= gaps).all(), "at least `gaps`")
    if "risk" in arrays:
        risk = arrays["risk"]
        _check_values("risk", arrays, ((risk >= 0) & (risk <= 1)).all(), "in [0, 1]")


def _check_list_of_mappings(plain: Mapping[str, Any], name: str, kinds: Mapping[str, Any]) -> None:
    """Validate each JSON object in the list with this name."""
    for i, fields in enumerate(records.check_value(plain[name], list[Any], name)):
        _check_mapping(fields, kinds, f"{name}[{i}].")


def _check_mapping(fields: Any, kinds: Mapping[str, Any], path: str) -> None:
    """Validate that a JSON object has all fields with values of the right types."""
    if not isinstance(fields, Mapping):
        raise_error(f"`{path[:-1]}` must be an object with its fields; got {short_repr(fields)}")
    for name, kind in kinds.items():
        if name not in fields:
            raise_error(f"the field `{path}{name}` is missing")
        records.check_value(fields[name], kind, path + name)


def _check_values(name: str, arrays: Mapping[str, Array], is_valid: Any, rule: str) -> None:
    if name in arrays and not np.all(is_valid):
        raise_error(f"the values of `{name}` must be {rule}")


# ------------------------------------------------------------------------ writing and reading
def to_arrays(
    plan: MonitorPlan, state: MonitorState, read_positions: ReadPositions
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the JSON values and arrays from which `from_arrays` restores a monitor."""
    # A monitor may contain more predictions, depending on how the stream was split into calls.
    ledger = state.ledger.last(plan.remember)
    plain = {
        "kind": KIND,
        "form": FORM,
        "rule": json.loads(plan.rule.to_json()),
        "plan": {key: getattr(plan, _PLAN_ATTRIBUTES.get(key, key)) for key in _PLAN},
        "spread": None if plan.reference is None else _or_none(plan.reference.spread),
        "first": ledger.first,
        "settled": [state.requests.n, state.requests.labeled, state.requests.missing],
        "watches": [_watch_to_plain(watch) for watch in state.watches],
        "counts": asdict(state.counts),
        "events": state.events,
        "stride": state.stride,
        "alarms": [_alarm_to_plain(alarm) for alarm in state.alarms],
        "read": [list(position) for position in read_positions],
    }
    names = json.dumps(state.requests.names).encode()
    arrays = {
        "keys": ledger.keys,
        "flags": ledger.flags,
        "answers": ledger.answers,
        "items": state.requests.items,
        "names": np.frombuffer(names, np.uint8),
        "sums": state.requests.sums,
        "early_keys": np.array([key for key, _ in state.early], np.uint64),
        "early_loss": np.array([loss for _, (loss, _) in state.early], np.float64),
        "early_label": np.array([label for _, (_, label) in state.early], np.uint64),
        "history": np.array(state.history, np.float64).reshape(len(state.history), COLUMNS),
    }
    for watch in state.watches:
        if watch.wager is not None:
            arrays[f"held_{watch.name}"] = watch.wager.money
    if plan.reference is not None and state.urn is not None:
        arrays["edges"] = plan.reference.blocks.edges
        arrays["breaks"] = plan.reference.blocks.tie_breakers
        arrays["gaps"] = plan.reference.blocks.n_gaps
        arrays["urn"] = state.urn
        if plan.reference.risk is not None:
            arrays["risk"] = plan.reference.risk
    return plain, arrays


def _watch_to_plain(watch: Watch) -> dict[str, Any]:
    """Return the counts of a watch as JSON values."""
    return {
        "n": watch.tally.n,
        "total": watch.tally.total,
        "recent": watch.tally.recent_mean,
        "alarmed": watch.has_alarm,
        "since": watch.since,
        "steps": 0 if watch.wager is None else watch.wager.n_values,
    }


def _alarm_to_plain(alarm: Alarm) -> dict[str, Any]:
    """Return an alarm as JSON values."""
    return {
        "watch": alarm.watch,
        "at": alarm.n_predictions,
        "reason": alarm.reason,
        "acknowledged": alarm.acknowledged,
    }


def from_arrays(
    plain: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[MonitorPlan, MonitorState, ReadPositions]:
    """Restore the parts of a monitor from the dictionaries that `to_arrays` returned.

    Raises
    ------
    FileFormatError
        If the version is unsupported, or if a part is missing or contradicts other parts.
    """
    json_records.pop_version(dict(plain), "form", _FORMS)
    with json_records.invalid_file_errors("state of a monitor"):
        try:
            check_fields(plain)
            check_arrays(arrays)
            return _build_monitor(plain, arrays)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FileFormatError(
                f"a part of the monitor is missing or damaged: {error!r}"
            ) from error


def _build_monitor(
    plain: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[MonitorPlan, MonitorState, ReadPositions]:
    """Create the plan, the state and the read positions of a monitor from validated data."""
    plan = _build_plan(plain, arrays)
    ledger = Ledger(
        keys=read_only(arrays["keys"]),
        flags=read_only(arrays["flags"]),
        answers=read_only(arrays["answers"]),
        first=int(plain["first"]),
    )
    urn = read_only(arrays["urn"]) if "urn" in arrays else None
    early_labels = zip(arrays["early_loss"].tolist(), arrays["early_label"].tolist(), strict=True)
    watches = zip(plan.initial_watches(), plain["watches"], strict=True)
    state = MonitorState(
        ledger=ledger,
        requests=_build_requests(plain, arrays),
        watches=tuple(_restore_watch(watch, fields, arrays) for watch, fields in watches),
        counts=Counts(**plain["counts"]),
        urn=urn,
        early=tuple(zip(arrays["early_keys"].tolist(), early_labels, strict=True)),
        history=tuple(tuple(point) for point in arrays["history"].tolist()),
        events=plain["events"],
        stride=plain["stride"],
        alarms=tuple(
            Alarm(alarm["watch"], alarm["at"], alarm["reason"], alarm["acknowledged"])
            for alarm in plain["alarms"]
        ),
    )
    return plan, state, tuple(FilePosition(*position) for position in plain["read"])


def _build_requests(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> Requests:
    """Create the label requests from validated values and arrays."""
    items = read_only(arrays["items"])
    names = records.check_value(json.loads(arrays["names"].tobytes()), list[str], "names")
    if len(names) != len(items):
        raise FileFormatError(
            f"`names` must be one for each of {len(items)} items; got {len(names)}"
        )
    n, labeled, missing = plain["settled"]
    sums = read_only(arrays["sums"])
    return Requests(items, tuple(names), sums, int(n), int(labeled), int(missing))


def _build_plan(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> MonitorPlan:
    """Create the plan from validated values and arrays."""
    options = {_PLAN_ATTRIBUTES.get(key, key): value for key, value in plain["plan"].items()}
    if options["coverage"] is not None:
        options["coverage"] = tuple(options["coverage"])
    reference = None
    if "edges" in arrays:
        blocks = RankBlocks(
            edges=read_only(arrays["edges"]),
            tie_breakers=read_only(arrays["breaks"]),
            n_gaps=read_only(arrays["gaps"]),
        )
        spread = float("nan") if plain["spread"] is None else plain["spread"]
        risk = read_only(arrays["risk"]) if "risk" in arrays else None
        reference = Reference(blocks, risk, spread)
    rule = DecisionRule.from_json(json.dumps(plain["rule"]))
    return MonitorPlan(rule=rule, reference=reference, **options)


def _restore_watch(watch: Watch, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Watch:
    """Restore a watch with its bets and counts."""
    wager = watch.wager
    if wager is not None:
        money = arrays[f"held_{watch.name}"]
        if money.shape != wager.money.shape:
            raise FileFormatError(f"the bets on the {watch.name} have the shape {money.shape}")
        wager = replace(wager, money=read_only(money), n_values=int(fields["steps"]))
    return replace(
        watch,
        wager=wager,
        tally=WatchTally(fields["n"], fields["total"], fields["recent"]),
        has_alarm=fields["alarmed"],
        since=fields["since"],
    )


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
