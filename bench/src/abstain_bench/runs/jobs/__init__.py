"""Run resumable jobs that are identified by their specification.

Each job has a key, which is a hash of its specification. If a setting changes, the key changes and
a new job is run; finished jobs are not repeated. When a job has written its output files, it writes
a receipt, which is a JSON file with their hashes. A job is repeated if it was interrupted, or if
its files are missing or were changed.
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
