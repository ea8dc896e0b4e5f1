"""`Inputs`: from stored images, varied at run time, to what a network sees."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain_bench._torch import torch
from abstain_bench.data import Exposure, Images
from abstain_bench.data.corruptions import corrupt
from abstain_bench.runs.training.variations import Variation

#: torch may be absent when types are checked.
Tensor = Any

#: Images at a time of which the levels are counted.
_BLOCK = 5000


@dataclass(frozen=True, eq=False)
class Inputs:
    """How images are varied and scaled: the same for all that see one training set.

    Attributes
    ----------
    mean, deviation : tuple of float
        Of each channel of the training images, in [0, 1]; they are taken off and divided by.
    variation : Variation or None
        What is changed at run time.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data import Images
    >>> from abstain_bench.runs.training import Inputs
    >>> gray = Images(np.full((2, 1, 8, 8), 51, np.uint8), np.array([0, 1]), ("no", "yes"))
    >>> inputs = Inputs.of(gray)
    >>> inputs.mean, inputs.fixed(gray, seed=0).abs().max()
    ((0.2,), tensor(0.))
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    variation: Variation | None = None

    @classmethod
    def of(cls, train: Images, variation: Variation | None = None) -> "Inputs":
        """Take mean and deviation from the training images."""
        mean, deviation = [], []
        for channel in np.moveaxis(train.pixels, 1, 0):
            # Whole-number sums are exact, whatever the order of the images.
            counts = np.zeros(256, np.int64)
            for start in range(0, train.n, _BLOCK):
                counts += np.bincount(channel[start : start + _BLOCK].ravel(), minlength=256)
            levels = counts / channel.size
            value = np.arange(256) / 255
            middle = float(levels @ value)
            mean.append(round(middle, 12))
            spread = float(np.sqrt(levels @ (value - middle) ** 2))
            deviation.append(spread if spread > 1e-6 else 1.0)
        return cls(tuple(mean), tuple(deviation), variation)

    def varied(self, pixels: Tensor, draws: Any) -> Tensor:
        """Return training images (bytes) as a network sees them, varied anew at each call."""
        pictures = pixels.float() / 255
        if self.variation is None:
            return self._scaled(pictures)
        return self.variation.after(self._scaled(self.variation(pictures, draws)), draws)

    def fixed(self, images: Images, *, seed: int, copies: int = 1, device: str = "cpu") -> Tensor:
        """Return images to validate or test on: varied once where that belongs to the task."""
        return self._scaled(self._of_task(images, seed, copies)).to(device)

    def exposed(
        self,
        exposure: Exposure,
        *,
        seed: int,
        device: str = "cpu",
        images: Images | None = None,
    ) -> Tensor:
        """Return what a trained network sees of an exposure."""
        pictures = self._of_task(exposure.load() if images is None else images, seed, 1)
        if exposure.corruption and not exposure.ready:
            clipped = pictures.clamp(0, 1).numpy()
            spoiled = corrupt(clipped, exposure.corruption, exposure.severity, rng=seed)
            pictures = torch.from_numpy(spoiled)
        return self._scaled(pictures).to(device)

    def lazily(self, images: Images) -> "ScaledPictures | None":
        """Return images that are scaled as they are asked for; None where that cannot be.

        What belongs to the task is drawn for all of them at once.
        """
        if self.variation is not None and self.variation.of_task:
            return None
        return ScaledPictures(images, lambda some: self._scaled(self._of_task(some, 0, 1)))

    def _of_task(self, images: Images, seed: int, copies: int) -> Tensor:
        """Return images in [0, 1], varied once where that belongs to the task."""
        pictures = torch.from_numpy(images.pixels).float() / 255
        if self.variation is None:
            return pictures.repeat(copies, 1, 1, 1)
        if not self.variation.of_task:
            return self.variation.fixed(pictures).repeat(copies, 1, 1, 1)
        # On the CPU, so that the test set is the same whatever the device.
        draws = torch.Generator().manual_seed(seed)
        return torch.cat([self.variation(pictures, draws) for _ in range(copies)])

    def _scaled(self, pictures: Tensor) -> Tensor:
        mean, deviation = (
            torch.tensor(numbers, dtype=torch.float32, device=pictures.device)[:, None, None]
            for numbers in (self.mean, self.deviation)
        )
        out = (pictures - mean) / deviation
        # Convolutions on a CPU are twice as fast in this layout.
        return out.contiguous(memory_format=torch.channels_last)


class ScaledPictures:
    """Pictures as a network sees them, scaled as they are asked for.

    As numbers they take four times the memory, or twelve where a network sees them larger.
    """

    ndim = 4

    def __init__(self, images: Images, scaled: Callable[[Images], Tensor]) -> None:
        self.images, self.scaled = images, scaled

    def __len__(self) -> int:
        """Return how many there are."""
        return self.images.n

    def __getitem__(self, rows: int | slice) -> Tensor:
        """Return one, or some."""
        if isinstance(rows, slice):
            return self.scaled(self.images.subset(rows))
        return self.scaled(self.images.subset(slice(rows, rows + 1)))[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many, channels, height and width."""
        return (len(self), *self[:1].shape[1:])

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return int(self.images.pixels.nbytes)
