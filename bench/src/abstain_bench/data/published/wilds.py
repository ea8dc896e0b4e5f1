"""Two data sets of WILDS: animals seen by camera traps, and tissue from five hospitals."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from abstain._foundation.random import as_generator
from abstain.errors import FileFormatError
from abstain.typing import Array, IntArray, Rng
from abstain_bench.data.downloads import Layout, expected_count
from abstain_bench.data.published.image_files import ImageFiles, ImageFileSplits

if TYPE_CHECKING:
    import polars as pl


def _read_csv(path: Path) -> "pl.DataFrame":
    import polars as pl

    try:
        # Text throughout: the patient "004" is no number.
        return pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())[:120]
        raise FileFormatError(
            f"{path.name} is no CSV file, or is cut off (half extracted?): {text}"
        ) from None


def _read_table(path: Path, columns: Sequence[str]) -> dict[str, list[str]]:
    """Read columns of a CSV file as text; raise an error for missing cells."""
    frame = _read_csv(path)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise FileFormatError(
            f"{path.name} lacks the column {missing[0]!r}; it has "
            f"{', '.join(map(repr, frame.columns[:12]))}. Take the version that the reader names"
        )
    if not len(frame):
        raise FileFormatError(f"{path.name} has no rows (half extracted?)")
    for name in columns:
        if frame[name].null_count():
            line = int(frame[name].is_null().to_numpy().argmax()) + 2
            raise FileFormatError(
                f"line {line} of {path.name} has no {name!r}; the file is cut off or damaged"
            )
    return {name: frame[name].to_list() for name in columns}


def _parse_integers(
    table: Mapping[str, list[str]], name: str, path: Path, *, below: int | None = None
) -> IntArray:
    """Return a column as integers from 0; the error names the first invalid line."""
    # Some versions write whole numbers as 2.0.
    texts = [text.removesuffix(".0") for text in table[name]]
    for row, text in enumerate(texts):
        if not text.isascii() or not text.isdigit():
            raise FileFormatError(
                f"line {row + 2} of {path.name}: {name!r} must be a whole number; got "
                f"{table[name][row]!r}"
            )
    numbers = np.array(texts).astype(np.int64)
    if below is not None and numbers.max() >= below:
        row = int(numbers.argmax())
        raise FileFormatError(
            f"line {row + 2} of {path.name}: {name!r} must be below {below}; got "
            f"{table[name][row]!r}"
        )
    return numbers


#: What the program of WILDS calls their archives.
_ARCHIVES = ("archive.tar.gz",)
_MARKS = ("metadata.csv",)
_IWILDCAM = Layout("iwildcam", "iWildCam2020-WILDS v2.0", _MARKS, archives=_ARCHIVES)
_CAMELYON17 = Layout("camelyon17", "Camelyon17-WILDS v1.0", _MARKS, archives=_ARCHIVES)
_IWILDCAM_SPLITS = ("train", "id_val", "id_test", "test", "val")
_N_IWILDCAM_IMAGES = 203_029
_N_CAMELYON17_IMAGES = 455_954
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
    folder = _IWILDCAM.find_folder(folder)
    _IWILDCAM.require(folder, "train")
    path = folder / "metadata.csv"
    table = _read_table(path, ("split", "filename", "y", "location_remapped"))
    _check_n_rows(table, path, expected_count(_N_IWILDCAM_IMAGES, records), _IWILDCAM)
    for name in table["filename"]:
        # Such a name could lead out of the folder.
        if not name or name in {".", ".."} or "/" in name or "\\" in name:
            raise FileFormatError(f"{path.name} must name files without folders; got {name!r}")
    unknown_splits = sorted(set(table["split"]) - set(_IWILDCAM_SPLITS))
    if unknown_splits:
        raise FileFormatError(
            f"metadata.csv has the split {unknown_splits[0]!r}; it must be one of "
            f"{_IWILDCAM_SPLITS}"
        )
    labels = _parse_integers(table, "y", path)
    files = ImageFiles(
        folder,
        tuple(f"train/{name}" for name in table["filename"]),
        labels,
        _read_animal_names(folder, int(labels.max()) + 1),
        groups=_parse_integers(table, "location_remapped", path),
        crop=False,
    )
    split = np.array(table["split"])
    train, validation, test, shift, shift_validation = (
        _subset(files, split == name, name) for name in _IWILDCAM_SPLITS
    )
    shifts = {"locations": shift, "locations-validation": shift_validation}
    return ImageFileSplits(train, validation, test, shifts)


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
    folder = _CAMELYON17.find_folder(folder)
    _CAMELYON17.require(folder, "patches")
    path = folder / "metadata.csv"
    name_columns = ("patient", "node", "x_coord", "y_coord")
    table = _read_table(path, (*name_columns, "tumor", "center", "split"))
    _check_n_rows(table, path, expected_count(_N_CAMELYON17_IMAGES, records), _CAMELYON17)
    for name in name_columns:
        # Parts of file names must be numbers.
        _parse_integers(table, name, path)
    center = _parse_integers(table, "center", path, below=_CENTERS)
    split = _parse_integers(table, "split", path, below=4)
    names = []
    for patient, node, x, y in zip(*(table[name] for name in name_columns), strict=True):
        slide = f"patient_{patient}_node_{node}"
        names.append(f"patches/{slide}/patch_{slide}_x_{x}_y_{y}.png")
    labels = _parse_integers(table, "tumor", path, below=2)
    classes = ("normal", "tumor")
    files = ImageFiles(folder, tuple(names), labels, classes, groups=center, crop=False)
    is_train_center = ~np.isin(center, (_TEST_CENTER, _VALIDATION_CENTER))
    held_out = _subset(files, is_train_center & (split == 1), "id_val")
    order = as_generator(rng).permutation(held_out.n)
    n_validation = max(1, held_out.n // 10)
    return ImageFileSplits(
        train=_subset(files, is_train_center & (split == 0), "train"),
        validation=held_out.subset(np.sort(order[:n_validation])),
        test=held_out.subset(np.sort(order[n_validation:])),
        shifts={
            "hospital": _subset(files, center == _TEST_CENTER, "test"),
            "hospital-validation": _subset(files, center == _VALIDATION_CENTER, "val"),
        },
    )


def _check_n_rows(
    table: Mapping[str, list[str]], path: Path, expected: int, layout: Layout
) -> None:
    n_rows = len(table["split"])
    if n_rows != expected:
        raise FileFormatError(
            f"{path.name} must have {expected:,} rows for {layout.title}, and it has {n_rows:,} "
            f"(half extracted, or another version?); {layout.download_command}, again"
        )


def _subset(files: ImageFiles, mask: Array, name: str) -> ImageFiles:
    rows: IntArray = np.flatnonzero(mask)
    if not rows.size:
        raise FileFormatError(f"metadata.csv names no image of the part {name!r} (cut off?)")
    return files.subset(rows)


def _read_animal_names(folder: Path, count: int) -> tuple[str, ...]:
    """Read the names of the animals; numbers if categories.csv is missing or has no names."""
    path = folder / "categories.csv"
    numbers = tuple(map(str, range(count)))
    name_by_number = {}
    if path.is_file():
        frame = _read_csv(path)
        if {"y", "name"} <= set(frame.columns):
            name_by_number = dict(frame.select("y", "name").iter_rows())
    return tuple(name_by_number.get(number) or number for number in numbers)
