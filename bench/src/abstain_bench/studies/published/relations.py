"""What must hold between printed numbers: one follows from others, or is printed twice."""

from collections.abc import Iterator
from decimal import Decimal
from statistics import fmean
from typing import Any, Final

from abstain_bench.published import Fact, table
from abstain_bench.studies.published.columns import PrintedColumn, columns_in
from abstain_bench.studies.published.orders import OF_SECOND

#: Accuracies and failure AUROCs of the methods, from which another number follows.
ACCURACY, AUROC = "fd_shifts_table_8", "fd_shifts_table_9"

#: How the pictures of a new-class study are called where their number is said.
_PICTURES: Final = {
    "c10": "CIFAR-10",
    "c100": "CIFAR-100",
    "svhn": "SVHN",
    "ti": "TinyImagenet (32x32 resized)",
}

#: Tables that print numbers of one method of larger ones once more, with the part to look at.
_AGAIN: Final = (("fd_shifts_table_2", ("64bit", "")), ("fd_shifts_table_15", ("",)))
_OF_LARGE: Final = ("fd_shifts_table_1", ACCURACY, AUROC)

#: A method of somebody else in such a table names them.
_OTHERS: Final = "et al."


def area_of(accuracy: float, auroc: float) -> float:
    """Compute the area under the generalized risk from accuracy and failure AUROC.

    Traub et al. (2024), eq. 7.
    """
    return (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2


def areas() -> Iterator[dict[str, Any]]:
    """Compute each area of one paper from accuracy and AUROC of the other."""
    accuracy, auroc = columns_in(ACCURACY), columns_in(AUROC)
    for column, printed in columns_in(OF_SECOND).items():
        for name, number in printed.items():
            if name in auroc.get(column, {}):
                made = area_of(accuracy[column][name], auroc[column][name])
                yield {
                    **_about(column, OF_SECOND, AUROC, name),
                    "printed": number,
                    "computed": made,
                    "relative_difference": made / number - 1,
                }


def accuracies() -> Iterator[dict[str, Any]]:
    """Compute the accuracy beside new classes from that without them, by numbers of pictures.

    Wrong answers about known classes are left out there, so that what is left are right answers
    and new classes.
    """
    tested = _count("fd_shifts_table_3", "n_iid_test")
    new = _count("settings", "images when it serves as new classes")
    every = columns_in(ACCURACY)
    for column, printed in every.items():
        pictures = _PICTURES.get(column.study.rpartition(":")[2])
        own = every.get(column._replace(study="iid"), {})
        if pictures is None or column.dataset not in tested:
            continue
        for name, number in printed.items():
            right = own[name] * tested[column.dataset]
            made = right / (right + new[pictures])
            about = _about(column, ACCURACY, "fd_shifts_table_3", name)
            yield {**about, "printed": number, "computed": made, "difference": made - number}


def repeated() -> Iterator[dict[str, Any]]:
    """Find the numbers that are printed in two tables, and whether they are the same."""
    large = {_key(cell): cell for name in _OF_LARGE for cell in table(name)}
    for name, blocks in _AGAIN:
        for cell in table(name):
            other = large.get(_key(cell))
            if other is None or cell["block"] not in blocks or _OTHERS in cell["printed"]:
                continue
            steps = abs(Decimal(cell["value"]) - Decimal(other["value"])) / _step(cell, other)
            column = PrintedColumn(cell["classifier"], cell["dataset"], cell["study"])
            yield {
                **_about(column, name, f"fd_shifts_table_{other['table']}", cell["printed"]),
                "metric": cell["metric"],
                "printed": cell["number"],
                "elsewhere": other["number"],
                # Two roundings of one number are at most one step of the coarser one apart.
                "same": steps <= 1,
            }


def distances(first: dict[str, float], second: dict[str, float]) -> float:
    """Return the root mean square of differences that are all off by the same."""
    apart = [own - second[name] for name, own in first.items() if name in second]
    middle = fmean(apart)
    return float(fmean((d - middle) ** 2 for d in apart) ** 0.5)


def _step(*cells: Fact) -> Decimal:
    exponents = [Decimal(cell["value"]).as_tuple().exponent for cell in cells]
    return Decimal(10) ** max(e for e in exponents if isinstance(e, int))


def _key(cell: Fact) -> tuple[str, ...]:
    return tuple(cell[k] for k in ("classifier", "dataset", "study", "method", "metric")) or ()


def _count(name: str, setting: str) -> dict[str, float]:
    return {c["dataset"]: c["number"] for c in table(name) if c["setting"] == setting}


def _about(column: PrintedColumn, first: str, second: str, method: str) -> dict[str, Any]:
    return {"table": first, "against": second, **column._asdict(), "method": method}
