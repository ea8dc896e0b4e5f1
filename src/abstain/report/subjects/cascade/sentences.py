"""Sentences on a cascade: stages, guarantee, expected shares and glossary."""

import math
from collections.abc import Iterable
from typing import Final

from abstain.evaluation.cascade import CascadeChecks
from abstain.plots.formatting import capitalize_first, format_percent
from abstain.report.document import GlossaryEntry
from abstain.report.formatting import format_count, format_number, format_share, join_quoted
from abstain.thresholds.cascade import PERSON, Cascade, CascadePlan, CascadeStage

_REMEDIES: Final = (
    "Possible remedies: more calibration data, a larger maximum risk, a larger capacity of the "
    "person, a larger delta, or a confidence score that ranks failures lower."
)


def cascade_sentences(checks: CascadeChecks) -> list[str]:
    """Describe the stages, the guarantee and the expected shares of the samples."""
    cascade = checks.cascade
    if not cascade.attainable:
        reason = cascade.reason[:1].upper() + cascade.reason[1:].rstrip(".")
        clause = _unmet_target_clause(cascade.plan, binary=checks.is_binary)
        return [f"Unattainable: {clause}.", f"{reason}.", _REMEDIES]
    return [
        _stages_sentence(cascade),
        _guarantee_sentence(cascade.plan, binary=checks.is_binary),
        _expectation_sentence(cascade),
    ]


def _stages_sentence(cascade: Cascade) -> str:
    active_stages = [stage for stage in cascade.stages if stage.answers != "none"]
    unused_names = [stage.name for stage in cascade.stages if stage.answers == "none"]
    clauses = [_stage_clause(stage, is_first=i == 0) for i, stage in enumerate(active_stages)]
    if not any(stage.answers == "all" for stage in active_stages):
        clauses.append(f"the {PERSON} answers all others")
    sentence = capitalize_first(f"{'; '.join(clauses)}.")
    if unused_names:
        verb = "is" if len(unused_names) == 1 else "are"
        sentence += f" {join_quoted(unused_names)} {verb} not used, because this costs less."
    return sentence


def _stage_clause(stage: CascadeStage, *, is_first: bool) -> str:
    name = f"\u201c{stage.name}\u201d"
    if stage.answers == "all":
        return f"{name} answers all {'samples' if is_first else 'others'}"
    units = f" ({stage.scale_description})" if stage.scale_description else ""
    condition = f"if its confidence is at least {format_threshold(stage)}{units}"
    return f"{name} answers {condition}" if is_first else f"otherwise, {name} answers {condition}"


def format_threshold(stage: CascadeStage) -> str:
    """Format a threshold with nine digits, to distinguish neighboring thresholds."""
    if stage.threshold is None:
        return "answers all" if stage.answers == "all" else "not run"
    return f"{stage.threshold:.9g}"


def _guarantee_sentence(plan: CascadePlan, *, binary: bool) -> str:
    probability = format_percent(round(1 - plan.delta, 10))
    return (
        f"Guarantee: {target_clause(plan, binary=binary)}, for new data like the calibration data. "
        f"It holds with a probability of at least {probability} over calibration sets."
    )


def target_clause(plan: CascadePlan, *, binary: bool) -> str:
    """Return the target as a clause."""
    risk = (
        f"at most {format_percent(plan.max_risk)} of all answers are wrong"
        if binary
        else f"the mean loss of all answers is at most {format_number(plan.max_risk)}"
    )
    if not plan.has_capacity_limit:
        return risk
    if plan.capacity == 0:
        return f"{risk}, and no sample is forwarded to the {PERSON}"
    # Rounded up, so that the sentence does not exceed the guarantee.
    capacity = format_percent(math.ceil(1e4 * plan.capacity - 1e-6) / 1e4)
    load = f"at most {capacity} of the samples are forwarded to the {PERSON}"
    if plan.reviews is not None and plan.arrivals is not None and plan.overflow is not None:
        load += (
            f" (with {format_count(plan.arrivals)} samples per day, more than "
            f"{format_count(plan.reviews)} on at most {format_percent(plan.overflow)} of the days)"
        )
    return f"{risk}, and {load}"


def _unmet_target_clause(plan: CascadePlan, *, binary: bool) -> str:
    clause = target_clause(plan, binary=binary)
    return f"no thresholds could be certified to guarantee that {clause} (delta {plan.delta:g})"


def _expectation_sentence(cascade: Cascade) -> str:
    shares = ", ".join(
        f"{format_share(share)} by {_quoted_name(name)}"
        for name, share in zip(cascade.names, cascade.answered, strict=True)
        if share > 0 or name == PERSON
    )
    return (
        f"Answers on the {format_count(cascade.n)} calibration samples: {shares}. The risk of "
        f"these answers is {format_number(cascade.risk)}, and the mean cost per sample is "
        f"{format_number(cascade.cost)}."
    )


def _quoted_name(name: str) -> str:
    return f"the {name}" if name == PERSON else f"\u201c{name}\u201d"


def facts(cascade: Cascade) -> Iterable[tuple[str, str]]:
    """Yield the properties of a cascade as pairs of label and value."""
    plan = cascade.plan
    yield "Maximum risk", f"{plan.max_risk:g}, delta {plan.delta:g}"
    yield (
        f"Capacity of the {PERSON}",
        f"{plan.capacity:.4g}" if plan.has_capacity_limit else "no limit",
    )
    if plan.reviews is not None:
        yield "Per day", f"{plan.reviews} of {plan.arrivals}, more on {plan.overflow:g} of the days"
    rate = "measured" if plan.person_error is None else f"{plan.person_error:g}, assumed"
    yield f"Error rate of the {PERSON}", rate
    costs = [f"{stage.name} {stage.cost:g}" for stage in cascade.stages]
    costs += [f"{PERSON} {plan.person_cost:g}", f"error {plan.error_cost:g}"]
    yield "Costs", ", ".join(costs)
    yield (
        "Calibration samples",
        f"{format_count(cascade.n)}, {format_count(cascade.tested)} of them for testing",
    )


_GLOSSARY: Final = {
    "Cascade": (
        "A sequence of models. The first model whose confidence reaches its threshold answers; a "
        "person answers the remaining samples."
    ),
    "Risk": (
        "The share of wrong answers, including those of the person; for other losses than 0/1, the "
        "mean loss."
    ),
    "Load": "The share of the samples that are forwarded to the person.",
    "Cost": (
        "The mean cost per sample: the cost of each model that is run, of the review by the "
        "person, and of errors if they have a cost."
    ),
    "Delta": (
        "The maximum probability that the guarantee fails. If the cascade is computed repeatedly "
        "from new calibration sets, at most this share of the cascades violates the guarantee."
    ),
    "Certified": (
        "The calibration data are split into two parts. The first part orders candidate thresholds "
        "from the safest to the cheapest. The second part tests them in this order, up to the "
        "first failure. Thresholds that pass the test are certified."
    ),
    "Holds, violated, inconclusive": (
        "All {level} confidence intervals are at or below the target, one is above it, or neither. "
        "Risk and load are checked jointly."
    ),
}
_SOURCE: Final = "Angelopoulos et al. (2021), https://arxiv.org/abs/2110.01052"


def glossary_entries(checks: CascadeChecks) -> tuple[GlossaryEntry, ...]:
    """Return the glossary entries for this cascade."""
    level = format_percent(checks.level)
    return tuple(
        GlossaryEntry(
            title, text.format(level=level), source=_SOURCE if title == "Certified" else ""
        )
        for title, text in _GLOSSARY.items()
    )
