"""The same task with several networks: what the baseline and the best method of each achieve."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final

from abstain.plots.backbones import BackboneDisplay, BackboneValue
from abstain.report.document import NAN, Column, Number, Prose, Section, Table
from abstain.report.subjects.benchmark.facts import model_of
from abstain.report.subjects.benchmark.grids import TOP, back, figure, wide_table
from abstain.report.subjects.benchmark.leaderboard import NEW, Leaderboard

#: What is compared.
_METRICS: Final = ("accuracy", "failure_auroc", "aurc")

_LEAD: Final = (
    "Filled marks are the baseline “{base}”, hollow ones the best method of each model by that "
    "metric. Compare accuracy first: a network that errs less leaves less to a confidence score. "
    "Accuracy is shown where all classes are known."
)
_ABOUT: Final = "Values are fractions; the arrow points to where better is."
_APART: Final = "These benchmarks have no study and metric in common that could be compared."


def backbones_section(board: Leaderboard, beside: Sequence[Leaderboard]) -> Iterator[Section]:
    """Return the same task with several networks, where there are several."""
    if not beside:
        return
    display = backbones_of(board, beside)
    lead = _LEAD.format(base=board.baseline) if display else _APART
    figures = figure(display, "backbones", "Models side by side", _ABOUT)
    tables = [_table(display)] if display else []
    blocks = (Prose(lead, "lead"), *figures, *tables, back(TOP))
    yield Section("backbones", "Backbones", blocks)


def _table(display: BackboneDisplay) -> Table:
    columns = (
        *(Column(head) for head in ("Metric", "Study", "Model")),
        *(Column(head, "number") for head in ("Baseline", "Best")),
        Column("Best method"),
    )
    rows = (
        (v.metric, v.data, v.model, Number(v.plain), Number(v.best), v.best_method)
        for v in display.values
    )
    return wide_table("Baseline and best method of each model, fractions", columns, rows)


def backbones_of(board: Leaderboard, beside: Sequence[Leaderboard]) -> BackboneDisplay | None:
    """Return the models of several benchmarks side by side; None for one only."""
    values = tuple(
        value
        for metric in _METRICS
        for study in board.results.headline
        if not (metric == "accuracy" and study.kind in NEW)
        for model, one in _named([board, *beside]).items()
        if metric in one.results.comparisons
        for value in _backbone(one, metric, study.name, model, board.baseline)
    )
    if not beside or not values:
        return None
    return BackboneDisplay(values, f"{board.baseline} (baseline)", "Backbones")


def _named(every: Sequence[Leaderboard]) -> dict[str, Leaderboard]:
    """Return benchmarks by the name of their networks; equal names get a number."""
    models: dict[str, Leaderboard] = {}
    for one in every:
        own = model_of(one.results) or "model"
        names = (own if i == 1 else f"{own} ({i})" for i in itertools.count(1))
        models[next(name for name in names if name not in models)] = one
    return models


def _backbone(
    board: Leaderboard, metric: str, name: str, model: str, base: str
) -> list[BackboneValue]:
    grid = board.grid(metric)
    study = next((study for study in grid.studies if study.name == name), None)
    own = grid.column(study) if study else {}
    if study is None or base not in own or math.isnan(own[base].number.value):
        return []
    best = grid.standing(study)
    top, first = (own[best[0]].number.value, best[0]) if best else (NAN, "")
    title = f"{grid.label.text}\u00a0{grid.label.arrow}"
    return [BackboneValue(model, study.title, title, own[base].number.value, top, first)]
