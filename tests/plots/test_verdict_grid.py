"""The grid of verdicts: its table, its marks, and what it refuses."""

import pytest

from abstain.errors import InputError
from abstain.plots import VerdictGridDisplay

CELLS = {
    "first": {"R1": "holds", "R1 paper": "broken", "R2": "cannot tell"},
    "second": {"R1": "broken", "R2": "holds"},
}


def display(**options):
    return VerdictGridDisplay(CELLS, ("R1", "R1 paper", "R2"), "Verdicts", **options)


def test_the_table_has_the_cells_in_order():
    assert display().frame().rows() == [
        ("first", "R1", "holds"),
        ("first", "R1 paper", "broken"),
        ("first", "R2", "cannot tell"),
        ("second", "R1", "broken"),
        ("second", "R2", "holds"),
    ]


def test_every_cell_is_a_mark_at_its_place():
    drawn = display(hollow_columns=("R1 paper",)).plot()
    marks = [line for line in drawn.ax_.lines if line.get_linestyle() == "None"]
    places = {(x, y): line for line in marks for x, y in zip(*line.get_data(), strict=True)}
    assert set(places) == {(0, 0), (1, 0), (2, 0), (0, 1), (2, 1)}
    # Told by shape, and hollow where it is said elsewhere.
    assert places[0, 0].get_marker() != places[0, 1].get_marker()
    assert places[0, 1].get_markerfacecolor() != places[1, 0].get_markerfacecolor()
    names = [text.get_text() for text in drawn.ax_.get_yticklabels()]
    assert names == ["first", "second"]
    assert [text.get_text() for text in drawn.ax_.get_xticklabels()] == ["R1", "R1 paper", "R2"]


def test_marks_of_nobody_else_are_not_in_the_legend():
    alone, both = (display(hollow_columns=said).plot() for said in ((), ("R1 paper",)))
    count = [len(d.figure_.legends[0].get_texts()) for d in (alone, both)]
    assert count == [3, 4]


def test_nothing_and_strange_columns_raise_an_error():
    with pytest.raises(InputError, match=r"at least one.*got none"):
        VerdictGridDisplay({"a": {}}, ("R1",), "")
    with pytest.raises(InputError, match=r"cells of \['R9'\]"):
        VerdictGridDisplay({"a": {"R9": "holds"}}, ("R1",), "")


def test_it_is_saved_the_same_each_time(tmp_path):
    first = display().save(tmp_path / "a.svg").read_bytes()
    assert display().save(tmp_path / "b.svg").read_bytes() == first
