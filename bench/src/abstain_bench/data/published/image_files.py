"""Image files: they are found first, and read and resized when they are needed."""

import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.typing import Array, IntArray, Rng
from abstain_bench.data.images import Images, Splits

#: Maximum bytes of images in memory.
_MAX_MEMORY_BYTES = 1 << 33

#: Errors of Pillow for damaged files and files that are no images.
_DAMAGE = (OSError, SyntaxError, ValueError, TypeError, IndexError, struct.error, zlib.error)


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images of a data set that are not read yet.

    Attributes
    ----------
    folder : Path
        Folder of the files.
    names : tuple of str
        Path of each image relative to the folder.
    labels : int64 ndarray of shape (n,)
        Class codes.
    classes : tuple of str
        Names of the classes.
    groups : int64 ndarray of shape (n,), optional
        Origin of each image (camera trap, hospital), if the data set has it.
    crop : bool
        Whether to take the largest central square; otherwise images are resized to a square.
    rows : int64 ndarray of shape (n,), optional
        Indices of the images in their source; by default 0 to n - 1.

    Examples
    --------
    >>> from abstain_bench.data.published import find_image_folder
    >>> files = find_image_folder("imagenet/train")  # doctest: +SKIP
    >>> files.sample(5000).read(side=64).shape  # doctest: +SKIP
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

    @property
    def source_indices(self) -> IntArray:
        """Indices of the images in their source."""
        return np.arange(self.n) if self.rows is None else self.rows

    def subset(self, rows: Array) -> "ImageFiles":
        """Return the images with these row numbers, in this order."""
        selected = np.asarray(rows)
        return replace(
            self,
            names=tuple(self.names[row] for row in selected),
            labels=self.labels[selected],
            groups=None if self.groups is None else self.groups[selected],
            rows=self.source_indices[selected],
        )

    def concatenate(self, other: "ImageFiles") -> "ImageFiles":
        """Return these and other images of the same source, which must be disjoint."""
        groups = None
        if self.groups is not None and other.groups is not None:
            groups = np.concatenate([self.groups, other.groups])
        return replace(
            self,
            names=self.names + other.names,
            labels=np.concatenate([self.labels, other.labels]),
            groups=groups,
            rows=np.concatenate([self.source_indices, other.source_indices]),
        )

    def sample(self, limit: int | None, *, rng: Rng = 0) -> "ImageFiles":
        """Sample at most `limit` images, in the order of the source; None for all."""
        if limit is None or checks.positive_int(limit, "limit") >= self.n:
            return self
        return self.subset(np.sort(as_generator(rng).choice(self.n, limit, replace=False)))

    def read(self, *, side: int = 32) -> Images:
        """Read all images as squares of `side` pixels; errors name the damaged file.

        Large JPEG files are decoded at a fraction of their size, at least twice `side`, and resized
        with an antialiased bilinear filter. More than 8 GiB of images are stored in an unnamed
        temporary file (TMPDIR), which is deleted with the process.
        """
        if not self.n:
            raise InputError(f"there are no images to read in {str(self.folder)!r}")
        checks.positive_int(side, "side")
        pixels = _allocate((self.n, 3, side, side))
        for row, name in enumerate(self.names):
            pixels[row] = read_image(self.folder / name, side, crop=self.crop)
        return Images(pixels, self.labels, self.classes, self.rows)

    def batches(self, size: int, *, side: int = 32) -> Iterator[Images]:
        """Yield batches of `size` images, for data sets that do not fit into memory."""
        checks.positive_int(size, "size")
        for start in range(0, self.n, size):
            yield self.subset(np.arange(start, min(start + size, self.n))).read(side=side)


@dataclass(frozen=True, eq=False)
class ImageFileSplits:
    """The splits of a published data set whose images are not read yet.

    Attributes
    ----------
    train : ImageFiles
        Training images.
    validation : ImageFiles or None
        Validation images, if the data set has an official validation set.
    test : ImageFiles
        I.i.d. test images.
    shifts : mapping
        Shifted test images by the name of the shift.
    """

    train: ImageFiles
    validation: ImageFiles | None
    test: ImageFiles
    shifts: Mapping[str, ImageFiles]

    def read(self, *, side: int = 32, limit: int | None = None, rng: Rng = 0) -> Splits:
        """Read every split as squares of `side` pixels, with at most `limit` sampled images each.

        An image takes 3 x side x side bytes: 100,000 images of 64 pixels take 1.2 GB.
        """
        generator = as_generator(rng)

        def read(files: ImageFiles) -> Images:
            return files.sample(limit, rng=generator).read(side=side)

        return Splits(
            train=read(self.train),
            validation=None if self.validation is None else read(self.validation),
            test=read(self.test),
            shifts={name: read(files) for name, files in self.shifts.items()},
        )


def read_image(path: Path, side: int, *, crop: bool) -> Array:
    """Read one image as bytes of shape (3, side, side); errors name the file."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "PIL":
            raise
        raise MissingInputError(
            "JPEG and PNG images are read with Pillow: pip install Pillow"
        ) from None
    try:
        with Image.open(path) as image:
            # Decodes JPEG files at 1/2, 1/4 or 1/8 if that is still large enough.
            image.draft("RGB", (2 * side, 2 * side))
            return _to_square(image, side, crop=crop, bilinear=Image.Resampling.BILINEAR)
    except FileNotFoundError:
        raise InputError(
            f"{str(path)!r} is missing (incomplete extraction?); unpack its archive again"
        ) from None
    except PermissionError:
        raise InputError(f"{str(path)!r} cannot be opened: permission denied") from None
    except (*_DAMAGE, Image.DecompressionBombError) as error:
        size = path.stat().st_size if path.is_file() else 0
        raise FileFormatError(
            f"{str(path)!r} ({size:,} bytes) is no readable image; it is cut off or damaged: "
            f"unpack it again ({' '.join(str(error).split())})"
        ) from None


def _allocate(shape: tuple[int, ...]) -> Array:
    """Allocate bytes in memory, or in a memory-mapped temporary file if they are too many."""
    if math.prod(shape) <= _MAX_MEMORY_BYTES:
        return np.empty(shape, np.uint8)
    with TemporaryFile() as file:
        # The mapping keeps the deleted file alive.
        file.truncate(math.prod(shape))
        return np.memmap(file, np.uint8, "r+", shape=shape)


def _to_square(image: Any, side: int, *, crop: bool, bilinear: Any) -> Array:
    # Pillow warns about palettes with transparency unless they are converted to RGBA first.
    rgb = image.convert("RGBA").convert("RGB") if image.mode == "P" else image.convert("RGB")
    width, height = rgb.size
    if (width, height) != (side, side):
        edge = min(width, height)
        left, top = (width - edge) / 2, (height - edge) / 2
        box = (left, top, left + edge, top + edge) if crop else None
        rgb = rgb.resize((side, side), bilinear, box=box)
    return np.asarray(rgb, np.uint8).transpose(2, 0, 1)


_SUFFIXES = (".jpeg", ".jpg", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def find_image_folder(
    folder: str | Path, *, classes: Sequence[str] | None = None, crop: bool = True
) -> ImageFiles:
    """Find the images in the class folders of a folder without reading them.

    Parameters
    ----------
    folder : str or Path
        Folder with one folder per class, such as ``train`` of ImageNet.
    classes : sequence of str, optional
        Class folders in the order of their labels; by default all, sorted.
    crop : bool, default=True
        Whether to take the largest central square of each image, as is usual for ImageNet;
        otherwise images are resized to a square.

    Returns
    -------
    ImageFiles
        The files in the order of class and name, including those in subfolders of a class folder.
        Hidden files, links to folders and files that are no images are ignored.

    Raises
    ------
    InputError
        If the folder or one of its classes does not exist, or it has no class folders.
    FileFormatError
        If a class folder has no image.
        A class folder holds no image.

    Examples
    --------
    >>> from abstain_bench.data.published import find_image_folder
    >>> files = find_image_folder("imagenet/train")  # doctest: +SKIP
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {str(folder)!r} with a folder of images for each class"
        )
    if classes is None:
        subfolders = [path.name for path in folder.iterdir() if path.is_dir()]
        classes = sorted(name for name in subfolders if not name.startswith("."))
    if not classes:
        raise InputError(
            f"{str(folder)!r} has no class folders; images are read from a folder with one folder "
            "per class"
        )
    missing = [name for name in classes if not (folder / name).is_dir()]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(
            f"{str(folder)!r} has no class folder {missing[0]!r}{more} of the {len(classes)} "
            "needed (incomplete extraction?); unpack the archive again"
        )
    paths_by_class = [_image_paths(folder, name) for name in classes]
    names = tuple(path for paths in paths_by_class for path in paths)
    labels = np.repeat(np.arange(len(classes)), [len(paths) for paths in paths_by_class])
    return ImageFiles(folder, names, labels, tuple(classes), crop=crop)


def _image_paths(folder: Path, class_name: str) -> list[str]:
    """Return the sorted paths of the images of a class, relative to the folder."""
    paths = [
        Path(root, file).relative_to(folder).as_posix()
        for root, _, files in os.walk(folder / class_name)
        for file in files
        if file.lower().endswith(_SUFFIXES) and not file.startswith(".")
    ]
    if not paths:
        raise FileFormatError(
            f"the class folder {str(folder / class_name)!r} has no image (incomplete extraction?); "
            "unpack the archive again, or remove the folder if it is no class"
        )
    return sorted(paths)
