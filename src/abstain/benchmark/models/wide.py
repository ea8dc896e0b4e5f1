"""Wide residual networks."""

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


class _Block(nn.Module):
    """Two pre-activated 3 x 3 convolutions beside an identity or a projection."""

    def __init__(self, inputs: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(maps)
        self.convolution1 = convolution(inputs, maps, stride=stride)
        self.convolution2 = convolution(maps, maps)
        self.dropout = dropped(dropout)
        self.shortcut = convolution(inputs, maps, 1, stride) if inputs != maps else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps of the next block."""
        active = nn.functional.relu(self.norm1(x))
        out = self.dropout(nn.functional.relu(self.norm2(self.convolution1(active))))
        return self.convolution2(out) + (x if self.shortcut is None else self.shortcut(active))


class WideResNet(Backbone):
    """A residual network with few and wide layers, for pictures of 32 x 32.

    Parameters
    ----------
    depth : int, default=28
        6 n + 4 layers.
    widen : int, default=10
        How many times wider than a residual network of 16, 32 and 64 maps.
    channels : int, default=3
        Of the pictures.
    dropout : float, default=0
        The chance that a unit between the two convolutions of a block is left out.

    Raises
    ------
    DomainError
        No number of equal blocks gives this depth, or `dropout` is not in [0, 1).

    References
    ----------
    .. [1] Zagoruyko & Komodakis (2016), Wide residual networks, https://arxiv.org/abs/1605.07146

    Examples
    --------
    >>> import torch
    >>> from abstain.benchmark.models import WideResNet
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
            msg = f"`depth` must be 6 n + 4 (10, 16, 22, 28, ...); got {depth}"
            raise DomainError(msg)
        widths = [16 * widen, 32 * widen, 64 * widen]
        super().__init__(widths[-1])
        self.first = convolution(channels, 16)
        blocks, inputs = [], 16
        for stage, maps in enumerate(widths):
            for i in range((depth - 4) // 6):
                blocks.append(_Block(inputs, maps, 2 if stage > 0 and i == 0 else 1, dropout))
                inputs = maps
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(inputs)
        start(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures as (n, width)."""
        return averaged(nn.functional.relu(self.norm(self.blocks(self.first(pictures)))))
