"""Closed forms: AUGRC (eq. 7), F1-AUC (eq. 11), and contributions of failures by rank."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from abstain.metrics import f1_auc, sample_contributions
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.catalogue import DEFAULT_METRIC, POPULATION_AREA_METRIC
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.surface import SurfaceDisplay
from abstain.typing import FloatArray
from abstain_bench.studies._tables import Row
from abstain_bench.studies.requirements.systems import ROUNDING, all_systems

#: Accuracies at which curves are drawn.
_ACCURACIES: Final = np.linspace(0.01, 1.0, 100)

#: Sample sizes for which the largest F1-AUC is computed.
SIZES: Final = (7, 20, 100, 1000)


# ------------------------------------------------------------------------------------------ eq. 11
def best_f1_auc(accuracy: FloatArray | float) -> FloatArray:
    """Return the F1-AUC of a perfect ranking in large samples (eq. 11).

    Examples
    --------
    >>> best_f1_auc([0.25, 0.5562, 1.0]).round(4).tolist()
    [0.6116, 0.7148, 0.6137]
    """
    a = np.asarray(accuracy, dtype=np.float64)
    return np.asarray(2 * a * (1 + np.log((1 + a) / (4 * a))))


def turning_point() -> tuple[float, float]:
    """Return the accuracy that maximizes the F1-AUC of a perfect ranking, and the maximum.

    With s = a/(1 + a), the derivative is 0 for 4 s = e^s, so s = -W(-1/4), and the maximum is 2 s.

    Examples
    --------
    >>> [round(x, 6) for x in turning_point()]
    [0.556185, 0.714806]
    """
    from scipy.special import lambertw

    s = -float(lambertw(-0.25).real)
    return s / (1 - s), 2 * s


def turning_point_rows(sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """Return the accuracy with the largest F1-AUC by sample size; the last row is eq. 11."""
    rows = []
    for n in sizes:
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
    """Return the F1-AUC of perfect rankings with 1 to n successes among n samples."""
    confidence, positions = np.arange(n, 0, -1), np.arange(n)
    return np.array(
        [f1_auc(confidence, positions >= n_successes) for n_successes in range(1, n + 1)]
    )


def f1_figure(sizes: Sequence[int] = SIZES) -> SeriesDisplay:
    """Plot the F1-AUC of a perfect ranking against the accuracy."""
    lines = [Series("eq. 11, large samples", tuple(_ACCURACIES), tuple(best_f1_auc(_ACCURACIES)))]
    for n in sizes[:2]:
        accuracies = np.arange(1, n + 1) / n
        lines.append(Series(f"{n} samples", tuple(accuracies), tuple(_best_f1_aucs(n))))
    accuracy, maximum = turning_point()
    lines.append(Series(f"turning point, {accuracy:.4f}", (accuracy,), (maximum,)))
    title = "F1-AUC of perfect rankings: it decreases with the accuracy above 0.56"
    return SeriesDisplay(tuple(lines), title, "Accuracy", "F1-AUC", log_x=False)


# ------------------------------------------------------------------------------------------- eq. 7
def augrc_from_factors(
    accuracy: FloatArray | float, failure_auroc: FloatArray | float
) -> FloatArray:
    """Compute the AUGRC from accuracy and failure AUROC (eq. 7).

    Examples
    --------
    >>> augrc_from_factors(0.9, [0.5, 0.8, 1.0]).round(4).tolist()
    [0.05, 0.023, 0.005]
    """
    a, u = np.asarray(accuracy, dtype=np.float64), np.asarray(failure_auroc, dtype=np.float64)
    return np.asarray((1 - u) * a * (1 - a) + (1 - a) ** 2 / 2)


def surface() -> SurfaceDisplay:
    """Plot eq. 7 and its two terms over accuracy and failure AUROC."""
    accuracy, failure_auroc = np.linspace(0.5, 0.99, 50), np.linspace(0.5, 0.99, 50)
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
    """Return how much AUGRC and AURC vary over the orders with equal accuracy and failure AUROC.

    "AUGRC" is the largest difference from eq. 7, and "AURC" the largest relative difference.
    """
    systems = all_systems(n)
    rows = np.flatnonzero(systems.has_ranking)
    is_failure, n_failures = systems.is_failure[rows], systems.n_failures[rows]
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
    """Return the contribution of a failure at each rank to an area, most confident first."""
    return np.asarray(sample_contributions(np.arange(n, 0, -1), np.ones(n), metric=metric))


def contribution_rows(n: int) -> list[dict[str, Any]]:
    """Return the contribution of one failure among n samples by its rank (A.1.1, figure 2a)."""
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
    """Plot the contribution of one failure against its rank."""
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
    """Report how much the areas vary at equal accuracy and failure AUROC."""
    difference = (
        "without any difference but rounding"
        if variation["AUGRC"] < ROUNDING
        else f"up to a difference of {variation['AUGRC']:.2g}"
    )
    return (
        f"Accuracy and failure AUROC determine the AUGRC (eq. 7) for all orders of {n} samples, "
        f"{difference}. The AURC of two orders with equal accuracy and failure AUROC differs by up "
        f"to {100 * variation['AURC']:.0f}%."
    )
