"""Convert columns of text with decimal commas or percent signs to numbers."""

from dataclasses import replace

import numpy as np

from abstain.tables.column import DataColumn, from_array
from abstain.tables.number_formats import parse_numbers, with_decimal_point
from abstain.tables.table import DataTable, Kind


def with_decimal_mark(table: DataTable, decimal: str) -> DataTable:
    """Return the table; if the decimal mark is a comma, convert texts such as "0,9" to numbers."""
    return with_numbers(table, decimal) if decimal == "," else table


def with_numbers(table: DataTable, decimal: str) -> DataTable:
    """Convert texts such as "90%", and "0,9" if the decimal mark is a comma, to numbers."""
    texts = table.load([name for name, kind in table.kind_by_column.items() if kind == "text"])
    numbers: dict[str, DataColumn] = {}
    for name, column in texts.items():
        converted = _as_numbers(column, decimal)
        if converted is not None:
            numbers[name] = converted
    kinds: dict[str, Kind] = dict(table.kind_by_column) | dict.fromkeys(numbers, "number")

    def load(names: tuple[str, ...]) -> dict[str, DataColumn]:
        unchanged = table.load([name for name in names if name not in numbers])
        return {name: numbers[name] if name in numbers else unchanged[name] for name in names}

    return replace(table, kind_by_column=kinds, loader=load)


def _as_numbers(column: DataColumn, decimal: str) -> DataColumn | None:
    texts = [] if column.texts is None else list(map(str, column.texts))
    is_converted = any("%" in text or (decimal == "," and "," in text) for text in texts)
    values = parse_numbers(with_decimal_point(texts) if decimal == "," else texts)
    if values is None or not is_converted:
        return None
    # Missing entries have the code -1.
    value_by_code = np.append(values, np.nan)
    return from_array(value_by_code[column.values], column.name)
