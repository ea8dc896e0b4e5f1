"""The chart specifications are valid Vega-Lite, and their data are those of the curves."""

import json

import numpy as np
import pytest
from tests.report.pages import HOSTILE

from abstain.plots.palette import DARK, LIGHT, dash, variable
from abstain.report import charts
from abstain.report.chart_data import chart_data, script_json
from abstain.report.pivot import pivot

SPECS = {
    "selective": lambda names: charts.risk_coverage(names, kind="selective", zero_one=True),
    "generalized": lambda names: charts.risk_coverage(names, kind="generalized", zero_one=False),
    "reliability": charts.reliability,
    "cwsa": lambda names: charts.metric_coverage(names, title="CWSA"),
}


@pytest.mark.parametrize("kind", SPECS)
def test_specs_compile(kind):
    import vl_convert

    spec = SPECS[kind](list(HOSTILE))
    empty = {"curves": [], "reference": [], "reliability": []}
    vega = vl_convert.vegalite_to_vega(
        {**spec, "datasets": empty}, vl_version=charts_version(), show_warnings=False
    )
    assert vega["marks"]
    assert any(signal["name"].startswith("zoom_") for signal in vega["signals"])


def charts_version():
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def test_drawn_vertices_are_vertices_of_the_curves(plain):
    data = chart_data(pivot(plain))
    for drawn, case in zip(data["cases"], plain.cases, strict=True):
        frame = case.selective.frame()
        at = np.searchsorted(np.asarray(frame["accepted"]), drawn["curve"]["accepted"])
        for name, field in (("coverage", "coverage"), ("selective", "risk")):
            assert np.allclose(drawn["curve"][name], frame[field].to_numpy()[at], rtol=1e-5)
        generalized = case.generalized.risk[at]
        assert np.allclose(drawn["curve"]["generalized"], generalized, rtol=1e-5)


def test_script_json_cannot_leave_its_element():
    text = script_json({name: name for name in HOSTILE})
    assert "<" not in text
    assert "&" not in text
    assert json.loads(text) == {name: name for name in HOSTILE}


def test_scores_look_different():
    styles = {(variable(i), tuple(dash(i))) for i in range(32)}
    assert len(styles) == 32


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("colors", "paper"), [(LIGHT, "#ffffff"), (DARK, "#1b2025")])
def test_lines_stand_out_from_the_paper(colors, paper):
    for color in colors:
        light, dark = sorted((luminance(color), luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3
