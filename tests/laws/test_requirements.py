"""The requirements R1 to R5 of Traub et al. (2024), decided over every order of right and wrong."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from abstain._foundation.scored import scored
from abstain.metrics import METRICS, Need, failure_auroc

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| `(\w+)` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$",
    (ROOT / "docs" / "choosing-a-metric.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)

SIZE = 7
CONFIDENCE = np.linspace(0.9, 0.3, SIZE)
#: Every order of right and wrong, most confident first; the definitions need some of both.
ORDERS = [o for o in itertools.product((0, 1), repeat=SIZE) if 0 < sum(o) < SIZE]
ROUNDING = 1e-9


def badness(name):
    """The metric of every order, lower is better."""
    metric = METRICS[name]
    sign = 1 if metric.lower_is_better else -1
    return np.array(
        [sign * metric.compute(scored(CONFIDENCE, np.array(o, float))).value for o in ORDERS]
    )


ACCURACY = np.array([1 - sum(o) / SIZE for o in ORDERS])
RANKING = np.array([failure_auroc(CONFIDENCE, o) for o in ORDERS])


def judges_the_classifier(value):
    perfect = [value[ORDERS.index((0,) * (SIZE - k) + (1,) * k)] for k in range(1, SIZE)]
    return bool((np.diff(perfect) > ROUNDING).all())


def is_monotone(value):
    worse = value[:, None] - value > ROUNDING
    accuracy, ranking = ACCURACY[:, None] - ACCURACY, RANKING[:, None] - RANKING
    more_accurate = (np.abs(ranking) < ROUNDING) & (accuracy > ROUNDING)
    better_ranked = (np.abs(accuracy) < ROUNDING) & (ranking > ROUNDING)
    return not (worse & (more_accurate | better_ranked)).any()


def counts_pairs_alike(value):
    look, gains = dict(zip(ORDERS, value, strict=True)), {}
    for order in ORDERS:
        for i in range(SIZE - 1):
            if order[i : i + 2] == (1, 0):
                mended = (*order[:i], 0, 1, *order[i + 2 :])
                gains.setdefault(sum(order), []).append(look[order] - look[mended])
    return all(np.ptp(g) < ROUNDING and min(g) > ROUNDING for g in gains.values())


def said(answer):
    return "yes" if answer else "no"


def test_the_page_has_every_area_over_all_thresholds():
    families = {"area", "ranking"}
    areas = {m for m, e in METRICS.items() if e.family in families and e.rank_based and not e.needs}
    assert {name for name, *_ in ROWS} >= areas - {"aurc_ba", "augrc_ba"}
    assert len(ROWS) >= 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_table_says_what_holds(row):
    name, *told = row
    value, needs = badness(name), METRICS[name].needs
    found = (
        judges_the_classifier(value),
        is_monotone(value),
        counts_pairs_alike(value),
        not needs & {Need.UNIT_CONFIDENCE, Need.PROBABILITIES},
        Need.BINARY_LOSS not in needs,
    )
    assert told == [said(answer) for answer in found]
