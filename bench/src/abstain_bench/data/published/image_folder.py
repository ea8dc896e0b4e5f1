"""Folders of images, one folder for each class: ImageNet and everything laid out like it."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from abstain.errors import FileFormatError, InputError
from abstain.typing import Rng
from abstain_bench.data.images import Images
from abstain_bench.data.published.pictures import PictureFiles

_SUFFIXES = (".jpeg", ".jpg", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def find_image_folder(
    folder: str | Path, *, classes: Sequence[str] | None = None, crop: bool = True
) -> PictureFiles:
    """Find the images in the class folders of a folder, without reading them.

    Parameters
    ----------
    folder : str or Path
        The folder that holds a folder for each class, such as ``train`` of ImageNet.
    classes : sequence of str, optional
        The class folders to take, in the order of their labels; by default all, sorted.
    crop : bool, default=True
        Whether the largest central square of each image is taken, as is usual for ImageNet;
        otherwise images are squeezed to a square.

    Returns
    -------
    PictureFiles
        The files in the order of class and name; `read` reads them. Files below folders in a
        class folder count too; hidden files, links to folders and other files than images
        do not.

    Raises
    ------
    InputError
        The folder or one of its classes does not exist, or it holds no class folders.
    FileFormatError
        A class folder holds no image.

    Examples
    --------
    >>> from abstain_bench.data.published import find_image_folder
    >>> files = find_image_folder("imagenet/train")  # doctest: +SKIP
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(
            f"there is no folder {str(place)!r} with a folder of images for each class"
        )
    chosen = _class_folders(place) if classes is None else tuple(classes)
    _refuse_missing(place, chosen)
    names: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(chosen):
        own = _pictures(place, name)
        names += own
        labels += [label] * len(own)
    return PictureFiles(place, tuple(names), np.array(labels, np.int64), chosen, crop=crop)


def read_image_folder(
    folder: str | Path,
    *,
    side: int = 32,
    limit: int | None = None,
    crop: bool = True,
    rng: Rng = 0,
) -> Images:
    """Read the images in the class folders of a folder, made small as they are read.

    Parameters
    ----------
    folder : str or Path
        The folder that holds a folder for each class, such as ``val`` of ImageNet once sorted.
    side : int, default=32
        Height and width of the images returned.
    limit : int, optional
        At most so many, drawn at random; only those are read.
    crop : bool, default=True
        Whether the largest central square of each image is taken; otherwise images are
        squeezed to a square.
    rng : int, Generator or None, default=0
        The seed of the drawing.

    Returns
    -------
    Images
        In color, in the order of class and name.

    Raises
    ------
    InputError
        The folder does not exist or holds no class folders, or Pillow is not installed.
    FileFormatError
        A class folder holds no image, or an image is damaged; the message names it.

    Examples
    --------
    >>> from abstain_bench.data.published import read_image_folder
    >>> images = read_image_folder("imagenet/val", side=64, limit=5000)  # doctest: +SKIP
    """
    return find_image_folder(folder, crop=crop).some(limit, rng=rng).read(side=side)


def _class_folders(place: Path) -> tuple[str, ...]:
    found = sorted(p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not found:
        raise InputError(
            f"{str(place)!r} holds no class folders; images are read from a folder that holds "
            "one folder for each class"
        )
    return tuple(found)


def _refuse_missing(place: Path, classes: tuple[str, ...]) -> None:
    missing = [name for name in classes if not (place / name).is_dir()]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(
            f"{str(place)!r} has no class folder {missing[0]!r}{more} of the {len(classes)} "
            "needed (half extracted?); unpack the archive again"
        )


def _pictures(place: Path, name: str) -> list[str]:
    """Return the images of a class, sorted, as paths below the place."""
    found = [
        Path(root, file).relative_to(place).as_posix()
        for root, _, files in os.walk(place / name)
        for file in files
        if file.lower().endswith(_SUFFIXES) and not file.startswith(".")
    ]
    if not found:
        raise FileFormatError(
            f"the class folder {str(place / name)!r} holds no image (half extracted?); unpack "
            "the archive again, or remove the folder if it is no class"
        )
    return sorted(found)
