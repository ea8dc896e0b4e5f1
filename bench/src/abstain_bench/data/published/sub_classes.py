"""Read CIFAR-100 and BREEDS ENTITY-13 with held-out sub-classes as a shift."""

import re
import tomllib
from importlib import resources
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array, IntArray, Rng
from abstain_bench.data.downloads import check_labels, read_class_names
from abstain_bench.data.images import Images, Splits, renumber_classes
from abstain_bench.data.published.cifar import CIFAR100, read_cifar100
from abstain_bench.data.published.image_files import ImageFiles, ImageFileSplits, find_image_folder

#: Fine classes that FD-Shifts holds out, one of each super-class in the order of the super-classes.
#: The super-class "vehicles_2" is left out.
HELD_OUT_FINE = (
    "seal", "flatfish", "tulip", "bowl", "pear", "lamp", "couch", "beetle", "lion", "skyscraper",
    "sea", "cattle", "raccoon", "lobster", "girl", "lizard", "hamster", "oak_tree", "motorcycle",
)  # fmt: skip
DROPPED = "vehicles_2"

_N_RECORD_BYTES = 2 + 3 * 32 * 32


def read_cifar100_super(folder: str | Path, *, records: int | None = None) -> Splits:
    """Read CIFAR-100 with 19 super-classes, and hold out one fine class of each as a shift.

    Parameters
    ----------
    folder : str or Path
        Folder ``cifar-100-binary`` of ``cifar-100-binary.tar.gz``, or a folder that contains it.
    records : int, optional
        Number of images in each file, if it differs from the official version.

    Returns
    -------
    Splits
        38,000 training and 7,600 test images of the four remaining fine classes of each
        super-class. The shift "sub-class" contains all 11,400 training and test images of the
        held-out fine classes, as in FD-Shifts.

    Raises
    ------
    InputError
        If the folder or one of its files does not exist, or if the folder contains the version for
        Python.
    FileFormatError
        If a file is damaged, if a fine class belongs to two super-classes, or if the names of the
        classes differ from those of CIFAR-100.

    Notes
    -----
    `HELD_OUT_FINE` lists the held-out classes, which are the same as for `SuperCIFAR100` in
    FD-Shifts. As in FD-Shifts, the super-class "vehicles 2" is excluded. FD-Shifts has no i.i.d.
    test images for this data set. `Images.rows` contains the indices in the training file and in
    the test file. In the shift, the test images follow the training images, and their indices are
    continued.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, appendix E, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain_bench.data.published import read_cifar100_super
    >>> parts = read_cifar100_super("data/cifar-100-binary")  # doctest: +SKIP
    """
    train, test = read_cifar100(folder, records=records)
    data_folder = CIFAR100.layout.find_folder(folder)
    super_labels = [_read_super_labels(data_folder / name) for name in ("train.bin", "test.bin")]
    names = _read_names(data_folder, "coarse_label_names.txt", 20)
    # Raise an error if the names of the fine classes are missing.
    _read_names(data_folder, "fine_label_names.txt", 100)
    super_class_of = _super_class_by_fine_class(
        np.concatenate([train.labels, test.labels]), np.concatenate(super_labels), train.classes
    )
    held_out = _held_out_codes(train.classes, super_class_of, names)
    retained = [code for code, name in enumerate(names) if name != DROPPED]
    retained_names = tuple(names[code] for code in retained)
    unshifted = []
    shifted = []
    for images, old_labels in zip((train, test), super_labels, strict=True):
        labels = renumber_classes(old_labels, len(names), np.array(retained))
        is_retained = labels >= 0
        is_held_out = np.isin(images.labels, held_out)
        unshifted.append(_relabeled(images, labels, is_retained & ~is_held_out, retained_names))
        shifted.append(_relabeled(images, labels, is_retained & is_held_out, retained_names))
    train_shift, test_shift = shifted
    shift = Images(
        np.concatenate([train_shift.pixels, test_shift.pixels]),
        np.concatenate([train_shift.labels, test_shift.labels]),
        retained_names,
        np.concatenate([train_shift.source_indices, train.n + test_shift.source_indices]),
    )
    return Splits(unshifted[0], None, unshifted[1], {"sub-class": shift})


def _read_super_labels(path: Path) -> IntArray:
    """Read the super-class of each image from the first byte of its record."""
    records = np.memmap(path, np.uint8, mode="r").reshape(-1, _N_RECORD_BYTES)
    labels = records[:, 0].astype(np.int64)
    description = f"{path.name} is not of CIFAR-100 in the binary version"
    check_labels(description, labels, labels >= 20, "and the last super-class is 19")
    return labels


def _read_names(folder: Path, file_name: str, count: int) -> tuple[str, ...]:
    """Read the names of the classes, or raise InputError if the file does not exist."""
    path = folder / file_name
    if not path.is_file():
        raise InputError(
            f"{file_name} is missing in {str(folder)!r}, and the super-classes are known by their "
            "names; `abstain data fetch cifar100 --folder DIR`, again"
        )
    return read_class_names(path, count)


def _super_class_by_fine_class(
    fine_labels: IntArray, super_labels: IntArray, fine_names: tuple[str, ...]
) -> IntArray:
    """Return the super-class of each fine class, or raise FileFormatError if it is ambiguous."""
    super_class_of = np.full(len(fine_names), -1)
    super_class_of[fine_labels] = super_labels
    mismatches = np.flatnonzero(super_class_of[fine_labels] != super_labels)
    if mismatches.size:
        row = mismatches[0]
        fine_label = fine_labels[row]
        raise FileFormatError(
            "train.bin and test.bin are not of CIFAR-100: the fine class "
            f"{fine_names[fine_label]!r} lies in the super-classes {super_labels[row]} and "
            f"{super_class_of[fine_label]}"
        )
    return super_class_of


def _held_out_codes(
    fine_names: tuple[str, ...], super_class_of: IntArray, super_names: tuple[str, ...]
) -> Array:
    """Return the class codes of the held-out fine classes, one per remaining super-class."""
    missing = [name for name in HELD_OUT_FINE if name not in fine_names]
    if DROPPED not in super_names:
        missing.append(DROPPED)
    if missing:
        raise FileFormatError(
            f"the names are not those of CIFAR-100: there is no class {missing[0]!r} in "
            "fine_label_names.txt and coarse_label_names.txt"
        )
    codes = np.array([fine_names.index(name) for name in HELD_OUT_FINE])
    super_classes = set(super_class_of[codes].tolist()) - {super_names.index(DROPPED)}
    if len(super_classes) != len(HELD_OUT_FINE):
        raise FileFormatError(
            "the held-out fine classes must lie one in each of 19 super-classes; the label files "
            "or the names are not those of CIFAR-100"
        )
    return codes


def _relabeled(images: Images, labels: Array, mask: Array, classes: tuple[str, ...]) -> Images:
    """Select images by a mask, and replace their labels and class names."""
    rows = np.flatnonzero(mask)
    if not rows.size:
        raise FileFormatError(
            "no images are left of the 19 super-classes; the files are not those of CIFAR-100"
        )
    return Images(images.pixels[rows], labels[rows], classes, rows)


# -------------------------------------------------------------------------------- BREEDS ENTITY-13
#: Name of each super-class, its ten classes of the source domain, and its ten classes of the target
#: domain.
ENTITY13: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = tuple(
    (name, tuple(classes["source"]), tuple(classes["target"]))
    for name, classes in tomllib.loads(
        (resources.files(__package__) / "entity13.toml").read_text(encoding="utf-8")
    ).items()
)


_TRAIN_FOLDERS = ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train", "imagenet/train")
_WNID = re.compile(r"n\d{8}")
#: Seed with which FD-Shifts samples the i.i.d. test images.
_SEED = 12345


def find_entity13(folder: str | Path, *, test: int = 10_000, rng: Rng = _SEED) -> ImageFileSplits:
    """List the images of BREEDS ENTITY-13, which are part of the ImageNet training images.

    Parameters
    ----------
    folder : str or Path
        Folder ``train`` of ImageNet, which contains one folder per class, such as ``n01440764``. A
        parent folder, such as ``ILSVRC`` in the Kaggle archive, is also valid.
    test : int, default=10_000
        Number of images of the source sub-classes that become i.i.d. test images.
    rng : int, Generator or None, default=12345
        Seed with which the i.i.d. test images are sampled.

    Returns
    -------
    ImageFileSplits
        Images of 13 super-classes. The training images and the i.i.d. test images are from the ten
        source sub-classes of each super-class. The shift "sub-class" contains the images of the ten
        target sub-classes of each super-class. `read` resizes the images. The data set has 338,000
        images, so set `limit` or read the images by `batches`.

    Raises
    ------
    InputError
        If the folder or one of the 260 class folders does not exist.
    FileFormatError
        If a class folder contains no image.

    Notes
    -----
    The 260 sub-classes are those of the random split of BREEDS, which FD-Shifts also uses.
    `ENTITY13` contains them, so the files of the BREEDS repository are not needed. By default, the
    i.i.d. test images are the 10,000 images that FD-Shifts samples with the seed 12345.

    References
    ----------
    .. [1] Santurkar et al. (2021), BREEDS: benchmarks for subpopulation shift,
       https://arxiv.org/abs/2008.04859

    Examples
    --------
    >>> from abstain_bench.data.published import find_entity13
    >>> files = find_entity13("imagenet/train")  # doctest: +SKIP
    >>> parts = files.read(side=64, limit=20_000)  # doctest: +SKIP
    """
    train_folder = _find_train_folder(Path(folder))
    source = _find_domain(train_folder, 1)
    target = _find_domain(train_folder, 2)
    if checks.positive_int(test, "test") >= source.n:
        raise InputError(f"`test` must leave images to train on; got {test:,} of {source.n:,}")
    # The order is a list, because FD-Shifts shuffles a list.
    order = list(range(source.n))
    as_generator(rng).shuffle(order)
    rows = np.array(order)
    return ImageFileSplits(
        train=source.subset(np.sort(rows[test:])),
        validation=None,
        test=source.subset(np.sort(rows[:test])),
        shifts={"sub-class": target},
    )


def _find_train_folder(folder: Path) -> Path:
    """Return the folder that contains the class folders of the ImageNet training images."""
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {str(folder)!r} to read the training images of ImageNet from"
        )
    for path in (folder, *(folder / name for name in _TRAIN_FOLDERS)):
        if not path.is_dir():
            continue
        subfolders = [entry.name for entry in path.iterdir() if entry.is_dir()]
        if any(_WNID.fullmatch(name) for name in subfolders):
            return path
    raise InputError(
        f"{str(folder)!r} does not hold the training images of ImageNet: there is no class "
        "folder such as n01440764 in it; unpack ILSVRC2012_img_train.tar and the archives in it, "
        "one folder for each (https://www.image-net.org, after registration)"
    )


def _find_domain(folder: Path, column: int) -> ImageFiles:
    """List the image files of the source domain (column 1) or the target domain (column 2)."""
    # The order of the folders is also the order of other readers.
    label_by_wnid = {wnid: label for label, row in enumerate(ENTITY13) for wnid in row[column]}
    wnids = sorted(label_by_wnid)
    files = find_image_folder(folder, classes=wnids)
    super_class_of = np.array([label_by_wnid[wnid] for wnid in wnids])
    classes = tuple(row[0] for row in ENTITY13)
    return ImageFiles(folder, files.names, super_class_of[files.labels], classes)
