"""The tables of a comparison of dozens of methods: what is read, and where the rest is."""

from dataclasses import replace

from tests.plots.comparisons import made_up

from abstain.report.subjects.comparison.place import Place
from abstain.report.subjects.comparison.tables import chances_tables, pairs_table
from abstain.report.subjects.comparison.tables import tested as by_test


def rows(table):
    return [row for group in table.groups for row in group.rows]


def test_of_many_methods_the_tables_have_what_is_read():
    """The pairs of the leader, and no column for each rank; all of it is in the results."""
    methods = tuple(f"method {i}" for i in range(30))
    comparison = made_up(methods, metrics=("augrc",), data=((),), spread=2.0)
    place = Place(comparison, "augrc", ())
    for pairs in by_test(place):
        table = pairs_table(place, pairs)
        named = [{row.cells[0], row.cells[1]} for row in rows(table)]
        both = 1 if pairs[0].valid else 2
        assert len(named) == 29 * both < len(pairs) == 435 * both
        assert all(place.best[0] in pair for pair in named)
        assert (
            f"Of {435 * both} pairs these are the {29 * both} of “{place.best[0]}”" in table.caption
        )
    (chances,) = chances_tables(place)
    assert len(chances.columns) == 4
    assert "“standings”" in chances.caption
    assert {len(row.cells) for row in rows(chances)} == {4}
    few = made_up(methods[:25], metrics=("augrc",), data=((),))
    place = Place(few, "augrc", ())
    assert len(rows(pairs_table(place, place.pairs))) == 300
    assert len(chances_tables(place)[0].columns) == 29


def test_all_together_the_leader_is_the_first_by_rank():
    methods = tuple(f"method {i}" for i in range(30))
    comparison = made_up(methods, metrics=("augrc",))
    first = comparison.standings_of("augrc", None)[0]
    assert Place(comparison, "augrc", None).leader == first.method
    bare = replace(comparison, standings=())
    assert Place(bare, "augrc", None).leader == comparison.across[0].methods[0]
