"""Findings grouped by kind, so that 20 splits do not repeat one warning 20 times."""

from collections.abc import Sequence
from dataclasses import dataclass

from abstain.evaluation.records import Finding

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
