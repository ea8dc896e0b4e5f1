"""Comparison of the values of a benchmark with those that papers print for the same task."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

from abstain._foundation.notes import Note
from abstain.evaluation.comparison import Comparison
from abstain.inference import kendall, ranking
from abstain_bench.published import Fact, table, tables
from abstain_bench.runs.methods import METHODS

#: The tables that have a number for each method and study.
_TABLES: Final = (
    "augrc_table_3",
    "fd_shifts_table_1",
    "fd_shifts_table_9",
    "fd_shifts_table_8",
    "fd_shifts_table_10",
)

#: End of the name of a task with held-out classes. The papers pool the rotations of these classes.
_ROTATION: Final = re.compile(r"-open-\d$")
_ALL_ROTATIONS: Final = "-open-1..5"
_N_ROTATIONS: Final = 5
#: Separates the tasks of results over several rotations.
_TASK_SEPARATOR: Final = ", "

#: Printed cells by metric and study, then by method.
PublishedCells = Mapping[tuple[str, str], Mapping[str, Fact]]


@dataclass(frozen=True)
class PublishedNumber:
    """A value of a benchmark, and the printed value of the same method and study.

    Attributes
    ----------
    metric, study, method : str
        Names.
    value, published : float
        The value of the benchmark and the printed value, both as fractions.
    ratio : float
        `value` divided by `published`; NaN if `published` is 0.
    rank, published_rank : int
        Ranks among the methods with both values; equal values share the best rank.
    common : int
        Number of methods with both values.
    classifier, backbone : str
        Network of the paper: "CNN" or "ViT", and the model; empty if this package lacks it.
    source : str
        The paper and its table.
    doubt : str
        Remark on the reliability of the printed value, or empty.
    """

    metric: str
    study: str
    method: str
    value: float
    published: float
    ratio: float
    rank: int
    published_rank: int
    common: int
    classifier: str
    backbone: str
    source: str
    doubt: str = ""


@dataclass(frozen=True)
class PublishedOrder:
    """Rank correlation between a benchmark and a paper, over the methods with both values.

    Attributes
    ----------
    metric, study : str
        Names.
    methods : int
        Number of methods with both values, at least two.
    tau : float
        Kendall's tau-b of the two rankings.
    best, published_best : tuple of str
        Methods on the first rank in the benchmark, and in the paper.
    source : str
        The paper and its table.
    """

    metric: str
    study: str
    methods: int
    tau: float
    best: tuple[str, ...]
    published_best: tuple[str, ...]
    source: str


def read_published_cells(task: str, model: str) -> PublishedCells:
    """Return the printed numbers for a task and the kind of network, CNN or vision transformer."""
    printed_tasks = {_ROTATION.sub(_ALL_ROTATIONS, name) for name in task.split(_TASK_SEPARATOR)}
    classifier = "ViT" if model.startswith("vit") else "CNN"
    cells: dict[tuple[str, str], dict[str, Fact]] = {}
    for name in _TABLES:
        for cell in table(name):
            is_of_task = {cell["task"]} == printed_tasks and cell["classifier"] == classifier
            if is_of_task and cell["method"]:
                column = cells.setdefault((cell["metric"], cell["abstain_study"]), {})
                column[cell["method"]] = cell
    # The papers print some methods under another name.
    aliases = {method.name: method.same_as for method in METHODS.values() if method.same_as}
    for column in cells.values():
        for alias, method_name in aliases.items():
            if alias in column:
                column.setdefault(method_name, column[alias])
    return cells


def compare_with_published(
    comparisons: Mapping[str, Comparison], cells: PublishedCells
) -> tuple[list[PublishedNumber], list[PublishedOrder]]:
    """Compare the values and ranks of methods with the printed ones, by metric and study."""
    numbers: list[PublishedNumber] = []
    orders: list[PublishedOrder] = []
    for (metric, study), column in cells.items():
        comparison, data = comparisons.get(metric), (("study", study),)
        if comparison is None or data not in comparison.data:
            continue
        estimates = comparison.estimates_of(metric, data)
        # Only methods with both numbers are ranked.
        values = {e.method: e.value for e in estimates if not isnan(e.value) and e.method in column}
        if not values:
            continue
        printed = {method: float(column[method]["number"]) for method in values}
        lower_is_better = estimates[0].lower_is_better
        ranks = _rank(values, lower_is_better=lower_is_better)
        printed_ranks = _rank(printed, lower_is_better=lower_is_better)
        source = _table_source(next(iter(column.values())))
        for method, value in values.items():
            number, cell = printed[method], column[method]
            numbers.append(
                PublishedNumber(
                    metric=metric,
                    study=study,
                    method=method,
                    value=value,
                    published=number,
                    ratio=value / number if number else float("nan"),
                    rank=ranks[method],
                    published_rank=printed_ranks[method],
                    common=len(values),
                    classifier=cell["classifier"],
                    backbone=cell["backbone"],
                    source=source,
                    doubt=cell["doubt"],
                )
            )
        tau = kendall(list(values.values()), list(printed.values()))
        if not isnan(tau):
            best, printed_best = (
                tuple(method for method, rank in r.items() if rank == 1)
                for r in (ranks, printed_ranks)
            )
            order = PublishedOrder(metric, study, len(values), tau, best, printed_best, source)
            orders.append(order)
    return numbers, orders


def _rank(values: Mapping[str, float], *, lower_is_better: bool) -> dict[str, int]:
    """Rank methods as the papers do: equal numbers share their best rank."""
    ranks = ranking.ranks(list(values.values()), lower_is_better=lower_is_better, ties="min")
    return dict(zip(values, map(int, ranks), strict=True))


def _table_source(cell: Fact) -> str:
    paper_and_number = (cell["paper"], cell["table"])
    return next(t.source for t in tables().values() if (t.paper, t.number) == paper_and_number)


def published_notes(
    task: str, model: str, cells: PublishedCells, numbers: Sequence[PublishedNumber]
) -> Iterator[Note]:
    """Yield notes on the comparison with published numbers, or the reason why there is none."""
    if not numbers:
        yield Note("nothing_published", _reason_without_numbers(task, cells))
        return
    networks = ", ".join(dict.fromkeys(n.backbone or n.classifier for n in numbers))
    if model and networks == model:
        networks_text = f"The network is {model} in both"
    else:
        model_text = f"{model} here" if model else "another may be here"
        networks_text = f"Networks are {networks} there and {model_text}"
    yield Note(
        "published",
        f"{networks_text}, trained with other settings, splits and corruptions than in the papers: "
        "compare orders and magnitudes, not exact values.",
    )
    n_rotations = sum(bool(_ROTATION.search(name)) for name in task.split(_TASK_SEPARATOR))
    if 0 < n_rotations < _N_ROTATIONS:
        yield Note(
            "published",
            f"Published numbers of held-out classes are of {_N_ROTATIONS} rotations "
            f"together; these runs are of {n_rotations}.",
        )
    studies_by_doubt: dict[str, dict[str, None]] = {}
    for number in numbers:
        if number.doubt:
            studies_by_doubt.setdefault(number.doubt, {})[number.study] = None
    for doubt, studies in studies_by_doubt.items():
        text = f"Published numbers of {', '.join(studies)} are doubtful: {doubt}"
        yield Note("published", text)


def _reason_without_numbers(task: str, cells: PublishedCells) -> str:
    if not task:
        return (
            "These runs do not say of which task they are, so no published number stands "
            "beside theirs."
        )
    if cells:
        return (
            f"The papers print numbers of the task {task!r}, but none of these methods, "
            "studies and metrics."
        )
    printed_tasks = {cell["task"] for name in _TABLES for cell in table(name) if cell["task"]}
    return (
        f"No paper prints numbers of the task {task!r}, so there is no comparison. "
        f"There are some of {', '.join(sorted(printed_tasks))}."
    )
