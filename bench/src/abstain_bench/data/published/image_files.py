"""List the image files of data sets, and read and resize the images on request."""

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

#: Maximum number of bytes of images in memory.
_MAX_MEMORY_BYTES = 1 << 33

#: Errors that Pillow raises for damaged files and files that are not images.
_DAMAGE = (OSError, SyntaxError, ValueError, TypeError, IndexError, struct.error, zlib.error)


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Labeled image files that are read on request.

    Attributes
    ----------
    folder : Path
        Folder that contains the image files.
    names : tuple of str
        Path of each image relative to the folder.
    labels : int64 ndarray of shape (n,)
        Class codes.
    classes : tuple of str
        Names of the classes.
    groups : int64 ndarray of shape (n,), optional
        Origin of each image, such as a camera trap or a hospital, if the data set contains it.
    crop : bool
        Whether to crop the largest central square. If False, images are stretched to a square.
    rows : int64 ndarray of shape (n,), optional
        Indices of the images in their source. The default indices are 0 to n - 1.

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
        """Index of each image in its source."""
        return np.arange(self.n) if self.rows is None else self.rows

    def subset(self, rows: Array) -> "ImageFiles":
        """Return the image files with the given indices, in the order of the indices."""
        selected = np.asarray(rows)
        return replace(
            self,
            names=tuple(self.names[row] for row in selected),
            labels=self.labels[selected],
            groups=None if self.groups is None else self.groups[selected],
            rows=self.source_indices[selected],
        )

    def concatenate(self, other: "ImageFiles") -> "ImageFiles":
        """Append other image files of the same source, which must be disjoint from these files."""
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
        """Return a random sample of at most `limit` images, or all images if `limit` is None.

        The images keep their original order.
        """
        if limit is None or checks.positive_int(limit, "limit") >= self.n:
            return self
        rows = as_generator(rng).choice(self.n, limit, replace=False)
        return self.subset(np.sort(rows))

    def read(self, *, side: int = 32) -> Images:
        """Read all images as squares of `side` pixels.

        Large JPEG files are decoded at a reduced resolution, which is at least twice `side`. Images
        are resized by an antialiased bilinear filter. If the images need more than 8 GiB, they are
        stored in an unnamed temporary file in TMPDIR. If a file is damaged, the error names the
        file.
        """
        if not self.n:
            raise InputError(f"there are no images to read in {str(self.folder)!r}")
        checks.positive_int(side, "side")
        pixels = _allocate((self.n, 3, side, side))
        for row, name in enumerate(self.names):
            pixels[row] = read_image(self.folder / name, side, crop=self.crop)
        return Images(pixels, self.labels, self.classes, self.rows)

    def batches(self, size: int, *, side: int = 32) -> Iterator[Images]:
        """Read and yield batches of `size` images, for data sets that exceed the memory."""
        checks.positive_int(size, "size")
        for start in range(0, self.n, size):
            rows = np.arange(start, min(start + size, self.n))
            yield self.subset(rows).read(side=side)


@dataclass(frozen=True, eq=False)
class ImageFileSplits:
    """Training, validation and test images of a published data set as image files.

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

        An image needs 3 x side x side bytes of memory, so 100,000 images of 64 x 64 pixels need 1.2
        GB.
        """
        generator = as_generator(rng)

        def read(files: ImageFiles) -> Images:
            sample = files.sample(limit, rng=generator)
            return sample.read(side=side)

        return Splits(
            train=read(self.train),
            validation=None if self.validation is None else read(self.validation),
            test=read(self.test),
            shifts={name: read(files) for name, files in self.shifts.items()},
        )


def read_image(path: Path, side: int, *, crop: bool) -> Array:
    """Read an image as a uint8 array of shape (3, side, side)."""
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
            # A JPEG file is decoded at 1/2, 1/4 or 1/8 of its size if the result is large enough.
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
    """Allocate a uint8 array in memory, or in a temporary file if it is too large."""
    if math.prod(shape) <= _MAX_MEMORY_BYTES:
        return np.empty(shape, np.uint8)
    with TemporaryFile() as file:
        # The deleted file exists until the mapping is deleted.
        file.truncate(math.prod(shape))
        return np.memmap(file, np.uint8, "r+", shape=shape)


def _to_square(image: Any, side: int, *, crop: bool, bilinear: Any) -> Array:
    """Crop or resize an image to a square uint8 array of shape (3, side, side)."""
    # Pillow warns about a palette with transparency unless it is converted to RGBA first.
    rgb = image.convert("RGBA").convert("RGB") if image.mode == "P" else image.convert("RGB")
    width, height = rgb.size
    if (width, height) != (side, side):
        edge = min(width, height)
        left = (width - edge) / 2
        top = (height - edge) / 2
        box = (left, top, left + edge, top + edge) if crop else None
        rgb = rgb.resize((side, side), bilinear, box=box)
    return np.asarray(rgb, np.uint8).transpose(2, 0, 1)


_SUFFIXES = (".jpeg", ".jpg", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def find_image_folder(
    folder: str | Path, *, classes: Sequence[str] | None = None, crop: bool = True
) -> ImageFiles:
    """List the images of a folder that contains one subfolder per class.

    Parameters
    ----------
    folder : str or Path
        Folder with one folder per class, such as ``train`` of ImageNet.
    classes : sequence of str, optional
        Names of the class folders in the order of their labels. The default is all class folders in
        alphabetical order.
    crop : bool, default=True
        Whether to crop the largest central square of each image, as is usual for ImageNet. If
        False, images are stretched to a square.

    Returns
    -------
    ImageFiles
        The files, sorted by class and name, including those in nested subfolders. The function
        ignores hidden files, links to folders, and files that are not images.

    Raises
    ------
    InputError
        If the folder or one of the class folders does not exist, or if there are no class folders.
    FileFormatError
        If a class folder contains no image.

    Examples
    --------
    >>> from abstain_bench.data.published import find_image_folder
    >>> files = find_image_folder("imagenet/train")  # doctest: +SKIP
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"there is no folder {str(root)!r} with a folder of images for each class")
    if classes is None:
        subfolders = [path.name for path in root.iterdir() if path.is_dir()]
        class_names = sorted(name for name in subfolders if not name.startswith("."))
    else:
        class_names = list(classes)
    if not class_names:
        raise InputError(
            f"{str(root)!r} has no class folders; images are read from a folder with one folder "
            "per class"
        )
    missing = [name for name in class_names if not (root / name).is_dir()]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(
            f"{str(root)!r} has no class folder {missing[0]!r}{more} of the {len(class_names)} "
            "needed (incomplete extraction?); unpack the archive again"
        )
    paths_by_class = [_image_paths(root, name) for name in class_names]
    names = tuple(path for paths in paths_by_class for path in paths)
    labels = np.repeat(np.arange(len(class_names)), [len(paths) for paths in paths_by_class])
    return ImageFiles(root, names, labels, tuple(class_names), crop=crop)


def _image_paths(folder: Path, class_name: str) -> list[str]:
    """Return the paths of the images of a class, relative to the folder and sorted."""
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
