"""What is said over all data sets by ranks, where it differs from what the means say."""

import numpy as np
import pytest

from abstain._foundation.scored import Scored
from abstain.evaluation.comparison import (
    Blocks,
    MethodValues,
    Plan,
    RowWeights,
    ScoredRun,
    compare_across_data_sets,
)
from abstain.metrics import METRICS

PLAN = Plan(0.95)


def pairs_of(values, metric: str = "augrc", plan: Plan = PLAN):
    """The pairs of methods, one row of values for each data set."""
    nothing = Scored(np.zeros(1), np.zeros(1))
    parts = []
    for i, row in enumerate(np.asarray(values)):
        names = "abc"[: row.size]
        unit = ScoredRun(
            (("data", str(i)),), "", dict.fromkeys(names, nothing), None, None, None, None
        )
        parts.append(MethodValues(METRICS[metric], (unit,), row[None], RowWeights(None, None)))
    return compare_across_data_sets([Blocks(tuple(parts))], plan).pairs


def told_of(gaps, metric: str = "augrc"):
    """The only pair of two methods that differ by these gaps, one data set each."""
    (pair,) = pairs_of([(0.5 + gap, 0.5) for gap in gaps], metric)
    return pair


SMALL = [0.001 * i for i in range(1, 15)]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("metric", "lower"), [("augrc", True), ("failure_auroc", False)])
def test_one_large_gap_that_turns_the_mean_is_said(metric, lower, sign):
    pair = told_of([sign * gap for gap in (*SMALL, -0.4)], metric)
    assert sign * pair.difference < 0
    assert pair.better == ("b" if (sign > 0) == lower else "a")
    assert pair.note.startswith("a few large differences turn the mean")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_mean_on_the_side_of_the_ranks_needs_no_word(sign):
    pair = told_of([sign * gap for gap in (*SMALL, 0.4)])
    assert sign * pair.difference > 0
    assert (pair.better, pair.note) == ("b" if sign > 0 else "a", "")


def test_where_the_ranks_find_nothing_nothing_is_turned():
    # The ranks lean to one side by chance, the mean lies on the other.
    pair = told_of([*(-gap for gap in SMALL[:6]), *SMALL[6:12], -0.4])
    assert pair.difference < 0
    assert (pair.better, pair.note) == ("", "")


def test_so_few_data_sets_that_nothing_can_be_found_are_said_instead():
    pair = told_of([0.001, 0.002, 0.003, 0.004])
    assert pair.note == (
        "with 4 data sets, no difference can be significant, because the p-value is at least 0.125"
    )


@pytest.mark.parametrize(
    ("adjustment", "note"),
    [
        ("none", ""),
        (
            "holm",
            (
                "with 6 data sets, no difference can be significant, because the p-value, adjusted "
                "for 3 pairs, is at least 0.09375"
            ),
        ),
    ],
)
def test_that_nothing_can_be_found_counts_the_pairs_that_are_adjusted_for(adjustment, note):
    # Six signs that agree have p = 2 / 2^6 = 0.03125: enough alone, not three times.
    rows = [(0.5 + gap, 0.5, 0.5 - gap) for gap in SMALL[:6]]
    pairs = pairs_of(rows, plan=Plan(0.95, adjustment=adjustment))
    assert [pair.note for pair in pairs] == [note] * 3
