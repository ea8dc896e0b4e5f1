"""Findings grouped by kind, so that 20 splits do not repeat one warning 20 times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from abstain.evaluation.records import Finding
from abstain.report.document import Remark
from abstain.report.words import place

#: The kind of the findings that `evaluate` was handed by the reader of a file.
_READER = "source"


@dataclass(frozen=True)
class Said:
    """One finding and the others of its kind.

    Attributes
    ----------
    first : Finding
        The one to show.
    more : tuple of Finding
        The others of the same kind and level.
    """

    first: Finding
    more: tuple[Finding, ...]


def grouped(findings: Sequence[Finding]) -> list[Said]:
    """Group by level and kind, warnings first."""
    kinds: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        # The notes on a file have nothing in common but their kind, so each stands alone.
        apart = finding.message if finding.kind == _READER else ""
        kinds.setdefault((finding.level, finding.kind, apart), []).append(finding)
    said = [Said(group[0], tuple(group[1:])) for group in kinds.values()]
    return sorted(said, key=lambda s: s.first.level != "warning")


def remarks(
    findings: Sequence[Finding],
    notes: Sequence[str] = (),
    where: Callable[[Finding], str] = place,
) -> tuple[Remark, ...]:
    """Return the findings as a document says them, one for each kind, and then the notes."""
    said = [
        replace(_remark(group.first, where), more=tuple(_remark(f, where) for f in group.more))
        for group in grouped(findings)
    ]
    return (*said, *(Remark("note", note) for note in notes))


def _remark(finding: Finding, where: Callable[[Finding], str]) -> Remark:
    warning = finding.level == "warning"
    return Remark("warning" if warning else "note", finding.message, where(finding))
