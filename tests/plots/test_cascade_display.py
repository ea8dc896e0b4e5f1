"""The picture of all thresholds of a cascade, and its page."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError
from abstain.plots import CascadeDisplay, CascadePathDisplay
from abstain.report import build_document, render
from abstain.report.output import CASCADE


def said(n, seed=0):
    rng = np.random.default_rng(seed)
    hard = rng.random(n)
    small = (1 - hard, rng.random(n) < 0.5 * hard**2)
    return {"small": small, "large": (1 - hard**2, rng.random(n) < 0.2 * hard**3)}


@pytest.fixture(scope="module")
def checks():
    costs = {"small": 1, "large": 10, "person": 100}
    cascade = ab.set_cascade(said(2000), max_risk=0.06, capacity=0.5, costs=costs)
    return ab.check_cascade(cascade, {"<later>": said(900, 1)}, calibration=said(2000))


def test_the_table_has_what_is_plotted(checks):
    rows = CascadeDisplay.from_checks(checks).frame()
    f = checks.frontier
    selected = rows.filter(rows["kind"] == "selected")
    assert selected["risk"].to_list() == [checks.cascade.risk]
    assert selected["cost"].to_list() == [checks.cascade.cost]
    certified = rows.filter(rows["kind"] == "certified")
    assert certified["risk"].to_list() == f.risk[f.certified].tolist()
    assert selected["cost"][0] == certified["cost"].min()
    # What one model reaches without the other: nothing of it is beaten by more of the same.
    for index, name in enumerate(("small", "large")):
        alone = rows.filter((rows["kind"] == "alone") & (rows["name"] == name))
        assert np.all(np.diff(alone["risk"]) > 0)
        assert np.all(np.diff(alone["cost"]) < 0)
        whole = checks.frontier.answer_all_choice(index)
        risk = said(2000)[name][1].mean()
        assert f.risk[whole] == pytest.approx(risk)
        assert f.reviews[whole] == 0
    person = f.answer_all_choice(-1)
    assert (f.risk[person], f.reviews[person], f.cost[person]) == (0, 1, 100)
    data = rows.filter(rows["kind"] == "data")
    assert data["name"].to_list() == ["<later>"]


def test_dots_that_would_lie_on_each_other_are_plotted_once(checks):
    candidates = CascadeDisplay.from_checks(checks).frame().filter(kind="candidate")
    assert 100 < candidates.height < 3000 < checks.frontier.risk.size


def test_draws_the_chosen_point_and_names_it(checks):
    ax = CascadeDisplay.from_checks(checks).plot().ax_
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "other thresholds",
        "certified",
        "small and the person alone",
        "large and the person alone",
        "all samples to the person",
        "maximum risk 0.06",
        "selected",
        "<later>",
    ]
    points = [line.get_xydata().tolist() for line in ax.get_lines() if line.get_marker() == "D"]
    assert points == [[[checks.cascade.risk, checks.cascade.cost]]]
    assert ax.get_ylabel() == "Mean cost per sample"


def test_a_cascade_of_nothing_and_free_models_have_a_picture_too():
    cascade = ab.set_cascade(said(300), max_risk=0.001)
    checks = ab.check_cascade(cascade, {}, calibration=said(300))
    display = CascadeDisplay.from_checks(checks).plot()
    assert display.title.endswith("none is certified")
    assert display.ax_.get_ylabel() == "Share of samples forwarded to the person"
    assert "selected" not in display.frame()["kind"].to_list()


def test_the_page_says_it_in_every_format(checks):
    page = CASCADE.html(checks, title="Who <answers>", command="abstain cascade x")
    assert "<h1>Who &lt;answers&gt;</h1>" in page
    assert "&lt;later&gt;" in page
    assert "<later>" not in page
    for kind in ("markdown", "latex"):
        text = render(build_document(checks), kind)
        assert "at most" in text
        assert "person" in text
    assert {name for name, _ in CASCADE.figure_files(checks, ["svg"])} == {
        "cascade.svg",
        "cascade.csv",
    }
    with pytest.raises(InputError, match="check_cascade"):
        CASCADE.html(object())


def test_path_display_draws_each_stage(checks):
    cascade = checks.cascade
    check = checks.checks[0]
    display = CascadePathDisplay.from_checks(checks, check).plot()
    frame = display.frame()
    assert frame["stage"].to_list() == list(cascade.names)
    assert frame["n_answered"].sum() == pytest.approx(1000)
    # The segments of a stage have the length of the samples that reach the stage.
    widths = {}
    for bar in display.ax_.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        widths[row] = widths.get(row, 0.0) + bar.get_width()
    assert list(widths.values()) == pytest.approx(frame["n_reached"].to_list())
    texts = [text.get_text() for text in display.ax_.texts]
    assert [text.split(":")[0] for text in texts] == list(cascade.names)
    costs = dict(zip(frame["stage"], frame["cost"] + frame["error_cost"], strict=True))
    assert any(text.endswith(f"cost {costs['large']:,.0f}") for text in texts)


def test_path_of_the_calibration_data_has_no_wrong_answers(checks):
    display = CascadePathDisplay.from_checks(checks).plot()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "wrong answers" not in labels
