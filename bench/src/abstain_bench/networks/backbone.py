"""`Backbone`, the base class of models that are trained and scored."""

from abc import ABC, abstractmethod
from typing import Any

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain_bench._torch import torch

nn = torch.nn
#: torch may be absent when types are checked.
Tensor = Any

#: Number of levels to which the probability of retaining a unit is rounded.
_N_LEVELS = 1 << 16


class Backbone(nn.Module, ABC):
    """Base class of networks that compute features of images.

    A backbone and the head of an objective form an `abstain.training.Network`. The head computes
    logits from the features. The last layer of the network is ``network.head.classifier``.

    Parameters
    ----------
    width : int
        Number of features.

    Attributes
    ----------
    width : int
        Number of features.
    side : int
        Height and width of the input of the first layer, or 0 if images are not resized.

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
        """Compute features of shape (n, width) from images (n, channels, height, width)."""

    def forward(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, width) from images."""
        return self.features(pictures)

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Run the layers before the first dropout layer, whose output is equal in all passes."""
        return pictures

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Compute the features from a result of `before_dropout`."""
        return self.features(maps)

    def rename_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Rename the weights of a file to the names in this model."""
        return weights


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> Any:
    """Return a convolution without bias that preserves the size of the image at stride 1."""
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def dropout_layer(rate: float) -> Any:
    """Return a dropout layer, or an identity if the dropout probability is 0."""
    if checks.fraction(rate, "dropout", high=1.0) == 1.0:
        raise DomainError(f"`dropout` must be below 1, or no unit remains; got {rate!r}")
    return Dropout(rate) if rate else nn.Identity()


class Dropout(nn.Dropout):
    """Dropout that takes half the time of the implementation in torch on a CPU.

    On a CPU, dropout is a large part of the computation. The probability is rounded to a multiple
    of 1/65536 on a CPU, and retained units are scaled accordingly.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """In training mode, set random units to zero and scale all other units."""
        n_retained_levels = round((1.0 - self.p) * _N_LEVELS)
        is_exact = not 0 < n_retained_levels < _N_LEVELS
        if not self.training or maps.device.type != "cpu" or is_exact:
            return super().forward(maps)
        # Sampling 64 random bits, which are sufficient for four units, takes as long as one
        # Bernoulli draw of torch.
        bits = torch.empty((maps.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        draws = bits.bitwise_not_().view(torch.int16)[: maps.numel()]
        draws = _match_memory_layout(draws, maps)
        scaled = maps * (_N_LEVELS / n_retained_levels)
        # Draws are uniform on the signed 16-bit integers. Draws above the threshold retain a unit.
        threshold = _N_LEVELS // 2 - n_retained_levels - 1
        if maps.dtype not in {torch.float32, torch.float64}:
            # Floats with 16 bits cannot represent all draws.
            return torch.where(draws > threshold, scaled, 0)
        # This function, the gradient of a ReLU, sets units to zero where the draw is not above the
        # threshold. It takes half the time of `where` and a quarter of that of a product.
        return torch.ops.aten.threshold_backward(scaled, draws.to(maps.dtype), threshold)


def _match_memory_layout(draws: Tensor, maps: Tensor) -> Tensor:
    """Reshape draws to the shape of maps, with the same order in memory for fast access."""
    if maps.ndim == 4 and maps.is_contiguous(memory_format=torch.channels_last):
        n, channels, height, width = maps.shape
        return draws.view(n, height, width, channels).permute(0, 3, 1, 2)
    return draws.view(maps.shape)


class MaxPool2x2(nn.MaxPool2d):
    """Max pooling of 2 x 2 units.

    Without gradients on a CPU, this layer takes a tenth of the time of the layer in torch. The
    results are equal.
    """

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, maps: Tensor) -> Tensor:
        """Halve the height and the width of maps, without a last odd row or column."""
        if maps.requires_grad or maps.device.type != "cpu":
            return super().forward(maps)
        height, width = (size // 2 * 2 for size in maps.shape[2:])
        rows = torch.maximum(maps[:, :, 0:height:2, :width], maps[:, :, 1:height:2, :width])
        return torch.maximum(rows[..., 0::2], rows[..., 1::2])


def initialize_weights(model: Any) -> None:
    """Initialize the weights of all convolutions as in He et al. (2015).

    The function uses the global generator of torch, which the caller seeds and restores.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def average_over_image(maps: Tensor) -> Tensor:
    """Average maps of shape (n, channels, height, width) over the image to (n, channels)."""
    return maps.mean(dim=(2, 3))


class Resized(Backbone):
    """A backbone that resizes each batch of images with bilinear interpolation.

    The data set remains in memory in its original size. For example, 50,000 images of 32 x 32
    pixels need 150 MB, even if the network requires 384 x 384 pixels.

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import Resized, SmallConv
    >>> Resized(SmallConv(), 64).features(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(self, inner: Backbone, side: int) -> None:
        super().__init__(inner.width)
        self.inner = inner
        self.side = side

    def features(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, width) from images of any size."""
        return self.inner.features(self._scaled(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Resize images and run the layers before the first dropout layer."""
        return self.inner.before_dropout(self._scaled(pictures))

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Compute the features from a result of `before_dropout`."""
        return self.inner.after_dropout(maps)

    def _scaled(self, pictures: Tensor) -> Tensor:
        """Resize images to the side of the backbone."""
        size = (self.side, self.side)
        if tuple(pictures.shape[2:]) == size:
            return pictures
        # Antialiasing, which Pillow also uses, prevents artificial edges in reduced images.
        return nn.functional.interpolate(pictures, size, mode="bilinear", antialias=True)
