"""Find published numbers that are impossible or contradict other published numbers."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby, permutations
from typing import Any, Final

from abstain.metrics import METRICS
from abstain_bench.published import Fact, table, tables
from abstain_bench.studies._display import group_rows, unique_values
from abstain_bench.studies.published.recomputed import (
    OTHER_PAPER_RANKS,
    SECOND_METRIC_NUMBERS,
    TWO_METRIC_RANKS,
    Columns,
    PrintedColumn,
    compare_repeated_numbers,
    count_reversals,
    paired_columns,
    ranks_by_selection,
    table_columns,
)

#: Text in the names of studies of new classes.
_NEW_CLASSES: Final = "ncs:"

_REWARDS = "fd_shifts_table_5"
_CALIBRATION = "fd_shifts_table_10"
_FINETUNED: Final = "population_aurc_table_1"


def find_contradictions() -> Iterator[dict[str, Any]]:
    """Yield a row for each contradiction between published numbers."""
    yield from _missing_table_numbers()
    yield from _numbers_of_other_runs()
    yield from _rewards_outside_grid()
    yield from _misquoted_calibration_errors()
    yield from _swapped_columns()
    yield from _unmatched_methods()
    yield from _missing_objectives()
    yield from _duplicate_results()
    yield from _insignificant_gains()


def _contradiction(name: str, location: str, cells: int, finding: str) -> dict[str, Any]:
    """Return a row about table cells that contradict other published numbers."""
    source = tables()[name].source
    return {"source": source, "location": location, "cells": cells, "finding": finding}


# --------------------------------------------------------------------------------- FD-Shifts
def _missing_table_numbers() -> Iterator[dict[str, Any]]:
    """Find gaps in the numbering of the tables of each paper."""
    for _, paper_tables in groupby(tables().values(), key=lambda entry: entry.paper):
        by_number = {int(entry.number): entry for entry in paper_tables if entry.number.isdigit()}
        for number in range(1, max(by_number, default=0)):
            if number in by_number:
                continue
            previous = by_number[number - 1]
            yield {
                "source": previous.cited,
                "location": f"table {number}",
                "cells": 0,
                "finding": "the text has no such table",
            }


def _numbers_of_other_runs() -> Iterator[dict[str, Any]]:
    """Find numbers that differ between two tables although classifier and data set are the same."""
    different = [row for row in compare_repeated_numbers() if not row["same"]]
    groups = group_rows(different, "table", "classifier", "dataset")
    for (name, classifier, dataset), group in groups.items():
        example = group[0]
        finding = (
            f"numbers of other runs: {METRICS[example['metric']].title} {example['printed']:.4g} "
            f"here and {example['other_printed']:.4g} there"
        )
        other_tables = _table_numbers(row["against"] for row in group)
        location = f"{dataset} ({classifier}), against {other_tables}"
        yield _contradiction(name, location, len(group), finding)


def _rewards_outside_grid() -> Iterator[dict[str, Any]]:
    """Find selected rewards that are outside the search grid stated in the text."""
    grids = [cell for cell in table("settings") if cell["setting"].startswith("reward grid")]
    for cell in table(_REWARDS):
        if cell["setting"] != "reward":
            continue
        candidates = {
            float(value)
            for grid in grids
            if grid["dataset"] in {"", cell["dataset"]}
            for value in grid["value"].split(";")
        }
        if cell["number"] not in candidates:
            grid_text = ", ".join(f"{value:g}" for value in sorted(candidates))
            location = f"{cell['dataset']}, {cell['printed']}"
            finding = f"the reward {cell['value']} is not in the search grid: {grid_text}"
            yield _contradiction(_REWARDS, location, 1, finding)


def _misquoted_calibration_errors() -> Iterator[dict[str, Any]]:
    """Find calibration errors in the text that differ from those in the table."""
    # Quotes in the table "settings" begin with the abbreviation of the metric, such as "ECE".
    title = table(_CALIBRATION)[0]["printed_metric"]
    abbreviation = "".join(word[0] for word in title.split())
    for quote in table("settings"):
        if not quote["setting"].startswith(f"{abbreviation} quoted"):
            continue
        for cell in table(_CALIBRATION):
            is_quoted = cell["study"] == "iid" and all(
                cell[key] == quote[key] for key in ("task", "classifier", "method")
            )
            if is_quoted and cell["number"] != quote["number"]:
                location = (
                    f"{cell['dataset']} {cell['study']} ({cell['classifier']}), {cell['printed']}"
                )
                finding = f"{cell['value']} here, {quote['value']} in appendix {quote['source']}"
                yield _contradiction(_CALIBRATION, location, 1, finding)


# ------------------------------------------------------------------------------------- AUGRC
def _swapped_columns() -> Iterator[dict[str, Any]]:
    """Find data sets whose columns of new-class results are swapped.

    If these columns are swapped, the ranks agree with those in the other paper.
    """
    ranks, _ = next(iter(ranks_by_selection().values()))
    other_ranks = table_columns(OTHER_PAPER_RANKS)
    for dataset in dict.fromkeys(column.dataset for column in ranks):
        labeled_order = tuple(
            column
            for column in ranks
            if column.dataset == dataset and _NEW_CLASSES in column.study and column in other_ranks
        )
        n_reversed = {}
        for order in permutations(labeled_order):
            n_reversed[order] = sum(
                _count_column_reversals(ranks, column, other_ranks, other_column)
                for column, other_column in zip(labeled_order, order, strict=True)
            )
        best_order = min(n_reversed, key=lambda order: n_reversed[order])
        if n_reversed[best_order] < n_reversed[labeled_order]:
            finding = (
                f"columns {_class_labels(labeled_order)} have the ranks of "
                f"{_class_labels(best_order)} in {tables()[OTHER_PAPER_RANKS].source}: "
                f"{n_reversed[best_order]} reversed pairs, and {n_reversed[labeled_order]} as "
                "labeled"
            )
            n_cells = sum(len(ranks[column]) for column in labeled_order)
            yield _contradiction(TWO_METRIC_RANKS, f"{dataset}, new classes", n_cells, finding)


def _class_labels(columns: Iterable[PrintedColumn]) -> str:
    return ", ".join(column.study.rpartition(":")[2] for column in columns)


def _count_column_reversals(
    ranks: Columns, column: PrintedColumn, other_ranks: Columns, other_column: PrintedColumn
) -> int:
    """Count the pairs of methods whose order differs between two columns."""
    ((_, pairs),) = paired_columns({other_column: ranks[column]}, other_ranks)
    n_reversed, _ = count_reversals(pairs)
    return n_reversed


def _unmatched_methods() -> Iterator[dict[str, Any]]:
    """Find methods that only one of two tables about the same networks contains."""
    rank_methods = {cell["printed"] for cell in table(TWO_METRIC_RANKS)}
    number_methods = {cell["printed"] for cell in table(SECOND_METRIC_NUMBERS)}
    only_ranks = sorted(rank_methods - number_methods)
    only_numbers = sorted(number_methods - rank_methods)
    if only_ranks or only_numbers:
        n_cells = sum(cell["printed"] in only_ranks for cell in table(TWO_METRIC_RANKS))
        finding = (
            f"has {', '.join(only_ranks)} where {tables()[SECOND_METRIC_NUMBERS].source} has "
            f"{', '.join(only_numbers)}"
        )
        yield _contradiction(TWO_METRIC_RANKS, "methods", n_cells, finding)


# -------------------------------------------------------------------------------- fine-tuning
def _finetuning_columns() -> Iterator[tuple[str, dict[str, Fact]]]:
    """Yield the title of each column of the fine-tuning table, and its cells by objective."""
    for (network, dataset), cells in group_rows(table(_FINETUNED), "classifier", "dataset").items():
        yield f"{dataset}, {network}", {cell["printed"]: cell for cell in cells}


def _missing_objectives() -> Iterator[dict[str, Any]]:
    """Find objectives whose numbers are missing in a column of the fine-tuning table."""
    objectives = unique_values(table(_FINETUNED), "printed")
    for title, cells in _finetuning_columns():
        missing = [name for name in objectives if name not in cells]
        if missing:
            finding = f"no number of {' and '.join(missing)}"
            yield _contradiction(_FINETUNED, title, len(missing), finding)


def _duplicate_results() -> Iterator[dict[str, Any]]:
    """Find pairs of objectives with identical means and standard deviations."""
    for title, cells in _finetuning_columns():
        previous_by_result: dict[tuple[str, str], str] = {}
        for name, cell in cells.items():
            result = (cell["value"], cell["spread"])
            if result in previous_by_result:
                finding = (
                    f"{previous_by_result[result]} and {name} have the same mean and standard "
                    f"deviation: {' ± '.join(result)}"
                )
                yield _contradiction(_FINETUNED, title, 2, finding)
            previous_by_result[result] = name


def _insignificant_gains() -> Iterator[dict[str, Any]]:
    """Find columns in which no objective is better than the first by more than one SD."""
    for title, cells in _finetuning_columns():
        baseline, *others = cells.values()
        factor = float(baseline["factor"])
        gains = [baseline["number"] - cell["number"] for cell in others]
        deviations = [float(cell["spread"]) / factor for cell in others]
        if all(gain < sd for gain, sd in zip(gains, deviations, strict=True)):
            finding = (
                f"the largest gain over {baseline['printed']}, {max(gains) * factor:.3g}, is below "
                f"the smallest standard deviation, {min(deviations) * factor:.3g}"
            )
            yield _contradiction(_FINETUNED, title, len(others), finding)


def _table_numbers(names: Iterable[str]) -> str:
    """Format table numbers as text, such as "tables 1, 3"."""
    numbers = sorted({int(tables()[name].number) for name in names})
    noun = "tables" if len(numbers) > 1 else "table"
    return f"{noun} {', '.join(map(str, numbers))}"


#: Tables of the CWSA paper. Each table has a row for each threshold and belongs to one model.
CWSA_TABLES: Final = ("cwsa_table_1", "cwsa_table_2", "cwsa_table_3")
_PROSE: Final = "cwsa_text"

#: Row of a table, as a mapping from column titles to cells.
Line = Mapping[str, Fact]


def lines_by_threshold(name: str) -> dict[str, Line]:
    """Return the rows of a table by threshold."""
    return {
        threshold: {cell["printed"]: cell for cell in cells}
        for threshold, cells in groupby(table(name), key=lambda cell: str(cell["threshold"]))
    }


def find_impossible_numbers() -> Iterator[dict[str, Any]]:
    """Yield impossible rows of tables, and numbers in the text that differ from the tables."""
    rules = {
        "CWSA is above coverage x CWSA+, which is impossible": is_above_bound,
        "no count of correct answers gives the selective accuracy": _is_no_proportion,
    }
    for name in CWSA_TABLES:
        lines = lines_by_threshold(name)
        for finding, is_violated in rules.items():
            thresholds = [threshold for threshold, line in lines.items() if is_violated(line)]
            if thresholds:
                yield {
                    "source": f"{tables()[name].source} ({table(name)[0]['model']})",
                    "location": f"thresholds {', '.join(thresholds)}",
                    "cells": len(thresholds),
                    "finding": finding,
                }
    yield from _unsupported_prose()


def is_above_bound(line: Line) -> bool:
    """Return whether CWSA exceeds coverage x CWSA+, allowing for rounding."""
    lowest_cwsa = line["CWSA"]["number"] - _unit(line["CWSA"])
    highest_cwsa_plus = line["CWSA+"]["number"] + _unit(line["CWSA+"])
    highest_coverage = line["Coverage"]["number"] + _unit(line["Coverage"])
    return bool(lowest_cwsa > highest_coverage * highest_cwsa_plus)


def _is_no_proportion(line: Line) -> bool:
    """Return whether the selective accuracy is impossible for any number of correct samples."""
    accuracy = line["Sel. Accuracy"]
    coverage = line["Coverage"]
    n_samples = int(coverage["dataset"].partition("n = ")[2].partition(",")[0])
    n_accepted = round(coverage["number"] * n_samples)
    n_correct = round(accuracy["number"] * n_accepted)
    return all(
        abs(count / n_accepted - accuracy["number"]) > _unit(accuracy)
        for count in (n_correct - 1, n_correct, n_correct + 1)
    )


def _unit(cell: Fact) -> float:
    """Return one unit of the last printed digit, plus a small tolerance."""
    exponent = Decimal(cell["value"]).as_tuple().exponent
    return 1.0000001 * 10.0 ** int(exponent)


# ------------------------------------------------------------------------------------- prose
def _unsupported_prose() -> Iterator[dict[str, Any]]:
    """Yield numbers in the text that are not found in the table of the same model."""
    table_by_model = {table(name)[0]["model"]: name for name in CWSA_TABLES}
    for quote in table(_PROSE):
        name = table_by_model.get(quote["model"])
        cells = [] if name is None else _quoted_cells(name, quote)
        if not cells or any(_is_consistent(quote, cell, cells) for cell in cells):
            continue
        nearest = min(cells, key=lambda cell: abs(cell["number"] - quote["number"]))
        text = f"{quote['qualifier']} {quote['value']}".strip()
        yield {
            "source": f"{tables()[_PROSE].cited}, section {quote['section']}",
            "location": f"{quote['model']}, {nearest['printed']}",
            "cells": 1,
            "finding": f"the prose has {text}, the nearest cell of the table {nearest['value']}",
        }


def _quoted_cells(name: str, quote: Fact) -> list[Fact]:
    """Return the table cells that a number in the text may refer to."""
    cells = [cell for cell in table(name) if cell["metric"] == quote["metric"]]
    if quote["threshold"] == "highest":
        return cells[-1:]
    if quote["threshold"] == "lowest":
        return cells[:1]
    if not quote["threshold"].replace(".", "", 1).isdigit():
        return cells
    quoted = float(quote["threshold"])
    return [cell for cell in cells if float(cell["threshold"]) == quoted] or cells


def _is_consistent(quote: Fact, cell: Fact, cells: list[Fact]) -> bool:
    """Return whether any of `cells` equals a number in the text after rounding."""
    qualifier = quote["qualifier"]
    if qualifier == "above":
        return bool(cell["number"] > quote["number"])
    is_maximum_quoted = "peak" in qualifier or "maximum" in qualifier
    if is_maximum_quoted and cell["number"] < max(other["number"] for other in cells):
        return False
    # A number with the qualifier "about" may differ by another unit of the last digit.
    n_units = 2 if "about" in qualifier else 1
    tolerance = n_units * max(_unit(quote), _unit(cell))
    return bool(abs(cell["number"] - quote["number"]) <= tolerance)
