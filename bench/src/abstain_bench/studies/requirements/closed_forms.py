"""Eq. 7 of the AUGRC, eq. 11 of the F1-AUC with its turning point, and what ranks contribute."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from abstain.metrics import f1_auc, sample_contributions
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.catalogue import DEFAULT_METRIC, POPULATION_AREA_METRIC
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.surface import SurfaceDisplay
from abstain.typing import FloatArray
from abstain_bench.studies.requirements.systems import ROUNDING, all_systems

#: Where curves over the accuracy are drawn.
_ACCURACIES: Final = np.linspace(0.01, 1.0, 100)

#: Sample sizes whose best F1-AUC is looked for.
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
    """Return the accuracy at which that is largest, and how large it is there.

    With s = a/(1 + a) its slope is 0 where 4 s = e^s, so s = -W(-1/4), and the maximum is 2 s.

    Examples
    --------
    >>> [round(x, 6) for x in turning_point()]
    [0.556185, 0.714806]
    """
    from scipy.special import lambertw

    s = -float(lambertw(-0.25).real)
    return s / (1 - s), 2 * s


def turning_rows(sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """Return where the best F1-AUC of n samples is largest, and what a perfect classifier has."""
    exact, most = turning_point()
    rows = []
    for n in sizes:
        best = _best_of(n)
        at = int(np.argmax(best))
        rows.append(_turning_row(n, (at + 1) / n, float(best[at]), float(best[-1])))
    return [*rows, _turning_row(None, exact, most, float(best_f1_auc(1.0)))]


def _turning_row(
    n: int | None, accuracy: float, largest: float, all_right: float
) -> dict[str, Any]:
    return {"n": n, "share_right": accuracy, "F1-AUC_there": largest, "F1-AUC_all_right": all_right}


def _best_of(n: int) -> FloatArray:
    """Return the F1-AUC of perfect rankings of n samples, 1 to n of them right."""
    confidence, places = np.arange(n, 0, -1), np.arange(n)
    return np.array([f1_auc(confidence, places >= right) for right in range(1, n + 1)])


def f1_figure(sizes: Sequence[int] = SIZES) -> SeriesDisplay:
    """Draw the best F1-AUC against the accuracy."""
    exact = Series("eq. 11, large samples", tuple(_ACCURACIES), tuple(best_f1_auc(_ACCURACIES)))
    lines = [exact]
    for n in sizes[:2]:
        right = np.arange(1, n + 1) / n
        lines.append(Series(f"{n} samples", tuple(right), tuple(_best_of(n))))
    accuracy, most = turning_point()
    lines.append(Series(f"turning point, {accuracy:.4f}", (accuracy,), (most,)))
    title = "F1-AUC of perfect rankings: the best classifier is no longer the best from 0.56 on"
    return SeriesDisplay(tuple(lines), title, "Accuracy", "F1-AUC", log_x=False)


# ------------------------------------------------------------------------------------------- eq. 7
def from_factors(accuracy: FloatArray | float, ranking: FloatArray | float) -> FloatArray:
    """Return the AUGRC that follows from accuracy and failure AUROC (eq. 7).

    Examples
    --------
    >>> from_factors(0.9, [0.5, 0.8, 1.0]).round(4).tolist()
    [0.05, 0.023, 0.005]
    """
    a, u = np.asarray(accuracy, dtype=np.float64), np.asarray(ranking, dtype=np.float64)
    return np.asarray((1 - u) * a * (1 - a) + (1 - a) ** 2 / 2)


def surface() -> SurfaceDisplay:
    """Draw eq. 7 and its two terms over accuracy and failure AUROC."""
    a, u = np.linspace(0.5, 0.99, 50), np.linspace(0.5, 0.99, 50)
    best = from_factors(a[None, :], np.ones((u.size, 1)))
    whole = from_factors(a[None, :], u[:, None])
    return SurfaceDisplay(
        a,
        u,
        {"AUGRC (eq. 7)": whole, "Ranking term": whole - best, "Classifier term": best},
        "AUGRC from accuracy and failure AUROC: better wherever either is",
        "Accuracy",
        "Failure AUROC",
        "AUGRC",
        log_y=False,
    )


def unexplained(n: int) -> dict[str, float]:
    """Return how much AUGRC and AURC differ over all orders of one accuracy and failure AUROC.

    The AUGRC by rounding only, from eq. 7; of the AURC the largest range, over its least.
    """
    systems = all_systems(n)
    rows = np.flatnonzero(systems.both)
    accuracy = 1 - systems.failures[rows] / n
    pairs = systems.failures[rows] * (n - systems.failures[rows])
    above = (np.cumsum(~systems.wrong[rows], axis=1) * systems.wrong[rows]).sum(axis=1)
    generalized, selective = (
        systems.wrong[rows] @ rank_contributions(n, name) for name in (DEFAULT_METRIC, AURC.name)
    )
    off = np.abs(generalized - from_factors(accuracy, above / pairs)).max()
    key = systems.failures[rows] * (n * n) + above
    equal = [selective[key == k] for k in np.unique(key)]
    return {"AUGRC": float(off), "AURC": max(float(v.max() / v.min() - 1) for v in equal)}


# --------------------------------------------------------------------------------------- per rank
def rank_contributions(n: int, metric: str) -> FloatArray:
    """Return what a failure at each place adds to an area, the most confident place first."""
    return np.asarray(sample_contributions(np.arange(n, 0, -1), np.ones(n), metric=metric))


def contribution_rows(n: int) -> list[dict[str, Any]]:
    """Return what one failure adds by its place, of n samples (A.1.1, figure 2a)."""
    augrc, trapezoid, plugin = (
        rank_contributions(n, name) for name in (DEFAULT_METRIC, AURC.name, POPULATION_AREA_METRIC)
    )
    return [
        {
            "place": k + 1,
            "AUGRC": float(augrc[k]),
            "AURC": float(trapezoid[k]),
            "AURC_plug-in": float(plugin[k]),
            "as_the_paper_writes_AUGRC": (n - k) / n**2,
        }
        for k in range(n)
    ]


def contribution_figure(rows: Sequence[dict[str, Any]]) -> SeriesDisplay:
    """Draw what one failure adds by its place."""
    places = tuple(float(row["place"]) for row in rows)
    lines = [Series(name, places, tuple(row[name] for row in rows)) for name in ("AUGRC", "AURC")]
    title = "What one failure adds, by its place: linear in the AUGRC, harmonic in the AURC"
    return SeriesDisplay(
        tuple(lines), title, "Place, most confident first", "Added by one failure", log_x=False
    )


def spread_said(found: dict[str, float], n: int) -> str:
    """Say what accuracy and failure AUROC tell of the two areas."""
    same = "nothing but rounding" if found["AUGRC"] < ROUNDING else f"{found['AUGRC']:.2g}"
    return (
        f"Accuracy and failure AUROC give the AUGRC (eq. 7): over all orders of {n} samples "
        f"{same} is left. Of equal both, the AURC of one order is up to "
        f"{100 * found['AURC']:.0f} % above that of another."
    )
