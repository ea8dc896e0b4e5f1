"""A comparison as tables for a terminal of 60 columns or more."""

import math
from typing import TYPE_CHECKING

from abstain.evaluation.comparison import Comparison, Estimate, PairedDifference, Standing
from abstain.plots import chosen
from abstain.report._terminal_parts import empty_table, text
from abstain.report.comparison_margin import (
    margin_asked,
    margin_line,
    margin_summary,
    margins_in,
)
from abstain.report.comparison_over_all import independence_said
from abstain.report.comparison_verdict import comparison_verdict
from abstain.report.comparison_words import arrow_of, ranks_between, where
from abstain.report.terminal import findings_said, narrow
from abstain.typing import Split

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

# Method, value, interval, ranks and p fit into 60 columns.
_NAME_WIDTH, _NUMBER_WIDTH, _SPAN_WIDTH = 11, 8, 17

#: More tables than this are lines instead.
_TABLES = 6

#: Methods named in a line before the rest is only counted.
_NAMED = 4


def comparison_terminal(comparison: Comparison, *, full: bool = False) -> "RenderableType":
    r"""Lay a comparison out for a terminal.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    full : bool, default=False
        A table for every metric and data set, and every finding, however many there are.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console` of at least 60 columns.

    Raises
    ------
    InputError
        If `comparison` is something else.

    Notes
    -----
    Names and messages are printed as they are: no markup is read from them, and control
    characters are written out.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> from rich.console import Console
    >>> with (console := Console(width=60)).capture() as printed:
    ...     console.print(comparison_terminal(one))
    >>> print("\n".join(line.rstrip() for line in printed.get().splitlines()[:6]))
    Only “msr” has a value of AUGRC.
    <BLANKLINE>
    AUGRC ↓
    Method     Value       95 % interval  Ranks  p, best
    ────────────────────────────────────────────────────
    msr      0.04000  0.03000 to 0.05000
    """
    from rich.console import Group

    chosen.checked(comparison)
    places = [(metric, data) for metric in comparison.metrics for data in comparison.data]
    tables = full or len(places) <= _TABLES
    body: list[RenderableType] = [text(said) for said in comparison_verdict(comparison)]
    body += [text(line, "dim") for line in [independence_said(comparison)] if line]
    body.append(text(""))
    if tables:
        for metric, data in places:
            body += [_table(comparison, metric, data), text("")]
    else:
        body += [text(_line(comparison, metric, data)) for metric, data in places]
        body += [text("--full prints a table of each; --out leaves all of them.", "dim"), text("")]
    body += [text(line) for line in _margins(comparison, full=full)]
    body += findings_said(comparison.findings, everything=full)
    body += [text(line, "dim") for line in [_drawn(comparison)] if line]
    return Group(*body, _footer(comparison, tables=tables))


def _line(comparison: Comparison, metric: str, data: Split) -> str:
    """Say in one line who leads by one metric on one data set, and who is not told from it."""
    found = chosen.by_value(chosen.estimates_in(comparison, metric, data))
    stands = chosen.footing(found, chosen.pairs_in(comparison, metric, data))
    best = [m for m, footing in stands.items() if footing == "best"]
    lead = f"{_named(metric, data)}: "
    if not best:
        return f"{lead}no method leads"
    alike = [m for m, footing in stands.items() if footing == "not told apart"]
    top = found[0]
    ends = "" if math.isnan(top.low) else f" [{narrow(top.low)}, {narrow(top.high)}]"
    rest = f"; not told from it: {_some(alike)}" if alike else ""
    return f"{lead}best {_some(best)} {narrow(top.value)}{ends}{rest}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _named(metric: str, data: Split) -> str:
    return ", ".join(filter(None, [chosen.metric_title(metric), where(data)]))


def _margins(comparison: Comparison, *, full: bool) -> list[str]:
    """Return a line for each method held against the reference, or for each data set of many."""
    places = [(metric, data) for metric in comparison.metrics for data in comparison.data]
    short = not full and len(places) > _TABLES
    lines = []
    for metric, data in places:
        found = margins_in(comparison, metric, data)
        if not found:
            continue
        head = f"{_named(metric, data)}, {margin_asked(found[0], quoted=False)}?"
        own = [f"  {margin_line(n)}" for n in found]
        summary = margin_summary(comparison, metric, data)
        lines += [f"{head} {chosen.sentence(summary)}."] if short else [head, *own]
    return [*lines, ""] if lines else []


def _drawn(comparison: Comparison) -> str:
    """Say how much was resampled, and where the test of the literature is."""
    if not comparison.bootstrap:
        return ""
    said = f"{comparison.bootstrap:,} resamples drawn."
    if all(pair.valid for pair in comparison.pairs):
        return said
    return f"{said} The test of the literature, on the replicates, is in the report only (--out)."


def _table(comparison: Comparison, metric: str, data: Split) -> "Table":
    found = chosen.by_value(chosen.estimates_in(comparison, metric, data))
    pairs = chosen.pairs_in(comparison, metric, data)
    stands = chosen.footing(found, pairs)
    standings = {s.method: s for s in chosen.standings_in(comparison, metric, data)}
    named = f"{chosen.metric_title(metric)} {arrow_of(found)}"
    table = empty_table(", ".join(filter(None, [named, where(data)])))
    table.add_column("Method", overflow="fold", min_width=min(_NAME_WIDTH, _longest(found)))
    table.add_column("Value", justify="right", no_wrap=True, min_width=_NUMBER_WIDTH)
    level = chosen.percent(comparison.level)
    table.add_column(f"{level} interval", justify="right", max_width=_SPAN_WIDTH + 4)
    table.add_column("Ranks", justify="right", no_wrap=True)
    table.add_column("p, best", justify="right", no_wrap=True)
    best = chosen.best_of(found)
    for e in found:
        pair = chosen.against(pairs, e.method, best[0]) if best else None
        table.add_row(*_row(e, stands[e.method], standings.get(e.method), pair))
    return table


def _longest(found: list[Estimate]) -> int:
    return max((len(e.method) for e in found), default=1)


def _row(
    estimate: Estimate,
    stands: chosen.Footing,
    standing: Standing | None,
    pair: PairedDifference | None,
) -> list["Text"]:
    style = {"best": "bold", "undefined": "dim"}.get(stands, "")
    value = "undef." if math.isnan(estimate.value) else narrow(estimate.value)
    ranks = ranks_between(standing.rank_low, standing.rank_high) if standing else ""
    p = "" if pair is None or stands == "best" else chosen.p_value(pair.adjusted)
    tie = "" if stands != "not told apart" else " ≈"
    return [
        text(estimate.method, style),
        text(value, style),
        text(_span(estimate)),
        text(ranks),
        text(p + tie),
    ]


def _span(estimate: Estimate) -> str:
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return "-"
    return f"{narrow(estimate.low)} to {narrow(estimate.high)}"


def _footer(comparison: Comparison, *, tables: bool) -> "Text":
    said = chosen.said_of_tests(comparison)
    test = f" ({said})" if said else ""
    if not tables:
        level = chosen.percent(comparison.level)
        return text(
            f"In brackets: {level} intervals. Not told from it: by the adjusted p-value{test}. "
            "Values are fractions.",
            "dim",
        )
    return text(
        f"Bold: best value. p, best: adjusted p-value against the best{test}; ≈ not told from it. "
        f"Ranks: {chosen.percent(comparison.level)} of ranks in studies of this size, "
        f"{chosen.SUPPOSED}; {chosen.NOT_ADJUSTED}. Values are fractions.",
        "dim",
    )
