"""Plain convolutional networks: a small one that trains in seconds on one core, and VGG."""

from itertools import pairwise
from typing import Any, Final

from abstain_bench.networks.backbone import (
    Backbone,
    MaxPool2x2,
    Tensor,
    average_over_image,
    convolution,
    dropout_layer,
    initialize_weights,
    nn,
)


class SmallConv(Backbone):
    """Convolution, batch norm and ReLU, halved after each, then the mean over the image.

    Notes
    -----
    Images of at least 8 x 8. Dropout stands where the small network of FD-Shifts [1]_ has it:
    after each halving, and before the last layer. Only that after the last halving is left out,
    as the mean over the image would undo it.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import SmallConv
    >>> SmallConv().features(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        channels: int = 1,
        widths: tuple[int, ...] = (16, 32, 64),
        dropout: float = 0.0,
    ) -> None:
        super().__init__(widths[-1])
        stages = [
            nn.Sequential(
                # The maximum first: the same numbers, and a quarter of the maps to rectify.
                convolution(a, b),
                nn.BatchNorm2d(b),
                MaxPool2x2(),
                nn.ReLU(inplace=True),
            )
            for a, b in pairwise((channels, *widths))
        ]
        self.stages = nn.Sequential(*stages)
        self.dropout = dropout_layer(dropout)
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images as (n, width)."""
        return self.after_dropout(self.before_dropout(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Return the maps of the first stage: most of the work, done once for all passes."""
        first, *_ = self.stages
        return first(pictures)

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Return the features, from what `before_dropout` returned."""
        _, *later = self.stages
        for stage in later:
            maps = stage(self.dropout(maps))
        return self.dropout(average_over_image(maps))


#: Feature maps of the 16 convolutions of VGG19, the 13 of VGG16 and the 10 of VGG13; 0 halves the
#: image.
NINETEEN = (64, 64, 0, 128, 128, 0, *(256,) * 4, 0, *(512,) * 4, 0, *(512,) * 4, 0)
SIXTEEN = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
THIRTEEN = (64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)

#: Of `dropout`: after the first convolution, and after later ones.
_FIRST, _LATER = 0.6, 0.8


class VGG(Backbone):
    """Convolutions of 3 x 3 with batch norm, and five halvings.

    Notes
    -----
    The two hidden layers of 4,096 units that the network for ImageNet has at its end are left
    out, as is usual for CIFAR: with a linear head of 10 classes VGG16 has 14.7 million
    parameters. Convolutions keep their biases.

    VGG13 as FD-Shifts [2]_ has it is ``maps=THIRTEEN, hidden=512``, with ``dropout=0.5`` where
    they have dropout: 0.3, 0.4 and 0.5 at the same places.

    References
    ----------
    .. [1] Simonyan & Zisserman (2015), Very deep convolutional networks for large-scale image
       recognition (configurations B, D and E), https://arxiv.org/abs/1409.1556
    .. [2] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import VGG
    >>> VGG().features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    """

    def __init__(
        self,
        channels: int = 3,
        dropout: float = 0.0,
        maps: tuple[int, ...] = SIXTEEN,
        hidden: int = 0,
    ) -> None:
        last = [m for m in maps if m][-1]
        super().__init__(hidden or last)
        layers: list[Any] = []
        inputs = channels
        for place, (outputs, following) in enumerate(pairwise((*maps, 0))):
            if outputs == 0:
                layers.append(MaxPool2x2())
                continue
            layers.append(nn.Conv2d(inputs, outputs, 3, padding=1))
            rate = dropout * (_LATER if place else _FIRST) if following else 0.0
            layers += [nn.BatchNorm2d(outputs), _active(rate)]
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.hidden = nn.Linear(last, hidden) if hidden else None
        self.dropout = dropout_layer(dropout)
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images as (n, width)."""
        out = self.dropout(self.layers(pictures).flatten(1))
        if self.hidden is None:
            return out
        return self.dropout(nn.functional.relu(self.hidden(out)))


def _active(rate: float) -> Any:
    """Return ReLU with dropout after it; one layer, so that no rate changes any name of weights."""
    relu = nn.ReLU(inplace=True)
    return nn.Sequential(relu, dropout_layer(rate)) if rate else relu


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
