"""What the reports say in words, and which result they call the best."""

from dataclasses import replace

import numpy as np
import pytest

import abstain as ab
from abstain.confidence import SCORES
from abstain.evaluation import Evaluation, Finding
from abstain.predictions import LOSSES
from abstain.report import html_report
from abstain.report.parts import parts_of
from abstain.report.pivot import pivot
from abstain.report.summary import Origin, summarize
from abstain.report.verdict import verdict
from abstain.report.words import number, tie_range

ORIGIN = Origin("A title", "file.csv")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.000"),
        (0.99999, "1.000"),
        (0.123456, "0.1235"),
        (0.00123456, "0.001235"),
        (-0.5, "-0.5000"),
        (12345.6, "12346"),
        (float("inf"), "inf"),
        (float("nan"), "undefined"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_best_is_the_best(plain):
    found = pivot(plain)
    for result in plain:
        rivals = [r.value for r in plain if r.metric == result.metric]
        marked = (result.split, result.score, result.metric) in found.best
        if marked:
            extreme = min(rivals) if result.lower_is_better else max(rivals)
            assert result.value == pytest.approx(extreme, rel=1e-11)
            assert len(set(rivals)) > 1


def test_equal_scores_have_no_best(plain):
    assert not pivot(plain).leaders((), "accuracy")


def test_verdict_takes_its_numbers_from_the_results(plain):
    sentences = " ".join(verdict(pivot(plain), zero_one=True))
    leader = pivot(plain).leaders((), "augrc")[0]
    assert f"“{leader}”" in sentences
    assert number(plain.value("augrc", score=leader)) in sentences
    assert number(plain.value("accuracy", score=leader)) in sentences
    assert "80 %" in sentences


def test_verdict_gives_the_interval_of_the_leader(plain):
    sentences = " ".join(verdict(pivot(plain), zero_one=True))
    leader = pivot(plain).leaders((), "augrc")[0]
    found = next(r for r in plain if r.metric == "augrc" and r.score == leader)
    said = f"95 % interval {number(found.low)} to {number(found.high)})"
    assert said in sentences
    assert "more than chance, abstain compare tells" in sentences


def test_verdict_of_one_score_compares_nothing(graded):
    sentences = " ".join(verdict(pivot(graded), zero_one=False))
    assert "95 % interval" in sentences
    assert "compare" not in sentences


def test_verdict_without_an_interval(plain):
    bare = tuple(replace(r, low=float("nan"), high=float("nan")) for r in plain)
    sentences = " ".join(verdict(pivot(replace(plain, results=bare)), zero_one=True))
    assert "interval" not in sentences
    assert "nan" not in sentences


def test_verdict_of_a_graded_loss_speaks_of_loss(graded):
    summary = summarize(graded, ORIGIN)
    assert not summary["zero_one"]
    assert "wrong" not in " ".join(summary["verdict"])


def test_whether_answers_are_right_or_wrong_is_read_not_guessed(plain):
    only = tuple(r for r in plain if r.metric == "augrc")
    assert summarize(replace(plain, results=only), ORIGIN)["zero_one"]
    # By its name, or by a metric that could be computed, this would pass for a 0/1 loss.
    assert not summarize(replace(plain, binary=False), ORIGIN)["zero_one"]


def test_an_own_column_is_not_the_score_of_its_name():
    p = ab.Predictions(
        prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence={"msr": [0.9, 0.8, 0.7, 0.6]}
    )
    assert summarize(ab.evaluate(p), ORIGIN)["score_glossary"] == [
        {
            "name": "msr",
            "title": "msr",
            "meaning": "A confidence given with the data; higher means more trusted.",
            "source": [],
        }
    ]
    logits = ab.Predictions(logits=np.eye(3), labels=[0, 1, 1])
    built_in = summarize(ab.evaluate(logits, scores=["msr"]), ORIGIN)["score_glossary"]
    assert built_in[0]["title"] == SCORES["msr"].title


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "own"])
def test_a_loss_has_the_title_of_the_catalogue(name, plain):
    facts = summarize(replace(plain, loss=name), ORIGIN)["facts"]
    said = next(fact["value"] for fact in facts if fact["label"] == "Loss")
    assert said == f"{LOSSES[name].title}: {LOSSES[name].meaning}"


def test_verdict_without_failures(faultless):
    assert "none is wrong" in " ".join(summarize(faultless, ORIGIN)["verdict"])


def test_verdict_of_many_splits_names_the_extremes(large):
    sentences = " ".join(summarize(large, ORIGIN)["verdict"])
    assert "Across the 20 splits" in sentences
    assert "shift = s19" in sentences


def test_nothing_to_report():
    summary = summarize(Evaluation((), (), (), "zero_one"), ORIGIN)
    assert summary["verdict"] == []
    assert summary["numbers"] == []


def test_findings_are_grouped_and_warnings_come_first(plain):
    findings = (
        Finding("ties", "note", (), "first", "one"),
        Finding("source", "note", (), "", "read"),
        Finding("source", "note", (), "", "dropped"),
        Finding("ties", "note", (), "second", "two"),
        Finding("saturation", "warning", (), "first", "three"),
    )
    said = summarize(replace(plain, findings=findings), ORIGIN)["findings"]
    assert [s["message"] for s in said] == ["three", "one", "read", "dropped"]
    assert [s["message"] for s in said[1]["more"]] == ["two"]


def test_unknown_metric_is_printed_by_its_name(plain):
    odd = tuple(replace(r, metric="no such metric") for r in plain.results[:1])
    summary = summarize(replace(plain, results=odd), ORIGIN)
    assert summary["numbers"][0]["rows"][0]["title"] == "no such metric"


def test_tie_range_is_shown_only_when_the_digits_differ(plain):
    result = plain.results[0]
    assert tie_range(replace(result, tie_low=0.1, tie_high=0.1000001)) == ""
    assert tie_range(replace(result, tie_low=0.1, tie_high=0.2)) == "0.1000 to 0.2000"
    assert tie_range(replace(result, tie_low=float("nan"))) == ""


def test_every_number_has_a_sentence(plain, faultless, graded):
    for evaluation in (plain, faultless, graded):
        for group in summarize(evaluation, ORIGIN)["numbers"]:
            assert all(row["meaning"].endswith(".") for row in group["rows"])
            assert not [row for row in group["rows"] if "{" in row["meaning"]]


def test_parts_of_classes_and_groups_are_listed() -> None:
    p = ab.Predictions(
        prediction=[0, 0, 1, 1],
        labels=[1, 0, 1, 0],
        confidence=[0.9, 0.2, 0.8, 0.95],
        group=["x<b>", "x<b>", "y", "y"],
    )
    evaluation = ab.evaluate(p)
    tables = parts_of(evaluation.cases[0])
    assert [table["kind"] for table in tables] == ["class", "group"]
    assert {row["name"] for row in tables[1]["rows"]} == {"x<b>", "y"}
    page = html_report(evaluation)
    assert "x&lt;b&gt;" in page
    assert "x<b>" not in page
