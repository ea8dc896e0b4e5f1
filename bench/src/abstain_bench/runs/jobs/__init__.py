"""Resumable jobs: each is done once, and its results are identified by its specification.

The key of a job is a hash of its specification, so a changed setting is a new job and a finished
job is not repeated. A job writes its receipt, a JSON file with hashes of its other files, last. A
job that was killed, or whose files are missing or changed, is done again.
"""

from abstain_bench.runs.jobs.engine import ENGINES as ENGINES
from abstain_bench.runs.jobs.engine import WorkerPool as WorkerPool
from abstain_bench.runs.jobs.engine import run_jobs as run_jobs
from abstain_bench.runs.jobs.progress import JobProgress as JobProgress
from abstain_bench.runs.jobs.progress import read_job_progress as read_job_progress
from abstain_bench.runs.jobs.record import Job as Job
from abstain_bench.runs.jobs.record import OnOutcome as OnOutcome
from abstain_bench.runs.jobs.record import Outcome as Outcome
from abstain_bench.runs.jobs.record import Work as Work
