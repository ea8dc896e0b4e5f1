"""Shifts of CIFAR: test pictures under 19 corruptions, and held-out sub-classes of CIFAR-100."""

from pathlib import Path
from tokenize import TokenError

import numpy as np

from abstain._foundation import checks
from abstain.benchmark.data.cifar import read_cifar100
from abstain.benchmark.data.folders import Layout, needed, place
from abstain.benchmark.data.images import Images
from abstain.benchmark.data.published.pictures import PublishedPictures
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array, IntArray

#: The 15 corruptions of the benchmark, by the names of their files.
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise",
    "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness",
    "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
#: Four more, which the authors keep for choosing settings.
EXTRA_CORRUPTIONS = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

#: What NumPy raises at damaged files; it reads their head as Python's tokenizer does.
_DAMAGE = (ValueError, TypeError, KeyError, EOFError, OSError, SyntaxError, MemoryError, TokenError)
_SEVERITIES = 5
_RECORDS = 10_000
_CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def read_cifar10_c(
    folder: str | Path, corruption: str, severity: int, *, records: int | None = None
) -> Images:
    """Read the test pictures of CIFAR-10 under one corruption at one severity.

    Parameters
    ----------
    folder : str or Path
        ``CIFAR-10-C`` as it comes out of ``CIFAR-10-C.tar``, or the folder that holds it.
    corruption : str
        A name of `CORRUPTIONS` or `EXTRA_CORRUPTIONS`, such as "fog".
    severity : int
        1 to 5. Only these pictures are taken into memory.
    records : int, optional
        Pictures of each severity, where they are no longer the 10,000 of the official version.

    Returns
    -------
    Images
        In the order of CIFAR-10's test pictures.

    Raises
    ------
    InputError
        The folder or the file does not exist, or there is no such corruption or severity.
    FileFormatError
        A file is cut off, of another shape or type, or made of pickles; or a label no class has.

    References
    ----------
    .. [1] Hendrycks & Dietterich (2019), Benchmarking neural network robustness to common
       corruptions and perturbations, https://arxiv.org/abs/1903.12261

    Examples
    --------
    >>> from abstain.benchmark.data.published import read_cifar10_c
    >>> foggy = read_cifar10_c("data/CIFAR-10-C", "fog", 3)  # doctest: +SKIP
    """
    layout = _layout("CIFAR-10-C", "cifar10-c")
    return _read(folder, layout, corruption, severity, (_CIFAR10_CLASSES, records))


def read_cifar100_c(
    folder: str | Path,
    corruption: str,
    severity: int,
    *,
    classes: tuple[str, ...] | None = None,
    records: int | None = None,
) -> Images:
    """Read the test pictures of CIFAR-100 under one corruption at one severity.

    Parameters
    ----------
    folder : str or Path
        ``CIFAR-100-C`` as it comes out of ``CIFAR-100-C.tar``, or the folder that holds it.
    corruption : str
        A name of `CORRUPTIONS` or `EXTRA_CORRUPTIONS`, such as "fog".
    severity : int
        1 to 5. Only these pictures are taken into memory.
    classes : tuple of str, optional
        The names of the 100 classes, which the files do not have (`read_cifar100` returns them);
        by default their numbers.
    records : int, optional
        Pictures of each severity, where they are no longer the 10,000 of the official version.

    Returns
    -------
    Images
        In the order of CIFAR-100's test pictures, with its fine labels.

    Raises
    ------
    InputError
        The folder or the file does not exist, or there is no such corruption or severity.
    FileFormatError
        A file is cut off, of another shape or type, or made of pickles; or a label no class has.

    References
    ----------
    .. [1] Hendrycks & Dietterich (2019), Benchmarking neural network robustness to common
       corruptions and perturbations, https://arxiv.org/abs/1903.12261

    Examples
    --------
    >>> from abstain.benchmark.data.published import read_cifar100_c
    >>> foggy = read_cifar100_c("data/CIFAR-100-C", "fog", 3)  # doctest: +SKIP
    """
    names = tuple(str(number) for number in range(100)) if classes is None else tuple(classes)
    if len(names) != 100:
        msg = f"`classes` must name the 100 classes of CIFAR-100; got {len(names)}"
        raise InputError(msg)
    layout = _layout("CIFAR-100-C", "cifar100-c")
    return _read(folder, layout, corruption, severity, (names, records))


def _layout(title: str, name: str) -> Layout:
    return Layout(
        title=title,
        marks=("labels.npy", *(f"{corruption}.npy" for corruption in CORRUPTIONS)),
        how=f"`abstain data fetch {name} --folder DIR`",
        inside=(title,),
        archives=(f"{title}.tar",),
    )


def _read(
    folder: str | Path,
    layout: Layout,
    corruption: str,
    severity: int,
    expected: tuple[tuple[str, ...], int | None],
) -> Images:
    checks.one_of(corruption, "corruption", (*CORRUPTIONS, *EXTRA_CORRUPTIONS))
    if checks.positive_int(severity, "severity") > _SEVERITIES:
        msg = f"`severity` must be 1 to {_SEVERITIES}; got {severity}"
        raise InputError(msg)
    classes, records = expected
    count = _RECORDS if records is None else checks.positive_int(records, "records")
    where = place(folder, layout)
    whole = (_SEVERITIES * count, 32, 32, 3)
    pixels = _array(needed(where, f"{corruption}.npy", layout), whole, layout)
    labels = _array(needed(where, "labels.npy", layout), whole[:1], layout)
    part = slice((severity - 1) * count, severity * count)
    own = np.asarray(labels[part]).astype(np.int64)
    wrong = np.flatnonzero((own < 0) | (own >= len(classes)))
    if wrong.size:
        msg = (
            f"labels.npy is not of {layout.title}: picture {part.start + wrong[0]:,} has the label "
            f"{own[wrong[0]]}, and the last class is {len(classes) - 1}"
        )
        raise FileFormatError(msg)
    # The files have the channels last.
    return Images(np.ascontiguousarray(pixels[part].transpose(0, 3, 1, 2)), own, classes)


def _array(path: Path, shape: tuple[int, ...], layout: Layout) -> Array:
    """Map one file into memory, without reading it whole and without unpickling anything."""
    again = f"{layout.how}, again"
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGE as error:
        words = " ".join(str(error).split())
        if "pickle" in words.lower() or "object" in words.lower():
            msg = (
                f"{path.name} is no array of numbers or is made of pickles, which are never read, "
                f"as they can run any code; take the official version: {again}"
            )
        else:
            msg = f"{path.name} is cut off or damaged (half extracted?); {again} ({words})"
        raise FileFormatError(msg) from None
    if not isinstance(found, np.ndarray) or found.shape != shape or found.dtype.kind not in "iu":
        there = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else "an archive"
        msg = f"{path.name} must hold whole numbers of shape {shape}, and it holds {there}; {again}"
        raise FileFormatError(msg)
    if found.ndim > 1 and found.dtype != np.uint8:
        msg = f"{path.name} must hold bytes (uint8), and it holds {found.dtype}; {again}"
        raise FileFormatError(msg)
    return found


#: The fine class of each super-class that FD-Shifts holds out, in the order of the super-classes.
#: The last, of "vehicles_2", is named there too, but that super-class is dropped.
HELD_OUT_FINE = (
    "seal", "flatfish", "tulip", "bowl", "pear", "lamp", "couch", "beetle", "lion", "skyscraper",
    "sea", "cattle", "raccoon", "lobster", "girl", "lizard", "hamster", "oak_tree", "motorcycle",
)  # fmt: skip
DROPPED = "vehicles_2"

_FILES = ("train.bin", "test.bin")
_RECORD = 2 + 3 * 32 * 32


def read_cifar100_super(folder: str | Path, *, records: int | None = None) -> PublishedPictures:
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
    PublishedPictures
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
    places = (Path(folder), Path(folder) / "cifar-100-binary")
    where = next(p for p in places if all((p / name).is_file() for name in _FILES))
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
    return PublishedPictures(
        inside[0], None, inside[1], {"sub-class": _joined(outside[0], outside[1], fine)}
    )


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
