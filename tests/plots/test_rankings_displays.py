"""Displays of rankings: changes of ranks, maps side by side, pictures in rows."""

import numpy as np
import pytest

from abstain.errors import InputError, ShapeError
from abstain.evaluation.comparison import PairedDifference
from abstain.plots import (
    ImageGridDisplay,
    LabeledImage,
    RankChange,
    RankChangesDisplay,
    RankingChangeDisplay,
    RankingChangesDisplay,
    SignificanceMapDisplay,
    SignificanceMapsDisplay,
)


def texts(display):
    return [text.get_text() for ax in display.figure_.axes for text in ax.texts]


def test_changes_are_written_and_colored():
    nan = float("nan")
    cells = (
        RankChange("pe", "iid", 3, 1, "own"),
        RankChange("msr", "iid", 1, 2, "own"),
        RankChange("msr", "new", 2, 2, "own"),
        RankChange("pe", "new", nan, 1, "both"),
    )
    display = RankChangesDisplay(cells, "AURC and AUGRC").plot()
    assert texts(display) == ["3 → 1", "1 → 2", "2", "–"]
    up, down, same = (np.array(p.get_facecolor()) for p in display.figure_.axes[0].patches)
    assert up[2] > up[0], "blue"
    assert down[0] > down[2], "orange"
    assert np.ptp(same[:3]) < 0.05, "gray"
    assert display.frame()["change"].to_list()[:3] == [-2, 1, 0]
    assert len(display.figure_.axes) == 2
    with pytest.raises(InputError, match="`changes` must hold"):
        RankChangesDisplay((), "")


def test_maps_stand_in_parallel():
    pairs = tuple(
        PairedDifference("augrc", (), "a", "b", -0.1, adjusted=p, better="a") for p in (0.01, 0.02)
    )
    maps = {
        name: SignificanceMapDisplay(("a", "b"), (pair,), 0.95)
        for name, pair in zip(("one", "two"), pairs, strict=True)
    }
    display = SignificanceMapsDisplay(maps, "Two tests").plot()
    assert display.frame()["map"].to_list() == ["one", "two"]
    assert texts(display) == [".010", ".020"]
    assert [ax.get_title(loc="left") for ax in display.figure_.axes] == ["one", "two"]
    with pytest.raises(InputError, match="`maps` must hold"):
        SignificanceMapsDisplay({}, "")


def test_rankings_have_a_panel_each():
    rankings = {
        name: RankingChangeDisplay("aurc", "augrc", {"a": (1.0, 2.0), "b": (2.0, 1.0)}, (), None)
        for name in ("iid", "new", "noise")
    }
    display = RankingChangesDisplay(rankings, "Rankings").plot()
    assert display.frame()["panel"].to_list() == ["iid", "iid", "new", "new", "noise", "noise"]
    assert [ax.get_title(loc="left") for ax in display.figure_.axes] == ["iid", "new", "noise"]
    assert texts(display).count("a  1") == 3
    with pytest.raises(InputError, match="`rankings` must hold"):
        RankingChangesDisplay({}, "")


def test_pictures_stand_in_rows_with_their_words():
    gray, color = np.zeros((4, 6), np.uint8), np.full((4, 4, 3), 200, np.uint8)
    pictures = (
        LabeledImage("iid 1", "an A, taken for B", gray, "first"),
        LabeledImage("iid 2", "$x$", color, "second"),
        LabeledImage("iid 3", "a C", gray, "second"),
    )
    display = ImageGridDisplay(pictures, "Failures").plot()
    displayed = [ax.images[0].get_array().shape for ax in display.figure_.axes if ax.images]
    assert displayed == [(4, 6), (4, 4, 3), (4, 6)]
    assert texts(display) == ["first", "second"]
    assert "$x$" in [ax.get_xlabel() for ax in display.figure_.axes]
    with pytest.raises(InputError, match="`images` must contain"):
        ImageGridDisplay((), "")
    with pytest.raises(ShapeError, match="image 'x' must have shape"):
        ImageGridDisplay((LabeledImage("x", "", np.zeros(3, np.uint8)),), "")
