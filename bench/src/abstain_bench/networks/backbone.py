"""`Backbone`: the interface of models for the training loop and the scores."""

from abc import ABC, abstractmethod
from typing import Any

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain_bench._torch import torch

nn = torch.nn
#: torch may be absent when types are checked.
Tensor = Any

#: Number of levels of the probability of retaining a unit.
_N_LEVELS = 1 << 16


class Backbone(nn.Module, ABC):
    """A network that computes features of images; a head computes logits from them.

    With the head of an objective it is an `abstain.training.Network`, whose last layer is
    ``network.head.classifier``.

    Parameters
    ----------
    width : int
        Number of features.

    Attributes
    ----------
    width : int
        Number of features.
    side : int
        Height and width of the input of the first layer; 0 for that of the images.

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
        """Run the layers before the first dropout layer, whose output is equal in all passes."""
        return pictures

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Return the features for an output of `before_dropout`."""
        return self.features(maps)

    def rename_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of a file with the names that this model uses."""
        return weights


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> Any:
    """Return a convolution without bias that preserves the size of the image at stride 1."""
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def dropout_layer(rate: float) -> Any:
    """Return a dropout layer with this rate; an identity for 0."""
    if checks.fraction(rate, "dropout", high=1.0) == 1.0:
        raise DomainError(f"`dropout` must be below 1, or no unit remains; got {rate!r}")
    return Dropout(rate) if rate else nn.Identity()


class Dropout(nn.Dropout):
    """Dropout in half the time of torch on a CPU, where it is a large part of the computation.

    The rate is rounded to a multiple of 1/65536 there, and retained units are scaled accordingly.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Set random units to zero in training mode, and scale the others."""
        n_retained_levels = round((1.0 - self.p) * _N_LEVELS)
        is_exact = not 0 < n_retained_levels < _N_LEVELS
        if not self.training or maps.device.type != "cpu" or is_exact:
            return super().forward(maps)
        # 64 random bits cost as much as one Bernoulli draw of torch, and serve four units.
        bits = torch.empty((maps.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        draws = bits.bitwise_not_().view(torch.int16)[: maps.numel()]
        draws = _match_memory_layout(draws, maps)
        scaled = maps * (_N_LEVELS / n_retained_levels)
        # Draws are uniform on the 16-bit integers; a unit is retained above this one.
        threshold = _N_LEVELS // 2 - n_retained_levels - 1
        if maps.dtype not in {torch.float32, torch.float64}:
            # Floats of 16 bits cannot represent all draws.
            return torch.where(draws > threshold, scaled, 0)
        # The gradient of a ReLU: half the time of `where`, and a quarter of that of a product with
        # a mask.
        return torch.ops.aten.threshold_backward(scaled, draws.to(maps.dtype), threshold)


def _match_memory_layout(draws: Tensor, maps: Tensor) -> Tensor:
    """Return draws in the shape of maps, in their memory order, so that access is contiguous."""
    if maps.ndim == 4 and maps.is_contiguous(memory_format=torch.channels_last):
        n, channels, height, width = maps.shape
        return draws.view(n, height, width, channels).permute(0, 3, 1, 2)
    return draws.view(maps.shape)


class MaxPool2x2(nn.MaxPool2d):
    """Max pooling of 2 x 2 units; without gradients on a CPU in a tenth of the time of torch.

    The results are equal to those of torch.
    """

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, maps: Tensor) -> Tensor:
        """Return maps of half the height and width; odd rows and columns at the end are dropped."""
        if maps.requires_grad or maps.device.type != "cpu":
            return super().forward(maps)
        height, width = (size // 2 * 2 for size in maps.shape[2:])
        rows = torch.maximum(maps[:, :, 0:height:2, :width], maps[:, :, 1:height:2, :width])
        return torch.maximum(rows[..., 0::2], rows[..., 1::2])


def initialize_weights(model: Any) -> None:
    """Initialize the weights of all convolutions as in He et al. (2015).

    The generator of torch is used; the caller seeds and restores it.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def average_over_image(maps: Tensor) -> Tensor:
    """Average each feature map over the image: (n, c, h, w) to (n, c)."""
    return maps.mean(dim=(2, 3))


class Resized(Backbone):
    """A backbone behind a bilinear scaling of the images, a batch at a time.

    So 50,000 images of 32 x 32 stay 150 MB where a network wants them at 384 x 384.

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import Resized, SmallConv
    >>> Resized(SmallConv(), 64).features(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(self, inner: Backbone, side: int) -> None:
        super().__init__(inner.width)
        self.inner, self.side = inner, side

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images of any size as (n, width)."""
        return self.inner.features(self._scaled(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Return what comes before the first layer of dropout: the same in every pass."""
        return self.inner.before_dropout(self._scaled(pictures))

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Return the features, from what `before_dropout` returned."""
        return self.inner.after_dropout(maps)

    def _scaled(self, pictures: Tensor) -> Tensor:
        size = (self.side, self.side)
        if tuple(pictures.shape[2:]) == size:
            return pictures
        # As Pillow does it, so that a smaller image has no edges that were not there.
        return nn.functional.interpolate(pictures, size, mode="bilinear", antialias=True)
