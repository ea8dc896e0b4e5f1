"""Jobs that are kept: each done once, whole or not at all, and found again by its content.

A job is known by what it was asked to do: the key is a hash of its specification, so another
setting is another job and a finished one is never done twice. Its receipt, a JSON file, is
written last and knows the other files by their content; a job that was killed, or whose files
were lost or changed, is simply done again.
"""

from abstain_bench.runs.jobs.engine import ENGINES as ENGINES
from abstain_bench.runs.jobs.engine import Crew as Crew
from abstain_bench.runs.jobs.engine import run_jobs as run_jobs
from abstain_bench.runs.jobs.record import Job as Job
from abstain_bench.runs.jobs.record import OnOutcome as OnOutcome
from abstain_bench.runs.jobs.record import Outcome as Outcome
from abstain_bench.runs.jobs.record import Work as Work
from abstain_bench.runs.jobs.steps import Step as Step
from abstain_bench.runs.jobs.steps import steps_in as steps_in

__all__ = ["ENGINES", "Crew", "Job", "OnOutcome", "Outcome", "Step", "Work", "run_jobs", "steps_in"]
