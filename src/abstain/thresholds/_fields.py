"""What each field of a `DecisionRule` may hold, alone and beside the others."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from abstain.errors import DomainError, InputError

#: The names of the methods in the catalogue, and "given" for a threshold from elsewhere.
METHOD_NAMES: Final = (
    "coverage",
    "risk",
    "cost",
    "chow",
    "sgr",
    "learn_then_test",
    "conformal_risk_control",
    "coverage_guarantee",
    "given",
)
#: What each method with a guarantee may promise.
_PROMISED: Final = {
    "sgr": ("selective risk",),
    "learn_then_test": ("selective risk", "generalized risk"),
    "conformal_risk_control": ("generalized risk",),
    "coverage_guarantee": ("coverage",),
}
GUARANTEES: Final = ("none", "selective risk", "generalized risk", "coverage")


def _fail(name: str, rule: str, value: object) -> None:
    msg = f"`{name}` of a decision rule must {rule}; got {value!r}"
    raise InputError(msg)


def _number(name: str, value: Any, low: float, high: float) -> float:
    """Return a finite number in [low, high]; bools and strings are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail(name, "be a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _fail(name, "be finite", value)
    if not low <= number <= high:
        span = f"lie in [{low:g}, {high:g}]" if high < math.inf else f"be at least {low:g}"
        _fail(name, span, value)
    return number


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        _fail(name, "be a whole number of at least 0", value)
    return int(value)


def _choice(allowed: tuple[str, ...]) -> Callable[[str, Any], str]:
    def chosen(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            _fail(name, f"be one of {', '.join(map(repr, allowed))}", value)
        return str(value)

    return chosen


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        _fail(name, "be a text", value)
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        _fail(name, "be true or false", value)
    return bool(value)


def _in(low: float, high: float) -> Callable[[str, Any], float]:
    return lambda name, value: _number(name, value, low, high)


def _optional(kind: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else kind(name, value)


def _probability(name: str, value: Any) -> float:
    number = _number(name, value, 0.0, 1.0)
    if number in {0.0, 1.0}:
        _fail(name, "lie strictly between 0 and 1", value)
    return number


#: How each field is read; the order is that of the record.
FIELDS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "method": _choice(METHOD_NAMES),
    "threshold": _optional(_in(-math.inf, math.inf)),
    "guarantee": _choice(GUARANTEES),
    "in_expectation": _flag,
    "target": _optional(_in(0.0, math.inf)),
    "delta": _optional(_probability),
    "bound": _optional(_in(0.0, math.inf)),
    "n": _count,
    "accepted": _count,
    "failures": _optional(_count),
    "coverage": _optional(_in(0.0, 1.0)),
    "risk": _optional(_in(0.0, math.inf)),
    "score": _text,
    "reason": _text,
    "scale": _choice(("log-odds", "probability", "score", "unknown")),
}


def read(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the fields one by one, then together; return them in their own types."""
    values = {name: kind(name, fields[name]) for name, kind in FIELDS.items()}
    _threshold(values)
    _counts(values)
    _measured(values)
    _promise(values)
    return values


def _clash(name: str, message: str) -> None:
    msg = f"`{name}` of a decision rule {message}"
    raise DomainError(msg)


def _threshold(v: Mapping[str, Any]) -> None:
    if v["threshold"] is None and not v["reason"]:
        _clash("reason", "must say why there is no threshold; got an empty text")
    if v["threshold"] is not None and v["reason"]:
        _clash("reason", f"must be empty beside a threshold; got {v['reason']!r}")
    if v["threshold"] is None and v["accepted"]:
        _clash("accepted", f"must be 0 without a threshold; got {v['accepted']}")


def _counts(v: Mapping[str, Any]) -> None:
    if v["accepted"] > v["n"]:
        _clash("accepted", f"must be at most n = {v['n']}; got {v['accepted']}")
    if v["failures"] is not None and v["failures"] > v["accepted"]:
        _clash("failures", f"must be at most accepted = {v['accepted']}; got {v['failures']}")


def _measured(v: Mapping[str, Any]) -> None:
    """Compare what was measured on the calibration data with the counts."""
    n, accepted, coverage, risk = v["n"], v["accepted"], v["coverage"], v["risk"]
    if (coverage is None) != (n == 0):
        _clash("coverage", f"is known exactly when there are samples; got {coverage!r}, n = {n}")
    if coverage is not None and ((coverage > 0 and accepted == 0) or _beyond(v)):
        _clash("coverage", f"must fit {accepted} accepted of {n}; got {coverage!r}")
    if (risk is None) != (v["failures"] is None or accepted == 0):
        _clash("risk", f"is known exactly when losses were accepted; got {risk!r}")
    if risk is not None and _unfit(v):
        _clash("risk", f"must fit {v['failures']} failures of {accepted}; got {risk!r}")


def _unfit(v: Mapping[str, Any]) -> bool:
    """Whether the risk is not what the failures make it, where it is their share or nothing."""
    if v["method"] == "sgr":
        return bool(abs(v["risk"] - v["failures"] / v["accepted"]) > 1e-9)
    return bool(v["risk"] > 0 and v["failures"] == 0)


def _beyond(v: Mapping[str, Any]) -> bool:
    """Whether the coverage is not the share of the samples, where no weights are possible."""
    return bool(v["guarantee"] != "none" and abs(v["coverage"] - v["accepted"] / v["n"]) > 1e-9)


def _promise(v: Mapping[str, Any]) -> None:
    """Compare the guarantee with its numbers."""
    if v["guarantee"] == "none":
        for name in ("delta", "bound"):
            if v[name] is not None:
                _clash(name, f"must be null without a guarantee; got {v[name]!r}")
        if v["in_expectation"]:
            _clash("in_expectation", "must be false without a guarantee; got True")
        return
    _promised(v)
    _certified(v)


def _promised(v: Mapping[str, Any]) -> None:
    if v["method"] != "given" and v["guarantee"] not in _PROMISED.get(v["method"], ()):
        _clash("guarantee", f"must be one that {v['method']!r} gives; got {v['guarantee']!r}")
    if v["target"] is None:
        _clash("target", "must be given with a guarantee; got None")
    if not v["in_expectation"] and not 0 < v["target"] < 1:
        _clash("target", f"must lie strictly between 0 and 1 with a delta; got {v['target']!r}")
    if (v["delta"] is None) != v["in_expectation"]:
        rule = "must be null for a guarantee in expectation and a number otherwise"
        _clash("delta", f"{rule}; got {v['delta']!r}")


def _certified(v: Mapping[str, Any]) -> None:
    if v["threshold"] is None:
        return
    bound, target = v["bound"], v["target"]
    if bound is None:
        _clash("bound", "must be given with a guaranteed threshold; got None")
    below = v["guarantee"] == "coverage"
    if (bound < target - 1e-12) if below else (bound > target + 1e-12):
        side = "at least" if below else "at most"
        _clash("bound", f"must be {side} the target {target!r}; got {bound!r}")
    seen = _seen(v)
    if seen is not None and ((bound > seen + 1e-9) if below else (bound < seen - 1e-9)):
        rule = f"must leave a margin beside the {v['guarantee']} of {seen!r} that was seen"
        _clash("bound", f"{rule}; got {bound!r}")


def _seen(v: Mapping[str, Any]) -> float | None:
    """Return what is guaranteed, as it was on the calibration data; None for a delta above 1/2.

    So large a delta allows a bound on the wrong side of what was seen.
    """
    coverage, risk = v["coverage"], v["risk"]
    if (v["delta"] or 0.0) > 0.5 or coverage is None:
        return None
    whole = None if risk is None else coverage * risk
    seen: dict[str, float | None]
    seen = {"coverage": coverage, "selective risk": risk, "generalized risk": whole}
    return seen[v["guarantee"]]
