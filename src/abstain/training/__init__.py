"""PyTorch losses and network heads for training selective classifiers.

The package requires PyTorch, which ``pip install 'abstain[torch]'`` installs.
"""

try:
    import torch as _torch  # noqa: F401  the first import, so that the error below names it
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    _MSG = "abstain.training needs torch: pip install 'abstain[torch]'"
    raise ImportError(_MSG, name="torch") from None

from abstain.training._weights import RANK_WEIGHTS as RANK_WEIGHTS
from abstain.training._weights import RankWeights as RankWeights
from abstain.training.abstention import DeepGamblers as DeepGamblers
from abstain.training.abstention import SelfAdaptiveTraining as SelfAdaptiveTraining
from abstain.training.branches import ConfidNet as ConfidNet
from abstain.training.branches import DeVries as DeVries
from abstain.training.branches import SelectiveNet as SelectiveNet
from abstain.training.catalogue import OBJECTIVES as OBJECTIVES
from abstain.training.catalogue import make as make
from abstain.training.classifiers import CrossEntropy as CrossEntropy
from abstain.training.classifiers import Joint as Joint
from abstain.training.classifiers import RankWeighted as RankWeighted
from abstain.training.confidence_weighted import ConfidenceWeighted as ConfidenceWeighted
from abstain.training.heads import Head as Head
from abstain.training.heads import Output as Output
from abstain.training.kind import ObjectiveKind as ObjectiveKind
from abstain.training.network import Network as Network
from abstain.training.network import Phase as Phase
from abstain.training.objective import Objective as Objective
from abstain.training.rank_weighted import RankWeightedLoss as RankWeightedLoss
from abstain.training.rank_weighted import rank_weighted_loss as rank_weighted_loss

__all__ = [
    "OBJECTIVES",
    "RANK_WEIGHTS",
    "ConfidNet",
    "ConfidenceWeighted",
    "CrossEntropy",
    "DeVries",
    "DeepGamblers",
    "Head",
    "Joint",
    "Network",
    "Objective",
    "ObjectiveKind",
    "Output",
    "Phase",
    "RankWeighted",
    "RankWeightedLoss",
    "RankWeights",
    "SelectiveNet",
    "SelfAdaptiveTraining",
    "make",
    "rank_weighted_loss",
]
