"""Compute confidence scores from the output of a classifier, without labels.

The function `score` computes a score in the catalogue `SCORES` by name. Functions such as
`max_softmax_response` compute scores from arrays. The catalogue `FITTED` contains scores that must
be fitted to data. The function `fit` returns a `FittedScore`, which can be passed to `score`.
"""

from abstain.confidence.activations import (
    PrunedActivations,
    RectifiedActivations,
    ScaledActivations,
    ShapedActivations,
)
from abstain.confidence.combined import Combined, Ranked
from abstain.confidence.distances import Mahalanobis, RelativeMahalanobis
from abstain.confidence.energies import VirtualLogit
from abstain.confidence.entry import ConfidenceScore, Score, ScoreNeed
from abstain.confidence.fitted_kinds import FITTED, fit, from_arrays
from abstain.confidence.fitted_score import FitNeed, FittedKind, FittedScore, ScoreState
from abstain.confidence.logit_scores import (
    logit_margin,
    max_logit,
    negative_energy,
    normalized_max_logit,
)
from abstain.confidence.monte_carlo import (
    mean_max_logit,
    mean_softmax_response,
    negative_entropy_of_mean,
    negative_expected_entropy,
    negative_mutual_information,
    negative_softmax_deviation,
    penalized_softmax_response,
)
from abstain.confidence.neighbors import NeighborDistance
from abstain.confidence.patterns import StoredPatterns
from abstain.confidence.registry import SCORES, applicable, find_score, score
from abstain.confidence.softmax_scores import (
    max_softmax_response,
    negative_generalized_entropy,
    negative_gini,
    negative_predictive_entropy,
    probability_margin,
)
from abstain.confidence.tuned import ScoreCriterion, TunedNorm, TunedTemperature

__all__ = [
    "FITTED",
    "SCORES",
    "Combined",
    "ConfidenceScore",
    "FitNeed",
    "FittedKind",
    "FittedScore",
    "Mahalanobis",
    "NeighborDistance",
    "PrunedActivations",
    "Ranked",
    "RectifiedActivations",
    "RelativeMahalanobis",
    "ScaledActivations",
    "Score",
    "ScoreCriterion",
    "ScoreNeed",
    "ScoreState",
    "ShapedActivations",
    "StoredPatterns",
    "TunedNorm",
    "TunedTemperature",
    "VirtualLogit",
    "applicable",
    "find_score",
    "fit",
    "from_arrays",
    "logit_margin",
    "max_logit",
    "max_softmax_response",
    "mean_max_logit",
    "mean_softmax_response",
    "negative_energy",
    "negative_entropy_of_mean",
    "negative_expected_entropy",
    "negative_generalized_entropy",
    "negative_gini",
    "negative_mutual_information",
    "negative_predictive_entropy",
    "negative_softmax_deviation",
    "normalized_max_logit",
    "penalized_softmax_response",
    "probability_margin",
    "score",
]
