"""Compare the results with table 1 of the paper, if data, network and objective are the same."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import fmean, stdev
from typing import Any, Final

from abstain_bench import published
from abstain_bench.studies._area_estimators import loss_title
from abstain_bench.studies._tables import Row
from abstain_bench.studies.finetuning.experiment import ComparedObjective, Experiment
from abstain_bench.studies.finetuning.results import MEASURES, values_by_objective

#: Names of our networks in the table.
NETWORKS: Final[Mapping[str, str]] = {
    "resnet18-cifar": "ResNet18",
    "resnet34-cifar": "ResNet34",
    "resnet50-cifar": "ResNet50",
    "vgg16-bn": "VGG16BN",
    "vgg19-bn": "VGG19BN",
    "wrn-28-10": "WideResNet28x10",
}

#: Name of the table of the comparison.
TABLE: Final = "table-1"


#: The AURC by both losses, with their columns in this table.
_AREAS: Final = {
    measure.column.replace("x1000", "x100"): measure
    for measure in MEASURES
    if measure.metric == MEASURES[0].metric and measure.column
}


def tables(
    experiment: Experiment, rows: Sequence[Row], selected: Mapping[str, int]
) -> dict[str, list[dict[str, Any]]]:
    """Return the comparison as a table by name, or no table for other networks."""
    comparison = compare_with_table_1(experiment, rows, selected)
    return {TABLE: comparison} if comparison else {}


def compare_with_table_1(
    experiment: Experiment, rows: Sequence[Row], selected: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return a row with our and the printed AURC for each objective of the paper."""
    cells = [
        cell
        for cell in published.table("population_aurc_table_1")
        if cell["task"] == experiment.data.name
        and cell["classifier"] == NETWORKS.get(experiment.model)
    ]
    comparison = []
    for objective in experiment.objectives:
        if objective.name not in selected:
            continue
        setting = selected[objective.name]
        cell = next((cell for cell in cells if _is_same(objective, setting, cell)), None)
        if cell is not None:
            comparison.append({
                "objective": objective.title,
                **_own_areas(objective, rows),
                "table_1": float(cell["value"]),
                "table_1_deviation": float(cell["spread"]),
                "doubt": cell["doubt"],
            })  # fmt: skip
    return comparison


def _is_same(objective: ComparedObjective, setting: int, cell: Mapping[str, Any]) -> bool:
    """Return whether a cell has the kind and exactly the options of an objective."""
    printed_options = dict(option.split("=") for option in cell["block"].split(";") if option)
    options = dict(objective.settings[setting].options)
    return objective.kind == cell["method"] and options == printed_options


def _own_areas(objective: ComparedObjective, rows: Sequence[Row]) -> dict[str, float]:
    areas = {}
    for column, measure in _AREAS.items():
        values = values_by_objective(rows, measure.loss, measure.metric)[objective.name]
        areas[column] = 100 * fmean(values)
        areas[f"{column}_deviation"] = 100 * stdev(values) if len(values) > 1 else float("nan")
    return areas


def conclude_order(experiment: Experiment, comparison: Sequence[Row]) -> list[str]:
    """Compare the orders of the objectives by AURC in the paper and in this run."""
    if len(comparison) < 2:
        return []
    orders = [f"table 1 of the paper has {_order_text(comparison, 'table_1')}"]
    orders += [
        f"this run has {_order_text(comparison, column)} ({loss_title(measure.loss)})"
        for column, measure in _AREAS.items()
    ]
    network = NETWORKS[experiment.model]
    return [f"AURC on {experiment.data.name} with {network}: {'; '.join(orders)}."]


def _order_text(comparison: Sequence[Row], column: str) -> str:
    """Join the titles of the objectives, sorted by a column, with "<" and "=" signs."""
    rows = sorted(comparison, key=itemgetter(column))
    text = str(rows[0]["objective"])
    for previous, row in pairwise(rows):
        sign = "=" if previous[column] == row[column] else "<"
        text += f" {sign} {row['objective']}"
    return text
