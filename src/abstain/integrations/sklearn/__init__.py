"""A scikit-learn classifier that abstains, and scorers for selective classification.

>>> from abstain.integrations.sklearn import SelectiveClassifier, augrc_scorer
"""

from abstain.integrations.sklearn._answers import SelectivePrediction as SelectivePrediction
from abstain.integrations.sklearn.classifier import SelectiveClassifier as SelectiveClassifier
from abstain.integrations.sklearn.scorers import RuleScorer as RuleScorer
from abstain.integrations.sklearn.scorers import SelectiveScorer as SelectiveScorer
from abstain.integrations.sklearn.scorers import augrc_scorer as augrc_scorer
from abstain.integrations.sklearn.scorers import aurc_scorer as aurc_scorer
from abstain.integrations.sklearn.scorers import coverage_scorer as coverage_scorer
from abstain.integrations.sklearn.scorers import e_aurc_scorer as e_aurc_scorer
from abstain.integrations.sklearn.scorers import failure_auroc_scorer as failure_auroc_scorer
from abstain.integrations.sklearn.scorers import (
    generalized_risk_scorer as generalized_risk_scorer,
)
from abstain.integrations.sklearn.scorers import make_selective_scorer as make_selective_scorer
from abstain.integrations.sklearn.scorers import selective_risk_scorer as selective_risk_scorer

__all__ = [
    "RuleScorer",
    "SelectiveClassifier",
    "SelectivePrediction",
    "SelectiveScorer",
    "augrc_scorer",
    "aurc_scorer",
    "coverage_scorer",
    "e_aurc_scorer",
    "failure_auroc_scorer",
    "generalized_risk_scorer",
    "make_selective_scorer",
    "selective_risk_scorer",
]
