"""`abstain list`: what there is to ask for by name."""

from typing import Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from abstain.cli._console import console
from abstain.confidence import SCORES
from abstain.metrics import METRICS
from abstain.predictions import LOSSES

What = Literal["metrics", "scores", "losses"]


def listing(what: Annotated[What, Parameter(help="metrics, scores or losses")], /) -> None:
    """List what there is to ask for by name: metrics, scores or losses."""
    table = {"metrics": _metrics, "scores": _scores, "losses": _losses}[what]()
    console().print(table)


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
        "Also with a number of your own: selective_risk@85cov, generalized_risk@85cov, "
        "coverage@2risk, cwsa@0.8, cwsa_plus@0.8"
    )
    return table


def _scores() -> Table:
    table = _table("name", "what it is", "needs", "source")
    for score in SCORES.values():
        needs = ", ".join(sorted(need.value.removeprefix("needs ") for need in score.needs))
        table.add_row(score.name, score.title, needs, score.source)
    table.caption = "With a temperature: msr@T=1.5. Your own confidence columns need no name here."
    return table


def _losses() -> Table:
    table = _table("name", "what it is", "source")
    for loss in LOSSES.values():
        table.add_row(loss.name, loss.title, loss.source)
    return table
