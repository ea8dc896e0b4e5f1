"""Results of benchmarks and studies in every format, in notebooks, and in terminals of any width."""

import re

import pytest
from bench.tests.pages.made_benchmark import made_results
from bench.tests.pages.test_study_page import hostile as hostile_study
from rich.console import Console
from tests.report.test_formats import has_format
from tests.report.test_notebook import is_small_and_whole, names_no_option

from abstain.report.document import FORMATS
from abstain_bench.pages.study import study_terminal
from abstain_bench.studies import (
    STUDIES,
    StudyResult,
    study_label_noise,
    study_rankings,
    study_weights,
)


@pytest.mark.parametrize("format", FORMATS)
def test_every_subject_has_every_format(format):
    for result in (hostile_study(), made_results()):
        has_format(result, format)


def test_a_benchmark_in_a_notebook_is_small_and_whole():
    is_small_and_whole(made_results()._repr_html_())


def test_no_option_of_a_command_is_named_in_a_notebook():
    for result in (STUDIES["precision"].run(), made_results()):
        names_no_option(result._repr_html_())


RESULTS = {
    "weights": lambda: study_weights(sizes=[8, 128], points=9),
    "rankings": lambda: study_rankings(bootstrap=20, n=200),
    "label noise": lambda: study_label_noise(n=500),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_numbers_of_studies_equal_those_of_a_terminal_without_end(name, width):
    def numbers(columns):
        console = Console(width=columns)
        with console.capture() as shown:
            console.print(study_terminal(result))
        lines = shown.get().splitlines()
        return {n for line in lines for n in re.findall(r"(?<![\w.])[−]?\d\.\d{3,}(?![\w.])", line)}

    result: StudyResult = RESULTS[name]()
    # A number that a line or a column breaks is none of these.
    assert numbers(width) <= numbers(300)
