"""What a reader returns: predictions by split, and what was met on the way."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from abstain._foundation.names import split_name
from abstain.errors import InputError, UnknownNameError
from abstain.predictions import Predictions
from abstain.typing import Split


@dataclass(frozen=True, eq=False)
class Reading(Mapping[Split, Predictions]):
    """The predictions of a source, one record for each split; a mapping over the splits.

    Parameters
    ----------
    splits : mapping from split to Predictions
        In order of first appearance. Splits of one file share their classes.
    notes : tuple of str
        What was met and decided, in sentences: the columns taken, rows dropped, labels that
        are never predicted, the precision of the storage.
    source : str
        The name of the file, the files or the object that was read.
    warnings : tuple of str
        Those of the notes that nobody should miss: a column that sets rows apart and was not
        asked for, names that repeat, labels of one class only.

    Examples
    --------
    >>> from abstain.tables import read_predictions
    >>> columns = {"label": [0, 1, 1], "prediction": [0, 1, 0], "confidence": [0.9, 0.8, 0.6]}
    >>> reading = read_predictions(columns)
    >>> list(reading), reading.only().n
    ([()], 3)
    """

    splits: Mapping[Split, Predictions]
    notes: tuple[str, ...] = ()
    source: str = field(default="")
    warnings: tuple[str, ...] = ()

    def __getitem__(self, split: Split) -> Predictions:
        """Return the predictions of a split."""
        try:
            return self.splits[split]
        except KeyError:
            known = "; ".join(split_name(s) for s in list(self.splits)[:12])
            msg = f"there is no split {split!r} in {self.source}; it has: {known}"
            raise UnknownNameError(msg) from None

    def __iter__(self) -> Iterator[Split]:
        """Iterate over the splits in order of first appearance."""
        return iter(self.splits)

    def __len__(self) -> int:
        """Count the splits."""
        return len(self.splits)

    def only(self) -> Predictions:
        """Return the predictions of a source with a single split.

        Returns
        -------
        Predictions
            The record.

        Raises
        ------
        InputError
            There are several splits.
        """
        if len(self.splits) != 1:
            names = "; ".join(split_name(s) for s in list(self.splits)[:8])
            msg = f"{self.source} has {len(self.splits)} splits ({names}); choose one by its key"
            raise InputError(msg)
        return next(iter(self.splits.values()))
