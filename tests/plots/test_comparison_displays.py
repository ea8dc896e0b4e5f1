"""Displays of a comparison draw what its records say, whatever the names are."""

import math
import warnings
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.collections import EllipseCollection
from matplotlib.patches import PathPatch
from tests.plots.comparisons import (
    AWKWARD,
    DATA,
    LITERATURE,
    METHODS,
    band,
    critical,
    made_up,
)

import abstain as ab
from abstain.errors import InputError, UnknownNameError
from abstain.evaluation.comparison import Profile, best_methods, compute_relations_to_best
from abstain.plots import (
    CriticalDifferenceDisplay,
    ForestDisplay,
    PerformanceProfileDisplay,
    RankBlobDisplay,
    RankingChangeDisplay,
    RiskCoverageBandDisplay,
    RiskCoverageDisplay,
    SignificanceMapDisplay,
)
from abstain.plots.labels import unique_labels
from abstain.plots.style import LIGHT

IID = DATA[0]


@pytest.fixture(scope="module")
def awkward():
    return made_up(AWKWARD, undefined="_hidden")


def displays(comparison, data=IID):
    several = len(comparison.data) > 1
    return [
        ForestDisplay.from_comparison(comparison, data=data),
        *([ForestDisplay.from_comparison(comparison)] if several else []),
        SignificanceMapDisplay.from_comparison(comparison, data=data),
        SignificanceMapDisplay.from_comparison(comparison, data=data, test=LITERATURE),
        RankBlobDisplay.from_comparison(comparison, data=data),
        *([CriticalDifferenceDisplay.from_comparison(comparison)] if several else []),
        RankingChangeDisplay.from_comparison(comparison, data=data),
        RiskCoverageBandDisplay.from_comparison(comparison, data=data),
        RiskCoverageBandDisplay.from_comparison(comparison, data=data, kind="generalized"),
    ]


def texts(ax):
    ticks = [*ax.get_xticklabels(), *ax.get_yticklabels()]
    return [t.get_text() for t in [*ax.texts, *ticks]]


# ------------------------------------------------------------------------------ all of them
@pytest.mark.parametrize("name", ["plain", "awkward"])
def test_every_display_draws_on_axes_given_and_keeps_global_settings(name, request):
    before = dict(mpl.rcParams)
    for display in displays(request.getfixturevalue(name)):
        figure, ax = plt.subplots()
        assert display.ax_ is None
        assert display.plot(ax=ax) is display
        assert display.ax_ is ax
        assert display.figure_ is figure
        figure.canvas.draw()
        assert len(display.frame()) > 0
        assert display.title
    assert dict(mpl.rcParams) == before


def test_names_are_never_formulas_nor_commands(awkward):
    for display in displays(awkward):
        display.plot()
        display.figure_.canvas.draw()
        written = display.figure_.findobj(mpl.text.Text)
        assert not any("\x1b" in t.get_text() or "\u202e" in t.get_text() for t in written)
        assert not any(t.get_parse_math() for t in written if "$" in t.get_text())


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".PNG"])
def test_figures_are_saved_the_same_each_time(plain, tmp_path, suffix):
    starts = {".svg": b"<?xml", ".pdf": b"%PDF", ".PNG": b"\x89PNG"}
    first, second = (tmp_path / f"{i}{suffix}" for i in range(2))
    for path in (first, second):
        display = SignificanceMapDisplay.from_comparison(plain, data=IID)
        assert display.save(path) == path
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(starts[suffix])
    assert not plt.get_fignums()


def test_saving_uses_the_figure_that_was_plotted(plain, tmp_path):
    _, ax = plt.subplots()
    ax.set_xlabel("mine")
    display = ForestDisplay.from_comparison(plain, data=IID).plot(ax=ax)
    ax.set_title("changed by the caller")
    text = display.save(tmp_path / "a.svg").read_text()
    assert "changed by the caller" in text


def test_curves_can_be_saved_as_well(tmp_path):
    display = RiskCoverageDisplay.from_predictions([0.9, 0.8, 0.7], [0, 1, 0])
    assert display.save(tmp_path / "curve.svg").exists()


def test_other_formats_raise_an_error(plain, tmp_path):
    display = ForestDisplay.from_comparison(plain)
    with pytest.raises(InputError, match=r"must be \.svg, \.pdf or \.png; got '\.jpg'"):
        display.save(tmp_path / "a.jpg")
    assert not list(tmp_path.iterdir())


def test_unknown_names_raise_an_error(plain):
    with pytest.raises(UnknownNameError, match=r"no metric 'augcr'\. Did you mean 'augrc'"):
        ForestDisplay.from_comparison(plain, "augcr")
    with pytest.raises(UnknownNameError, match="study = iid; study = corruption"):
        SignificanceMapDisplay.from_comparison(plain)
    with pytest.raises(UnknownNameError, match="must be one of the data sets"):
        RankBlobDisplay.from_comparison(plain, data=(("study", "x"),))
    with pytest.raises(InputError, match="what `compare` returned; got dict"):
        ForestDisplay.from_comparison({})


def test_labels_are_short_and_distinct():
    names = [f"{'long ' * 20}{i}{' end' * 20}" for i in range(5)]
    written = unique_labels(names)
    assert len(set(written.values())) == 5
    assert max(map(len, written.values())) <= 30


# ------------------------------------------------------------------------------------ forest
def test_forest_rows_are_the_estimates_best_first(plain):
    display = ForestDisplay.from_comparison(plain, data=IID)
    estimates = plain.estimates_of("augrc", IID)
    frame = display.frame()
    assert frame["value"].to_list() == sorted(e.value for e in estimates)
    assert frame["against_best"][0] == "best"
    assert set(frame["low"].to_list()) == {e.low for e in estimates}


def test_forest_draws_the_intervals_of_its_table(plain):
    display = ForestDisplay.from_comparison(plain, data=IID).plot()
    lines = [line for c in display.ax_.collections for line in c.get_segments()]
    draws = [line[:, 0] for line in sorted(lines, key=lambda line: line[0, 1])]
    expected = display.frame().select("low", "high").to_numpy()
    np.testing.assert_allclose(draws, expected, rtol=0, atol=1e-15)


def test_forest_marks_higher_values_where_higher_is_better():
    comparison = made_up(metrics=("failure_auroc",))
    frame = ForestDisplay.from_comparison(comparison, data=IID).frame()
    assert frame["value"].to_list() == sorted(frame["value"].to_list(), reverse=True)


def test_forest_says_why_there_is_no_value(awkward):
    display = ForestDisplay.from_comparison(awkward, data=IID).plot()
    assert display.frame()["method"].to_list()[-1] == "_hidden"
    assert "undefined: no failures: nothing to rank" in texts(display.ax_)


# ---------------------------------------------------------------------------- significance map
def filled(display):
    kinds = [p for p in display.ax_.get_children() if isinstance(p, PathPatch)]
    blue = mpl.colors.to_rgba(LIGHT[0])
    runs = [run for p in kinds if p.get_facecolor() == blue for run in p.get_path().to_polygons()]
    names = set()
    for run in runs:
        (left, top), (right, bottom) = run.min(axis=0) + 0.5, run.max(axis=0) + 0.5
        assert bottom - top == 1
        names |= {(display.methods[int(top)], m) for m in display.methods[int(left) : int(right)]}
    return names


@pytest.mark.parametrize("test", [None, LITERATURE])
def test_map_fills_what_is_found_better(plain, test):
    display = SignificanceMapDisplay.from_comparison(plain, data=IID, test=test).plot()
    pairs = plain.pairs_of("augrc", IID, test)
    better = {(p.better, ({p.first, p.second} - {p.better}).pop()) for p in pairs if p.better}
    assert better
    assert filled(display) == better
    frame = display.frame()
    rows = frame.filter(frame["better"]).select("row", "column").rows()
    assert set(rows) == better


def test_map_of_a_two_sided_test_has_one_cell_a_pair(plain):
    frame = SignificanceMapDisplay.from_comparison(plain, data=IID).frame()
    assert len(frame) == len(METHODS) * (len(METHODS) - 1) / 2
    places = [s.method for s in plain.standings_of("augrc", IID)]
    for row, column, _, better in frame.rows():
        assert better or places.index(row) < places.index(column)


def test_map_says_its_test_and_when_it_is_not_valid(plain):
    usual = SignificanceMapDisplay.from_comparison(plain, data=IID)
    assert "influence function, adjusted by Holm" in usual.title
    assert "not a valid test" not in usual.title
    literature = SignificanceMapDisplay.from_comparison(plain, data=IID, test=LITERATURE)
    assert "not a valid test" in literature.title


# ------------------------------------------------------------------------------------- ranks
def test_the_area_of_a_blob_is_its_probability(plain):
    display = RankBlobDisplay.from_comparison(plain, data=IID).plot()
    chances = {
        (rank, y): c
        for y, s in enumerate(display.standings)
        for rank, c in enumerate(s.rank_probabilities, 1)
        if c > 0
    }
    areas = areas_of(display)
    first = next(iter(chances))
    assert set(areas) == set(chances)
    np.testing.assert_allclose(
        [areas[at] / areas[first] for at in chances],
        [c / chances[first] for c in chances.values()],
        rtol=1e-12,
    )


def areas_of(display):
    """Return the area of each blob by rank and row."""
    draws = [c for c in display.ax_.collections if isinstance(c, EllipseCollection)]
    return {
        (round(x), round(y)): np.pi * (c.get_widths()[0] / 2) * (c.get_heights()[0] / 2)
        for c in draws
        for x, y in c.get_offsets()
    }


def test_what_is_plotted_of_many_methods_is_few_things():
    """65 methods have 4,160 cells and thousands of blobs; each kind or size is drawn at once."""
    methods = tuple(f"method {i}" for i in range(65))
    comparison = made_up(methods, metrics=("augrc",), data=DATA[:1], spread=2.0)
    square = SignificanceMapDisplay.from_comparison(comparison).plot()
    assert len(filled(square)) == len(square.frame().filter(pl.col("better")))
    blobs = RankBlobDisplay.from_comparison(comparison).plot()
    forest = ForestDisplay.from_comparison(comparison).plot()
    areas = areas_of(blobs)
    chances = {
        (r, y): c
        for y, s in enumerate(blobs.standings)
        for r, c in enumerate(s.rank_probabilities, 1)
    }
    assert len(areas) == sum(c > 0 for c in chances.values()) > 1000
    for at, area in areas.items():
        assert abs(np.sqrt(area / np.pi) - 0.44 * np.sqrt(chances[at])) <= 0.005
    counts = [len(display.ax_.get_children()) for display in (square, blobs, forest)]
    assert counts[0] <= 20
    assert counts[1] <= 110
    # Of 2,080 cells next to each other there are few outlines.
    cells = [p.get_path() for p in square.ax_.get_children() if isinstance(p, PathPatch)]
    assert max(len(path.vertices) for path in cells) < 2080
    assert counts[2] <= 20


def test_blobs_of_all_data_sets_together(plain):
    display = RankBlobDisplay.from_comparison(plain)
    assert {s.data for s in display.standings} == {None}
    assert "all data sets" in display.title
    chances = display.frame().select("rank_1", "rank_2").to_numpy()
    assert chances.tolist() == [list(s.rank_probabilities[:2]) for s in display.standings]


def test_ranking_change_keeps_the_ranks(plain):
    display = RankingChangeDisplay.from_comparison(plain, data=IID).plot()
    left = {s.method: s.rank for s in plain.standings_of("augrc", IID)}
    right = {s.method: s.rank for s in plain.standings_of("aurc", IID)}
    assert display.ranks == {m: (rank, right[m]) for m, rank in left.items()}
    bold = {t.get_text() for t in display.ax_.texts if t.get_fontweight() == "bold"}
    moved = {m for m, (a, b) in display.ranks.items() if a != b}
    assert {m for m in METHODS if any(m in t for t in bold)} == moved
    tau = next(a.tau for a in plain.agreements if a.data == IID)
    assert f"Kendall's tau {tau:.2f}" in display.title


def test_tied_ranks_stand_apart():
    ranks = {"a": (1.5, 2.0), "b": (1.5, 1.0), "c": (3.0, 3.0), "d": (math.nan, math.nan)}
    display = RankingChangeDisplay("augrc", "aurc", ranks, (), None).plot()
    y = {text.get_text(): text.get_position()[1] for text in display.ax_.texts}
    assert [y[text] for text in ("b  1.5", "a  1.5", "c  3")] == [0, 1, 2]
    assert [y[text] for text in ("1  b", "2  a", "3  c")] == [0, 1, 2]


# -------------------------------------------------------------------------- over all data sets
@pytest.mark.parametrize("k", [2, 3, 8, 15])
def test_names_of_a_critical_difference_diagram_never_overlap(k):
    names = [f"a method with quite a long name {i}" for i in range(k)]
    display = CriticalDifferenceDisplay(critical(k, names=names))
    display.plot()
    display.figure_.canvas.draw()
    renderer = display.figure_.canvas.get_renderer()
    named = [t for t in display.ax_.texts if "…" in t.get_text()]
    boxes = [t.get_window_extent(renderer) for t in named]
    assert len(boxes) == k
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_critical_difference_diagram_is_its_record(plain):
    display = CriticalDifferenceDisplay.from_comparison(plain, "aurc").plot()
    across = plain.mean_ranks_of("aurc")
    assert display.frame()["mean_rank"].to_list() == list(across.mean_ranks)
    bars = [line for line in display.ax_.lines if line.get_linewidth() == 4.5]
    assert len(bars) == len(across.cliques)
    assert f"CD {across.critical_difference:.2f}" in " ".join(texts(display.ax_))


def test_one_data_set_has_no_critical_difference():
    with pytest.raises(InputError, match="several data sets or runs"):
        CriticalDifferenceDisplay.from_comparison(made_up(data=((),)))
    with pytest.raises(InputError, match="several data sets or runs"):
        PerformanceProfileDisplay.from_comparison(made_up(data=((),)))


def test_profiles_are_plotted_as_they_are():
    profile = Profile("augrc", "$x$", (0.01, 0.02), (0.4, 1.0), (0.2, 0.8), (0.6, 1.0))
    display = PerformanceProfileDisplay((profile,)).plot()
    line = display.ax_.lines[0]
    assert line.get_ydata().tolist() == [0.4, 1.0]
    assert display.frame().rows() == [("$x$", 0.01, 0.4, 0.2, 0.6), ("$x$", 0.02, 1.0, 0.8, 1.0)]


# ------------------------------------------------------------------------------------- bands
def test_bands_are_plotted_as_they_are(plain):
    display = RiskCoverageBandDisplay.from_comparison(plain, data=IID).plot()
    frame = display.frame()
    lines = [line for line in display.ax_.lines if str(line.get_gid()).startswith("method-")]
    assert [line.get_label() for line in lines] == list(METHODS)
    for line in lines:
        own = frame.filter(frame["method"] == line.get_label())
        np.testing.assert_array_equal(line.get_ydata(), own["risk"].to_numpy())
    assert len(display.ax_.collections) == 2 * len(METHODS)


def test_bands_of_no_comparison():
    grid = np.linspace(0.1, 1, 5)
    bands = {"_a": band("selective", grid, grid / 10), "$b$": band("selective", grid, grid / 8)}
    display = RiskCoverageBandDisplay.from_curve(bands).plot()
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["_a", "$b$"]
    with pytest.raises(InputError, match="at least one curve"):
        RiskCoverageBandDisplay.from_curve({})
    with pytest.raises(InputError, match="`kind` must be"):
        RiskCoverageBandDisplay.from_comparison(made_up(), kind="other")


def test_undefined_parts_of_a_band_do_not_matter():
    grid = np.linspace(0.1, 1, 5)
    risk = np.where(grid < 0.3, np.nan, grid / 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = RiskCoverageBandDisplay.from_curve({"a": band("selective", grid, risk)})
        display.image(".svg")
    assert display.ax_.get_ylim()[1] > 0.1


# ------------------------------------------------------------------------------------- lookup
def test_ties_with_the_best_are_those_not_found_worse(plain):
    for metric in plain.metrics:
        for data in plain.data:
            estimates = plain.estimates_of(metric, data)
            pairs = plain.pairs_of(metric, data)
            stands = compute_relations_to_best(estimates, pairs)
            best = [m for m, s in stands.items() if s == "best"]
            assert len(best) == 1
            for method in set(METHODS) - set(best):
                pair = next(p for p in pairs if {p.first, p.second} == {method, best[0]})
                expected = "worse" if pair.better == best[0] else "not told apart"
                assert stands[method] == expected


def test_equal_values_have_no_best():
    comparison = made_up(METHODS[:2], data=(IID,), undefined="msr")
    estimates = comparison.estimates_of("augrc", IID)
    assert best_methods(estimates) == []
    assert compute_relations_to_best(estimates, [])["msr"] == "undefined"
    assert compute_relations_to_best(estimates, [])["mls"] == "untested"


def test_the_deciding_test_is_found_by_its_short_name(plain):
    assert plain.deciding_test("augrc", IID) == "influence function"
    assert plain.tests_of("augrc", IID) == ["influence function", LITERATURE]


def test_a_value_a_rounding_beyond_its_interval_is_plotted():
    comparison = ab.compare(
        ab.Predictions(confidence={"a": [3.0, 2, 1], "b": [1.0, 2, 3]}, loss=[1, 1, 1])
    )
    moved = tuple(replace(e, value=np.nextafter(e.high, 1)) for e in comparison.estimates)
    ForestDisplay.from_comparison(replace(comparison, estimates=moved)).plot()
