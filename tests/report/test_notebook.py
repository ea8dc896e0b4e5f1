"""What a notebook shows of a result: small, whole, escaped, with the colors around it."""

import re

import numpy as np
import pytest
from tests.plots.comparisons import made_up
from tests.report.pages import HOSTILE, Page
from tests.report.test_formats import everything

import abstain as ab
from abstain.evaluation import check_rule
from abstain.report import render

RULE = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)


@pytest.fixture(scope="module")
def compared():
    return made_up()


def shown(result) -> str:
    return result._repr_html_()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_an_element(name):
    page = render(everything(name), "notebook")
    tags = set(re.findall(r"<([a-z]+)", page))
    assert "table" in tags
    assert not tags & {"script", "iframe", "img", "object", "b"}


def test_every_result_is_small_and_whole(plain, hostile, large, compared):
    for result in [plain, hostile, large, compared, RULE, check_rule(RULE, {})]:
        is_small_and_whole(shown(result))


def is_small_and_whole(text):
    assert len(text.encode()) < 60_000
    assert text.startswith('<div class="abstain-brief">')
    assert text.endswith("</div>")
    assert text.count("<table>") == text.count("</table>")
    assert not re.search(r'<[^>]* (?:src|href)="(?!data:|#|https:)', text)


def test_an_evaluation_has_its_numbers_and_one_curve(plain):
    text = shown(plain)
    assert text.count("<svg") == 1
    words = "".join(Page(text).text)
    assert "first" in words
    assert "AUGRC" in words
    assert "--full" not in words
    assert f'value="{plain.value("augrc", score="first")!r}"' in text


def test_without_curves_there_is_the_table_alone():
    samples = ab.Predictions(confidence=[0.9, 0.8, 0.7], loss=[0, 1, 0])
    text = shown(ab.evaluate(samples, curves=False))
    assert "<svg" not in text
    assert "<table>" in text


def test_many_rows_are_counted_and_not_all_shown(large):
    text = shown(large)
    assert "<tr" in text
    assert "more rows" in text


def test_two_outputs_do_not_share_the_parts_of_their_figures(plain, compared):
    first, second = (set(re.findall(r' id="([^"]+)"', shown(x))) for x in (plain, compared))
    assert first
    assert second
    assert not first & second


def test_ink_is_that_of_the_notebook(plain):
    text = shown(plain)
    assert "currentColor" in text
    assert '[data-jp-theme-light="false"] .abstain-brief' in text
    body = text.partition("</style>")[2]
    assert not re.search(r"(?:color|fill|stroke): ?#(?:000|fff)", body)


def test_a_rule_says_what_it_promises():
    assert "Answer if" in "".join(Page(shown(RULE)).text)
    none = ab.thresholds.DecisionRule("risk", None, target=0.1, reason="nothing is attainable")
    assert "abstain-brief" in shown(none)


def test_no_option_of_a_command_is_named(plain, large, compared):
    site = np.repeat(np.arange(60), 30)
    many = ab.Predictions(
        confidence=np.tile(np.linspace(0, 1, 30), 60), loss=np.zeros(1800), group=site
    )
    rules = ab.set_threshold(many, per="group", max_risk=0.5)
    for result in (plain, large, compared, rules, check_rule(rules, many)):
        names_no_option(shown(result))


def names_no_option(text):
    said = re.sub(r"<(svg|style).*?</\1>", "", text, flags=re.DOTALL)
    words = re.sub(r"<[^>]*>", " ", said)
    assert not re.search(r"(?<!-)--[a-z]", words), words
