"""Backbones of image networks, which compute features by `features` and have the attribute `width`.

This package requires torch.
"""

from abstain_bench.networks.backbone import Backbone as Backbone
from abstain_bench.networks.backbone import Resized as Resized
from abstain_bench.networks.catalogue import MODELS as MODELS
from abstain_bench.networks.catalogue import Model as Model
from abstain_bench.networks.catalogue import n_parameters as n_parameters
from abstain_bench.networks.convolutional import VGG as VGG
from abstain_bench.networks.convolutional import PreResNet as PreResNet
from abstain_bench.networks.convolutional import ResNet as ResNet
from abstain_bench.networks.convolutional import SmallConv as SmallConv
from abstain_bench.networks.convolutional import StreetConv as StreetConv
from abstain_bench.networks.convolutional import WideResNet as WideResNet
from abstain_bench.networks.vit import ViT as ViT
