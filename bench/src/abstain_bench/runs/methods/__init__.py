"""Methods: a confidence score, the network it belongs to, and what it is fitted on.

`METHODS` holds them all; `score_all` applies several to what one network says. No score is
computed here: that is done by `abstain.confidence`.
"""

from abstain_bench.runs.methods.catalogue import ENTRIES
from abstain_bench.runs.methods.entry import METHODS as METHODS
from abstain_bench.runs.methods.entry import NEEDS as NEEDS
from abstain_bench.runs.methods.entry import FittedMethods as FittedMethods
from abstain_bench.runs.methods.entry import Known as Known
from abstain_bench.runs.methods.entry import Method as Method
from abstain_bench.runs.methods.entry import ScoreFunction as ScoreFunction
from abstain_bench.runs.methods.entry import Scores as Scores
from abstain_bench.runs.methods.entry import by_method as by_method
from abstain_bench.runs.methods.entry import fit_all as fit_all
from abstain_bench.runs.methods.entry import methods_of as methods_of
from abstain_bench.runs.methods.entry import score_all as score_all
from abstain_bench.runs.methods.fits import labeled as labeled
from abstain_bench.runs.methods.fits import unlabeled as unlabeled

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
