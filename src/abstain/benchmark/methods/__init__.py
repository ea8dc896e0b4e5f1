"""Methods: a confidence score, the network it belongs to, and what it is fitted on.

`METHODS` holds them all; `score_all` applies several to what one network says. No score is
computed here: that is done by `abstain.confidence`.
"""

from abstain.benchmark.methods.catalogue import ENTRIES
from abstain.benchmark.methods.entry import METHODS as METHODS
from abstain.benchmark.methods.entry import NEEDS as NEEDS
from abstain.benchmark.methods.entry import FittedMethods as FittedMethods
from abstain.benchmark.methods.entry import Known as Known
from abstain.benchmark.methods.entry import Method as Method
from abstain.benchmark.methods.entry import ScoreFunction as ScoreFunction
from abstain.benchmark.methods.entry import Scores as Scores
from abstain.benchmark.methods.entry import fit_all as fit_all
from abstain.benchmark.methods.entry import methods_of as methods_of
from abstain.benchmark.methods.entry import score_all as score_all
from abstain.benchmark.methods.fits import labeled as labeled
from abstain.benchmark.methods.fits import unlabeled as unlabeled

__all__ = [
    "METHODS",
    "NEEDS",
    "FittedMethods",
    "Known",
    "Method",
    "ScoreFunction",
    "Scores",
    "fit_all",
    "labeled",
    "methods_of",
    "score_all",
    "unlabeled",
]

for _entry in ENTRIES:
    METHODS.add(_entry)
