"""A benchmark as several pages: they lead to each other, and the first says it in one screen."""

import posixpath
from functools import cache

import numpy as np
import pytest
from bench.tests.pages.made_benchmark import made_results
from tests.report import page_rules as rules
from tests.report.pages import HOSTILE, Page

from abstain.report import SampleImages
from abstain_bench.pages import benchmark_site
from abstain_bench.pages.benchmark.front import best_method, summary_sentences
from abstain_bench.pages.benchmark.leaderboard import Leaderboard
from abstain_bench.pages.benchmark.output import benchmark_html
from abstain_bench.pages.benchmark.pictures import example_image


@cache
def results():
    return made_results()


@cache
def site():
    return {name: Page(text) for name, text in benchmark_site(results(), command="it").items()}


def test_the_pages_are_the_first_the_methods_and_one_a_study():
    studies = [f"pages/study-{i}.html" for i in range(1, len(results().headline) + 1)]
    assert list(site()) == ["benchmark.html", "pages/methods.html", *studies]


def test_every_link_leads_to_a_place_that_is_there():
    for address, page in site().items():
        links = {a["href"] for a in page.of("a")} | {o["value"] for o in page.of("option")}
        inside = [link for link in links if "#" in link and not link.startswith("http")]
        assert inside
        for link in inside:
            to, _, anchor = link.partition("#")
            home = posixpath.normpath(posixpath.join(posixpath.dirname(address), to or "x"))
            target = site()[home] if to else page
            assert anchor in target.ids, (address, link)


def test_each_study_is_reached_from_the_first_page_and_leads_back():
    links = {a["href"] for a in site()["benchmark.html"].of("a")}
    assert {f"pages/study-{i}.html#study-{i}" for i in range(1, 5)} <= links
    assert "pages/methods.html#tables" in links
    back = {a["href"] for a in site()["pages/study-2.html"].of("a")}
    assert {"../benchmark.html#glance", "methods.html#tables"} <= back


def test_the_pages_are_safe_and_load_nothing():
    hostile = made_results(HOSTILE, own=HOSTILE[0], model=HOSTILE[2], words=HOSTILE[1])
    for text in benchmark_site(hostile, title=HOSTILE[0], notes=HOSTILE).values():
        page = Page(text)
        rules.no_attack_is_evaluated_or_steers(page)
        rules.headings_are_in_order(page)


def test_the_first_page_is_short():
    home, whole = (len(t) for t in (benchmark_site(results())["benchmark.html"], one_page()))
    assert home < whole / 3


@cache
def one_page():
    return benchmark_html(results())


def test_the_sentences_have_the_numbers_of_the_results():
    board = Leaderboard(results())
    best = best_method(board)
    means = board.mean_rank_by_method("augrc")
    assert means[best] == min(means.values())
    text = " ".join(summary_sentences(board))
    assert f"“{best}” has the best mean rank: {means[best]:.2f} of 4" in text
    curve = results().curves["iid", best]
    wrong = np.interp(0.8, curve.coverage, curve.selective_risk)
    assert (
        f"{100 * round(wrong, 2):g}% of its accepted answers are wrong on images from the" in text
    )


def test_rows_stand_by_their_mean_ranks():
    board = Leaderboard(results())
    means = board.mean_rank_by_method("augrc")
    order = sorted(means, key=means.get)
    text = benchmark_site(results())["pages/methods.html"]
    table = text[text.index('id="metric-0"') :]
    places = [table.index(f">{name}</a>") for name in order]
    assert places == sorted(places)


def test_a_picture_of_each_study_heads_the_page():
    shown = SampleImages(
        {example_image(study): "data:image/png;base64,AA" for study in results().headline}
    )
    text = benchmark_site(results(), images=shown)["benchmark.html"]
    assert text.count("<img ") == len(results().headline)
    assert text.index("<img ") < text.index('<svg class="plot')


@pytest.mark.parametrize("metrics", [("failure_auroc",), ()])
def test_a_metric_that_ranks_nothing_has_a_first_page_too(metrics):
    assert "Data and settings" in benchmark_site(made_results(metrics=metrics))["benchmark.html"]
