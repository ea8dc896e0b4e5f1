"""The verdict: what the numbers say, in plain words, for someone who never read a paper on them."""

import math

from abstain.evaluation.records import ScoreCurves
from abstain.metrics import METRICS, metric_named
from abstain.metrics.catalogue import CLASSIFIER_METRIC, DEFAULT_METRIC
from abstain.plots.words import percent
from abstain.report.subjects.evaluation.lookup import Pivot, said_with
from abstain.report.words import number, of_thousand
from abstain.tables import split_name
from abstain.typing import Split

_MANY_SPLITS = 3


def verdict(pivot: Pivot) -> list[str]:
    """Return a few sentences; each is skipped when the number behind it is not there."""
    if not pivot.cases:
        return []
    split = pivot.splits[0]
    leader = leading_score(pivot, split)
    case = pivot.cases.get((split, leader))
    sentences = [
        _where(pivot, split) + _without_abstention(pivot, case),
        _best_score(pivot, split),
        _at_a_coverage(pivot, split, leader, case),
        _elsewhere(pivot),
    ]
    return [sentence for sentence in sentences if sentence]


def leading_score(pivot: Pivot, split: Split) -> str:
    """Return the score with the best AUGRC, or the first one when none leads."""
    leaders = pivot.leaders(split, DEFAULT_METRIC)
    return leaders[0] if leaders else pivot.scores[0]


def _where(pivot: Pivot, split: Split) -> str:
    return f"On {split_name(split)}: " if pivot.several else ""


def _without_abstention(pivot: Pivot, case: ScoreCurves | None) -> str:
    if case is None:
        return ""
    if not pivot.evaluation.is_binary:
        return f"Accepting every answer, the mean loss is {number(case.risk)}."
    right = pivot.value(case.split, case.score, CLASSIFIER_METRIC)
    tail = "" if math.isnan(right) else f" ({METRICS[CLASSIFIER_METRIC].title} {number(right)})"
    if case.risk == 0:
        return "Accepting every answer, none is wrong: there is nothing to abstain from."
    return f"Accepting every answer, {of_thousand(case.risk)} of 1000 are wrong{tail}."


def _best_score(pivot: Pivot, split: Split) -> str:
    if len(pivot.scores) == 1:
        value = pivot.value(split, pivot.scores[0], DEFAULT_METRIC)
        if math.isnan(value):
            return ""
        let = (
            "a silent failure through with a risk of"
            if pivot.evaluation.is_binary
            else "through a mean loss of"
        )
        interval = _interval(pivot, split, pivot.scores[0])
        return (
            f"Averaged over all coverages, “{pivot.scores[0]}” lets {let} {number(value)} "
            f"(AUGRC{interval})."
        )
    leaders = pivot.leaders(split, DEFAULT_METRIC)
    if not leaders:
        return "By AUGRC, the overall risk of silent failures, no score is ahead of the others."
    named = " and ".join(f"“{score}”" for score in leaders)
    verb = "has" if len(leaders) == 1 else "share"
    shown = number(pivot.value(split, leaders[0], DEFAULT_METRIC))
    interval = _interval(pivot, split, leaders[0])
    return (
        f"Of {len(pivot.scores)} scores, {named} {verb} the lowest risk of silent failures "
        f"(AUGRC {shown}{interval}). Whether that lead is more than chance, abstain compare tells."
    )


def _interval(pivot: Pivot, split: Split, score: str) -> str:
    result = pivot.results.get((split, score, DEFAULT_METRIC))
    return said_with(result) if result else ""


def _at_a_coverage(pivot: Pivot, split: Split, score: str, case: ScoreCurves | None) -> str:
    """Say what the first of the headline metrics that keeps a coverage is."""
    kept = {name: metric_named(name).measurement.at_coverage for name in pivot.headline}
    name, coverage = next(((name, x) for name, x in kept.items() if x is not None), ("", 0.0))
    risk, share = pivot.value(split, score, name), percent(coverage)
    if math.isnan(risk) or case is None or case.risk == 0:
        return ""
    lead = f"Keeping at least the most confident {share} by “{score}”"
    if not pivot.evaluation.is_binary:
        return f"{lead}, the mean loss is {number(risk)} instead of {number(case.risk)}."
    if risk >= case.risk:
        return f"No threshold that keeps {share} by “{score}” makes the accepted answers better."
    return (
        f"{lead}, {of_thousand(risk)} of 1000 accepted answers are wrong "
        f"instead of {of_thousand(case.risk)}."
    )


def _elsewhere(pivot: Pivot) -> str:
    """Name the easiest and the hardest split when there are several."""
    risks = dict.fromkeys(pivot.splits, math.nan)
    # The same whatever the score is: that of the first.
    risks |= {split: case.risk for (split, _), case in reversed(pivot.cases.items())}
    if len(risks) < _MANY_SPLITS or len(set(risks.values())) == 1:
        return ""
    low = min(risks, key=lambda split: risks[split])
    high = max(risks, key=lambda split: risks[split])
    if pivot.evaluation.is_binary:
        easy, hard = of_thousand(risks[low]), of_thousand(risks[high])
        return (
            f"Across the {len(risks)} splits, answers wrong without abstention go from {easy} "
            f"of 1000 ({split_name(low)}) to {hard} of 1000 ({split_name(high)})."
        )
    easy, hard = number(risks[low]), number(risks[high])
    return (
        f"Across the {len(risks)} splits, the mean loss without abstention goes from {easy} "
        f"({split_name(low)}) to {hard} ({split_name(high)})."
    )
