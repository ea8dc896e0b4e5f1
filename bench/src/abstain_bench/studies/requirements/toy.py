"""Twenty predictions ranked by three scores, for which AURC prefers a worse system (figure 2)."""

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

#: Numbers of samples, and of failures of the better classifier.
N_SAMPLES: Final = 20
N_FAILURES: Final = 4

_CONFIDENCE: Final = np.arange(N_SAMPLES, 0, -1)


def find_toy_orders() -> dict[str, BoolArray]:
    """Find three orders for which AURC contradicts accuracy and failure AUROC.

    CSF-1 and CSF-2 have equal accuracy and equal failure AUROC. Of all such pairs, they have the
    largest difference of AURC, with CSF-1 higher. CSF-3 has one failure more, a lower failure AUROC
    and a lower AURC than CSF-1; of all such orders, it has the highest AUGRC. The paper shows its
    orders as an image only, so they cannot be copied.
    """
    first, second = _find_largest_difference(_all_orders(N_FAILURES))
    third = _find_preferred_order(_all_orders(N_FAILURES + 1), first)
    return {"CSF-1": first, "CSF-2": second, "CSF-3": third}


def _all_orders(n_failures: int) -> BoolArray:
    """Return all orders with this number of failures, one in each row."""
    positions = np.array(list(combinations(range(N_SAMPLES), n_failures)))
    orders = np.zeros((len(positions), N_SAMPLES), dtype=np.bool_)
    orders[np.arange(len(positions))[:, None], positions] = True
    return orders


def _count_ordered_pairs(orders: BoolArray) -> IntArray:
    """Return the number of pairs in which the success is more confident than the failure."""
    return np.asarray((np.cumsum(~orders, axis=1) * orders).sum(axis=1))


def _failure_aurocs(orders: BoolArray) -> FloatArray:
    """Return the failure AUROC of orders with equal numbers of failures."""
    n_failures = orders[0].sum()
    return np.asarray(_count_ordered_pairs(orders) / (n_failures * (N_SAMPLES - n_failures)))


def _areas(orders: BoolArray, metric: str) -> FloatArray:
    return np.asarray(orders @ rank_contributions(N_SAMPLES, metric))


def _find_largest_difference(orders: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return the two orders of equal failure AUROC with the largest difference of AURC."""
    n_ordered_pairs, areas = _count_ordered_pairs(orders), _areas(orders, AURC.name)
    extremes = []
    for count in np.unique(n_ordered_pairs):
        rows = np.flatnonzero(n_ordered_pairs == count)
        extremes.append((int(rows[np.argmax(areas[rows])]), int(rows[np.argmin(areas[rows])])))
    high, low = max(extremes, key=lambda pair: areas[pair[0]] - areas[pair[1]])
    return orders[high], orders[low]


def _find_preferred_order(orders: BoolArray, reference: BoolArray) -> BoolArray:
    """Return the order with the highest AUGRC among those preferred to a reference by AURC only.

    These orders have a lower AURC and a lower failure AUROC than the reference.
    """
    has_lower_auroc = _failure_aurocs(orders) < _failure_aurocs(reference[None])[0]
    reference_area = _areas(reference[None], AURC.name)[0]
    has_lower_area = _areas(orders, AURC.name) < reference_area - ROUNDING
    candidates = orders[has_lower_auroc & has_lower_area]
    return np.asarray(candidates[np.argmax(_areas(candidates, DEFAULT_METRIC))])


def toy_rows() -> list[dict[str, Any]]:
    """Return the three orders with their metrics."""
    return [
        {
            "score": name,
            "order": "".join("x" if is_failure else "o" for is_failure in order),
            "accuracy": float(1 - order.mean()),
            "failure_AUROC": failure_auroc(_CONFIDENCE, order),
            "AURC": aurc(_CONFIDENCE, order),
            "AUGRC": augrc(_CONFIDENCE, order),
        }
        for name, order in find_toy_orders().items()
    ]


def toy_figure(rows: Sequence[Row]) -> SeriesDisplay:
    """Plot both risks of the three scores against coverage."""
    lines = []
    for panel, compute_curve in (
        ("Selective risk: its area is the AURC", risk_coverage_curve),
        ("Generalized risk: its area is the AUGRC", generalized_risk_coverage_curve),
    ):
        for row in rows:
            is_failure = [letter == "x" for letter in row["order"]]
            curve: RiskCoverageCurve = compute_curve(_CONFIDENCE, is_failure)
            coverage = tuple(np.asarray(curve.coverage, dtype=float))
            risk = tuple(np.asarray(curve.risk, dtype=float))
            lines.append(Series(row["score"], coverage, risk, panel=panel))
    title = f"{N_SAMPLES} predictions ranked by three scores: both risks against coverage"
    return SeriesDisplay(tuple(lines), title, "Coverage", "Risk", log_x=False)


def conclude_toy(rows: Sequence[Row]) -> str:
    """Compare the two areas of the three scores."""
    first, second, third = rows
    return (
        f"For {N_SAMPLES} predictions with {N_FAILURES} failures and a failure AUROC of "
        f"{first['failure_AUROC']:.3f}, two rankings have an AURC of {first['AURC']:.3f} and "
        f"{second['AURC']:.3f}, and both an AUGRC of {first['AUGRC']:.3f}. A system with worse "
        f"accuracy ({third['accuracy']:.2f} instead of {first['accuracy']:.2f}) and failure AUROC "
        f"({third['failure_AUROC']:.3f}) has a lower AURC ({third['AURC']:.3f}) but a higher AUGRC "
        f"({third['AUGRC']:.3f})."
    )
