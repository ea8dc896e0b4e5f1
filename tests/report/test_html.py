"""The HTML report: complete, well formed, safe, and made of the numbers of the evaluation."""

import itertools
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jinja2 import Environment
from tests.report.page_rules import the_policy_allows_its_scripts_and_no_other
from tests.report.pages import DISARMED, EVALUATED, HOSTILE, steering

import abstain as ab
from abstain.errors import InputError
from abstain.evaluation.records import NOT_REQUESTED
from abstain.report import html_report, write_html
from abstain.report.document import Column, Span
from abstain.report.render.elements import table_cell
from abstain.report.render.html import read_template_file
from abstain.report.subjects.evaluation.charts import chart_data
from abstain.report.subjects.evaluation.first_screen import FixedFormat
from abstain.report.subjects.evaluation.lookup import ResultLookup

LOADING = ("src", "srcset", "data", "poster", "action", "background")
EVALUATIONS = ("plain", "hostile", "large", "faultless", "graded")


@pytest.fixture(scope="module", params=EVALUATIONS)
def page(request, parse):
    evaluation = request.getfixturevalue(request.param)
    text = html_report(
        evaluation, title=HOSTILE[0], source=HOSTILE[2], notes=HOSTILE, command=HOSTILE[1]
    )
    return parse(text)


def test_ids_are_unique(page):
    assert len(page.ids) == len(set(page.ids))


def test_internal_links_resolve(page):
    targets = [a["href"][1:] for a in page.of("a") if a["href"].startswith("#")]
    assert targets
    assert not set(targets) - set(page.ids)


def test_labels_and_descriptions_resolve(page):
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set(attributes.get(name, "").split()) <= set(page.ids)


def test_nothing_is_loaded(page):
    for tag, attributes in page.elements:
        assert not [name for name in LOADING if name in attributes], (tag, attributes)
        if tag == "a":
            assert attributes["href"].startswith(("#", "https://"))
        else:
            assert "href" not in attributes, (tag, attributes)
    assert "link" not in {tag for tag, _ in page.elements}


def test_the_policy_allows_the_scripts_and_no_other(page):
    the_policy_allows_its_scripts_and_no_other(page)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_charts_are_drawn_though_no_text_may_become_code(plain, tmp_path):
    page = write_html(plain, tmp_path / "page.html")
    assert "ast: true" in page.read_text(encoding="utf-8").rsplit("<script>", 1)[1]
    program = Path(__file__).with_name("draw_charts.js")
    strict = ["node", "--disallow-code-generation-from-strings", program, page]
    done = subprocess.run(strict, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    drawn = dict(line.split() for line in done.stdout.splitlines())
    assert {"selective", "generalized"} <= drawn.keys()
    assert all(int(length) > 4000 for length in drawn.values())
    # Without being interpreted they are code, which shows that the program would notice.
    plainly = subprocess.run([*strict, "plain"], capture_output=True, text=True, check=False)
    assert plainly.returncode == 1
    assert "EvalError" in plainly.stderr


def test_style_loads_nothing(plain):
    style = re.search(r"<style>(.*?)</style>", html_report(plain), re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style
    assert "@@" not in style


def test_no_attack_becomes_an_element(page):
    assert not page.of("img")
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    known = {"abstain-data", "abstain-specs"}
    assert len(page.of("script")) == 4
    assert known < set(page.scripts)


def test_no_attack_is_evaluated(page):
    text = "".join(page.text)
    assert EVALUATED not in text
    assert HOSTILE[1] in text
    assert HOSTILE[0] in text


def test_the_attack_would_be_seen():
    expression = HOSTILE[1].removesuffix("{% raw %}")
    assert Environment(autoescape=True).from_string(expression).render() == EVALUATED


def test_no_attack_steers_the_reading(page):
    assert DISARMED in "".join(page.text)
    said = [value for _, attributes in page.elements for value in attributes.values()]
    assert not steering("".join([*page.text, *said]))


def test_embedded_json_parses(page):
    data = json.loads(page.scripts["abstain-data"])
    specs = json.loads(page.scripts["abstain-specs"])
    assert {"selective", "generalized"} <= set(specs)
    assert set(specs) <= {"selective", "generalized", "reliability", "cwsa", "cwsa_plus"}
    for case in data["cases"]:
        assert len({len(values) for values in case["curve"].values()}) == 1
        assert len(case["curve"]["accepted"]) <= 402


def test_specs_hold_no_address(page):
    assert "http" not in page.scripts["abstain-specs"]
    assert "http" not in page.scripts["abstain-data"]


def test_every_canvas_has_a_chart(page):
    canvases = {div["data-chart"] for div in page.of("div") if "data-chart" in div}
    assert canvases == set(json.loads(page.scripts["abstain-specs"]))


def test_every_number_is_there(page, request):
    evaluation = request.getfixturevalue(request.node.callspec.params["page"])
    lookup = ResultLookup(evaluation)
    text = "\n".join(page.text)
    for split in lookup.splits:
        for metric in lookup.metrics:
            results = [lookup.results.get((split, score, metric)) for score in lookup.scores]
            shown = FixedFormat.of(results, is_binary=evaluation.is_binary)
            for result in filter(None, results):
                assert result.reason or shown.value(result.value) in text


def test_tables_are_captioned(page):
    assert len(page.of("caption")) == len(page.of("table"))


def test_headings_do_not_skip_a_level(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


def test_undefined_says_why(faultless, parse):
    page = parse(html_report(faultless))
    reasons = {r.reason for r in faultless if r.reason}
    titles = {span.get("title") for span in page.of("span")}
    assert reasons
    assert reasons <= titles


def test_same_evaluation_same_page(plain):
    assert html_report(plain) == html_report(plain)


def test_write_is_atomic(plain, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    assert write_html(plain, target, title="one") == target
    before = target.read_text(encoding="utf-8")

    def fail(*_args):
        msg = "disk full"
        raise OSError(msg)

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InputError, match=r"report\.html' cannot be written: disk full"):
        write_html(plain, target, title="two")
    assert target.read_text(encoding="utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_page_is_small_beside_its_library():
    rng = np.random.default_rng(0)
    one = ab.Predictions(confidence=rng.random(20_000), loss=(rng.random(20_000) < 0.1) * 1.0)
    assert (
        len(html_report(ab.evaluate(one)).encode())
        < len(read_template_file("vega.js").encode()) + 200_000
    )


def test_a_tree_without_the_library_says_how_it_is_made(plain, monkeypatch, tmp_path):
    monkeypatch.setitem(read_template_file.__globals__, "files", lambda _package: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"`python hatch_build\.py`"):
        html_report(plain)


def test_size_of_many_splits_and_scores(large):
    assert len(html_report(large)) < 6_000_000


def test_a_page_has_a_place(plain, tmp_path):
    with pytest.raises(InputError, match=r"the folder '.*nowhere' does not exist"):
        write_html(plain, tmp_path / "nowhere" / "report.html")
    with pytest.raises(InputError, match="it is a folder"):
        write_html(plain, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_page_says_only_what_holds_of_ties(plain):
    page = html_report(plain)
    assert "averages over" not in page
    assert "accepted or rejected together" in page


def without_bands(evaluation):
    return replace(evaluation, curves=tuple(replace(c, band=None) for c in evaluation.curves))


def test_bands_are_offered_where_there_are_some(plain, parse):
    page = parse(html_report(plain))
    box = next(a for a in page.of("input") if a.get("data-switch") == "bands")
    assert "checked" in box
    assert "Show 95% bands" in "".join(page.text)
    specs = json.loads(page.scripts["abstain-specs"])
    for kind in ("selective", "generalized"):
        names = [layer["data"]["name"] for layer in specs[kind]["spec"]["layer"]]
        assert names[:2] == ["bands", "edges"]  # below the lines
    bare = parse(html_report(without_bands(plain)))
    assert "points" not in bare.ids
    assert "bands" not in {a.get("data-switch") for a in bare.of("input")}
    assert "bands" not in bare.scripts["abstain-specs"]


def test_many_scores_start_without_bands(large, parse):
    page = parse(html_report(large))
    assert "checked" not in next(a for a in page.of("input") if a.get("data-switch") == "bands")


def test_what_needs_javascript_is_hidden_without_it(plain, parse):
    page = parse(html_report(plain))
    scripted = [a for _, a in page.elements if "scripted" in a.get("class", "").split()]
    assert len(scripted) >= 5
    assert all("hidden" in a for a in scripted)


def test_a_slider_goes_through_the_thresholds(plain, parse):
    page = parse(html_report(plain))
    assert [a["data-slider"] for a in page.of("select") if "data-slider" in a] == ["score"]
    slider = next(a for a in page.of("input") if a.get("data-slider") == "position")
    assert slider["type"] == "range"
    assert slider["aria-describedby"] in page.ids


def test_the_slider_ends_where_everything_is_accepted(plain):
    for drawn, case in zip(chart_data(ResultLookup(plain))["cases"], plain.curves, strict=True):
        # What is refused is the rest up to the last vertex.
        curve = drawn["curve"]
        assert (curve["accepted"][-1], curve["failures"][-1]) == (case.n, case.failures)
        assert all(a >= f for a, f in zip(curve["accepted"], curve["failures"], strict=True))


def test_bands_cost_little_room(large):
    more = len(html_report(large)) - len(html_report(without_bands(large)))
    assert more < 4000 * len(large.curves)


def test_notes_on_intervals_need_no_mouse(plain, parse):
    text = " ".join("".join(parse(html_report(plain)).text).split())
    noted = [r for r in plain if r.interval.note and not r.reason]
    assert {r.interval.exists for r in noted} == {True, False}
    for result in noted:
        lead = "Interval" if result.interval.exists else "No interval"
        assert f"{lead}: {result.interval.note}." in text
    for form in {r.interval.procedure for r in plain if r.interval.exists}:
        assert form[1:] in text
    assert "contains the true value in 95% of studies" in text


def test_without_intervals_nothing_is_said_of_them(plain):
    bare = tuple(replace(r, interval=NOT_REQUESTED) for r in plain)
    page = html_report(replace(without_bands(plain), results=bare))
    assert 'interval">' not in page
    assert "Intervals in this report" not in page
    assert "nan" not in page.split("abstain-data")[0].replace("nance", "")


def test_long_names_break_after_separators_only():
    column = Column("Method", "name")
    cell = table_cell("mahalanobis_normalized <b>", column, is_header=True, is_stacked=False)
    assert "mahalanobis_<wbr>normalized &lt;b&gt;" in cell
    assert "<wbr>" not in table_cell("mlp.csv", column, is_header=True, is_stacked=False)
    span = Span("virtual_logit_matching", link="https://x.example/a_name_with_underscores")
    link = table_cell(span, column, is_header=True, is_stacked=False)
    assert 'href="https://x.example/a_name_with_underscores"' in link
    assert "virtual_<wbr>logit_<wbr>matching" in link
