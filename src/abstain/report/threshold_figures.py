"""The figures of a decision rule, for the page and as files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from abstain.evaluation.rule_checks import RuleChecks
from abstain.plots import DecisionRuleDisplay, RiskExcessDisplay
from abstain.plots._verdicts import checked_rule
from abstain.report.figure_files import write_displays


def rule_figures(
    checks: RuleChecks,
) -> Iterator[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]]:
    """Yield the figures that have something to show, each with its name."""
    rule = DecisionRuleDisplay.from_checks(checks)
    if checks.curve is not None or (checks.rule.attainable and checks.rows()):
        yield "decision-rule", rule
    if checks.checks and checks.rule.attainable and checks.rule.quantity:
        yield "risk-excess", RiskExcessDisplay.from_checks(checks)


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
