"""Sentences with the main result of an evaluation."""

import math
from collections.abc import Collection

from abstain.evaluation.records import Result
from abstain.metrics import metric_named
from abstain.plots.formatting import format_p_value, format_percent, metric_title
from abstain.report.formatting import format_count, format_number, format_share, join_first
from abstain.report.subjects.evaluation.first_screen import (
    FixedFormat,
    count_splits,
    is_share,
)
from abstain.report.subjects.evaluation.lookup import ResultLookup, interval_clause
from abstain.tables import split_name
from abstain.typing import Split

_MIN_SPLITS_FOR_RANGE = 3
#: Maximum number of competitors that the answer names.
_MAX_NAMES = 3


def evaluation_verdict(lookup: ResultLookup) -> list[str]:
    """Return the main result of an evaluation, which names the best split or score."""
    best = lookup.best
    if best is None:
        return [sentence for sentence in [_full_coverage_sentence(lookup)] if sentence]
    if not lookup.has_several_splits and len(lookup.scores) == 1:
        sentences = [
            _full_coverage_sentence(lookup),
            f"{_metric_value(lookup, best)}.",
            _coverage_sentence(lookup, best.split, best.score),
        ]
    else:
        competitors = _competitors(lookup, best)
        sentences = [
            _best_sentence(lookup, best, competitors),
            _comparison_sentence(lookup, best, competitors),
        ]
        if not lookup.has_several_splits:
            sentences.append(_coverage_sentence(lookup, best.split, best.score))
            answered = lookup.evaluation.answered
            if answered:
                n, n_total = format_count(answered.n), format_count(answered.n_total)
                sentences.append(f"The model answered {n} of {n_total} questions.")
        elif not lookup.models_are_compared:
            sentences.append(_split_range_sentence(lookup))
    return [sentence for sentence in sentences if sentence]


def find_best_score(lookup: ResultLookup, split: Split) -> str:
    """Return the best score of a split by the key metric, or the first score."""
    best = lookup.best_results.get(split)
    return lookup.scores[0] if best is None else best.score


# ------------------------------------------------------------------------------------ best score
def _competitors(lookup: ResultLookup, best: Result) -> list[Result]:
    """Return the results that are compared with the best result, best first."""
    if lookup.has_several_splits:
        return [r for r in lookup.best_results.values() if r is not best]
    groups = lookup.ranked_scores(best.split)
    results = (lookup.results[best.split, group[0], lookup.key_metric] for group in groups)
    same_ranking = next(group for group in lookup.rankings if best.score in group)
    return [r for r in results if r.score not in same_ranking and not math.isnan(r.value)]


def _name(lookup: ResultLookup, result: Result) -> str:
    """Return the name of a split, or the names of all scores with the same ranking."""
    if lookup.has_several_splits:
        return lookup.split_labels[result.split]
    group = next(group for group in lookup.rankings if result.score in group)
    return join_first(group, _MAX_NAMES)


def _metric_value(lookup: ResultLookup, result: Result) -> str:
    """Return a clause with the key metric and its interval, such as "AUGRC is 0.1"."""
    is_binary = lookup.evaluation.is_binary
    if is_share(result.metric.name, is_binary=is_binary):
        value = FixedFormat.of([result], is_binary=is_binary).value(result.value)
        return f"{metric_title(result.metric.name)} is {value}"
    clause = interval_clause(result)
    interval = f" ({clause.removeprefix(', ')})" if clause else ""
    return f"{metric_title(result.metric.name)} is {format_number(result.value)}{interval}"


def _best_sentence(lookup: ResultLookup, best: Result, competitors: list[Result]) -> str:
    """Return the sentence that names the best split and score."""
    name = _name(lookup, best)
    if not competitors:
        return f"{_metric_value(lookup, best)} for {name}."
    if lookup.has_several_splits and len(lookup.scores) > 1:
        name += f" with score {best.score}"
    tested = [lookup.difference(r.split, r.score, best) for r in competitors]
    if all(difference is not None and difference.is_significant for difference in tested):
        verb = "are" if _is_plural(lookup, best) else "is"
        rank = "best" if lookup.has_several_splits else f"the best of {len(lookup.scores)} scores"
        return f"{name} {verb} {rank}."
    extreme = "lowest" if best.metric.lower_is_better else "highest"
    title = metric_title(best.metric.name)
    value = format_number(best.value)
    return f"{name} {_have(lookup, best)} the {extreme} {title}, {value}."


def _is_plural(lookup: ResultLookup, result: Result) -> bool:
    group = next(group for group in lookup.rankings if result.score in group)
    return not lookup.has_several_splits and len(group) > 1


def _have(lookup: ResultLookup, result: Result) -> str:
    return "have" if _is_plural(lookup, result) else "has"


def _comparison_sentence(lookup: ResultLookup, best: Result, competitors: list[Result]) -> str:
    """Return a sentence on the significance of the differences from the best result."""
    if not competitors:
        return ""
    tests = lookup.evaluation.tests
    if lookup.has_several_splits and (tests is None or not tests.has_same_samples):
        if tests is None:
            return "The differences are not tested."
        splits = count_splits(lookup)
        return (
            f"The {splits} do not all contain the same samples, so no paired test compares them. "
            "A comparison with the models as methods tests them on the same samples."
        )
    worse: dict[str, float] = {}
    equal: dict[str, float] = {}
    for result in competitors:
        difference = lookup.difference(result.split, result.score, best)
        if difference is not None and not math.isnan(difference.adjusted):
            group = worse if difference.is_significant else equal
            group[_name(lookup, result)] = difference.adjusted
    clauses = []
    if equal:
        p_value = _describe_p_value(min(equal.values()), "≥" if len(equal) > 1 else "=")
        clauses.append(f"{_join_names(equal)} not significantly different ({p_value})")
    if worse:
        p_value = _describe_p_value(max(worse.values()), "≤" if len(worse) > 1 else "=")
        clauses.append(f"{_join_names(worse)} significantly worse ({p_value})")
    if not clauses:
        return "The differences are not tested."
    if not equal:
        clauses.insert(0, _metric_value(lookup, best))
    return f"{'; '.join(clauses)}."


def _join_names(names: Collection[str]) -> str:
    """Return the names or, if there are many, their number, followed by a verb."""
    text = f"{format_count(len(names))} others"
    if len(names) <= _MAX_NAMES:
        *first, last = names
        text = f"{', '.join(first)} and {last}" if first else last
    # Scores with the same ranking count as one name.
    is_plural = len(names) > 1 or any(", " in name for name in names)
    return f"{text} {'are' if is_plural else 'is'}"


def _describe_p_value(value: float, relation: str) -> str:
    text = format_p_value(value)
    condition = text if text.startswith("<") else f"{relation} {text}"
    # Non-breaking spaces keep the p-value on one line.
    return f"adjusted p {condition}".replace(" ", "\u00a0")


# ---------------------------------------------------------------------------------- single score
def _full_coverage_sentence(lookup: ResultLookup) -> str:
    """Return a sentence with the risk if the model never abstains."""
    split = lookup.splits[0] if lookup.splits else ()
    risk = lookup.evaluation.risk_without_abstention(split)
    if math.isnan(risk):
        return ""
    if not lookup.evaluation.is_binary:
        return f"Without abstention, the mean loss is {format_number(risk)}."
    if risk == 0:
        return "Without abstention, no answer is wrong, so abstention cannot reduce the risk."
    return f"Without abstention, {format_share(risk)} of the answers are wrong."


def _coverage_sentence(lookup: ResultLookup, split: Split, score: str) -> str:
    """Return a sentence that compares the risk at some coverage with the risk at full coverage.

    The coverage is taken from the first headline metric with a fixed coverage.
    """
    full_risk = lookup.evaluation.risk_without_abstention(split)
    if math.isnan(full_risk) or full_risk == 0:
        return ""
    coverage_by_metric = {}
    for name in lookup.headline_metrics:
        at_coverage = metric_named(name).measurement.at_coverage
        if at_coverage is not None:
            coverage_by_metric[name] = at_coverage
    if not coverage_by_metric:
        return ""
    metric, coverage = next(iter(coverage_by_metric.items()))
    risk = lookup.value(split, score, metric)
    if math.isnan(risk):
        return ""
    lead = f"At {format_percent(coverage)} coverage"
    if not lookup.evaluation.is_binary:
        return (
            f"{lead}, the mean loss is {format_number(risk)} instead of {format_number(full_risk)}."
        )
    if risk >= full_risk:
        return f"{lead}, the share of wrong answers is not lower than without abstention."
    return (
        f"{lead}, {format_share(risk)} of the accepted answers are wrong instead of "
        f"{format_share(full_risk)}."
    )


def _split_range_sentence(lookup: ResultLookup) -> str:
    """Return a sentence that names the splits with the lowest and the highest risk."""
    risk_by_split = {
        split: lookup.evaluation.risk_without_abstention(split) for split in lookup.splits
    }
    risks = list(risk_by_split.values())
    if len(risks) < _MIN_SPLITS_FOR_RANGE or len(set(risks)) == 1:
        return ""
    easiest = lookup.splits[risks.index(min(risks))]
    hardest = lookup.splits[risks.index(max(risks))]
    quantity = "share of wrong answers" if lookup.evaluation.is_binary else "mean loss"
    format_risk = format_share if lookup.evaluation.is_binary else format_number
    lowest = format_risk(risk_by_split[easiest])
    highest = format_risk(risk_by_split[hardest])
    return (
        f"Without abstention, the {quantity} on the {len(risks)} splits ranges from {lowest} "
        f"({split_name(easiest)}) to {highest} ({split_name(hardest)})."
    )
