"""The chart specifications are valid Vega-Lite, and their data are those of the curves."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.report.pages import HOSTILE

import abstain as ab
from abstain.plots.style import DARK, LIGHT, css_variable, dash_pattern
from abstain.report.render.html import json_for_script
from abstain.report.subjects.evaluation import charts
from abstain.report.subjects.evaluation.charts import chart_data
from abstain.report.subjects.evaluation.lookup import ResultLookup

SPECS = {
    "selective": lambda names: charts.risk_coverage_chart(names, kind="selective", zero_one=True),
    "generalized": lambda names: charts.risk_coverage_chart(
        names, kind="generalized", zero_one=False
    ),
    "banded": lambda names: charts.risk_coverage_chart(
        names, kind="selective", zero_one=True, level="95%"
    ),
    "reliability": charts.reliability_chart,
    "cwsa": lambda names: charts.metric_coverage_chart(names, title="CWSA"),
}


EMPTY = {name: [] for name in ("curves", "reference", "reliability", "bands", "edges")}


@pytest.fixture(params=SPECS)
def spec(request):
    return SPECS[request.param](list(HOSTILE))


def test_charts_are_what_the_schema_of_their_language_allows(spec):
    alt = pytest.importorskip("altair")
    from jsonschema import ValidationError

    alt.LayerChart.from_dict(spec)
    for misspelled in ({**spec, "hight": 340}, {**spec, "layer": [{"mark": "lin"}]}):
        with pytest.raises(ValidationError):
            alt.LayerChart.from_dict(misspelled)


def test_the_schema_is_that_of_the_bundle(root):
    alt = pytest.importorskip("altair")
    hook = (root / "hatch_build.py").read_text(encoding="utf-8")
    version = re.search(r'VEGA_LITE_VERSION = "(.*)"', hook)
    assert alt.SCHEMA_VERSION.startswith(f"v{version[1]}.")


def test_the_build_makes_the_bundle_of_this_tree(root, tmp_path):
    pytest.importorskip("vl_convert")
    program = shutil.copy(root / "hatch_build.py", tmp_path)
    place = Path("src/abstain/report/templates/vega.js")
    (tmp_path / place).parent.mkdir(parents=True)
    subprocess.run([sys.executable, program], check=True, capture_output=True)
    made = (tmp_path / place).read_bytes()
    assert made == (root / place).read_bytes(), "stale: run `python hatch_build.py`"
    assert [path.name for path in (tmp_path / place).parent.iterdir()] == ["vega.js"]


def test_charts_compile(spec):
    vega = compiled(spec)
    assert vega["marks"]
    signals = {signal["name"] for signal in vega["signals"]}
    # What the page sets and reads, by these names.
    assert {
        "top",
        "band_opacity",
        "near",
        f"zoom_{spec['layer'][-1]['encoding']['x']['field']}",
    } <= signals


def compiled(spec):
    alt, vl_convert = pytest.importorskip("altair"), pytest.importorskip("vl_convert")
    language = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    said = {**spec, "datasets": EMPTY}
    return vl_convert.vegalite_to_vega(said, vl_version=language, show_warnings=False)


def marks_of(group):
    """Every mark that is drawn, by its name."""
    for mark in group.get("marks", []):
        yield mark["name"], mark
        yield from marks_of(mark)


def test_layers_lie_and_look_as_they_are_said():
    marks = dict(marks_of(compiled(SPECS["banded"](["a", "b"]))))
    kinds = [mark["type"] for mark in marks.values() if mark["type"] != "group"]
    # Bands, their edges and the reference below the lines; the point that is chosen, and a cell for
    # each point, on top.
    assert kinds == ["area", "line", "line", "line", "symbol", "rule", "symbol", "symbol", "path"]
    dots = marks["dots_marks"]["encode"]["update"]
    assert "accept when confidence ≥" in dots["tooltip"]["signal"]
    assert [way["value"] for way in dots["opacity"]] == [1, 0]
    scales = {scale["name"]: scale for scale in compiled(SPECS["banded"](["a", "b"]))["scales"]}
    assert scales["color"]["domain"] == ["a", "b"]
    assert scales["color"]["range"] == [css_variable(0), css_variable(1)]
    assert scales["strokeDash"]["range"] == [dash_pattern(0), dash_pattern(1)]
    assert scales["y"]["domainMax"] == {"signal": "top"}


def test_a_chart_is_said_anew_each_time():
    one, other = (SPECS["banded"](["a"]) for _ in range(2))
    assert one == other
    assert json.loads(json.dumps(one)) == one


def test_drawn_vertices_are_vertices_of_the_curves(plain):
    data = chart_data(ResultLookup(plain))
    for drawn, case in zip(data["cases"], plain.curves, strict=True):
        frame = case.selective.frame()
        at = np.searchsorted(np.asarray(frame["accepted"]), drawn["curve"]["accepted"])
        assert np.allclose(drawn["curve"]["failures"], frame["failures"].to_numpy()[at])
        assert np.allclose(drawn["curve"]["threshold"], frame["thresholds"].to_numpy()[at])
        # Without weights, the page derives coverage and risk from the counts.
        assert not {"coverage", "selective"} & drawn["curve"].keys()


def test_weighted_curves_have_coverage_and_risk():
    rng = np.random.default_rng(1)
    p = ab.Predictions(confidence=rng.random(50), loss=rng.random(50) < 0.4, weight=rng.random(50))
    evaluation = ab.evaluate(p)
    (drawn,) = chart_data(ResultLookup(evaluation))["cases"]
    frame = evaluation.curves[0].selective.frame()
    assert np.allclose(drawn["curve"]["coverage"], frame["coverage"], rtol=1e-5)
    assert np.allclose(drawn["curve"]["selective"], frame["risk"], rtol=1e-5)


def test_bands_are_those_of_the_cases(plain):
    data = chart_data(ResultLookup(plain))
    assert data["level"] == "95%"
    for drawn, case in zip(data["cases"], plain.curves, strict=True):
        band = case.band
        for name in ("coverage", "risk", "low", "high"):
            assert np.allclose(drawn["band"][name], getattr(band, name), rtol=1e-3)
        outer = np.array(drawn["band"]["high_all"], dtype=float)
        speaks = band.coverage >= band.simultaneous_from
        assert np.array_equal(np.isnan(outer), ~speaks)
        assert np.allclose(outer[speaks], band.high_all[speaks], rtol=1e-3)
        # The line and the band are of the same curve, wherever a vertex meets the grid.
        accepted, failures = (np.array(drawn["curve"][x]) for x in ("accepted", "failures"))
        coverage = [float(f"{c:.4g}") for c in accepted / accepted[-1]]
        curve = dict(zip(coverage, failures / accepted, strict=True))
        shared = [i for i, c in enumerate(drawn["band"]["coverage"]) if c in curve]
        assert len(shared) > 10
        for i in shared:
            risk = curve[drawn["band"]["coverage"][i]]
            assert risk == pytest.approx(drawn["band"]["risk"][i], rel=1e-3)


def test_bands_of_many_cases_are_thinned(plain, large):
    many = chart_data(ResultLookup(large))
    sizes = {len(case["band"]["coverage"]) for case in many["cases"]}
    assert sizes == {16}
    crowd = [replace(plain.curves[0], split=(("part", f"{i}"),)) for i in range(600)]
    thin = chart_data(ResultLookup(replace(plain, curves=tuple(crowd), results=())))["cases"][0][
        "band"
    ]
    assert len(thin["coverage"]) == 16
    assert thin["coverage"][-1] == 1
    assert set(thin["coverage"]) <= set(np.round(plain.curves[0].band.coverage, 3))


def test_no_intervals_no_bands(plain):
    bare = replace(plain, curves=tuple(replace(case, band=None) for case in plain.curves))
    data = chart_data(ResultLookup(bare))
    assert data["level"] == ""
    assert not [case for case in data["cases"] if "band" in case]


def test_one_sample_has_no_band():
    one = ab.evaluate(ab.Predictions(confidence=[0.5], loss=[1.0]))
    assert "band" not in chart_data(ResultLookup(one))["cases"][0]


def test_script_json_cannot_leave_its_element():
    text = json_for_script({name: name for name in HOSTILE})
    assert "<" not in text
    assert "&" not in text
    assert json.loads(text) == {name: name for name in HOSTILE}


def test_scores_look_different():
    styles = {(css_variable(i), tuple(dash_pattern(i))) for i in range(32)}
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
