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
from abstain_bench.data.downloads import class_names
from abstain_bench.data.images import Images, renumber_classes
from abstain_bench.data.published.cifar import CIFAR100, read_cifar100
from abstain_bench.data.published.image_files import ImageFiles, ImageFileSplits, PublishedImages
from abstain_bench.data.published.image_folder import find_image_folder

#: The fine class of each super-class that FD-Shifts holds out, in the order of the super-classes.
#: The last, of "vehicles_2", is named there too, but that super-class is dropped.
HELD_OUT_FINE = (
    "seal", "flatfish", "tulip", "bowl", "pear", "lamp", "couch", "beetle", "lion", "skyscraper",
    "sea", "cattle", "raccoon", "lobster", "girl", "lizard", "hamster", "oak_tree", "motorcycle",
)  # fmt: skip
DROPPED = "vehicles_2"

_FILES = ("train.bin", "test.bin")
_RECORD = 2 + 3 * 32 * 32


def read_cifar100_super(folder: str | Path, *, records: int | None = None) -> PublishedImages:
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
    PublishedImages
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
    fine = read_cifar100(folder, records=records)
    where = CIFAR100.layout.place(folder)
    coarse = [_coarse(where / name) for name in _FILES]
    names = _names(where, "coarse_label_names.txt", 20)
    _names(where, "fine_label_names.txt", 100)
    above = _super_class(
        np.concatenate([part.labels for part in fine]), np.concatenate(coarse), fine[0].classes
    )
    out = _held_out(fine[0].classes, above, names)
    keep = [i for i, name in enumerate(names) if name != DROPPED]
    kept = tuple(names[i] for i in keep)
    inside, outside = [], []
    for part, own in zip(fine, coarse, strict=True):
        labels = renumber_classes(own, len(names), np.array(keep))
        held = np.isin(part.labels, out)
        inside.append(_part(part, labels, (labels >= 0) & ~held, kept))
        outside.append(_part(part, labels, (labels >= 0) & held, kept))
    return PublishedImages(
        inside[0], None, inside[1], {"sub-class": _joined(outside[0], outside[1], fine)}
    )


def _coarse(path: Path) -> IntArray:
    """Read the first byte of every record, the number of the super-class."""
    found = np.memmap(path, np.uint8, mode="r").reshape(-1, _RECORD)[:, 0].astype(np.int64)
    wrong = np.flatnonzero(found >= 20)
    if wrong.size:
        raise FileFormatError(
            f"{path.name} is not of CIFAR-100 in the binary version: image {wrong[0]:,} has the "
            f"super-class {found[wrong[0]]}, and the last is 19"
        )
    return found


def _names(where: Path, name: str, count: int) -> tuple[str, ...]:
    path = where / name
    if not path.is_file():
        raise InputError(
            f"{name} is missing in {str(where)!r}, and the super-classes are known by their names; "
            "`abstain data fetch cifar100 --folder DIR`, again"
        )
    return class_names(path, count)


def _super_class(fine: IntArray, coarse: IntArray, classes: tuple[str, ...]) -> IntArray:
    """Return the super-class of every fine class; refuse a fine class that has two."""
    above = np.full(len(classes), -1)
    above[fine] = coarse
    wrong = np.flatnonzero(above[fine] != coarse)
    if wrong.size:
        which = fine[wrong[0]]
        raise FileFormatError(
            "train.bin and test.bin are not of CIFAR-100: the fine class "
            f"{classes[which]!r} lies in the super-classes {coarse[wrong[0]]} and {above[which]}"
        )
    return above


def _held_out(fine: tuple[str, ...], above: IntArray, names: tuple[str, ...]) -> Array:
    """Return the numbers of the held-out fine classes, one in each kept super-class."""
    missing = [name for name in HELD_OUT_FINE if name not in fine]
    if missing or DROPPED not in names:
        what = missing[0] if missing else DROPPED
        raise FileFormatError(
            f"the names are not those of CIFAR-100: there is no class {what!r} in "
            "fine_label_names.txt and coarse_label_names.txt"
        )
    numbers = np.array([fine.index(name) for name in HELD_OUT_FINE])
    owners = above[numbers]
    if len(set(owners.tolist()) - {names.index(DROPPED)}) != len(HELD_OUT_FINE):
        raise FileFormatError(
            "the held-out fine classes must lie one in each of 19 super-classes; the label files "
            "or the names are not those of CIFAR-100"
        )
    return numbers


def _part(whole: Images, labels: Array, mask: Array, classes: tuple[str, ...]) -> Images:
    rows = np.flatnonzero(mask)
    if not rows.size:
        raise FileFormatError(
            "no images are left of the 19 super-classes; the files are not those of CIFAR-100"
        )
    return Images(whole.pixels[rows], labels[rows], classes, rows)


def _joined(first: Images, second: Images, fine: tuple[Images, Images]) -> Images:
    return Images(
        np.concatenate([first.pixels, second.pixels]),
        np.concatenate([first.labels, second.labels]),
        first.classes,
        np.concatenate([first.source_indices, fine[0].n + second.source_indices]),
    )


# -------------------------------------------------------------------------------- BREEDS ENTITY-13
#: Super-class, ten classes of the source domain, ten of the target domain.
ENTITY13: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = tuple(
    (name, tuple(classes["source"]), tuple(classes["target"]))
    for name, classes in tomllib.loads(
        (resources.files(__package__) / "entity13.toml").read_text(encoding="utf-8")
    ).items()
)


_INSIDE = ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train", "imagenet/train")
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
    where = _folder(Path(folder))
    source, target = _domain(where, 1), _domain(where, 2)
    if checks.positive_int(test, "test") >= source.n:
        raise InputError(f"`test` must leave images to train on; got {test:,} of {source.n:,}")
    # A list, as shuffling one is what FD-Shifts does.
    order = list(range(source.n))
    as_generator(rng).shuffle(order)
    rows = np.array(order)
    return ImageFileSplits(
        train=source.subset(np.sort(rows[test:])),
        validation=None,
        test=source.subset(np.sort(rows[:test])),
        shifts={"sub-class": target},
    )


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {str(folder)!r} to read the training images of ImageNet from"
        )
    for found in (folder, *(folder / name for name in _INSIDE)):
        if found.is_dir() and any(_WNID.fullmatch(p.name) for p in found.iterdir() if p.is_dir()):
            return found
    raise InputError(
        f"{str(folder)!r} does not hold the training images of ImageNet: there is no class "
        "folder such as n01440764 in it; unpack ILSVRC2012_img_train.tar and the archives in it, "
        "one folder for each (https://www.image-net.org, after registration)"
    )


def _domain(where: Path, column: int) -> ImageFiles:
    """Find the images of the source (1) or the target (2), labeled by super-class."""
    wnids = [(wnid, label) for label, row in enumerate(ENTITY13) for wnid in row[column]]
    # In the order of the folders, which is that of other readers too.
    wnids.sort()
    found = find_image_folder(where, classes=[wnid for wnid, _ in wnids])
    above = np.array([label for _, label in wnids])
    classes = tuple(row[0] for row in ENTITY13)
    return ImageFiles(where, found.names, above[found.labels], classes)
