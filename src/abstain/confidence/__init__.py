"""Confidence scoring functions: from predictions to one number a sample, higher is more trusted.

No label is looked at. By name through `score`, `applicable` and the catalogue `SCORES`; on
plain arrays through the functions.
"""

from abstain.confidence._entry import ConfidenceScore as ConfidenceScore
from abstain.confidence._entry import Need as Need
from abstain.confidence._entry import Score as Score
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
from abstain.confidence.registry import SCORES as SCORES
from abstain.confidence.registry import applicable as applicable
from abstain.confidence.registry import find as find
from abstain.confidence.registry import score as score
from abstain.confidence.softmax_scores import max_softmax_response as max_softmax_response
from abstain.confidence.softmax_scores import negative_gini as negative_gini
from abstain.confidence.softmax_scores import (
    negative_predictive_entropy as negative_predictive_entropy,
)
from abstain.confidence.softmax_scores import probability_margin as probability_margin

__all__ = [
    "SCORES",
    "ConfidenceScore",
    "Need",
    "Score",
    "applicable",
    "find",
    "max_logit",
    "max_softmax_response",
    "mean_max_logit",
    "mean_softmax_response",
    "negative_energy",
    "negative_entropy_of_mean",
    "negative_expected_entropy",
    "negative_gini",
    "negative_mutual_information",
    "negative_predictive_entropy",
    "negative_softmax_deviation",
    "normalized_max_logit",
    "probability_margin",
    "score",
]
