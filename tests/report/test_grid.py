"""Tables of a terminal at any width: no number is cut, no head lost, what is left out is named."""

import re

import numpy as np
import pytest
from rich.console import Console

from abstain.report import document as doc
from abstain.report.render.grid import FittedTable


def printed(table, width):
    console = Console(width=width)
    with console.capture() as shown:
        console.print(FittedTable(table))
    text = shown.get()
    assert max(map(len, text.splitlines())) <= width
    return text


def wide(rows, columns=9, *, names=("alpha", "beta")):
    rng = np.random.default_rng(rows)
    heads = (doc.Column("Data"), doc.Column("Method", "name"))
    heads += tuple(doc.number_column(f"Column{i}") for i in range(columns))
    body = [
        (names[i % 2], f"method{i}", *(doc.Number(float(v)) for v in rng.random(columns)))
        for i in range(rows)
    ]
    return doc.Table(heads, doc.single_group(body)), body


def numbers_in(text):
    return sorted(re.findall(r"(?<!\S)0\.\d+(?!\S)", text))


@pytest.mark.parametrize("width", [24, 40, 60, 80, 100, 140])
def test_of_few_rows_every_number_is_whole_and_stands_beside_its_names(width):
    table, _ = wide(5)
    text = printed(table, width)
    whole = numbers_in(printed(table, 200))
    assert len(whole) == 5 * 9
    assert numbers_in(text) == whole
    assert all(f"Column{i}" in text for i in range(9)), "no head is cut"
    # Whatever band a number stands in, its row is named.
    for line in text.splitlines():
        if numbers_in(line):
            assert re.search(r"method\d", line)
    assert "Too narrow" not in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_of_many_rows_columns_go_from_the_right_and_are_named(width):
    table, _ = wide(30)
    text = printed(table, width)
    shown = [i for i in range(9) if re.search(rf"Column{i}\b", text.split("\n")[0])]
    assert shown == list(range(len(shown)))
    assert shown
    left = [f"Column{i}" for i in range(len(shown), 9)]
    said = " ".join(text.split())
    assert f"Omitted {len(left)} column" in said
    assert ", ".join(left) in said
    assert len(text.splitlines()) <= 2 + 30 + 4, "a line each"
    assert len(numbers_in(text)) == 30 * len(shown)


def test_what_all_rows_say_is_said_once_where_room_is_short():
    table, _ = wide(14, 7, names=("one", "one"))
    assert "In all rows" not in printed(table, 120)
    text = printed(table, 76)
    assert text.startswith("In all rows: Data one.\n")
    assert "Data" not in text.split("\n")[1]
    assert len(numbers_in(text)) == 14 * 7


def test_rows_are_named_by_the_fewest_columns_that_tell_them_apart():
    heads = (doc.number_column("n"), doc.Column("Estimator"), *map(doc.number_column, "abcdefgh"))
    body = [
        (
            doc.Number(n, number_format="count"),
            name,
            *(doc.Number(0.1234 + n / 10**4) for _ in range(8)),
        )
        for n in (8, 128)
        for name in ("log", "plug-in")
    ]
    text = printed(doc.Table(heads, doc.single_group(body)), 50)
    assert len(re.findall("^ *n  Estimator", text, flags=re.MULTILINE)) == 2
    assert text.count("128  plug-in") == 2


def test_twelve_columns_are_enough_to_be_written_to():
    table, _ = wide(2, 2)
    text = printed(table, 12)
    assert all(letter in text for letter in "alphbet")


def test_words_share_what_is_left_by_how_long_they_are():
    claim, evidence = "short words", "much longer words " * 12
    heads = (doc.Column("Claim", "name"), doc.Column("Evidence", "words"))
    text = printed(doc.Table(heads, doc.single_group([(claim, evidence)])), 60)
    assert "short words" in text
    assert len(text.splitlines()) <= 2 + 6
