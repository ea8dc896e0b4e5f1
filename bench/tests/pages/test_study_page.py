"""The page and the terminal text of a study: complete, safe, made of its numbers."""

import csv
from dataclasses import replace
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
from rich.console import Console
from tests.report import page_rules as rules
from tests.report.pages import HOSTILE, Page, steering

import abstain as ab
from abstain._foundation.notes import Note
from abstain.errors import InputError
from abstain.plots import Series, SeriesDisplay
from abstain_bench.pages.study import study_html, study_terminal, write_study, write_study_figures
from abstain_bench.studies import (
    StudyResult,
    study_estimators,
    study_population_forms,
    study_weights,
)


def hostile():
    rng = np.random.default_rng(0)
    rows = [
        {"data": name, "n": i, "value": 0.1 * i, "value_se": 0.01} for i, name in enumerate(HOSTILE)
    ]
    series = tuple(Series(name, (1.0, 2.0), tuple(rng.random(2)), panel=name) for name in HOSTILE)
    return StudyResult(
        name="attack",
        title=HOSTILE[0],
        question=HOSTILE[1],
        parameters={HOSTILE[2]: HOSTILE[5], "sizes": (1, 2)},
        tables={"results": rows, HOSTILE[0]: rows},
        figures={"lines": SeriesDisplay(series, HOSTILE[0], HOSTILE[1], HOSTILE[3])},
        notes=HOSTILE,
        verdict=HOSTILE,
        captions={"lines": HOSTILE[4], HOSTILE[0]: HOSTILE[1]},
        glossary={HOSTILE[0]: HOSTILE[1]},
        source=HOSTILE[2],
    )


def own():
    rng = np.random.default_rng(0)
    p = ab.Predictions(confidence={HOSTILE[0]: rng.random(60)}, loss=rng.random(60))
    return study_estimators({HOSTILE[1]: p}, sizes=[8, 16], repeats=4)


@cache
def weights():
    return study_weights(sizes=[8], points=9)


def bias():
    """The same with one of its figures: drawing is what takes long."""
    return replace(weights(), figures={"bias": weights().figures["bias"]})


CASES = {
    "weights": weights,
    "estimators": lambda: study_estimators(populations=["beta-scores"], sizes=[8, 16], repeats=4),
    "forms": lambda: study_population_forms(populations=["uniform-scores"], sizes=[50]),
    "hostile": hostile,
    "hostile data": own,
    "bare": lambda: StudyResult("a", "Title", "Why?", {}, {"results": [{"x": 1.0}]}),
}


@pytest.fixture(scope="module", params=CASES)
def pair(request):
    result = CASES[request.param]()
    text = study_html(result, title=HOSTILE[0], notes=HOSTILE, command=HOSTILE[1])
    return result, Page(text)


@pytest.fixture(scope="module")
def page(pair):
    return pair[1]


def test_ids_are_unique_and_references_have_targets(page):
    rules.references_have_targets(page)


def test_nothing_is_loaded_or_run(page):
    rules.nothing_is_loaded(page)


def test_no_attack_is_evaluated_or_steers(page):
    rules.no_attack_is_evaluated_or_steers(page)


def test_tables_are_captioned_and_headings_in_order(page):
    rules.headings_are_in_order(page)


def test_every_number_and_figure_is_there(pair):
    result, page = pair
    exact = {a["value"] for a in page.of("data")}
    exact |= {"nan" for a in page.of("span") if a.get("class") == "undefined"}
    for name in result.tables:
        for row in result.rows(name)[:200]:
            numbers = {c: v for c, v in row.items() if isinstance(v, int | float)}
            for column, value in numbers.items():
                if not column.endswith("_se"):
                    assert repr(value) in exact, (name, column)
    assert len(page.of("figure")) == len(result.figures)


def terminal(result, width: int = 100) -> str:
    console = Console(width=width)
    with console.capture() as printed:
        console.print(study_terminal(result))
    return printed.get()


@pytest.mark.parametrize("width", [60, 100, 160])
@pytest.mark.parametrize("case", CASES)
def test_terminal_keeps_its_width_and_says_the_verdict(case, width):
    result = CASES[case]()
    text = terminal(result, width)
    assert max(map(len, text.splitlines())) <= width
    assert not steering(text)
    if case == "weights":
        assert "The mean of the plug-in weights is 1" in " ".join(text.split())


def test_errors_stand_beside_their_numbers():
    rows = [{"bias": 0.1234567, "bias_se": 0.00321, "x": 0.5, "x_low": -0.1, "x_high": 0.9, "none": None,
             "yes": True, "nan": float("nan"), "count": 12345}]  # fmt: skip
    result = StudyResult("a", "b", "c", {}, {"results": rows})
    text = terminal(result)
    for said in (
        "0.1235 ± 0.0032",
        "0.5000 [−0.1000, 0.9000]",
        "–",
        "yes",
        "undef.",
        "12,345",
    ):
        assert said in text
    heads = next(line for line in text.splitlines() if "Bias" in line).split()
    assert heads == ["Bias", "X", "None", "Yes", "Nan", "Count"]


def test_a_column_without_anything_in_it_is_omitted():
    rows = [{"n": n, "selection": "", "label": "", "zero": 0.0} for n in (1, 2)]
    result = StudyResult("s", "S", "Why?", parameters={}, tables={"results": rows})
    printed = study_html(result, command="")
    assert "Zero" in printed
    assert "Selection" not in printed
    assert "Label" not in printed


def test_a_glossary_without_words_is_omitted():
    bare = StudyResult("a", "Title", "Why?", {}, {"results": [{"x": 1.0}]})
    assert "Glossary" not in study_html(bare, command="")
    assert "Glossary" in study_html(replace(bare, glossary={"x": "a number"}), command="")


def test_long_tables_are_cut_and_say_so():
    rows = [{"n": i} for i in range(300)]
    result = StudyResult("a", "b", "c", {}, {"results": rows})
    assert "276 more rows with --out" in terminal(result)
    text = " ".join(Page(study_html(result)).text)
    assert "100 more are in results.csv" in text


def test_files(tmp_path):
    result = bias()
    bare = CASES["bare"]()
    path = write_study(bare, tmp_path / "report.html", command="abstain study weights")
    assert "abstain study weights" in path.read_text(encoding="utf-8")
    left = write_study_figures(result, tmp_path / "figures", formats=["svg"])
    assert {p.suffix for p in left} == {".svg", ".csv"}
    with (tmp_path / "figures" / "bias.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == result.figures["bias"].frame().height


def test_what_is_no_study_raises_an_error(tmp_path):
    for call in (study_html, study_terminal):
        with pytest.raises(InputError, match=r"must be a StudyResult.*got dict"):
            call({})
    bad = StudyResult(
        "a", "b", "c", {}, {"results": [{"x": 1}]}, {"../up": CASES["weights"]().figures["bias"]}
    )
    with pytest.raises(InputError, match="letters, digits and hyphens"):
        write_study_figures(bad, tmp_path)


def test_durations_and_deviations_are_written_as_such():
    result = StudyResult(
        name="times",
        title="T",
        question="Q",
        parameters={"time_of_all_jobs": timedelta(seconds=7384)},
        tables={"results": [{"value": np.float64(0.5), "value_deviation": 0.25}]},
        seconds=3.0,
    )
    with (console := Console(width=100)).capture() as screen:
        console.print(study_terminal(result))
    assert "Time of all jobs: 2 h 3 min; Time of this run: 3 s" in screen.get()
    assert "± 0.25" in screen.get()
    # A number of NumPy is written as a number, not as a call.
    assert '<data value="0.5">' in study_html(result)


@pytest.mark.parametrize(
    ("value", "said"), [(166.0, "± 170"), (204.0, "± 200"), (12.4, "± 12"), (0.0321, "± 0.032")]
)
def test_spreads_have_no_exponent(value, said):
    rows = [{"x": 1874.0, "x_se": value}]
    result = StudyResult("a", "b", "c", {}, {"results": rows})
    assert f"1,874 {said}" in terminal(result)
    assert f'<small class="spread">{said}</small>' in study_html(result)


def test_warnings_are_told_as_such_and_first():
    notes = ("One seed.", Note.warning("failed_jobs", "two jobs failed."))
    result = StudyResult("a", "b", "c", {}, {"results": [{"x": 1.0}]}, notes=notes)
    printed = terminal(result)
    assert printed.index("Warning: two jobs failed.") < printed.index("Note: One seed.")
    page = study_html(result)
    assert "<strong>Warning</strong> two jobs failed." in page
    assert page.index("two jobs failed.") < page.index("One seed.")


def test_short_words_are_not_broken():
    rows = [{"a": "better", "b": "x" * 40, "c": "at 90% coverage", "d": "e"}]
    result = StudyResult("a", "b", "c", {}, {"results": rows}, verdict=("Lower by 3%.",))
    page = study_html(result)
    assert '<th scope="row">better</th>' in page
    assert f'<td class="name">{"x" * 40}</td>' in page
    assert "at 90% coverage" in page
    assert "Lower by 3%." in page
    assert 'class="hint sideways"' in page
