"""Compute closed forms of the AUGRC and the F1-AUC, and a toy example."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from abstain.curves import RiskCoverageCurve, generalized_risk_coverage_curve, risk_coverage_curve
from abstain.metrics import augrc, aurc, f1_auc, failure_auroc, sample_contributions
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.catalogue import DEFAULT_METRIC, POPULATION_AREA_METRIC
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.surface import SurfaceDisplay
from abstain.typing import BoolArray, FloatArray, IntArray
from abstain_bench.studies._area_estimators import augrc_from_factors
from abstain_bench.studies._display import Row
from abstain_bench.studies.requirements.systems import ROUNDING, all_systems

#: Accuracies at which eq. 11 is plotted.
_ACCURACIES: Final = np.linspace(0.01, 1.0, 100)

#: Sample sizes for which the largest F1-AUC is computed.
_SIZES: Final = (7, 20, 100, 1000)


# ------------------------------------------------------------------------------------------ eq. 11
def best_f1_auc(accuracy: FloatArray | float) -> FloatArray:
    """Compute the F1-AUC of a perfect ranking in the limit of large samples, equation 11.

    Examples
    --------
    >>> best_f1_auc([0.25, 0.5562, 1.0]).round(4).tolist()
    [0.6116, 0.7148, 0.6137]
    """
    a = np.asarray(accuracy, dtype=np.float64)
    return np.asarray(2 * a * (1 + np.log((1 + a) / (4 * a))))


def turning_point() -> tuple[float, float]:
    """Compute the accuracy that maximizes eq. 11, and the maximum.

    For s = a/(1 + a), the derivative is 0 if 4 s = e^s. The maximum is 2 s.

    Examples
    --------
    >>> [round(x, 6) for x in turning_point()]
    [0.556185, 0.714806]
    """
    from scipy.special import lambertw

    # The solution of 4 s = e^s is given by the Lambert W function.
    s = -float(lambertw(-0.25).real)
    return s / (1 - s), 2 * s


def turning_point_rows() -> list[dict[str, Any]]:
    """Return a row with the accuracy that maximizes the F1-AUC, by sample size."""
    rows = []
    for n in _SIZES:
        values = _best_f1_aucs(n)
        index = int(np.argmax(values))
        rows.append(_turning_point_row(n, (index + 1) / n, float(values[index]), float(values[-1])))
    accuracy, maximum = turning_point()
    return [*rows, _turning_point_row(None, accuracy, maximum, float(best_f1_auc(1.0)))]


def _turning_point_row(
    n: int | None, accuracy: float, maximum: float, without_failures: float
) -> dict[str, Any]:
    return {
        "n": n,
        "accuracy": accuracy,
        "max_F1-AUC": maximum,
        "F1-AUC_without_failures": without_failures,
    }


def _best_f1_aucs(n: int) -> FloatArray:
    """Compute the F1-AUC of perfect rankings of n samples with 1 to n successes."""
    confidence = np.arange(n, 0, -1)
    rank = np.arange(n)
    return np.array([f1_auc(confidence, rank >= n_successes) for n_successes in range(1, n + 1)])


def f1_figure() -> SeriesDisplay:
    """Plot the F1-AUC of a perfect ranking against accuracy."""
    lines = [Series("eq. 11, large samples", tuple(_ACCURACIES), tuple(best_f1_auc(_ACCURACIES)))]
    for n in _SIZES[:2]:
        accuracies = np.arange(1, n + 1) / n
        lines.append(Series(f"{n} samples", tuple(accuracies), tuple(_best_f1_aucs(n))))
    accuracy, maximum = turning_point()
    lines.append(Series(f"turning point, {accuracy:.4f}", (accuracy,), (maximum,)))
    title = "F1-AUC of perfect rankings: it decreases with the accuracy above 0.56"
    return SeriesDisplay(tuple(lines), title, "Accuracy", "F1-AUC", log_x=False)


# ------------------------------------------------------------------------------------------- eq. 7
def surface() -> SurfaceDisplay:
    """Plot eq. 7 and its two terms by accuracy and failure AUROC."""
    accuracy = np.linspace(0.5, 0.99, 50)
    failure_auroc = np.linspace(0.5, 0.99, 50)
    classifier_term = augrc_from_factors(accuracy[None, :], np.ones((failure_auroc.size, 1)))
    total = augrc_from_factors(accuracy[None, :], failure_auroc[:, None])
    return SurfaceDisplay(
        accuracy,
        failure_auroc,
        {
            "AUGRC (eq. 7)": total,
            "Ranking term": total - classifier_term,
            "Classifier term": classifier_term,
        },
        "AUGRC by accuracy and failure AUROC: it improves with both",
        "Accuracy",
        "Failure AUROC",
        "AUGRC",
        log_y=False,
    )


def areas_at_equal_factors(n: int) -> dict[str, float]:
    """Measure how much AUGRC and AURC vary if accuracy and failure AUROC are fixed.

    Returns
    -------
    dict
        "AUGRC" is the largest absolute difference from the closed form. "AURC" is the largest
        relative difference between two orders.
    """
    systems = all_systems(n)
    rows = np.flatnonzero(systems.has_ranking)
    is_failure = systems.is_failure[rows]
    n_failures = systems.n_failures[rows]
    n_ordered_pairs = (np.cumsum(~is_failure, axis=1) * is_failure).sum(axis=1)
    failure_auroc = n_ordered_pairs / (n_failures * (n - n_failures))
    augrc = is_failure @ rank_contributions(n, DEFAULT_METRIC)
    aurc = is_failure @ rank_contributions(n, AURC.name)
    augrc_difference = np.abs(augrc - augrc_from_factors(1 - n_failures / n, failure_auroc)).max()
    factor_key = n_failures * (n * n) + n_ordered_pairs
    groups = [aurc[factor_key == key] for key in np.unique(factor_key)]
    return {
        "AUGRC": float(augrc_difference),
        "AURC": max(float(group.max() / group.min() - 1) for group in groups),
    }


# --------------------------------------------------------------------------------------- by rank
def rank_contributions(n: int, metric: str) -> FloatArray:
    """Return the contribution of a failure at each rank to an area, most confident rank first."""
    return np.asarray(sample_contributions(np.arange(n, 0, -1), np.ones(n), metric=metric))


def contribution_rows(n: int) -> list[dict[str, Any]]:
    """Return a row with the contribution of a failure to each area by rank (figure 2a)."""
    contributions = {
        "AUGRC": rank_contributions(n, DEFAULT_METRIC),
        "AURC": rank_contributions(n, AURC.name),
        "AURC_plug-in": rank_contributions(n, POPULATION_AREA_METRIC),
        "AUGRC_by_formula_of_paper": (n - np.arange(n)) / n**2,
    }
    return [
        {"rank": k + 1, **{name: float(values[k]) for name, values in contributions.items()}}
        for k in range(n)
    ]


def contribution_figure(rows: Sequence[Row]) -> SeriesDisplay:
    """Plot the contribution of a failure to each area against its rank."""
    ranks = tuple(float(row["rank"]) for row in rows)
    lines = [Series(name, ranks, tuple(row[name] for row in rows)) for name in ("AUGRC", "AURC")]
    return SeriesDisplay(
        tuple(lines),
        "Contribution of one failure by its rank: linear for AUGRC, harmonic for AURC",
        "Rank, most confident first",
        "Contribution of one failure",
        log_x=False,
    )


def conclude_equal_factors(variation: dict[str, float], n: int) -> str:
    """Report how much the areas vary if accuracy and failure AUROC are fixed."""
    if variation["AUGRC"] < ROUNDING:
        difference = "without any difference but rounding"
    else:
        difference = f"up to a difference of {variation['AUGRC']:.2g}"
    return (
        f"Accuracy and failure AUROC determine the AUGRC (eq. 7) for all orders of {n} samples, "
        f"{difference}. The AURC of two orders with equal accuracy and failure AUROC differs by up "
        f"to {100 * variation['AURC']:.0f}%."
    )


#: Number of samples of the toy example, and number of failures of the better classifier.
N_SAMPLES: Final = 20
N_FAILURES: Final = 4

_CONFIDENCE: Final = np.arange(N_SAMPLES, 0, -1)


def find_toy_orders() -> dict[str, BoolArray]:
    """Find three systems for which the AURC contradicts both accuracy and failure AUROC.

    CSF-1 and CSF-2 have equal accuracy and failure AUROC, but the largest difference in AURC. CSF-3
    is worse than CSF-1 in accuracy and failure AUROC but has a lower AURC; among such systems, it
    has the highest AUGRC. The systems in the paper cannot be used, because they are published only
    as an image.
    """
    first, second = _find_largest_difference(_all_orders(N_FAILURES))
    third = _find_preferred_order(_all_orders(N_FAILURES + 1), first)
    return {"CSF-1": first, "CSF-2": second, "CSF-3": third}


def _all_orders(n_failures: int) -> BoolArray:
    """Return all orders of samples with `n_failures` failures, one per row."""
    positions = np.array(list(combinations(range(N_SAMPLES), n_failures)))
    orders = np.zeros((len(positions), N_SAMPLES), dtype=np.bool_)
    orders[np.arange(len(positions))[:, None], positions] = True
    return orders


def _count_ordered_pairs(orders: BoolArray) -> IntArray:
    """Count the pairs in which a success has a higher confidence than a failure."""
    return np.asarray((np.cumsum(~orders, axis=1) * orders).sum(axis=1))


def _failure_aurocs(orders: BoolArray) -> FloatArray:
    """Compute the failure AUROC of each order; all orders must have equally many failures."""
    n_failures = orders[0].sum()
    return np.asarray(_count_ordered_pairs(orders) / (n_failures * (N_SAMPLES - n_failures)))


def _areas(orders: BoolArray, metric: str) -> FloatArray:
    return np.asarray(orders @ rank_contributions(N_SAMPLES, metric))


def _find_largest_difference(orders: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return the two orders with equal failure AUROC and the largest difference in AURC."""
    n_ordered_pairs = _count_ordered_pairs(orders)
    areas = _areas(orders, AURC.name)
    largest_difference = -np.inf
    for count in np.unique(n_ordered_pairs):
        rows = np.flatnonzero(n_ordered_pairs == count)
        highest = rows[np.argmax(areas[rows])]
        lowest = rows[np.argmin(areas[rows])]
        difference = areas[highest] - areas[lowest]
        if difference > largest_difference:
            largest_difference = difference
            pair = orders[highest], orders[lowest]
    return pair


def _find_preferred_order(orders: BoolArray, reference: BoolArray) -> BoolArray:
    """Find the order with the highest AUGRC among those with lower failure AUROC and lower AURC."""
    has_lower_auroc = _failure_aurocs(orders) < _failure_aurocs(reference[None])[0]
    reference_area = _areas(reference[None], AURC.name)[0]
    has_lower_area = _areas(orders, AURC.name) < reference_area - ROUNDING
    candidates = orders[has_lower_auroc & has_lower_area]
    return np.asarray(candidates[np.argmax(_areas(candidates, DEFAULT_METRIC))])


def toy_rows() -> list[dict[str, Any]]:
    """Return a row with the metrics of each system of the toy example."""
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
    """Plot selective and generalized risk against coverage for the toy example."""
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
    """Compare AURC and AUGRC of the three systems of the toy example."""
    first, second, third = rows
    return (
        f"For {N_SAMPLES} predictions with {N_FAILURES} failures and a failure AUROC of "
        f"{first['failure_AUROC']:.3f}, two rankings have an AURC of {first['AURC']:.3f} and "
        f"{second['AURC']:.3f}, and both an AUGRC of {first['AUGRC']:.3f}. A system with worse "
        f"accuracy ({third['accuracy']:.2f} instead of {first['accuracy']:.2f}) and failure AUROC "
        f"({third['failure_AUROC']:.3f}) has a lower AURC ({third['AURC']:.3f}) but a higher AUGRC "
        f"({third['AUGRC']:.3f})."
    )
