"""`DataSet`: an entry of the catalogue of data sets, with its loading and splitting."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from abstain.errors import InputError, MissingInputError
from abstain.typing import Rng
from abstain_bench.data.downloads import SOURCES, DownloadSource
from abstain_bench.data.images import Images, Splits, split

#: Relation of the images of another data set to a classifier.
NewClass = Literal["new-class", "far-new-class"]

#: Training and test images; the second is None for sources without an official split.
Loaded = tuple[Images, Images | None]


@dataclass(frozen=True)
class DataSet:
    """An entry of the catalogue of data sets.

    Attributes
    ----------
    name : str
        Name for scripts.
    title : str
        Name for people.
    meaning : str
        Description in one sentence.
    source : str
        Source of the data.
    load : callable
        Function from the folder and the number of images in a file (None for the official version)
        to training and test images.
    needs_folder : bool
        Whether the user must provide files.
    download_name : str
        Name in `abstain_bench.data.fetching.SOURCES`, if it differs.
    new : mapping from str to str
        Data sets whose images have new classes: "new-class" if they look alike and differ only in
        meaning, otherwise "far-new-class".
    load_test : callable, optional
        Function that reads the test images only, if this is much cheaper: from folder, number of
        images in a file, and side.
    load_corrupted : callable, optional
        Function that reads the official corruptions of the test images, whose download has the name
        of the data set with "-c": from folder, corruption, severity and ``records``.
    """

    name: str
    title: str
    meaning: str
    source: str
    load: Callable[[Path, int | None], Loaded]
    needs_folder: bool = False
    download_name: str = ""
    new: Mapping[str, NewClass] = field(default_factory=dict)
    load_test: Callable[[Path, int | None, int], Images] | None = None
    load_corrupted: Callable[..., Images] | None = None

    @property
    def download(self) -> DownloadSource:
        """The source of its files, for data sets that need files."""
        return SOURCES[self.download_name or self.name]

    def official_splits(self, folder: Path, records: int | None = None) -> tuple[Images, Images]:
        """Return the official training and test images; raise InputError without such a split."""
        train, test = self.load(folder, records)
        if test is None:
            raise InputError(f"{self.title} has no official test set")
        return train, test

    def new_class_images(self, folder: Path, records: int | None, side: int) -> Images:
        """Return the test images, as images of new classes for another data set."""
        if self.load_test is None:
            return self.official_splits(folder, records)[1]
        return self.load_test(folder, records, side)

    def splits(
        self,
        *,
        folder: str | Path | None = None,
        train: int | None = None,
        validation: int = 0,
        test: int | None = None,
        records: int | None = None,
        rng: Rng = 0,
    ) -> Splits:
        """Load the data set and split it.

        Parameters
        ----------
        folder : str or Path, optional
            Where the files are, for data sets that need them.
        train : int, optional
            Images to learn from; by default all that are left.
        validation : int, default=0
            Images to choose on; 0 for none.
        test : int, optional
            Images to test on, where the source has no official split; there all are taken.
        records : int, optional
            Images in a file, where they are not those of the official version.
        rng : int, Generator or None, default=0
            The seed of the drawing.

        Returns
        -------
        Splits
            Parts without a common image.
        """
        if self.needs_folder and folder is None:
            raise MissingInputError(
                f"the data set {self.name!r} needs the folder that its files are in (--folder)"
            )
        images, official_test = self.load(Path(folder or ""), records)
        if official_test is not None and test is not None:
            raise InputError(f"{self.title} has an official test set; leave `test` out, got {test}")
        if official_test is None and test is None:
            raise MissingInputError(
                f"{self.title} has no official test set: set `test` to its number of images"
            )
        n_test, n_validation = test or 0, validation
        n_train = train or images.n - n_test - n_validation
        sizes = [n_train, *([] if test is None else [test]), *([validation] if validation else [])]
        splits = list(split(images, *sizes, rng=rng))
        train_images = splits.pop(0)
        test_images = official_test if official_test is not None else splits.pop(0)
        return Splits(train_images, splits.pop(0) if splits else None, test_images)
