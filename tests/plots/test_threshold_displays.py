"""The figures of a decision rule draw its numbers, name every data set, and hide nothing."""

import itertools
import math
import re
import time

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError
from abstain.evaluation import check_rule, set_threshold
from abstain.plots import DecisionRuleDisplay, RiskExcessDisplay
from abstain.plots.verdicts import MARK_BY_VERDICT, group_severities, shorten_names


def made(seed: int, n: int = 800, *, hard: float = 0.0) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1, n)
    wrong = rng.random(n) < np.clip((1 - confidence) ** 1.3 + hard, 0, 1)
    return ab.Predictions(confidence={"own": confidence}, loss=wrong)


CALIBRATION = made(0, 1500)
SHIFTS = {f"noise_{i}": made(i, hard=0.05 * i) for i in range(1, 4)}


def checks(parts=None, *, known: bool = True, method: str = "sgr", **options):
    options = options or {"max_risk": 0.1, "delta": 0.05}
    rule = set_threshold(CALIBRATION, method=method, **options)
    parts = {"iid": made(9), **SHIFTS} if parts is None else parts
    return check_rule(rule, parts, calibration=CALIBRATION if known else None)


def grouped(count: int) -> ab.Predictions:
    p, rng = made(7, 2500), np.random.default_rng(0)
    names = [f"group {i}" for i in rng.integers(0, count, p.n)]
    return ab.Predictions(confidence=p.confidence, loss=p.loss, group=names)


CASES = {
    "shifts": checks,
    "saved": lambda: checks(known=False),
    "nothing checked": lambda: checks({}),
    "unattainable": lambda: checks(max_risk=0.0005, delta=0.05),
    "generalized": lambda: checks(method="conformal_risk_control", max_risk=0.05),
    "coverage": lambda: checks(method="coverage_guarantee", coverage=0.5, delta=0.05),
    "cost": lambda: checks(method="cost", abstention_cost=0.2),
    "chow": lambda: checks(method="chow", abstention_cost=0.2),
    "groups": lambda: checks({"all": grouped(3), "more": grouped(90)}),
    "no labels": lambda: checks({"new": made(1).confidence["own"]}),
    "long names": lambda: checks({f"$x^{i}$ _{'a name that never ends ' * 4}{i}": made(i) for i in range(15)}),
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def found(request):
    return CASES[request.param]()


def overlapping(boxes) -> list[tuple[int, int]]:
    pairs = itertools.combinations(enumerate(boxes), 2)
    return [(i, j) for (i, a), (j, b) in pairs if a.overlaps(b) and a.width and b.width]


@pytest.mark.parametrize("kind", [DecisionRuleDisplay, RiskExcessDisplay])
def test_no_words_lie_over_others(found, kind):
    display = kind.from_checks(found)
    display._plot_on_own_figure({})
    axes, figure = display.ax_, display.figure_
    figure.draw_without_rendering()
    legend = axes.get_legend()
    names = [] if legend is None else list(legend.get_texts())
    ticks = [axis.get_ticklabels() for axis in (axes.xaxis, axes.yaxis)]
    ends = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    assert np.isfinite(ends).all()
    for index, (words, (low, high)) in enumerate(zip(ticks, ends, strict=True)):
        draws = [t for t in words if low <= t.get_position()[index] <= high]
        boxes = [t.get_window_extent() for t in [*draws, *names, axes.xaxis.label]]
        assert overlapping(boxes) == []
        assert all(box.x0 >= figure.bbox.x0 for box in boxes)


def test_the_table_of_the_rule_has_what_is_plotted():
    result = checks()
    display = DecisionRuleDisplay.from_checks(result).plot()
    table = display.frame()
    first = table.filter(kind="calibration").row(0, named=True)
    assert (first["coverage"], first["risk"]) == (result.rule.coverage, result.rule.risk)
    assert first["threshold"] == result.rule.threshold
    data = table.filter(kind="data")
    assert data["name"].to_list() == [c.name for c in result.checks]
    assert data["risk"].to_list() == [c.selective_risk for c in result.checks]
    assert data["risk_high"].to_list() == [c.selective_risk_interval.high for c in result.checks]
    curve = table.filter(kind="curve")
    assert curve["risk"][-1] == pytest.approx((CALIBRATION.loss).mean())
    draws = [line.get_xydata().tolist() for line in display.ax_.get_lines()]
    assert [[first["coverage"], first["risk"]]] in draws
    for c in result.checks:
        assert [[c.coverage, c.selective_risk]] in draws
    # The bar of the certified bound starts at the point chosen.
    assert [[first["coverage"], first["risk"]], [first["coverage"], result.rule.bound]] in draws


def test_the_curve_is_of_the_risk_that_is_guaranteed():
    result = checks(method="conformal_risk_control", max_risk=0.05)
    display = DecisionRuleDisplay.from_checks(result)
    assert display.risk_name == "generalized_risk"
    data = display.frame().filter(kind="data")
    assert data["risk"].to_list() == [c.generalized_risk for c in result.checks]
    point = display.frame().filter(kind="calibration")["risk"][0]
    assert point == pytest.approx(result.rule.risk * result.rule.coverage)


def test_a_far_data_set_stands_at_the_edge_with_its_risk():
    wrong = ab.Predictions(confidence={"own": np.ones(50)}, loss=np.ones(50))
    display = DecisionRuleDisplay.from_checks(checks({"iid": made(9), "alien": wrong})).plot()
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "alien (at 1)" in names
    assert display.ax_.get_ylim()[1] < 0.7
    assert display.frame().filter(name="alien")["risk"][0] == 1


def test_what_few_samples_without_a_failure_leave_open_is_plotted_whole():
    few = ab.Predictions(confidence={"own": np.ones(12)}, loss=np.zeros(12))
    result = checks({"few": few}, known=False)
    (high,) = (check.selective_risk_interval.high for check in result.checks)
    assert 0.1 < high < 0.3, "above the target, but near enough to be shown"
    assert DecisionRuleDisplay.from_checks(result).plot().ax_.get_ylim()[1] > high


def test_the_excess_equals_that_of_the_checks_and_marks_tell_the_verdict():
    result = checks()
    display = RiskExcessDisplay.from_checks(result).plot()
    table = display.frame()
    assert table["excess"].to_list() == [c.excess for c in result.checks]
    assert table["excess_low"].to_list() == [c.excess_interval.low for c in result.checks]
    assert {"holds", "broken"} <= set(table["verdict"])
    marks = {
        tuple(line.get_xydata()[0]): line.get_marker()
        for line in display.ax_.get_lines()
        if line.get_marker() not in {"None", None} and len(line.get_xydata()) == 1
    }
    for y, c in enumerate(result.checks):
        assert marks[c.excess, y] == MARK_BY_VERDICT[c.verdict]["marker"]
    # Without color too: filled, crossed or hollow.
    assert (
        len({(m["marker"], m["markerfacecolor"] == "#ffffff") for m in MARK_BY_VERDICT.values()})
        == 3
    )


def test_without_labels_the_row_says_so():
    display = RiskExcessDisplay.from_checks(checks({"new": made(1).confidence["own"]})).plot()
    assert [t.get_text() for t in display.ax_.texts] == ["there are no labels"]
    assert math.isnan(display.frame()["excess"][0])


def test_neighbors_of_one_shift_are_joined():
    assert group_severities(["noise_1", "noise_2", "blur_1", "b", "c"]) == [[0, 1], [2], [3], [4]]
    assert group_severities(["v1.5", "v2.5", "12", "13"]) == [[0, 1], [2], [3]]
    assert group_severities(["a_1", "a.2", "a 3.5"]) == [[0, 1, 2]]
    assert group_severities([]) == []
    names = DecisionRuleDisplay.from_checks(checks()).plot().ax_.get_legend().get_texts()
    assert "noise_1 to noise_3" in [text.get_text() for text in names]


def test_families_of_long_names_are_found_at_once():
    # A regular expression took 5 s for 10,000 digits.
    start = time.perf_counter()
    assert group_severities(["1" * 100_000 + "x", "1." * 50_000, " " * 100_000 + "x"]) == [
        [0],
        [1],
        [2],
    ]
    assert time.perf_counter() - start < 1


def test_long_names_keep_what_differs():
    names = [f"{'x' * 60} hospital {i} {'y' * 60}" for i in range(12)]
    written = shorten_names(names)
    assert [re.search(r"\d+", w)[0] for w in written.values()] == [str(i) for i in range(12)]
    assert max(map(len, written.values())) <= 26
    same = ["a" * 40, "a" * 40 + "b"]
    assert len(set(shorten_names(same).values())) == 2
    assert shorten_names(["short", "names"]) == {"short": "short", "names": "names"}
    assert shorten_names([]) == {}


def test_files_are_the_same_each_time(tmp_path):
    result = checks()
    for kind in (DecisionRuleDisplay, RiskExcessDisplay):
        one = kind.from_checks(result).save(tmp_path / "a.svg").read_bytes()
        assert kind.from_checks(result).save(tmp_path / "b.svg").read_bytes() == one


@pytest.mark.parametrize("kind", [DecisionRuleDisplay, RiskExcessDisplay])
def test_anything_else_raises_an_error(kind):
    with pytest.raises(InputError, match="`checks` must be what `check_rule` returned; got dict"):
        kind.from_checks({})
