"""Two networks as FD-Shifts has them, which are ours only in what computes them."""

from typing import Any, Final

from abstain_bench.networks.backbone import Backbone, MaxPool2x2, Tensor, dropout_layer, nn
from abstain_bench.networks.plain import THIRTEEN, VGG

#: Of the images, which must have this size.
_SIDE: Final = 32
#: Feature maps of each stage of two convolutions, and units of the hidden layer.
_MAPS: Final = (32, 64, 128)
_HIDDEN: Final = 512


class StreetConv(Backbone):
    """The small network for house numbers: three stages of two convolutions, and a hidden layer.

    Notes
    -----
    Convolutions of 3 x 3 mirror the image at its edges, and batch norm comes after the ReLU, as
    in the code of FD-Shifts [1]_, which has it from ConfidNet's.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import StreetConv
    >>> StreetConv().features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    """

    def __init__(self, channels: int = 3, dropout: float = 0.0) -> None:
        super().__init__(_HIDDEN)
        stages, inputs = [], channels
        for maps in _MAPS:
            stages.append(nn.Sequential(*_unit(inputs, maps), *_unit(maps, maps), MaxPool2x2()))
            inputs = maps
        self.stages = nn.Sequential(*stages)
        side = _SIDE // 2 ** len(_MAPS)
        self.hidden = nn.Linear(inputs * side * side, _HIDDEN)
        self.dropout = dropout_layer(dropout)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images as (n, 512)."""
        return self.after_dropout(self.before_dropout(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Return the maps of the first stage: the same in every pass."""
        return self.stages[0](pictures)

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Return the features, from what `before_dropout` returned."""
        for stage in list(self.stages)[1:]:
            maps = stage(self.dropout(maps))
        flat = self.dropout(maps).flatten(1)
        return self.dropout(nn.functional.relu(self.hidden(flat)))


def _unit(inputs: int, outputs: int) -> list[Any]:
    mirrored = nn.Conv2d(inputs, outputs, 3, padding=1, padding_mode="reflect")
    return [mirrored, nn.ReLU(), nn.BatchNorm2d(outputs)]


def vgg13_as_run(channels: int = 3, dropout: float = 0.0) -> VGG:
    """Return VGG-13 as FD-Shifts runs it: with a hidden layer only where there is dropout."""
    return VGG(channels, dropout, THIRTEEN, hidden=_HIDDEN if dropout else 0)
