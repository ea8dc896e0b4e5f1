"""Convolutional networks: a small one that trains in seconds on one core, VGG, ResNets."""

from itertools import pairwise
from typing import Any, Final

from abstain.errors import DomainError
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
        for i, (outputs, next_outputs) in enumerate(pairwise((*maps, 0))):
            if outputs == 0:
                layers.append(MaxPool2x2())
                continue
            layers.append(nn.Conv2d(inputs, outputs, 3, padding=1))
            rate = dropout * (_LATER if i else _FIRST) if next_outputs else 0.0
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
_SMALL_VGG_MAPS: Final = (32, 64, 128)
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
        for maps in _SMALL_VGG_MAPS:
            stages.append(nn.Sequential(*_unit(inputs, maps), *_unit(maps, maps), MaxPool2x2()))
            inputs = maps
        self.stages = nn.Sequential(*stages)
        side = _SIDE // 2 ** len(_SMALL_VGG_MAPS)
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


_RESNET_MAPS = (64, 128, 256, 512)
#: How many times more maps leave a block than its convolution of 3 x 3 has.
_WIDER = 4


class _Block(nn.Module):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 in parallel with an identity or a projection.

    Layers have the names that published weights give them.
    """

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        outputs = _WIDER * maps
        self.conv1, self.bn1 = convolution(inputs, maps, 1), nn.BatchNorm2d(maps)
        self.conv2, self.bn2 = convolution(maps, maps, 3, stride), nn.BatchNorm2d(maps)
        self.conv3, self.bn3 = convolution(maps, outputs, 1), nn.BatchNorm2d(outputs)
        self.dropout = dropout_layer(dropout)
        self.downsample = _projection(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps of the next block."""
        relu = nn.functional.relu
        out = self.dropout(relu(self.bn1(self.conv1(x))))
        out = self.dropout(relu(self.bn2(self.conv2(out))))
        aside = x if self.downsample is None else self.downsample(x)
        return relu(self.bn3(self.conv3(out)) + aside)


class _Basic(nn.Module):
    """Two 3 x 3 convolutions in parallel with an identity or a projection, with the same names."""

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, maps, 3, stride), nn.BatchNorm2d(maps)
        self.conv2, self.bn2 = convolution(maps, maps), nn.BatchNorm2d(maps)
        self.dropout = dropout_layer(dropout)
        self.downsample = _projection(inputs, maps, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps of the next block."""
        relu = nn.functional.relu
        out = self.dropout(relu(self.bn1(self.conv1(x))))
        aside = x if self.downsample is None else self.downsample(x)
        return relu(self.bn2(self.conv2(out)) + aside)


def _projection(inputs: int, outputs: int, stride: int) -> Any:
    """Return the layers beside a block that changes the shape of its input; None for others."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class ResNet(Backbone):
    """A residual network with batch norm after the convolutions: by default ResNet-50.

    Notes
    -----
    For images of 32 x 32 up to 224 x 224 and more. The stride of a block is at its convolution
    of 3 x 3, and weights have the usual names, so that the published ones can be read. Dropout
    stands where FD-Shifts [2]_ has it, where its rate is 0.1.

    References
    ----------
    .. [1] He et al. (2015), Deep residual learning for image recognition,
       https://arxiv.org/abs/1512.03385
    .. [2] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import ResNet, n_parameters
    >>> with torch.device("meta"):
    ...     backbone = ResNet()
    >>> n_parameters(backbone), backbone.width
    (23508032, 2048)
    """

    def __init__(
        self,
        channels: int = 3,
        dropout: float = 0.0,
        blocks: tuple[int, int, int, int] = (3, 4, 6, 3),
        *,
        bottlenecks: bool = True,
        small_pictures: bool = False,
    ) -> None:
        wider, kind = (_WIDER, _Block) if bottlenecks else (1, _Basic)
        super().__init__(wider * _RESNET_MAPS[-1])
        size, stride = (3, 1) if small_pictures else (7, 2)
        self.conv1 = convolution(channels, _RESNET_MAPS[0], size, stride)
        self.bn1 = nn.BatchNorm2d(_RESNET_MAPS[0])
        self.maxpool = nn.Identity() if small_pictures else nn.MaxPool2d(3, 2, padding=1)
        self.dropout = dropout_layer(dropout)
        inputs = _RESNET_MAPS[0]
        self.stages: list[str] = []
        for number, (maps, count) in enumerate(zip(_RESNET_MAPS, blocks, strict=True), start=1):
            rate = dropout if number > 1 else 0.0
            self.stages.append(f"layer{number}")
            first = kind(inputs, maps, 2 if number > 1 else 1, rate)
            later = [kind(wider * maps, maps, 1, rate) for _ in range(count - 1)]
            self.add_module(f"layer{number}", nn.Sequential(first, *later))
            inputs = wider * maps
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images as (n, width)."""
        maps = self.dropout(nn.functional.relu(self.bn1(self.conv1(pictures))))
        maps = self.maxpool(maps)
        for name in self.stages:
            maps = self.get_submodule(name)(maps)
        return self.dropout(average_over_image(maps))


#: From this depth on blocks are bottlenecks of three convolutions, as in the paper's net of 164.
_DEEP = 164
_WIDTHS = (16, 32, 64)


class _PreActivated(nn.Module):
    """Two or three convolutions in parallel with an identity, or a projection to a new shape."""

    def __init__(self, inputs: int, maps: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        outputs = 4 * maps if bottleneck else maps
        shapes = (
            [(inputs, maps, 1, 1), (maps, maps, 3, stride), (maps, outputs, 1, 1)]
            if bottleneck
            else [(inputs, maps, 3, stride), (maps, maps, 3, 1)]
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(shape[0]) for shape in shapes)
        self.convolutions = nn.ModuleList(convolution(*shape) for shape in shapes)
        self.shortcut = (
            convolution(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps of the next block."""
        out = x
        for i, (norm, layer) in enumerate(zip(self.norms, self.convolutions, strict=True)):
            out = nn.functional.relu(norm(out))
            if i == 0:
                # A projection sees the activated maps, an identity the maps as they come.
                aside = x if self.shortcut is None else self.shortcut(out)
            out = layer(out)
        return out + aside


class PreResNet(Backbone):
    """A pre-activation residual network for images of 32 x 32: three stages of equal blocks.

    References
    ----------
    .. [1] He et al. (2016), Identity mappings in deep residual networks,
       https://arxiv.org/abs/1603.05027

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import PreResNet
    >>> PreResNet(depth=20).features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """

    def __init__(self, depth: int = 110, channels: int = 3, dropout: float = 0.0) -> None:
        bottleneck = depth >= _DEEP
        layers = 9 if bottleneck else 6
        if depth < layers + 2 or (depth - 2) % layers:
            raise DomainError(f"`depth` must be 6 n + 2, or 9 n + 2 from {_DEEP} on; got {depth}")
        width = _WIDTHS[-1] * (4 if bottleneck else 1)
        super().__init__(width)
        self.first = convolution(channels, _WIDTHS[0])
        self.blocks = nn.Sequential(*_stages((depth - 2) // layers, bottleneck=bottleneck))
        self.norm = nn.BatchNorm2d(width)
        self.dropout = dropout_layer(dropout)
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images as (n, width)."""
        maps = nn.functional.relu(self.norm(self.blocks(self.first(pictures))))
        return self.dropout(average_over_image(maps))


def _stages(blocks: int, *, bottleneck: bool) -> list[Any]:
    out, inputs = [], _WIDTHS[0]
    for stage, maps in enumerate(_WIDTHS):
        for i in range(blocks):
            stride = 2 if stage > 0 and i == 0 else 1
            out.append(_PreActivated(inputs, maps, stride, bottleneck=bottleneck))
            inputs = 4 * maps if bottleneck else maps
    return out


class _WideBlock(nn.Module):
    """Two pre-activated 3 x 3 convolutions in parallel with an identity or a projection."""

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(maps)
        self.convolution1 = convolution(inputs, maps, stride=stride)
        self.convolution2 = convolution(maps, maps)
        self.dropout = dropout_layer(dropout)
        self.shortcut = convolution(inputs, maps, 1, stride) if inputs != maps else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps of the next block."""
        active = nn.functional.relu(self.norm1(x))
        out = self.dropout(nn.functional.relu(self.norm2(self.convolution1(active))))
        return self.convolution2(out) + (x if self.shortcut is None else self.shortcut(active))


class WideResNet(Backbone):
    """A residual network with few and wide layers, for images of 32 x 32.

    References
    ----------
    .. [1] Zagoruyko & Komodakis (2016), Wide residual networks, https://arxiv.org/abs/1605.07146

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import WideResNet
    >>> WideResNet(depth=10, widen=1).features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        depth: int = 28,
        widen: int = 10,
        channels: int = 3,
        dropout: float = 0.0,
    ) -> None:
        if depth < 10 or (depth - 4) % 6:
            raise DomainError(f"`depth` must be 6 n + 4 (10, 16, 22, 28, ...); got {depth}")
        widths = [16 * widen, 32 * widen, 64 * widen]
        super().__init__(widths[-1])
        self.first = convolution(channels, 16)
        blocks, inputs = [], 16
        for stage, maps in enumerate(widths):
            for i in range((depth - 4) // 6):
                blocks.append(_WideBlock(inputs, maps, 2 if stage > 0 and i == 0 else 1, dropout))
                inputs = maps
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(inputs)
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images as (n, width)."""
        return average_over_image(nn.functional.relu(self.norm(self.blocks(self.first(pictures)))))
