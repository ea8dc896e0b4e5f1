"""The tables of a comparison of dozens of methods: what is read, and where the rest is."""

from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

from tests.plots.comparisons import made_up

from abstain.evaluation.comparison import (
    PairedDifference,
    best_methods,
    compute_relations_to_best,
    pairs_with_best,
)
from abstain.plots import RankBlobDisplay
from abstain.report.document import Figure
from abstain.report.render.html import figure_svg
from abstain.report.subjects.comparison.metric_result import MetricResult
from abstain.report.subjects.comparison.tables import pairs_by_test as by_test
from abstain.report.subjects.comparison.tables import pairs_table, rank_probability_tables


def rows(table):
    return [row for group in table.groups for row in group.rows]


def test_of_many_methods_the_tables_have_what_is_read():
    """The pairs of the leader, and no column for each rank; all of it is in the results."""
    methods = tuple(f"method {i}" for i in range(30))
    comparison = made_up(methods, metrics=("augrc",), data=((),), spread=2.0)
    place = MetricResult(comparison, "augrc", ())
    for pairs in by_test(place):
        table = pairs_table(place, pairs)
        named = [{row.cells[0], row.cells[1]} for row in rows(table)]
        both = 1 if pairs[0].valid else 2
        assert len(named) == 29 * both < len(pairs) == 435 * both
        assert all(place.best_methods[0] in pair for pair in named)
        assert f"only the {29 * both} pairs with “{place.best_methods[0]}”" in table.caption
    (chances,) = rank_probability_tables(place)
    assert len(chances.columns) == 4
    assert "“standings”" in chances.caption
    assert {len(row.cells) for row in rows(chances)} == {4}
    few = made_up(methods[:25], metrics=("augrc",), data=((),))
    place = MetricResult(few, "augrc", ())
    assert len(rows(pairs_table(place, place.pairs))) == 300
    assert len(rank_probability_tables(place)[0].columns) == 29


def test_all_together_the_leader_is_the_first_by_rank():
    methods = tuple(f"method {i}" for i in range(30))
    comparison = made_up(methods, metrics=("augrc",))
    first = comparison.standings_of("augrc", None)[0]
    assert MetricResult(comparison, "augrc", None).leader == first.method
    bare = replace(comparison, standings=())
    assert MetricResult(bare, "augrc", None).leader == comparison.mean_ranks[0].methods[0]


def test_the_best_is_held_against_all_in_one_look_at_the_pairs():
    """Of 200 methods there are 20,000 pairs: nothing may read them once a method."""
    methods = tuple(f"method {i}" for i in range(30))
    comparison = made_up(methods, metrics=("augrc",), data=((),), spread=2.0)
    estimates, pairs = comparison.estimates_of("augrc", ()), comparison.pairs_of("augrc", ())
    seen = []
    stands = compute_relations_to_best(estimates, (seen.append(pair) or pair for pair in pairs))
    assert len(seen) == len(pairs) == 435
    best = best_methods(estimates)[0]
    for method in methods:
        if method != best:
            (pair,) = (p for p in pairs if {p.first, p.second} == {method, best})
            assert stands[method] == ("worse" if pair.better == best else "not told apart")
            assert pairs_with_best(pairs, best)[method] is pair


def test_of_two_one_sided_tests_the_lead_of_the_best_counts():
    pairs = [PairedDifference("augrc", (), *both, -0.1) for both in (("b", "a"), ("a", "b"))]
    for given in (pairs, pairs[::-1]):
        assert pairs_with_best(given, "a") == {"b": pairs[1]}
    assert pairs_with_best(pairs[:1], "a") == {"b": pairs[0]}
    assert pairs_with_best(pairs, "c") == {}


def test_the_copies_of_a_mark_say_their_look_once():
    """Of 65 methods there are thousands of blobs, whose looks would be most of a figure."""
    methods = tuple(f"method {i}" for i in range(30))
    comparison = made_up(methods, metrics=("augrc",), data=((),), spread=2.0)
    display = RankBlobDisplay.from_comparison(comparison)
    svg = figure_svg(Figure("figure-1", "Ranks", display))
    tree = ET.fromstring(f'<page xmlns:xlink="xlink">{svg}</page>')
    styles = Counter()
    for parent in tree.iter():
        for mark in (*parent.findall("use"), *parent.findall("path")):
            own = mark.get("style")
            styles[own or parent.get("style"), own is None] += 1
    blobs = "fill: var(--score-0); fill-opacity: 0.45"
    drawn = sum(chance > 0 for s in display.standings for chance in s.rank_probabilities)
    assert styles[blobs, True] + styles[blobs, False] == drawn > 300
    # Sizes that only one blob has.
    assert styles[blobs, False] < 50
    assert not [use for use in svg.split("<use") if "clip-path" in use.split("/>")[0]]
