"""Super-classes with sub-classes held out as a shift: of CIFAR-100, and BREEDS ENTITY-13."""

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

#: The fine class of each super-class that FD-Shifts holds out, in the order of the super-classes.
#: The last, of "vehicles_2", is named there too, but that super-class is dropped.
HELD_OUT_FINE = (
    "seal", "flatfish", "tulip", "bowl", "pear", "lamp", "couch", "beetle", "lion", "skyscraper",
    "sea", "cattle", "raccoon", "lobster", "girl", "lizard", "hamster", "oak_tree", "motorcycle",
)  # fmt: skip
DROPPED = "vehicles_2"

_N_RECORD_BYTES = 2 + 3 * 32 * 32


def read_cifar100_super(folder: str | Path, *, records: int | None = None) -> Splits:
    """Read CIFAR-100 with 19 super-classes, of each of which one fine class is held out.

    Parameters
    ----------
    folder : str or Path
        ``cifar-100-binary`` as it comes out of ``cifar-100-binary.tar.gz``, or the folder that
        holds it.
    records : int, optional
        Images in each file, where they are no longer those of the official version.

    Returns
    -------
    Splits
        For training 38,000 and for testing 7,600 images of four fine classes of each
        super-class, from the official training and test files; the shift "sub-class" is the
        11,400 images of the held-out fine classes, from both files as in FD-Shifts.

    Raises
    ------
    InputError
        The folder or one of its files does not exist, or it is the version for Python.
    FileFormatError
        A file is damaged, a fine class lies in two super-classes, or the names are not those of
        CIFAR-100.

    Notes
    -----
    `HELD_OUT_FINE` lists the held-out classes; they are those of FD-Shifts (its `SuperCIFAR100`).
    The super-class "vehicles 2" is dropped, as there. FD-Shifts measures nothing but the shift on
    this data set; the i.i.d. test part here is ours. `Images.rows` counts within the training and
    within the test file; in the shift, test images follow the training images.

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
    folder = CIFAR100.layout.find_folder(folder)
    super_labels = [_read_super_labels(folder / name) for name in ("train.bin", "test.bin")]
    names = _read_names(folder, "coarse_label_names.txt", 20)
    _read_names(folder, "fine_label_names.txt", 100)
    super_class_of = _super_class_by_fine_class(
        np.concatenate([train.labels, test.labels]), np.concatenate(super_labels), train.classes
    )
    held_out = _held_out_codes(train.classes, super_class_of, names)
    retained = [code for code, name in enumerate(names) if name != DROPPED]
    retained_names = tuple(names[code] for code in retained)
    unshifted, shifted = [], []
    for images, old_labels in zip((train, test), super_labels, strict=True):
        labels = renumber_classes(old_labels, len(names), np.array(retained))
        is_retained, is_held_out = labels >= 0, np.isin(images.labels, held_out)
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
    """Read the super-classes of all images: the first byte of each record."""
    records = np.memmap(path, np.uint8, mode="r").reshape(-1, _N_RECORD_BYTES)
    labels = records[:, 0].astype(np.int64)
    description = f"{path.name} is not of CIFAR-100 in the binary version"
    check_labels(description, labels, labels >= 20, "and the last super-class is 19")
    return labels


def _read_names(folder: Path, file_name: str, count: int) -> tuple[str, ...]:
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
    """Return the super-class of each fine class; raise an error for a fine class with two."""
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
    """Return the codes of the held-out fine classes, one in each retained super-class."""
    missing = [name for name in HELD_OUT_FINE if name not in fine_names]
    missing += [DROPPED] if DROPPED not in super_names else []
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
    """Return the images of a mask with other labels."""
    rows = np.flatnonzero(mask)
    if not rows.size:
        raise FileFormatError(
            "no images are left of the 19 super-classes; the files are not those of CIFAR-100"
        )
    return Images(images.pixels[rows], labels[rows], classes, rows)


# -------------------------------------------------------------------------------- BREEDS ENTITY-13
#: Super-class, ten classes of the source domain, ten of the target domain.
ENTITY13: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = tuple(
    (name, tuple(classes["source"]), tuple(classes["target"]))
    for name, classes in tomllib.loads(
        (resources.files(__package__) / "entity13.toml").read_text(encoding="utf-8")
    ).items()
)


_TRAIN_FOLDERS = ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train", "imagenet/train")
_WNID = re.compile(r"n\d{8}")
#: FD-Shifts draws its i.i.d. test images with this seed.
_SEED = 12345


def find_entity13(folder: str | Path, *, test: int = 10_000, rng: Rng = _SEED) -> ImageFileSplits:
    """Find the images of BREEDS ENTITY-13 in the training images of ImageNet.

    Parameters
    ----------
    folder : str or Path
        The ``train`` folder of ImageNet, with a folder for each class (``n01440764``), or one
        that holds it, such as ``ILSVRC`` unpacked from Kaggle.
    test : int, default=10_000
        Images of the source sub-classes to keep for the i.i.d. test.
    rng : int, Generator or None, default=12345
        The seed with which those are drawn.

    Returns
    -------
    ImageFileSplits
        13 super-classes. Training and i.i.d. test images are of the ten source sub-classes of
        each, the shift "sub-class" is the ten target sub-classes. `read` makes them small as they
        are read; all are 338,000, so pass `limit`, or read `batches`.

    Raises
    ------
    InputError
        The folder does not exist, or one of the 260 class folders is missing.
    FileFormatError
        A class folder holds no image.

    Notes
    -----
    The 260 sub-classes are those of BREEDS with the split "rand", which FD-Shifts uses, and they
    ship here (`ENTITY13`), so the files of the BREEDS repository are not needed. The i.i.d. test
    images are drawn as FD-Shifts draws them (10,000 by seed 12345 from the files in their order).

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
    source, target = (_find_domain(train_folder, column) for column in (1, 2))
    if checks.positive_int(test, "test") >= source.n:
        raise InputError(f"`test` must leave images to train on; got {test:,} of {source.n:,}")
    # A list, because FD-Shifts shuffles a list.
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
    """Return the folder with the class folders of ImageNet's training images."""
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {str(folder)!r} to read the training images of ImageNet from"
        )
    for path in (folder, *(folder / name for name in _TRAIN_FOLDERS)):
        if path.is_dir() and any(_WNID.fullmatch(p.name) for p in path.iterdir() if p.is_dir()):
            return path
    raise InputError(
        f"{str(folder)!r} does not hold the training images of ImageNet: there is no class "
        "folder such as n01440764 in it; unpack ILSVRC2012_img_train.tar and the archives in it, "
        "one folder for each (https://www.image-net.org, after registration)"
    )


def _find_domain(folder: Path, column: int) -> ImageFiles:
    """Find the images of a column of `ENTITY13`: source (1) or target (2) domain."""
    # In the order of the folders, which is that of other readers too.
    labeled_wnids = sorted(
        (wnid, label) for label, row in enumerate(ENTITY13) for wnid in row[column]
    )
    files = find_image_folder(folder, classes=[wnid for wnid, _ in labeled_wnids])
    super_class_of = np.array([label for _, label in labeled_wnids])
    classes = tuple(row[0] for row in ENTITY13)
    return ImageFiles(folder, files.names, super_class_of[files.labels], classes)
