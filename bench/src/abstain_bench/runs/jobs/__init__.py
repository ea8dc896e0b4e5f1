"""Resumable jobs, whose results are identified by their specification.

The key of a job is a hash of its specification. A changed setting therefore defines a new job, and
a finished job is not repeated. After its output files, a job writes its receipt, which is a JSON
file with the hashes of the output files. A job runs again if it was killed, or if its files are
missing or changed.
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
