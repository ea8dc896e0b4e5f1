"""Read and write a folder of runs.

`abstain benchmark run` writes the folder, and reports read it. Reading requires neither torch nor
the data set.
"""

from abstain_bench.runs.store.manifest import ADDED as ADDED
from abstain_bench.runs.store.manifest import IMPORTED as IMPORTED
from abstain_bench.runs.store.manifest import JOBS as JOBS
from abstain_bench.runs.store.manifest import MANIFEST as MANIFEST
from abstain_bench.runs.store.manifest import AddedMethod as AddedMethod
from abstain_bench.runs.store.manifest import Additions as Additions
from abstain_bench.runs.store.manifest import ExposureFacts as ExposureFacts
from abstain_bench.runs.store.manifest import Store as Store
from abstain_bench.runs.store.manifest import StoredRun as StoredRun
from abstain_bench.runs.store.manifest import configured as configured
from abstain_bench.runs.store.manifest import is_manifest_unreadable as is_manifest_unreadable
from abstain_bench.runs.store.manifest import move_damaged_manifest as move_damaged_manifest
from abstain_bench.runs.store.manifest import write_manifest as write_manifest
from abstain_bench.runs.store.runs import VALIDATION as VALIDATION
from abstain_bench.runs.store.runs import Run as Run
from abstain_bench.runs.store.runs import RunScores as RunScores
from abstain_bench.runs.store.runs import ScoreFile as ScoreFile
from abstain_bench.runs.store.runs import delete_unlisted_files as delete_unlisted_files
from abstain_bench.runs.store.runs import pack_scores as pack_scores
from abstain_bench.runs.store.runs import write_scores as write_scores
