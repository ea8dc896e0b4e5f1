"""A monitor as plain values and arrays, for `abstain.tables.save` and `load`."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np

from abstain._foundation import json_records, records
from abstain._foundation.arrays import sealed
from abstain.errors import FileFormatError
from abstain.inference.exchangeability import RankBlocks
from abstain.monitoring.course import COLUMNS
from abstain.monitoring.form import refuse_arrays, refuse_fields
from abstain.monitoring.ledger import Ledger
from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.positions import FilePosition, Read
from abstain.monitoring.reference import Reference
from abstain.monitoring.requests import Requests
from abstain.monitoring.seen import Counts, Seen
from abstain.monitoring.watches import Alarm, Watch, WatchTally
from abstain.thresholds import DecisionRule
from abstain.typing import Array

KIND: Final = "monitor"
#: The form of new archives, and those that can be read. Form 2 has no inodes and hashes of files.
FORM: Final = 3
_FORMS: Final = (2, FORM)

_PLAN: Final = (
    "delta", "scale", "coverage", "uncertain", "max_risk", "kind", "label_share", "patience",
    "remember", "seed",
)  # fmt: skip


def to_arrays(plan: MonitorPlan, seen: Seen, read: Read) -> tuple[dict[str, Any], dict[str, Array]]:
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
    arrays |= {f"held_{w.name}": w.wager.held for w in seen.watches if w.wager is not None}
    if plan.reference is not None and seen.urn is not None:
        blocks, risk = plan.reference.blocks, plan.reference.risk
        arrays |= {"edges": blocks.edges, "breaks": blocks.breaks, "gaps": blocks.gaps}
        arrays |= {"urn": seen.urn} | ({} if risk is None else {"risk": risk})
    return plain, arrays


def from_arrays(
    plain: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[MonitorPlan, Seen, Read]:
    """Make a monitor of what `to_arrays` gave.

    Raises
    ------
    FileFormatError
        Another form, or a part that is missing or does not fit the others.
    """
    json_records.take_version(dict(plain), "form", _FORMS)
    with json_records.reading("state of a monitor"):
        try:
            refuse_fields(plain)
            refuse_arrays(arrays)
            return _made(plain, arrays)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FileFormatError(
                f"a part of the monitor is missing or damaged: {error!r}"
            ) from error


def _made(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> tuple[MonitorPlan, Seen, Read]:
    plan = _plan(plain, arrays)
    watches = zip(plan.begun(), plain["watches"], strict=True)
    owners, losses, labels = (arrays[f"early_{name}"] for name in ("keys", "loss", "label"))
    early = zip(owners.tolist(), zip(losses.tolist(), labels.tolist(), strict=True), strict=True)
    keys, flags, answers = (sealed(arrays[name]) for name in ("keys", "flags", "answers"))
    ledger = Ledger(keys, flags, answers, int(plain["first"]))
    names = tuple(records.value(json.loads(arrays["names"].tobytes()), list[str], "names"))
    if len(names) != len(arrays["items"]):
        raise FileFormatError(
            f"`names` must be one for each of {len(arrays['items'])} items; got {len(names)}"
        )
    requests = Requests(
        sealed(arrays["items"]), names, sealed(arrays["sums"]), *map(int, plain["settled"])
    )
    seen = Seen(
        ledger=ledger,
        requests=requests,
        watches=tuple(_watch(watch, told, arrays) for watch, told in watches),
        counts=Counts(**plain["counts"]),
        urn=sealed(arrays["urn"]) if "urn" in arrays else None,
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
        blocks = RankBlocks(*(sealed(arrays[name]) for name in ("edges", "breaks", "gaps")))
        spread = float("nan") if plain["spread"] is None else plain["spread"]
        known = Reference(blocks, sealed(arrays["risk"]) if "risk" in arrays else None, spread)
    rule = DecisionRule.from_json(json.dumps(plain["rule"]))
    return MonitorPlan(rule=rule, reference=known, **told)


def _watch(watch: Watch, told: Mapping[str, Any], arrays: Mapping[str, Array]) -> Watch:
    wager = watch.wager
    if wager is not None:
        held = arrays[f"held_{watch.name}"]
        if held.shape != wager.held.shape:
            raise FileFormatError(f"the bets on the {watch.name} have the shape {held.shape}")
        wager = replace(wager, held=sealed(held), steps=int(told["steps"]))
    tally = WatchTally(told["n"], told["total"], told["recent"])
    return replace(watch, wager=wager, tally=tally, alarmed=told["alarmed"], since=told["since"])


def _steps(watch: Watch) -> int:
    return 0 if watch.wager is None else watch.wager.steps


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
