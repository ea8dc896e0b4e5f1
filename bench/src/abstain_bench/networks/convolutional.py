"""Convolutional networks, such as `SmallConv`, VGG and ResNet.

`SmallConv` trains in seconds on one core.
"""

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
    """A small network with three convolutional stages and global average pooling.

    Each stage consists of a convolution, batch normalization, max pooling and a ReLU.

    Notes
    -----
    Images must have at least 8 x 8 pixels. As in the small network of FD-Shifts [1]_, dropout
    follows each stage, except the last, and precedes the final layer.

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
                # With pooling before the ReLU, the values are equal, and the ReLU processes a
                # quarter of the units.
                convolution(inputs, outputs),
                nn.BatchNorm2d(outputs),
                MaxPool2x2(),
                nn.ReLU(inplace=True),
            )
            for inputs, outputs in pairwise((channels, *widths))
        ]
        self.stages = nn.Sequential(*stages)
        self.dropout = dropout_layer(dropout)
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, width) from images."""
        return self.after_dropout(self.before_dropout(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Compute the output of the first stage, which takes most of the time of a forward pass."""
        first_stage, *_ = self.stages
        return first_stage(pictures)

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Compute the features from the output of `before_dropout`."""
        _, *later_stages = self.stages
        for stage in later_stages:
            maps = stage(self.dropout(maps))
        return self.dropout(average_over_image(maps))


# The numbers of feature maps of the convolutions in VGG networks. A 0 is a max pooling layer.
#: VGG19 with 16 convolutions.
NINETEEN = (64, 64, 0, 128, 128, 0, *(256,) * 4, 0, *(512,) * 4, 0, *(512,) * 4, 0)
#: VGG16 with 13 convolutions.
SIXTEEN = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
#: VGG13 with 10 convolutions.
THIRTEEN = (64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)

#: Factor of the dropout probability after the first convolution.
_FIRST = 0.6
#: Factor of the dropout probability after later convolutions.
_LATER = 0.8


class VGG(Backbone):
    """A VGG network for small images, with 3 x 3 convolutions and batch normalization.

    Notes
    -----
    As usual for CIFAR, the two hidden layers of 4,096 units of the ImageNet version are omitted.
    With a linear head for 10 classes, VGG16 has 14.7 million parameters. The convolutions have
    biases.

    The VGG-13 of FD-Shifts [2]_ has the options ``maps=THIRTEEN, hidden=512``. If ``dropout=0.5``,
    the dropout probabilities are 0.3, 0.4 and 0.5 at the same positions as in FD-Shifts.

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
        n_last_maps = [n_maps for n_maps in maps if n_maps > 0][-1]
        super().__init__(hidden or n_last_maps)
        layers: list[Any] = []
        inputs = channels
        for i, (outputs, next_outputs) in enumerate(pairwise((*maps, 0))):
            if outputs == 0:
                layers.append(MaxPool2x2())
                continue
            layers.append(nn.Conv2d(inputs, outputs, 3, padding=1))
            # There is no dropout before max pooling.
            is_before_pooling = next_outputs == 0
            factor = _FIRST if i == 0 else _LATER
            rate = 0.0 if is_before_pooling else dropout * factor
            layers += [nn.BatchNorm2d(outputs), _relu_with_dropout(rate)]
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.hidden = nn.Linear(n_last_maps, hidden) if hidden else None
        self.dropout = dropout_layer(dropout)
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, width) from images."""
        flat = self.dropout(self.layers(pictures).flatten(1))
        if self.hidden is None:
            return flat
        return self.dropout(nn.functional.relu(self.hidden(flat)))


def _relu_with_dropout(rate: float) -> Any:
    """Return a layer with a ReLU and dropout."""
    # One layer contains both, so that the names of the weights do not depend on the dropout.
    relu = nn.ReLU(inplace=True)
    return nn.Sequential(relu, dropout_layer(rate)) if rate else relu


#: Required height and width of the images.
_SIDE: Final = 32
#: Number of feature maps of each stage.
_SMALL_VGG_MAPS: Final = (32, 64, 128)
#: Number of units of the hidden layer.
_HIDDEN: Final = 512


class StreetConv(Backbone):
    """The small network that FD-Shifts uses for house numbers.

    The network has three stages of two convolutions each, followed by a hidden layer.

    Notes
    -----
    The 3 x 3 convolutions use reflection padding, and batch normalization follows the ReLU, as in
    the code of FD-Shifts [1]_.

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
        stages = []
        inputs = channels
        for maps in _SMALL_VGG_MAPS:
            convolutions = [*_convolution_layers(inputs, maps), *_convolution_layers(maps, maps)]
            stages.append(nn.Sequential(*convolutions, MaxPool2x2()))
            inputs = maps
        self.stages = nn.Sequential(*stages)
        side = _SIDE // 2 ** len(_SMALL_VGG_MAPS)
        self.hidden = nn.Linear(inputs * side * side, _HIDDEN)
        self.dropout = dropout_layer(dropout)

    def features(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, 512) from images."""
        return self.after_dropout(self.before_dropout(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Compute the output of the first stage, which does not depend on dropout."""
        return self.stages[0](pictures)

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Compute the features from the output of `before_dropout`."""
        for stage in list(self.stages)[1:]:
            maps = stage(self.dropout(maps))
        flat = self.dropout(maps).flatten(1)
        return self.dropout(nn.functional.relu(self.hidden(flat)))


def _convolution_layers(inputs: int, outputs: int) -> list[Any]:
    """Return a convolution with reflection padding, followed by a ReLU and batch normalization."""
    reflecting = nn.Conv2d(inputs, outputs, 3, padding=1, padding_mode="reflect")
    return [reflecting, nn.ReLU(), nn.BatchNorm2d(outputs)]


def vgg13_as_run(channels: int = 3, dropout: float = 0.0) -> VGG:
    """Create the VGG-13 of the FD-Shifts code, without a hidden layer if `dropout` is 0."""
    return VGG(channels, dropout, THIRTEEN, hidden=_HIDDEN if dropout else 0)


#: Number of feature maps in each stage of a ResNet.
_RESNET_MAPS = (64, 128, 256, 512)
#: Number of output maps of a bottleneck block divided by the maps of its 3 x 3 convolution.
_WIDER = 4


class _Block(nn.Module):
    """A bottleneck block with 1 x 1, 3 x 3 and 1 x 1 convolutions and a shortcut."""

    # The layers have the names in files of published weights.

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        outputs = _WIDER * maps
        self.conv1 = convolution(inputs, maps, 1)
        self.bn1 = nn.BatchNorm2d(maps)
        self.conv2 = convolution(maps, maps, 3, stride)
        self.bn2 = nn.BatchNorm2d(maps)
        self.conv3 = convolution(maps, outputs, 1)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.dropout = dropout_layer(dropout)
        self.downsample = _projection(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output of the block."""
        relu = nn.functional.relu
        maps = self.dropout(relu(self.bn1(self.conv1(x))))
        maps = self.dropout(relu(self.bn2(self.conv2(maps))))
        shortcut = x if self.downsample is None else self.downsample(x)
        return relu(self.bn3(self.conv3(maps)) + shortcut)


class _Basic(nn.Module):
    """A basic block with two 3 x 3 convolutions and a shortcut."""

    # The layers have the names in files of published weights.

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1 = convolution(inputs, maps, 3, stride)
        self.bn1 = nn.BatchNorm2d(maps)
        self.conv2 = convolution(maps, maps)
        self.bn2 = nn.BatchNorm2d(maps)
        self.dropout = dropout_layer(dropout)
        self.downsample = _projection(inputs, maps, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output of the block."""
        relu = nn.functional.relu
        maps = self.dropout(relu(self.bn1(self.conv1(x))))
        shortcut = x if self.downsample is None else self.downsample(x)
        return relu(self.bn2(self.conv2(maps)) + shortcut)


def _projection(inputs: int, outputs: int, stride: int) -> Any:
    """Return the shortcut projection of a block, or None if input and output have equal shapes."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class ResNet(Backbone):
    """A residual network with batch normalization, which is ResNet-50 by default.

    Notes
    -----
    The images must have at least 32 x 32 pixels. The stride of a block is applied in its 3 x 3
    convolution. The parameters have the same names as in files of published weights, so these files
    can be loaded. The dropout layers are at the same positions as in FD-Shifts [2]_, which uses a
    dropout probability of 0.1.

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
        kind = _Block if bottlenecks else _Basic
        outputs_per_map = _WIDER if bottlenecks else 1
        super().__init__(outputs_per_map * _RESNET_MAPS[-1])
        if small_pictures:
            self.conv1 = convolution(channels, _RESNET_MAPS[0], size=3, stride=1)
        else:
            self.conv1 = convolution(channels, _RESNET_MAPS[0], size=7, stride=2)
        self.bn1 = nn.BatchNorm2d(_RESNET_MAPS[0])
        self.maxpool = nn.Identity() if small_pictures else nn.MaxPool2d(3, 2, padding=1)
        self.dropout = dropout_layer(dropout)
        inputs = _RESNET_MAPS[0]
        self.stages: list[str] = []
        for number, (maps, n_blocks) in enumerate(zip(_RESNET_MAPS, blocks, strict=True), start=1):
            is_first_stage = number == 1
            rate = 0.0 if is_first_stage else dropout
            stride = 1 if is_first_stage else 2
            outputs = outputs_per_map * maps
            first = kind(inputs, maps, stride, rate)
            later = [kind(outputs, maps, 1, rate) for _ in range(n_blocks - 1)]
            name = f"layer{number}"
            self.add_module(name, nn.Sequential(first, *later))
            self.stages.append(name)
            inputs = outputs
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, width) from images."""
        maps = self.dropout(nn.functional.relu(self.bn1(self.conv1(pictures))))
        maps = self.maxpool(maps)
        for name in self.stages:
            maps = self.get_submodule(name)(maps)
        return self.dropout(average_over_image(maps))


#: Depth from which blocks are bottlenecks of three convolutions, as in the paper.
_DEEP = 164
#: Number of feature maps in each stage of a PreResNet.
_WIDTHS = (16, 32, 64)


class _PreActivated(nn.Module):
    """A pre-activation block with a shortcut and two convolutions, or three in a bottleneck."""

    def __init__(self, inputs: int, maps: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        # Input maps, output maps, kernel size and stride of each convolution.
        if bottleneck:
            outputs = 4 * maps
            shapes = [(inputs, maps, 1, 1), (maps, maps, 3, stride), (maps, outputs, 1, 1)]
        else:
            outputs = maps
            shapes = [(inputs, maps, 3, stride), (maps, maps, 3, 1)]
        self.norms = nn.ModuleList(nn.BatchNorm2d(shape[0]) for shape in shapes)
        self.convolutions = nn.ModuleList(convolution(*shape) for shape in shapes)
        changes_shape = stride > 1 or inputs != outputs
        self.shortcut = convolution(inputs, outputs, 1, stride) if changes_shape else None

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output of the block."""
        maps = x
        shortcut = x
        for i, (norm, layer) in enumerate(zip(self.norms, self.convolutions, strict=True)):
            maps = nn.functional.relu(norm(maps))
            if i == 0 and self.shortcut is not None:
                # Unlike an identity, a projection is applied after the first activation.
                shortcut = self.shortcut(maps)
            maps = layer(maps)
        return maps + shortcut


class PreResNet(Backbone):
    """A pre-activation residual network with three stages for images of 32 x 32 pixels.

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
        """Compute features of shape (n, width) from images."""
        maps = nn.functional.relu(self.norm(self.blocks(self.first(pictures))))
        return self.dropout(average_over_image(maps))


def _stages(n_blocks: int, *, bottleneck: bool) -> list[Any]:
    """Return the blocks of three stages with `n_blocks` blocks each."""
    blocks = []
    inputs = _WIDTHS[0]
    for stage, maps in enumerate(_WIDTHS):
        for i in range(n_blocks):
            stride = 2 if stage > 0 and i == 0 else 1
            blocks.append(_PreActivated(inputs, maps, stride, bottleneck=bottleneck))
            inputs = 4 * maps if bottleneck else maps
    return blocks


class _WideBlock(nn.Module):
    """A pre-activation block with two 3 x 3 convolutions, intermediate dropout and a shortcut."""

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.norm2 = nn.BatchNorm2d(maps)
        self.convolution1 = convolution(inputs, maps, stride=stride)
        self.convolution2 = convolution(maps, maps)
        self.dropout = dropout_layer(dropout)
        self.shortcut = convolution(inputs, maps, 1, stride) if inputs != maps else None

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output of the block."""
        active = nn.functional.relu(self.norm1(x))
        maps = self.dropout(nn.functional.relu(self.norm2(self.convolution1(active))))
        shortcut = x if self.shortcut is None else self.shortcut(active)
        return self.convolution2(maps) + shortcut


class WideResNet(Backbone):
    """A wide residual network with few layers for images of 32 x 32 pixels.

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
        blocks = []
        inputs = 16
        for stage, maps in enumerate(widths):
            for i in range((depth - 4) // 6):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(_WideBlock(inputs, maps, stride, dropout))
                inputs = maps
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(inputs)
        initialize_weights(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, width) from images."""
        return average_over_image(nn.functional.relu(self.norm(self.blocks(self.first(pictures)))))
