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
    """Base class of backbones, which compute the features of images.

    A backbone and the head of a training objective are combined in an `abstain.training.Network`.
    The head computes logits from the features. The final linear layer of the network is
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
        """Compute features of shape (n, width) from images of any supported size."""

    def forward(self, pictures: Tensor) -> Tensor:
        """Compute features of shape (n, width) from images."""
        return self.features(pictures)

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Run the layers before the first dropout layer, whose output is deterministic."""
        return pictures

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Compute the features from the output of `before_dropout`."""
        return self.features(maps)

    def rename_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights with the parameter names of this model."""
        return weights


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> Any:
    """Return a convolution without bias that preserves the image size if the stride is 1."""
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def dropout_layer(rate: float) -> Any:
    """Return a dropout layer, or an identity layer if the dropout probability is 0."""
    if checks.fraction(rate, "dropout", high=1.0) == 1.0:
        raise DomainError(f"`dropout` must be below 1, or no unit remains; got {rate!r}")
    return Dropout(rate) if rate else nn.Identity()


class Dropout(nn.Dropout):
    """Dropout layer that is twice as fast on a CPU as the layer of torch.

    On a CPU, the dropout probability is rounded to a multiple of 1/65536.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """In training mode, set random units to zero and scale the remaining units."""
        n_retained_levels = round((1.0 - self.p) * _N_LEVELS)
        is_random = 0 < n_retained_levels < _N_LEVELS
        if not self.training or maps.device.type != "cpu" or not is_random:
            return super().forward(maps)
        draws = _draw_levels(maps)
        # Draws above the threshold retain a unit.
        threshold = _N_LEVELS // 2 - n_retained_levels - 1
        scaled = maps * (_N_LEVELS / n_retained_levels)
        if maps.dtype not in {torch.float32, torch.float64}:
            # Floats with 16 bits cannot represent all draws.
            return torch.where(draws > threshold, scaled, 0)
        # This function, the gradient of a ReLU, sets units to zero where the draw is not above the
        # threshold. It takes half the time of `where` and a quarter of that of a product.
        return torch.ops.aten.threshold_backward(scaled, draws.to(maps.dtype), threshold)


def _draw_levels(maps: Tensor) -> Tensor:
    """Draw a signed 16-bit integer for each unit, in memory order."""
    # Sampling 64 random bits, which are sufficient for four units, takes as long as one Bernoulli
    # draw of torch.
    bits = torch.empty((maps.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    draws = bits.bitwise_not_().view(torch.int16)[: maps.numel()]
    if maps.ndim == 4 and maps.is_contiguous(memory_format=torch.channels_last):
        n, channels, height, width = maps.shape
        return draws.view(n, height, width, channels).permute(0, 3, 1, 2)
    return draws.view(maps.shape)


class MaxPool2x2(nn.MaxPool2d):
    """Max pooling with a window of 2 x 2, which is faster on a CPU than the layer of torch."""

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, maps: Tensor) -> Tensor:
        """Halve the height and the width of feature maps, and drop an odd last row or column."""
        if maps.requires_grad or maps.device.type != "cpu":
            return super().forward(maps)
        height, width = maps.shape[2:]
        even = maps[:, :, : height // 2 * 2, : width // 2 * 2]
        rows = torch.maximum(even[:, :, 0::2], even[:, :, 1::2])
        return torch.maximum(rows[..., 0::2], rows[..., 1::2])


def initialize_weights(model: Any) -> None:
    """Initialize all convolutions by the Kaiming method, with the global random generator."""
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def average_over_image(maps: Tensor) -> Tensor:
    """Average feature maps of shape (n, channels, height, width) over all pixels."""
    return maps.mean(dim=(2, 3))


class Resized(Backbone):
    """A backbone that resizes its input images by bilinear interpolation.

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
        return self.inner.features(self._resize(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Resize the images and run the layers before the first dropout layer."""
        return self.inner.before_dropout(self._resize(pictures))

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Compute the features from the output of `before_dropout`."""
        return self.inner.after_dropout(maps)

    def _resize(self, pictures: Tensor) -> Tensor:
        """Resize images to the height and the width that the backbone requires."""
        size = (self.side, self.side)
        if tuple(pictures.shape[2:]) == size:
            return pictures
        # Antialiasing, which Pillow also uses, prevents artificial edges in reduced images.
        return nn.functional.interpolate(pictures, size, mode="bilinear", antialias=True)
