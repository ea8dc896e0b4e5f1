"""Evaluate predictions that do not fit in memory, by counting them in batches."""

from abstain.evaluation.stream.evaluation import StreamOptions as StreamOptions
from abstain.evaluation.stream.evaluation import StreamPlan as StreamPlan
from abstain.evaluation.stream.evaluation import StreamProgress as StreamProgress
from abstain.evaluation.stream.evaluation import evaluate_stream as evaluate_stream

__all__ = ["StreamOptions", "StreamPlan", "StreamProgress", "evaluate_stream"]
