"""The catalogue of tasks: a data set, all that its classifiers are exposed to, and a recipe."""

from abstain.benchmark.tasks import embedded, large, open_set, published
from abstain.benchmark.tasks._entry import TASKS as TASKS
from abstain.benchmark.tasks._entry import Parts as Parts
from abstain.benchmark.tasks._entry import Sizes as Sizes
from abstain.benchmark.tasks._entry import Task as Task

__all__ = ["TASKS", "Parts", "Sizes", "Task"]

for _module in (embedded, published, open_set, large):
    for _entry in _module.ENTRIES:
        TASKS.add(_entry)
