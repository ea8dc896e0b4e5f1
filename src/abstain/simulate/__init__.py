"""Simulated populations with known true values, for testing estimators and intervals."""

from abstain.simulate.beta_scores import beta_scores as beta_scores
from abstain.simulate.blocks import block_scores as block_scores
from abstain.simulate.blocks import confident_when_correct as confident_when_correct
from abstain.simulate.blocks import uniform_confidence as uniform_confidence
from abstain.simulate.by_rank import oracle_order as oracle_order
from abstain.simulate.by_rank import random_order as random_order
from abstain.simulate.by_rank import rank_scores as rank_scores
from abstain.simulate.by_rank import two_sele_counterexample as two_sele_counterexample
from abstain.simulate.catalogue import POPULATIONS as POPULATIONS
from abstain.simulate.catalogue import make as make
from abstain.simulate.confidence_weighted import expected_cwsa as expected_cwsa
from abstain.simulate.confidence_weighted import expected_cwsa_plus as expected_cwsa_plus
from abstain.simulate.continuous_loss import continuous_loss as continuous_loss
from abstain.simulate.gaussians import gaussian_scores as gaussian_scores
from abstain.simulate.gaussians import two_class_logits as two_class_logits
from abstain.simulate.gaussians import two_gaussians as two_gaussians
from abstain.simulate.logits import LabeledLogits as LabeledLogits
from abstain.simulate.logits import LogitPopulation as LogitPopulation
from abstain.simulate.logits import Truth as Truth
from abstain.simulate.logits import logits as logits
from abstain.simulate.population import Population as Population
from abstain.simulate.population import PopulationEntry as PopulationEntry
from abstain.simulate.population import Sample as Sample
from abstain.simulate.risk_curve import TOLERANCE as TOLERANCE
from abstain.simulate.tied import cut as cut
from abstain.simulate.tied import discrete_scores as discrete_scores
from abstain.simulate.tied import saturate as saturate

__all__ = [
    "POPULATIONS",
    "TOLERANCE",
    "LabeledLogits",
    "LogitPopulation",
    "Population",
    "PopulationEntry",
    "Sample",
    "Truth",
    "beta_scores",
    "block_scores",
    "confident_when_correct",
    "continuous_loss",
    "cut",
    "discrete_scores",
    "expected_cwsa",
    "expected_cwsa_plus",
    "gaussian_scores",
    "logits",
    "make",
    "oracle_order",
    "random_order",
    "rank_scores",
    "saturate",
    "two_class_logits",
    "two_gaussians",
    "two_sele_counterexample",
    "uniform_confidence",
]
