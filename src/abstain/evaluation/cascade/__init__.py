"""Cascades: chosen on what several models say of the same samples, checked on other samples."""

from abstain.evaluation.cascade.check import check_cascade
from abstain.evaluation.cascade.choice import set_cascade
from abstain.evaluation.cascade.record import CascadeChecks

__all__ = ["CascadeChecks", "check_cascade", "set_cascade"]
