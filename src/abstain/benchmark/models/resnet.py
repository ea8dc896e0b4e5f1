"""Residual networks of bottlenecks, as used for ImageNet."""

from typing import Any

from abstain.benchmark.models.backbone import (
    Backbone,
    Tensor,
    averaged,
    convolution,
    dropped,
    nn,
    start,
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
        self.dropout = dropped(dropout)
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


class ResNet(Backbone):
    """A residual network of bottlenecks that halves the picture five times: ResNet-50.

    Parameters
    ----------
    channels : int, default=3
        Of the pictures.
    dropout : float, default=0
        The chance that a unit is left out: after the first convolution, after the first two of
        each block from the second stage on, and before the last layer. None is drawn at 0.
    blocks : tuple of int, default=(3, 4, 6, 3)
        Of each stage; (3, 4, 23, 3) is ResNet-101.

    Raises
    ------
    DomainError
        `dropout` is not in [0, 1).

    Notes
    -----
    For pictures of 32 x 32 up to 224 x 224 and more. The stride of a block is at its convolution
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
    >>> from abstain.benchmark.models import ResNet, parameters
    >>> with torch.device("meta"):
    ...     backbone = ResNet()
    >>> parameters(backbone), backbone.width
    (23508032, 2048)
    """

    def __init__(
        self,
        channels: int = 3,
        dropout: float = 0.0,
        blocks: tuple[int, int, int, int] = (3, 4, 6, 3),
    ) -> None:
        super().__init__(_WIDER * _MAPS[-1])
        self.conv1, self.bn1 = convolution(channels, _MAPS[0], 7, 2), nn.BatchNorm2d(_MAPS[0])
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.dropout = dropped(dropout)
        inputs = _MAPS[0]
        self.stages: list[str] = []
        for number, (maps, count) in enumerate(zip(_MAPS, blocks, strict=True), start=1):
            rate = dropout if number > 1 else 0.0
            self.stages.append(f"layer{number}")
            self.add_module(f"layer{number}", _stage((inputs, maps), count, number, rate))
            inputs = _WIDER * maps
        start(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures as (n, width)."""
        maps = self.dropout(nn.functional.relu(self.bn1(self.conv1(pictures))))
        maps = self.maxpool(maps)
        for name in self.stages:
            maps = self.get_submodule(name)(maps)
        return self.dropout(averaged(maps))


def _stage(widths: tuple[int, int], count: int, stage: int, dropout: float) -> Any:
    """Return the blocks of a stage; all but the first stage halve the picture."""
    inputs, maps = widths
    first = _Block(inputs, maps, 2 if stage > 1 else 1, dropout)
    others = [_Block(_WIDER * maps, maps, 1, dropout) for _ in range(count - 1)]
    return nn.Sequential(first, *others)
