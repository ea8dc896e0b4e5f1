"""Displays of a comparison stay readable with many names and say what they rest on."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text
from tests.plots.comparisons import DATA, METHODS, band, made_up

from abstain.evaluation.comparison import Estimate
from abstain.plots import (
    CriticalDifferenceDisplay,
    ForestDisplay,
    RankBlobDisplay,
    RankingChangeDisplay,
    RiskCoverageBandDisplay,
    SignificanceMapDisplay,
)
from abstain.plots.text_artist import TextArtist

IID = DATA[0]


def drawn(display):
    display.plot()
    display.figure_.canvas.draw()
    return display.figure_.canvas.get_renderer()


# --------------------------------------------------------------------------------- many names
@pytest.mark.parametrize("k", [5, 12, 20])
def test_names_of_many_curves_stand_below_the_axes(k):
    grid = np.linspace(0.1, 1, 5)
    bands = {f"confidence_{i:02}": band("selective", grid, grid / 10) for i in range(k)}
    display = RiskCoverageBandDisplay.from_curve(bands)
    renderer = drawn(display)
    figure, ax = display.figure_, display.ax_
    legend = ax.get_legend().get_window_extent(renderer)
    assert legend.y1 < ax.xaxis.get_tightbbox(renderer).y0
    assert legend.x1 < figure.bbox.x1
    assert legend.y0 >= 0
    # The axes keep the size that they have with few names.
    assert ax.get_window_extent(renderer).height > 2.7 * figure.dpi
    assert ax.bbox.y1 < figure._suptitle.get_window_extent(renderer).y0


def test_few_names_stay_inside():
    grid = np.linspace(0.1, 1, 5)
    bands = {name: band("selective", grid, grid / 10) for name in "abcd"}
    display = RiskCoverageBandDisplay.from_curve(bands).plot()
    assert display._size() == (5.6, 4.2)
    assert len(display.ax_.get_legend().get_texts()) == 4


def test_names_of_the_legend_belong_to_their_curves(plain):
    display = RiskCoverageBandDisplay.from_comparison(plain, data=IID, methods=("pe", "msr")).plot()
    legend = display.ax_.get_legend()
    results = {t.get_text(): t.get_gid() for t in legend.get_texts()}
    assert results == {"pe": "method-2", "msr": "method-0"}
    lines = {line.get_label(): line.get_gid() for line in display.ax_.lines}
    assert lines == results
    assert [h.get_gid() for h in legend.legend_handles] == list(results.values())


def test_plotted_curves_are_counted(plain):
    some = RiskCoverageBandDisplay.from_comparison(plain, data=IID, methods=METHODS[:2])
    assert ", 2 of 6 methods" in some.title
    assert "methods" not in RiskCoverageBandDisplay.from_comparison(plain, data=IID).title


def test_a_band_of_the_whole_curve_that_speaks_late_is_not_plotted():
    grid = np.linspace(0.1, 1, 10)
    plain = band("selective", grid, grid / 10)
    late, partly = (replace(plain, simultaneous_from=start) for start in (0.9, 0.5))
    display = RiskCoverageBandDisplay.from_curve({"a": late}).plot()
    assert len(display.ax_.collections) == 1
    assert "too few samples for simultaneous bands" in display.title
    display = RiskCoverageBandDisplay.from_curve({"a": partly}).plot()
    outer = display.ax_.collections[0].get_paths()[0].vertices
    assert outer[:, 0].min() == pytest.approx(0.5)
    assert "outer simultaneous" in display.title


@pytest.mark.parametrize("scale", [1e-5, 0.01, 1.0, 3e4])
def test_numbers_of_a_forest_never_overlap(scale):
    values = scale * np.linspace(1, 2.1, 5)
    estimates = [
        Estimate("augrc", (), "", f"m{i}", v, 0.97 * v, 1.04 * v, 0.1, 0.95, "", 900, 80, True)
        for i, v in enumerate(values)
    ]
    footing = {((), e.method): "untested" for e in estimates}
    display = ForestDisplay("augrc", {(): estimates}, footing)
    renderer = drawn(display)
    low, high = display.ax_.get_xlim()
    displayed = [
        label.get_window_extent(renderer)
        for label, at in zip(display.ax_.get_xticklabels(), display.ax_.get_xticks(), strict=True)
        if low <= at <= high
    ]
    assert 2 <= len(displayed) <= 5
    assert not any(a.overlaps(b) for i, a in enumerate(displayed) for b in displayed[:i])


def test_the_cross_over_all_data_is_the_mean_of_what_is_plotted(plain):
    display = RankBlobDisplay.from_comparison(plain).plot()
    (crosses,) = [line.get_xdata() for line in display.ax_.lines if line.get_marker() == "x"]
    means = [
        sum(r * c for r, c in enumerate(s.rank_probabilities, 1)) / sum(s.rank_probabilities)
        for s in display.standings
    ]
    np.testing.assert_allclose(crosses, means)
    assert display.frame()["mean_rank"].to_list() == pytest.approx(means)
    one = RankBlobDisplay.from_comparison(plain, data=IID)
    assert one.frame()["mean_rank"].to_list() == [s.mean_rank for s in one.standings]


def test_ranks_say_what_they_suppose(plain):
    for title in (
        RankBlobDisplay.from_comparison(plain, data=IID).title,
        RankingChangeDisplay.from_comparison(plain, data=IID).title,
    ):
        assert "if the estimates were the true values" in title
        assert "drawn anew" not in title


def test_what_is_over_all_says_of_what(plain):
    runs = replace(plain, data=((),), runs=("1", "2"))
    assert "over 3 data sets\n" in CriticalDifferenceDisplay.from_comparison(plain).title
    assert "over 3 runs\n" in CriticalDifferenceDisplay.from_comparison(runs).title
    assert runs.aggregated_over == "runs"
    assert replace(runs, data=DATA).aggregated_over == "runs of 3 data sets"
    assert plain.aggregated_over == "data sets"


def lettering(display):
    return [part for part in display.ax_.get_children() if isinstance(part, TextArtist)]


def test_names_of_many_methods_beside_a_map_do_not_overlap():
    methods = tuple(f"method {i}" for i in range(70))
    display = SignificanceMapDisplay.from_comparison(made_up(methods, data=DATA[:1]))
    renderer = drawn(display)
    down, across = lettering(display)
    assert down.texts == across.texts
    assert sorted(down.texts) == sorted(methods)
    bottoms, tops = down.boxes(renderer)[:, [1, 3]].T
    assert (tops[1:] <= bottoms[:-1]).all()
    # Letters of 6 points can be read.
    assert ((tops - bottoms) * 72 / display.figure_.dpi > 6).all()
    # The titles of the axes stand beyond the names.
    ax = display.ax_
    assert ax.xaxis.label.get_window_extent(renderer).y1 < across.get_window_extent(renderer).y0
    assert ax.yaxis.label.get_window_extent(renderer).x1 < down.get_window_extent(renderer).x0
    assert down.get_window_extent(renderer).x1 < ax.bbox.x0


def written(display):
    """Return the box of each text on the axes, whichever way it is drawn; x labels after y's."""
    renderer, ax = drawn(display), display.ax_
    texts = [*ax.get_yticklabels(), *ax.get_xticklabels(), *ax.texts]
    boxes = [(text.get_text(), text.get_window_extent(renderer).extents) for text in texts]
    for part in lettering(display):
        boxes += zip(part.texts, part.boxes(renderer), strict=True)
    return sorted((text, tuple(box)) for text, box in boxes if text)


@pytest.mark.parametrize(
    "kind", [ForestDisplay, SignificanceMapDisplay, RankBlobDisplay, RankingChangeDisplay]
)
def test_names_of_many_methods_stand_where_labels_of_ticks_do(kind, monkeypatch):
    methods = tuple(f"method {i:02}" for i in range(56))
    display = kind.from_comparison(made_up(methods, ("augrc", "aurc"), DATA[:1]))
    many = written(display)
    assert lettering(display)
    monkeypatch.setattr("abstain.plots.labels._MAX_SEPARATE_LABELS", 56)
    few = written(display)
    assert not lettering(display)
    assert [text for text, _ in many] == [text for text, _ in few]
    apart = np.subtract([box for _, box in many], [box for _, box in few])
    # In dots, of which a letter has ten.
    assert abs(apart).max() < 1


def test_each_of_many_names_is_measured_once(monkeypatch):
    """Labels of ticks are laid out a dozen times until a figure is written."""
    measured = Counter()

    def counted(self, *args):
        measured[self.get_text()] += 1
        return layout(self, *args)

    layout = Text._get_layout
    monkeypatch.setattr(Text, "_get_layout", counted)
    methods = tuple(f"method {i:02}" for i in range(40))
    display = SignificanceMapDisplay.from_comparison(made_up(methods, data=DATA[:1]))
    display.image(".svg", keep_text=True)
    # Beside the columns and the rows, and again when it is drawn.
    assert {measured[name] for name in methods} == {4}
