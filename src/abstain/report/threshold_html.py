"""A decision rule and what it keeps elsewhere, as one HTML file that needs only a browser."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import abstain as ab
from abstain._foundation.files import write_atomically
from abstain.evaluation.rule_checks import CALIBRATION, RuleChecks
from abstain.plots._verdicts import checked_rule
from abstain.report.findings import grouped
from abstain.report.html import environment, policy, resource, style, trusted
from abstain.report.render.svg import inline_svg
from abstain.report.summary import Origin
from abstain.report.threshold_figures import rule_figures
from abstain.report.threshold_glossary import rule_words
from abstain.report.threshold_words import (
    checks_sentences,
    ends,
    facts,
    rule_sentences,
    signed,
    together_said,
    verdict_said,
    written,
)
from abstain.report.words import count, percent

_TITLE = "A threshold and what it keeps"
_NUMBERS = ("coverage", "selective_risk", "generalized_risk")
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
    known = checked_rule(checks)
    template = environment().get_template("threshold.html")
    return template.render(
        **_summary(known, Origin(title, source, notes, command)),
        version=ab.__version__,
        policy=policy(),
        trusted=trusted,
        css=trusted(style() + resource("comparison.css") + resource("threshold.css")),
    )


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


def _summary(checks: RuleChecks, origin: Origin) -> dict[str, Any]:
    rows = checks.rows()
    return {
        "title": origin.title,
        "command": origin.command,
        "notes": list(origin.notes),
        "attainable": checks.rule.attainable,
        "verdict": [*rule_sentences(checks), *checks_sentences(checks)],
        "facts": _facts(checks, origin.source),
        "findings": _findings(checks),
        "rows": [_row(row) for row in rows],
        "figures": [
            {
                "key": key,
                "title": display.title,
                "more": _ABOUT[key],
                "svg": inline_svg(display, key),
            }
            for key, display in rule_figures(checks)
        ],
        "words": rule_words(checks),
        "json": checks.rule.to_json(),
        "guaranteed": checks.rule.guarantee != "none",
        "level": percent(checks.level),
        "together": together_said(checks),
        "checked": len(checks),
        "score": checks.rule.score,
        "longest": min(max((len(row["name"]) for row in rows), default=8), 26),
    }


def _facts(checks: RuleChecks, source: str) -> list[dict[str, str]]:
    lead = [("Calibration data", source)] if source else []
    return [{"label": label, "value": value} for label, value in [*lead, *facts(checks.rule)]]


def _findings(checks: RuleChecks) -> list[dict[str, Any]]:
    return [
        {
            "level": said.first.level,
            "message": said.first.message,
            "place": "",
            "more": [{"message": f.message, "place": ""} for f in said.more],
        }
        for said in grouped(checks.findings)
    ]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    cells = {name: _cell(row, name, written(row[name])) for name in _NUMBERS}
    return {
        "name": row["subgroup"] or row["name"],
        "group": bool(row["subgroup"]),
        "calibration": row["role"] == CALIBRATION,
        "n": count(row["n"]),
        "accepted": count(row["accepted"]),
        **cells,
        "excess": _cell(row, "excess", signed(row["excess"])),
        "verdict": row["verdict"].replace(" ", "-"),
        "said": verdict_said(row["verdict"]),
        "note": row["note"],
    }


def _cell(row: dict[str, Any], name: str, text: str) -> dict[str, str]:
    span = ends(row[f"{name}_low"], row[f"{name}_high"])
    return {"text": text, "exact": repr(float(row[name])), "interval": span.replace("-", "\u2212")}
