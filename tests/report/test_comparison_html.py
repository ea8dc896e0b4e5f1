"""The page of a comparison: complete, well formed, safe, and made of its numbers."""

import csv
import re

import pytest
from tests.plots.comparisons import DATA, LITERATURE, METHODS, made_up
from tests.report import page_rules as rules
from tests.report.pages import HOSTILE, Page

from abstain.errors import InputError
from abstain.evaluation.comparison import best_methods, sort_best_first
from abstain.report import comparison_html, write_comparison, write_figures
from abstain.report.formatting import format_count
from abstain.report.subjects.comparison.verdict import comparison_answer

#: Each draws a page of many figures.
pytestmark = pytest.mark.slow


def hostile():
    data = tuple(((HOSTILE[0], value),) for value in (*HOSTILE[:2], HOSTILE[-1]))
    return made_up(HOSTILE, data=data, undefined=HOSTILE[3])


COMPARISONS = {
    "plain": made_up,
    "hostile": hostile,
    "alone": lambda: made_up(METHODS[:2], ("augrc",), ((),), literature=False),
    "nothing": lambda: made_up(METHODS[:2], ("failure_auroc",), ((),), undefined="msr"),
}


@pytest.fixture(scope="module", params=COMPARISONS)
def pair(request):
    comparison = COMPARISONS[request.param]()
    text = comparison_html(
        comparison, title=HOSTILE[0], source=HOSTILE[2], notes=HOSTILE, command=HOSTILE[1]
    )
    return comparison, Page(text)


@pytest.fixture(scope="module")
def comparison(pair):
    return pair[0]


@pytest.fixture(scope="module")
def page(pair):
    return pair[1]


@pytest.fixture(scope="module")
def plain():
    return made_up()


def test_every_reference_has_its_target(page):
    rules.references_have_targets(page)
    assert page.of("use")


def test_nothing_is_loaded(page):
    rules.nothing_is_loaded(page, scripts=1)


def test_no_attack_is_evaluated_or_steers(page):
    rules.no_attack_is_evaluated_or_steers(page)


def test_tables_are_captioned_and_headings_in_order(page):
    rules.headings_are_in_order(page)


def test_every_number_is_there(comparison, page):
    exact = {a["value"] for a in page.of("data")}
    for estimate in comparison.estimates:
        assert estimate.note or repr(float(estimate.value)) in exact
    for p in comparison.pairs:
        assert p.adjusted != p.adjusted or repr(float(p.adjusted)) in exact


def test_figures_follow_the_colors_of_the_page(page):
    inside = [a.get("style", "") for tag, a in page.elements if tag in {"path", "text", "use"}]
    assert any("var(--ink)" in style for style in inside)
    assert not [style for style in inside if re.search(r"#[0-9a-f]{6}", style)]


def test_a_name_that_looks_like_markup_of_a_figure_stays_as_it_is():
    name = 'id="x" #1d2329 url(#a) 0.123456'
    page = Page(comparison_html(made_up((name, "b"), ("augrc",), ((),))))
    assert "".join(page.text).count(name) > 3


def test_what_is_not_valid_stands_apart(plain):
    text = comparison_html(plain)
    sections = text.split('<details class="caution">')[1:]
    assert len(sections) == len(plain.metrics) * len(plain.data)
    outside = re.sub(r'<details class="caution">.*?</details>', "", text, flags=re.DOTALL)
    assert LITERATURE not in outside
    assert all("These p-values are not valid." in section for section in sections)


def test_size(plain):
    assert len(comparison_html(plain)) < 2_000_000


def test_many_data_sets_are_cut_and_said():
    data = tuple((("shift", f"s{i}"),) for i in range(30))
    text = comparison_html(made_up(METHODS[:4], ("augrc",), data, draws=40))
    assert len(text) < 4_000_000
    assert "contain the first 11 of 30 data sets" in text
    glance = text[text.index('id="glance"') : text.index('id="values"')]
    assert all(f"shift = s{i}<" in glance for i in range(30))


def test_same_comparison_same_page(plain):
    assert comparison_html(plain) == comparison_html(plain)


def test_only_a_comparison_is_written(tmp_path):
    for write in (comparison_html, lambda c: write_comparison(c, tmp_path / "a.html")):
        with pytest.raises(InputError, match="what `compare` returned; got dict"):
            write({})
    with pytest.raises(InputError, match="got list"):
        write_figures([], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_page_is_all_that_is_written(tmp_path):
    comparison = COMPARISONS["alone"]()
    path = write_comparison(comparison, tmp_path / "page.html", title="mine")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert "<h1>mine</h1>" in path.read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------- figures
def test_every_figure_has_its_table(tmp_path):
    comparison = hostile()
    left = write_figures(comparison, tmp_path / "new", formats=["svg"])
    assert sorted(left) == sorted((tmp_path / "new").iterdir())
    names = [path.name for path in left]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+\.(svg|csv)", name) for name in names)
    assert {p.stem for p in left if p.suffix == ".svg"} == {
        p.stem for p in left if p.suffix == ".csv"
    }
    with (tmp_path / "new" / "forest_augrc_1-script-img-src-x-onerror-alert-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    split = comparison.data[0]
    expected = sort_best_first(comparison.estimates_of("augrc", split))
    assert [row["method"] for row in rows] == [e.method for e in expected]
    assert float(rows[0]["value"]) == expected[0].value


def test_no_cell_is_a_formula(tmp_path):
    comparison = made_up(("=1+1", "@2"), ("augrc",), ((),))
    write_figures(comparison, tmp_path, formats=[])
    with (tmp_path / "forest_augrc.csv").open() as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"'=1+1", "'@2"}


def test_unknown_formats_are_refused(plain, tmp_path):
    with pytest.raises(InputError, match="'svg', 'pdf', 'png'; got 'jpg'"):
        write_figures(plain, tmp_path, formats=["svg", "jpg"])
    assert not list(tmp_path.iterdir())


def test_the_page_of_many_methods_is_light():
    methods = tuple(f"method {i}" for i in range(65))
    text = comparison_html(made_up(methods, data=((),), spread=2.0))
    assert len(text.encode()) < 2_500_000
    assert f"contains all {format_count(2080)} pairs" in text


# ----------------------------------------------------------------------------------- verdict
def test_the_verdict_of_one_data_set():
    comparison = made_up(METHODS[:3], ("augrc",), ((),), spread=0.2)
    best = sort_best_first(comparison.estimates)[0]
    text = " ".join(comparison_answer(comparison))
    assert text.startswith(f"{best.method} has the lowest AUGRC (0.0")
    for p in comparison.pairs:
        if p.valid and best.method in {p.first, p.second}:
            other = ({p.first, p.second} - {best.method}).pop()
            clause = next(s for s in text.split("; ") if other in s)
            assert ("significantly better than" in clause) == (p.better == best.method)
            assert ("not significantly different" in clause) == (p.better == "")


def test_the_verdict_of_several(plain):
    answers = comparison_answer(plain)
    assert len(answers) == len(DATA)
    for data, answer in zip(DATA, answers, strict=True):
        best = best_methods(plain.estimates_of("augrc", data))[0]
        ((column, value),) = data
        assert answer.startswith(f"{column} = {value}: {best} ")
        assert "significantly" in answer
    assert "Friedman test" in comparison_html(plain)
    tau = next(a.tau for a in plain.agreements if a.data is None)
    assert f"tau {tau:.2f})" in comparison_html(plain)


def test_the_verdict_without_a_rival():
    comparison = COMPARISONS["nothing"]()
    assert comparison_answer(comparison) == ["Failure AUROC is defined only for “mls”."]
