"""Cascades of models and a person, with a guaranteed risk."""

from abstain.thresholds.cascade.data import CascadeData, check_decisions
from abstain.thresholds.cascade.record import (
    ERROR,
    PERSON,
    Cascade,
    CascadePlan,
    CascadeStage,
    daily_share,
)
from abstain.thresholds.cascade.search import CascadeFrontier, compute_frontier, select_cascade

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
