"""Check that the fields and parts of a `DecisionRule` are consistent."""

from typing import Any, Final

from abstain.errors import DomainError, InputError
from abstain.thresholds.catalogue import RULES


def check_consistency(r: Any) -> None:
    """Raise DomainError if fields of a rule contradict each other."""
    _check_threshold(r)
    _check_counts(r)
    _check_calibration_results(r)
    _check_guarantee(r)


def _raise_contradiction(name: str, message: str) -> None:
    raise DomainError(f"`{name}` of a decision rule {message}")


def _check_threshold(r: Any) -> None:
    if r.threshold is None and not r.reason:
        _raise_contradiction("reason", "must explain a missing threshold; got an empty text")
    if r.threshold is not None and r.reason:
        _raise_contradiction("reason", f"must be empty if there is a threshold; got {r.reason!r}")
    if r.threshold is None and r.accepted:
        _raise_contradiction("accepted", f"must be 0 without a threshold; got {r.accepted}")


def _check_counts(r: Any) -> None:
    if r.accepted > r.n:
        _raise_contradiction("accepted", f"must be at most n = {r.n}; got {r.accepted}")
    if r.failures is not None and r.failures > r.accepted:
        message = f"must be at most accepted = {r.accepted}; got {r.failures}"
        _raise_contradiction("failures", message)


def _check_calibration_results(r: Any) -> None:
    """Check that the coverage and the risk on the calibration data agree with the counts."""
    n, accepted, coverage, risk = r.n, r.accepted, r.coverage, r.risk
    if (coverage is None) != (n == 0):
        message = f"must be null if and only if n is 0; got {coverage!r}, n = {n}"
        _raise_contradiction("coverage", message)
    if coverage is not None:
        has_no_accepted = coverage > 0 and accepted == 0
        if has_no_accepted or _coverage_contradicts_counts(r):
            message = f"must match {accepted} accepted samples of {n}; got {coverage!r}"
            _raise_contradiction("coverage", message)
    if (risk is None) != (r.failures is None or accepted == 0):
        message = f"must be null if and only if no losses were accepted; got {risk!r}"
        _raise_contradiction("risk", message)
    if risk is not None and _risk_contradicts_failures(r):
        message = f"must match {r.failures} failures of {accepted} accepted; got {risk!r}"
        _raise_contradiction("risk", message)


def _risk_contradicts_failures(r: Any) -> bool:
    """Return whether the recorded risk contradicts the recorded number of failures."""
    if r.method in RULES and RULES[r.method].is_binary:
        return bool(abs(r.risk - r.failures / r.accepted) > 1e-9)
    return bool(r.risk > 0 and r.failures == 0)


def _coverage_contradicts_counts(r: Any) -> bool:
    """Return whether the recorded coverage contradicts the recorded number of accepted samples.

    If a rule has a guarantee and weights, the weights are density ratios for another population.
    """
    is_unweighted = r.guarantee != "none" and not r.population
    return bool(is_unweighted and abs(r.coverage - r.accepted / r.n) > 1e-9)


def _check_guarantee(r: Any) -> None:
    """Check that the guarantee agrees with the target, delta, bound and population."""
    if r.guarantee != "none":
        _check_target_and_delta(r)
        _check_bound(r)
        return
    for name in ("delta", "bound"):
        value = getattr(r, name)
        if value is not None:
            _raise_contradiction(name, f"must be null without a guarantee; got {value!r}")
    if r.population:
        message = f"must be empty without a guarantee; got {r.population!r}"
        _raise_contradiction("population", message)
    if r.in_expectation:
        _raise_contradiction("in_expectation", "must be false without a guarantee; got True")


def _check_target_and_delta(r: Any) -> None:
    """Check the target and delta of a rule with a guarantee."""
    if r.method != "given" and r.guarantee not in RULES[r.method].guarantees:
        message = f"must be a guarantee of {r.method!r}; got {r.guarantee!r}"
        _raise_contradiction("guarantee", message)
    if r.target is None:
        _raise_contradiction("target", "must be a number if there is a guarantee; got None")
    if not r.in_expectation and not 0 < r.target < 1:
        message = f"must lie strictly between 0 and 1 with a delta; got {r.target!r}"
        _raise_contradiction("target", message)
    if (r.delta is None) != r.in_expectation:
        rule = "must be null for a guarantee in expectation and a number otherwise"
        _raise_contradiction("delta", f"{rule}; got {r.delta!r}")


def _check_bound(r: Any) -> None:
    """Check that the bound agrees with the target and with the observed value."""
    if r.threshold is None:
        return
    bound, target = r.bound, r.target
    if bound is None:
        message = "must be a number for a threshold with a guarantee; got None"
        _raise_contradiction("bound", message)
    # The bound of a coverage is a lower bound, and the bound of a risk is an upper bound.
    if r.guarantee == "coverage":
        sign, target_side, observed_side = -1, "at least", "at most"
    else:
        sign, target_side, observed_side = 1, "at most", "at least"
    if sign * (bound - target) > 1e-12:
        message = f"must be {target_side} the target {target!r}; got {bound!r}"
        _raise_contradiction("bound", message)
    observed = _observed_value(r)
    if observed is not None and sign * (observed - bound) > 1e-9:
        message = (
            f"must be {observed_side} the observed {r.guarantee} of {observed!r}; got {bound!r}"
        )
        _raise_contradiction("bound", message)


def _observed_value(r: Any) -> float | None:
    """Return the observed value of the guaranteed quantity, or None for a delta above 1/2.

    For a delta above 1/2, an upper bound may lie below the observed value, and a lower bound above
    it.
    """
    coverage, risk = r.coverage, r.risk
    if (r.delta or 0.0) > 0.5 or coverage is None:
        return None
    observed: dict[str, float | None] = {
        "coverage": coverage,
        "selective risk": risk,
        "generalized risk": None if risk is None else coverage * risk,
    }
    return observed[r.guarantee]


#: Name of the part for all samples, in a rule with several limits.
OVERALL: Final = "overall"


def parts_with_target(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parts that have a target, or all parts if no part has a target."""
    return tuple(part for part in parts if part.rule.quantity) or parts


def summarize_parts(per: str, parts: tuple[Any, ...]) -> dict[str, Any]:
    """Compute the fields of a rule that follow from its parts."""
    if not parts:
        raise InputError("`parts` of a decision rule is empty; at least one part is needed")
    targeted = parts_with_target(parts)
    first = targeted[0].rule
    threshold = None if per else parts[0].rule.threshold
    reasons = [f"{part.name}: {part.rule.reason}" for part in parts if not part.rule.attainable]
    reason = "; ".join(dict.fromkeys(reasons))
    populations = {part.rule.population for part in targeted}
    # The text in brackets contains the effective sample size, which differs between groups.
    population = first.population if len(populations) == 1 else first.population.split(" (")[0]
    summary = {
        name: getattr(first, name)
        for name in ("method", "guarantee", "in_expectation", "score", "scale")
    }
    summary |= {"threshold": threshold, "reason": reason, "population": population}
    if not per:
        overall = next((part.rule for part in parts if part.name == OVERALL), None)
        names = ("target", "bound", "n", "accepted", "failures", "coverage", "risk")
        return summary | {name: getattr(overall, name) for name in names if overall}
    rules = [part.rule for part in parts]
    targets = {rule.target for rule in rules}
    n, accepted = sum(rule.n for rule in rules), sum(rule.accepted for rule in rules)
    known_failures = [rule.failures for rule in rules if rule.failures is not None]
    failures = sum(known_failures) if len(known_failures) == len(rules) else None
    # With density ratios, the share of each group in the target population is unknown.
    has_equal_weights = not population
    coverage = accepted / n if n and has_equal_weights else None
    risk = None
    if has_equal_weights and failures is not None and accepted:
        risk = sum((rule.risk or 0.0) * rule.accepted for rule in rules) / accepted
    return summary | {
        "target": targets.pop() if len(targets) == 1 else None,
        "n": n,
        "accepted": accepted,
        "failures": failures,
        "coverage": coverage,
        "risk": risk,
    }


def _has_limits(rule: Any) -> bool:
    return bool(rule.parts) and not rule.per


def _limit_targets(rule: Any) -> tuple[Any, ...]:
    """Return the names, guarantees and targets of the limits of a group."""
    return tuple((p.name, p.rule.guarantee, p.rule.target) for p in rule.parts)


def check_parts(rule: Any) -> None:
    """Raise InputError if the parts of a rule contradict each other or its other fields."""
    names = list(rule.names)
    if len(set(names)) < len(names):
        raise InputError(f"`parts` of a decision rule must be named once each; got {names}")
    nested = [part.name for part in rule.parts if part.rule.parts]
    if nested and not (rule.per and all(_has_limits(part.rule) for part in rule.parts)):
        raise InputError(
            "only the parts of a decision rule with `per` may have parts, which must be the limits "
            f"of each group; {nested[0]!r} has parts"
        )
    if len({_limit_targets(part.rule) for part in rule.parts}) > 1:
        raise InputError("all groups of a decision rule must have the same limits")
    targeted = parts_with_target(rule.parts)
    for field in ("score", "scale", "method"):
        values = {getattr(part.rule, field) for part in targeted}
        if len(values) > 1:
            listed = ", ".join(map(repr, sorted(values)))
            raise InputError(f"the parts of a decision rule must have one {field}; got {listed}")
    if not rule.per and len({part.rule.threshold for part in rule.parts}) > 1:
        raise InputError("`per` must name the groups if there are several thresholds; got ''")
    deltas = [p.rule.delta for p in targeted if p.rule.delta and p.rule.attainable]
    if rule.delta is not None or rule.joint:
        if rule.joint and rule.per:
            is_consistent = rule.delta is not None and sum(deltas) <= rule.delta * (1 + 1e-9)
            requirement = "be at least the sum of the deltas of its parts, which hold jointly"
        else:
            is_consistent = set(deltas) <= {rule.delta}
            requirement = "be the delta of each of its parts"
        if not is_consistent:
            raise InputError(
                f"`delta` of a decision rule must {requirement}; got {rule.delta} and "
                f"{sorted(set(deltas))}"
            )
    for name, value in summarize_parts(rule.per, rule.parts).items():
        if getattr(rule, name) != value:
            raise InputError(
                f"`{name}` of a decision rule with parts must be {value!r}, as `from_parts` "
                f"computes it; got {getattr(rule, name)!r}"
            )
