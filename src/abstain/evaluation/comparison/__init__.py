"""The engine of comparison: methods on the same samples, one data set after the other, then all."""

from abstain.evaluation.comparison.record import Comparison
from abstain.evaluation.comparison.rows import (
    MEAN,
    AcrossData,
    Aggregate,
    Agreement,
    BandOf,
    Estimate,
    Footing,
    Improvement,
    NonInferiority,
    PairedDifference,
    Profile,
    Stability,
    Standing,
    against,
    best_first,
    best_of,
    footings,
)

__all__ = [
    "MEAN",
    "AcrossData",
    "Aggregate",
    "Agreement",
    "BandOf",
    "Comparison",
    "Estimate",
    "Footing",
    "Improvement",
    "NonInferiority",
    "PairedDifference",
    "Profile",
    "Stability",
    "Standing",
    "against",
    "best_first",
    "best_of",
    "footings",
]
