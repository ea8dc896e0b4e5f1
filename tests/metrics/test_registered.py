"""A metric of the user's, made of the parts of another: all that is known of that one is its own."""

import importlib.util
import inspect
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.docs.blocks import ROOT
from tests.properties import test_catalogue, test_influence

import abstain as ab
from abstain import streaming
from abstain.metrics import (
    METRICS,
    Metric,
    metric_bootstrap,
    metric_difference,
    metric_interval,
    resampling,
)
from abstain.metrics.entry import DisplayOptions, Identity, Measurement
from abstain.report import html_report, latex_table, terminal_table

TITLES = {"aurc_plugin": "area of ours", "augrc": "silence of ours"}


def from_its_parts(known: Metric) -> Metric:
    """Return a new entry with the fields that the entry of the other states in its family's file."""
    return Metric(
        Identity(
            name=f"my_{known.name}",
            title=TITLES[known.name],
            family=known.identity.family,
            lower_is_better=known.lower_is_better,
            meaning=known.identity.meaning,
            source=known.identity.source,
            function=known.identity.function,
        ),
        Measurement(
            compute=known.compute,
            high=known.measurement.high,
            averages_ties=known.measurement.averages_ties,
            duplication=known.measurement.duplication,
            rank_weight=known.measurement.rank_weight,
            influence=known.measurement.influence,
            heavy_tailed=known.measurement.heavy_tailed,
            extremes=known.measurement.extremes,
            resampled=known.measurement.resampled,
            binned=known.measurement.binned,
        ),
        DisplayOptions(per_thousand=known.display.per_thousand),
    )


def with_identity(known: Metric, **changes: str) -> Metric:
    return replace(known, identity=replace(known.identity, **changes))


def renamed(known: Metric) -> Metric:
    return with_identity(known, name=f"my_{known.name}", title=TITLES[known.name])


@pytest.fixture(params=[renamed, from_its_parts])
def made(request):
    return request.param


@pytest.fixture(params=TITLES)
def pair(request, made):
    """Register a metric made of a known one; return both."""
    known = METRICS[request.param]
    mine = METRICS.add(made(known))
    yield mine, known
    del METRICS._entries[mine.name]


@pytest.fixture
def data():
    rng = np.random.default_rng(8)
    confidence = np.ceil(rng.random(400) * 50) / 50
    loss = (rng.random(400) < 0.3 * (1.1 - confidence)).astype(float)
    return confidence, loss


def test_it_has_the_same_intervals(pair, data):
    confidence, loss = data
    results = [metric_interval(confidence, loss, metric=m.name) for m in pair]
    assert results[0] == results[1]
    assert np.isfinite(results[0].low)
    # Without failures too, where there is no influence function.
    bare = [metric_interval(confidence, 0 * loss, metric=m.name) for m in pair]
    # As text: what is undefined is not equal to itself.
    assert repr(bare[0]) == repr(bare[1])
    assert bare[0].high > 0
    apart = [metric_difference(confidence, np.flip(confidence), loss, metric=m.name) for m in pair]
    assert repr(apart[0]) == repr(apart[1])


def test_it_is_resampled_as_fast(pair, data, monkeypatch):
    def one_at_a_time(*_: object) -> None:
        pytest.fail("every resample was computed by itself")

    monkeypatch.setattr(resampling, "_replicates_by_counts", one_at_a_time)
    results = [metric_bootstrap(*data, metric=m.name, resamples=20, rng=1) for m in pair]
    assert np.array_equal(results[0].replicates, results[1].replicates)


def test_its_stream_has_the_same_limits(pair, data):
    state = streaming.update(streaming.init(bins=256), *data)
    mine, known = (streaming.compute(state, m.name) for m in pair)
    assert mine == known


def test_what_samples_add_is_known(pair, data):
    mine, known = (ab.sample_contributions(*data, metric=m.name) for m in pair)
    assert np.array_equal(mine, known)


def test_it_has_its_place_on_every_page(pair, data):
    mine, _ = pair
    confidence, loss = data
    evaluation = ab.evaluate(
        ab.Predictions(loss=loss, confidence={"score": confidence}), metrics=[mine.name]
    )
    title = mine.title[0].upper() + mine.title[1:]
    thousandfold = f"{1000 * evaluation.value(mine.name):.4g}"
    page = html_report(evaluation)
    assert title in page
    assert repr(evaluation.value(mine.name)) in page
    latex = latex_table(evaluation, times_1000=True)
    assert rf"{title} $\times 10^3$" in latex
    assert thousandfold in latex
    shown = StringIO()
    Console(file=shown, width=100).print(terminal_table(evaluation, full=True))
    assert title in shown.getvalue()


def test_the_docs_have_a_row_of_it(pair, monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    mine, known = pair
    (tmp_path / "metrics.md").write_text(f"{page}\n### Ours: `{mine.name}`\n", encoding="utf-8")
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    rows = generate.metrics_table().splitlines()
    assert rows[-1].startswith(f"| [`{mine.name}`](#ours-{mine.name})")
    assert rows[-1].split(" | ", 1)[1] == next(
        row.split(" | ", 1)[1] for row in rows if row.startswith(f"| [`{known.name}`]")
    )


PROPERTY_TESTS = [
    test
    for name, test in vars(test_catalogue).items()
    if name.startswith("test_") and "metric" not in inspect.signature(test).parameters
]


@pytest.mark.parametrize("property_test", PROPERTY_TESTS, ids=lambda test: test.__name__)
def test_it_passes_the_property_tests(pair, property_test, monkeypatch):
    monkeypatch.setattr(test_catalogue, "ALL", [pair[0]])
    property_test()


def test_its_influence_is_tested(pair):
    mine, _ = pair
    test_catalogue.test_what_is_declared_reads_well(mine)
    test_influence.test_a_metric_has_an_influence_or_a_reason(mine)
    test_influence.test_unit_weights_and_the_scale_of_weights_change_nothing(mine)
    for ties in (False, True):
        test_influence.test_the_weighted_mean_is_zero_and_samples_without_weight_have_no_influence(
            mine, ties, weights=True
        )


def test_what_lacks_a_part_says_so(data):
    known = METRICS["augrc"]
    measurement = replace(known.measurement, influence=None, binned=None)
    bare = METRICS.add(Metric(with_identity(known, name="bare").identity, measurement))
    try:
        assert "no influence function is available" in metric_interval(*data, metric="bare").note
        with pytest.raises(ab.errors.InputError, match="must have limits in bounded memory"):
            streaming.compute(streaming.update(streaming.init(), *data), "bare")
    finally:
        del METRICS._entries[bare.name]


@pytest.mark.parametrize("name", TITLES)
def test_a_name_alone_makes_it_another(name):
    mine = METRICS.add(with_identity(METRICS[name], name=f"my_{name}"))
    try:
        rng = np.random.default_rng(0)
        samples = ab.Predictions(confidence=rng.random(60), loss=rng.random(60) < 0.3)
        evaluation = ab.evaluate(samples, metrics=[name, mine.name])
        assert [result.metric.name for result in evaluation.results] == [name, mine.name]
        assert evaluation.value(mine.name) == evaluation.value(name)
        assert f"<code>{mine.name}</code>" in html_report(evaluation)
        two = ab.Predictions(
            confidence={"a": rng.random(60), "b": rng.random(60)}, loss=rng.random(60) < 0.3
        )
        pairs = ab.compare(two, metrics=[name, mine.name]).pairs
        assert {pair.metric for pair in pairs} == {name, mine.name}
    finally:
        del METRICS._entries[mine.name]


def test_the_fields_of_earlier_versions_are_rejected_with_the_names_of_the_parts():
    with pytest.raises(ab.errors.InputError, match=r"three parts .*; move compute, name into one"):
        Metric(name="mine", compute=METRICS["augrc"].compute)
