"""Backbones for small pictures behind one small protocol: `features`, and their `width`.

Needs torch: ``pip install 'abstain[benchmark]'``.
"""

from abstain.benchmark.models.backbone import Backbone as Backbone
from abstain.benchmark.models.catalogue import MODELS as MODELS
from abstain.benchmark.models.catalogue import Model as Model
from abstain.benchmark.models.catalogue import parameters as parameters
from abstain.benchmark.models.fd_shifts import StreetConv as StreetConv
from abstain.benchmark.models.plain import VGG as VGG
from abstain.benchmark.models.plain import SmallConv as SmallConv
from abstain.benchmark.models.residual import PreResNet as PreResNet
from abstain.benchmark.models.residual import ResNet as ResNet
from abstain.benchmark.models.residual import WideResNet as WideResNet
from abstain.benchmark.models.vit import ViT as ViT
from abstain.benchmark.models.zoom import Resized as Resized

__all__ = [
    "MODELS",
    "VGG",
    "Backbone",
    "Model",
    "PreResNet",
    "ResNet",
    "Resized",
    "SmallConv",
    "StreetConv",
    "ViT",
    "WideResNet",
    "parameters",
]
