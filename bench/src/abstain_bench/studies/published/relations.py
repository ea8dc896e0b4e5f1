"""Check printed numbers that follow from other printed numbers, or are printed twice."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from abstain_bench.published import Fact, table
from abstain_bench.studies.published.columns import PrintedColumn, table_columns
from abstain_bench.studies.published.rank_agreement import SECOND_METRIC_NUMBERS

#: Tables with accuracy and failure AUROC of the methods.
ACCURACY_TABLE, AUROC_TABLE = "fd_shifts_table_8", "fd_shifts_table_9"

#: Name of the new-class images of a study in the table of their numbers.
_IMAGE_TITLES: Final = {
    "c10": "CIFAR-10",
    "c100": "CIFAR-100",
    "svhn": "SVHN",
    "ti": "TinyImagenet (32x32 resized)",
}

#: Tables that repeat numbers of the large tables, with the blocks to compare.
_REPEATING_TABLES: Final = (("fd_shifts_table_2", ("64bit", "")), ("fd_shifts_table_15", ("",)))
_LARGE_TABLES: Final = ("fd_shifts_table_1", ACCURACY_TABLE, AUROC_TABLE)

#: Mark of a method of other authors in such a table.
_OTHER_AUTHORS: Final = "et al."


def augrc_from_auroc(accuracy: float, auroc: float) -> float:
    """Compute the AUGRC from accuracy and failure AUROC: Traub et al. (2024), eq. 7."""
    return (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2


def recompute_areas() -> Iterator[dict[str, Any]]:
    """Compute each AUGRC of one paper from accuracy and AUROC of the other."""
    accuracy, auroc = table_columns(ACCURACY_TABLE), table_columns(AUROC_TABLE)
    for column, printed in table_columns(SECOND_METRIC_NUMBERS).items():
        for method, number in printed.items():
            if method in auroc.get(column, {}):
                computed = augrc_from_auroc(accuracy[column][method], auroc[column][method])
                yield {
                    **_cell_fields(column, SECOND_METRIC_NUMBERS, AUROC_TABLE, method),
                    "printed": number,
                    "computed": computed,
                    "relative_difference": computed / number - 1,
                }


def recompute_accuracies() -> Iterator[dict[str, Any]]:
    """Compute the accuracy with new classes from the i.i.d. accuracy and the image counts.

    Wrong predictions of known classes are removed in these studies. The remaining images are
    correct predictions and new classes.
    """
    n_tested = _counts_by_dataset("fd_shifts_table_3", "n_iid_test")
    n_new_images = _counts_by_dataset("settings", "images when it serves as new classes")
    columns = table_columns(ACCURACY_TABLE)
    for column, printed in columns.items():
        images = _IMAGE_TITLES.get(column.study.rpartition(":")[2])
        if images is None or column.dataset not in n_tested:
            continue
        iid_accuracy = columns.get(column._replace(study="iid"), {})
        for method, number in printed.items():
            n_correct = iid_accuracy[method] * n_tested[column.dataset]
            computed = n_correct / (n_correct + n_new_images[images])
            yield {
                **_cell_fields(column, ACCURACY_TABLE, "fd_shifts_table_3", method),
                "printed": number,
                "computed": computed,
                "difference": computed - number,
            }


def compare_repeated_numbers() -> Iterator[dict[str, Any]]:
    """Compare the numbers that are printed in two tables."""
    large_cells = {_cell_key(cell): cell for name in _LARGE_TABLES for cell in table(name)}
    for name, blocks in _REPEATING_TABLES:
        for cell in table(name):
            large = large_cells.get(_cell_key(cell))
            if large is None or cell["block"] not in blocks or _OTHER_AUTHORS in cell["printed"]:
                continue
            n_units = abs(Decimal(cell["value"]) - Decimal(large["value"])) / _unit(cell, large)
            column = PrintedColumn(cell["classifier"], cell["dataset"], cell["study"])
            yield {
                **_cell_fields(column, name, f"fd_shifts_table_{large['table']}", cell["printed"]),
                "metric": cell["metric"],
                "printed": cell["number"],
                "other_printed": large["number"],
                # Two roundings of one number differ by at most one unit of the coarser one.
                "same": n_units <= 1,
            }


def _unit(*cells: Fact) -> Decimal:
    """Return a unit of the last printed digit of the coarsest cell."""
    exponents = [Decimal(cell["value"]).as_tuple().exponent for cell in cells]
    return Decimal(10) ** max(e for e in exponents if isinstance(e, int))


def _cell_key(cell: Fact) -> tuple[str, ...]:
    return tuple(cell[k] for k in ("classifier", "dataset", "study", "method", "metric"))


def _counts_by_dataset(name: str, setting: str) -> dict[str, float]:
    return {c["dataset"]: c["number"] for c in table(name) if c["setting"] == setting}


def _cell_fields(column: PrintedColumn, first: str, second: str, method: str) -> dict[str, Any]:
    return {"table": first, "against": second, **column._asdict(), "method": method}
