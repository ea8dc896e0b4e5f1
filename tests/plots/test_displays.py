"""Displays draw the numbers of their table, and nothing else of the session changes."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection

from abstain import curves
from abstain.errors import InputError
from abstain.plots import (
    AccuracyRejectionDisplay,
    FailureRocDisplay,
    MetricCoverageDisplay,
    ReliabilityDisplay,
    RetentionDisplay,
    RiskCoverageDisplay,
)

DISPLAYS = (
    AccuracyRejectionDisplay,
    FailureRocDisplay,
    MetricCoverageDisplay,
    ReliabilityDisplay,
    RetentionDisplay,
    RiskCoverageDisplay,
)


@st.composite
def samples(draw):
    n = draw(st.integers(2, 40))
    confidence = draw(st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0]), min_size=n, max_size=n))
    loss = [0.0, 1.0, *draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n - 2, max_size=n - 2))]
    return np.array(confidence), np.array(loss)


def line_of(display, name):
    return next(line for line in display.ax_.get_lines() if line.get_label() == name)


@pytest.mark.parametrize("kind", DISPLAYS)
@settings(max_examples=8)
@given(data=samples())
def test_the_frame_is_what_is_drawn(kind, data):
    confidence, loss = data
    display = kind.from_predictions({"a": confidence, "b": confidence[::-1]}, loss).plot()
    frame = display.frame()
    for name in ("a", "b"):
        drawn = line_of(display, name)
        own = frame.filter(frame["score"] == name)
        for values, column in ((drawn.get_xdata(), kind.x), (drawn.get_ydata(), kind.y)):
            expected = own[column].cast(float).fill_null(np.nan).to_numpy()
            np.testing.assert_array_equal(np.asarray(values, dtype=float), expected)
    plt.close("all")


@pytest.mark.parametrize("kind", DISPLAYS)
def test_plot_returns_itself_and_keeps_to_the_axes_given(kind):
    confidence, loss = [0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]
    figure, ax = plt.subplots()
    display = kind.from_predictions(confidence, loss)
    assert display.ax_ is None
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("kind", DISPLAYS)
def test_global_settings_stay(kind):
    before = dict(mpl.rcParams)
    kind.from_predictions([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]).plot()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", DISPLAYS)
def test_keywords_reach_the_lines(kind):
    display = kind.from_predictions([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    display.plot(color="black", label="mine")
    assert line_of(display, "mine").get_color() == "black"
    assert display.ax_.get_legend() is not None


def test_usable_vertices_are_marked():
    confidence, loss = [0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 0, 1, 1]
    display = RiskCoverageDisplay.from_predictions(confidence, loss).plot()
    frame = display.frame()
    marks = [c for c in display.ax_.collections if isinstance(c, PathCollection)]
    expected = frame.filter(frame["usable"]).select("coverage", "risk").to_numpy()
    np.testing.assert_array_equal(np.asarray(marks[0].get_offsets()), expected)
    bare = RiskCoverageDisplay.from_predictions(confidence, loss).plot(usable=False)
    assert not bare.ax_.collections


def test_steps_keep_the_risk_between_vertices():
    display = RiskCoverageDisplay.from_predictions([0.9, 0.5], [0, 1]).plot(steps=True)
    assert line_of(display, "confidence").get_drawstyle() == "steps-post"


def test_long_curves_are_thinned_in_table_and_picture():
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(20_000), rng.integers(0, 2, 20_000)
    display = RiskCoverageDisplay.from_predictions(confidence, loss).plot()
    assert len(display.frame()) <= 2002
    assert len(display.curves["confidence"]) == 20_000
    assert len(line_of(display, "confidence").get_xdata()) == len(display.frame())


def test_from_curve_takes_one_or_several():
    curve = curves.risk_coverage_curve([0.9, 0.8], [0, 1])
    assert (
        RiskCoverageDisplay.from_curve(curve, name="one").frame()["score"].to_list() == ["one"] * 2
    )
    several = RiskCoverageDisplay.from_curve({"one": curve, "two": curve})
    assert several.frame()["score"].n_unique() == 2
    with pytest.raises(InputError, match="at least one"):
        RiskCoverageDisplay.from_curve({})


def test_unknown_kind_raises_an_error():
    with pytest.raises(InputError, match="generalised"):
        RiskCoverageDisplay.from_predictions([0.9, 0.8], [0, 1], kind="generalised")


def test_hostile_names_are_text():
    names = {"$\\frac{$": [0.9, 0.8], "_hidden": [0.8, 0.9]}
    display = RiskCoverageDisplay.from_predictions(names, [0, 1]).plot()
    display.figure_.canvas.draw()
    displayed = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert displayed == list(names)


def test_names_do_not_turn_the_reading():
    names = {"a\x1b[31m": [0.9, 0.8], "b\u202ec": [0.8, 0.9]}
    display = RiskCoverageDisplay.from_predictions(names, [0, 1]).plot()
    display.figure_.canvas.draw()
    displayed = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert displayed == [r"a\x1b[31m", r"b\u202ec"]


def test_torch_arrays_are_plotted():
    torch = pytest.importorskip("torch")
    confidence, loss = torch.tensor([0.9, 0.8, 0.7]), torch.tensor([0, 1, 0])
    curve = curves.risk_coverage_curve(confidence, loss)
    assert len(RiskCoverageDisplay.from_curve(curve).plot().frame()) == 3
    assert len(FailureRocDisplay.from_predictions(confidence, loss).plot().frame()) == 4
