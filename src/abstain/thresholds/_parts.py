"""Fields of a `DecisionRule` that follow from its parts, and which parts contradict each other."""

from typing import Any, Final

from abstain.errors import InputError

#: The part of a rule with several limits that is about all samples.
OVERALL: Final = "overall"


def with_target(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parts whose target is about something, or all parts if there is none."""
    return tuple(part for part in parts if part.rule.quantity) or parts


def summarize(per: str, parts: tuple[Any, ...]) -> dict[str, Any]:
    """Return the fields of a rule that follow from its parts."""
    if not parts:
        raise InputError("`parts` of a decision rule is empty; at least one part is needed")
    targeted = with_target(parts)
    first = targeted[0].rule
    threshold = None if per else parts[0].rule.threshold
    reasons = [f"{part.name}: {part.rule.reason}" for part in parts if not part.rule.attainable]
    reason = "; ".join(dict.fromkeys(reasons))
    populations = {part.rule.promised_for for part in targeted}
    # The text in brackets differs: it gives the effective sample size of each group.
    promised_for = (
        first.promised_for if len(populations) == 1 else first.promised_for.split(" (")[0]
    )
    summary = {
        name: getattr(first, name)
        for name in ("method", "guarantee", "in_expectation", "score", "scale")
    }
    summary |= {"threshold": threshold, "reason": reason, "promised_for": promised_for}
    if not per:
        overall = next((part.rule for part in parts if part.name == OVERALL), None)
        names = ("target", "n", "accepted", "failures", "coverage", "risk")
        return summary | {name: getattr(overall, name) for name in names if overall}
    rules = [part.rule for part in parts]
    targets = {rule.target for rule in rules}
    n, accepted = sum(rule.n for rule in rules), sum(rule.accepted for rule in rules)
    known_failures = [rule.failures for rule in rules if rule.failures is not None]
    failures = sum(known_failures) if len(known_failures) == len(rules) else None
    # With density ratios the size of each group in the other population is unknown.
    has_equal_weights = not promised_for
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
    """Refuse parts that contradict each other or the other fields of the rule."""
    names = list(rule.names)
    if len(set(names)) < len(names):
        raise InputError(f"`parts` of a decision rule must be named once each; got {names}")
    nested = [part.name for part in rule.parts if part.rule.parts]
    if nested:
        raise InputError(f"a part of a decision rule must have no parts; {nested[0]!r} has some")
    targeted = with_target(rule.parts)
    for field in ("score", "scale", "method"):
        values = {getattr(part.rule, field) for part in targeted}
        if len(values) > 1:
            listed = ", ".join(map(repr, sorted(values)))
            raise InputError(f"the parts of a decision rule must have one {field}; got {listed}")
    if not rule.per and len({part.rule.threshold for part in rule.parts}) > 1:
        raise InputError(
            "`per` must name the groups of the thresholds, where there are several; got ''"
        )
    deltas = [p.rule.delta for p in targeted if p.rule.delta and p.rule.attainable]
    if rule.delta is not None or rule.joint:
        if rule.joint and rule.per:
            is_consistent = rule.delta is not None and sum(deltas) <= rule.delta * (1 + 1e-9)
            requirement = "be at least the sum of those of its parts, whose promises are joint"
        else:
            is_consistent = set(deltas) <= {rule.delta}
            requirement = "be that of each of its parts"
        if not is_consistent:
            raise InputError(
                f"`delta` of a decision rule must {requirement}; got {rule.delta} and "
                f"{sorted(set(deltas))}"
            )
    for name, value in summarize(rule.per, rule.parts).items():
        if getattr(rule, name) != value:
            raise InputError(
                f"`{name}` of a decision rule with parts must be {value!r}, as `of_parts` computes "
                f"it; got {getattr(rule, name)!r}"
            )
