"""`DataSet`, an entry of the catalogue of data sets, which loads and splits the images."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from abstain.errors import InputError, MissingInputError
from abstain.typing import Rng
from abstain_bench.data.downloads import SOURCES, DownloadSource
from abstain_bench.data.images import Images, Splits, split

#: Kind of the shift from a data set to another data set with new classes.
NewClass = Literal["new-class", "far-new-class"]

#: Training images and test images. The test images are None if there is no official split.
Loaded = tuple[Images, Images | None]


@dataclass(frozen=True)
class DataSet:
    """An entry of the catalogue of data sets.

    Attributes
    ----------
    name : str
        Unique name of the data set.
    title : str
        Title in messages and tables.
    meaning : str
        Description in one sentence.
    source : str
        Source of the data.
    load : callable
        Function that returns training and test images. The function receives the folder and the
        number of images in a file. If this number is None, the official number is expected.
    needs_folder : bool
        Whether the user must provide files.
    download_name : str
        Name in `abstain_bench.data.fetching.SOURCES`, if it differs from `name`.
    new : mapping from str to str
        Kind of the shift to each data set with new classes. The kind is "new-class" if the images
        look similar to the known classes, and "far-new-class" if they look different.
    load_test : callable, optional
        Function that reads only the test images, if reading all images takes much longer. The
        function receives the folder, the number of images in a file, and the side in pixels.
    load_corrupted : callable, optional
        Function that reads the official corruptions of the test images. The function receives the
        folder, the corruption, the severity and ``records``. The corrupted version is downloaded
        under the name of the data set with the suffix "-c".
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
        """The entry of `SOURCES` for a data set that is read from files."""
        return SOURCES[self.download_name or self.name]

    def official_splits(self, folder: Path, records: int | None = None) -> tuple[Images, Images]:
        """Return the official training and test images, or raise InputError without test images."""
        train, test = self.load(folder, records)
        if test is None:
            raise InputError(f"{self.title} has no official test set")
        return train, test

    def new_class_images(self, folder: Path, records: int | None, side: int) -> Images:
        """Return the test images, whose classes are unknown to a classifier of another data set."""
        if self.load_test is not None:
            return self.load_test(folder, records, side)
        _, test = self.official_splits(folder, records)
        return test

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
        """Load the data set and split it into training, validation and test images.

        Parameters
        ----------
        folder : str or Path, optional
            Folder of the files, for data sets that are read from files.
        train : int, optional
            Number of training images. The default is all images that remain.
        validation : int, default=0
            Number of validation images, which may be 0.
        test : int, optional
            Number of test images, if the data set has no official test set. If there is an official
            test set, all its images are used.
        records : int, optional
            Number of images in a file, if it differs from the official version.
        rng : int, Generator or None, default=0
            Seed of the random split.

        Returns
        -------
        Splits
            Disjoint training, validation and test images.
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
        n_other = (test or 0) + validation
        sizes = {"train": train or images.n - n_other}
        if test is not None:
            sizes["test"] = test
        if validation:
            sizes["validation"] = validation
        subsets = split(images, *sizes.values(), rng=rng)
        subset_by_name = dict(zip(sizes, subsets, strict=True))
        if official_test is None:
            official_test = subset_by_name["test"]
        return Splits(subset_by_name["train"], subset_by_name.get("validation"), official_test)
