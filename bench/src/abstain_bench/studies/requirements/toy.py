"""Twenty predictions ranked by three scores, of which the AURC prefers the wrong one (figure 2)."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from abstain.curves import RiskCoverageCurve, generalized_risk_coverage_curve, risk_coverage_curve
from abstain.metrics import augrc, aurc, failure_auroc
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.plots.series import Series, SeriesDisplay
from abstain.typing import BoolArray, FloatArray, IntArray
from abstain_bench.studies._tables import Row
from abstain_bench.studies.requirements.closed_forms import rank_contributions
from abstain_bench.studies.requirements.systems import ROUNDING

#: Samples, and failures of the better classifier.
N: Final = 20
FAILURES: Final = 4

_CONFIDENCE: Final = np.arange(N, 0, -1)


def toy_orders() -> dict[str, BoolArray]:
    """Find three orders of which accuracy and failure AUROC say one thing and the AURC another.

    CSF-1 and CSF-2 have one accuracy and one failure AUROC, and of all such pairs the largest
    difference of AURC, CSF-1 the higher one. CSF-3 is worse than CSF-1 in accuracy and failure
    AUROC, yet its AURC is lower: of all such orders with one failure more that of the highest
    AUGRC. The orders of the paper are a picture only, so these are looked for.
    """
    first, second = _furthest_apart(_orders(FAILURES))
    third = _praised(_orders(FAILURES + 1), first)
    return {"CSF-1": first, "CSF-2": second, "CSF-3": third}


def _orders(failures: int) -> BoolArray:
    """Return all orders of N samples with so many failures, one a row."""
    places = np.array(list(combinations(range(N), failures)))
    out = np.zeros((len(places), N), dtype=np.bool_)
    out[np.arange(len(places))[:, None], places] = True
    return out


def _won(orders: BoolArray) -> IntArray:
    """Return the pairs in which the success is the more confident one."""
    return np.asarray((np.cumsum(~orders, axis=1) * orders).sum(axis=1))


def _areas(orders: BoolArray, metric: str) -> FloatArray:
    return np.asarray(orders @ rank_contributions(N, metric))


def _furthest_apart(orders: BoolArray) -> tuple[BoolArray, BoolArray]:
    won, value = _won(orders), _areas(orders, AURC.name)
    ends = []
    for pairs in np.unique(won):
        rows = np.flatnonzero(won == pairs)
        ends.append((int(rows[np.argmax(value[rows])]), int(rows[np.argmin(value[rows])])))
    high, low = max(ends, key=lambda pair: value[pair[0]] - value[pair[1]])
    return orders[high], orders[low]


def _praised(orders: BoolArray, than: BoolArray) -> BoolArray:
    """Return the worst order that is below another one in failure AUROC and in AURC."""
    fewer = _won(than[None])[0] / (than.sum() * (N - than.sum()))
    more = _won(orders) / (orders[0].sum() * (N - orders[0].sum()))
    lower = _areas(orders, AURC.name) < _areas(than[None], AURC.name)[0] - ROUNDING
    allowed = np.flatnonzero(lower & (more < fewer))
    return np.asarray(orders[allowed[np.argmax(_areas(orders[allowed], DEFAULT_METRIC))]])


def toy_rows() -> list[dict[str, Any]]:
    """Return the three orders and what is said of them."""
    return [
        {
            "score": name,
            "order": "".join("x" if wrong else "o" for wrong in order),
            "share_right": float(1 - order.mean()),
            "failure_AUROC": failure_auroc(_CONFIDENCE, order),
            "AURC": aurc(_CONFIDENCE, order),
            "AUGRC": augrc(_CONFIDENCE, order),
        }
        for name, order in toy_orders().items()
    ]


def toy_figure(rows: Sequence[Row]) -> SeriesDisplay:
    """Draw both risks of the three scores against coverage."""
    lines = []
    for panel, curve in (
        ("Selective risk: its area is the AURC", risk_coverage_curve),
        ("Generalized risk: its area is the AUGRC", generalized_risk_coverage_curve),
    ):
        for row in rows:
            wrong = [letter == "x" for letter in row["order"]]
            drawn: RiskCoverageCurve = curve(_CONFIDENCE, wrong)
            x, y = (np.asarray(v, dtype=float) for v in (drawn.coverage, drawn.risk))
            lines.append(Series(row["score"], tuple(x), tuple(y), panel=panel))
    title = f"{N} predictions ranked by three scores: both risks against coverage"
    return SeriesDisplay(tuple(lines), title, "Coverage", "Risk", log_x=False)


def toy_said(rows: Sequence[Row]) -> str:
    """Say what the two areas make of the three scores."""
    first, second, third = rows
    return (
        f"Of {N} predictions with {FAILURES} failures and a failure AUROC of "
        f"{first['failure_AUROC']:.3f} the AURC is {first['AURC']:.3f} or {second['AURC']:.3f}, "
        f"the AUGRC {first['AUGRC']:.3f} for both. The AURC even falls to {third['AURC']:.3f} "
        f"where accuracy ({third['share_right']:.2f} for {first['share_right']:.2f}) and failure "
        f"AUROC ({third['failure_AUROC']:.3f}) are worse; the AUGRC rises to {third['AUGRC']:.3f}."
    )
