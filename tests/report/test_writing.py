"""One way to write any result: by its ending, with the functions of one subject as its names."""

import pytest
from tests.plots.comparisons import made_up
from tests.report.test_threshold_page import plain as rule

from abstain import report
from abstain.errors import InputError


@pytest.fixture(scope="session")
def results(plain):
    """Return a result of every kind, with the functions named after it."""
    return {
        "evaluation": (plain, report.html_report, report.write_html),
        "comparison": (
            made_up(("a", "b"), ("augrc",), ((),), draws=40),
            report.comparison_html,
            report.write_comparison,
        ),
        "rule": (rule(), report.threshold_html, report.write_threshold),
    }


@pytest.mark.parametrize("kind", ["evaluation", "comparison", "rule"])
def test_the_ending_says_the_format(kind, results, tmp_path):
    result, page, write = results[kind]
    document = report.build_document(result, title="Mine")
    for name, wanted in (("a.html", "html"), ("a.md", "markdown"), ("a.tex", "latex")):
        path = report.write(result, tmp_path / name, title="Mine")
        assert path.read_text(encoding="utf-8") == report.render(document, wanted)
    assert write(result, tmp_path / "page").read_text(encoding="utf-8") == page(result)


def test_the_functions_of_a_subject_refuse_the_others(results):
    for kind, (_, page, _) in results.items():
        for other, (result, _, _) in results.items():
            if other != kind:
                with pytest.raises(InputError, match=f"got {type(result).__name__}"):
                    page(result)


def test_what_only_others_have_is_refused(plain, results, tmp_path):
    none = report.SampleImages(reason="no torch")
    with pytest.raises(InputError, match=r"`other_models` cannot be used with Evaluation"):
        report.write(plain, tmp_path / "a.html", other_models=[plain])
    with pytest.raises(InputError, match=r"`images` cannot be used with RuleChecks"):
        report.write(results["rule"][0], tmp_path / "a.html", images=none)
    with pytest.raises(InputError, match="reports of Evaluation have no separate figures"):
        report.write_figures(plain, tmp_path)
    assert not list(tmp_path.iterdir())


def test_figures_of_any_result_that_has_some(results, tmp_path):
    rule = results["rule"][0]
    left = [path.name for path in report.write_figures(rule, tmp_path, formats=["svg"])]
    named = report.write_rule_figures(rule, tmp_path, formats=["svg"])
    assert left == [path.name for path in named]
