"""Which fields of a `DecisionRule` contradict each other."""

from typing import Any

from abstain.errors import DomainError
from abstain.thresholds.entry import RULES


def refuse_contradictions(r: Any) -> None:
    """Refuse the fields of a rule, each valid alone, that cannot stand beside each other."""
    _threshold(r)
    _counts(r)
    _measured(r)
    _promise(r)


def _clash(name: str, message: str) -> None:
    raise DomainError(f"`{name}` of a decision rule {message}")


def _threshold(r: Any) -> None:
    if r.threshold is None and not r.reason:
        _clash("reason", "must say why there is no threshold; got an empty text")
    if r.threshold is not None and r.reason:
        _clash("reason", f"must be empty beside a threshold; got {r.reason!r}")
    if r.threshold is None and r.accepted:
        _clash("accepted", f"must be 0 without a threshold; got {r.accepted}")


def _counts(r: Any) -> None:
    if r.accepted > r.n:
        _clash("accepted", f"must be at most n = {r.n}; got {r.accepted}")
    if r.failures is not None and r.failures > r.accepted:
        _clash("failures", f"must be at most accepted = {r.accepted}; got {r.failures}")


def _measured(r: Any) -> None:
    """Compare what was measured on the calibration data with the counts."""
    n, accepted, coverage, risk = r.n, r.accepted, r.coverage, r.risk
    if (coverage is None) != (n == 0):
        _clash("coverage", f"is known exactly when there are samples; got {coverage!r}, n = {n}")
    if coverage is not None and ((coverage > 0 and accepted == 0) or _beyond(r)):
        _clash("coverage", f"must fit {accepted} accepted of {n}; got {coverage!r}")
    if (risk is None) != (r.failures is None or accepted == 0):
        _clash("risk", f"is known exactly when losses were accepted; got {risk!r}")
    if risk is not None and _unfit(r):
        _clash("risk", f"must fit {r.failures} failures of {accepted}; got {risk!r}")


def _unfit(r: Any) -> bool:
    """Whether the risk is not what the failures make it, where it is their share or nothing."""
    if r.method in RULES and RULES[r.method].binary:
        return bool(abs(r.risk - r.failures / r.accepted) > 1e-9)
    return bool(r.risk > 0 and r.failures == 0)


def _beyond(r: Any) -> bool:
    """Whether the coverage is not the share of the samples, where no weights are possible.

    Density ratios are weights too: a promise to other data may rest on them.
    """
    counted = r.guarantee != "none" and not r.promised_for
    return bool(counted and abs(r.coverage - r.accepted / r.n) > 1e-9)


def _promise(r: Any) -> None:
    """Compare the guarantee with its numbers."""
    if r.guarantee == "none":
        for name in ("delta", "bound"):
            if getattr(r, name) is not None:
                _clash(name, f"must be null without a guarantee; got {getattr(r, name)!r}")
        if r.promised_for:
            _clash("promised_for", f"must be empty without a guarantee; got {r.promised_for!r}")
        if r.in_expectation:
            _clash("in_expectation", "must be false without a guarantee; got True")
        return
    _promised(r)
    _certified(r)


def _promised(r: Any) -> None:
    if r.method != "given" and r.guarantee not in RULES[r.method].promises:
        _clash("guarantee", f"must be one that {r.method!r} gives; got {r.guarantee!r}")
    if r.target is None:
        _clash("target", "must be given with a guarantee; got None")
    if not r.in_expectation and not 0 < r.target < 1:
        _clash("target", f"must lie strictly between 0 and 1 with a delta; got {r.target!r}")
    if (r.delta is None) != r.in_expectation:
        rule = "must be null for a guarantee in expectation and a number otherwise"
        _clash("delta", f"{rule}; got {r.delta!r}")


def _certified(r: Any) -> None:
    if r.threshold is None:
        return
    bound, target = r.bound, r.target
    if bound is None:
        _clash("bound", "must be given with a guaranteed threshold; got None")
    below = r.guarantee == "coverage"
    if (bound < target - 1e-12) if below else (bound > target + 1e-12):
        side = "at least" if below else "at most"
        _clash("bound", f"must be {side} the target {target!r}; got {bound!r}")
    seen = _seen(r)
    if seen is not None and ((bound > seen + 1e-9) if below else (bound < seen - 1e-9)):
        rule = f"must leave a margin beside the {r.guarantee} of {seen!r} that was seen"
        _clash("bound", f"{rule}; got {bound!r}")


def _seen(r: Any) -> float | None:
    """Return what is guaranteed, as it was on the calibration data; None for a delta above 1/2.

    So large a delta allows a bound on the wrong side of what was seen.
    """
    coverage, risk = r.coverage, r.risk
    if (r.delta or 0.0) > 0.5 or coverage is None:
        return None
    whole = None if risk is None else coverage * risk
    seen: dict[str, float | None]
    seen = {"coverage": coverage, "selective risk": risk, "generalized risk": whole}
    return seen[r.guarantee]
