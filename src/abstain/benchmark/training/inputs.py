"""`Inputs`: from stored pictures, varied at run time, to what a network sees."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.records import between, hold
from abstain.benchmark._library import torch
from abstain.benchmark.data import Exposure, Images
from abstain.benchmark.data.corruptions import corrupt
from abstain.errors import InputError

#: torch may be absent when types are checked.
Tensor = Any
Draws = Any

#: Pixels; more than any picture here is wide.
_MOST_PADDING = 256


class Variation(ABC):
    """A random change of pictures with values in [0, 1].

    Attributes
    ----------
    of_task : bool
        Whether it belongs to the task, so that pictures to validate and test on are changed too
        (drawn once), or only helps to learn.
    """

    of_task: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, pictures: Tensor, draws: Draws) -> Tensor:
        """Return the pictures (n, channels, height, width), each changed on its own."""


@dataclass(frozen=True)
class CropFlip(Variation):
    """Move each picture by up to a few pixels and mirror half of them, as usual on CIFAR.

    Attributes
    ----------
    padding : int
        Black pixels on each side, from which a part of the old size is cut.
    mirror : bool
        Whether to mirror left and right.

    Examples
    --------
    >>> import torch
    >>> from abstain.benchmark.training import CropFlip
    >>> draws = torch.Generator().manual_seed(0)
    >>> CropFlip()(torch.ones(2, 3, 32, 32), draws).shape
    torch.Size([2, 3, 32, 32])
    """

    padding: Annotated[int, between(1, _MOST_PADDING)] = 4
    mirror: bool = True

    def __post_init__(self) -> None:
        hold(self)

    def __call__(self, pictures: Tensor, draws: Draws) -> Tensor:
        """Return the pictures (n, channels, height, width), each changed on its own."""
        n, _, height, width = pictures.shape
        around, where = self.padding, pictures.device
        padded = torch.nn.functional.pad(pictures, (around,) * 4)
        shift = torch.randint(0, 2 * around + 1, (2, n, 1), generator=draws, device=where)
        rows = shift[0] + torch.arange(height, device=where)
        columns = shift[1] + torch.arange(width, device=where)
        if self.mirror:
            flip = torch.rand(n, 1, generator=draws, device=where) < 0.5
            columns = torch.where(flip, columns.flip(1), columns)
        one = torch.arange(n, device=where)[:, None, None]
        # Indexing puts the channels last.
        cut = padded[one, :, rows[:, :, None], columns[:, None, :]]
        return cut.permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Distortion(Variation):
    """Turn, scale, shear and shift each picture, lower its contrast and add noise.

    It belongs to the task: pictures to validate and test on are distorted too.

    Attributes
    ----------
    rotation : float
        Degrees, at most, to either side.
    scale : float
        Pictures are scaled by a factor between 1 / (1 + scale) and 1 + scale.
    shear : float
        Shear, at most, to either side.
    shift : float
        Share of the picture's side, at most, in each direction.
    contrast : float
        The lowest contrast; 1 leaves it as it is.
    noise : float
        Standard deviation of normal noise; the pictures' values lie in [0, 1].
    background : float
        What is black gets a level of its own in each picture, from 0 to this; the rest is moved
        up with it, so that white stays white.
    side : int
        Height and width of what comes out, sampled once from the pictures; 0 for theirs.

    Examples
    --------
    >>> import torch
    >>> from abstain.benchmark.training import Distortion
    >>> draws = torch.Generator().manual_seed(0)
    >>> Distortion(noise=0.0)(torch.zeros(2, 1, 28, 28), draws).abs().max()
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

    of_task: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("rotation", "scale", "shear", "noise"):
            checks.fraction(getattr(self, name), name, high=math.inf)
        for name in ("shift", "contrast", "background"):
            checks.fraction(getattr(self, name), name)
        if self.side:
            checks.positive_int(self.side, "side")

    def __call__(self, pictures: Tensor, draws: Draws) -> Tensor:
        """Return the pictures (n, channels, height, width), each changed on its own."""
        n, where = len(pictures), pictures.device

        def between(low: float, high: float) -> Tensor:
            return low + (high - low) * torch.rand(n, generator=draws, device=where)

        turn = between(-1, 1) * math.radians(self.rotation)
        size = torch.exp(between(-1, 1) * math.log1p(self.scale))
        shear = between(-1, 1) * self.shear
        # The grid spans [-1, 1], so a share of the side counts twice.
        across, down = (between(-2, 2) * self.shift for _ in range(2))
        cos, sin = size * turn.cos(), size * turn.sin()
        first = torch.stack([cos, shear * cos - sin, across], dim=1)
        second = torch.stack([sin, shear * sin + cos, down], dim=1)
        side = [self.side, self.side] if self.side else list(pictures.shape[2:])
        grid = torch.nn.functional.affine_grid(
            torch.stack([first, second], dim=1), [n, 1, *side], align_corners=False
        )
        moved = torch.nn.functional.grid_sample(pictures, grid, align_corners=False)
        out = moved * between(self.contrast, 1.0)[:, None, None, None]
        if self.background:
            level = between(0.0, self.background)[:, None, None, None]
            out = level + (1 - level) * out
        return out + self.noise * torch.randn(out.shape, generator=draws, device=where)


#: Every variation by the name that configurations use.
VARIATIONS: dict[str, type[Variation]] = {"crop-flip": CropFlip, "distortion": Distortion}


def variation_of(options: dict[str, Any] | None) -> Variation | None:
    """Make a variation from its name and options, as a configuration has them; None for none."""
    if not options:
        return None
    known = dict(options)
    name = known.pop("name", None)
    if not isinstance(name, str) or name not in VARIATIONS:
        there = ", ".join(map(repr, VARIATIONS))
        msg = f"`variation.name` must be one of {there}; got {name!r}"
        raise InputError(msg)
    kind = VARIATIONS[name]
    fields = tuple(getattr(kind, "__dataclass_fields__", ()))
    if unknown := sorted(set(known) - set(fields)):
        msg = f"the variation {name!r} has no option {unknown[0]!r}; it has {', '.join(fields)}"
        raise InputError(msg)
    return kind(**known)


@dataclass(frozen=True, eq=False)
class Inputs:
    """How pictures are varied and scaled: the same for all that see one training set.

    Attributes
    ----------
    mean, deviation : tuple of float
        Of each channel of the training pictures, in [0, 1]; they are taken off and divided by.
    variation : Variation or None
        What is changed at run time.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.benchmark.data import Images
    >>> from abstain.benchmark.training import Inputs
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
        """Take mean and deviation from the training pictures.

        Parameters
        ----------
        train : Images
            What is learned from.
        variation : Variation, optional
            What is changed at run time.

        Returns
        -------
        Inputs
            For training pictures and all others.
        """
        mean, deviation = [], []
        for channel in np.moveaxis(train.pixels, 1, 0):
            # Whole-number sums are exact, whatever the order of the pictures.
            levels = np.bincount(channel.ravel(), minlength=256) / channel.size
            value = np.arange(256) / 255
            middle = float(levels @ value)
            mean.append(round(middle, 12))
            spread = float(np.sqrt(levels @ (value - middle) ** 2))
            deviation.append(spread if spread > 1e-6 else 1.0)
        return cls(tuple(mean), tuple(deviation), variation)

    def varied(self, pixels: Tensor, draws: Any) -> Tensor:
        """Return training pictures (bytes) as a network sees them, varied anew at each call."""
        pictures = pixels.float() / 255
        if self.variation is not None:
            pictures = self.variation(pictures, draws)
        return self._scaled(pictures)

    def fixed(self, images: Images, *, seed: int, copies: int = 1, device: str = "cpu") -> Tensor:
        """Return pictures to validate or test on: varied once where that belongs to the task.

        Parameters
        ----------
        images : Images
            The pictures.
        seed : int
            Of the variation, the same for all models.
        copies : int, default=1
            How often each picture is taken, each time varied anew; all of the first copy come
            first.
        device : str, default="cpu"
            Where to put them.

        Returns
        -------
        Tensor of shape (copies n, channels, height, width)
            What a network sees.
        """
        return self._scaled(self._of_task(images, seed, copies)).to(device)

    def exposed(
        self,
        exposure: Exposure,
        *,
        seed: int,
        device: str = "cpu",
        images: Images | None = None,
    ) -> Tensor:
        """Return what a trained network sees of an exposure.

        Parameters
        ----------
        exposure : Exposure
            Pictures, and the corruption that they get after the variation that belongs to the
            task, unless they have it already (`Exposure.ready`).
        seed : int
            Of the variation and the corruption. With one seed, the severities of a corruption
            differ in nothing else, and not from clean pictures where those are as many.
        device : str, default="cpu"
            Where to put them.
        images : Images, optional
            The pictures of the exposure, where they are loaded already.

        Returns
        -------
        Tensor of shape (n, channels, height, width)
            In the order of the pictures.
        """
        pictures = self._of_task(exposure.load() if images is None else images, seed, 1)
        if exposure.corruption and not exposure.ready:
            clipped = pictures.clamp(0, 1).numpy()
            spoiled = corrupt(clipped, exposure.corruption, exposure.severity, rng=seed)
            pictures = torch.from_numpy(spoiled)
        return self._scaled(pictures).to(device)

    def _of_task(self, images: Images, seed: int, copies: int) -> Tensor:
        """Return pictures in [0, 1], varied once where that belongs to the task."""
        pictures = torch.from_numpy(images.pixels).float() / 255
        if self.variation is None or not self.variation.of_task:
            return pictures.repeat(copies, 1, 1, 1)
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
