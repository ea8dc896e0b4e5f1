"""Files and dataframes in, tidy results out; readers of other tools' formats."""

from abstain._foundation.names import split_name
from abstain.tables._reading import Reading
from abstain.tables.read import read_predictions
from abstain.tables.results import ResultFiles, write_results
from abstain.tables.state_files import load, save
from abstain.typing import Split

__all__ = [
    "Reading",
    "ResultFiles",
    "Split",
    "load",
    "read_predictions",
    "save",
    "split_name",
    "write_results",
]
