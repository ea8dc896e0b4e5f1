"""Convert a monitor to JSON values and arrays, for `abstain.tables.save` and `load`.

The keys of files are those of released versions. Some attributes have other names, such as
`MonitorPlan.risk_kind` for the key `kind`.
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
#: Version of new archives, and all versions that can be read. Version 2 has no inodes or file
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
    for name, kinds in (("watches", _WATCH), ("alarms", _ALARM)):
        for i, fields in enumerate(records.check_value(plain[name], list[Any], name)):
            _check_mapping(fields, kinds, f"{name}[{i}].")


def check_arrays(arrays: Mapping[str, Array]) -> None:
    """Validate types, shapes and values of the arrays. An InputError names an invalid array."""
    _check_types_and_shapes(arrays)
    for name in ("sums", "edges", "breaks"):
        _check_values(name, arrays, np.isfinite(arrays.get(name, 0.0)), "finite")
    for name in (f"held_{watch}" for watch in WATCHES):
        values = arrays.get(name, np.zeros(0))
        is_valid = values.dtype == "float64" and np.isfinite(values).all() and (values >= 0).all()
        _check_values(name, arrays, is_valid, "finite float64 numbers of at least 0")
    if "edges" in arrays:
        _check_reference(arrays)
    _check_history(arrays)
    _check_values("early_loss", arrays, _is_loss_or_nan(arrays["early_loss"]), "in [0, 1], or NaN")
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
    lengths: dict[str, int] = {}
    for name, (dtype, axes) in required.items():
        array = arrays[name]
        is_valid = array.dtype == dtype and array.ndim == len(axes)
        for axis, n in zip(axes, array.shape, strict=False):
            # The first array with an axis of this name determines the length of the axis.
            length = axis if isinstance(axis, int) else lengths.setdefault(axis, n)
            is_valid = is_valid and n == length
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
    sums, capitals = history[:, : -len(WATCHES)], history[:, -len(WATCHES) :]
    is_increasing = (np.diff(history[:, 0]) > 0).all()
    is_valid = np.isfinite(sums).all() and (sums >= 0).all() and is_increasing
    _check_values("history", arrays, is_valid, "finite and at least 0, with increasing events")
    is_on = np.array([f"held_{watch}" in arrays for watch in WATCHES])
    active_capitals, other_capitals = capitals[:, is_on], capitals[:, ~is_on]
    is_valid = (active_capitals >= 0).all() and np.isfinite(active_capitals).all()
    # The capital of an inactive watch is NaN.
    is_valid = is_valid and np.isnan(other_capitals).all()
    _check_values(
        "history", arrays, is_valid, "a finite capital of at least 0 for each watch that is on"
    )


def _check_reference(arrays: Mapping[str, Array]) -> None:
    """Validate the summary of the calibration data."""
    edges, gaps, urn = arrays["edges"], arrays["gaps"], arrays["urn"]
    _check_values("edges", arrays, (np.diff(edges) >= 0).all(), "non-decreasing")
    is_valid = gaps.size == edges.size + 1 and (gaps > 0).all()
    _check_values("gaps", arrays, is_valid, "positive, with one more entry than `edges`")
    _check_values("urn", arrays, (urn >= gaps).all(), "at least `gaps`")
    if "risk" in arrays:
        risk = arrays["risk"]
        _check_values("risk", arrays, ((risk >= 0) & (risk <= 1)).all(), "in [0, 1]")


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
    """Return the JSON values and arrays from which `from_arrays` restores a monitor.

    At most `plan.remember` predictions are stored, so that the result does not depend on how the
    stream was split into calls.
    """
    ledger = state.ledger.last(plan.remember)
    plain = {
        "kind": KIND,
        "form": FORM,
        "rule": json.loads(plan.rule.to_json()),
        "plan": {key: getattr(plan, _PLAN_ATTRIBUTES.get(key, key)) for key in _PLAN},
        "spread": None if plan.reference is None else _or_none(plan.reference.spread),
        "first": ledger.first,
        "settled": [state.requests.n, state.requests.labeled, state.requests.missing],
        "watches": [
            {
                "n": watch.tally.n,
                "total": watch.tally.total,
                "recent": watch.tally.recent_mean,
                "alarmed": watch.has_alarm,
                "since": watch.since,
                "steps": 0 if watch.wager is None else watch.wager.n_values,
            }
            for watch in state.watches
        ],
        "counts": asdict(state.counts),
        "events": state.events,
        "stride": state.stride,
        "alarms": [
            {
                "watch": alarm.watch,
                "at": alarm.n_predictions,
                "reason": alarm.reason,
                "acknowledged": alarm.acknowledged,
            }
            for alarm in state.alarms
        ],
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
    arrays |= {f"held_{w.name}": w.wager.money for w in state.watches if w.wager is not None}
    if plan.reference is not None and state.urn is not None:
        blocks, risk = plan.reference.blocks, plan.reference.risk
        arrays |= {"edges": blocks.edges, "breaks": blocks.tie_breakers, "gaps": blocks.n_gaps}
        arrays |= {"urn": state.urn} | ({} if risk is None else {"risk": risk})
    return plain, arrays


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
    """Build the plan, the state and the read positions from validated values and arrays."""
    plan = _build_plan(plain, arrays)
    watches = zip(plan.initial_watches(), plain["watches"], strict=True)
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
    state = MonitorState(
        ledger=ledger,
        requests=requests,
        watches=tuple(_restore_watch(watch, fields, arrays) for watch, fields in watches),
        counts=Counts(**plain["counts"]),
        urn=read_only(arrays["urn"]) if "urn" in arrays else None,
        early=tuple(early),
        history=tuple(map(tuple, arrays["history"].tolist())),
        events=plain["events"],
        stride=plain["stride"],
        alarms=tuple(
            Alarm(alarm["watch"], alarm["at"], alarm["reason"], alarm["acknowledged"])
            for alarm in plain["alarms"]
        ),
    )
    return plan, state, tuple(FilePosition(*position) for position in plain["read"])


def _build_plan(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> MonitorPlan:
    """Build the plan from validated values and arrays."""
    options = {_PLAN_ATTRIBUTES.get(key, key): value for key, value in plain["plan"].items()}
    if options["coverage"] is not None:
        options["coverage"] = tuple(options["coverage"])
    reference = None
    if "edges" in arrays:
        blocks = RankBlocks(*(read_only(arrays[name]) for name in ("edges", "breaks", "gaps")))
        spread = float("nan") if plain["spread"] is None else plain["spread"]
        risk = read_only(arrays["risk"]) if "risk" in arrays else None
        reference = Reference(blocks, risk, spread)
    rule = DecisionRule.from_json(json.dumps(plain["rule"]))
    return MonitorPlan(rule=rule, reference=reference, **options)


def _restore_watch(watch: Watch, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Watch:
    """Restore the bets and the counts of a watch."""
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
