"""Tests of `benchmarks/reliability.py`, with a few draws of each simulation."""

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
def page_tables(reliability) -> str:
    text = reliability.PAGE.read_text("utf-8")
    return text.split(reliability.START)[1].split(reliability.END)[0]


def test_page_has_a_row_for_every_metric_and_test(reliability, page_tables: str) -> None:
    intervals, differences, other_tests, blocks = page_tables.split("\n### ")[1:]
    for metric in METRICS.values():
        assert f"\n| {reliability.metric_label(metric)} |" in intervals
        assert f"\n| {reliability.metric_label(metric)} |" in differences
    for test in ("bootstrap", "permutation", "non-inferior at the margin"):
        assert f"\n| {test}, `augrc` |" in other_tests
    for test in ("Wilcoxon, two-sided", "Friedman, 3 methods", "Nemenyi, any of 5 methods"):
        assert f"\n| {test}, ties |" in blocks
    for design in reliability.DESIGNS:
        heading = f"{design.n:,}, {100 * design.failure_rate:.0f}%, {design.score_kind}"
        assert page_tables.count(heading) == 3


def test_true_values_equal_those_of_the_population(reliability) -> None:
    values = reliability.true_values(0.05, "smooth", points=50_000)
    population = simulate.two_gaussians(0.05, 1.6)
    assert values["augrc"] == pytest.approx(population.augrc, rel=1e-5)
    assert values["aurc_plugin"] == pytest.approx(population.aurc(), rel=1e-4)
    risk = population.selective_risk(0.8)
    assert values["selective_risk@80cov"] == pytest.approx(risk, rel=1e-3)
    assert values["accuracy"] == pytest.approx(0.95, rel=1e-6)


def test_report_has_the_rows_of_the_catalogue(reliability, monkeypatch) -> None:
    monkeypatch.setattr(reliability, "BLOCK_COUNTS", (4,))
    true_values = reliability.true_values
    monkeypatch.setattr(reliability, "true_values", lambda *args: true_values(*args, points=2000))
    designs = (reliability.Design(200, 0.3, "tied"),)
    outcomes = reliability.run_simulations(4, processes=1, designs=designs)
    lines = list(reliability.report(outcomes, 4))
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == 2 * len(METRICS) + len(reliability.TESTED_METRICS)
    for metric in METRICS.values():
        assert len(outcomes[designs[0]][f"interval {metric.name}"]) >= 2
    page = f"before\n{reliability.START}\nold\n{reliability.END}\nafter"
    new_page = reliability.replace_tables(page, lines)
    assert new_page.startswith("before\n")
    assert new_page.endswith("\nafter")
    assert "\nold\n" not in new_page
    assert reliability.replace_tables(new_page, lines) == new_page


def test_percentages_ignore_draws_without_an_interval(reliability) -> None:
    assert reliability.format_percentage([1.0, 1.0, 0.0, 1.0]) == "75.0"
    assert reliability.format_percentage([1.0, np.nan]) == "100.0 (50)"
    assert reliability.format_percentage([np.nan]) == "-"
    assert reliability.format_percentage(None) == "-"
    assert reliability.is_covered(0.0, 1.0, 1.0) == 1.0
    assert np.isnan(reliability.is_covered(np.nan, np.nan, 1.0))
