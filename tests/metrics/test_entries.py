"""What the entries say of themselves for those who show them."""

import pytest

from abstain.metrics import METRICS, metric_named

#: What papers print times 1000: areas that are risks, and what is left of them.
PER_THOUSAND = {
    "augrc",
    "excess_augrc",
    "augrc_ranking",
    "augrc_classifier",
    "augrc_ba",
    "aurc",
    "aurc_plugin",
    "aurc_log",
    "e_aurc",
    "achievable_aurc",
    "aurc_ba",
    "scod_aurc@0.5cost",
    "scod_augrc@0.5cost",
}


def test_exactly_the_areas_that_are_risks_are_printed_per_thousand() -> None:
    assert {name for name, metric in METRICS.items() if metric.display.per_thousand} == PER_THOUSAND
    assert not METRICS["normalized_aurc"].display.per_thousand


@pytest.mark.parametrize("name", ["partial_aurc@50-80cov", "partial_augrc@0-20cov"])
def test_areas_made_by_name_are_printed_per_thousand(name: str) -> None:
    assert metric_named(name).display.per_thousand


@pytest.mark.parametrize("name", ["selective_risk@70cov", "coverage@3risk", "cwsa@0.7"])
def test_other_metrics_made_by_name_are_printed_as_they_are(name: str) -> None:
    assert not metric_named(name).display.per_thousand


def test_a_reader_sees_eight_numbers_first() -> None:
    first = [m for m in METRICS.values() if m.display.headline is not None]
    assert [m.name for m in sorted(first, key=lambda m: m.display.headline)] == [
        "accuracy",
        "augrc",
        "aurc",
        "e_aurc",
        "failure_auroc",
        "coverage@5risk",
        "selective_risk@80cov",
        "ece",
    ]
    assert sorted(m.display.headline for m in first) == list(range(1, 9))


def test_column_heads_carry_the_number_in_the_name() -> None:
    risk, coverage = metric_named("selective_risk@72.5cov"), metric_named("coverage@2risk")
    assert (risk.display.short_title, risk.display.narrow_title) == (
        "Risk at 72.5% coverage",
        "Risk at 72.5% cov.",
    )
    assert (coverage.display.short_title, coverage.display.narrow_title) == ("", "Cov. at 2% risk")
    assert METRICS["accuracy"].display.narrow_title == "Acc."
