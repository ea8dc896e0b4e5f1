"""Files and dataframes in, tidy results out; readers of other tools' formats."""

from abstain._foundation.names import split_name as split_name
from abstain.tables._reading import Reading as Reading
from abstain.tables.read import read_predictions as read_predictions
from abstain.tables.results import ResultFiles as ResultFiles
from abstain.tables.results import write_results as write_results
from abstain.tables.state_files import load as load
from abstain.tables.state_files import save as save
from abstain.typing import Split as Split

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
