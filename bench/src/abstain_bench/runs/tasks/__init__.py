"""The catalogue of tasks: a data set, all that its classifiers are exposed to, and a recipe."""

from abstain_bench.runs.tasks import embedded, large, open_set, published
from abstain_bench.runs.tasks._entry import TASKS as TASKS
from abstain_bench.runs.tasks._entry import Parts as Parts
from abstain_bench.runs.tasks._entry import Sizes as Sizes
from abstain_bench.runs.tasks._entry import Task as Task

__all__ = ["TASKS", "Parts", "Sizes", "Task"]

for _module in (embedded, published, open_set, large):
    for _entry in _module.ENTRIES:
        TASKS.add(_entry)
