"""The results as a table for a terminal of 100 columns."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from abstain.evaluation.records import Evaluation, Finding
from abstain.plots.visible import visible
from abstain.report._terminal_intervals import intervals_table
from abstain.report._terminal_parts import empty_table, split_columns, text
from abstain.report.findings import Said, grouped
from abstain.report.pivot import Pivot, pivot
from abstain.report.words import (
    arrow,
    interval_range,
    meaning,
    narrow_title,
    number,
    percent,
    place,
    title_of,
)
from abstain.tables import split_name
from abstain.typing import Split

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

#: Findings printed before the rest is only counted.
_FINDINGS = 8

# Names get this many columns before they fold; the numbers need the rest.
_NAME_WIDTH, _NUMBER_WIDTH = 13, 8

_UNDEFINED = "undef."

#: A width at which a table is measured as it wants to be.
_ANY = 1000


def terminal_table(evaluation: Evaluation, *, full: bool = False) -> "RenderableType":
    r"""Lay the results out for a terminal.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    full : bool, default=False
        Every metric with the sentence that says what it means, instead of the headline ones.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console`; it is made for 100 columns;
        on fewer it leaves out the last metrics, and says which.

    Raises
    ------
    InputError
        If `evaluation` is something else.

    Notes
    -----
    Names and messages are printed as they are: no markup is read from them, and control
    characters are written out.

    Examples
    --------
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> from rich.console import Console
    >>> evaluation = ab.evaluate(predictions, metrics=["accuracy", "augrc"])
    >>> with (console := Console(width=60)).capture() as printed:
    ...     console.print(terminal_table(evaluation))
    >>> print("\n".join(line.rstrip() for line in printed.get().splitlines()[:3]))
    Score         Acc. ↑   AUGRC ↓
    ──────────────────────────────
    confidence    0.7500   0.09375
    """
    from rich.console import Group

    found = pivot(evaluation)
    asked = bool(evaluation.asked)
    body: list[RenderableType] = [_Headline(found, whole=asked), *intervals_table(found)]
    if full or not found.headline or (asked and len(found.headline) < len(found.metrics)):
        body = [_every(found, split) for split in found.splits]
    return Group(*body, *findings_said(evaluation.findings, everything=full), _footer(full=full))


class _Headline:
    """The headline table with as many metrics as the terminal has room for.

    A number is never cut and a name never emptied: metrics that do not fit are left out from
    the right, and named. Those that were asked for are all shown, a line each if need be.
    """

    def __init__(self, found: Pivot, *, whole: bool) -> None:
        self._found, self._whole = found, whole

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        from rich.measure import Measurement

        def wide(table: "Table") -> bool:
            room = options.update(width=_ANY)
            return Measurement.get(console, room, table).minimum > options.max_width

        names = list(self._found.headline)
        table = _headline(self._found, names)
        if self._whole and wide(table):
            yield from (_every(self._found, split) for split in self._found.splits)
            return
        while len(names) > 1 and wide(table):
            names.pop()
            table = _headline(self._found, names)
        yield table
        left_out = [title_of(name) for name in self._found.headline if name not in names]
        if left_out:
            yield text(f"Too narrow to show: {', '.join(left_out)}.", "dim")


def _headline(found: Pivot, names: Sequence[str]) -> "Table":
    columns = split_columns(found)
    table = empty_table(padding=0 if columns else 1)
    for column in columns:
        values = (dict(split).get(column, "") for split in found.splits)
        table.add_column(text(column), overflow="fold", min_width=_width(values, len(columns)))
    table.add_column("Score", overflow="fold", min_width=_width(found.scores, 1))
    for name in names:
        table.add_column(_head(found, name), justify="right", width=_NUMBER_WIDTH)
    last: Split | None = None
    for split, score in found.pairs():
        if columns and last not in {None, split} and len(found.scores) > 1:
            table.add_section()
        known = dict(split) if split != last else {}
        lead = [text(known.get(column, "")) for column in columns]
        cells = [_cell(found, split, score, name) for name in names]
        table.add_row(*lead, text(score), *cells)
        last = split
    return table


def _width(names: Iterable[str], columns: int) -> int:
    """Leave a name its width up to a limit; longer ones fold."""
    return min(max((len(visible(name)) for name in names), default=1), _NAME_WIDTH // columns)


def _head(found: Pivot, name: str) -> "Text":
    sample = next(r for r in found.results.values() if r.metric == name)
    return text(f"{narrow_title(name)} {arrow(sample)}")


def _every(found: Pivot, split: Split) -> "Table":
    title = split_name(split) if split or len(found.splits) > 1 else ""
    table = empty_table(title)
    table.add_column("Metric", overflow="fold", ratio=4)
    table.add_column("Score", overflow="fold", ratio=3)
    level = next((r.level for r in found.results.values() if r.interval), None)
    value = "Value" if level is None else f"Value, {percent(level)} interval"
    table.add_column(value, justify="right", no_wrap=True)
    table.add_column("What it means", overflow="fold", ratio=8, style="dim")
    for metric in found.metrics:
        present = [s for s in found.scores if (split, s, metric) in found.results]
        for i, score in enumerate(present):
            result = found.results[split, score, metric]
            name = text(f"{title_of(metric)} {arrow(result)}" if i == 0 else "")
            cell = _cell(found, split, score, metric)
            if result.interval:
                cell.append(f"\n{interval_range(result)}", style="dim not bold")
            table.add_row(name, text(score), cell, text(meaning(result)))
    return table


def _cell(found: Pivot, split: Split, score: str, metric: str) -> "Text":
    result = found.results.get((split, score, metric))
    if result is None:
        return text("-", "dim")
    if result.reason:
        return text(_UNDEFINED, "dim")
    return text(narrow(result.value), "bold" if (split, score, metric) in found.best else "")


def narrow(value: float) -> str:
    """Write a number as everywhere, with fewer digits where it would not fit its column."""
    written = number(value)
    if len(written) < _NUMBER_WIDTH:
        return written
    return f"{value:.5f}" if abs(value) >= 1e-3 else f"{value:.2e}"


def findings_said(findings: tuple[Finding, ...], *, everything: bool) -> list["Text"]:
    """Return a line for each finding, repeated ones folded together."""
    if everything:
        return [_finding(said.first, said.more) for said in _one_by_one(findings)]
    groups = grouped(findings)
    lines = [_finding(said.first, said.more) for said in groups[:_FINDINGS]]
    if len(groups) > _FINDINGS:
        rest = len(groups) - _FINDINGS
        lines.append(text(f"... and {rest} more; the report lists them all.", "dim"))
    return lines


def _one_by_one(findings: tuple[Finding, ...]) -> list[Said]:
    return [Said(f, ()) for said in grouped(findings) for f in (said.first, *said.more)]


def _finding(finding: Finding, more: tuple[Finding, ...]) -> "Text":
    warning = finding.level == "warning"
    line = text("")
    line.append("Warning: " if warning else "Note: ", style="bold yellow" if warning else "bold")
    where = place(finding)
    line.append(text(f"{where}: {finding.message}" if where else finding.message))
    if more:
        line.append(f" ({len(more)} more like this.)", style="dim")
    return line


def _footer(*, full: bool) -> "Text":
    best = "Bold: best score of its split. Arrows: where better is. Values are fractions."
    return text(best if full else f"{best} --full shows every metric.", "dim")
