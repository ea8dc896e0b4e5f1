"""`DataSet`: what the catalogue knows of one, and how it is loaded and split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from abstain.errors import InputError, MissingInputError
from abstain.typing import Rng
from abstain_bench.data.downloads import SOURCES, DownloadSource
from abstain_bench.data.images import Images, Splits, split

#: What images of another data set are to a classifier.
NewClass = Literal["new-class", "far-new-class"]

#: Training and test images; the second is None where a source has no official split.
Loaded = tuple[Images, Images | None]


@dataclass(frozen=True)
class DataSet:
    """What the catalogue knows of a data set.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    meaning : str
        One plain sentence.
    source : str
        Where it comes from.
    load : callable
        From the folder and the images of a file (None for those of the official version) to
        training and test images.
    needs_folder : bool
        Whether the user must have the files.
    fetched : str
        The name in `abstain_bench.data.fetching.SOURCES`, where it is another.
    new : mapping from str to str
        Data sets whose images are of new classes to this one: "new-class" where they look alike
        and differ in meaning only, else "far-new-class".
    tested : callable, optional
        Reads the test images alone, where that spares much: from folder, images of a file, and
        height and width.
    corrupted : callable, optional
        Reads the official corruptions of the test images, which are fetched under the name of
        the data set with "-c": from folder, corruption, severity and ``records``.
    """

    name: str
    title: str
    meaning: str
    source: str
    load: Callable[[Path, int | None], Loaded]
    needs_folder: bool = False
    fetched: str = ""
    new: Mapping[str, NewClass] = field(default_factory=dict)
    tested: Callable[[Path, int | None, int], Images] | None = None
    corrupted: Callable[..., Images] | None = None

    @property
    def download(self) -> DownloadSource:
        """Where its files come from, for data sets that need them."""
        return SOURCES[self.fetched or self.name]

    def official(self, folder: Path, records: int | None = None) -> tuple[Images, Images]:
        """Return the training and test images of the authors, who must have split it."""
        train, test = self.load(folder, records)
        if test is None:
            raise InputError(f"{self.title} has no official test set")
        return train, test

    def outliers(self, folder: Path, records: int | None, side: int) -> Images:
        """Return the test images, to be those of new classes for another data set."""
        if self.tested is None:
            return self.official(folder, records)[1]
        return self.tested(folder, records, side)

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
        """Load it and draw its parts.

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
        whole, official = self.load(Path(folder or ""), records)
        if official is not None and test is not None:
            raise InputError(f"{self.title} has an official test set; leave `test` out, got {test}")
        if official is None and test is None:
            raise MissingInputError(
                f"{self.title} has no official test set: `test` must say how many images to keep "
                "for it"
            )
        wanted = ([] if test is None else [test]) + ([validation] if validation else [])
        parts = list(split(whole, train or whole.n - sum(wanted), *wanted, rng=rng))
        learned = parts.pop(0)
        tested = official if official is not None else parts.pop(0)
        return Splits(learned, parts.pop(0) if parts else None, tested)
