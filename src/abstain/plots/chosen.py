"""The words of `abstain.plots.words` and the rows of a comparison, under their earlier names."""

from collections.abc import Iterable

from abstain.evaluation.comparison import (
    AcrossData,
    Comparison,
    Estimate,
    Footing,
    PairedDifference,
    Standing,
    against,
    best_first,
    best_of,
    footings,
)
from abstain.plots.words import (
    NOT_ADJUSTED,
    SUPPOSED,
    checked,
    metric_title,
    of_data,
    p_value,
    percent,
    said_of_p,
    sentence,
)
from abstain.typing import Split

__all__ = [
    "NOT_ADJUSTED",
    "SUPPOSED",
    "Footing",
    "against",
    "best_of",
    "by_value",
    "checked",
    "footing",
    "metric_title",
    "of_data",
    "p_value",
    "percent",
    "said_of_p",
    "sentence",
]

by_value, footing = best_first, footings


def metric_in(comparison: Comparison, metric: str | None, argument: str = "metric") -> str:
    """Return a metric of the comparison."""
    return comparison.metric_shown(metric, argument)


def data_in(comparison: Comparison, data: Split | None) -> Split:
    """Return a data set of the comparison."""
    return comparison.data_shown(data)


def data_or_all(comparison: Comparison, data: Split | None) -> Split | None:
    """Return a data set, or None for all together."""
    return comparison.data_or_all(data)


def blocks_of(comparison: Comparison) -> str:
    """Return what ranks the methods once in all that is said over all."""
    return comparison.blocks


def scores_of(comparison: Comparison) -> str:
    """Return what an aggregate over all is taken over."""
    return comparison.aggregated_over


def with_curves(comparison: Comparison) -> tuple[str, ...]:
    """Return the methods whose curves are drawn."""
    return comparison.with_curves


def estimates_in(comparison: Comparison, metric: str, data: Split) -> list[Estimate]:
    """Return the estimates of one metric on one data set."""
    return comparison.estimates_of(metric, data)


def deciding(comparison: Comparison, metric: str, data: Split | None) -> str:
    """Return the test that decides."""
    return comparison.deciding_test(metric, data)


def known_tests(comparison: Comparison, metric: str, data: Split | None) -> list[str]:
    """Return the tests of one metric on one data set."""
    return comparison.tests_of(metric, data)


def pairs_in(
    comparison: Comparison, metric: str, data: Split | None, test: str | None = None
) -> list[PairedDifference]:
    """Return the pairs of one metric on one data set by one test."""
    return comparison.pairs_of(metric, data, test)


def standings_in(
    comparison: Comparison, metric: str, data: Split | None, source: str | None = None
) -> list[Standing]:
    """Return the standings of one source."""
    return comparison.standings_of(metric, data, source)


def across_in(comparison: Comparison, metric: str) -> AcrossData | None:
    """Return the ranking over all data sets, if there is one."""
    return comparison.across_of(metric)


def said_of_tests(comparison: Comparison, metrics: Iterable[str] | None = None) -> str:
    """Say by which test and adjustment the pairs of each data set are judged."""
    return comparison.judged_by(metrics)


def judged_by(pair: PairedDifference) -> str:
    """Say by which test and adjustment a pair was judged."""
    return pair.judged_by
