"""`abstain list`: what there is to ask for by name."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter
from rich.table import Table

from abstain._foundation.extras import has
from abstain.cli._console import console
from abstain.confidence import FITTED, SCORES
from abstain.errors import MissingInputError
from abstain.metrics import METRICS
from abstain.predictions import LOSSES
from abstain.thresholds import METHODS

#: What each column of a table says of an entry, by its heading.
Columns: TypeAlias = dict[str, Callable[[Any], str]]

What = Literal[
    "metrics",
    "scores",
    "fitted",
    "losses",
    "methods",
    "studies",
    "populations",
    "objectives",
    "rank-weights",
    "models",
    "datasets",
    "corruptions",
    "tasks",
    "csfs",
]


def listing(
    what: Annotated[
        What,
        Parameter(
            help="metrics, scores, fitted (scores), losses, methods (of thresholds), studies, "
            "populations (simulated), objectives and rank-weights (of training), models, datasets, "
            "corruptions, tasks or csfs (confidence scoring functions) of benchmarks"
        ),
    ],
    /,
) -> None:
    """List what there is to ask for by name."""
    tables = {
        "metrics": _metrics,
        "scores": _scores,
        "fitted": _fitted,
        "losses": _losses,
        "methods": _methods,
        "studies": _studies,
        "populations": _populations,
        "objectives": _objectives,
        "rank-weights": _rank_weights,
        "models": _models,
        "datasets": _datasets,
        "corruptions": _corruptions,
        "tasks": _tasks,
        "csfs": _csfs,
    }
    console().print(tables[what]())


def _table(entries: Iterable[Any], columns: Columns, caption: str = "") -> Table:
    """Lay out a catalogue: its names and titles, then what each column says of an entry."""
    every: Columns = {"name": attrgetter("name"), "what it is": attrgetter("title"), **columns}
    table = Table(box=None, pad_edge=False, header_style="bold", caption=caption or None)
    for column in every:
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for entry in entries:
        table.add_row(*(said(entry) for said in every.values()))
    return table


def _needs(needs: Iterable[Any]) -> str:
    return ", ".join(sorted(need.value.removeprefix("needs ") for need in needs))


_SOURCE: Columns = {"source": attrgetter("source")}
_MEANING: Columns = {"meaning": attrgetter("meaning")}


def _metrics() -> Table:
    columns = {
        "what it is": lambda m: m.title + (f" ({m.convention})" if m.convention else ""),
        "best": lambda m: "low" if m.lower_is_better else "high",
        "range": lambda m: f"{m.low:g} to {m.high:g}",
        "needs": lambda m: _needs(m.needs),
    }
    caption = (
        "Also with numbers of your own: selective_risk@85cov, generalized_risk@85cov, "
        "coverage@2risk, partial_aurc@50-80cov, partial_augrc@50-80cov, cwsa@0.8, cwsa_plus@0.8"
    )
    return _table(METRICS.values(), columns | _SOURCE, caption)


def _scores() -> Table:
    caption = (
        "With a temperature: msr@T=1.5. Your own confidence columns need no name here. "
        "Scores that are fitted first: `abstain list fitted`"
    )
    return _table(SCORES.values(), {"needs": lambda s: _needs(s.needs)} | _SOURCE, caption)


def _fitted() -> Table:
    columns = {
        "options": lambda k: ", ".join(dict.fromkeys((*k.required, *k.options))),
        "needs": lambda k: _needs(k.to_fit),
    }
    caption = "From Python: ab.fit_score(NAME, predictions), ab.select_score(NAME, ...)"
    return _table(FITTED.values(), columns | _SOURCE, caption)


def _methods() -> Table:
    columns: Columns = {
        "guarantees": attrgetter("guarantee"),
        "options": lambda m: ", ".join(m.options),
        "losses": attrgetter("loss"),
    }
    caption = "For `abstain threshold --method` and ab.thresholds.fit"
    return _table(METHODS.values(), columns | _SOURCE, caption)


def _studies() -> Table:
    from abstain.studies import STUDIES

    columns = {"question": attrgetter("question")} | _SOURCE
    return _table(STUDIES.values(), columns, "For `abstain study NAME`")


def _populations() -> Table:
    from abstain.simulate import POPULATIONS

    caption = "For `abstain study NAME --population` and ab.simulate.make"
    table = _table(POPULATIONS.values(), _MEANING, caption)
    said = "Gaussian classes, for studies over scores; in Python ab.simulate.logits."
    table.add_row("logits", "labeled class scores", said)
    return table


def _objectives() -> Table:
    if not has("torch"):
        msg = "the objectives of training need torch; pip install 'abstain[torch]'"
        raise MissingInputError(msg)
    from abstain.training import OBJECTIVES

    columns: Columns = _MEANING | {"options": lambda k: ", ".join(k.options)} | _SOURCE
    caption = (
        "For abstain.training.make; the first three also for configurations of "
        "`abstain study finetune`"
    )
    return _table(OBJECTIVES.values(), columns, caption)


def _rank_weights() -> Table:
    if not has("torch"):
        msg = "the rank weights of training need torch; pip install 'abstain[torch]'"
        raise MissingInputError(msg)
    from abstain.training import RANK_WEIGHTS

    columns: Columns = {"metric": attrgetter("metric")}
    return _table(RANK_WEIGHTS.values(), columns | _SOURCE, "For abstain.training.RankWeightedLoss")


def _models() -> Table:
    if not has("torch"):
        msg = "the models of benchmarks need torch; pip install 'abstain[benchmark]'"
        raise MissingInputError(msg)
    from abstain.benchmark.models import MODELS

    columns = {"pictures": lambda m: f"{m.side} x {m.side}" if m.side else f"from {m.least} px"}
    return _table(MODELS.values(), columns | _SOURCE, "For `abstain study finetune --model`")


def _datasets() -> Table:
    from abstain.benchmark.data import DATASETS

    return _table(DATASETS.values(), _MEANING | _SOURCE, "For `abstain study finetune --data`")


def _corruptions() -> Table:
    from abstain.benchmark.data.corruptions import CORRUPTIONS

    columns = {"kind": attrgetter("group")} | _MEANING
    caption = "In five severities: abstain.benchmark.data.corruptions.corrupt"
    return _table(CORRUPTIONS.values(), columns, caption)


def _tasks() -> Table:
    from abstain.benchmark.tasks import TASKS

    return _table(TASKS.values(), _MEANING | _SOURCE, "In Python: abstain.benchmark.tasks")


def _csfs() -> Table:
    from abstain.benchmark.methods import METHODS as CSFS

    columns = {"network": attrgetter("objective"), "fitted on": attrgetter("fitted_on")}
    return _table(CSFS.values(), columns | _SOURCE, "In Python: abstain.benchmark.methods")


def _losses() -> Table:
    return _table(LOSSES.values(), _SOURCE)
