"""What the reports say in words, and which result they call the best."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from tests.report.conftest import predictions

import abstain as ab
from abstain.confidence import SCORES
from abstain.evaluation import Evaluation, Note
from abstain.evaluation.records import NOT_REQUESTED
from abstain.plots.formatting import format_p_value
from abstain.predictions import LOSSES
from abstain.report import html_report, terminal_table
from abstain.report.document import (
    Collapsible,
    Document,
    Glossary,
    ReportOptions,
    Section,
    Table,
    plain_text,
    select_blocks,
)
from abstain.report.formatting import format_number
from abstain.report.formatting import headline_metrics as words_headline
from abstain.report.render import grid
from abstain.report.subjects.evaluation import lookup
from abstain.report.subjects.evaluation.document import evaluation_document
from abstain.report.subjects.evaluation.first_screen import evaluation_title, score_table_metrics
from abstain.report.subjects.evaluation.lookup import ResultLookup
from abstain.report.subjects.evaluation.samples import contribution_tables
from abstain.report.subjects.evaluation.tables import metrics_table
from abstain.report.subjects.evaluation.verdict import evaluation_verdict


def said(evaluation: Evaluation) -> Document:
    return evaluation_document(evaluation, ReportOptions("A title", "file.csv"))


def section(evaluation: Evaluation, anchor: str) -> Section:
    def within(blocks):
        for block in blocks:
            if isinstance(block, Section | Collapsible):
                yield block
                yield from within(block.blocks)

    return next(
        s
        for s in within(select_blocks(said(evaluation).blocks(), {"detail", "interactive"}))
        if s.anchor == anchor
    )


def explained(evaluation: Evaluation) -> Table:
    """The table of every number of the page."""
    return metrics_table(ResultLookup(evaluation))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.000"),
        (0.99999, "1.000"),
        (0.123456, "0.1235"),
        (0.00123456, "0.001235"),
        (-0.5, "-0.5000"),
        (12345.6, "12,346"),
        (float("inf"), "inf"),
        (float("nan"), "undefined"),
    ],
)
def test_number(value, text):
    assert format_number(value) == text


def test_best_is_the_best(plain):
    found = ResultLookup(plain)
    for result in plain:
        rivals = [r.value for r in plain if r.metric == result.metric]
        marked = (result.split, result.score, result.metric.name) in found.best_keys
        if marked:
            extreme = min(rivals) if result.metric.lower_is_better else max(rivals)
            assert result.value == pytest.approx(extreme, rel=1e-11)
            assert len(set(rivals)) > 1


def test_equal_scores_have_no_best(plain):
    assert not ResultLookup(plain).best_scores((), "accuracy")


def test_answer_takes_its_numbers_from_the_results(plain):
    sentences = " ".join(evaluation_verdict(ResultLookup(plain)))
    leader = ResultLookup(plain).best_scores((), "augrc")[0]
    assert sentences.startswith(leader)
    assert format_number(plain.value("augrc", score=leader)) in sentences
    assert "80%" in sentences


def test_answer_agrees_with_the_tests(plain):
    sentences = " ".join(evaluation_verdict(ResultLookup(plain)))
    (pair,) = plain.tests.differences
    (compared,) = ab.compare(predictions_of(plain)).pairs
    assert pair.adjusted == pytest.approx(compared.adjusted)
    relation = "significantly worse" if pair.is_significant else "not significantly different"
    assert relation in sentences
    assert format_p_value(pair.adjusted) in sentences


def predictions_of(evaluation):
    """The predictions of the evaluation `plain`."""
    assert [case.score for case in evaluation.curves] == ["first", "second"]
    return predictions(np.random.default_rng(0), 300, ["first", "second"])


def models(n=400):
    """Three models on the same samples: two that hardly differ, and one that is worse."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, n)
    signal = np.eye(3)[labels] + rng.normal(size=(n, 3))
    noise = {"a": 0.05, "b": 0.06, "c": 3.0}
    return {
        (("model", name),): ab.Predictions(
            logits=2 * (signal + size * rng.normal(size=(n, 3))), labels=labels
        )
        for name, size in noise.items()
    }


def test_answer_names_the_best_model_and_score_and_whether_a_test_supports_it():
    evaluation = ab.evaluate(models(), scores=["msr", "pe"])
    document = said(evaluation)
    assert evaluation_title(ResultLookup(evaluation)) == "Evaluation: 3 models, 2 confidence scores"
    first, second, *_ = document.answer
    best = ResultLookup(evaluation).best
    assert first.startswith(f"{dict(best.split)['model']} with score {best.score} has the lowest")
    assert "c is significantly worse (adjusted p < 0.001)" in second.replace("\u00a0", " ")
    assert "not significantly different" in second
    table = next(b for b in walk(document.overview()) if getattr(b, "anchor", "") == "best-scores")
    assert [row.cells[0].text for row in table.rows][-1] == "c"
    marks = [row.cells[2].mark for row in table.rows]
    assert marks == ["best", "best", ""]


def walk(blocks):
    for block in blocks:
        yield block
        yield from walk(getattr(block, "blocks", ()))


def test_splits_of_other_samples_are_not_tested(large):
    sentences = " ".join(said(large).answer)
    assert "do not all contain the same samples, so no paired test compares them" in sentences
    table = next(b for b in walk(said(large).overview()) if isinstance(b, Table))
    assert "Adjusted p-value" not in str(table.columns)


def test_scores_with_equal_rankings_share_a_row():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(300, 2))
    p = ab.Predictions(logits=logits, labels=rng.integers(0, 2, 300))
    evaluation = ab.evaluate(p, scores=["msr", "margin", "gini", "energy"])
    assert evaluation.equal_rankings == (("msr", "margin", "gini"),)
    table = next(b for b in walk(said(evaluation).overview()) if isinstance(b, Table))
    assert {row.cells[0].text for row in table.rows} == {"msr, margin, gini", "energy"}
    # Only one of them is tested.
    assert len(evaluation.tests.differences) == 1


def test_key_numbers_are_counts_of_the_data(plain):
    numbers = {number.label: number for number in said(plain).key_numbers}
    n_right = round(plain.value("accuracy", score="first") * 300)
    assert numbers["Accuracy"].detail.startswith(f"{n_right} of 300")
    wrong = numbers["Wrong answers at 80% coverage"].detail
    n_wrong, n_accepted = map(int, re.match(r"(\d+) of (\d+)", wrong).groups())
    best = ResultLookup(plain).best.score
    value = plain.value("selective_risk@80cov", score=best)
    assert n_wrong / n_accepted == pytest.approx(value)


def test_terminal_has_accuracy_first_and_fits_80_columns(plain):
    out = Console(width=80)
    with out.capture() as printed:
        out.print(terminal_table(plain))
    lines = printed.get().splitlines()
    header = next(line for line in lines if "AUGRC" in line and "Score" in line)
    assert header.index("Acc.") < header.index("AUGRC")
    assert max(map(len, lines)) <= 80


def test_a_threshold_of_log_odds_is_shown_as_a_probability():
    rng = np.random.default_rng(3)
    p = ab.Predictions(logits=3 * rng.normal(size=(200, 4)), labels=rng.integers(0, 4, 200))
    (case,) = ab.evaluate(p, scores=["msr"]).curves
    odds = case.selective.thresholds
    assert np.allclose(case.probabilities, 1 / (1 + np.exp(-odds)))
    sample = case.overconfident[0]
    assert sample.probability == pytest.approx(1 / (1 + np.exp(-sample.confidence)))
    point = case.point_at(0.5)
    assert point.accepted == 100
    assert point.failures == pytest.approx(point.risk * 100)
    page = html_report(ab.evaluate(p, scores=["msr"]))
    assert "Probability at least" in page


def test_refusals_are_counted():
    table = {"correct": [1, 0, 1, 0], "confidence": [0.9, 0.8, None, 0.7]}
    source = ab.read_predictions(table, missing="reject")
    evaluation = ab.evaluate(source, notes=source.notes)
    assert (evaluation.answered.n, evaluation.answered.n_total) == (3, 4)
    out = Console(width=80)
    with out.capture() as printed:
        out.print(terminal_table(evaluation))
    assert "3 of 4" in printed.get()


def test_verdict_of_one_score_compares_nothing(graded):
    sentences = " ".join(evaluation_verdict(ResultLookup(graded)))
    assert "95% interval" in sentences
    assert "compare" not in sentences


def test_verdict_without_an_interval(plain):
    bare = tuple(replace(r, interval=NOT_REQUESTED) for r in plain)
    sentences = " ".join(evaluation_verdict(ResultLookup(replace(plain, results=bare))))
    assert "interval" not in sentences
    assert "nan" not in sentences


def test_verdict_of_a_graded_loss_speaks_of_loss(graded):
    assert "wrong" not in " ".join(said(graded).answer)


def test_whether_answers_are_right_or_wrong_is_read_not_guessed(plain):
    only = tuple(r for r in plain if r.metric.name == "augrc")
    page = html_report(replace(plain, results=only))
    assert "Wrong answers against coverage" in page
    # By its name, or by a metric that could be computed, this would pass for a 0/1 loss.
    assert "the mean loss is" in " ".join(said(replace(plain, is_binary=False)).answer)


def test_an_own_column_is_not_the_score_of_its_name():
    p = ab.Predictions(
        prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence={"msr": [0.9, 0.8, 0.7, 0.6]}
    )
    (own,) = scores_in(ab.evaluate(p))
    assert own.title == "msr"
    assert (
        own.meaning == "A confidence score in the data; a higher value means a more trusted answer."
    )
    assert not own.source
    logits = ab.Predictions(logits=np.eye(3), labels=[0, 1, 1])
    (built_in,) = scores_in(ab.evaluate(logits, scores=["msr"]))
    assert built_in.title == SCORES["msr"].title


def test_a_page_without_curves_has_the_same_numbers():
    p = ab.Predictions(
        prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence={"msr": [0.9, 0.8, 0.7, 0.6]}
    )
    whole, bare = ab.evaluate(p), ab.evaluate(p, curves=False)
    assert not bare.curves
    assert repr(bare.results) == repr(whole.results)
    assert bare.notes == whole.notes
    assert said(bare).facts == said(whole).facts
    assert scores_in(bare) == scores_in(whole)
    anchors = [
        [
            s.anchor
            for s in select_blocks(said(e).blocks(), {"detail", "interactive"})
            if isinstance(s, Section | Collapsible)
        ]
        for e in (bare, whole)
    ]
    assert [name for name in anchors[1] if name not in anchors[0]] == [
        "reliability",
        "curves",
        "cwsa",
        "samples",
    ]
    assert "0.09375" in html_report(ab.evaluate(p, metrics=["accuracy", "augrc"], curves=False))


def test_each_cell_of_a_table_of_the_terminal_is_written_once(monkeypatch):
    # Of many scores there are thousands of cells, and most tables fit as they are.
    cells = []
    write = grid._cell_line

    def cell(table, i, *rest):
        cells.append(i)
        return write(table, i, *rest)

    monkeypatch.setattr(grid, "_cell_line", cell)
    p = ab.Predictions(
        loss=[0, 1, 0, 1], confidence={f"s{i}": [0.9, 0.8, 0.7, 0.1 * i] for i in range(5)}
    )
    out = Console(width=100)
    with out.capture() as printed:
        out.print(terminal_table(ab.evaluate(p, metrics=["augrc"])))
    assert printed.get().count("s4") == 1
    assert len(cells) == 5 * 2, "one table of five rows and two columns"


def scores_in(evaluation):
    (words,) = section(evaluation, "scores").blocks
    assert isinstance(words, Glossary)
    return words.entries


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "own"])
def test_a_loss_has_the_title_of_the_catalogue(name, plain):
    facts = dict(said(replace(plain, loss=name)).facts)
    assert facts["Loss"] == f"{LOSSES[name].title}: {LOSSES[name].meaning}"


def test_verdict_without_failures(faultless):
    assert "no answer is wrong" in " ".join(said(faultless).answer)


def test_verdict_of_many_splits_names_the_extremes(large):
    sentences = " ".join(said(large).answer)
    assert "on the 20 splits" in sentences
    assert "shift = s19" in sentences


def test_what_holds_for_all_rows_is_found_once(plain, monkeypatch):
    asked = []

    def headline(names):
        asked.append(names)
        return words_headline(names)

    monkeypatch.setattr(lookup, "headline_metrics", headline)
    assert len(explained(plain).rows) == len({r.metric.name for r in plain}) > 1
    list(walk(said(plain).overview()))
    assert len(asked) == 1


def test_nothing_to_report():
    nothing = Evaluation((), (), (), "zero_one")
    assert not said(nothing).answer
    assert not explained(nothing).rows
    assert "nothing" in html_report(nothing, title="nothing")


def test_findings_are_grouped_and_warnings_come_first(plain):
    findings = (
        Note("ties", "one", (), "first"),
        Note("source", "read", (), ""),
        Note("source", "dropped", (), ""),
        Note("ties", "two", (), "second"),
        Note("saturation", "three", (), "first", "warning"),
    )
    found = said(replace(plain, notes=findings)).findings
    assert [one.text for one in found] == ["three", "one", "read", "dropped"]
    assert [one.text for one in found[1].similar] == ["two"]


def test_a_metric_that_is_not_registered_is_printed_with_its_title(plain):
    result = plain.results[0]
    identity = replace(result.metric.identity, name="mine", title="My metric")
    unregistered = replace(result, metric=replace(result.metric, identity=identity))
    page = explained(replace(plain, results=(unregistered,)))
    assert page.rows[0].cells[0].text == "My metric"


def test_tie_range_is_shown_only_when_the_digits_differ(plain):
    def moved(**ends):
        one = replace(plain.results[0], **ends)
        return plain_text(explained(replace(plain, results=(one,))).rows[0].cells[1])

    assert "ties" not in moved(tie_low=0.1, tie_high=0.1000001)
    assert moved(tie_low=0.1, tie_high=0.2).endswith("ties: 0.100–0.200")
    assert "ties" not in moved(tie_low=float("nan"))


def test_every_metric_has_one_explanation(plain, faultless, graded):
    for evaluation in (plain, faultless, graded):
        rows = explained(evaluation).rows
        assert len(rows) == len({r.metric.name for r in evaluation})
        sentences = [row.cells[0].note for row in rows]
        assert all(sentence.endswith(".") for sentence in sentences)
        assert not [sentence for sentence in sentences if "{" in sentence]


def test_parts_of_classes_and_groups_are_listed() -> None:
    p = ab.Predictions(
        prediction=[0, 0, 1, 1],
        labels=[1, 0, 1, 0],
        confidence=[0.9, 0.2, 0.8, 0.95],
        group=["x<b>", "x<b>", "y", "y"],
    )
    evaluation = ab.evaluate(p)
    tables = list(contribution_tables(evaluation.curves[0], ""))
    assert [table.columns[0].label for table in tables] == ["Class", "Group"]
    assert {row.cells[0] for row in tables[1].rows} == {"x<b>", "y"}
    page = html_report(evaluation)
    assert "x&lt;b&gt;" in page
    assert "x<b>" not in page


@pytest.mark.parametrize(
    "metrics", [["coverage@10risk"], ["selective_risk@80cov", "ece"], ["ece"], ["augrc", "ece"]]
)
def test_the_table_of_scores_contains_the_metric_of_the_ranking_once(metrics):
    rng = np.random.default_rng(0)
    confidence = {name: rng.random(300) for name in ("first", "second")}
    data = ab.Predictions(confidence=confidence, loss=rng.random(300) > confidence["first"])
    evaluation = ab.evaluate(data, metrics=metrics)
    lookup_of_results = ResultLookup(evaluation)
    names = score_table_metrics(lookup_of_results)
    assert names.count(lookup_of_results.key_metric) == 1
    assert len(names) == len(set(names))
    assert "Scores, best first" in html_report(evaluation)
