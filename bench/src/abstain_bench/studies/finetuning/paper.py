"""Table 1 of the paper beside what was found, where data, network and objective are its."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import fmean, stdev
from typing import Any, Final

from abstain_bench import published
from abstain_bench.studies._area_estimators import loss_title
from abstain_bench.studies.finetuning.experiment import Contender, Experiment
from abstain_bench.studies.finetuning.results import MEASURES, by_seed

#: What the table calls the networks that there are here.
NETWORKS: Final[Mapping[str, str]] = {
    "resnet18-cifar": "ResNet18",
    "resnet34-cifar": "ResNet34",
    "resnet50-cifar": "ResNet50",
    "vgg16-bn": "VGG16BN",
    "vgg19-bn": "VGG19BN",
    "wrn-28-10": "WideResNet28x10",
}

#: The name of the table beside it.
TABLE: Final = "table-1"

CAPTION: Final = (
    "AURC on the test data times 100, as the paper prints it, which does not say of which loss; "
    "here of the 0/1 error and of the cross-entropy (CE). Its networks were trained otherwise."
)

#: The two areas under AURC that the paper may mean: of its columns, what they are called here.
_AREAS: Final = {
    m.column.replace("x1000", "x100"): m
    for m in MEASURES
    if m.metric == MEASURES[0].metric and m.column
}


def tables(
    experiment: Experiment, rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, int]
) -> dict[str, list[dict[str, Any]]]:
    """Return the table of the objectives that the paper has too; none for other networks."""
    found = beside(experiment, rows, chosen)
    return {TABLE: found} if found else {}


def beside(
    experiment: Experiment, rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return each of those objectives with both numbers."""
    cells = [
        cell
        for cell in published.table("population_aurc_table_1")
        if cell["task"] == experiment.data.name
        and cell["classifier"] == NETWORKS.get(experiment.model)
    ]
    out = []
    for contender in experiment.contenders:
        if contender.name not in chosen:
            continue
        cell = next((c for c in cells if _same(contender, chosen[contender.name], c)), None)
        if cell is not None:
            out.append({"objective": contender.title, **_ours(contender, rows), **_theirs(cell)})
    return out


def _same(contender: Contender, setting: int, cell: Mapping[str, Any]) -> bool:
    """Tell whether a cell is about an objective, with these options and no others."""
    options = dict(part.split("=") for part in cell["block"].split(";") if part)
    own = contender.settings[setting].options
    return contender.kind == cell["method"] and dict(own) == options


def _ours(contender: Contender, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    out = {}
    for column, measure in _AREAS.items():
        own = by_seed(rows, measure.loss, measure.metric)[contender.name]
        out[column] = 100 * fmean(own)
        out[f"{column}_deviation"] = 100 * stdev(own) if len(own) > 1 else float("nan")
    return out


def _theirs(cell: Mapping[str, Any]) -> dict[str, Any]:
    spread = {"table_1_deviation": float(cell["spread"]), "doubt": cell["doubt"]}
    return {"table_1": float(cell["value"]), **spread}


def said(experiment: Experiment, table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say in which order the paper and this run have the objectives, from the lowest AURC."""
    if len(table) < 2:
        return []
    here = [f"here {_order(table, c)} ({loss_title(m.loss)})" for c, m in _AREAS.items()]
    orders = "; ".join((f"table 1 of the paper has {_order(table, 'table_1')}", *here))
    return [f"AURC on {experiment.data.name} with {NETWORKS[experiment.model]}: {orders}."]


def _order(table: Sequence[Mapping[str, Any]], column: str) -> str:
    """Write the objectives by a column, those of one value as equal."""
    rows = sorted(table, key=itemgetter(column))
    signs = [" = " if a[column] == b[column] else " < " for a, b in pairwise(rows)]
    return "".join(
        f"{row['objective']}{sign}" for row, sign in zip(rows, [*signs, ""], strict=True)
    )
