"""Compare benchmark results with published numbers for the same task."""

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

#: Published tables with a number for each method and study.
_TABLES: Final = (
    "augrc_table_3",
    "fd_shifts_table_1",
    "fd_shifts_table_9",
    "fd_shifts_table_8",
    "fd_shifts_table_10",
)

#: Suffix of the name of a task with held-out classes. A rotation is a choice of these classes.
_ROTATION: Final = re.compile(r"-open-\d$")
#: Suffix of the task of published numbers, which are averages over all rotations.
_ALL_ROTATIONS: Final = "-open-1..5"
_N_ROTATIONS: Final = 5
#: Separator of the tasks of results that are averaged over rotations.
_TASK_SEPARATOR: Final = ", "

#: Mapping from pairs of metric and study to printed cells by method.
PublishedCells = Mapping[tuple[str, str], Mapping[str, Fact]]


@dataclass(frozen=True)
class PublishedNumber:
    """A measured value and the published value for the same method and study.

    Attributes
    ----------
    metric, study, method : str
        Names of the metric, the study and the method.
    value, published : float
        Value of the benchmark and published value as fractions.
    ratio : float
        `value` divided by `published`, NaN if `published` is 0.
    rank, published_rank : int
        Ranks among the methods with both values. Tied methods share the lowest of their ranks.
    common : int
        Number of methods with both values.
    classifier : str
        Network of the paper, "CNN" or "ViT".
    backbone : str
        Name of the model of the paper, or empty if this package does not contain the model.
    source : str
        Paper and number of the table.
    doubt : str
        Remark on the reliability of the published value, or empty.
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
    """Rank correlation between the measured and the published values of the methods.

    Attributes
    ----------
    metric, study : str
        Names of the metric and the study.
    methods : int
        Number of methods with both values, at least two.
    tau : float
        Kendall's tau-b between both rankings.
    best, published_best : tuple of str
        Methods with rank 1 in the benchmark and in the paper.
    source : str
        Paper and number of the table.
    """

    metric: str
    study: str
    methods: int
    tau: float
    best: tuple[str, ...]
    published_best: tuple[str, ...]
    source: str


def read_published_cells(task: str, model: str) -> PublishedCells:
    """Return the published numbers for convolutional networks or for vision transformers."""
    printed_tasks = {_ROTATION.sub(_ALL_ROTATIONS, name) for name in task.split(_TASK_SEPARATOR)}
    classifier = "ViT" if model.startswith("vit") else "CNN"
    cells: dict[tuple[str, str], dict[str, Fact]] = {}
    for table_name in _TABLES:
        for cell in table(table_name):
            is_of_task = {cell["task"]} == printed_tasks and cell["classifier"] == classifier
            if is_of_task and cell["method"]:
                column = cells.setdefault((cell["metric"], cell["abstain_study"]), {})
                column[cell["method"]] = cell
    # The papers use another name for some methods.
    aliases = {method.name: method.same_as for method in METHODS.values() if method.same_as}
    for column in cells.values():
        for alias, method_name in aliases.items():
            if alias in column:
                column.setdefault(method_name, column[alias])
    return cells


def compare_with_published(
    comparisons: Mapping[str, Comparison], cells: PublishedCells
) -> tuple[list[PublishedNumber], list[PublishedOrder]]:
    """Compare measured values and ranks with published values and ranks.

    Returns
    -------
    numbers : list of PublishedNumber
        Comparison for each combination of metric, study and method.
    orders : list of PublishedOrder
        Rank correlation for each metric and study.
    """
    numbers: list[PublishedNumber] = []
    orders: list[PublishedOrder] = []
    for (metric, study), cell_by_method in cells.items():
        data = (("study", study),)
        comparison = comparisons.get(metric)
        if comparison is None or data not in comparison.data:
            continue
        estimates = comparison.estimates_of(metric, data)
        values = {
            estimate.method: estimate.value
            for estimate in estimates
            if estimate.method in cell_by_method and not isnan(estimate.value)
        }
        if not values:
            continue
        published = {method: float(cell_by_method[method]["number"]) for method in values}
        lower_is_better = estimates[0].lower_is_better
        ranks = _rank(values, lower_is_better=lower_is_better)
        published_ranks = _rank(published, lower_is_better=lower_is_better)
        source = _table_source(next(iter(cell_by_method.values())))
        for method, value in values.items():
            cell = cell_by_method[method]
            number = PublishedNumber(
                metric=metric,
                study=study,
                method=method,
                value=value,
                published=published[method],
                ratio=value / published[method] if published[method] else float("nan"),
                rank=ranks[method],
                published_rank=published_ranks[method],
                common=len(values),
                classifier=cell["classifier"],
                backbone=cell["backbone"],
                source=source,
                doubt=cell["doubt"],
            )
            numbers.append(number)
        tau = kendall(list(values.values()), list(published.values()))
        if not isnan(tau):
            order = PublishedOrder(
                metric=metric,
                study=study,
                methods=len(values),
                tau=tau,
                best=_first_methods(ranks),
                published_best=_first_methods(published_ranks),
                source=source,
            )
            orders.append(order)
    return numbers, orders


def _first_methods(ranks: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(method for method, rank in ranks.items() if rank == 1)


def _rank(values: Mapping[str, float], *, lower_is_better: bool) -> dict[str, int]:
    """Rank methods as in the papers. Tied methods share the lowest of their ranks."""
    ranks = ranking.ranks(list(values.values()), lower_is_better=lower_is_better, ties="min")
    return dict(zip(values, map(int, ranks), strict=True))


def _table_source(cell: Fact) -> str:
    """Return a citation of the table that contains the published number."""
    for published_table in tables().values():
        if (published_table.paper, published_table.number) == (cell["paper"], cell["table"]):
            return published_table.source
    raise KeyError(cell["table"])


def published_notes(
    task: str, model: str, cells: PublishedCells, numbers: Sequence[PublishedNumber]
) -> Iterator[Note]:
    """Yield notes about the comparison, or the reason why nothing is compared."""
    if not numbers:
        yield Note("nothing_published", _reason_without_numbers(task, cells))
        return
    networks = ", ".join(dict.fromkeys(number.backbone or number.classifier for number in numbers))
    if model and networks == model:
        networks_text = f"The network is {model} in both"
    elif model:
        networks_text = f"Networks are {networks} there and {model} here"
    else:
        networks_text = f"Networks are {networks} there and another may be here"
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
    """Explain why no number is compared with a published number."""
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
