"""Estimators of the area under the risk-coverage curve: titles, targets and glossary."""

from dataclasses import dataclass
from typing import Final

PAPER_URL: Final = "https://arxiv.org/abs/2410.15361"


@dataclass(frozen=True)
class AreaEstimator:
    """An estimator of an area, and the true value that it is compared with."""

    title: str
    #: Definition for the glossary.
    meaning: str = ""
    #: Name of the area whose true value is the reference.
    target: str = "aurc"
    #: Whether the estimate converges to the target as the sample grows.
    consistent: bool = True


#: Estimators by name. Their order is the order of their colors in every figure.
AREA_ESTIMATORS: Final = {
    "plugin": AreaEstimator(
        "plug-in",
        "Weights H_n - H_{n-r} with the harmonic numbers H, for the sample of rank r among n: the "
        "mean selective risk over all n coverages.",
    ),
    "log": AreaEstimator("log", "Weights -ln(1 - r/(n + 1))."),
    "monte-carlo": AreaEstimator(
        "Monte-Carlo",
        "Weights -ln(1 - u), averaged over sampled population ranks u of the n samples. They "
        "converge to the plug-in weights as the number of draws grows.",
    ),
    "trapezoid": AreaEstimator(
        "trapezoid",
        "Linear interpolation between the distinct thresholds, with constant risk down to "
        "coverage 0, as in FD-Shifts.",
    ),
    "sele": AreaEstimator(
        "SELE", "Weights r/n. They converge to the AUGRC, not to the AURC.", consistent=False
    ),
    "2sele": AreaEstimator(
        "2 x SELE", "Twice SELE, proposed as an upper bound of the AURC.", consistent=False
    ),
    "augrc": AreaEstimator("AUGRC (vs AUGRC)", target="augrc"),
}

#: Estimators that converge to another number than the AURC.
INCONSISTENT: Final = frozenset(name for name, e in AREA_ESTIMATORS.items() if not e.consistent)

ESTIMATOR_TITLES: Final = {name: e.title for name, e in AREA_ESTIMATORS.items()}
COLOR_ORDER: Final = tuple(ESTIMATOR_TITLES.values())

GLOSSARY: Final = {
    "AURC": (
        "Area under the selective risk-coverage curve: the mean loss of the accepted samples, "
        "averaged over all coverages. Population value: E[loss x -ln(1 - u)]."
    ),
    "AUGRC": (
        "Area under the generalized risk-coverage curve: E[loss x u]. It differs from the AURC, so "
        "its estimator is compared with the true AUGRC."
    ),
    "Rank u": "Share of the population with a confidence of at most that of the sample, 0 to 1.",
    **{e.title: e.meaning for e in AREA_ESTIMATORS.values() if e.meaning},
    "Bias": "Mean of the estimates minus the true value.",
    "SD": "Standard deviation of the estimates over repeated samples.",
    "MSE": "Mean squared error: squared bias plus variance.",
    "RMSE": "Square root of the mean squared error, in the unit of the estimate.",
    "MAE": "Mean absolute error.",
    "Scale": "u/(n(1 - u) + 1): the order of the squared error of a weight if u is not near 1.",
    "±": "Monte-Carlo standard error: the standard deviation over runs with different seeds.",
    "CSF": "Confidence scoring function: computes the confidence from the class scores.",
}

_LOSS_TITLES: Final = {
    "zero_one": "0/1 error",
    "cross_entropy": "cross-entropy",
    "own": "own loss",
}


def loss_title(loss: str) -> str:
    """Return the title of a loss for figures and sentences."""
    return _LOSS_TITLES.get(loss, loss)
