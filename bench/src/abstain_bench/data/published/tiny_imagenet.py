"""TinyImageNet: 200 classes of ImageNet at 64 x 64, read at any size."""

from pathlib import Path

import numpy as np

from abstain.errors import FileFormatError
from abstain_bench.data.downloads import Layout, expected_count
from abstain_bench.data.entry import DataSet
from abstain_bench.data.images import Images
from abstain_bench.data.published.image_files import ImageFiles

# Not "train", which ImageNet in the same folder has too.
_LAYOUT = Layout("tiny-imagenet", "TinyImageNet", ("wnids.txt", "val/val_annotations.txt"))
_N_CLASSES = 200
_N_TRAIN_PER_CLASS, _N_VALIDATION_PER_CLASS = 500, 50


def read_tiny_imagenet(
    folder: str | Path, *, side: int = 32, records: int | None = None
) -> tuple[Images, Images]:
    """Read TinyImageNet, 100,000 and 10,000 images in color, resized.

    Parameters
    ----------
    folder : str or Path
        ``tiny-imagenet-200`` as it comes out of ``tiny-imagenet-200.zip``, or the folder that
        holds it.
    side : int, default=32
        Height and width of the images returned; the files have 64.
    records : int, optional
        Images in each class folder, and as many of each class for validation, where they are
        no longer the 500 and 50 of the official version; there may be any number of classes then.

    Returns
    -------
    tuple of Images
        For training, and the official validation images, which one tests on, as the labels of
        the official test images were never published.

    Raises
    ------
    InputError
        The folder or one of its files does not exist, or Pillow is not installed.
    FileFormatError
        A class has too few images, the annotations name a class or a file that is not there, or
        an image is damaged; the message names it.

    Notes
    -----
    About two minutes on one core. FD-Shifts reads images of 32 x 32 resized by others; here
    Pillow's antialiased bilinear filter makes them, so single scores differ slightly.

    References
    ----------
    .. [1] Le & Yang (2015), Tiny ImageNet visual recognition challenge (Stanford CS 231N)

    Examples
    --------
    >>> from abstain_bench.data.published import read_tiny_imagenet
    >>> train, test = read_tiny_imagenet("data/tiny-imagenet-200")  # doctest: +SKIP
    """
    train, test = find_tiny_imagenet(folder, records=records)
    return train.read(side=side), test.read(side=side)


def find_tiny_imagenet(
    folder: str | Path, *, records: int | None = None
) -> tuple[ImageFiles, ImageFiles]:
    """Find the images of TinyImageNet without reading them.

    Examples
    --------
    >>> from abstain_bench.data.published import find_tiny_imagenet
    >>> _, test = find_tiny_imagenet("data/tiny-imagenet-200")  # doctest: +SKIP
    >>> test.sample(1000).read(side=32).n  # doctest: +SKIP
    1000
    """
    folder = _LAYOUT.find_folder(folder)
    text = _LAYOUT.require(folder, "wnids.txt").read_text(encoding="utf-8", errors="replace")
    wnids = tuple(sorted(text.split()))
    if not wnids or (records is None and len(wnids) != _N_CLASSES):
        raise FileFormatError(
            f"wnids.txt must name the {_N_CLASSES} classes, one a line; got {len(wnids)}"
        )
    train = _find_train(folder, wnids, expected_count(_N_TRAIN_PER_CLASS, records))
    return train, _find_validation(folder, wnids, expected_count(_N_VALIDATION_PER_CLASS, records))


def _class_names(folder: Path, wnids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first word for each class, with its WordNet number; the number without a word."""
    path = folder / "words.txt"
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
    words = {}
    for line in lines:
        wnid, _, meaning = line.partition("\t")
        words[wnid] = meaning.split(",")[0].strip()
    # Two classes may share a first word ("crane").
    return tuple(f"{words[wnid]} ({wnid})" if words.get(wnid) else wnid for wnid in wnids)


def _find_train(folder: Path, wnids: tuple[str, ...], count: int) -> ImageFiles:
    names: list[str] = []
    for wnid in wnids:
        images = _LAYOUT.require(folder, f"train/{wnid}/images")
        files = sorted(p.name for p in images.iterdir() if p.suffix.lower() in {".jpeg", ".jpg"})
        if len(files) != count:
            raise FileFormatError(
                f"train/{wnid}/images must hold {count} images, and it holds {len(files)} (half "
                f"extracted?); {_LAYOUT.download_command}, again"
            )
        names += [f"train/{wnid}/images/{name}" for name in files]
    labels = np.repeat(np.arange(len(wnids)), count)
    return ImageFiles(folder, tuple(names), labels, _class_names(folder, wnids))


def _find_validation(folder: Path, wnids: tuple[str, ...], count: int) -> ImageFiles:
    path = folder / "val" / "val_annotations.txt"
    if not path.is_file():
        raise FileFormatError(
            f"val/val_annotations.txt is missing in {str(folder)!r} (half extracted, or "
            f"rearranged into class folders?); {_LAYOUT.download_command}, again"
        )
    code_by_wnid = {wnid: code for code, wnid in enumerate(wnids)}
    names, labels = [], []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1):
        # The columns after the class are a bounding box.
        name, wnid, *_ = (*line.split("\t"), "")
        if wnid.strip() not in code_by_wnid or not name or Path(name).name != name:
            raise FileFormatError(
                f"line {number} of val_annotations.txt must begin with a file name and one of the "
                f"classes of wnids.txt; got {line[:60]!r}"
            )
        names.append(f"val/images/{name}")
        labels.append(code_by_wnid[wnid.strip()])
    if len(names) != count * len(wnids):
        raise FileFormatError(
            f"val_annotations.txt must name {count * len(wnids):,} images, and it names "
            f"{len(names):,} (half extracted?); {_LAYOUT.download_command}, again"
        )
    class_names = _class_names(folder, wnids)
    return ImageFiles(folder, tuple(names), np.array(labels, np.int64), class_names)


ENTRIES = (
    DataSet(
        "tiny-imagenet",
        "TinyImageNet",
        "110,000 color images of 200 classes of ImageNet, resized, from a folder with its files.",
        "Le & Yang 2015",
        lambda folder, records: read_tiny_imagenet(folder, records=records),
        needs_folder=True,
        new={"svhn": "far-new-class"},
        # The 100,000 training images are not even looked at.
        load_test=lambda folder, records, side: find_tiny_imagenet(folder, records=records)[1].read(
            side=side
        ),
    ),
)
