"""The page of a benchmark: complete, safe, and made of its numbers."""

import base64
import io
import math
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from bench.tests.pages.made_benchmark import NAMES, made_results
from PIL import Image
from tests.report import page_rules as rules
from tests.report.pages import HOSTILE, Page

from abstain.errors import InputError
from abstain.plots import SignificanceMapDisplay
from abstain.report import SampleImages
from abstain.report.document import plain_text
from abstain.report.formatting import format_number
from abstain.report.images import to_data_url
from abstain_bench.pages import benchmark_pictures
from abstain_bench.pages.benchmark.front import verdict_of
from abstain_bench.pages.benchmark.leaderboard import Leaderboard, study_split
from abstain_bench.pages.benchmark.output import benchmark_html, write_benchmark
from abstain_bench.pages.benchmark.pictures import displayed_extremes
from abstain_bench.pages.benchmark.studies import curve_display, map_table, ranking_change
from abstain_bench.runs.tasks import Sizes


@cache
def plain():
    return made_results()


@cache
def hostile():
    return made_results(
        HOSTILE, own=HOSTILE[0], model=HOSTILE[2], words=HOSTILE[1], metrics=("augrc", "aurc")
    )


@cache
def plain_page_text():
    other = made_results(seed=5, model="vgg13", metrics=("aurc",))
    return benchmark_html(plain(), other_models=[other], command="abstain benchmark report runs")


@cache
def hostile_text():
    return benchmark_html(
        hostile(),
        title=HOSTILE[0],
        notes=HOSTILE,
        command=HOSTILE[1],
        images=SampleImages(reason=HOSTILE[5]),
    )


@cache
def light():
    """Return results of which nothing is drawn."""
    return replace(made_results(NAMES[:2], metrics=("augrc",)), curves={}, thresholds=())


@pytest.fixture(scope="module", params=[plain_page_text, hostile_text])
def page(request):
    return Page(request.param())


def test_ids_are_unique_and_references_have_targets(page):
    rules.references_have_targets(page)


def test_nothing_is_loaded(page):
    rules.nothing_is_loaded(page, scripts=1)


def test_tables_are_captioned_and_headings_in_order(page):
    rules.headings_are_in_order(page)


def test_no_attack_is_evaluated_or_steers():
    rules.no_attack_is_evaluated_or_steers(Page(hostile_text()))


def test_every_value_is_there_with_its_mark():
    exact = {a["value"] for a in Page(plain_page_text()).of("data")}
    for metric, comparison in plain().comparisons.items():
        for study in plain().headline:
            estimates = comparison.estimates_of(metric, (("study", study.name),))
            assert {repr(float(e.value)) for e in estimates} <= exact
    best = re.findall(r'<data class="best" value="([^"]*)">([^<]*)<', plain_page_text())
    augrc = Leaderboard(plain()).grid("augrc")
    for study in augrc.studies:
        (name,) = augrc.methods_with_relation(study)
        entry = augrc.column(study)[name]
        value = entry.number.value
        assert (repr(float(value)), format_number(1000 * value)) in best
        assert entry.rank == 1


def test_every_study_and_method_can_be_gone_to():
    page = Page(plain_page_text())
    keys = [f"study-{i}" for i in range(1, 5)] + [f"method-{i}" for i in range(1, 5)]
    assert set(keys) <= set(page.ids)
    links = {a["href"] for a in page.of("a")}
    assert {f"#{key}" for key in keys} <= links
    assert {option["value"] for option in page.of("option")} >= {f"#{key}" for key in keys}


def test_new_classes_stand_in_parallel():
    text = plain_page_text()
    section = text[text.index('id="new-classes"') : text.index('id="studies"')]
    for head in ("errors removed", "errors kept", "by cost", "as outliers"):
        assert head in section
    for name in ("digits", "digits-kept", "digits-scod", "digits-outlier"):
        estimates = plain().comparisons["augrc"].estimates_of("augrc", (("study", name),))
        assert all(f'value="{float(e.value)!r}"' in section for e in estimates)


def test_ranks_by_both_protocols_stand_in_parallel():
    text = plain_page_text()
    section = text[text.index('id="new-classes"') : text.index('id="studies"')]
    title = "Ranks by Failure AUROC: errors removed, and as outliers"
    part = section[section.rindex(f"{title}; 1 is best") :]
    heads = re.findall("errors removed</|as outliers</", part)
    assert heads == ["errors removed</", "as outliers</"]
    result = plain().comparisons["failure_auroc"]
    for name in ("digits", "digits-outlier"):
        ranks = [s.rank for s in result.standings_of("failure_auroc", (("study", name),))]
        assert all(f'value="{float(rank)!r}"' in part for rank in ranks)
    only = benchmark_html(made_results(metrics=("augrc",)))
    assert title not in only


def test_what_is_missing_is_omitted_and_said():
    text = plain_page_text()
    assert "Images are not available: they were not requested." in text
    assert 'id="backbones"' in text
    alone = replace(
        plain(), thresholds=(), curves={}, extremes=(), calibration=(), left_out={}, findings=()
    )
    bare = benchmark_html(alone)
    for part in ("backbones", "calibration", "left-out", "warnings"):
        assert f'id="{part}"' not in bare
    assert "nothing to count" in text
    rules.references_have_targets(Page(bare))


def test_pictures_are_part_of_the_page():
    source = to_data_url(Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)))
    shown = displayed_extremes(Leaderboard(light()))
    made = SampleImages({(one.exposure, one.row): source for one in shown})
    pictures = Page(benchmark_html(light(), images=made)).of("img")
    assert len(pictures) == len(shown)
    assert {a["src"] for a in pictures} == {source}
    said = Counter("predicted as" in a["alt"] for a in pictures)
    assert said[True] == sum(one.label != one.prediction for one in shown)
    assert np.array_equal(_read(source), np.arange(64).reshape(8, 8))


def _read(source):
    content = base64.b64decode(source.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(content)))


def _task(monkeypatch, load):
    monkeypatch.setitem(
        sys.modules, "abstain_bench.runs.loaded_task", SimpleNamespace(load_task=load)
    )


def test_pictures_are_those_that_the_networks_saw(monkeypatch):
    seen = np.zeros((60, 3, 8, 8), np.float32)
    seen[3, 1] = 2.0

    asked_for = []

    def load(task, folder, data, variation):
        assert (task, folder) == ("glyphs", "data")
        asked_for.append((data, variation))
        return SimpleNamespace(
            task_images=SimpleNamespace(exposures=(SimpleNamespace(key="iid"),)),
            preprocessing=SimpleNamespace(mean=(0.25, 0.25, 0.5), std=(0.25, 0.25, 0.1)),
            exposure_images=lambda exposure: SimpleNamespace(images={"iid": seen}[exposure.key]),
        )

    _task(monkeypatch, load)
    own = [replace(e, study="iid", method="msr") for e in light().extremes[:2]]
    asked = replace(own[0], exposure="iid", row=3), replace(own[1], exposure="gone")
    result = benchmark_pictures(replace(light(), extremes=asked), "glyphs", "data")
    # The first row stands for the study at the head of the page.
    assert list(result.sources) == [("iid", 0), ("iid", 3)]
    assert result.reason == "the task has no gone"
    # Two deviations of 0.25 above a mean of 0.25 in the second channel, the means in the others.
    levels = _read(result.sources["iid", 3])
    assert levels.shape == (8, 8, 3)
    assert np.unique(levels.reshape(-1, 3), axis=0).tolist() == [[64, 191, 128]]
    # Its rows are of what the run took of the files.
    said = {"data": Sizes(corrupted="all").to_dict(), "variation": {"name": "augmentation"}}
    results = replace(light(), extremes=asked)
    config = {**results.facts.get("config", {}), **said}
    benchmark_pictures(
        replace(results, facts={**results.facts, "config": config}), "glyphs", "data"
    )
    assert asked_for == [(None, None), (Sizes(corrupted="all"), {"name": "augmentation"})]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("there is no folder 'x'"), "cannot be read: there is no folder 'x'"),
        (ModuleNotFoundError("no torch", name="torch"), "torch is not installed (pip install"),
    ],
)
def test_without_the_data_the_page_says_why(monkeypatch, error, said):
    def load(task, folder, data, variation):
        raise error

    _task(monkeypatch, load)
    result = benchmark_pictures(light(), "glyphs")
    assert not result.sources
    assert said in result.reason
    assert said in "".join(Page(benchmark_html(light(), images=result)).text)


def test_the_leader_and_the_baseline_are_shown():
    for study in plain().headline:
        first = Leaderboard(plain()).leaders(study, max_methods=1)[0]
        names = {
            one.method
            for one in displayed_extremes(Leaderboard(plain()))
            if one.study == study.name
        }
        assert names == {first, "msr"}


def test_the_map_equals_that_of_the_pairs():
    data = study_split(plain().headline[0])
    square = SignificanceMapDisplay.from_comparison(plain().comparisons["augrc"], data=data)
    cells = {
        (row, column): plain_text(cell)
        for row, line in zip(square.methods, map_table(square).rows, strict=True)
        for column, cell in zip(square.methods, line.cells[1:], strict=True)
    }
    pairs = plain().comparisons["augrc"].pairs_of("augrc", data)
    both = {(p.better, ({p.first, p.second} - {p.better}).pop()) for p in pairs if p.better}
    assert {place for place, cell in cells.items() if cell == "+"} == both
    alike = sum(cell == "=" for cell in cells.values())
    assert alike == 2 * sum(not p.better for p in pairs)


# ----------------------------------------------------------------------------------- figures
def test_few_lines_and_the_baseline_among_them():
    many = made_results((*(f"method {i}" for i in range(12)), "msr"))
    board = Leaderboard(many)
    assert board.plotted_methods[0] == "msr" == board.baseline
    for study in many.headline:
        display = curve_display(board, study)
        assert len(display.names) in {4, 5}
        assert "msr" in display.names
        full = many.curves[study.name, "msr"].selective_risk[-1]
        assert display.level == {"": full}


def test_ranks_by_both_metrics():
    study = plain().headline[0]
    display = ranking_change(Leaderboard(plain()), study)
    for i, metric in enumerate(("aurc", "augrc")):
        known = plain().comparisons[metric].standings_of(metric, (("study", study.name),))
        assert {s.method: s.rank for s in known} == {m: r[i] for m, r in display.ranks.items()}
    assert ranking_change(Leaderboard(made_results(metrics=("augrc",))), study) is None


# ----------------------------------------------------------------------------------- verdict
def test_the_verdict_equals_that_of_the_tables():
    overall, leads, base = verdict_of(Leaderboard(plain()))
    grid = Leaderboard(plain()).grid("augrc")
    assert (
        f"By AUGRC, on i.i.d. data “{grid.methods_with_relation(grid.studies[0])[0]}” is best"
        in leads
    )
    wins = sum("msr" in grid.methods_with_relation(study) for study in grid.studies)
    ties = sum(
        "msr" in grid.methods_with_relation(study, "not told apart") for study in grid.studies
    )
    said = re.findall(r"in (?:(no|all)|(\d) of) ?", base)
    counts = [{"no": 0, "all": 4}.get(word, int(digit or 0)) for word, digit in said]
    assert counts == ([wins, ties] if ties else [wins])
    assert ties or wins == len(grid.studies) or base.endswith("that was tested.")
    first, rank = next(iter(Leaderboard(plain()).mean_rank_by_method("augrc").items()))
    (across,) = plain().comparisons["augrc"].mean_ranks
    assert overall.startswith(f"Over {across.blocks} studies “{first}” has the best mean rank")
    assert f"by AUGRC ({rank:.2f})" in overall
    near = {name for clique in across.cliques if first in clique for name in clique} - {first}
    said = f"; {len(near)} of 3 others are not significantly different by AUGRC (Nemenyi's test)."
    assert (said in overall) == bool(near)


def test_methods_that_share_the_best_mean_rank_are_both_named():
    own = plain().comparisons["augrc"]
    tied = replace(own.mean_ranks[0], mean_ranks=(1.5, 1.5, 3.0, 4.0))
    results = replace(plain(), comparisons={"augrc": replace(own, mean_ranks=(tied,))})
    first, second = tied.methods[:2]
    assert (
        f"“{first}” and “{second}” have the best mean rank" in verdict_of(Leaderboard(results))[0]
    )


def test_values_that_do_not_exist():
    gone = made_results(("msr", "pe", "knn"))
    comparison = gone.comparisons["augrc"]
    estimates = tuple(
        replace(e, value=math.nan, low=math.nan, high=math.nan) for e in comparison.estimates
    )
    undefined = replace(
        gone, comparisons={"augrc": replace(comparison, estimates=estimates, pairs=())}
    )
    text = "".join(Page(benchmark_html(replace(undefined, curves={}))).text)
    assert "nan" not in text.lower()
    assert "No method is best: AUGRC is equal for all methods." in text
    assert "is best in" not in text


def test_only_results_are_written(tmp_path):
    for write in (benchmark_html, lambda r: write_benchmark(r, tmp_path / "a.html")):
        with pytest.raises(InputError, match="what `results_of` returned; got dict"):
            write({})
    with pytest.raises(InputError, match="got str"):
        benchmark_html(plain(), other_models=["x"])
    assert not list(tmp_path.iterdir())


def test_same_results_same_page(tmp_path):
    path = write_benchmark(light(), tmp_path / "page.html", title="mine")
    assert path.read_text(encoding="utf-8") == benchmark_html(light(), title="mine")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
