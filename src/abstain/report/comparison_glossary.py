"""The words of a comparison, one sentence each."""

from abstain.evaluation.comparison import Comparison
from abstain.plots import chosen

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
        "The chance that the first method comes out better on data drawn anew, ties counted half."
    ),
    "Rank chances": (
        "How often each rank would come out on data drawn anew, of which the mean rank is the "
        "mean; 1 is best."
    ),
    "CD": (
        "Nemenyi's critical difference: methods whose mean ranks over the data sets are closer "
        "than this are not told apart (Demsar 2006)."
    ),
    "Friedman": (
        "A test of whether the methods rank differently at all, each data set ranking them once."
    ),
    "Kendall's tau": ("How alike two rankings are: 1 the same order, 0 unrelated, −1 the reverse."),
    "Pointwise and simultaneous band": (
        "The first holds the true risk at any one coverage, the second the whole true curve at "
        "once, each at the level of {level}."
    ),
}


def word_entries(comparison: Comparison) -> list[dict[str, str]]:
    """Return the words with their meanings at the level of the comparison."""
    level, alpha = chosen.percent(comparison.level), round(1 - comparison.level, 10)
    return [
        {"title": title, "meaning": words.format(level=level, alpha=alpha)}
        for title, words in _WORDS.items()
        if comparison.across or title not in {"CD", "Friedman"}
    ]
