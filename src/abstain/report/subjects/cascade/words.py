"""What a cascade does and promises, and what came of it elsewhere, in plain sentences."""

import math
from collections.abc import Iterable
from typing import Final

from abstain.evaluation.cascade import CascadeChecks
from abstain.plots.words import percent
from abstain.report.document import Entry
from abstain.report.words import count, listed, number
from abstain.thresholds.cascade import PERSON, Cascade, CascadePlan, CascadeStage

_HELP: Final = (
    "What would help: more calibration data, a larger risk, a larger share for the person, a "
    "larger delta, or a model that knows better when it is wrong."
)


def cascade_sentences(checks: CascadeChecks) -> list[str]:
    """Say who answers what, what is promised and what to expect."""
    c = checks.cascade
    if not c.attainable:
        reason = c.reason[:1].upper() + c.reason[1:].rstrip(".")
        lacking = _lacking(c.plan, binary=checks.is_binary)
        return [f"Unattainable: {lacking}.", f"{reason}.", _HELP]
    return [_who(c), _promise(c.plan, binary=checks.is_binary), _expected(c)]


def _who(c: Cascade) -> str:
    run = [stage for stage in c.stages if stage.answers != "none"]
    idle = [stage.name for stage in c.stages if stage.answers == "none"]
    said = [_stage(stage, first=place == 0) for place, stage in enumerate(run)]
    rest = [] if any(stage.answers == "all" for stage in run) else [f"the {PERSON} the rest"]
    left = f" {listed(idle)} does not pay and is not run." if idle else ""
    sentence = "; ".join([*said, *rest])
    return f"{sentence[:1].upper()}{sentence[1:]}.{left}"


def _stage(stage: CascadeStage, *, first: bool) -> str:
    who = f"\u201c{stage.name}\u201d"
    if stage.answers == "all":
        return f"{who} answers {'everything' if first else 'the rest'}"
    units = f" ({stage.units})" if stage.units else ""
    said = f"{who} answers when its confidence is at least {threshold_said(stage)}{units}"
    return said if first else f"of what is left, {said}"


def threshold_said(stage: CascadeStage) -> str:
    """Write a threshold with enough digits to tell it from its neighbors."""
    if stage.threshold is None:
        return "answers all" if stage.answers == "all" else "not run"
    return f"{stage.threshold:.9g}"


def _promise(plan: CascadePlan, *, binary: bool) -> str:
    chance = percent(round(1 - plan.delta, 10))
    where = "in the long run, on new data like the calibration data"
    return (
        f"Promised for at least {chance} of calibration sets like this one: "
        f"{target_said(plan, binary=binary)}, {where}."
    )


def target_said(plan: CascadePlan, *, binary: bool) -> str:
    """Say what is asked for as a clause."""
    risk = (
        f"at most {percent(plan.max_risk)} of all answers are wrong"
        if binary
        else f"the mean loss of all answers is at most {number(plan.max_risk)}"
    )
    if not plan.limited:
        return risk
    if plan.capacity == 0:
        return f"{risk}, and nothing goes to the {PERSON}"
    # Rounded up, so that nothing is said that was not promised.
    most = percent(math.ceil(1e4 * plan.capacity - 1e-6) / 1e4)
    load = f"at most {most} of the samples go to the {PERSON}"
    if plan.reviews is not None and plan.arrivals is not None and plan.overflow is not None:
        load += (
            f" (so that of {count(plan.arrivals)} a day there are more than {count(plan.reviews)} "
            f"on at most {percent(plan.overflow)} of the days)"
        )
    return f"{risk}, and {load}"


def _lacking(plan: CascadePlan, *, binary: bool) -> str:
    said = target_said(plan, binary=binary)
    return f"at delta {plan.delta:g} no thresholds could be certified to promise that {said}"


def _expected(c: Cascade) -> str:
    shares = ", ".join(
        f"{100 * share:.3g} % by {_called(name)}"
        for name, share in zip(c.names, c.answered, strict=True)
        if share > 0 or name == PERSON
    )
    return (
        f"The {count(c.n)} calibration samples were answered: {shares}. The risk of these "
        f"answers is {number(c.risk)}, the mean cost of a sample {number(c.cost)}."
    )


def _called(name: str) -> str:
    return f"the {name}" if name == PERSON else f"\u201c{name}\u201d"


def facts(c: Cascade) -> Iterable[tuple[str, str]]:
    """Return what a cascade is, label and value."""
    plan = c.plan
    yield "Largest risk", f"{plan.max_risk:g}, delta {plan.delta:g}"
    yield f"Capacity of the {PERSON}", f"{plan.capacity:.4g}" if plan.limited else "no limit"
    if plan.reviews is not None:
        yield "By day", f"{plan.reviews} of {plan.arrivals}, more on {plan.overflow:g} of the days"
    rate = "measured" if plan.person_error is None else f"{plan.person_error:g}, said"
    yield f"Error rate of the {PERSON}", rate
    costs = [f"{stage.name} {stage.cost:g}" for stage in c.stages]
    costs += [f"{PERSON} {plan.person_cost:g}", f"error {plan.error_cost:g}"]
    yield "Costs", ", ".join(costs)
    yield "Calibration samples", f"{count(c.n)}, of which {count(c.tested)} test"


_GLOSSARY: Final = {
    "Cascade": (
        "Models that are asked one after the other: the first that is sure enough answers, and a "
        "person what none of them does."
    ),
    "Risk": (
        "Of all answers, the person's among them, how many are wrong; with a loss of another kind, "
        "their mean loss."
    ),
    "Load": "The share of the samples that goes to the person.",
    "Cost": (
        "What a sample costs on average: each model that is run on it, the review if it comes to "
        "that, and its error if errors have a price."
    ),
    "Delta": (
        "The chance that the promise fails: drawing other calibration data again and again, at "
        "most this share of the cascades would break it. One cascade either keeps it or does not."
    ),
    "Certified": (
        "Of two parts of the calibration data, the first orders the thresholds that are worth it "
        "from the safest to the cheapest; the second tests them in that order, and stops at the "
        "first that fails. What it passed is certified."
    ),
    "Holds, broken, cannot tell": (
        "The {level} intervals lie at or below what was promised, one lies above, or neither. Risk "
        "and load are judged together."
    ),
}
_SOURCE: Final = "Angelopoulos et al. (2021), https://arxiv.org/abs/2110.01052"


def cascade_words(checks: CascadeChecks) -> tuple[Entry, ...]:
    """Return the entries of the glossary."""
    level = percent(checks.level)
    return tuple(
        Entry(title, said.format(level=level), source=_SOURCE if title == "Certified" else "")
        for title, said in _GLOSSARY.items()
    )
