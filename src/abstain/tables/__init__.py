"""Read predictions from files and dataframes, and write results to files."""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports
from abstain._foundation.names import split_name as split_name
from abstain.typing import Split as Split

if TYPE_CHECKING:
    from abstain.tables._reading import Reading as Reading
    from abstain.tables.read import read_predictions as read_predictions
    from abstain.tables.results import ResultFiles as ResultFiles
    from abstain.tables.results import write_results as write_results
    from abstain.tables.scan import PredictionScan as PredictionScan
    from abstain.tables.scan import scan_predictions as scan_predictions
    from abstain.tables.state_files import load as load
    from abstain.tables.state_files import save as save
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        _reading=("Reading",),
        read=("read_predictions",),
        results=("ResultFiles", "write_results"),
        scan=("PredictionScan", "scan_predictions"),
        state_files=("load", "save"),
    )
    __all__ += ["Split", "split_name"]
