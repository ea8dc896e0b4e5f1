"""A decision rule and what it keeps elsewhere, for a terminal of 100 columns."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from abstain.evaluation.rule_checks import RuleChecks
from abstain.plots._verdicts import checked_rule
from abstain.plots.visible import visible
from abstain.report._terminal_parts import empty_table, text
from abstain.report.terminal import findings_said
from abstain.report.threshold_words import (
    checks_sentences,
    ends,
    method_title,
    rule_sentences,
    signed,
    together_said,
    verdict_said,
    worst_groups,
    written,
)
from abstain.report.words import count, percent

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

_NAME_WIDTH = 18
#: So many groups of a data set are printed.
_MOST_GROUPS = 20
#: A width at which a table is measured as it wants to be.
_ANY = 1000
_STYLES = {"holds": "green", "broken": "bold red", "chosen here": "dim"}


def threshold_terminal(checks: RuleChecks) -> "RenderableType":
    r"""Lay a decision rule and its checks out for a terminal.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console`; it is made for 100 columns.

    Raises
    ------
    InputError
        If `checks` is something else.

    Notes
    -----
    Names and messages are printed as they are: no markup is read from them, and control
    characters are written out.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> from rich.console import Console
    >>> with (console := Console(width=80)).capture() as printed:
    ...     console.print(threshold_terminal(check_rule(rule, {"later": later})))
    >>> print(printed.get().splitlines()[0])
    Answer when the confidence is at least 0.5; abstain below.
    """
    from rich.console import Group

    known = checked_rule(checks)
    first, *rest = rule_sentences(known)
    style = "bold" if known.rule.attainable else "bold red"
    body: list[RenderableType] = [text(first, style), *(text(line) for line in rest)]
    if said := checks_sentences(known):
        body.append(text(" ".join(said)))
    body += [text(f"Method: {method_title(known.rule)}.", "dim"), text("")]
    if rows := known.rows():
        body += [_Results(known, rows), text("")]
    body += findings_said(known.findings, everything=False)
    if known.checks:
        body.append(text(_footer(known), "dim"))
    return Group(*body)


class _Results:
    """The table, its intervals behind the numbers where there is room and else below them."""

    def __init__(self, checks: RuleChecks, rows: list[dict[str, Any]]) -> None:
        self._checks = checks
        self._rows, self._left = worst_groups(rows, _MOST_GROUPS)

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        from rich.measure import Measurement

        table = _table(self._checks, self._rows, gap=" ")
        needed = Measurement.get(console, options.update(width=_ANY), table).minimum
        fits = needed <= options.max_width
        yield table if fits else _table(self._checks, self._rows, gap="\n")
        if self._left:
            yield text(
                f"{count(self._left)} more groups, none surer to be worse: all rows are in the "
                "results of --out.",
                "dim",
            )


def _table(checks: RuleChecks, rows: list[dict[str, Any]], *, gap: str) -> "Table":
    number = shown_risk(checks)
    longest = max(len(visible(_named(row))) for row in rows)
    table = empty_table()
    table.add_column("Data", overflow="fold", min_width=min(longest, _NAME_WIDTH))
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("Coverage", justify="right", no_wrap=True)
    table.add_column(number.replace("_", " ").capitalize(), justify="right", no_wrap=True)
    table.add_column("Excess", justify="right", no_wrap=True)
    table.add_column("Verdict", no_wrap=True)
    for row in rows:
        verdict = row["verdict"]
        table.add_row(
            text(_named(row)),
            text(count(row["n"])),
            _with_ends(row, "coverage", gap),
            _with_ends(row, number, gap),
            text(signed(row["excess"])),
            text(verdict_said(verdict), _STYLES.get(verdict, "")),
        )
    return table


def _named(row: dict[str, Any]) -> str:
    """Return the name of a data set, or that of a group below it."""
    return f"  {row['subgroup']}" if row["subgroup"] else str(row["name"])


def shown_risk(checks: RuleChecks) -> str:
    """Return the risk that a narrow table shows: the one that is guaranteed."""
    generalized = checks.rule.quantity == "generalized risk"
    return "generalized_risk" if generalized else "selective_risk"


def _with_ends(row: dict[str, Any], number: str, gap: str) -> "Text":
    """Write a number of a row with its interval behind or below it."""
    span = ends(row[f"{number}_low"], row[f"{number}_high"])
    cell = text(written(row[number]))
    if span:
        cell.append(f"{gap}{span}", style="dim")
    return cell


def _footer(checks: RuleChecks) -> str:
    level = percent(checks.level)
    worse = {
        "coverage": "target minus coverage",
        "cost": "mean cost minus that of abstaining on everything",
    }.get(checks.rule.quantity, "risk minus target")
    return (
        f"In brackets: {level} intervals, {together_said(checks)}. Excess: {worse}; above 0 is "
        "worse. Values are fractions."
    )
