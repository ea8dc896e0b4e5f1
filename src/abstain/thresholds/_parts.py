"""Fields of a `DecisionRule` that follow from its parts, and the consistency of its parts."""

from typing import Any, Final

from abstain.errors import InputError

#: Name of the part for all samples, in a rule with several limits.
OVERALL: Final = "overall"


def parts_with_target(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parts that have a target; all parts if none has one."""
    return tuple(part for part in parts if part.rule.quantity) or parts


def summarize_parts(per: str, parts: tuple[Any, ...]) -> dict[str, Any]:
    """Return the fields of a rule that follow from its parts."""
    if not parts:
        raise InputError("`parts` of a decision rule is empty; at least one part is needed")
    targeted = parts_with_target(parts)
    first = targeted[0].rule
    threshold = None if per else parts[0].rule.threshold
    reasons = [f"{part.name}: {part.rule.reason}" for part in parts if not part.rule.attainable]
    reason = "; ".join(dict.fromkeys(reasons))
    populations = {part.rule.population for part in targeted}
    # The text in brackets is the effective sample size, which differs between groups.
    population = first.population if len(populations) == 1 else first.population.split(" (")[0]
    summary = {
        name: getattr(first, name)
        for name in ("method", "guarantee", "in_expectation", "score", "scale")
    }
    summary |= {"threshold": threshold, "reason": reason, "population": population}
    if not per:
        overall = next((part.rule for part in parts if part.name == OVERALL), None)
        names = ("target", "n", "accepted", "failures", "coverage", "risk")
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


def check_parts(rule: Any) -> None:
    """Raise InputError if the parts contradict each other or the other fields of the rule."""
    names = list(rule.names)
    if len(set(names)) < len(names):
        raise InputError(f"`parts` of a decision rule must be named once each; got {names}")
    nested = [part.name for part in rule.parts if part.rule.parts]
    if nested:
        raise InputError(f"a part of a decision rule must have no parts; {nested[0]!r} has some")
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
                f"`{name}` of a decision rule with parts must be {value!r}, as `of_parts` computes "
                f"it; got {getattr(rule, name)!r}"
            )
