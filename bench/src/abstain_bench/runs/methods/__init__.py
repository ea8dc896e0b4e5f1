"""Define methods, which combine a score of `abstain.confidence` with a training objective.

`METHODS` is the catalogue. `score_all` computes several methods for the outputs of one network.
"""

from abstain_bench.runs.methods.catalogue import ENTRIES
from abstain_bench.runs.methods.entry import METHODS as METHODS
from abstain_bench.runs.methods.entry import NEEDS as NEEDS
from abstain_bench.runs.methods.entry import FitData as FitData
from abstain_bench.runs.methods.entry import FittedMethods as FittedMethods
from abstain_bench.runs.methods.entry import Method as Method
from abstain_bench.runs.methods.entry import Scores as Scores
from abstain_bench.runs.methods.entry import fit_all as fit_all
from abstain_bench.runs.methods.entry import methods_of as methods_of
from abstain_bench.runs.methods.entry import score_all as score_all
from abstain_bench.runs.methods.entry import update_method_names as update_method_names

for _entry in ENTRIES:
    METHODS.add(_entry)
