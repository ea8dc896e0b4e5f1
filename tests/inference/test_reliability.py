"""The tables of every metric and test: benchmarks/reliability.py, a few draws of it."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from abstain import simulate
from abstain.metrics import METRICS


@pytest.fixture(scope="module")
def reliability(root: Path):
    spec = importlib.util.spec_from_file_location("reliability", root / "benchmarks/reliability.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def page(reliability) -> str:
    text = reliability.PAGE.read_text("utf-8")
    return text.split(reliability.START)[1].split(reliability.END)[0]


def test_the_page_has_a_row_for_every_metric_and_test(reliability, page: str) -> None:
    intervals, differences, others, blocks = page.split("\n### ")[1:]
    for metric in METRICS.values():
        assert f"\n| {reliability.form(metric)} |" in intervals
        assert f"\n| {reliability.form(metric)} |" in differences
    for test in ("bootstrap", "permutation", "non-inferior at the margin"):
        assert f"\n| {test}, `augrc` |" in others
    for test in ("Wilcoxon, two-sided", "Friedman, 3 methods", "Nemenyi, any of 5 methods"):
        assert f"\n| {test}, ties |" in blocks
    for design in reliability.DESIGNS:
        head = f"{design.n:,}, {100 * design.rate:.0f}%, {design.kind}"
        assert page.count(head) == 3


def test_the_truths_are_those_of_the_populations(reliability) -> None:
    found = reliability.truths(0.05, "smooth", points=50_000)
    known = simulate.two_gaussians(0.05, 1.6)
    assert found["augrc"] == pytest.approx(known.augrc, rel=1e-5)
    assert found["aurc_plugin"] == pytest.approx(known.aurc(), rel=1e-4)
    at = known.selective_risk(0.8)
    assert found["selective_risk@80cov"] == pytest.approx(at, rel=1e-3)
    assert found["accuracy"] == pytest.approx(0.95, rel=1e-6)


def test_a_few_draws_of_every_part(reliability, monkeypatch) -> None:
    """The command runs, and its rows are those of the catalogue."""
    monkeypatch.setattr(reliability, "BLOCKS", (4,))
    exact = reliability.truths
    monkeypatch.setattr(reliability, "truths", lambda *a: exact(*a, points=2000))
    designs = (reliability.Design(200, 0.3, "tied"),)
    found = reliability.measure(4, processes=1, designs=designs)
    lines = list(reliability.report(found, 4))
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == 2 * len(METRICS) + len(reliability.TESTED)
    for metric in METRICS.values():
        assert len(found[designs[0]][f"interval {metric.name}"]) >= 2
    page = f"before\n{reliability.START}\nold\n{reliability.END}\nafter"
    new = reliability.written(page, lines)
    assert new.startswith("before\n")
    assert new.endswith("\nafter")
    assert "\nold\n" not in new
    assert reliability.written(new, lines) == new


def test_what_is_shown(reliability) -> None:
    assert reliability.shown([1.0, 1.0, 0.0, 1.0]) == "75.0"
    assert reliability.shown([1.0, np.nan]) == "100.0 (50)"
    assert reliability.shown([np.nan]) == reliability.shown(None) == "-"
    assert reliability.held(0.0, 1.0, 1.0) == 1.0
    assert np.isnan(reliability.held(np.nan, np.nan, 1.0))
