"""A folder of runs: what `abstain benchmark run` leaves, and what reports read back.

Nothing here needs torch, or the data set.
"""

from abstain_bench.runs.store.additions import ADDED as ADDED
from abstain_bench.runs.store.additions import AddedFacts as AddedFacts
from abstain_bench.runs.store.additions import Additions as Additions
from abstain_bench.runs.store.manifest import IMPORTED as IMPORTED
from abstain_bench.runs.store.manifest import JOBS as JOBS
from abstain_bench.runs.store.manifest import MANIFEST as MANIFEST
from abstain_bench.runs.store.manifest import ExposureFacts as ExposureFacts
from abstain_bench.runs.store.manifest import Store as Store
from abstain_bench.runs.store.manifest import StoredRun as StoredRun
from abstain_bench.runs.store.manifest import lost as lost
from abstain_bench.runs.store.manifest import set_aside as set_aside
from abstain_bench.runs.store.manifest import write_manifest as write_manifest
from abstain_bench.runs.store.runs import VALIDATION as VALIDATION
from abstain_bench.runs.store.runs import Run as Run
from abstain_bench.runs.store.runs import RunScores as RunScores
from abstain_bench.runs.store.runs import ScoreFile as ScoreFile
from abstain_bench.runs.store.runs import keep_only as keep_only
from abstain_bench.runs.store.runs import packed as packed
from abstain_bench.runs.store.runs import write_scores as write_scores

__all__ = [
    "ADDED",
    "IMPORTED",
    "JOBS",
    "MANIFEST",
    "VALIDATION",
    "AddedFacts",
    "Additions",
    "ExposureFacts",
    "Run",
    "RunScores",
    "ScoreFile",
    "Store",
    "StoredRun",
    "packed",
]
