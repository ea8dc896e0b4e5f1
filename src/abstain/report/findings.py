"""Findings as a document says them: of each kind one, with the others under it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from abstain.evaluation.records import Finding
from abstain.report.document import Remark
from abstain.report.words import place

#: The kind of the findings that `evaluate` was handed by the reader of a file.
_READER = "source"


def remarks(
    findings: Sequence[Finding],
    notes: Sequence[str] = (),
    where: Callable[[Finding], str] = place,
) -> tuple[Remark, ...]:
    """Return the findings grouped by level and kind, warnings first, and then the notes."""
    kinds: dict[tuple[str, str, str], list[Remark]] = {}
    for finding in findings:
        # The notes on a file have nothing in common but their kind, so each stands alone.
        apart = finding.message if finding.kind == _READER else ""
        warning = finding.level == "warning"
        one = Remark("warning" if warning else "note", finding.message, where(finding))
        kinds.setdefault((one.level, finding.kind, apart), []).append(one)
    said = [replace(first, more=tuple(more)) for first, *more in kinds.values()]
    said.sort(key=lambda remark: remark.level != "warning")
    return (*said, *(Remark("note", note) for note in notes))
