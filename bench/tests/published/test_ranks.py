"""Ranks in published tables: how equal numbers are ranked, and from which numbers."""

import numpy as np
import polars as pl

from abstain.inference.ranking import ranks
from abstain_bench import published


def numbers_of(table):
    """Read a published table; `value` is the printed value as a number."""
    rows = [dict(row) for row in published.table(table)]
    return pl.DataFrame(rows).with_columns(pl.col("value").cast(float))


def test_ranks_in_published_tables_are_the_lowest_of_equal_ones():
    value, rank = (numbers_of(f"fd_shifts_table_{i}") for i in (1, 11))
    key = ["dataset", "study", "classifier"]
    both = value.join(rank, on=[*key, "printed"], suffix="_rank")
    assert len(both) == 483
    agree = mean_ranks = 0
    for _, column in both.group_by(key):
        printed, expected = column["value"].to_numpy(), column["value_rank"].to_numpy()
        ours = ranks(printed, lower_is_better=True)
        equal = (printed[:, None] == printed).sum(axis=1)
        agree += int((ours - (equal - 1) / 2 == expected).sum())
        mean_ranks += int((ours == expected).sum())
    # One cell is a tie at the printed precision only.
    assert agree == 482
    assert mean_ranks < 440


def test_ranks_in_published_tables_are_of_the_numbers_as_printed():
    value, rank = (numbers_of(f"augrc_table_{i}") for i in (3, 4))
    rank = rank.filter((pl.col("metric") == "augrc") & (pl.col("block") == "both by AUGRC"))
    both = value.join(rank, on=["dataset", "study", "printed"], suffix="_rank")
    for _, column in both.group_by(["dataset", "study"]):
        printed, ranked = column["value"].to_numpy(), column["value_rank"].to_numpy()
        np.testing.assert_array_equal(printed[:, None] == printed, ranked[:, None] == ranked)
