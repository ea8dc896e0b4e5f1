"""The words of a comparison, one sentence each, with its metrics and methods."""

from abstain.evaluation.comparison import Comparison
from abstain.plots.words import percent
from abstain.report.document import Entry, Fold, Glossary, Section
from abstain.report.glossary import metric_words, score_words

_WORDS = {
    "Interval": (
        "If the study were repeated with new samples, {level} of such intervals would hold the "
        "true value; two intervals that overlap may still belong to methods that differ, "
        "because both were measured on the same samples."
    ),
    "Difference, ratio": (
        "The value of the first method minus, or over, that of the second on the same samples."
    ),
    "p": (
        "How often chance alone would show a difference at least this large if the two methods "
        "were equally good; it does not say how large or how likely a difference is."
    ),
    "Adjusted p": (
        "The p-value raised for the number of pairs looked at, so that one pair found by chance "
        "among all of them is as rare as one p-value promises; below {alpha:g} a difference "
        "counts as found."
    ),
    "Superiority": (
        "If the values found were the true ones, how many of 100 studies of this size would find "
        "the first method better, ties counted half. A lead that is chance is taken for real here, "
        "so it is no evidence of one: that is p. Over several {blocks} it is the share of them on "
        "which the first is better."
    ),
    "Rank chances": (
        "If the values found were the true ones, how many of 100 studies of this size would give "
        "the method each rank; 1 is best. The leader is flattered: of two equally good methods "
        "the one that happens to lead comes first in more than half. They are not adjusted for "
        "the number of pairs, p is."
    ),
    "Within the margin": (
        "Shown where a method worse than the reference by the margin or more would rarely come "
        "out like this (adjusted p below {alpha:g}). Not shown does not mean worse."
    ),
    "CD": (
        "Nemenyi's critical difference: methods whose mean ranks over the {blocks} are closer "
        "than this are not told apart (Demsar 2006). It takes the {blocks} as independent."
    ),
    "Friedman": (
        "A test of whether the methods rank differently at all, each of the {blocks}, taken as "
        "independent, ranking them once."
    ),
    "Kendall's tau": ("How alike two rankings are: 1 the same order, 0 unrelated, −1 the reverse."),
    "Pointwise and simultaneous band": (
        "The first holds the true risk at any one coverage, the second the whole true curve at "
        "once, each at the level of {level}."
    ),
}


def glossary_of(comparison: Comparison) -> Section:
    """Return the words with their meanings at the level of the comparison."""
    level, alpha = percent(comparison.level), round(1 - comparison.level, 10)
    blocks = comparison.blocks
    unasked = set() if comparison.across else {"CD", "Friedman"}
    unasked |= set() if comparison.non_inferiority else {"Within the margin"}
    words = [
        Entry(title, said.format(level=level, alpha=alpha, blocks=blocks))
        for title, said in _WORDS.items()
        if title not in unasked
    ]
    metrics = metric_words(comparison.metrics)
    methods = score_words(comparison.methods)
    title = f"{len(metrics)} metrics and {len(methods)} methods with their sources"
    sources = Section(
        "metrics",
        "Metrics and methods",
        (Fold(title, (Glossary((*metrics, *methods)),)),),
        level=3,
    )
    return Section("glossary", "Glossary", (Glossary(tuple(words)), sources))
