"""Main results of an evaluation in plain sentences."""

import math

from abstain.evaluation.records import ScoreCurves
from abstain.metrics import METRICS, metric_named
from abstain.metrics.catalogue import CLASSIFIER_METRIC, DEFAULT_METRIC
from abstain.plots.formatting import format_percent
from abstain.report.formatting import format_number, format_share
from abstain.report.subjects.evaluation.lookup import ResultLookup, interval_clause
from abstain.tables import split_name
from abstain.typing import Split

_MIN_SPLITS_FOR_RANGE = 3


def evaluation_verdict(lookup: ResultLookup) -> list[str]:
    """Return a few sentences; sentences without the required numbers are omitted."""
    if not lookup.cases:
        return []
    split = lookup.splits[0]
    best_score = find_best_score(lookup, split)
    case = lookup.cases.get((split, best_score))
    sentences = [
        _split_prefix(lookup, split) + _full_coverage_sentence(lookup, case),
        _augrc_sentence(lookup, split),
        _coverage_sentence(lookup, split, best_score, case),
        _split_range_sentence(lookup),
    ]
    return [sentence for sentence in sentences if sentence]


def find_best_score(lookup: ResultLookup, split: Split) -> str:
    """Return the score with the best AUGRC, or the first score if none is best."""
    best_scores = lookup.best_scores(split, DEFAULT_METRIC)
    return best_scores[0] if best_scores else lookup.scores[0]


def _split_prefix(lookup: ResultLookup, split: Split) -> str:
    return f"On {split_name(split)}: " if lookup.has_several_splits else ""


def _full_coverage_sentence(lookup: ResultLookup, case: ScoreCurves | None) -> str:
    if case is None:
        return ""
    if not lookup.evaluation.is_binary:
        return f"Without abstention, the mean loss is {format_number(case.risk)}."
    if case.risk == 0:
        return "Without abstention, no answer is wrong, so abstention cannot reduce the risk."
    accuracy = lookup.value(case.split, case.score, CLASSIFIER_METRIC)
    title = METRICS[CLASSIFIER_METRIC].title
    suffix = "" if math.isnan(accuracy) else f" ({title} {format_number(accuracy)})"
    return f"Without abstention, {format_share(case.risk)} of the answers are wrong{suffix}."


def _augrc_sentence(lookup: ResultLookup, split: Split) -> str:
    risk = "risk of a silent failure" if lookup.evaluation.is_binary else "generalized risk"
    if len(lookup.scores) == 1:
        score = lookup.scores[0]
        value = lookup.value(split, score, DEFAULT_METRIC)
        if math.isnan(value):
            return ""
        return (
            f"The {risk} of “{score}”, averaged over all coverages, is {format_number(value)} "
            f"(AUGRC{_augrc_interval(lookup, split, score)})."
        )
    best_scores = lookup.best_scores(split, DEFAULT_METRIC)
    if not best_scores:
        return f"No score has a lower AUGRC (the average {risk}) than the others."
    names = " and ".join(f"“{score}”" for score in best_scores)
    verb = "has" if len(best_scores) == 1 else "have"
    value = lookup.value(split, best_scores[0], DEFAULT_METRIC)
    interval = _augrc_interval(lookup, split, best_scores[0])
    return (
        f"Of {len(lookup.scores)} scores, {names} {verb} the lowest {risk}, averaged over all "
        f"coverages (AUGRC {format_number(value)}{interval}). Run abstain compare to test whether "
        "the difference is significant."
    )


def _augrc_interval(lookup: ResultLookup, split: Split, score: str) -> str:
    result = lookup.results.get((split, score, DEFAULT_METRIC))
    return interval_clause(result) if result else ""


def _coverage_sentence(
    lookup: ResultLookup, split: Split, score: str, case: ScoreCurves | None
) -> str:
    """Compare the risk at the coverage of the first headline metric that has a coverage."""
    if case is None or case.risk == 0:
        return ""
    for metric in lookup.headline_metrics:
        coverage = metric_named(metric).measurement.at_coverage
        if coverage is not None:
            risk = lookup.value(split, score, metric)
            break
    else:
        return ""
    if math.isnan(risk):
        return ""
    lead = f"At {format_percent(coverage)} coverage, selected by “{score}”"
    if not lookup.evaluation.is_binary:
        return (
            f"{lead}, the mean loss is {format_number(risk)} instead of {format_number(case.risk)}."
        )
    if risk >= case.risk:
        return f"{lead}, the share of wrong answers is not lower than without abstention."
    return (
        f"{lead}, {format_share(risk)} of the accepted answers are wrong instead of "
        f"{format_share(case.risk)}."
    )


def _split_range_sentence(lookup: ResultLookup) -> str:
    """Name the splits with the lowest and the highest risk, if there are several."""
    risks = dict.fromkeys(lookup.splits, math.nan)
    # The risk without abstention does not depend on the score, so use the first score of a split.
    risks |= {split: case.risk for (split, _), case in reversed(lookup.cases.items())}
    if len(risks) < _MIN_SPLITS_FOR_RANGE or len(set(risks.values())) == 1:
        return ""
    easiest = min(risks, key=lambda split: risks[split])
    hardest = max(risks, key=lambda split: risks[split])
    quantity = "share of wrong answers" if lookup.evaluation.is_binary else "mean loss"
    format_risk = format_share if lookup.evaluation.is_binary else format_number
    return (
        f"Without abstention, the {quantity} on the {len(risks)} splits ranges from "
        f"{format_risk(risks[easiest])} ({split_name(easiest)}) to {format_risk(risks[hardest])} "
        f"({split_name(hardest)})."
    )
