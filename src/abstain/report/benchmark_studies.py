"""One study of a benchmark, and one method, as the templates print them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from abstain.benchmark.protocol import ERRORS, Study
from abstain.benchmark.results import BenchmarkResults, Extreme, ThresholdRow
from abstain.benchmark.results.records import MEAN
from abstain.plots import chosen
from abstain.report.benchmark_figures import mean_rows
from abstain.report.benchmark_grid import NONE, Entry, Grid
from abstain.report.benchmark_pictures import Pictures
from abstain.report.benchmark_tables import (
    Keys,
    grid_head,
    link,
    numeral,
    plain_table,
    shade_of,
    words,
)
from abstain.report.subjects.rule.words import verdict_said
from abstain.report.words import count, short_title

_KINDS: Final = {
    "overconfident": "most confident failures",
    "underconfident": "least confident successes",
}


def study_about(results: BenchmarkResults, study: Study, grids: Mapping[str, Grid]) -> str:
    """Say what counts in a study, and how many samples it has."""
    counted = "" if study.kind not in {"new-class", "far-new-class"} else ERRORS[study.errors]
    missing = (pair for pair in results.undefined.items() if pair[0][1] == study.name)
    reasons = [f"{short_title(metric)} is undefined here: {why}" for (metric, _), why in missing]
    parts = [_sizes(results, study, grids), chosen.sentence(counted), *reasons]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _sizes(results: BenchmarkResults, study: Study, grids: Mapping[str, Grid]) -> str:
    """Say how many samples and failures there are; both differ with what a method leaves out."""
    metric = next(iter(grids), "")
    if not metric:
        return ""
    found = chosen.estimates_in(results.comparisons[metric], metric, (("study", study.name),))
    if not found:
        return ""
    samples, failures = ([getattr(e, name) for e in found] for name in ("n", "failures"))
    return f"{_between(samples)} samples, of which {_between(failures)} are failures of a network"


def _between(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def study_table(study: Study, grids: Mapping[str, Grid], keys: Keys, level: float) -> Any:
    """Return every method of a study by every metric, with intervals and ranks."""
    known = {name: grid.of(study) for name, grid in grids.items()}
    shown = {name: grid for name, grid in grids.items() if known[name]}
    heads = [("Method", False)]
    for grid in shown.values():
        heads += [(grid_head(grid), True), ("Rank", True)]
    methods = dict.fromkeys(line.method for grid in shown.values() for line in grid.lines)
    rows = [
        [
            link(keys.methods[method.name], method.name, method.title),
            *(cell for name in shown for cell in _pair(known[name].get(method.name))),
        ]
        for method in methods
        if any(method.name in known[name] for name in shown)
    ]
    title = f"Values and ranks, {study.title}"
    caption = (
        f"{title}; below each value its {chosen.percent(level)} interval. Arrows point to where "
        "better is; what is not times 1000 is a fraction. †: cannot be told from the best."
    )
    return plain_table(title, caption, heads, rows)


def _pair(entry: Entry | None) -> list[dict[str, Any]]:
    if entry is None:
        return [numeral(math.nan), numeral(math.nan)]
    value = {**numeral(entry.value, entry.text, entry.interval), "shade": shade_of(entry)}
    marks = {"best": entry.stands == "best", "tie": entry.stands == "not told apart"}
    return [{**value, **marks}, numeral(entry.rank, entry.ranked)]


def threshold_table(results: BenchmarkResults, study: Study, keys: Keys) -> Any:
    """Return what the thresholds set on validation data achieve in a study."""
    rows = [row for row in mean_rows(results.thresholds) if row.study == study.name]
    if not rows:
        return None
    first = rows[0]
    risk, delta = chosen.percent(first.risk), chosen.percent(first.delta)
    asked = f"asked for: at most {risk} failures among the accepted, but for a chance of {delta}"
    if study.errors == "removed":
        asked += "; a threshold meets all pictures, so here wrong answers about known classes count"
    title = f"What a threshold set on validation data achieves, {study.title}"
    heads = [
        ("Method", False),
        ("Failures among the accepted", True),
        ("Above the target", True),
        ("Coverage", True),
        ("Verdict", False),
    ]
    body = [_threshold(row, keys) for row in rows if row.method in keys.methods]
    caption = f"{title}; {asked}. Fractions{over_seeds(rows)}."
    if any(row.verdict == "unattainable" for row in rows):
        caption += " “No threshold”: none could promise that on validation data."
    return plain_table(title, caption, heads, body)


def over_seeds(rows: Sequence[ThresholdRow]) -> str:
    """Say that values are means, where they are."""
    return ", means over the seeds" if any(row.run == MEAN for row in rows) else ""


def _threshold(row: ThresholdRow, keys: Keys) -> list[dict[str, Any]]:
    low, high = row.selective_risk_low, row.selective_risk_high
    between = "" if math.isnan(low) or math.isnan(high) else f"{low:.3f} to {high:.3f}"
    excess = NONE if math.isnan(row.excess) else f"{row.excess:+.4f}".replace("-", "−")
    return [
        link(keys.methods[row.method], row.method),
        numeral(row.selective_risk, beside=between),
        numeral(row.excess, excess),
        numeral(row.coverage),
        words(_verdict(row)),
    ]


def _verdict(row: ThresholdRow) -> str:
    if row.verdict != "differs":
        return verdict_said(row.verdict)
    rest = "" if row.holds + row.broken == row.runs else "; the others cannot tell"
    return f"of {row.runs} seeds, holds with {row.holds}, is broken with {row.broken}{rest}"


def shots_of(
    results: BenchmarkResults, study: Study, shown: Sequence[Extreme], pictures: Pictures | None
) -> Any:
    """Return the pictures that the leader of a study and the baseline are most wrong about."""
    own = [one for one in shown if one.study == study.name]
    if not own:
        return None
    made = pictures or Pictures(reason="they were not asked for")
    about = (
        "The share is of the samples of the study that the method is less sure of: high for a "
        "failure and low for a success misleads."
    )
    if not any((one.exposure, one.row) in made.sources for one in own):
        why = made.reason or "none could be made"
        about += f" The pictures themselves are not shown: {why.rstrip('.')}."
    names = results.facts.get("classes")
    classes = [str(name) for name in names] if isinstance(names, list | tuple) else []
    groups = []
    for method in dict.fromkeys(one.method for one in own):
        for kind, said in _KINDS.items():
            found = [one for one in own if (one.method, one.kind) == (method, kind)]
            if found:
                title = f"“{method}”, seed {found[0].seed}: {said}"
                shots = [_shot(one, made, classes) for one in found]
                groups.append({"title": title, "shots": shots})
    return {"title": "Pictures that mislead most", "about": about, "groups": groups}


def _shot(one: Extreme, pictures: Pictures, classes: Sequence[str]) -> dict[str, str]:
    label, taken = _class(one.label, classes), _class(one.prediction, classes)
    share = f"{100 * one.quantile:.1f} %"
    said = f"taken for {taken}" if one.label != one.prediction else "recognized"
    return {
        "source": pictures.sources.get((one.exposure, one.row), ""),
        "alt": f"A picture of {label}, {said}; the method is less sure of {share} of the samples",
        "label": label,
        "taken": said,
        "confidence": f"{share} less sure; {one.exposure}, picture {one.row}",
    }


def _class(index: int, classes: Sequence[str]) -> str:
    if index < 0:
        return "a new class"
    return f"“{classes[index]}”" if index < len(classes) else f"class {index}"
