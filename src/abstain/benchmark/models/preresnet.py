"""Residual networks with batch norm and ReLU before the convolutions."""

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
from abstain.errors import DomainError

#: From this depth on blocks are bottlenecks of three convolutions, as in the paper's net of 164.
_DEEP = 164
_WIDTHS = (16, 32, 64)


class _Block(nn.Module):
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
    """A pre-activation residual network for pictures of 32 x 32: three stages of equal blocks.

    Parameters
    ----------
    depth : int, default=110
        Layers with weights: 6 n + 2 with blocks of two convolutions (20, 56, 110); from 164 on
        9 n + 2 with bottlenecks.
    channels : int, default=3
        Of the pictures.
    dropout : float, default=0
        The chance that a feature is left out before the last layer.

    Raises
    ------
    DomainError
        No number of equal blocks gives this depth, or `dropout` is not in [0, 1).

    References
    ----------
    .. [1] He et al. (2016), Identity mappings in deep residual networks,
       https://arxiv.org/abs/1603.05027

    Examples
    --------
    >>> import torch
    >>> from abstain.benchmark.models import PreResNet
    >>> PreResNet(depth=20).features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """

    def __init__(self, depth: int = 110, channels: int = 3, dropout: float = 0.0) -> None:
        bottleneck = depth >= _DEEP
        layers = 9 if bottleneck else 6
        if depth < layers + 2 or (depth - 2) % layers:
            msg = f"`depth` must be 6 n + 2, or 9 n + 2 from {_DEEP} on; got {depth}"
            raise DomainError(msg)
        width = _WIDTHS[-1] * (4 if bottleneck else 1)
        super().__init__(width)
        self.first = convolution(channels, _WIDTHS[0])
        self.blocks = nn.Sequential(*_stages((depth - 2) // layers, bottleneck=bottleneck))
        self.norm = nn.BatchNorm2d(width)
        self.dropout = dropped(dropout)
        start(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures as (n, width)."""
        maps = nn.functional.relu(self.norm(self.blocks(self.first(pictures))))
        return self.dropout(averaged(maps))


def _stages(blocks: int, *, bottleneck: bool) -> list[Any]:
    out, inputs = [], _WIDTHS[0]
    for stage, maps in enumerate(_WIDTHS):
        for i in range(blocks):
            stride = 2 if stage > 0 and i == 0 else 1
            out.append(_Block(inputs, maps, stride, bottleneck=bottleneck))
            inputs = 4 * maps if bottleneck else maps
    return out
