"""The requirements R1 to R5 of Traub et al. (2024), decided over every order of right and wrong."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from abstain._foundation.scored import scored
from abstain.metrics import METRICS, Need, failure_auroc

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "choosing-a-metric.md").read_text(encoding="utf-8")
#: Metric, seven answers, and what the paper says it breaks.
ROWS = [
    (name, *answers.split(" | "), said)
    for name, answers, said in re.findall(
        r"^\| `(\w+)` \| ((?:(?:yes|no) \| ){6}(?:yes|no)) \| ([^|]+) \|$", PAGE, re.MULTILINE
    )
]
#: Where the page says that the paper decides otherwise, and what is found here.
DIFFERENCES = set(re.findall(r"^\| `(\w+)` \| (R\d) \| (yes|no) \|", PAGE, re.MULTILINE))

#: What Traub et al. (2024, section 2.4) say a metric breaks, by how its paragraph begins.
PAPER = {
    "AURC": "R2 R3",
    "e-AURC": "R2 R3 R5",
    "NLL / Brier Score": "R2 R4",
    "AUROC": "R1 R2 R5",
    "OC-AUC": "R1 R2 R5",
    "AUROC-AURC": "R2 R3 R5",
    "NAURC": "R2 R3",
    "F1-AUC": "R2 R5",
    "ARC": "R2 R3",
}
#: Our metrics that are theirs.
THEIRS = {
    "aurc": "AURC",
    "aurc_plugin": "AURC",
    "aurc_log": "AURC",
    "e_aurc": "e-AURC",
    "normalized_aurc": "NAURC",
    "auarc": "ARC",
    "f1_auc": "F1-AUC",
    "failure_auroc": "AUROC",
}

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


def is_monotone(value, *, strictly):
    accuracy, ranking = ACCURACY[:, None] - ACCURACY, RANKING[:, None] - RANKING
    more_accurate = (np.abs(ranking) < ROUNDING) & (accuracy > ROUNDING)
    better_ranked = (np.abs(accuracy) < ROUNDING) & (ranking > ROUNDING)
    worsening = (value[:, None] - value)[more_accurate | better_ranked]
    return bool((worsening < -ROUNDING if strictly else worsening <= ROUNDING).all())


def counts_pairs_alike(value):
    look, gains = dict(zip(ORDERS, value, strict=True)), {}
    for order in ORDERS:
        for i in range(SIZE - 1):
            if order[i : i + 2] == (1, 0):
                mended = (*order[:i], 0, 1, *order[i + 2 :])
                gains.setdefault(sum(order), []).append(look[order] - look[mended])
    return all(np.ptp(g) < ROUNDING and min(g) > ROUNDING for g in gains.values())


def counts_the_size(name):
    """Whether the loss of one failure moves it: 0.3 or 0.6, beside others of 1 and 0."""
    graded = [np.array([0, 1, 0, size, 0, 0, 1.0]) for size in (0.3, 0.6)]
    first, second = (METRICS[name].compute(scored(CONFIDENCE, loss)).value for loss in graded)
    return abs(first - second) > ROUNDING


def said(answer):
    return "yes" if answer else "no"


def test_the_page_has_every_area_over_all_thresholds():
    families = {"area", "ranking"}
    areas = {m for m, e in METRICS.items() if e.family in families and e.rank_based and not e.needs}
    assert {name for name, *_ in ROWS} >= areas - {"aurc_ba", "augrc_ba"}
    assert len(ROWS) >= 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_table_says_what_holds(row):
    name, *told, _ = row
    value, needs = badness(name), METRICS[name].needs
    taken = Need.BINARY_LOSS not in needs
    found = (
        judges_the_classifier(value),
        is_monotone(value, strictly=False),
        is_monotone(value, strictly=True),
        counts_pairs_alike(value),
        not needs & {Need.UNIT_CONFIDENCE, Need.PROBABILITIES},
        taken,
        taken and counts_the_size(name),
    )
    assert told == [said(answer) for answer in found]


def test_the_verdicts_of_the_paper_stand_beside_ours():
    told = {name: verdict for name, *_, verdict in ROWS}
    expected = {name: PAPER[theirs] for name, theirs in THEIRS.items()} | {"augrc": "-"}
    assert {name for name, verdict in told.items() if verdict != "not judged"} == expected.keys()
    assert {name: told[name] for name in expected} == expected


def test_every_place_where_the_paper_decides_otherwise_is_told():
    found = set()
    for name, r1, _, r2, r3, r4, _, r5, verdict in ROWS:
        if verdict != "not judged":
            strictly = dict(zip(("R1", "R2", "R3", "R4", "R5"), (r1, r2, r3, r4, r5), strict=True))
            found |= {
                (name, requirement, answer)
                for requirement, answer in strictly.items()
                if (answer == "no") != (requirement in verdict)
            }
    assert found == DIFFERENCES


def test_the_verdicts_are_those_of_the_text(shared):
    text = (shared / "papers" / "traub2024_augrc_full.txt").read_text(encoding="utf-8")
    text = text[text.index("2.4 Current multi-threshold") : text.index("\n3 Area under")]
    text = text[text.index("\nAURC:") :]
    starts = sorted((re.search(rf"(?:\n|[.)] ){name}: ", text).start(), name) for name in PAPER)
    ends = [start for start, _ in starts[1:]] + [len(text)]
    for (start, name), end in zip(starts, ends, strict=True):
        found = sorted(set(re.findall(r"R[1-5]", text[start:end])))
        assert " ".join(found) == PAPER[name], name
