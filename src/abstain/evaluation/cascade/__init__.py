"""Select the thresholds of cascades of models, and check cascades on other samples."""

from abstain.evaluation.cascade.check import CascadeChecks, PathStage, check_cascade
from abstain.evaluation.cascade.choice import set_cascade

__all__ = ["CascadeChecks", "PathStage", "check_cascade", "set_cascade"]
