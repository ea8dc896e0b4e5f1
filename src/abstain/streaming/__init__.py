"""Compute metrics of data that do not fit in memory, exactly or with certified limits."""

from abstain.streaming.files import load as load
from abstain.streaming.files import save as save
from abstain.streaming.groups import GroupCounts as GroupCounts
from abstain.streaming.groups import one_pass as one_pass
from abstain.streaming.histogram import Histogram as Histogram
from abstain.streaming.histogram import init as init
from abstain.streaming.passes import CutCounts as CutCounts
from abstain.streaming.passes import FailureCounts as FailureCounts
from abstain.streaming.passes import first_pass as first_pass
from abstain.streaming.passes import second_pass as second_pass
from abstain.streaming.runs import SortedRuns as SortedRuns
from abstain.streaming.runs import sorted_runs as sorted_runs
from abstain.streaming.states import Bounded as Bounded
from abstain.streaming.states import compute as compute
from abstain.streaming.states import merge as merge
from abstain.streaming.states import scored as scored
from abstain.streaming.states import update as update

__all__ = [
    "Bounded",
    "CutCounts",
    "FailureCounts",
    "GroupCounts",
    "Histogram",
    "SortedRuns",
    "compute",
    "first_pass",
    "init",
    "load",
    "merge",
    "one_pass",
    "save",
    "scored",
    "second_pass",
    "sorted_runs",
    "update",
]
