"""What is said of all data sets or runs together, and how far that reaches."""

import math

from abstain.evaluation.comparison import Comparison
from abstain.plots import chosen
from abstain.report.words import unique

#: From so many runs on an interval by resampling them holds about what it promises.
_ENOUGH = 10


def over_all_words(comparison: Comparison) -> dict[str, str]:
    """Return the words of the section over all data sets or runs."""
    return {
        "over_all_title": f"Over all {chosen.blocks_of(comparison)}",
        "over_all_lead": _lead(comparison),
        "independence": independence_said(comparison),
        "blocks": chosen.blocks_of(comparison),
        "improvement": "How often a run of one method beats a run of another"
        if len(comparison.runs) > 1
        else "On how many data sets one method beats another",
    }


def _lead(comparison: Comparison) -> str:
    """Say what a mean rank is of."""
    blocks = chosen.blocks_of(comparison)
    one = blocks.removesuffix("s")
    averaged = " (its runs averaged)" if blocks == "data sets" and len(comparison.runs) > 1 else ""
    return (
        f"Each {one}{averaged} ranks the methods once. Bars join methods whose mean ranks are "
        f"closer than the critical difference. Few {blocks} can tell few methods apart, however "
        "large each is."
    )


def independence_said(comparison: Comparison) -> str:
    """Say what the tests across data sets or runs take for granted, and which test to read."""
    if not comparison.across:
        return ""
    blocks = chosen.blocks_of(comparison)
    taken = (
        f"Friedman's, Wilcoxon's and Nemenyi's tests take the {blocks} as independent of each other"
    )
    if blocks == "runs":
        return (
            f"{taken}, which folds that share training data are not. For differences of these "
            "trained models, read the pairs; for what training again would give, read Friedman "
            "and Wilcoxon."
        )
    return (
        f"{taken}, which shifted copies of the same images are not. For differences on these data "
        "sets, read the pairs of each; for what to expect of other data sets, read Friedman and "
        "Wilcoxon."
    )


def aggregate_said(comparison: Comparison, metric: str) -> str:
    """Say what the interquartile means and their intervals rest on."""
    found = [a for a in comparison.aggregates if a.metric == metric]
    if not found:
        return ""
    scores, over = found[0].scores, chosen.scores_of(comparison)
    said = f"Interquartile mean over {scores} {over}; {chosen.metric_title(metric)}."
    notes = unique(f"{chosen.sentence(a.note)}." for a in found if a.note)
    if all(math.isnan(a.low) for a in found):
        return " ".join([said, "No intervals.", *notes])
    few = (
        f"The intervals rest on {scores} {over}, too few for them to hold what they promise: "
        "take them for a rough range."
    )
    return " ".join([said, *([few] if scores < _ENOUGH else []), *notes])
