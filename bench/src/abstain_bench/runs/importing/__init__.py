"""Export network outputs, and import confidence scores and runs."""

from abstain_bench.runs.importing.added_scores import AddedScores as AddedScores
from abstain_bench.runs.importing.added_scores import add_scores as add_scores
from abstain_bench.runs.importing.added_scores import remove_scores as remove_scores
from abstain_bench.runs.importing.imported_run import ImportedRun as ImportedRun
from abstain_bench.runs.importing.imported_run import import_fd_shifts as import_fd_shifts
from abstain_bench.runs.importing.rows import Exported as Exported
from abstain_bench.runs.importing.rows import export as export
from abstain_bench.runs.store import AddedMethod as AddedMethod
