"""The pages of monitors and cascades: recent values, alarms, and the path of 1,000 samples."""

import math

import numpy as np
import pytest
from rich.console import Console

import abstain as ab
from abstain.monitoring.monitor import _window_means
from abstain.report import build_document, render
from abstain.report.subjects.monitor import monitor_figures


def simulate(n: int, seed: int, *, extra_risk: float = 0.0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1, n)
    probability = np.clip((1 - confidence) ** 1.3 + extra_risk, 0, 1)
    return confidence, (rng.random(n) < probability).astype(float)


def start_monitor() -> ab.monitoring.Monitor:
    confidence, loss = simulate(2000, 0)
    data = ab.Predictions(confidence={"own": confidence}, loss=loss)
    rule = ab.set_threshold(data, max_risk=0.1, delta=0.05)
    return ab.monitoring.start(rule, calibration=data)


def observe(monitor, n: int, seed: int, extra_risk: float = 0.0):
    confidence, loss = simulate(n, seed, extra_risk=extra_risk)
    ids = [f"{seed}-{i}" for i in range(n)]
    return monitor.update(ids, confidence).labels(ids, loss=loss)


def terminal(result) -> str:
    console = Console(width=80)
    with console.capture() as printed:
        console.print(render(build_document(result), "terminal"))
    return " ".join(printed.get().split())


def test_a_recent_risk_above_the_limit_without_an_alarm_is_explained():
    monitor = observe(observe(start_monitor(), 1500, 1), 160, 2, 0.12)
    row = monitor.rows()[-1]
    assert row["state"] == "quiet"
    assert row["recent"] > row["allowed_high"]
    assert row["is_recent_outside"]
    text = terminal(monitor)
    assert "No alarm" in text
    assert f"The recent risk of {100 * row['recent']:.1f}% is outside its limit of 10%" in text
    assert "recent value outside the limit" in text
    page = render(build_document(monitor), "html")
    # Only the coverage and the confidences are shown as good.
    assert page.count('<span class="result good">quiet</span>') == 2


def test_without_a_recent_excess_there_is_no_explanation():
    monitor = observe(start_monitor(), 1500, 1, -0.05)
    assert not monitor.rows()[-1]["is_recent_outside"]
    assert "The recent risk" not in terminal(monitor)


def test_alarms_are_marked_in_the_figures_and_explained_in_the_table():
    monitor = observe(observe(start_monitor(), 800, 1), 600, 2, 0.3)
    assert "risk" in {alarm.watch for alarm in monitor.alarms}
    positions = monitor.alarm_positions()
    assert len(positions) == len(monitor.alarms)
    point = next(p for p in monitor.points() if p["events"] == positions[0])
    assert point[f"{monitor.alarms[0].watch}_evidence"] >= 1
    figures = dict(monitor_figures(monitor))
    assert list(figures) == ["coverage", "risk", "evidence"]
    assert all(display.marks == tuple(positions) for display in figures.values())
    assert "recent window" in figures["risk"].names
    assert monitor.alarms[0].reason.split(":")[0] in terminal(monitor)


def test_windows_are_means_of_at_least_200_values():
    rng = np.random.default_rng(0)
    values = rng.random(1000)
    counts = np.arange(50, 1001, 50)
    totals = np.cumsum(values)[counts - 1]
    means = _window_means(counts.tolist(), totals.tolist())
    assert means[0] == pytest.approx(values[:50].mean())
    assert means[-1] == pytest.approx(values[800:].mean())
    after_reset = _window_means([100.0, 300.0, 50.0], [10.0, 90.0, 25.0])
    assert after_reset == pytest.approx([0.1, 0.4, 0.5])
    assert math.isnan(_window_means([0.0], [0.0])[0])


def make_stages(n: int, seed: int):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return {
        "small": (confidence, rng.random(n) > confidence),
        "large": (confidence, rng.random(n) > 1.5 * confidence),
    }


def test_the_path_of_1000_samples_adds_up():
    costs = {"small": 0.01, "large": 0.1, "person": 1.0, "error": 5.0}
    cascade = ab.set_cascade(make_stages(6000, 0), max_risk=0.1, costs=costs)
    checks = ab.check_cascade(cascade, {"later": make_stages(4000, 1)})
    (check,) = checks.checks
    path = checks.path(check)
    assert [stage.name for stage in path] == list(cascade.names)
    assert sum(stage.n_answered for stage in path) == pytest.approx(1000)
    assert path[-1].n_reached == pytest.approx(path[-1].n_answered)
    assert sum(stage.n_wrong for stage in path) == pytest.approx(1000 * check.risk)
    total = sum(stage.cost + stage.error_cost for stage in path)
    assert total == pytest.approx(1000 * check.load.cost)
    calibration = checks.path()
    assert [stage.n_answered for stage in calibration] == pytest.approx(
        [1000 * share for share in cascade.answered]
    )
    assert "Path of 1,000 samples, later" in terminal(checks)
    assert "Path of 1,000 samples, later" in render(build_document(checks), "html")
