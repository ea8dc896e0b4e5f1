"""Findings for a terminal."""

from typing import TYPE_CHECKING

from abstain.evaluation.records import Finding
from abstain.report._terminal_parts import text
from abstain.report.findings import Said, grouped
from abstain.report.words import number, place

if TYPE_CHECKING:
    from rich.text import Text

_FINDINGS = 8
_NUMBER_WIDTH = 8


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
