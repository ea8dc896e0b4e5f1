"""CIFAR-10-C and CIFAR-100-C: the test pictures of CIFAR under 19 corruptions at 5 severities."""

from pathlib import Path
from tokenize import TokenError

import numpy as np

from abstain._foundation import checks
from abstain.benchmark.data.images import Images
from abstain.benchmark.data.published.places import Layout, needed, place
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array

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
