"""From an evaluation to one plain dict: everything the templates print, formatted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain.evaluation.records import Case, Evaluation, Finding, Result, Sample
from abstain.plots.palette import dash, variable
from abstain.report.findings import grouped
from abstain.report.glossary import metric_entries, score_entries, skipped_entries
from abstain.report.interval_words import forms, level_of, note_of, without
from abstain.report.parts import parts_of
from abstain.report.pivot import Pivot, pivot
from abstain.report.verdict import leading_score, verdict
from abstain.report.words import (
    arrow,
    count,
    interval_range,
    loss_label,
    meaning,
    metric_of,
    number,
    percent,
    place,
    printed_x1000,
    short_title,
    thousandfold,
    tie_range,
    title_of,
    unique,
)
from abstain.tables import split_name
from abstain.typing import Split

#: What a metric of no family in the catalogue is filed under.
_OTHER = "other"


@dataclass(frozen=True)
class Origin:
    """Where the numbers come from, as told by the caller.

    Attributes
    ----------
    title, source : str
        Of the report, and of the data.
    notes : sequence of str
        Sentences to show under the warnings.
    command : str
        The command line or code that made the report, or empty.
    """

    title: str
    source: str
    notes: Sequence[str] = ()
    command: str = ""


def summarize(evaluation: Evaluation, origin: Origin) -> dict[str, Any]:
    """Return what the templates of the report print.

    Parameters
    ----------
    evaluation : Evaluation
        The only source of numbers.
    origin : Origin
        The words around them.

    Returns
    -------
    dict
        Strings, flags and lists of dicts; no number is computed here.
    """
    found = pivot(evaluation)
    return {
        "title": origin.title,
        "command": origin.command,
        "notes": list(origin.notes),
        "zero_one": evaluation.binary,
        "facts": _facts(evaluation, found, origin.source),
        "verdict": verdict(found, zero_one=evaluation.binary),
        "findings": _findings(evaluation),
        "splits": [{"key": i, "label": split_name(s)} for i, s in enumerate(found.splits)],
        "scores": [_score(i, name) for i, name in enumerate(found.scores)],
        "glance": _glance(found),
        "families": unique(_family(r) for r in evaluation.results),
        "numbers": [_number_group(i, s, found) for i, s in enumerate(found.splits)],
        "samples": [_samples(case, found) for case in found.cases.values()],
        "leader": _leader(found),
        "intervals": level_of(evaluation.results),
        "interval_forms": forms(evaluation.results),
        "without_interval": without(evaluation.results),
        "bands": _bands(evaluation),
        "has_reliability": any(c.reliability is not None for c in evaluation.cases),
        "has_cwsa": any(c.cwsa is not None for c in evaluation.cases),
        "skipped": skipped_entries(evaluation.skipped),
        "metrics": metric_entries(found.metrics),
        "score_glossary": score_entries(found.scores, {c.score for c in evaluation.cases if c.own}),
    }


def _leader(found: Pivot) -> int:
    return found.scores.index(leading_score(found, found.splits[0])) if found.splits else 0


def _bands(evaluation: Evaluation) -> str:
    """Return the level of the bands, or an empty string where no curve has one."""
    bands = [case.band for case in evaluation.cases if case.band is not None]
    return next((percent(band.level) for band in bands if np.isfinite(band.low).all()), "")


def _facts(evaluation: Evaluation, found: Pivot, source: str) -> list[dict[str, str]]:
    first = next(iter(found.cases.values()), None)
    facts = [("Source", source)]
    # With several splits each has its own count, in the table of numbers.
    if first is not None and len(found.splits) == 1:
        facts.append(("Samples", count(first.n)))
        facts.append(("Failures (loss above 0)", count(first.failures)))
    facts.append(("Loss", loss_label(evaluation.loss)))
    facts.append(("Scores", _listed(found.scores)))
    if len(found.splits) > 1:
        columns = unique(column for split in found.splits for column, _ in split)
        facts.append(("Splits", f"{len(found.splits)}, by {', '.join(columns)}"))
    return [{"label": label, "value": value} for label, value in facts]


def _listed(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _score(index: int, name: str) -> dict[str, Any]:
    pattern = " ".join(str(length) for length in dash(index))
    return {"key": index, "name": name, "color": variable(index), "dash": pattern}


def _findings(evaluation: Evaluation) -> list[dict[str, Any]]:
    return [
        {
            "level": said.first.level,
            **_finding(said.first),
            "more": [_finding(f) for f in said.more],
        }
        for said in grouped(evaluation.findings)
    ]


def _finding(finding: Finding) -> dict[str, str]:
    return {"message": finding.message, "place": place(finding)}


def _glance(found: Pivot) -> dict[str, Any]:
    columns = [_column(name, found) for name in found.headline]
    rows = [
        {
            "split": found.splits.index(split),
            "split_label": split_name(split),
            "score": found.scores.index(score),
            "name": score,
            "cells": [_cell(found, split, score, name) for name in found.headline],
        }
        for split, score in found.pairs()
    ]
    return {"columns": columns, "rows": rows}


def _column(name: str, found: Pivot) -> dict[str, str]:
    sample = next(r for r in found.results.values() if r.metric == name)
    better = "lower is better" if sample.lower_is_better else "higher is better"
    return {"name": name, "title": short_title(name), "arrow": arrow(sample), "better": better}


def _cell(found: Pivot, split: Split, score: str, metric: str) -> dict[str, Any] | None:
    result = found.results.get((split, score, metric))
    return None if result is None else _value(result, found)


def _value(result: Result, found: Pivot) -> dict[str, Any]:
    return {
        "text": number(result.value),
        "exact": "" if result.reason else repr(result.value),
        "thousand": thousandfold(result.value) if printed_x1000(result.metric) else "",
        "best": (result.split, result.score, result.metric) in found.best,
        "reason": result.reason,
        "ties": tie_range(result),
        "interval": interval_range(result),
        "thousand_interval": interval_range(result, times=1000),
        "level": percent(result.level),
        "interval_words": ". ".join(w for w in (result.interval, result.interval_note) if w),
    }


def _family(result: Result) -> str:
    metric = metric_of(result.metric)
    return metric.family if metric else _OTHER


def _number_group(index: int, split: Split, found: Pivot) -> dict[str, Any]:
    """Collect the numbers of one split, metric by metric so that scores stand together."""
    rows = [
        _number_row(found.results[split, score, metric], found)
        for metric in found.metrics
        for score in found.scores
        if (split, score, metric) in found.results
    ]
    return {"split": index, "label": split_name(split), "rows": rows}


def _number_row(result: Result, found: Pivot) -> dict[str, Any]:
    return {
        **_value(result, found),
        "score": found.scores.index(result.score),
        "name": result.score,
        "metric": result.metric,
        "title": title_of(result.metric),
        "family": _family(result),
        "headline": result.metric in found.headline,
        "arrow": arrow(result),
        "meaning": meaning(result),
        "interval_note": note_of(result),
        "convention": result.convention,
        "n": count(result.n),
        "failures": count(result.failures),
        "accepted": "" if result.accepted is None else count(result.accepted),
    }


def _samples(case: Case, found: Pivot) -> dict[str, Any]:
    return {
        "split": found.splits.index(case.split),
        "split_label": split_name(case.split),
        "score": found.scores.index(case.score),
        "name": case.score,
        "over": [_sample(s) for s in case.overconfident],
        "under": [_sample(s) for s in case.underconfident],
        "parts": parts_of(case),
    }


def _sample(sample: Sample) -> dict[str, str]:
    return {
        "id": sample.id,
        "label": sample.label,
        "prediction": sample.prediction,
        "confidence": f"{sample.confidence:.6g}",
        "loss": number(sample.loss),
    }
