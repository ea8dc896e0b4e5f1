"""Pictures that are still files: found first, read when they are needed, at the size needed."""

import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.typing import Array, IntArray, Rng
from abstain_bench.data.images import Images

#: Bytes of images that are held in memory.
_IN_MEMORY = 1 << 33

#: What Pillow raises at files that are cut off or no images at all.
_DAMAGE = (OSError, SyntaxError, ValueError, TypeError, IndexError, struct.error, zlib.error)


@dataclass(frozen=True, eq=False)
class PictureFiles:
    """Pictures of a data set that are still files.

    Attributes
    ----------
    folder : Path
        Where the files are.
    names : tuple of str
        The path of each image below the folder.
    labels : int64 ndarray of shape (n,)
        The number of the class.
    classes : tuple of str
        The names of the classes.
    groups : int64 ndarray of shape (n,), optional
        Where each image is from (camera trap, hospital), for data sets that tell.
    crop : bool
        Whether the largest central square is taken; otherwise images are squeezed to a square.
    rows : int64 ndarray of shape (n,), optional
        Which images of the whole source these are; by default all in their order.

    Examples
    --------
    >>> from abstain_bench.data.published import find_image_folder
    >>> files = find_image_folder("imagenet/train")  # doctest: +SKIP
    >>> files.some(5000).read(side=64).shape  # doctest: +SKIP
    (3, 64, 64)
    """

    folder: Path
    names: tuple[str, ...]
    labels: IntArray
    classes: tuple[str, ...]
    groups: IntArray | None = None
    crop: bool = True
    rows: IntArray | None = None

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.names)

    def subset(self, rows: Array) -> "PictureFiles":
        """Return these images only, in this order."""
        chosen = np.asarray(rows)
        whole = np.arange(self.n) if self.rows is None else self.rows
        return PictureFiles(
            folder=self.folder,
            names=tuple(self.names[i] for i in chosen),
            labels=self.labels[chosen],
            classes=self.classes,
            groups=None if self.groups is None else self.groups[chosen],
            crop=self.crop,
            rows=whole[chosen],
        )

    def joined(self, other: "PictureFiles") -> "PictureFiles":
        """Return these images and others of the same source, which are no part of these."""
        both, own = self.groups is not None and other.groups is not None, (self, other)
        return PictureFiles(
            folder=self.folder,
            names=self.names + other.names,
            labels=np.concatenate([one.labels for one in own]),
            classes=self.classes,
            groups=np.concatenate([one.groups for one in own if one.groups is not None])
            if both
            else None,
            crop=self.crop,
            rows=np.concatenate(
                [np.arange(one.n) if one.rows is None else one.rows for one in own]
            ),
        )

    def some(self, limit: int | None, *, rng: Rng = 0) -> "PictureFiles":
        """Draw at most `limit` images, in the order of the source; None for all."""
        if limit is None or checks.positive_int(limit, "limit") >= self.n:
            return self
        return self.subset(np.sort(as_generator(rng).choice(self.n, limit, replace=False)))

    def read(self, *, side: int = 32) -> Images:
        """Read all as squares of `side` pixels; the first damaged file is named.

        JPEG files several times larger than needed are decoded at a fraction of their size, at
        least twice `side`; then they are resized with an antialiased bilinear filter. More than 8
        GiB of images are kept in a file of the folder for temporary ones (TMPDIR), which has no
        name and goes with the process.
        """
        if not self.n:
            raise InputError(f"there are no images to read in {str(self.folder)!r}")
        checks.positive_int(side, "side")
        pixels = _room((self.n, 3, side, side))
        for row, name in enumerate(self.names):
            pixels[row] = picture(self.folder / name, side, crop=self.crop)
        return Images(pixels, self.labels, self.classes, self.rows)

    def batches(self, size: int, *, side: int = 32) -> Iterator[Images]:
        """Read `size` images at a time, for sets that do not fit into memory."""
        checks.positive_int(size, "size")
        for start in range(0, self.n, size):
            yield self.subset(np.arange(start, min(start + size, self.n))).read(side=side)


@dataclass(frozen=True, eq=False)
class PublishedPictures:
    """The parts of a published data set with its shifts.

    Attributes
    ----------
    train : Images
        What is learned from.
    validation : Images or None
        What choices are made on, where the data set has such a part.
    test : Images
        The i.i.d. test images.
    shifts : mapping
        The shifted test images by the name of the shift.
    """

    train: Images
    validation: Images | None
    test: Images
    shifts: Mapping[str, Images]


@dataclass(frozen=True, eq=False)
class FileParts:
    """The parts of a published data set whose images are still files.

    Attributes
    ----------
    train : PictureFiles
        What is learned from.
    validation : PictureFiles or None
        What choices are made on, where the data set has such a part.
    test : PictureFiles
        The i.i.d. test images.
    shifts : mapping
        The shifted test images by the name of the shift.
    """

    train: PictureFiles
    validation: PictureFiles | None
    test: PictureFiles
    shifts: Mapping[str, PictureFiles]

    def read(self, *, side: int = 32, limit: int | None = None, rng: Rng = 0) -> PublishedPictures:
        """Read every part as squares of `side` pixels, at most `limit` of each, drawn by `rng`.

        A part takes 3 x side x side bytes an image: 100,000 images of 64 pixels 1.2 GB.
        """
        drawing = as_generator(rng)

        def read(part: PictureFiles) -> Images:
            return part.some(limit, rng=drawing).read(side=side)

        return PublishedPictures(
            train=read(self.train),
            validation=None if self.validation is None else read(self.validation),
            test=read(self.test),
            shifts={name: read(part) for name, part in self.shifts.items()},
        )


def picture(path: Path, side: int, *, crop: bool) -> Array:
    """Read one image as bytes of shape (3, side, side); name the file when it is damaged."""
    module = _pillow()
    try:
        with module.open(path) as opened:
            # Decodes JPEG files at 1/2, 1/4 or 1/8 where that is still large enough.
            opened.draft("RGB", (2 * side, 2 * side))
            return _square(opened, side, crop=crop, bilinear=module.Resampling.BILINEAR)
    except FileNotFoundError:
        raise InputError(
            f"{str(path)!r} is missing (half extracted?); unpack its archive again"
        ) from None
    except PermissionError:
        raise InputError(f"{str(path)!r} cannot be opened: you may not read it") from None
    except (*_DAMAGE, module.DecompressionBombError) as error:
        size = path.stat().st_size if path.is_file() else 0
        raise FileFormatError(
            f"{str(path)!r} ({size:,} bytes) is no readable image; it is cut off or damaged: "
            f"unpack it again ({' '.join(str(error).split())})"
        ) from None


def _room(shape: tuple[int, ...]) -> Array:
    """Return where so many bytes go: into memory, or a file that the system keeps in it at will."""
    if math.prod(shape) <= _IN_MEMORY:
        return np.empty(shape, np.uint8)
    with TemporaryFile() as file:
        # Mapped, it stays until nothing looks at it any more.
        file.truncate(math.prod(shape))
        return np.memmap(file, np.uint8, "r+", shape=shape)


def _square(opened: Any, side: int, *, crop: bool, bilinear: Any) -> Array:
    # Palettes with transparency go through RGBA, as Pillow warns otherwise.
    found = opened.convert("RGBA").convert("RGB") if opened.mode == "P" else opened.convert("RGB")
    width, height = found.size
    if (width, height) != (side, side):
        edge = min(width, height)
        left, top = (width - edge) / 2, (height - edge) / 2
        box = (left, top, left + edge, top + edge) if crop else None
        found = found.resize((side, side), bilinear, box=box)
    return np.asarray(found, np.uint8).transpose(2, 0, 1)


def _pillow() -> Any:
    """Return the module that reads images."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "PIL":
            raise
        raise MissingInputError(
            "JPEG and PNG images are read with Pillow: pip install Pillow"
        ) from None
    return Image
