"""`Backbone`: what the training loop and the scores need of a model, and nothing more."""

from abc import ABC, abstractmethod
from typing import Any

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain_bench._torch import torch

nn = torch.nn
#: torch may be absent when types are checked.
Tensor = Any

#: What the chance to be kept is a multiple of: one over this.
_CHANCES = 1 << 16


class Backbone(nn.Module, ABC):
    """A network that turns images into features; a head makes logits of them.

    With the head that an objective makes it is a `abstain.training.Network`, whose last layer is
    ``network.head.classifier``.

    Parameters
    ----------
    width : int
        Features of an image.

    Attributes
    ----------
    width : int
        Features of an image.
    side : int
        Height and width that the layers see; 0 for those of the images.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> from abstain_bench.networks import SmallConv
    >>> backbone = SmallConv()
    >>> objective = training.make("cross-entropy", rng=0)
    >>> network = training.Network(backbone, objective.head(backbone.width, 10))
    >>> network(torch.zeros(2, 1, 28, 28)).logits.shape, network.head.classifier.weight.shape
    (torch.Size([2, 10]), torch.Size([10, 64]))
    """

    side: int = 0

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    @abstractmethod
    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images (n, channels, height, width) as (n, width)."""

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the features of images as (n, width)."""
        return self.features(pictures)

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Return what comes before the first layer of dropout: the same in every pass."""
        return pictures

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Return the features, from what `before_dropout` returned."""
        return self.features(maps)

    def renamed(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of a file under the names that this model has for them."""
        return weights


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> Any:
    """Return a convolution without bias that keeps the size of the image at stride 1."""
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def dropped(rate: float) -> Any:
    """Return a layer that leaves out units with this chance; nothing at 0."""
    if checks.fraction(rate, "dropout", high=1.0) == 1.0:
        raise DomainError(
            f"`dropout` must be below 1, or nothing is left to learn from; got {rate!r}"
        )
    return Dropout(rate) if rate else nn.Identity()


class Dropout(nn.Dropout):
    """Dropout as torch has it, in half its time on a CPU, where it is a large part of all work.

    The chance is rounded to 1/65536 there, and kept units are scaled by what it really is.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Leave units out in training mode, and scale the others."""
        kept = round((1.0 - self.p) * _CHANCES)
        if not self.training or maps.device.type != "cpu" or not 0 < kept < _CHANCES:
            return super().forward(maps)
        # 64 random bits are as fast to draw as one draw of torch's Bernoulli, and serve four units.
        bits = torch.empty((maps.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        draws = _laid(bits.bitwise_not_().view(torch.int16)[: maps.numel()], maps)
        scaled, last = maps * (_CHANCES / kept), _CHANCES // 2 - kept - 1
        if maps.dtype not in {torch.float32, torch.float64}:
            # Numbers of 16 bits cannot tell the draws apart.
            return torch.where(draws > last, scaled, 0)
        # What a ReLU does to gradients: half the time of `where`, and a quarter of that of a
        # product with a mask of numbers.
        return torch.ops.aten.threshold_backward(scaled, draws.to(maps.dtype), last)


def _laid(draws: Tensor, maps: Tensor) -> Tensor:
    """Give draws the shape of maps, in the order of memory, so that neighbors go together."""
    if maps.ndim == 4 and maps.is_contiguous(memory_format=torch.channels_last):
        n, channels, height, width = maps.shape
        return draws.view(n, height, width, channels).permute(0, 3, 1, 2)
    return draws.view(maps.shape)


class Halving(nn.MaxPool2d):
    """The largest of each 2 x 2 units; where no gradient is asked for, in a tenth of torch's time.

    That is on a CPU, for maps of small images. The numbers are the same.
    """

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, maps: Tensor) -> Tensor:
        """Return maps of half the height and width; what is left over at odd sizes is dropped."""
        if maps.requires_grad or maps.device.type != "cpu":
            return super().forward(maps)
        height, width = (size // 2 * 2 for size in maps.shape[2:])
        rows = torch.maximum(maps[:, :, 0:height:2, :width], maps[:, :, 1:height:2, :width])
        return torch.maximum(rows[..., 0::2], rows[..., 1::2])


def start(model: Any) -> None:
    """Draw the weights of all convolutions as He et al. (2015) do.

    The draws come from torch's generator, which whoever makes a model seeds and restores.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def averaged(maps: Tensor) -> Tensor:
    """Average each feature map over the image: (n, c, h, w) to (n, c)."""
    return maps.mean(dim=(2, 3))
