"""Folders of images with one folder per class: ImageNet and data sets with the same layout."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from abstain.errors import FileFormatError, InputError
from abstain.typing import Rng
from abstain_bench.data.images import Images
from abstain_bench.data.published.image_files import ImageFiles

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


def read_image_folder(
    folder: str | Path,
    *,
    side: int = 32,
    limit: int | None = None,
    crop: bool = True,
    rng: Rng = 0,
) -> Images:
    """Read the images in the class folders of a folder and resize them.

    Parameters
    ----------
    folder : str or Path
        Folder with one folder per class, such as ``val`` of ImageNet once sorted.
    side : int, default=32
        Height and width of the returned images.
    limit : int, optional
        Maximum number of images, which are a random sample; only these are read.
    crop : bool, default=True
        Whether to take the largest central square of each image; otherwise images are resized to a
        square.
    rng : int, Generator or None, default=0
        Seed of the sample.

    Returns
    -------
    Images
        Images in color, in the order of class and name.

    Raises
    ------
    InputError
        If the folder does not exist or has no class folders, or Pillow is not installed.
    FileFormatError
        If a class folder has no image, or an image is damaged; the message names it.

    Examples
    --------
    >>> from abstain_bench.data.published import read_image_folder
    >>> images = read_image_folder("imagenet/val", side=64, limit=5000)  # doctest: +SKIP
    """
    return find_image_folder(folder, crop=crop).sample(limit, rng=rng).read(side=side)


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
