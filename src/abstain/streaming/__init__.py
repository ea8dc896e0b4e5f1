"""Metrics of streams in bounded memory: mergeable states, and certified limits of each number."""

from abstain.streaming.bounds import Bounded as Bounded
from abstain.streaming.bounds import compute as compute
from abstain.streaming.histogram import Histogram as Histogram
from abstain.streaming.histogram import init as init
from abstain.streaming.histogram import merge as merge
from abstain.streaming.histogram import update as update

__all__ = ["Bounded", "Histogram", "compute", "init", "merge", "update"]
