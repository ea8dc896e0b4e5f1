"""`Preprocessing`: augmentation and normalization of stored images for a network."""

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

#: Number of images per block for the statistics of pixels.
_BLOCK = 5000


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Augmentation and normalization, with the statistics of one training set.

    Attributes
    ----------
    mean, std : tuple of float
        Mean and standard deviation of each channel of the training images, in [0, 1].
    variation : Variation or None
        Random change of images at run time.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data import Images
    >>> from abstain_bench.runs.training import Preprocessing
    >>> gray = Images(np.full((2, 1, 8, 8), 51, np.uint8), np.array([0, 1]), ("no", "yes"))
    >>> inputs = Preprocessing.from_training_images(gray)
    >>> inputs.mean, inputs.prepare(gray, seed=0).abs().max()
    ((0.2,), tensor(0.))
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    variation: Variation | None = None

    @classmethod
    def from_training_images(
        cls, train: Images, variation: Variation | None = None
    ) -> "Preprocessing":
        """Compute mean and standard deviation of each channel of the training images."""
        means, stds = [], []
        for channel in np.moveaxis(train.pixels, 1, 0):
            # Integer counts are exact and do not depend on the order of the images.
            counts = np.zeros(256, np.int64)
            for start in range(0, train.n, _BLOCK):
                counts += np.bincount(channel[start : start + _BLOCK].ravel(), minlength=256)
            share = counts / channel.size
            level = np.arange(256) / 255
            mean = float(share @ level)
            std = float(np.sqrt(share @ (level - mean) ** 2))
            means.append(round(mean, 12))
            stds.append(std if std > 1e-6 else 1.0)
        return cls(tuple(means), tuple(stds), variation)

    def augment(self, pixels: Tensor, generator: Any) -> Tensor:
        """Return normalized training images (from bytes) with a random augmentation."""
        images = pixels.float() / 255
        if self.variation is None:
            return self._normalize(images)
        normalized = self._normalize(self.variation(images, generator))
        return self.variation.augment_normalized(normalized, generator)

    def prepare(self, images: Images, *, seed: int, copies: int = 1, device: str = "cpu") -> Tensor:
        """Return normalized images for evaluation, varied once if the task requires it."""
        return self._normalize(self._apply_task_variation(images, seed, copies)).to(device)

    def prepare_exposure(
        self,
        exposure: Exposure,
        *,
        seed: int,
        device: str = "cpu",
        images: Images | None = None,
    ) -> Tensor:
        """Return the normalized images of an exposure, corrupted if it is a corruption."""
        loaded = exposure.load() if images is None else images
        prepared = self._apply_task_variation(loaded, seed, 1)
        if exposure.corruption and not exposure.is_corrupted:
            clipped = prepared.clamp(0, 1).numpy()
            corrupted = corrupt(clipped, exposure.corruption, exposure.severity, rng=seed)
            prepared = torch.from_numpy(corrupted)
        return self._normalize(prepared).to(device)

    def prepare_lazily(self, images: Images) -> "LazyImages | None":
        """Return images that are normalized on access.

        None if the variation is part of the task, because it is sampled for all images at once.
        """
        if self.variation is not None and self.variation.is_part_of_task:
            return None
        return LazyImages(
            images, lambda block: self._normalize(self._apply_task_variation(block, 0, 1))
        )

    def _apply_task_variation(self, images: Images, seed: int, copies: int) -> Tensor:
        """Return images in [0, 1], varied once if the variation is part of the task."""
        scaled = torch.from_numpy(images.pixels).float() / 255
        if self.variation is None:
            return scaled.repeat(copies, 1, 1, 1)
        if not self.variation.is_part_of_task:
            return self.variation.prepare_for_evaluation(scaled).repeat(copies, 1, 1, 1)
        # Sampled on the CPU, so that the test set does not depend on the device.
        generator = torch.Generator().manual_seed(seed)
        return torch.cat([self.variation(scaled, generator) for _ in range(copies)])

    def _normalize(self, images: Tensor) -> Tensor:
        mean = self._per_channel(self.mean, images)
        std = self._per_channel(self.std, images)
        normalized = (images - mean) / std
        # Convolutions on a CPU are twice as fast in this layout.
        return normalized.contiguous(memory_format=torch.channels_last)

    def _per_channel(self, values: tuple[float, ...], images: Tensor) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=images.device)[:, None, None]


class LazyImages:
    """Images that are normalized on access.

    Stored bytes take a quarter of the memory of normalized images, or less if these are larger.
    """

    ndim = 4

    def __init__(self, images: Images, normalize: Callable[[Images], Tensor]) -> None:
        self.images, self.normalize = images, normalize

    def __len__(self) -> int:
        """Return the number of images."""
        return self.images.n

    def __getitem__(self, rows: int | slice) -> Tensor:
        """Return one or several normalized images."""
        if isinstance(rows, slice):
            return self.normalize(self.images.subset(rows))
        return self.normalize(self.images.subset(slice(rows, rows + 1)))[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of images, channels, height and width."""
        return (len(self), *self[:1].shape[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of the stored images."""
        return int(self.images.pixels.nbytes)
