"""A benchmark beside the published numbers: the right cells, ranks and words, in every format."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from bench.tests.runs.stored_runs import make_runs

from abstain.cli.main import run
from abstain.inference import kendall
from abstain_bench.pages.benchmark.methods import published_section, published_summary
from abstain_bench.published import table
from abstain_bench.results import results_of, with_published


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "runs"
    return results_of(make_runs(folder, task="cifar10", model={"name": "vgg13"}))


def of(results, **config):
    """The results as if another task or network had been configured."""
    facts = {**results.facts, "config": {**results.facts["config"], **config}}
    return replace(results, facts=facts)


@pytest.fixture(scope="module")
def beside(results):
    return with_published(results)


def cell(name, method, study, classifier="CNN"):
    (result,) = [
        r for r in table(name)
        if (r["task"], r["abstain_study"]) == ("cifar10", study)
        and (r["method"], r["classifier"]) == (method, classifier)
    ]  # fmt: skip
    return result["number"]


def test_numbers_equal_those_of_the_results_and_of_the_tables(results, beside):
    assert results.published == ()
    keys = {(n.metric, n.study, n.method) for n in beside.published}
    # The studies of both are these; of the new classes and sub-classes the papers have others.
    assert {study for _, study, _ in keys} == {"iid", "corruption"}
    assert {metric for metric, _, _ in keys} == {"augrc", "failure_auroc", "accuracy", "ece"}
    names = {
        "augrc": "augrc_table_3", "failure_auroc": "fd_shifts_table_9",
        "accuracy": "fd_shifts_table_8", "ece": "fd_shifts_table_10",
    }  # fmt: skip
    for number in beside.published:
        data = (("study", number.study),)
        estimates = results.comparisons[number.metric].estimates_of(number.metric, data)
        own = {e.method: e.value for e in estimates}
        assert number.value == own[number.method]
        assert number.published == cell(names[number.metric], number.method, number.study)
        assert number.ratio == pytest.approx(number.value / number.published)
        assert number.backbone == "vgg13"


def test_ranks_are_among_the_common_methods_in_the_direction_of_the_metric(beside):
    for metric, better in (("augrc", min), ("failure_auroc", max)):
        for study in ("iid", "corruption"):
            own = [n for n in beside.published if (n.metric, n.study) == (metric, study)]
            assert {n.common for n in own} == {3}
            best = better(own, key=lambda n: n.value)
            assert best.rank == 1
            there = better(n.published for n in own)
            assert {n.method for n in own if n.published_rank == 1} == {
                n.method for n in own if n.published == there
            }
            (order,) = [
                o for o in beside.published_orders if (o.metric, o.study) == (metric, study)
            ]
            assert order.methods == 3
            assert order.best == (best.method,)
            expected = kendall([n.value for n in own], [n.published for n in own])
            np.testing.assert_equal(order.tau, expected)


def test_equal_printed_numbers_share_the_best_rank(results):
    result = with_published(results)
    accuracy = [n for n in result.published if (n.metric, n.study) == ("accuracy", "iid")]
    assert len({n.published for n in accuracy if n.method in {"msr", "pe"}}) == 1
    assert {n.published_rank for n in accuracy if n.method in {"msr", "pe"}} == {1}


def test_a_transformer_is_beside_transformers(results):
    result = with_published(of(results, model={"name": "vit-b16"}))
    assert {n.classifier for n in result.published} == {"ViT"}
    # Traub et al. have none of them.
    assert "augrc" not in {n.metric for n in result.published}
    auroc = [n for n in result.published if (n.metric, n.method) == ("failure_auroc", "msr")]
    assert auroc[0].published == cell("fd_shifts_table_9", "msr", "iid", "ViT")


def test_a_score_that_papers_call_otherwise_is_beside_their_number(tmp_path):
    """TEMP-MLS is the softmax response with a temperature."""
    methods = ("msr", "temp_msr", "pe")
    results = with_published(
        results_of(make_runs(tmp_path, task="cifar10", methods=methods), metrics=["augrc"])
    )
    own = {n.method: n.published for n in results.published if n.study == "iid"}
    assert own["temp_msr"] == cell("augrc_table_3", "temp_mls", "iid")
    assert len(own) == 3


def told(results):
    return [f.message for f in with_published(results).findings if "published" in f.kind]


def test_what_differs_is_said(results):
    (said,) = told(results)
    assert "The network is vgg13 in both, trained with other settings, splits" in said
    (said,) = told(of(results, model={"name": "small-conv"}))
    assert said.startswith(
        "Networks are vgg13 there and small-conv here, trained with other settings"
    )
    assert "compare orders and magnitudes, not exact values" in said


def test_where_nothing_is_published_that_is_said(results):
    (said,) = told(of(results, task="glyphs"))
    assert "No paper prints numbers of the task 'glyphs'" in said
    assert "camelyon17, cifar10, cifar100" in said
    (said,) = told(of(results, task=""))
    assert "do not say of which task" in said
    # The papers have only the held-out classes of a rotation, and these runs have none.
    (said,) = told(of(results, task="svhn-open-2"))
    assert "numbers of the task 'svhn-open-2', but none of these" in said
    empty = with_published(of(results, task="glyphs"))
    assert (empty.published, empty.published_orders) == ((), ())


def test_a_rotation_is_beside_the_pooled_ones(results):
    studies = tuple(
        replace(s, name="held-out-classes") if s.name == "digits" else s for s in results.studies
    )
    comparisons = {}
    for metric, comparison in results.comparisons.items():

        def named(data):
            return tuple((k, "held-out-classes" if v == "digits" else v) for k, v in data)

        comparisons[metric] = replace(
            comparison,
            data=tuple(map(named, comparison.data)),
            estimates=tuple(replace(e, data=named(e.data)) for e in comparison.estimates),
        )
    changed = replace(of(results, task="svhn-open-2"), studies=studies, comparisons=comparisons)
    result = with_published(changed)
    assert {n.study for n in result.published} == {"held-out-classes"}
    text = " ".join(told(changed))
    assert "of 5 rotations together; these runs are of 1." in text
    every = ", ".join(f"svhn-open-{k}" for k in range(1, 6))
    assert with_published(of(changed, task=every)).published == result.published
    assert "rotations together" not in " ".join(told(of(changed, task=every)))


def test_doubtful_cells_are_told(results):
    comparisons = {}
    for metric, comparison in results.comparisons.items():

        def named(data):
            return tuple((k, "tiny-imagenet" if v == "digits" else v) for k, v in data)

        comparisons[metric] = replace(
            comparison,
            data=tuple(map(named, comparison.data)),
            estimates=tuple(replace(e, data=named(e.data)) for e in comparison.estimates),
        )
    changed = replace(of(results, task="svhn"), comparisons=comparisons)
    text = " ".join(told(changed))
    assert "Published numbers of tiny-imagenet are doubtful: The columns printed c10" in text


# ---------------------------------------------------------------------------------- formats
def test_nothing_is_added_where_it_is_not_requested(results, beside):
    assert list(published_section(results)) == list(published_summary(results)) == []
    (section,) = published_section(beside)
    assert section.nav_title == "Published"


def test_the_command_prints_them_and_leaves_files(tmp_path, capsys):
    make_runs(tmp_path / "runs", seeds=(0,), task="cifar10", model={"name": "vgg13"})
    arguments = [
        "benchmark",
        "report",
        str(tmp_path / "runs"),
        "--metrics",
        "augrc",
        "failure_auroc",
    ]
    tables = tmp_path / "runs" / "report" / "tables"
    assert run([*arguments, "--published"]) == 0
    text = capsys.readouterr().out.replace("\u00a0", " ")
    assert "Order of the methods: this run and published" in text
    assert "AUGRC × 1000 ↓: this run and published" in text
    assert "compare orders and magnitudes" in " ".join(text.split())
    frame = pl.read_csv(tables / "published.csv")
    assert frame.height == 2 * 2 * 3
    assert {"value", "published", "ratio", "rank", "published_rank", "source"} <= {*frame.columns}
    assert pl.read_parquet(tables / "published-orders.parquet").height == 4
    page = (tables.parent / "pages" / "methods.html").read_text(encoding="utf-8")
    assert "Comparison with published numbers" in page
