"""Data class for the output of a model, with labels, groups and per-sample losses.

This package imports only `abstain._foundation`.
"""

from abstain.predictions.losses import LOSSES as LOSSES
from abstain.predictions.losses import CostMatrix as CostMatrix
from abstain.predictions.losses import Loss as Loss
from abstain.predictions.losses import per_sample_loss as per_sample_loss
from abstain.predictions.record import Predictions as Predictions

__all__ = ["LOSSES", "CostMatrix", "Loss", "Predictions", "per_sample_loss"]
