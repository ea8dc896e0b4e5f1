"""Define tasks, which combine a data set with test exposures and a training recipe."""

from abstain_bench.runs.tasks import embedded, large, open_set, published
from abstain_bench.runs.tasks._entry import TASKS as TASKS
from abstain_bench.runs.tasks._entry import Sizes as Sizes
from abstain_bench.runs.tasks._entry import Task as Task
from abstain_bench.runs.tasks._entry import TaskImages as TaskImages

for _module in (embedded, published, open_set, large):
    for _entry in _module.ENTRIES:
        TASKS.add(_entry)
