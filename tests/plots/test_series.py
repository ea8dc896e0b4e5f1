"""Figures of studies: every point is in the table, panels and legends hold what they name."""

import io
import itertools
import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

from abstain.errors import InputError, ShapeError
from abstain.plots import AgreementDisplay, Pair, Series, SeriesDisplay, SurfaceDisplay
from abstain.plots._panels import grid_shape
from abstain.plots.style import CURVE_ID, LIGHT

N = (8.0, 16.0, 32.0)


def lines(panels=("a", "b", "c"), names=("plug-in", "log"), **options):
    series = tuple(
        Series(name, N, (0.4 / (i + 1), 0.2, 0.1), (0.3, 0.1, 0.0), (0.5, 0.3, 0.2), panel)
        for panel in panels
        for i, name in enumerate(names)
    )
    return SeriesDisplay(series, "Error", "Sample size n", "error", **options)


def curves(ax):
    return [line for line in ax.get_lines() if line.get_gid() == CURVE_ID]


def test_the_table_has_every_point():
    display = lines()
    frame = display.frame()
    assert frame.columns == ["panel", "name", "x", "y", "low", "high"]
    assert frame.height == 3 * 2 * 3
    assert frame.filter(panel="b", name="log")["y"].to_list() == [0.2, 0.2, 0.1]
    bare = SeriesDisplay((Series("x", (1.0,), (math.nan,)),), "", "", "")
    assert bare.frame()["low"].to_list() == [None]


@pytest.mark.parametrize("count", [1, 2, 4, 5, 7])
def test_one_panel_each_with_its_lines(count):
    display = lines([f"panel {i}" for i in range(count)]).plot()
    axes = display.figure_.axes
    assert len(axes) == count
    for i, ax in enumerate(axes):
        assert ax.get_title(loc="left") == f"panel {i}"
        assert [tuple(line.get_ydata()) for line in curves(ax)] == [
            (0.4, 0.2, 0.1),
            (0.2, 0.2, 0.1),
        ]
    # The names of the axes stand at the left and below only.
    _, columns = grid_shape(count)
    assert [bool(ax.get_ylabel()) for ax in axes] == [i % columns == 0 for i in range(count)]
    assert [bool(ax.get_xlabel()) for ax in axes] == [i + columns >= count for i in range(count)]


def test_one_legend_names_every_line_and_the_level():
    display = lines(level={"a": 0.15, "c": 0.1}, level_name="true value").plot()
    (legend,) = display.figure_.legends
    assert [t.get_text() for t in legend.get_texts()] == ["plug-in", "log", "true value"]
    heights = [line.get_ydata()[0] for line in display.figure_.axes[0].get_lines()]
    assert 0.15 in heights


def test_names_look_the_same_in_several_figures():
    order = ("plug-in", "log", "SELE")
    for names in (("SELE", "log"), ("log",)):
        ax = lines(("",), names, order=order).plot().ax_
        drawn = {line.get_color() for line in curves(ax)}
        assert drawn == {LIGHT[order.index(name)] for name in names}


def test_what_a_logarithmic_axis_cannot_show_is_omitted():
    series = (Series("bias", N, (0.1, 0.0, -0.1)),)
    plain = SeriesDisplay(series, "", "", "", log_y=True).plot().ax_
    assert np.isnan(curves(plain)[0].get_ydata()).tolist() == [False, True, True]
    both = SeriesDisplay(series, "", "", "", linear_to=0.01).plot().ax_
    assert both.get_yscale() == "symlog"
    assert curves(both)[0].get_ydata().tolist() == [0.1, 0.0, -0.1]
    assert [t.get_text() for t in plain.get_xticklabels()] == ["8", "16", "32"]


def test_panels_take_the_place_of_axes():
    figure, (left, right) = plt.subplots(1, 2)
    display = lines().plot(ax=right)
    assert left in figure.axes
    assert right not in figure.axes
    assert len(figure.axes) == 4
    assert display.figure_ is figure
    with pytest.raises(InputError, match=r"plt\.subplots"):
        lines().plot(ax=plt.figure().add_axes((0, 0, 1, 1)))


def test_nothing_of_the_caller_is_read_as_a_formula():
    display = lines(["$x^2$ \x1b[31m"], ["$_a$"])
    svg = display.image(".svg", keep_text=True).decode()
    assert "$x^2$" in svg
    assert "$_a$" in svg
    assert "\x1b" not in svg


def test_figures_are_the_same_each_time(tmp_path):
    content = lines(["a", "b"], ["log"]).image(".svg")
    saved = lines(["a", "b"], ["log"]).save(tmp_path / "a.svg")
    assert saved.read_bytes() == content


def test_a_surface_and_its_table():
    x, y = np.linspace(0.1, 0.9, 5), np.array([8.0, 64.0, 512.0])
    z = np.outer(1 / y, x)
    surfaces = {"plug-in": z, "scale": 2 * z}
    display = SurfaceDisplay(x, y, surfaces, "MSE", "u", "n", "mse")
    frame = display.frame().filter(panel="scale")
    assert frame["z"].to_list() == (2 * z).ravel().tolist()
    assert frame["y"].to_list() == np.repeat(y, 5).tolist()
    display.plot()
    assert [ax.get_title(loc="left") for ax in display.figure_.axes[:2]] == ["plug-in", "scale"]
    assert display.figure_.axes[0].get_yscale() == "log"
    assert not display.surfaces["plug-in"].flags.writeable
    assert list(surfaces) == ["plug-in", "scale"]
    assert surfaces["plug-in"].flags.writeable
    with pytest.raises(ShapeError, match=r"'a' must have shape \(3, 5\)"):
        SurfaceDisplay(x, y, {"a": z.T})


def test_agreement_and_difference():
    pairs = tuple(
        Pair(f"case {i}", f"data {i % 2}", 0.01 * 2**i, 0.0101 * 2**i, ("0/1 error", "own")[i // 4])
        for i in range(8)
    )
    display = AgreementDisplay(pairs, "Agreement", "p", "a").plot()
    assert len(display.figure_.axes) == 2
    assert display.frame()["difference"].to_list() == [p.y - p.x for p in pairs]
    dots = [d for ax in display.figure_.axes for d in ax.collections]
    drawn = sorted(tuple(point) for d in dots for point in d.get_offsets().tolist())
    assert drawn == sorted((p.x, p.y) for p in pairs)
    apart = AgreementDisplay(pairs, "Difference", "p", "share", is_relative_difference=True).plot()
    shares = [y for ax in apart.figure_.axes for d in ax.collections for _, y in d.get_offsets()]
    np.testing.assert_allclose(shares, 0.01)


@pytest.mark.parametrize(
    "make", [lambda: SeriesDisplay((), "", "", ""), lambda: AgreementDisplay((), "", "", "")]
)
def test_a_figure_of_nothing_raises_an_error(make):
    with pytest.raises(InputError, match="got none"):
        make()


def test_saved_figures_are_pictures():
    import matplotlib.image as mpimg

    picture = mpimg.imread(io.BytesIO(lines([""]).image(".png", dpi=60)))
    assert picture.std() > 0.02


@pytest.mark.parametrize("y", [(0.0, 0.0), (float("nan"), float("nan"))])
def test_a_logarithmic_axis_without_anything_above_zero(y):
    SeriesDisplay((Series("a", (0, -8), y),), "t", "x", "y", log_y=True).plot()


def test_lines_and_bands_have_one_number_a_point():
    for given in (
        {"y": (1.0,)},
        {"y": (1.0, 2.0), "low": (1.0,)},
        {"y": (1.0, 2.0), "low": (1.0, 1.0)},
    ):
        with pytest.raises(ShapeError, match="one number for each of 2 points"):
            Series("a", (1, 2), **given)
    with pytest.raises(InputError, match="at least one line with a point"):
        SeriesDisplay((Series("a", (), ()),), "t", "x", "y")


@pytest.mark.parametrize("height", [0.1, 0.0, float("nan")])
def test_a_surface_that_is_the_same_everywhere(height):
    z = np.full((2, 3), height)
    SurfaceDisplay(np.array([0.1, 0.5, 0.9]), np.array([8.0, 64.0]), {"a": z}).plot()


def test_surfaces_of_nothing_raise_an_error():
    x = np.array([0.1, 0.5])
    for surfaces, own in (({}, x), ({"a": np.ones((1, 1))}, x[:1])):
        with pytest.raises(ShapeError, match="at least two numbers in each direction"):
            SurfaceDisplay(own, own, surfaces)


def test_a_share_of_nothing_is_omitted():
    pairs = (Pair("n", "g", 0.0, 0.1), Pair("m", "g", 1.0, 2.0))
    AgreementDisplay(pairs, "t", "x", "y", is_relative_difference=True).plot()


@pytest.mark.parametrize(
    ("x", "written"),
    [
        ((1, 2, 3, 4, 5), "1 2 3 4 5"),
        (tuple(range(1, 31)), "1 2 4 8 16"),
        ((1, 2, 4, 8, 16, 30), "1 2 4 8 16 30"),
        ((1000, 10000), "1000 10k"),
        ((100, 101, 102, 200), "100 200"),
    ],
)
def test_a_logarithmic_axis_has_numbers_that_do_not_touch(x, written):
    ax = SeriesDisplay((Series("a", x, (1.0,) * len(x)),), "", "", "").plot().ax_
    ax.figure.draw_without_rendering()
    assert [t.get_text() for t in ax.get_xticklabels()] == written.split()
    boxes = [t.get_window_extent() for t in ax.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))
    assert not ax.get_xticks(minor=True).size


def test_of_many_bands_one_is_plotted_and_named():
    display = lines(("",), ("plug-in", "log", "SELE")).plot()
    assert len(display.ax_.collections) == 1
    (legend,) = display.figure_.legends
    assert [t.get_text() for t in legend.get_texts()][-1] == "band of plug-in"
    assert len(lines(("",)).plot().ax_.collections) == 2


def test_a_band_below_zero_moves_the_axis_of_a_bias_only():
    area = (Series("a", N, (0.4, 0.2, 0.1), (-0.2, 0.1, 0.0), (1.0, 0.3, 0.2)),)
    assert SeriesDisplay(area, "", "", "").plot().ax_.get_ylim()[0] == 0
    bias = SeriesDisplay(area, "", "", "", level={"": 0.0}, level_name="no bias").plot().ax_
    assert bias.get_ylim()[0] < -0.2


def test_the_title_of_the_y_axis_is_at_the_left_only():
    pairs = tuple(Pair("n", "g", 0.1, 0.2, panel) for panel in "abc")
    axes = AgreementDisplay(pairs, "t", "x", "y").plot().figure_.axes
    assert [ax.get_ylabel() for ax in axes] == ["y", "", ""]
