"""Read TinyImageNet, which contains images of 64 x 64 pixels from 200 ImageNet classes."""

from pathlib import Path

import numpy as np

from abstain.errors import FileFormatError
from abstain_bench.data.downloads import Layout, expected_count
from abstain_bench.data.entry import DataSet
from abstain_bench.data.images import Images
from abstain_bench.data.published.image_files import ImageFiles

# The folder "train" does not identify the data set, because ImageNet also has such a folder.
_LAYOUT = Layout("tiny-imagenet", "TinyImageNet", ("wnids.txt", "val/val_annotations.txt"))
_N_CLASSES = 200
_N_TRAIN_PER_CLASS = 500
_N_VALIDATION_PER_CLASS = 50


def read_tiny_imagenet(
    folder: str | Path, *, side: int = 32, records: int | None = None
) -> tuple[Images, Images]:
    """Read TinyImageNet, which has 100,000 training and 10,000 test images, and resize the images.

    Parameters
    ----------
    folder : str or Path
        Folder ``tiny-imagenet-200`` of ``tiny-imagenet-200.zip``, or a folder that contains it.
    side : int, default=32
        Height and width of the returned images. The images in the files have 64 x 64 pixels.
    records : int, optional
        Number of training images and of validation images per class, if it differs from the 500 and
        50 of the official version.

    Returns
    -------
    tuple of Images
        Training images and test images. The official validation images serve as test images,
        because the labels of the official test images are not published.

    Raises
    ------
    InputError
        If the folder or one of its files does not exist, or if Pillow is not installed.
    FileFormatError
        If a class has an unexpected number of images, if the annotations name an unknown class or
        file, or if an image is damaged. The message contains the name.

    Notes
    -----
    The function takes about two minutes on one core. FD-Shifts reads a version of the data set with
    images of 32 x 32 pixels. The function resizes the original images by the antialiased bilinear
    filter of Pillow, so the confidence scores of individual images differ slightly.

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
    """List the training and validation image files of TinyImageNet.

    Examples
    --------
    >>> from abstain_bench.data.published import find_tiny_imagenet
    >>> _, test = find_tiny_imagenet("data/tiny-imagenet-200")  # doctest: +SKIP
    >>> test.sample(1000).read(side=32).n  # doctest: +SKIP
    1000
    """
    data_folder = _LAYOUT.find_folder(folder)
    text = _LAYOUT.require(data_folder, "wnids.txt").read_text(encoding="utf-8", errors="replace")
    wnids = tuple(sorted(text.split()))
    if not wnids or (records is None and len(wnids) != _N_CLASSES):
        raise FileFormatError(
            f"wnids.txt must name the {_N_CLASSES} classes, one a line; got {len(wnids)}"
        )
    n_train = expected_count(_N_TRAIN_PER_CLASS, records)
    n_validation = expected_count(_N_VALIDATION_PER_CLASS, records)
    train = _find_train(data_folder, wnids, n_train)
    return train, _find_validation(data_folder, wnids, n_validation)


def _class_names(folder: Path, wnids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the WordNet number of each class, preceded by its first word if it is available."""
    path = folder / "words.txt"
    lines = path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else []
    words = {}
    for line in lines:
        wnid, _, meaning = line.partition("\t")
        words[wnid] = meaning.split(",")[0].strip()
    # The number distinguishes classes with the same first word, such as "crane".
    return tuple(f"{words[wnid]} ({wnid})" if words.get(wnid) else wnid for wnid in wnids)


def _find_train(folder: Path, wnids: tuple[str, ...], count: int) -> ImageFiles:
    """List the training images and check that each class has `count` images."""
    names: list[str] = []
    for wnid in wnids:
        images = _LAYOUT.require(folder, f"train/{wnid}/images")
        files = sorted(
            path.name for path in images.iterdir() if path.suffix.lower() in {".jpeg", ".jpg"}
        )
        if len(files) != count:
            raise FileFormatError(
                f"train/{wnid}/images must hold {count} images, and it holds {len(files)} (half "
                f"extracted?); {_LAYOUT.download_command}, again"
            )
        names += [f"train/{wnid}/images/{name}" for name in files]
    labels = np.repeat(np.arange(len(wnids)), count)
    return ImageFiles(folder, tuple(names), labels, _class_names(folder, wnids))


def _find_validation(folder: Path, wnids: tuple[str, ...], count: int) -> ImageFiles:
    """List the validation images and check that the annotations name `count` images per class."""
    path = folder / "val" / "val_annotations.txt"
    if not path.is_file():
        raise FileFormatError(
            f"val/val_annotations.txt is missing in {str(folder)!r} (half extracted, or "
            f"rearranged into class folders?); {_LAYOUT.download_command}, again"
        )
    code_by_wnid = {wnid: code for code, wnid in enumerate(wnids)}
    names = []
    labels = []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1):
        # The columns after the class contain a bounding box.
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
        # The function does not read the 100,000 training images.
        load_test=lambda folder, records, side: find_tiny_imagenet(folder, records=records)[1].read(
            side=side
        ),
    ),
)
