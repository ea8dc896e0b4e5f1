"""`Task` and `TaskImages` for the catalogue of tasks, and functions that load images."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import numpy as np

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.records import between, check_unconverted
from abstain.errors import InputError, MissingInputError
from abstain_bench.data import Exposure, Images
from abstain_bench.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain_bench.data.downloads import SOURCES, DownloadSource
from abstain_bench.runs.recipe import Recipe

ReadT = TypeVar("ReadT")

#: Function that reads and returns images.
Load = Callable[[], Images]


@dataclass(frozen=True, eq=False)
class TaskImages:
    """The images of a task. Training and validation images are read on first access.

    Attributes
    ----------
    load_train, load_validation : callable
        Functions that read the training images and the validation images.
    exposures : tuple of Exposure
        Test data, which do not affect the selection. The i.i.d. exposure is the first.
    notes : tuple of str
        Remarks on exposures that are left out or replaced, because their files are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data import Images
    >>> from abstain_bench.runs.tasks import TaskImages
    >>> images = Images(np.zeros((3, 1, 8, 8), np.uint8), np.array([0, 1, 1]), ("no", "yes"))
    >>> TaskImages(lambda: images, lambda: images.subset([0]), ()).validation.n
    1
    """

    load_train: Load
    load_validation: Load
    exposures: tuple[Exposure, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def train(self) -> Images:
        """The training images."""
        return self.load_train()

    @cached_property
    def validation(self) -> Images:
        """The i.i.d. images that select settings and that scores are fitted on."""
        return self.load_validation()


@dataclass(frozen=True)
class Task:
    """A task in the catalogue.

    Attributes
    ----------
    name : str
        Unique name of the task.
    title : str
        Title in reports.
    meaning : str
        Description in one sentence.
    source : str
        Source of the images.
    load : callable
        Function that returns the images. The function receives the folder of the files, or None if
        the task needs no files. If the task needs files, the function also accepts `Sizes` as a
        second argument.
    model : str
        Name in `abstain_bench.networks.MODELS`.
    recipe : Recipe
        Recipe for all training objectives.
    variation : mapping
        Name and options of a variation in `abstain_bench.runs.training`. If empty, the images are
        not varied.
    needs_folder : bool
        Whether the user must provide files.
    dropout : float
        Dropout probability that is tried in addition to 0.
    rewards : tuple of float
        Rewards of DeepGamblers to try.
    branch : tuple of int
        Number of epochs of the confidence branch of ConfidNet on the trained classifier, and number
        of epochs of its fine-tuning. Both may be 0.
    """

    name: str
    title: str
    meaning: str
    source: str
    load: Callable[..., TaskImages]
    model: str
    recipe: Recipe
    variation: Mapping[str, Any] = field(default_factory=dict)
    needs_folder: bool = False
    dropout: float = 0.3
    rewards: tuple[float, ...] = (2.2, 3.0, 6.0, 10.0)
    branch: tuple[int, int] = (200, 20)

    def load_images(self, folder: Path | None, sizes: "Sizes | None" = None) -> TaskImages:
        """Load the images from a folder, in the number and size that `sizes` defines."""
        return self.load(folder) if sizes is None else self.load(folder, sizes)


#: All tasks by name.
TASKS: Catalogue[Task] = Catalogue("task")


def corruption_exposures(load: Load) -> Iterator[Exposure]:
    """Yield an exposure for each corruption and severity, computed from the loaded images."""
    for name in CORRUPTIONS:
        for severity in range(1, SEVERITIES + 1):
            yield Exposure(f"corruption-{name}", "corruption", load, name, severity)


def constant_loader(images: Images) -> Load:
    """Return a function that returns the given images."""
    return lambda: images


def images_in_memory(
    train: Images, validation: Images, tested: Images, *others: Exposure, notes: Sequence[str] = ()
) -> TaskImages:
    """Create task images from images in memory, with unshifted test images `tested`."""
    exposures = (Exposure("iid", "iid", constant_loader(tested)), *others)
    return TaskImages(constant_loader(train), constant_loader(validation), exposures, tuple(notes))


@dataclass(frozen=True)
class Sizes:
    """Number and size of the images that are read from a published data set.

    The fields are the keys of the table ``[data]`` in configuration files.

    Attributes
    ----------
    records : mapping
        Argument `records` of the reader of each data set. If empty, the official number is
        expected.
    validation : int
        Number of i.i.d. test images that become validation images.
    learned, tested : int
        Maximum number of training images, and maximum number of images per exposure, for data sets
        with image files. The value 0 means all images.
    side : int
        Height and width of images from files.
    chosen : {"official", "first"}
        Source of the validation images if the data set has an official validation set. "official"
        uses this set. "first" uses the first i.i.d. test images, as in FD-Shifts.
    corrupted : {"tested", "all", "tenth"}
        Test images whose official corruptions are used. "tested" uses the images of the i.i.d.
        exposure, and "all" uses all test images. "tenth" uses the first 100 of each 1,000 images
        for CIFAR-10 and the first 10 of each 100 images for CIFAR-100.
    new_side : int
        Height and width of images of new classes from files. The value 0 uses the side of the
        training images.

    Examples
    --------
    >>> from abstain_bench.runs.tasks import Sizes
    >>> Sizes(learned=0, corrupted="all").to_dict()["corrupted"]
    'all'
    """

    records: Mapping[str, int] = field(default_factory=dict)
    validation: Annotated[int, between(1, 10**9)] = 1000
    learned: Annotated[int, between(0, 10**9)] = 50_000
    tested: Annotated[int, between(0, 10**9)] = 10_000
    side: Annotated[int, between(8, 4096)] = 64
    chosen: Literal["official", "first"] = "official"
    corrupted: Literal["tested", "all", "tenth"] = "tested"
    new_side: Annotated[int, between(0, 4096)] = 0

    def __post_init__(self) -> None:
        check_unconverted(self, lambda name: f"data.{name}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for a configuration."""
        return {name: field for name, field in asdict(self).items() if name != "records"}


DEFAULT_SIZES: Final = Sizes()


def missing_data_note(source: DownloadSource, folder: Path, consequence: str) -> str:
    """Return a note that states the consequence of a missing data set and the download command."""
    missing = f"{source.places[0]}/{source.mark}".replace("*", "")
    return (
        f"{consequence}: {missing} is not in {str(folder)!r}; `abstain data fetch {source.name} "
        "--folder "
        f"{shlex.quote(str(folder))}` brings {source.title}"
    )


def read_required(name: str, folder: Path | None, read: Callable[[Path], ReadT]) -> ReadT:
    """Read a data set; if files are missing, the error contains the download command."""
    source = SOURCES[name]
    download_command = f"`abstain data fetch {name} --folder DIR` downloads them"
    remedy = download_command if source.files else source.note.rstrip(".")
    if folder is None:
        raise MissingInputError(
            f"the task needs the folder with the files of {source.title} (--data); {remedy}"
        )
    try:
        return read(folder)
    except InputError as error:
        # A subclass of InputError has another cause than missing files.
        if type(error) is not InputError:
            raise
        hint = "abstain data fetch" if source.files else source.page
        message = str(error) if hint in str(error) else f"{error}; {remedy}"
        raise MissingInputError(message) from None


def as_unknown_class(
    images: Images, classes: tuple[str, ...], shape: tuple[int, int, int] | None
) -> Images:
    """Return images of another data set, labeled as unknown classes.

    InputError is raised if the images have another shape.
    """
    if shape is not None and images.shape != shape:
        raise InputError(f"pictures of new classes must have the shape {shape}; got {images.shape}")
    return Images(images.pixels, np.full(images.n, -1), classes, images.source_indices)


def split_first(images: Images, count: int) -> tuple[Images, Images]:
    """Use the first `count` test images for validation and the others for testing."""
    if not 0 < count < images.n:
        raise InputError(
            f"{count:,} validation images must leave some of {images.n:,} for the test"
        )
    return images.subset(np.arange(count)), images.subset(np.arange(count, images.n))
