"""A folder of runs: what `abstain benchmark run` leaves, and what reports read back.

Nothing here needs torch, or the data set.
"""

from abstain.benchmark.store.additions import ADDED as ADDED
from abstain.benchmark.store.additions import AddedFacts as AddedFacts
from abstain.benchmark.store.additions import Additions as Additions
from abstain.benchmark.store.manifest import IMPORTED as IMPORTED
from abstain.benchmark.store.manifest import JOBS as JOBS
from abstain.benchmark.store.manifest import MANIFEST as MANIFEST
from abstain.benchmark.store.manifest import ExposureFacts as ExposureFacts
from abstain.benchmark.store.manifest import Store as Store
from abstain.benchmark.store.manifest import StoredRun as StoredRun
from abstain.benchmark.store.manifest import lost as lost
from abstain.benchmark.store.manifest import set_aside as set_aside
from abstain.benchmark.store.manifest import write_manifest as write_manifest
from abstain.benchmark.store.runs import VALIDATION as VALIDATION
from abstain.benchmark.store.runs import Run as Run
from abstain.benchmark.store.runs import RunScores as RunScores
from abstain.benchmark.store.runs import ScoreFile as ScoreFile
from abstain.benchmark.store.runs import keep_only as keep_only
from abstain.benchmark.store.runs import packed as packed
from abstain.benchmark.store.runs import write_scores as write_scores

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
