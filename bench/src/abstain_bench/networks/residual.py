"""Residual networks: with batch norm after the convolutions, before them, and wide ones."""

from typing import Any

from abstain.errors import DomainError
from abstain_bench.networks.backbone import (
    Backbone,
    Tensor,
    average_over_image,
    convolution,
    dropout_layer,
    initialize_weights,
    nn,
)

_MAPS = (64, 128, 256, 512)
#: How many times more maps leave a block than its convolution of 3 x 3 has.
_WIDER = 4


class _Block(nn.Module):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 beside an identity or a projection.

    Layers have the names that published weights give them.
    """

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        outputs = _WIDER * maps
        self.conv1, self.bn1 = convolution(inputs, maps, 1), nn.BatchNorm2d(maps)
        self.conv2, self.bn2 = convolution(maps, maps, 3, stride), nn.BatchNorm2d(maps)
        self.conv3, self.bn3 = convolution(maps, outputs, 1), nn.BatchNorm2d(outputs)
        self.dropout = dropout_layer(dropout)
        self.downsample = (
            nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
            if stride > 1 or inputs != outputs
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps of the next block."""
        relu = nn.functional.relu
        out = self.dropout(relu(self.bn1(self.conv1(x))))
        out = self.dropout(relu(self.bn2(self.conv2(out))))
        aside = x if self.downsample is None else self.downsample(x)
        return relu(self.bn3(self.conv3(out)) + aside)


class _Basic(nn.Module):
    """Two convolutions of 3 x 3 beside an identity or a projection, with the same names."""

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, maps, 3, stride), nn.BatchNorm2d(maps)
        self.conv2, self.bn2 = convolution(maps, maps), nn.BatchNorm2d(maps)
        self.dropout = dropout_layer(dropout)
        self.downsample = (
            nn.Sequential(convolution(inputs, maps, 1, stride), nn.BatchNorm2d(maps))
            if stride > 1 or inputs != maps
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps of the next block."""
        relu = nn.functional.relu
        out = self.dropout(relu(self.bn1(self.conv1(x))))
        aside = x if self.downsample is None else self.downsample(x)
        return relu(self.bn2(self.conv2(out)) + aside)


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
        super().__init__(wider * _MAPS[-1])
        size, stride = (3, 1) if small_pictures else (7, 2)
        self.conv1 = convolution(channels, _MAPS[0], size, stride)
        self.bn1 = nn.BatchNorm2d(_MAPS[0])
        self.maxpool = nn.Identity() if small_pictures else nn.MaxPool2d(3, 2, padding=1)
        self.dropout = dropout_layer(dropout)
        inputs = _MAPS[0]
        self.stages: list[str] = []
        for number, (maps, count) in enumerate(zip(_MAPS, blocks, strict=True), start=1):
            rate = dropout if number > 1 else 0.0
            self.stages.append(f"layer{number}")
            first = kind(inputs, maps, 2 if number > 1 else 1, rate)
            others = [kind(wider * maps, maps, 1, rate) for _ in range(count - 1)]
            self.add_module(f"layer{number}", nn.Sequential(first, *others))
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
    """Two or three convolutions beside an identity, or a projection where the shape changes."""

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
    """Two pre-activated 3 x 3 convolutions beside an identity or a projection."""

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
