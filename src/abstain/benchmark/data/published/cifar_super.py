"""CIFAR-100 by its super-classes, with a sub-class of each held out as a shift."""

from pathlib import Path

import numpy as np

from abstain.benchmark.data.cifar import read_cifar100
from abstain.benchmark.data.images import Images
from abstain.benchmark.data.published.pictures import Parts
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array, IntArray

#: The fine class of each super-class that FD-Shifts holds out, in the order of the super-classes.
#: The last, of "vehicles_2", is named there too, but that super-class is dropped.
HELD_OUT_FINE = (
    "seal", "flatfish", "tulip", "bowl", "pear", "lamp", "couch", "beetle", "lion", "skyscraper",
    "sea", "cattle", "raccoon", "lobster", "girl", "lizard", "hamster", "oak_tree", "motorcycle",
)  # fmt: skip
DROPPED = "vehicles_2"

_FILES = ("train.bin", "test.bin")
_RECORD = 2 + 3 * 32 * 32


def read_cifar100_super(folder: str | Path, *, records: int | None = None) -> Parts:
    """Read CIFAR-100 with 19 super-classes, of each of which one fine class is held out.

    Parameters
    ----------
    folder : str or Path
        ``cifar-100-binary`` as it comes out of ``cifar-100-binary.tar.gz``, or the folder that
        holds it.
    records : int, optional
        Pictures in each file, where they are no longer those of the official version.

    Returns
    -------
    Parts
        For training 38,000 and for testing 7,600 pictures of four fine classes of each
        super-class, from the official training and test files; the shift "sub-class" is the
        11,400 pictures of the held-out fine classes, from both files as in FD-Shifts.

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
    within the test file; in the shift, test pictures follow the training pictures.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, appendix E, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain.benchmark.data.published import read_cifar100_super
    >>> parts = read_cifar100_super("data/cifar-100-binary")  # doctest: +SKIP
    """
    fine = read_cifar100(folder, records=records)
    where = next(p for p in (Path(folder), Path(folder) / "cifar-100-binary") if _whole(p))
    coarse = [_coarse(where / name) for name in _FILES]
    names = _names(where, "coarse_label_names.txt", 20)
    _names(where, "fine_label_names.txt", 100)
    above = _super_class(
        np.concatenate([part.labels for part in fine]), np.concatenate(coarse), fine[0].classes
    )
    out = _held_out(fine[0].classes, above, names)
    keep = [i for i, name in enumerate(names) if name != DROPPED]
    kept = tuple(names[i] for i in keep)
    number = np.full(len(names), -1)
    number[keep] = np.arange(len(keep))
    inside, outside = [], []
    for part, own in zip(fine, coarse, strict=True):
        labels = number[own]
        held = np.isin(part.labels, out)
        inside.append(_part(part, labels, (labels >= 0) & ~held, kept))
        outside.append(_part(part, labels, (labels >= 0) & held, kept))
    return Parts(inside[0], None, inside[1], {"sub-class": _joined(outside[0], outside[1], fine)})


def _whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _FILES)


def _coarse(path: Path) -> IntArray:
    """Read the first byte of every record, the number of the super-class."""
    found = np.memmap(path, np.uint8, mode="r").reshape(-1, _RECORD)[:, 0].astype(np.int64)
    wrong = np.flatnonzero(found >= 20)
    if wrong.size:
        msg = (
            f"{path.name} is not of CIFAR-100 in the binary version: picture {wrong[0]:,} has the "
            f"super-class {found[wrong[0]]}, and the last is 19"
        )
        raise FileFormatError(msg)
    return found


def _names(where: Path, name: str, count: int) -> tuple[str, ...]:
    path = where / name
    if not path.is_file():
        msg = (
            f"{name} is missing in {str(where)!r}, and the super-classes are known by their names; "
            "`abstain data fetch cifar100 --folder DIR`, again"
        )
        raise InputError(msg)
    text = path.read_text(encoding="utf-8", errors="replace")
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if len(names) != count:
        msg = f"{name} must name {count} classes, one a line; got {len(names)}"
        raise FileFormatError(msg)
    return names


def _super_class(fine: IntArray, coarse: IntArray, classes: tuple[str, ...]) -> IntArray:
    """Return the super-class of every fine class; refuse a fine class that has two."""
    above = np.full(len(classes), -1)
    above[fine] = coarse
    wrong = np.flatnonzero(above[fine] != coarse)
    if wrong.size:
        which = fine[wrong[0]]
        msg = (
            "train.bin and test.bin are not of CIFAR-100: the fine class "
            f"{classes[which]!r} lies in the super-classes {coarse[wrong[0]]} and {above[which]}"
        )
        raise FileFormatError(msg)
    return above


def _held_out(fine: tuple[str, ...], above: IntArray, names: tuple[str, ...]) -> Array:
    """Return the numbers of the held-out fine classes, one in each kept super-class."""
    missing = [name for name in HELD_OUT_FINE if name not in fine]
    if missing or DROPPED not in names:
        what = missing[0] if missing else DROPPED
        msg = (
            f"the names are not those of CIFAR-100: there is no class {what!r} in "
            "fine_label_names.txt and coarse_label_names.txt"
        )
        raise FileFormatError(msg)
    numbers = np.array([fine.index(name) for name in HELD_OUT_FINE])
    owners = above[numbers]
    if len(set(owners.tolist()) - {names.index(DROPPED)}) != len(HELD_OUT_FINE):
        msg = (
            "the held-out fine classes must lie one in each of 19 super-classes; the label files "
            "or the names are not those of CIFAR-100"
        )
        raise FileFormatError(msg)
    return numbers


def _part(whole: Images, labels: Array, mask: Array, classes: tuple[str, ...]) -> Images:
    rows = np.flatnonzero(mask)
    if not rows.size:
        msg = "no pictures are left of the 19 super-classes; the files are not those of CIFAR-100"
        raise FileFormatError(msg)
    return Images(whole.pixels[rows], labels[rows], classes, rows)


def _joined(first: Images, second: Images, fine: tuple[Images, Images]) -> Images:
    return Images(
        np.concatenate([first.pixels, second.pixels]),
        np.concatenate([first.labels, second.labels]),
        first.classes,
        np.concatenate([first.places, fine[0].n + second.places]),
    )
