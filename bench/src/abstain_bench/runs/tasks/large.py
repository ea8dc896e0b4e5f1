"""Define tasks that read image files: BREEDS, WILDS, or any folder of images.

Images are held in memory, so by default they are resized to 64 x 64 pixels, which is smaller than
in the papers. The default limits are 50,000 training images and 10,000 images per exposure.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from abstain.errors import InputError, MissingInputError
from abstain_bench.data import Exposure, Images
from abstain_bench.data.published import (
    ImageFiles,
    ImageFileSplits,
    find_camelyon17,
    find_entity13,
    find_image_folder,
    find_iwildcam,
)
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.tasks._entry import (
    DEFAULT_SIZES,
    Load,
    Sizes,
    Task,
    TaskImages,
    corruption_exposures,
    read_required,
)

#: Number of images per corruption and severity.
_N_CORRUPTED: Final = 1000
#: Pattern of the names of shifts and new classes, which become part of file names.
_SHIFT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def image_loader(files: ImageFiles, limit: int, sizes: Sizes) -> Load:
    """Return a function that reads at most `limit` images, or all images if `limit` is 0."""
    return partial(files.sample(limit or None).read, side=sizes.side)


def validation_files(files: ImageFileSplits) -> ImageFiles:
    """Return the validation images of a data set, or raise InputError if there are none."""
    if files.validation is None:
        raise InputError("a task must have validation images that are not test images")
    return files.validation


def validation_and_test_files(
    files: ImageFileSplits, sizes: Sizes, *, at_random: bool = False
) -> tuple[ImageFiles, ...]:
    """Return the validation images and the unshifted test images.

    If `sizes.chosen` is "official", the official sets are returned. Otherwise, the validation
    images are the first of the test images. If `at_random` is True, both sets are sampled from the
    union of the official sets, as in FD-Shifts.
    """
    if sizes.chosen == "official":
        return validation_files(files), files.test
    available = validation_files(files).concatenate(files.test) if at_random else files.test
    return _split_files(available, sizes.validation, at_random=at_random)


def images_from_files(
    sizes: Sizes,
    train: ImageFiles,
    validation: ImageFiles,
    tested: ImageFiles,
    *others: Exposure,
) -> TaskImages:
    """Create task images from image files, with unshifted test images `tested`."""
    exposures = (Exposure("iid", "iid", image_loader(tested, sizes.tested, sizes)), *others)
    load_train = image_loader(train, sizes.learned, sizes)
    load_validation = image_loader(validation, sizes.validation, sizes)
    return TaskImages(load_train, load_validation, exposures)


def _load_entity13(folder: Path | None, sizes: Sizes = DEFAULT_SIZES) -> TaskImages:
    count = sizes.tested or DEFAULT_SIZES.tested
    files = read_required("imagenet", folder, lambda path: find_entity13(path, test=count))
    validation, tested = _split_files(files.test, sizes.validation)
    shifted = image_loader(files.shifts["sub-class"], sizes.tested, sizes)
    exposure = Exposure("unseen-sub-classes", "sub-class", shifted)
    return images_from_files(sizes, files.train, validation, tested, exposure)


def _load_wilds(
    name: str, shift: str, folder: Path | None, sizes: Sizes = DEFAULT_SIZES
) -> TaskImages:
    records = sizes.records.get(name)
    finder = find_iwildcam if name == "iwildcam" else find_camelyon17
    files = read_required(name, folder, lambda path: finder(path, records=records))
    shifted = image_loader(files.shifts[shift], sizes.tested, sizes)
    exposure = Exposure(f"other-{shift}", "sub-class", shifted)
    validation, tested = validation_and_test_files(files, sizes, at_random=name == "camelyon17")
    return images_from_files(sizes, files.train, validation, tested, exposure)


def _load_image_folder(folder: Path | None, sizes: Sizes = DEFAULT_SIZES) -> TaskImages:
    """Return the images in the subfolders train, test, shift-NAME and new-NAME of a folder."""
    if folder is None or not (folder / "train").is_dir() or not (folder / "test").is_dir():
        problem = "no folder was given" if folder is None else f"{str(folder)!r} lacks one of them"
        raise MissingInputError(
            "the task 'imagenet-folder' needs a folder (--data) with the folders 'train' and "
            f"'test', in each of them a folder of images for each class; {problem}"
        )
    train_files = find_image_folder(folder / "train")
    test = find_image_folder(folder / "test", classes=train_files.classes)
    # At most a tenth of the training images become validation images.
    n_validation = min(sizes.validation, max(1, train_files.n // 10))
    train, validation = _split_files(train_files, train_files.n - n_validation)
    exposures = list(corruption_exposures(image_loader(test, _N_CORRUPTED, sizes)))
    for name, path in _folders_with_prefix(folder, "shift-"):
        load = image_loader(_find_shifted_files(path, train_files), sizes.tested, sizes)
        exposures.append(Exposure(name, "sub-class", load))
    for name, path in _folders_with_prefix(folder, "new-"):
        load = partial(_read_new_classes, path, train_files, sizes)
        exposures.append(Exposure(name, "new-class", load))
    return images_from_files(sizes, train, validation, test, *exposures)


def _split_files(
    files: ImageFiles, count: int, *, at_random: bool = True
) -> tuple[ImageFiles, ImageFiles]:
    """Split image files into two sets; the first is a random sample or the first files."""
    if not 0 < count < files.n:
        raise InputError(f"{count:,} images must leave some of {files.n:,}")
    order = np.random.default_rng(0).permutation(files.n) if at_random else np.arange(files.n)
    return files.subset(np.sort(order[:count])), files.subset(np.sort(order[count:]))


def _folders_with_prefix(folder: Path, prefix: str) -> list[tuple[str, Path]]:
    """Return the name, without the prefix, and the path of each subfolder with this prefix."""
    folders = []
    for path in sorted(folder.glob(f"{prefix}*")):
        if not path.is_dir():
            continue
        name = path.name.removeprefix(prefix)
        if not _SHIFT_NAME.fullmatch(name) or name == "iid":
            raise InputError(
                f"the folder {path.name!r} must be named {prefix}NAME with up to 40 letters, "
                "digits, dots, hyphens and underscores, and not 'iid'; rename it"
            )
        folders.append((name, path))
    return folders


def _find_shifted_files(path: Path, train: ImageFiles) -> ImageFiles:
    """List shifted images of known classes, some of which may be missing."""
    files = find_image_folder(path)
    code_by_class = {name: code for code, name in enumerate(train.classes)}
    unknown = [name for name in files.classes if name not in code_by_class]
    if unknown:
        raise InputError(
            f"{str(path)!r} has the class {unknown[0]!r}, which 'train' does not have; put images "
            "of new classes into a folder named new-NAME"
        )
    labels = np.array([code_by_class[name] for name in files.classes])[files.labels]
    return replace(files, labels=labels, classes=train.classes)


def _read_new_classes(path: Path, train: ImageFiles, sizes: Sizes) -> Images:
    """Read images of new classes from a folder."""
    files = find_image_folder(path)
    common = sorted(set(files.classes) & set(train.classes))
    if common:
        raise InputError(
            f"{str(path)!r} has the class {common[0]!r}, which is not new: 'train' has it too"
        )
    images = image_loader(files, sizes.tested, sizes)()
    return Images(images.pixels, np.full(images.n, -1), train.classes, images.source_indices)


# The configurations of FD-Shifts define the numbers of epochs, learning rates and batch sizes.
_ENTITY13: Final = Recipe(
    epochs=300, learning_rate=0.1, batch_size=128, weight_decay=1e-4, schedule="cosine"
)
_IWILDCAM: Final = Recipe(
    epochs=12, learning_rate=1e-3, batch_size=16, weight_decay=0.0, schedule="cosine"
)
_CAMELYON17: Final = Recipe(
    epochs=5, learning_rate=0.01, batch_size=32, weight_decay=0.01, schedule="cosine"
)
_CROP_FLIP: Final = {"name": "crop-flip", "padding": 8}

resnet_task = partial(
    Task, model="resnet50", needs_folder=True, dropout=0.1, rewards=(2.2, 3.0, 6.0, 10.0, 15.0)
)
iwildcam_task = partial(resnet_task, recipe=_IWILDCAM, branch=(5, 3))

ENTRIES: Final = (
    resnet_task(
        "entity13",
        "BREEDS ENTITY-13",
        "13 super-classes of ImageNet, 64 x 64; other sub-classes of them as a shift.",
        "Santurkar et al. 2021; splits as in FD-Shifts",
        _load_entity13,
        recipe=_ENTITY13,
        variation=_CROP_FLIP,
    ),
    iwildcam_task(
        "iwildcam",
        "iWildCam (WILDS)",
        "182 animals at camera traps, 64 x 64; other camera traps as a shift.",
        "Beery et al. 2020; WILDS, Koh et al. 2021",
        partial(_load_wilds, "iwildcam", "locations"),
    ),
    resnet_task(
        "camelyon17",
        "Camelyon17 (WILDS)",
        "Tumor or not, in tissue of three hospitals, 64 x 64; another hospital as a shift.",
        "Bandi et al. 2018; WILDS, Koh et al. 2021",
        partial(_load_wilds, "camelyon17", "hospital"),
        recipe=_CAMELYON17,
        rewards=(2.2, 3.0, 6.0, 10.0),
        branch=(3, 1),
    ),
    resnet_task(
        "imagenet-folder",
        "A folder of images",
        "Any images in train/CLASS and test/CLASS, 64 x 64, with shift-NAME and new-NAME beside.",
        "yours",
        _load_image_folder,
        recipe=replace(_ENTITY13, epochs=90),
        variation=_CROP_FLIP,
        branch=(60, 6),
    ),
)
