"""Cascades: small models, larger models and a person answer samples, with a guarantee."""

from abstain.thresholds.cascade.capacity import daily_share
from abstain.thresholds.cascade.check import check_decisions
from abstain.thresholds.cascade.data import CascadeData
from abstain.thresholds.cascade.plan import CascadePlan
from abstain.thresholds.cascade.record import Cascade
from abstain.thresholds.cascade.search import CascadeFrontier, compute_frontier, select_cascade
from abstain.thresholds.cascade.stage import ERROR, PERSON, CascadeStage

__all__ = [
    "ERROR",
    "PERSON",
    "Cascade",
    "CascadeData",
    "CascadeFrontier",
    "CascadePlan",
    "CascadeStage",
    "check_decisions",
    "compute_frontier",
    "daily_share",
    "select_cascade",
]
