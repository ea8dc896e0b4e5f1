"""A decision rule and what it keeps elsewhere, as a document."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from abstain._foundation.files import write_atomically
from abstain.evaluation.rule_checks import CALIBRATION, RuleChecks
from abstain.plots import DecisionRuleDisplay, RiskExcessDisplay
from abstain.plots._drawable import Drawable
from abstain.plots._verdicts import checked_rule
from abstain.report.document import (
    EVERYWHERE,
    NAN,
    READ,
    SCREEN,
    Block,
    Box,
    Code,
    Column,
    Document,
    Figure,
    Findings,
    Fold,
    Form,
    Glossary,
    Label,
    Number,
    Origin,
    Prose,
    Row,
    Section,
    Span,
    Table,
    reproduce,
    rows_of,
)
from abstain.report.figure_files import write_displays
from abstain.report.findings import remarks
from abstain.report.render.html import html
from abstain.report.render.terminal import terminal
from abstain.report.subjects.rule.words import (
    checks_sentences,
    facts,
    method_title,
    rule_sentences,
    rule_words,
    together_said,
    verdict_said,
    worst_groups,
)
from abstain.report.words import count, percent
from abstain.thresholds import DecisionRule

if TYPE_CHECKING:
    from rich.console import RenderableType

_TITLE = "A threshold and what it keeps"
#: Letters of a name that a column has room for.
_LONGEST = 26
#: So many groups of a data set are printed on a terminal.
_MOST_GROUPS = 20
_KINDS: Final[dict[str, Literal["good", "bad"]]] = {"holds": "good", "broken": "bad"}
_USE: Final = """\
import abstain as ab

rule = ab.tables.load("rule.json")
answer = rule.apply(predictions)  # or logits=..., or confidences; True: answer, False: abstain"""
_ABOUT = {
    "decision-rule": (
        "The diamond is the point chosen, its bar reaches to what is certified; the dotted line is "
        "the target. Other data stand where the same threshold puts them."
    ),
    "risk-excess": (
        "Discs keep to the target, crosses break it, hollow discs leave it open. In the order "
        "given; a gray line joins one shift at several severities."
    ),
}


def threshold_html(
    checks: RuleChecks,
    *,
    title: str = _TITLE,
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write a decision rule and its checks as one self-contained HTML page.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    title : str
        The heading.
    source : str
        Where the calibration data come from.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the page.

    Returns
    -------
    str
        HTML with style and figures inside; it loads nothing from the network and runs no script.

    Raises
    ------
    InputError
        If `checks` is something else.

    Notes
    -----
    Every string of the caller is escaped, also in the figures.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> page = threshold_html(check_rule(rule, {"<later>": later}))
    >>> "broken on \u201c&lt;later&gt;\u201d" in page
    True
    """
    return html(rule_document(checks, Origin(title, source, notes, command)))


def write_threshold(
    checks: RuleChecks,
    path: str | os.PathLike[str],
    *,
    title: str = _TITLE,
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    path : path-like
        The file; its folder must exist.
    title, source, notes, command
        As for `threshold_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `checks` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_threshold(check_rule(rule, later), f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = threshold_html(checks, title=title, source=source, notes=notes, command=command)
    write_atomically(Path(path), page.encode())
    return Path(path)


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
    return terminal(rule_document(checks, Origin()))


def write_rule_figures(
    checks: RuleChecks,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = ("svg", "png"),
) -> list[Path]:
    """Write the figures of a checked rule, each with its table.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg", "png")
        Some of "svg", "png" and "pdf".

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `checks` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     found = write_rule_figures(check_rule(rule, later), place, formats=["svg"])
    >>> [path.name for path in found]
    ['decision-rule.svg', 'decision-rule.csv', 'risk-excess.svg', 'risk-excess.csv']
    """
    return write_displays(rule_figures(checked_rule(checks)), folder, formats)


def rule_document(checks: RuleChecks, origin: Origin) -> Document:
    """Say a rule, its promise and what came of it."""
    known = checked_rule(checks)
    first, *rest = (*rule_sentences(known), *checks_sentences(known))
    source = [("Calibration data", origin.source)] if origin.source else []
    return Document(
        origin.title or _TITLE,
        "Decision rule",
        sections=partial(_sections, known, origin.command),
        brief=partial(_brief, known),
        verdict=(Span(first, "strong"), *rest),
        facts=(*source, *facts(known.rule)),
        findings=remarks(known.findings, origin.notes, lambda _: ""),
        alarm=not known.rule.attainable,
        longest=min(max((len(row["name"]) for row in known.rows()), default=8), _LONGEST),
    )


def _sections(checks: RuleChecks, command: str) -> list[Block]:
    figures = tuple(_figures(checks))
    return [
        Section("results", "What it keeps", tuple(_results(checks)), nav="Results"),
        *(
            [Section("figures", "The picture", (Box(figures, "figures"),), nav="Figures")]
            * bool(figures)
        ),
        Section("rule", "Use the rule", tuple(_use(checks.rule))),
        Section("glossary", "Glossary", (Glossary(rule_words(checks)),)),
        reproduce(command),
    ]


def _results(checks: RuleChecks) -> Iterator[Block]:
    if checks.rule.guarantee != "none":
        yield Prose(
            "The guarantee is about data like the calibration data. Where other data have shifted, "
            "this table says whether it still held.",
            "lead",
        )
    else:
        yield Prose("What the threshold gives on each data set, beside its target.", "lead")
    rows = checks.rows()
    if not rows:
        yield Prose("The rule was not checked on any data.")
        return
    yield _table(checks, rows)


def _table(checks: RuleChecks, rows: list[dict[str, Any]]) -> Table:
    """Return a row for each data set and group; a terminal shows the risk that is guaranteed."""
    generalized = checks.rule.quantity == "generalized risk"
    risks = {"Selective risk": not generalized, "Generalized risk": generalized}
    columns = (
        Column("Data", "name"),
        Column(Label("Samples", short="n"), "number"),
        Column("Answered", "number", only=READ),
        Column("Coverage", "number"),
        *(Column(n, "number", only=EVERYWHERE if s else READ) for n, s in risks.items()),
        Column("Excess", "number", only=READ),
        Column("Excess", "number", only=SCREEN),
        Column("Verdict"),
    )
    level = percent(checks.level)
    return Table(
        columns,
        rows_of(map(_row, rows)),
        title="What it keeps",
        caption=(
            f"Small: {level} intervals, {together_said(checks)}. Excess: above 0 is worse than "
            "the target. Values are fractions."
        ),
        look="leads",
    )


def _row(row: dict[str, Any]) -> Row:
    cells = (
        row["subgroup"] or row["name"],
        Number(row["n"], form="count"),
        Number(row["accepted"], form="count"),
        *(_number(row, name) for name in ("coverage", "selective_risk", "generalized_risk")),
        excess := _number(row, "excess", "signed"),
        excess and replace(excess, low=NAN, high=NAN),
        Span(verdict_said(row["verdict"]), _KINDS.get(row["verdict"], "open"), title=row["note"]),
    )
    if row["subgroup"]:
        return Row(cells, "group")
    return Row(cells, "marked" if row["role"] == CALIBRATION else "")


def _number(row: dict[str, Any], name: str, form: Form = "four") -> Number | None:
    """Return a number with its interval; without labels there is none."""
    if math.isnan(row[name]):
        return None
    return Number(row[name], row[f"{name}_low"], row[f"{name}_high"], form=form)


def rule_figures(
    checks: RuleChecks,
) -> Iterator[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]]:
    """Yield the figures that have something to show, each with its name."""
    rule = DecisionRuleDisplay.from_checks(checks)
    if checks.curve is not None or (checks.rule.attainable and checks.rows()):
        yield "decision-rule", rule
    if checks.checks and checks.rule.attainable and checks.rule.quantity:
        yield "risk-excess", RiskExcessDisplay.from_checks(checks)


def _figures(checks: RuleChecks) -> Iterator[Figure]:
    for key, display in rule_figures(checks):
        yield Figure(key, display.title, partial(_itself, display), _ABOUT[key])


def _itself(display: Drawable) -> Drawable:
    return display


def _use(rule: DecisionRule) -> Iterator[Block]:
    if rule.attainable:
        score = f"\u201c{rule.score}\u201d" if rule.score else "the same one"
        yield Prose(
            "Answer where the confidence is at least the threshold, abstain elsewhere. The "
            f"confidence must be {score}, computed as on the calibration data. Fit and use compare "
            "alike, with \u2265.",
            "lead",
        )
        yield Code(_USE)
    else:
        yield Prose("This rule has no threshold: it answers nothing.", "lead")
    yield Fold("The rule as JSON", (Code(rule.to_json()),))


def _brief(checks: RuleChecks) -> Iterator[Block]:
    first, *rest = rule_sentences(checks)
    yield Prose(first, "strong" if checks.rule.attainable else "alarm")
    yield from map(Prose, filter(None, [*rest, " ".join(checks_sentences(checks))]))
    yield Prose(f"Method: {method_title(checks.rule)}.", "about")
    rows, left = worst_groups(checks.rows(), _MOST_GROUPS)
    if rows:
        yield from (Prose(""), replace(_table(checks, rows), title=""))
        more = "more groups, none surer to be worse: all rows are in the results of --out."
        yield from [Prose(f"{count(left)} {more}", "about")] if left else []
    yield from (Prose(""), Findings(remarks(checks.findings, (), lambda _: "")))
    if checks.checks:
        yield Prose(_footer(checks), "notes")


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
