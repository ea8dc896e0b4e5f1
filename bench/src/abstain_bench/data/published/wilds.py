"""Two data sets of WILDS: animals seen by camera traps, and tissue from five hospitals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import FileFormatError
from abstain.typing import Array, IntArray, Rng
from abstain_bench.data.downloads import Layout
from abstain_bench.data.published.image_files import ImageFiles, ImageFileSplits


def read_table(
    path: Path, columns: Sequence[str], *, optional: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Read columns of a CSV file as text; refuse cells that are missing.

    Of the optional columns those are left out that the file lacks, or lacks a cell of.
    """
    import polars as pl

    try:
        # Text throughout: the patient "004" is no number.
        frame = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())[:120]
        raise FileFormatError(
            f"{path.name} is no CSV file, or is cut off (half extracted?): {words}"
        ) from None
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise FileFormatError(
            f"{path.name} lacks the column {missing[0]!r}; it has "
            f"{', '.join(map(repr, frame.columns[:12]))}. Take the version that the reader names"
        )
    if columns and not len(frame):
        raise FileFormatError(f"{path.name} has no rows (half extracted?)")
    for name in columns:
        if frame[name].null_count():
            line = int(frame[name].is_null().to_numpy().argmax()) + 2
            raise FileFormatError(
                f"line {line} of {path.name} has no {name!r}; the file is cut off or damaged"
            )
    there = [n for n in optional if n in frame.columns and not frame[n].null_count()]
    return {name: frame[name].to_list() for name in (*columns, *there)}


def column_of_numbers(
    table: Mapping[str, list[str]], name: str, path: Path, *, below: int | None = None
) -> IntArray:
    """Return a column as whole numbers from 0; name the first line that is none."""
    found = table[name]
    for row, text in enumerate(found):
        # Some versions write whole numbers as 2.0.
        if not text.removesuffix(".0").isascii() or not text.removesuffix(".0").isdigit():
            raise FileFormatError(
                f"line {row + 2} of {path.name}: {name!r} must be a whole number; got {text!r}"
            )
    numbers = np.array([int(text.removesuffix(".0")) for text in found], np.int64)
    if below is not None and numbers.max() >= below:
        row = int(numbers.argmax())
        raise FileFormatError(
            f"line {row + 2} of {path.name}: {name!r} must be below {below}; got {found[row]!r}"
        )
    return numbers


#: What the program of WILDS calls their archives.
_ARCHIVES = ("archive.tar.gz",)
_MARKS = ("metadata.csv",)
_IWILDCAM = Layout("iwildcam", "iWildCam2020-WILDS v2.0", _MARKS, archives=_ARCHIVES)
_CAMELYON17 = Layout("camelyon17", "Camelyon17-WILDS v1.0", _MARKS, archives=_ARCHIVES)
_IWILDCAM_SPLITS = ("train", "id_val", "id_test", "test", "val")
_IWILDCAM_PICTURES = 203_029
_CAMELYON17_PICTURES = 455_954
#: Hospitals of the official split, counted from 0 as in the files.
_TEST_CENTER, _VALIDATION_CENTER, _CENTERS = 2, 1, 5
#: FD-Shifts divides the i.i.d. images of Camelyon17 with this seed.
_SEED = 12345


def find_iwildcam(folder: str | Path, *, records: int | None = None) -> ImageFileSplits:
    """Find the images of iWildCam2020-WILDS: 182 animals seen by camera traps.

    Parameters
    ----------
    folder : str or Path
        ``iwildcam_v2.0``, with ``metadata.csv`` and the images in ``train``, or the folder that
        holds it.
    records : int, optional
        Rows of ``metadata.csv``, where they are no longer the 203,029 of the official version.

    Returns
    -------
    ImageFileSplits
        By the official split: `train`, `validation` ("id_val") and the i.i.d. `test` ("id_test")
        come from the same camera traps; the shift "locations" ("test") and
        "locations-validation" ("val") from others. `groups` tells the camera trap. Images are
        squeezed to squares as they are read.

    Raises
    ------
    InputError
        The folder, ``metadata.csv`` or the folder of images does not exist.
    FileFormatError
        ``metadata.csv`` is cut off, lacks a column, or holds what it must not.

    References
    ----------
    .. [1] Koh et al. (2021), WILDS: a benchmark of in-the-wild distribution shifts,
       https://arxiv.org/abs/2012.07421
    .. [2] Beery et al. (2020), The iWildCam 2020 competition dataset

    Examples
    --------
    >>> from abstain_bench.data.published import find_iwildcam
    >>> files = find_iwildcam("data/iwildcam_v2.0")  # doctest: +SKIP
    >>> parts = files.read(side=64, limit=10_000)  # doctest: +SKIP
    """
    where = _IWILDCAM.place(folder)
    _IWILDCAM.needed(where, "train")
    path = where / "metadata.csv"
    table = read_table(path, ("split", "filename", "y", "location_remapped"))
    _refuse_length(table, path, _IWILDCAM_PICTURES if records is None else records, _IWILDCAM)
    names = tuple(f"train/{_bare(name, path)}" for name in table["filename"])
    labels = column_of_numbers(table, "y", path)
    traps = column_of_numbers(table, "location_remapped", path)
    classes = _categories(where, int(labels.max()) + 1)
    whole = ImageFiles(where, names, labels, classes, groups=traps, crop=False)
    split = np.array(table["split"])
    unknown = sorted(set(table["split"]) - set(_IWILDCAM_SPLITS))
    if unknown:
        raise FileFormatError(
            f"metadata.csv has the split {unknown[0]!r}; it must be one of {_IWILDCAM_SPLITS}"
        )
    train, validation, test, shift, other = (
        _subset(whole, split == name, name) for name in _IWILDCAM_SPLITS
    )
    return ImageFileSplits(
        train, validation, test, {"locations": shift, "locations-validation": other}
    )


def find_camelyon17(
    folder: str | Path, *, records: int | None = None, rng: Rng = _SEED
) -> ImageFileSplits:
    """Find the images of Camelyon17-WILDS: tumor or not, in tissue from five hospitals.

    Parameters
    ----------
    folder : str or Path
        ``camelyon17_v1.0``, with ``metadata.csv`` and the images in ``patches``, or the folder
        that holds it.
    records : int, optional
        Rows of ``metadata.csv``, where they are no longer the 455,954 of the official version.
    rng : int, Generator or None, default=12345
        The seed with which the i.i.d. images are divided.

    Returns
    -------
    ImageFileSplits
        By the official split: training and i.i.d. images ("id_val") from three hospitals; the
        shift "hospital" from center 2 and "hospital-validation" from center 1. The data set has
        no i.i.d. test part, so a tenth of "id_val" is the `validation` part and the rest is the
        i.i.d. `test`. `groups` tells the center.

    Raises
    ------
    InputError
        The folder, ``metadata.csv`` or the folder of images does not exist.
    FileFormatError
        ``metadata.csv`` is cut off, lacks a column, or holds what it must not.

    References
    ----------
    .. [1] Koh et al. (2021), WILDS: a benchmark of in-the-wild distribution shifts,
       https://arxiv.org/abs/2012.07421
    .. [2] Bandi et al. (2018), From detection of individual metastases to classification of
       lymph node status at the patient level: the CAMELYON17 challenge

    Examples
    --------
    >>> from abstain_bench.data.published import find_camelyon17
    >>> files = find_camelyon17("data/camelyon17_v1.0")  # doctest: +SKIP
    >>> parts = files.read(side=32, limit=10_000)  # doctest: +SKIP
    """
    where = _CAMELYON17.place(folder)
    _CAMELYON17.needed(where, "patches")
    path = where / "metadata.csv"
    columns = ("patient", "node", "x_coord", "y_coord", "tumor", "center", "split")
    table = read_table(path, columns)
    _refuse_length(table, path, _CAMELYON17_PICTURES if records is None else records, _CAMELYON17)
    for name in columns[:4]:  # parts of file names: numbers, and nothing else
        column_of_numbers(table, name, path)
    labels = column_of_numbers(table, "tumor", path, below=2)
    center = column_of_numbers(table, "center", path, below=_CENTERS)
    split = column_of_numbers(table, "split", path, below=4)
    rows = zip(*(table[name] for name in columns[:4]), strict=True)
    names = tuple(_patch(*row) for row in rows)
    whole = ImageFiles(where, names, labels, ("normal", "tumor"), groups=center, crop=False)
    own = ~np.isin(center, (_TEST_CENTER, _VALIDATION_CENTER))
    near = _subset(whole, own & (split == 1), "id_val")
    order = as_generator(rng).permutation(near.n)
    tenth = max(1, near.n // 10)
    return ImageFileSplits(
        train=_subset(whole, own & (split == 0), "train"),
        validation=near.subset(np.sort(order[:tenth])),
        test=near.subset(np.sort(order[tenth:])),
        shifts={
            "hospital": _subset(whole, center == _TEST_CENTER, "test"),
            "hospital-validation": _subset(whole, center == _VALIDATION_CENTER, "val"),
        },
    )


def _patch(patient: str, node: str, x: str, y: str) -> str:
    slide = f"patient_{patient}_node_{node}"
    return f"patches/{slide}/patch_{slide}_x_{x}_y_{y}.png"


def _bare(name: str, path: Path) -> str:
    """Refuse a file name that leads out of the folder."""
    if not name or name in {".", ".."} or "/" in name or "\\" in name:
        raise FileFormatError(f"{path.name} must name files without folders; got {name!r}")
    return name


def _refuse_length(
    table: Mapping[str, list[str]], path: Path, official: int, layout: Layout
) -> None:
    checks.positive_int(official, "records")
    count = len(next(iter(table.values())))
    if count != official:
        raise FileFormatError(
            f"{path.name} must have {official:,} rows for {layout.title}, and it has {count:,} "
            f"(half extracted, or another version?); {layout.how}, again"
        )


def _subset(whole: ImageFiles, mask: Array, name: str) -> ImageFiles:
    rows: IntArray = np.flatnonzero(mask)
    if not rows.size:
        raise FileFormatError(f"metadata.csv names no image of the part {name!r} (cut off?)")
    return whole.subset(rows)


def _categories(where: Path, count: int) -> tuple[str, ...]:
    """Read the names of the animals; numbers where categories.csv is missing or has no names."""
    path = where / "categories.csv"
    numbers = tuple(str(number) for number in range(count))
    if not path.is_file():
        return numbers
    table = read_table(path, (), optional=("y", "name"))
    if set(table) != {"y", "name"}:
        return numbers
    names = dict(zip(table["y"], table["name"], strict=True))
    return tuple(names.get(number) or number for number in numbers)
