"""What stands above the numbers of a comparison: the facts and the findings."""

from typing import Any

from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Finding
from abstain.plots import chosen
from abstain.report.findings import grouped
from abstain.report.words import count, place


def facts_of(comparison: Comparison, source: str) -> list[dict[str, str]]:
    """Return what was compared by what."""
    sizes = list(dict.fromkeys(e.n for e in comparison.estimates))
    facts = [("Source", source)] if source else []
    if len(sizes) == 1:
        facts.append(("Samples", count(sizes[0])))
    facts += [
        ("Methods", str(len(comparison.methods))),
        ("Metrics", ", ".join(chosen.metric_title(m) for m in comparison.metrics)),
        ("Data sets", str(len(comparison.data))),
    ]
    if len(comparison.runs) > 1:
        facts.append(("Runs", str(len(comparison.runs))))
    facts.append(("Test that decides", chosen.said_of_tests(comparison) or "none"))
    if comparison.bootstrap:
        seed = "" if comparison.seed is None else f", seed {comparison.seed}"
        facts.append(("Resamples", f"{count(comparison.bootstrap)}{seed}"))
    return [{"label": label, "value": value} for label, value in facts]


def findings_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Return what the reader should know first, grouped by kind."""
    return [
        {"level": s.first.level, **_finding(s.first), "more": [_finding(f) for f in s.more]}
        for s in grouped(comparison.findings)
    ]


def _finding(finding: Finding) -> dict[str, str]:
    return {"message": finding.message, "place": place(finding)}
