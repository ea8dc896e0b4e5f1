"""`Backbone`: what the training loop and the scores need of a model, and nothing more."""

from abc import ABC, abstractmethod
from typing import Any

from abstain._foundation import checks
from abstain.benchmark._library import torch
from abstain.errors import DomainError

nn = torch.nn
#: torch may be absent when types are checked.
Tensor = Any


class Backbone(nn.Module, ABC):
    """A network that turns pictures into features; a head makes logits of them.

    With the head that an objective makes it is a `abstain.training.Network`, whose last layer is
    ``network.head.classifier``.

    Parameters
    ----------
    width : int
        Features of a picture.

    Attributes
    ----------
    width : int
        Features of a picture.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> from abstain.benchmark.models import SmallConv
    >>> backbone = SmallConv()
    >>> objective = training.make("cross-entropy", rng=0)
    >>> network = training.Network(backbone, objective.head(backbone.width, 10))
    >>> network(torch.zeros(2, 1, 28, 28)).logits.shape, network.head.classifier.weight.shape
    (torch.Size([2, 10]), torch.Size([10, 64]))
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    @abstractmethod
    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures (n, channels, height, width) as (n, width)."""

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures as (n, width)."""
        return self.features(pictures)

    def renamed(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of a file under the names that this model has for them."""
        return weights


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> Any:
    """Return a convolution without bias that keeps the size of the picture at stride 1."""
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def dropped(rate: float) -> Any:
    """Return a layer that leaves out units with this chance; nothing at 0."""
    if checks.fraction(rate, "dropout", high=1.0) == 1.0:
        msg = f"`dropout` must be below 1, or nothing is left to learn from; got {rate!r}"
        raise DomainError(msg)
    return nn.Dropout(rate) if rate else nn.Identity()


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
    """Average each feature map over the picture: (n, c, h, w) to (n, c)."""
    return maps.mean(dim=(2, 3))
