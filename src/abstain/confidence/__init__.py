"""Confidence scoring functions: from predictions to one number a sample, higher is more trusted.

No label is looked at. By name through `score`, `applicable` and the catalogue `SCORES`; on
plain arrays through the functions. Scores that need fitting are in the catalogue `FITTED`:
``fit`` makes a `FittedScore` of one, which `score` takes in place of a name.
"""

from abstain.confidence.combined import Combined as Combined
from abstain.confidence.energies import RectifiedActivations as RectifiedActivations
from abstain.confidence.energies import VirtualLogit as VirtualLogit
from abstain.confidence.entry import ConfidenceScore as ConfidenceScore
from abstain.confidence.entry import Need as Need
from abstain.confidence.entry import Score as Score
from abstain.confidence.fitted import FitNeed as FitNeed
from abstain.confidence.fitted import FittedKind as FittedKind
from abstain.confidence.fitted import FittedScore as FittedScore
from abstain.confidence.fitted import Scorer as Scorer
from abstain.confidence.fitting import FITTED as FITTED
from abstain.confidence.fitting import fit as fit
from abstain.confidence.fitting import from_arrays as from_arrays
from abstain.confidence.gaussian import Mahalanobis as Mahalanobis
from abstain.confidence.gaussian import RelativeMahalanobis as RelativeMahalanobis
from abstain.confidence.logit_scores import logit_margin as logit_margin
from abstain.confidence.logit_scores import max_logit as max_logit
from abstain.confidence.logit_scores import negative_energy as negative_energy
from abstain.confidence.logit_scores import normalized_max_logit as normalized_max_logit
from abstain.confidence.monte_carlo import mean_max_logit as mean_max_logit
from abstain.confidence.monte_carlo import mean_softmax_response as mean_softmax_response
from abstain.confidence.monte_carlo import negative_entropy_of_mean as negative_entropy_of_mean
from abstain.confidence.monte_carlo import negative_expected_entropy as negative_expected_entropy
from abstain.confidence.monte_carlo import (
    negative_mutual_information as negative_mutual_information,
)
from abstain.confidence.monte_carlo import (
    negative_softmax_deviation as negative_softmax_deviation,
)
from abstain.confidence.neighbors import NeighborDistance as NeighborDistance
from abstain.confidence.ranked import Ranked as Ranked
from abstain.confidence.registry import SCORES as SCORES
from abstain.confidence.registry import applicable as applicable
from abstain.confidence.registry import find as find
from abstain.confidence.registry import score as score
from abstain.confidence.search import ScoreCriterion as ScoreCriterion
from abstain.confidence.softmax_scores import max_softmax_response as max_softmax_response
from abstain.confidence.softmax_scores import (
    negative_generalized_entropy as negative_generalized_entropy,
)
from abstain.confidence.softmax_scores import negative_gini as negative_gini
from abstain.confidence.softmax_scores import (
    negative_predictive_entropy as negative_predictive_entropy,
)
from abstain.confidence.softmax_scores import probability_margin as probability_margin
from abstain.confidence.tuned import TunedNorm as TunedNorm
from abstain.confidence.tuned import TunedTemperature as TunedTemperature

__all__ = [
    "FITTED",
    "SCORES",
    "Combined",
    "ConfidenceScore",
    "FitNeed",
    "FittedKind",
    "FittedScore",
    "Mahalanobis",
    "Need",
    "NeighborDistance",
    "Ranked",
    "RectifiedActivations",
    "RelativeMahalanobis",
    "Score",
    "ScoreCriterion",
    "Scorer",
    "TunedNorm",
    "TunedTemperature",
    "VirtualLogit",
    "applicable",
    "find",
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
    "probability_margin",
    "score",
]
