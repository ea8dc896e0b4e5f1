"""`Preprocessing`, which varies and normalizes stored images for a network."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.records import between, check_unconverted
from abstain.errors import InputError
from abstain_bench._torch import torch
from abstain_bench.data import Exposure, Images
from abstain_bench.data.corruptions import corrupt

#: torch may be absent when types are checked.
Tensor = Any
Generator = Any

#: Maximum padding in pixels, which exceeds the width of all images of the tasks.
_MAX_PADDING = 256


class Variation(ABC):
    """A random transformation of images with values in [0, 1].

    Attributes
    ----------
    is_part_of_task : bool
        Whether validation and test images are also transformed, with parameters that are sampled
        once. If False, only training images are transformed, as data augmentation.
    """

    is_part_of_task: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Transform images of shape (n, channels, height, width) independently of each other."""

    def augment_normalized(self, images: Tensor, generator: Generator) -> Tensor:  # noqa: ARG002
        """Transform images again after they are normalized to a mean of 0."""
        return images

    def prepare_for_evaluation(self, images: Tensor) -> Tensor:
        """Prepare validation and test images, if the transformation is not part of the task."""
        return images


@dataclass(frozen=True)
class CropFlip(Variation):
    """Shift each image by a few pixels and mirror half of the images, as is common for CIFAR.

    Attributes
    ----------
    padding : int
        Width of the black border that is added before each image is randomly cropped to its
        original size.
    mirror : bool
        Whether to mirror half of the images horizontally.

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.runs.training import CropFlip
    >>> generator = torch.Generator().manual_seed(0)
    >>> CropFlip()(torch.ones(2, 3, 32, 32), generator).shape
    torch.Size([2, 3, 32, 32])
    """

    padding: Annotated[int, between(1, _MAX_PADDING)] = 4
    mirror: bool = True

    def __post_init__(self) -> None:
        check_unconverted(self)

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Shift and mirror images of shape (n, channels, height, width) independently."""
        return shift_and_mirror(images, self.padding, mirror=self.mirror, generator=generator)


def shift_and_mirror(images: Tensor, padding: int, *, mirror: bool, generator: Generator) -> Tensor:
    """Shift each image by up to `padding` pixels, and optionally mirror half of the images."""
    n, _, height, width = images.shape
    device = images.device
    padded = torch.nn.functional.pad(images, (padding,) * 4)
    shift = torch.randint(0, 2 * padding + 1, (2, n, 1), generator=generator, device=device)
    rows = shift[0] + torch.arange(height, device=device)
    columns = shift[1] + torch.arange(width, device=device)
    if mirror:
        flip = torch.rand(n, 1, generator=generator, device=device) < 0.5
        columns = torch.where(flip, columns.flip(1), columns)
    sample_index = torch.arange(n, device=device)[:, None, None]
    # The result of the indexing has the channels as its last axis.
    shifted = padded[sample_index, :, rows[:, :, None], columns[:, None, :]]
    return shifted.permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Distortion(Variation):
    """Rotate, scale, shear and shift images, reduce their contrast and add noise.

    The distortion is part of the task: validation and test images are also distorted.

    Attributes
    ----------
    rotation : float
        Maximum absolute rotation in degrees.
    scale : float
        Images are scaled by a random factor from 1 / (1 + scale) to 1 + scale.
    shear : float
        Maximum shear in both directions.
    shift : float
        Maximum shift in each direction, as a share of the side of the image.
    contrast : float
        Lowest factor of the contrast. If it is 1, the contrast is unchanged.
    noise : float
        Standard deviation of the normal noise.
    background : float
        Maximum random level that replaces black. White is not changed.
    side : int
        Height and width of the result. If it is 0, the images keep their size.

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.runs.training import Distortion
    >>> generator = torch.Generator().manual_seed(0)
    >>> Distortion(noise=0.0)(torch.zeros(2, 1, 28, 28), generator).abs().max()
    tensor(0.)
    """

    rotation: float = 20.0
    scale: float = 0.2
    shear: float = 0.2
    shift: float = 0.08
    contrast: float = 0.4
    noise: float = 0.25
    background: float = 0.0
    side: int = 0

    is_part_of_task: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("rotation", "scale", "shear", "noise"):
            checks.fraction(getattr(self, name), name, high=math.inf)
        for name in ("shift", "contrast", "background"):
            checks.fraction(getattr(self, name), name)
        if self.side:
            checks.positive_int(self.side, "side")

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Distort images of shape (n, channels, height, width) independently of each other."""

        def uniform(low: float, high: float) -> Tensor:
            return _uniform(images, generator, low, high)

        angle = uniform(-1, 1) * math.radians(self.rotation)
        size = torch.exp(uniform(-1, 1) * math.log1p(self.scale))
        shear = uniform(-1, 1) * self.shear
        # The grid spans [-1, 1], so a share of the side corresponds to twice this number.
        across = uniform(-2, 2) * self.shift
        down = uniform(-2, 2) * self.shift
        cos = size * angle.cos()
        sin = size * angle.sin()
        matrix = ((cos, shear * cos - sin, across), (sin, shear * sin + cos, down))
        side = (self.side, self.side) if self.side else images.shape[2:]
        distorted = _resample(images, matrix, side) * _per_image(uniform(self.contrast, 1.0))
        if self.background:
            level = _per_image(uniform(0.0, self.background))
            distorted = level + (1 - level) * distorted
        noise = torch.randn(distorted.shape, generator=generator, device=images.device)
        return distorted + self.noise * noise


#: Weights of red, green and blue in a gray level.
_LUMA: Final = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class Augmentation(Variation):
    """Training augmentation of FD-Shifts, in which all operations are disabled by default.

    Attributes
    ----------
    padding : int
        Width of the black border that is added before each image is randomly cropped to its
        original size.
    mirror : bool
        Whether to mirror half of the images horizontally.
    rotation : float
        Maximum rotation in degrees in both directions. Pixels outside the original image are black.
    cutout : int
        Side of a square around a random pixel, which becomes the mean of the training images in
        half of the images.
    side : int
        Side of the crop in pixels, at most the side of the images. Validation and test images are
        cropped at the center. The value 0 disables the crop.
    area : float
        Smallest share of the area in a random crop of training images. Crops have an aspect ratio
        from 3/4 to 4/3 and are resized to `side`. The value 1 crops the center.
    jitter : float
        Brightness, contrast and saturation are multiplied by random factors from 1 - jitter to
        1 + jitter.

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.runs.training.inputs import Augmentation
    >>> generator = torch.Generator().manual_seed(0)
    >>> Augmentation(side=24, area=0.1)(torch.ones(2, 3, 32, 32), generator).shape
    torch.Size([2, 3, 24, 24])
    >>> some = Augmentation(cutout=4).augment_normalized(torch.ones(64, 3, 32, 32), generator)
    >>> 16 < int((some.amin((1, 2, 3)) == 0).sum()) < 48
    True
    """

    padding: Annotated[int, between(0, _MAX_PADDING)] = 0
    mirror: bool = False
    rotation: Annotated[float, between(0.0, 180.0)] = 0.0
    cutout: Annotated[int, between(0, 4096)] = 0
    side: Annotated[int, between(0, 4096)] = 0
    area: Annotated[float, between(0.01, 1.0)] = 1.0
    jitter: Annotated[float, between(0.0, 1.0)] = 0.0

    def __post_init__(self) -> None:
        check_unconverted(self)

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Augment images of shape (n, channels, height, width) independently of each other."""
        augmented = self._jitter_colors(images, generator) if self.jitter else images
        if self.side and self.area < 1.0:
            augmented = self._random_crop(augmented, generator)
        else:
            augmented = self.prepare_for_evaluation(augmented)
        if self.rotation:
            augmented = self._rotate(augmented, generator)
        return shift_and_mirror(augmented, self.padding, mirror=self.mirror, generator=generator)

    def _rotate(self, images: Tensor, generator: Generator) -> Tensor:
        """Rotate each square image by a different random angle."""
        angle = _uniform(images, generator, -1, 1) * math.radians(self.rotation)
        cos = angle.cos()
        sin = angle.sin()
        zero = torch.zeros_like(angle)
        matrix = ((cos, -sin, zero), (sin, cos, zero))
        side = images.shape[2]
        return _resample(images, matrix, (side, side))

    def augment_normalized(self, images: Tensor, generator: Generator) -> Tensor:
        """In half of the normalized images, replace a random square by the mean, which is 0."""
        if not self.cutout:
            return images
        n, _, height, width = images.shape
        device = images.device
        half = self.cutout // 2
        is_changed = torch.rand(n, 1, generator=generator, device=device) < 0.5

        def near_random_center(size: int) -> Tensor:
            center = torch.randint(0, size, (n, 1), generator=generator, device=device)
            position = torch.arange(size, device=device)
            return (position >= center - half) & (position < center + half)

        in_rows = near_random_center(height) & is_changed
        in_columns = near_random_center(width) & is_changed
        square = in_rows[:, None, :, None] & in_columns[:, None, None, :]
        return images.masked_fill(square, 0.0)

    def prepare_for_evaluation(self, images: Tensor) -> Tensor:
        """Crop the center of each image, if `side` is set."""
        if not self.side:
            return images
        height, width = images.shape[2:]
        if min(height, width) < self.side:
            raise InputError(
                f"`variation.side` must be at most that of the images; got {self.side} of "
                f"{height} x {width}"
            )
        top = (height - self.side) // 2
        left = (width - self.side) // 2
        return images[:, :, top : top + self.side, left : left + self.side]

    def _random_crop(self, images: Tensor, generator: Generator) -> Tensor:
        """Crop a rectangle with random size, aspect ratio and position, and resize it to `side`."""

        def uniform(low: float, high: float) -> Tensor:
            return _uniform(images, generator, low, high)

        area = uniform(self.area, 1.0)
        ratio = torch.exp(uniform(-1, 1) * math.log(4 / 3))
        # Width and height are shares of the sides. They also scale the grid, which spans [-1, 1].
        width = (area * ratio).sqrt().clamp(max=1.0)
        height = (area * (1 / ratio)).sqrt().clamp(max=1.0)
        across = uniform(-1, 1) * (1 - width)
        down = uniform(-1, 1) * (1 - height)
        zero = torch.zeros_like(width)
        matrix = ((width, zero, across), (zero, height, down))
        return _resample(images, matrix, (self.side, self.side))

    def _jitter_colors(self, images: Tensor, generator: Generator) -> Tensor:
        """Multiply brightness, contrast and saturation by independent random factors."""

        def random_factor() -> Tensor:
            return _per_image(1 + self.jitter * _uniform(images, generator, -1, 1))

        brightened = (images * random_factor()).clamp(0, 1)
        mean_gray = _gray_levels(brightened).mean((1, 2, 3), keepdim=True)
        contrasted = (mean_gray + (brightened - mean_gray) * random_factor()).clamp(0, 1)
        gray = _gray_levels(contrasted)
        return (gray + (contrasted - gray) * random_factor()).clamp(0, 1)


def _gray_levels(images: Tensor) -> Tensor:
    if images.shape[1] != len(_LUMA):
        return images.mean(1, keepdim=True)
    weights = torch.tensor(_LUMA, device=images.device)[:, None, None]
    return (images * weights).sum(1, keepdim=True)


def _uniform(images: Tensor, generator: Generator, low: float, high: float) -> Tensor:
    """Sample one uniform number from `low` to `high` per image."""
    sample = torch.rand(len(images), generator=generator, device=images.device)
    return low + (high - low) * sample


def _per_image(values: Tensor) -> Tensor:
    """Reshape values of shape (n,) to shape (n, 1, 1, 1)."""
    return values[:, None, None, None]


def _resample(images: Tensor, matrix: Any, size: Any) -> Tensor:
    """Apply an affine map to each image, given as two rows of three tensors of shape (n,)."""
    maps = torch.stack([torch.stack(row, dim=1) for row in matrix], dim=1)
    grid = torch.nn.functional.affine_grid(maps, [*images.shape[:2], *size], align_corners=False)
    resampled: Tensor = torch.nn.functional.grid_sample(images, grid, align_corners=False)
    return resampled


#: All variations by their names in configurations.
VARIATIONS: dict[str, type[Variation]] = {
    "crop-flip": CropFlip,
    "distortion": Distortion,
    "augmentation": Augmentation,
}


def make_variation(options: dict[str, Any] | None) -> Variation | None:
    """Create a variation from its name and options, or return None if there are no options."""
    if not options:
        return None
    options_without_name = dict(options)
    name = options_without_name.pop("name", None)
    if not isinstance(name, str) or name not in VARIATIONS:
        names = ", ".join(map(repr, VARIATIONS))
        raise InputError(f"`variation.name` must be one of {names}; got {name!r}")
    kind = VARIATIONS[name]
    fields = tuple(getattr(kind, "__dataclass_fields__", ()))
    unknown = sorted(set(options_without_name) - set(fields))
    if unknown:
        raise InputError(
            f"the variation {name!r} has no option {unknown[0]!r}; it has {', '.join(fields)}"
        )
    return kind(**options_without_name)


#: Number of images per block in the computation of the statistics of pixels.
_BLOCK = 5000


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Variation and normalization of images.

    Attributes
    ----------
    mean, std : tuple of float
        Mean and standard deviation of each channel of the training images, scaled to [0, 1].
    variation : Variation or None
        Random change of the images.

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
        """Create a preprocessing with the statistics of the training images."""
        means, stds = [], []
        for channel in np.moveaxis(train.pixels, 1, 0):
            # Sums of integer counts are exact, so they do not depend on the order of the images.
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
        """Scale, transform and normalize training images."""
        images = pixels.float() / 255
        if self.variation is None:
            return self._normalize(images)
        normalized = self._normalize(self.variation(images, generator))
        return self.variation.augment_normalized(normalized, generator)

    def prepare(self, images: Images, *, seed: int, copies: int = 1, device: str = "cpu") -> Tensor:
        """Return normalized images for evaluation.

        If the variation is part of the task, the result contains `copies` random versions of each
        image.
        """
        return self._normalize(self._apply_task_variation(images, seed, copies)).to(device)

    def prepare_exposure(
        self,
        exposure: Exposure,
        *,
        seed: int,
        images: Images | None = None,
    ) -> Tensor:
        """Return the normalized images of an exposure, and corrupt them if this is required."""
        loaded = exposure.load() if images is None else images
        prepared = self._apply_task_variation(loaded, seed, 1)
        if exposure.corruption and not exposure.is_corrupted:
            clipped = prepared.clamp(0, 1).numpy()
            corrupted = corrupt(clipped, exposure.corruption, exposure.severity, rng=seed)
            prepared = torch.from_numpy(corrupted)
        return self._normalize(prepared)

    def prepare_lazily(self, images: Images) -> "LazyImages | None":
        """Return images that are normalized when they are accessed.

        If the variation is part of the task, the result is None.
        """
        # The parameters of such a variation are sampled for all images together.
        if self.variation is not None and self.variation.is_part_of_task:
            return None
        return LazyImages(
            images, lambda block: self._normalize(self._apply_task_variation(block, 0, 1))
        )

    def _apply_task_variation(self, images: Images, seed: int, copies: int) -> Tensor:
        """Return images with values in [0, 1], transformed if the variation is part of the task."""
        scaled = torch.from_numpy(images.pixels).float() / 255
        if self.variation is None:
            return scaled.repeat(copies, 1, 1, 1)
        if not self.variation.is_part_of_task:
            return self.variation.prepare_for_evaluation(scaled).repeat(copies, 1, 1, 1)
        # The generator is on the CPU, so that the test set does not depend on the device.
        generator = torch.Generator().manual_seed(seed)
        return torch.cat([self.variation(scaled, generator) for _ in range(copies)])

    def _normalize(self, images: Tensor) -> Tensor:
        mean = self._per_channel(self.mean, images)
        std = self._per_channel(self.std, images)
        normalized = (images - mean) / std
        # Convolutions on a CPU are twice as fast with this memory format.
        return normalized.contiguous(memory_format=torch.channels_last)

    def _per_channel(self, values: tuple[float, ...], images: Tensor) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=images.device)[:, None, None]


class LazyImages:
    """Images that are normalized on access.

    The stored uint8 values need a quarter of the memory of normalized images.
    """

    ndim = 4

    def __init__(self, images: Images, normalize: Callable[[Images], Tensor]) -> None:
        self.images = images
        self.normalize = normalize

    def __len__(self) -> int:
        """Return the number of images."""
        return self.images.n

    def __getitem__(self, rows: int | slice) -> Tensor:
        """Return one normalized image for an index, or several for a slice."""
        if isinstance(rows, slice):
            return self.normalize(self.images.subset(rows))
        return self.normalize(self.images.subset(slice(rows, rows + 1)))[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the images, which is (number, channels, height, width)."""
        return (len(self), *self[:1].shape[1:])

    @property
    def nbytes(self) -> int:
        """Size of the stored images in bytes."""
        return int(self.images.pixels.nbytes)
