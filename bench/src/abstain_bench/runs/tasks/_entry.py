"""`Task` and `Parts`: what an entry of the catalogue consists of, and what loading one shares."""

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

#: Returns images, and reads them only then.
Load = Callable[[], Images]


@dataclass(frozen=True, eq=False)
class Parts:
    """The images of a task, each part read when it is first asked for.

    Attributes
    ----------
    learned : callable
        Returns the images to learn from, once: `train` keeps them.
    chosen : callable
        Returns the images to choose on, as `validation` does.
    exposures : tuple of Exposure
        What is tested, i.i.d. first; nothing is ever chosen on it.
    notes : tuple of str
        What people must know: exposures that are left out since their files are not there, and
        what stands in for them.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data import Images
    >>> from abstain_bench.runs.tasks import Parts
    >>> some = Images(np.zeros((3, 1, 8, 8), np.uint8), np.array([0, 1, 1]), ("no", "yes"))
    >>> Parts(lambda: some, lambda: some.subset([0]), ()).validation.n
    1
    """

    learned: Load
    chosen: Load
    exposures: tuple[Exposure, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def train(self) -> Images:
        """What is learned from."""
        return self.learned()

    @cached_property
    def validation(self) -> Images:
        """What choices are made on, and fitted scores fitted: i.i.d."""
        return self.chosen()


@dataclass(frozen=True)
class Task:
    """What the catalogue knows of a task.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    meaning : str
        One plain sentence.
    source : str
        Where the images come from.
    load : callable
        From the folder of the files (None where none is needed) to the parts; where there are
        files, also from how much of them is taken.
    model : str
        In `abstain_bench.networks.MODELS`.
    recipe : Recipe
        How every method is trained.
    variation : mapping
        Options of the variation of `abstain_bench.runs.training`, with its name; empty for none.
    needs_folder : bool
        Whether the user must have the files.
    dropout : float
        The rate to try beside none.
    rewards : tuple of float
        Those of DeepGamblers to try.
    branch : tuple of int
        Epochs of ConfidNet's branch on the trained classifier, and of its fine-tuning; 0 for none.
    """

    name: str
    title: str
    meaning: str
    source: str
    load: Callable[..., Parts]
    model: str
    recipe: Recipe
    variation: Mapping[str, Any] = field(default_factory=dict)
    needs_folder: bool = False
    dropout: float = 0.3
    rewards: tuple[float, ...] = (2.2, 3.0, 6.0, 10.0)
    branch: tuple[int, int] = (200, 20)

    def parts(self, folder: Path | None, sizes: "Sizes | None" = None) -> Parts:
        """Return the images in a folder, as much of them as was asked for."""
        return self.load(folder) if sizes is None else self.load(folder, sizes)


#: Every task by name.
TASKS: Catalogue[Task] = Catalogue("task")


def corrupted(load: Load) -> Iterator[Exposure]:
    """Return the exposures of our own corruption shift on i.i.d. images."""
    for name in CORRUPTIONS:
        for severity in range(1, SEVERITIES + 1):
            yield Exposure(f"corruption-{name}", "corruption", load, name, severity)


def given(images: Images) -> Load:
    """Return what returns these images."""
    return lambda: images


def in_memory(
    train: Images, validation: Images, tested: Images, *others: Exposure, notes: Sequence[str] = ()
) -> Parts:
    """Return parts whose images are read already, the i.i.d. ones exposed first."""
    exposures = (Exposure("iid", "iid", given(tested)), *others)
    return Parts(given(train), given(validation), exposures, tuple(notes))


@dataclass(frozen=True)
class Sizes:
    """How much of a published data set is taken, and how large its images are.

    Attributes
    ----------
    records : mapping
        By data set: what its reader takes as `records`; none for official versions.
    validation : int
        Images set aside of the i.i.d. test images to choose on.
    learned, tested : int
        The most images to learn from, and of an exposure, of data sets that are files; all are
        held in memory. 0 for all there are.
    side : int
        Height and width of images that are files.
    chosen : {"official", "first"}
        What choices are made on where the data set has a part for it: that part, or the first
        i.i.d. test images, as FD-Shifts does.
    corrupted : {"tested", "all", "tenth"}
        Which test images the official corruptions are taken of: those that are tested, all of
        them, or a tenth of all: the first 100 of each 1,000 of CIFAR-10, and the first 10 of each
        100 of CIFAR-100.
    new_side : int
        Height and width of images of new classes that are files; 0 for those that are learned.

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
        """Return what a configuration says of it, as plain values."""
        return {k: v for k, v in asdict(self).items() if k != "records"}


OFFICIAL: Final = Sizes()


def left_out(source: DownloadSource, folder: Path, what: str) -> str:
    """Say that something is left out since a data set is not there."""
    missing = f"{source.places[0]}/{source.mark}".replace("*", "")
    return (
        f"{what}: {missing} is not in {str(folder)!r}; `abstain data fetch {source.name} --folder "
        f"{shlex.quote(str(folder))}` brings {source.title}"
    )


def required(name: str, folder: Path | None, read: Callable[[Path], ReadT]) -> ReadT:
    """Read what a task cannot do without; say how to get it where it is not there."""
    title, files = SOURCES[name].title, SOURCES[name].files
    fetched = f"`abstain data fetch {name} --folder DIR` brings them"
    how = fetched if files else SOURCES[name].note.rstrip(".")
    if folder is None:
        raise MissingInputError(
            f"the task needs the folder that the files of {title} are in (--data); {how}"
        )
    try:
        return read(folder)
    except InputError as error:
        # What its reader says of the folder, but not what it says of an argument.
        if type(error) is not InputError:
            raise
        known = "abstain data fetch" if files else SOURCES[name].page
        raise MissingInputError(str(error) if known in str(error) else f"{error}; {how}") from None


def of_no_class(
    images: Images, classes: tuple[str, ...], shape: tuple[int, int, int] | None
) -> Images:
    """Return the images of another data set, of which none is of a known class.

    Refused where they have another shape; None for any.
    """
    if shape is not None and images.shape != shape:
        raise InputError(f"pictures of new classes must have the shape {shape}; got {images.shape}")
    return Images(images.pixels, np.full(images.n, -1), classes, images.places)


def divided(images: Images, count: int) -> tuple[Images, Images]:
    """Set the first test images aside to choose on, as FD-Shifts does."""
    if not 0 < count < images.n:
        raise InputError(f"{count:,} images to choose on must leave some of {images.n:,} to test")
    return images.subset(np.arange(count)), images.subset(np.arange(count, images.n))
