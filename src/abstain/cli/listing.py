"""`abstain list`: what there is to ask for by name."""

from typing import Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from abstain._foundation.extras import has
from abstain.cli._console import console
from abstain.confidence import FITTED, SCORES
from abstain.errors import MissingInputError
from abstain.metrics import METRICS
from abstain.predictions import LOSSES
from abstain.thresholds import METHODS

What = Literal[
    "metrics",
    "scores",
    "fitted",
    "losses",
    "methods",
    "studies",
    "populations",
    "objectives",
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
            "populations (simulated), objectives (of training), models, datasets, "
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
        "models": _models,
        "datasets": _datasets,
        "corruptions": _corruptions,
        "tasks": _tasks,
        "csfs": _csfs,
    }
    console().print(tables[what]())


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    return table


def _metrics() -> Table:
    table = _table("name", "what it is", "best", "range", "needs", "source")
    for metric in METRICS.values():
        table.add_row(
            metric.name,
            metric.title + (f" ({metric.convention})" if metric.convention else ""),
            "low" if metric.lower_is_better else "high",
            f"{metric.low:g} to {metric.high:g}",
            ", ".join(sorted(need.value.removeprefix("needs ") for need in metric.needs)),
            metric.source,
        )
    table.caption = (
        "Also with numbers of your own: selective_risk@85cov, generalized_risk@85cov, "
        "coverage@2risk, partial_aurc@50-80cov, partial_augrc@50-80cov, cwsa@0.8, cwsa_plus@0.8"
    )
    return table


def _scores() -> Table:
    table = _table("name", "what it is", "needs", "source")
    for score in SCORES.values():
        needs = ", ".join(sorted(need.value.removeprefix("needs ") for need in score.needs))
        table.add_row(score.name, score.title, needs, score.source)
    table.caption = (
        "With a temperature: msr@T=1.5. Your own confidence columns need no name here. "
        "Scores that are fitted first: `abstain list fitted`"
    )
    return table


def _fitted() -> Table:
    table = _table("name", "what it is", "options", "needs", "source")
    for kind in FITTED.values():
        options = (*kind.required, *(name for name in kind.options if name not in kind.required))
        needs = ", ".join(sorted(need.value.removeprefix("needs ") for need in kind.to_fit))
        table.add_row(kind.name, kind.title, ", ".join(options), needs, kind.source)
    table.caption = "From Python: ab.fit_score(NAME, predictions), ab.select_score(NAME, ...)"
    return table


def _methods() -> Table:
    table = _table("name", "what it is", "guarantees", "options", "losses", "source")
    for method in METHODS.values():
        options = ", ".join(method.options)
        table.add_row(
            method.name, method.title, method.guarantee, options, method.loss, method.source
        )
    table.caption = "For `abstain threshold --method` and ab.thresholds.fit"
    return table


def _studies() -> Table:
    from abstain.studies import STUDIES

    table = _table("name", "what it is", "question", "source")
    for study in STUDIES.values():
        table.add_row(study.name, study.title, study.question, study.source)
    table.caption = "For `abstain study NAME`"
    return table


def _populations() -> Table:
    from abstain.simulate import POPULATIONS

    table = _table("name", "what it is", "meaning")
    for population in POPULATIONS.values():
        table.add_row(population.name, population.title, population.meaning)
    said = "Gaussian classes, for studies over scores; in Python ab.simulate.logits."
    table.add_row("logits", "labeled class scores", said)
    table.caption = "For `abstain study NAME --population` and ab.simulate.make"
    return table


def _objectives() -> Table:
    if not has("torch"):
        msg = "the objectives of training need torch; pip install 'abstain[torch]'"
        raise MissingInputError(msg)
    from abstain.training import OBJECTIVES

    table = _table("name", "what it is", "meaning", "options", "source")
    for kind in OBJECTIVES.values():
        table.add_row(kind.name, kind.title, kind.meaning, ", ".join(kind.options), kind.source)
    table.caption = (
        "For abstain.training.make; the first three also for configurations of "
        "`abstain study finetune`"
    )
    return table


def _models() -> Table:
    if not has("torch"):
        msg = "the models of benchmarks need torch; pip install 'abstain[benchmark]'"
        raise MissingInputError(msg)
    from abstain.benchmark.models import MODELS

    table = _table("name", "what it is", "pictures", "source")
    for model in MODELS.values():
        pictures = f"{model.side} x {model.side}" if model.side else f"from {model.least} px"
        table.add_row(model.name, model.title, pictures, model.source)
    table.caption = "For `abstain study finetune --model`"
    return table


def _datasets() -> Table:
    from abstain.benchmark.data import DATASETS

    table = _table("name", "what it is", "meaning", "source")
    for data in DATASETS.values():
        table.add_row(data.name, data.title, data.meaning, data.source)
    table.caption = "For `abstain study finetune --data`"
    return table


def _corruptions() -> Table:
    from abstain.benchmark.data.corruptions import CORRUPTIONS

    table = _table("name", "what it is", "kind", "meaning")
    for entry in CORRUPTIONS.values():
        table.add_row(entry.name, entry.title, entry.group, entry.meaning)
    table.caption = "In five severities: abstain.benchmark.data.corruptions.corrupt"
    return table


def _tasks() -> Table:
    from abstain.benchmark.tasks import TASKS

    table = _table("name", "what it is", "meaning", "source")
    for task in TASKS.values():
        table.add_row(task.name, task.title, task.meaning, task.source)
    table.caption = "In Python: abstain.benchmark.tasks"
    return table


def _csfs() -> Table:
    from abstain.benchmark.methods import METHODS as CSFS

    table = _table("name", "what it is", "network", "fitted on", "source")
    for method in CSFS.values():
        row = (method.name, method.title, method.objective, method.fitted_on, method.source)
        table.add_row(*row)
    table.caption = "In Python: abstain.benchmark.methods"
    return table


def _losses() -> Table:
    table = _table("name", "what it is", "source")
    for loss in LOSSES.values():
        table.add_row(loss.name, loss.title, loss.source)
    return table
