"""BREEDS ENTITY-13: 13 super-classes of ImageNet, ten sub-classes to train on, ten as a shift."""

import re
import tomllib
from importlib import resources
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import generator
from abstain.benchmark.data.published.image_folder import find_image_folder
from abstain.benchmark.data.published.pictures import FileParts, PictureFiles
from abstain.errors import InputError
from abstain.typing import Rng

#: Super-class, ten classes of the source domain, ten of the target domain.
ENTITY13: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = tuple(
    (name, tuple(classes["source"]), tuple(classes["target"]))
    for name, classes in tomllib.loads(
        (resources.files(__package__) / "entity13.toml").read_text(encoding="utf-8")
    ).items()
)


_INSIDE = ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train", "imagenet/train")
_WNID = re.compile(r"n\d{8}")
#: FD-Shifts draws its i.i.d. test pictures with this seed.
_SEED = 12345


def find_entity13(folder: str | Path, *, test: int = 10_000, rng: Rng = _SEED) -> FileParts:
    """Find the pictures of BREEDS ENTITY-13 in the training pictures of ImageNet.

    Parameters
    ----------
    folder : str or Path
        The ``train`` folder of ImageNet, with a folder for each class (``n01440764``), or one
        that holds it, such as ``ILSVRC`` unpacked from Kaggle.
    test : int, default=10_000
        Pictures of the source sub-classes to keep for the i.i.d. test.
    rng : int, Generator or None, default=12345
        The seed with which those are drawn.

    Returns
    -------
    FileParts
        13 super-classes. Training and i.i.d. test pictures are of the ten source sub-classes of
        each, the shift "sub-class" is the ten target sub-classes. `read` makes them small as they
        are read; all are 338,000, so pass `limit`, or read `batches`.

    Raises
    ------
    InputError
        The folder does not exist, or one of the 260 class folders is missing.
    FileFormatError
        A class folder holds no picture.

    Notes
    -----
    The 260 sub-classes are those of BREEDS with the split "rand", which FD-Shifts uses, and they
    ship here (`ENTITY13`), so the files of the BREEDS repository are not needed. The i.i.d. test
    pictures are drawn as FD-Shifts draws them (10,000 by seed 12345 from the files in their order).

    References
    ----------
    .. [1] Santurkar et al. (2021), BREEDS: benchmarks for subpopulation shift,
       https://arxiv.org/abs/2008.04859

    Examples
    --------
    >>> from abstain.benchmark.data.published import find_entity13
    >>> files = find_entity13("imagenet/train")  # doctest: +SKIP
    >>> parts = files.read(side=64, limit=20_000)  # doctest: +SKIP
    """
    where = _place(Path(folder))
    source, target = _domain(where, 1), _domain(where, 2)
    if checks.positive_int(test, "test") >= source.n:
        msg = f"`test` must leave pictures to train on; got {test:,} of {source.n:,}"
        raise InputError(msg)
    # A list, as shuffling one is what FD-Shifts does.
    order = list(range(source.n))
    generator(rng).shuffle(order)
    rows = np.array(order)
    return FileParts(
        train=source.subset(np.sort(rows[test:])),
        validation=None,
        test=source.subset(np.sort(rows[:test])),
        shifts={"sub-class": target},
    )


def _place(folder: Path) -> Path:
    if not folder.is_dir():
        msg = f"there is no folder {str(folder)!r} to read the training pictures of ImageNet from"
        raise InputError(msg)
    for found in (folder, *(folder / name for name in _INSIDE)):
        if found.is_dir() and any(_WNID.fullmatch(p.name) for p in found.iterdir() if p.is_dir()):
            return found
    msg = (
        f"{str(folder)!r} does not hold the training pictures of ImageNet: there is no class "
        "folder such as n01440764 in it; unpack ILSVRC2012_img_train.tar and the archives in it, "
        "one folder for each (https://www.image-net.org, after registration)"
    )
    raise InputError(msg)


def _domain(where: Path, column: int) -> PictureFiles:
    """Find the pictures of the source (1) or the target (2), labeled by super-class."""
    wnids = [(wnid, label) for label, row in enumerate(ENTITY13) for wnid in row[column]]
    # In the order of the folders, which is that of other readers too.
    wnids.sort()
    found = find_image_folder(where, classes=[wnid for wnid, _ in wnids])
    above = np.array([label for _, label in wnids])
    classes = tuple(row[0] for row in ENTITY13)
    return PictureFiles(where, found.names, above[found.labels], classes)
