"""Methods x (metric, data set), as the Markdown and LaTeX tables of a comparison print them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from abstain.evaluation.comparison import Comparison, Estimate
from abstain.plots import chosen
from abstain.report.comparison_words import arrow_of, kilo_of, where, written
from abstain.report.words import unique
from abstain.typing import Split


@dataclass(frozen=True)
class Column:
    """One metric on one data set.

    Attributes
    ----------
    metric, title : str
        Its name in the catalogue and the one that people read.
    kilo : bool
        Whether the values are times 1000.
    arrow : str
        Where better is.
    data : Split
        The data set.
    estimates : dict of str to Estimate
        By method.
    footing : dict of str to str
        How each method stands to the best.
    """

    metric: str
    title: str
    kilo: bool
    arrow: str
    data: Split
    estimates: dict[str, Estimate]
    footing: dict[str, chosen.Footing]

    @property
    def label(self) -> str:
        """The data set in words; empty for the only one."""
        return where(self.data)


def columns_of(
    comparison: Comparison, metrics: Sequence[str] | None, *, thousand: bool
) -> list[Column]:
    """Return the columns of the metrics asked for, or of all."""
    chosen.checked(comparison)
    wanted = comparison.metrics if metrics is None else metrics
    names = [chosen.metric_in(comparison, name, "metrics") for name in wanted]
    return [_column(comparison, m, d, thousand) for m in names for d in comparison.data]


def _column(comparison: Comparison, metric: str, data: Split, thousand: bool) -> Column:
    found = chosen.estimates_in(comparison, metric, data)
    pairs = chosen.pairs_in(comparison, metric, data)
    kilo = kilo_of(metric, thousand=thousand)
    return Column(
        metric=metric,
        title=chosen.metric_title(metric),
        kilo=kilo,
        arrow=arrow_of(found),
        data=data,
        estimates={e.method: e for e in found},
        footing=chosen.footing(found, pairs),
    )


def value_in(column: Column, method: str) -> str:
    """Write the value of a method, or a dash when it has none there."""
    found = column.estimates.get(method)
    return "–" if found is None else written(found.value, kilo=column.kilo)


def interval_in(column: Column, method: str) -> str:
    """Write the interval of a method in brackets, or nothing."""
    found = column.estimates.get(method)
    if found is None or math.isnan(found.low) or math.isnan(found.high):
        return ""
    ends = (written(end, kilo=column.kilo) for end in (found.low, found.high))
    return f" [{', '.join(ends)}]"


def footnote(comparison: Comparison, columns: Sequence[Column], *, intervals: bool) -> list[str]:
    """Return the sentences under the table; `{tie}` stands for the mark of a tie."""
    stands = {s for column in columns for s in column.footing.values()}
    sentences = ["Arrows point to where better is; bold marks the best value."]
    if any(column.kilo for column in columns):
        sentences.append("Columns marked so are times 1000; other values are fractions.")
    else:
        sentences.append("Values are fractions.")
    if "not told apart" in stands:
        alpha = chosen.percent(round(1 - comparison.level, 10))
        test = chosen.said_of_tests(comparison, unique(column.metric for column in columns))
        sentences.append(
            f"{{tie}}: not told from the best at {alpha} ({test}; the pairs of a column together)."
        )
    if intervals:
        sentences.append(f"In brackets: {chosen.percent(comparison.level)} intervals.")
    estimates = [e for column in columns for e in column.estimates.values()]
    notes = unique(e.note for e in estimates if e.note)
    return [*sentences, *([f"Notes: {'; '.join(notes)}."] if notes else [])]
