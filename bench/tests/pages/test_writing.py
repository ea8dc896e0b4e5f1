"""Benchmarks and studies are written by the functions of their names and by `abstain.report`."""

import pytest
from bench.tests.pages.made_benchmark import made_results
from bench.tests.pages.test_study_page import bias

from abstain import report
from abstain.errors import InputError
from abstain_bench.pages import study
from abstain_bench.pages.benchmark import output

RESULTS = {
    "study": (bias, study.study_html, study.write_study),
    "benchmark": (
        lambda: made_results(("msr", "pe"), metrics=("augrc",), severities=()),
        output.benchmark_html,
        output.write_benchmark,
    ),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_the_ending_says_the_format(kind, tmp_path):
    make, page, write = RESULTS[kind]
    result = make()
    document = report.build_document(result, title="Mine")
    for name, wanted in (("a.html", "html"), ("a.md", "markdown"), ("a.tex", "latex")):
        path = report.write(result, tmp_path / name, title="Mine")
        assert path.read_text(encoding="utf-8") == report.render(document, wanted)
    assert write(result, tmp_path / "page").read_text(encoding="utf-8") == page(result)


def test_the_functions_of_a_subject_refuse_the_others():
    with pytest.raises(InputError, match="got BenchmarkResults"):
        study.study_html(made_results(("msr", "pe"), metrics=("augrc",), severities=()))
    for page in (output.benchmark_html, report.html_report):
        with pytest.raises(InputError, match="got StudyResult"):
            page(bias())


def test_figures_of_a_study(tmp_path):
    left = [path.name for path in report.write_figures(bias(), tmp_path, formats=["svg"])]
    named = study.write_study_figures(bias(), tmp_path, formats=["svg"])
    assert left == [path.name for path in named]
