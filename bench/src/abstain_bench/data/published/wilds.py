"""Read two data sets of WILDS: iWildCam and Camelyon17."""

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
    """Read a CSV file and return all columns as text."""
    import polars as pl

    try:
        # Conversion to numbers would change identifiers such as the patient "004".
        return pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())[:120]
        raise FileFormatError(
            f"{path.name} is no CSV file, or is cut off (half extracted?): {text}"
        ) from None


def _read_table(path: Path, columns: Sequence[str]) -> dict[str, list[str]]:
    """Read columns of a CSV file as text, and raise an error if a cell is missing."""
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
    """Convert a column to nonnegative integers, or raise FileFormatError with the line number."""
    # Some versions of the files contain integers such as 2.0.
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


#: Name of an archive that the program of WILDS downloads.
_ARCHIVES = ("archive.tar.gz",)
_MARKS = ("metadata.csv",)
_IWILDCAM = Layout("iwildcam", "iWildCam2020-WILDS v2.0", _MARKS, archives=_ARCHIVES)
_CAMELYON17 = Layout("camelyon17", "Camelyon17-WILDS v1.0", _MARKS, archives=_ARCHIVES)
_IWILDCAM_SPLITS = ("train", "id_val", "id_test", "test", "val")
_N_IWILDCAM_IMAGES = 203_029
_N_CAMELYON17_IMAGES = 455_954
#: Number of hospitals, whose codes in the files are counted from 0.
_CENTERS = 5
#: Hospital of the official test images.
_TEST_CENTER = 2
#: Hospital of the official validation images.
_VALIDATION_CENTER = 1
#: Seed with which FD-Shifts splits the i.i.d. images of Camelyon17.
_SEED = 12345


def find_iwildcam(folder: str | Path, *, records: int | None = None) -> ImageFileSplits:
    """List the images of iWildCam2020-WILDS, which contains 182 classes of camera-trap images.

    Parameters
    ----------
    folder : str or Path
        Folder ``iwildcam_v2.0`` with ``metadata.csv`` and the images in ``train``, or a folder that
        contains it.
    records : int, optional
        Number of rows in ``metadata.csv``, if it differs from the 203,029 of the official version.

    Returns
    -------
    ImageFileSplits
        The official splits. `train`, `validation` ("id_val") and the i.i.d. `test` ("id_test") come
        from the same camera traps. The shifts "locations" ("test") and "locations-validation"
        ("val") contain images from other camera traps. `groups` contains the camera trap. Images
        are stretched to squares when they are read.

    Raises
    ------
    InputError
        If the folder, ``metadata.csv`` or the folder of images does not exist.
    FileFormatError
        If ``metadata.csv`` is incomplete, lacks a column, or contains an invalid value.

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
    data_folder = _IWILDCAM.find_folder(folder)
    _IWILDCAM.require(data_folder, "train")
    path = data_folder / "metadata.csv"
    table = _read_table(path, ("split", "filename", "y", "location_remapped"))
    _check_n_rows(table, path, expected_count(_N_IWILDCAM_IMAGES, records), _IWILDCAM)
    for name in table["filename"]:
        # A name with a separator or ".." could lead out of the folder.
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
        data_folder,
        tuple(f"train/{name}" for name in table["filename"]),
        labels,
        _read_animal_names(data_folder, int(labels.max()) + 1),
        groups=_parse_integers(table, "location_remapped", path),
        crop=False,
    )
    split = np.array(table["split"])
    subsets = {name: _subset(files, split == name, name) for name in _IWILDCAM_SPLITS}
    return ImageFileSplits(
        train=subsets["train"],
        validation=subsets["id_val"],
        test=subsets["id_test"],
        shifts={"locations": subsets["test"], "locations-validation": subsets["val"]},
    )


def find_camelyon17(
    folder: str | Path, *, records: int | None = None, rng: Rng = _SEED
) -> ImageFileSplits:
    """List the images of Camelyon17-WILDS, which show tissue with and without tumors.

    Parameters
    ----------
    folder : str or Path
        Folder ``camelyon17_v1.0`` with ``metadata.csv`` and the images in ``patches``, or a folder
        that contains it.
    records : int, optional
        Number of rows in ``metadata.csv``, if it differs from the 455,954 of the official version.
    rng : int, Generator or None, default=12345
        Seed with which the i.i.d. images are split into validation and test images.

    Returns
    -------
    ImageFileSplits
        The official splits. The training images and the i.i.d. images ("id_val") come from three
        hospitals. The shift "hospital" contains the images from center 2, and "hospital-validation"
        those from center 1. The data set has no unshifted test images, so a tenth of "id_val"
        becomes `validation`, and the remaining nine tenths become `test`. `groups` contains the
        center.

    Raises
    ------
    InputError
        If the folder, ``metadata.csv`` or the folder of images does not exist.
    FileFormatError
        If ``metadata.csv`` is incomplete, lacks a column, or contains an invalid value.

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
    data_folder = _CAMELYON17.find_folder(folder)
    _CAMELYON17.require(data_folder, "patches")
    path = data_folder / "metadata.csv"
    name_columns = ("patient", "node", "x_coord", "y_coord")
    table = _read_table(path, (*name_columns, "tumor", "center", "split"))
    _check_n_rows(table, path, expected_count(_N_CAMELYON17_IMAGES, records), _CAMELYON17)
    for name in name_columns:
        # These columns become parts of file names, so they must contain numbers.
        _parse_integers(table, name, path)
    center = _parse_integers(table, "center", path, below=_CENTERS)
    split = _parse_integers(table, "split", path, below=4)
    names = []
    coordinates = zip(*(table[name] for name in name_columns), strict=True)
    for patient, node, x, y in coordinates:
        slide = f"patient_{patient}_node_{node}"
        names.append(f"patches/{slide}/patch_{slide}_x_{x}_y_{y}.png")
    labels = _parse_integers(table, "tumor", path, below=2)
    classes = ("normal", "tumor")
    files = ImageFiles(data_folder, tuple(names), labels, classes, groups=center, crop=False)
    is_train_center = ~np.isin(center, (_TEST_CENTER, _VALIDATION_CENTER))
    iid = _subset(files, is_train_center & (split == 1), "id_val")
    order = as_generator(rng).permutation(iid.n)
    n_validation = max(1, iid.n // 10)
    return ImageFileSplits(
        train=_subset(files, is_train_center & (split == 0), "train"),
        validation=iid.subset(np.sort(order[:n_validation])),
        test=iid.subset(np.sort(order[n_validation:])),
        shifts={
            "hospital": _subset(files, center == _TEST_CENTER, "test"),
            "hospital-validation": _subset(files, center == _VALIDATION_CENTER, "val"),
        },
    )


def _check_n_rows(
    table: Mapping[str, list[str]], path: Path, expected: int, layout: Layout
) -> None:
    """Raise an error if a table does not have the expected number of rows."""
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
    """Read the class names from categories.csv, and use numbers for missing names."""
    path = folder / "categories.csv"
    numbers = tuple(map(str, range(count)))
    name_by_number = {}
    if path.is_file():
        frame = _read_csv(path)
        if {"y", "name"} <= set(frame.columns):
            name_by_number = dict(frame.select("y", "name").iter_rows())
    return tuple(name_by_number.get(number) or number for number in numbers)
