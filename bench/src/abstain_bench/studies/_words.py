"""Names and meanings that the studies of the area under the risk-coverage curve share."""

from dataclasses import dataclass
from typing import Final

PAPER: Final = "https://arxiv.org/abs/2410.15361"


@dataclass(frozen=True)
class AreaEstimator:
    """An estimator of an area, as the studies know it."""

    #: What people read.
    title: str
    #: For the glossary.
    meaning: str = ""
    #: The area whose true value it is measured against.
    target: str = "aurc"
    #: Whether it goes to that as the sample grows.
    consistent: bool = True


#: By the names that scripts use; their order is that of their colors in every figure.
AREA_ESTIMATORS: Final = {
    "plugin": AreaEstimator(
        "plug-in",
        "Weights H_n - H_{n-r}, harmonic numbers, for the rank r among n: the mean selective risk "
        "over all n coverages.",
    ),
    "log": AreaEstimator("log", "Weights -ln(1 - r/(n + 1))."),
    "monte-carlo": AreaEstimator(
        "Monte-Carlo",
        "Weights -ln(1 - u) averaged over sampled population ranks of the n samples; with endless "
        "draws they are those of the plug-in.",
    ),
    "trapezoid": AreaEstimator(
        "trapezoid",
        "Straight lines between the distinct thresholds, flat to coverage 0, as FD-Shifts computes "
        "it.",
    ),
    "sele": AreaEstimator(
        "SELE", "Weights r/n: they converge to AUGRC, not to AURC.", consistent=False
    ),
    "2sele": AreaEstimator(
        "2 x SELE", "Twice SELE, proposed as an upper bound of AURC.", consistent=False
    ),
    "augrc": AreaEstimator("AUGRC (vs AUGRC)", target="augrc"),
}

ESTIMATOR_TITLES: Final = {name: e.title for name, e in AREA_ESTIMATORS.items()}
COLORS: Final = tuple(ESTIMATOR_TITLES.values())

WORDS: Final = {
    "AURC": (
        "Area under the selective risk over coverage: the mean loss of the accepted, averaged over "
        "all coverages. In a population E[loss x -ln(1 - u)]."
    ),
    "AUGRC": (
        "Area under the generalized risk over coverage: E[loss x u]. Another number than AURC; its "
        "estimator is measured against its own true value."
    ),
    "Rank u": "The share of the population whose confidence is at most that of a sample, 0 to 1.",
    **{e.title: e.meaning for e in AREA_ESTIMATORS.values() if e.meaning},
    "Bias": "Mean of the estimates minus the true value.",
    "SD": "Standard deviation of the estimates over repeated samples.",
    "MSE": "Mean squared error: squared bias plus variance.",
    "RMSE": "Square root of the mean squared error, in units of the number itself.",
    "MAE": "Mean absolute error.",
    "Scale": "u/(n(1 - u) + 1): the size of the squared error of a weight away from u = 1.",
    "±": "The Monte-Carlo standard error of a number: how far a run with another seed may be.",
    "CSF": "Confidence scoring function: how confidence is computed from the class scores.",
}


def loss_said(loss: str) -> str:
    """Write the name of a loss as people read it."""
    return {"zero_one": "0/1 error", "cross_entropy": "cross-entropy", "own": "own loss"}.get(
        loss, loss
    )
