"""Evaluate confidence scores with all applicable metrics (`evaluate`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from abstain._foundation.notes import Note
from abstain.confidence import ScoreState
from abstain.errors import InputError
from abstain.evaluation.inputs import (
    check_splits,
    compute_scores,
    join,
    loss_name,
    parse_metrics,
    positive_weight_splits,
    read_source,
)
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.notes import reading_notes
from abstain.evaluation.records import Evaluation
from abstain.evaluation.results import EvaluationBuilder
from abstain.evaluation.scored_split import InMemorySplit
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Rng, Split

if TYPE_CHECKING:
    from abstain.evaluation.stream import StreamOptions
    from abstain.tables import PredictionScan


def evaluate(
    predictions: "Predictions | Mapping[Split, Predictions] | PredictionScan | Any",
    probabilities_or_loss: AnyArray | None = None,
    *,
    scores: Sequence[str | ScoreState] | None = None,
    metrics: Sequence[str] | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    interval: str = "analytic",
    notes: Sequence[str | Note] = (),
    level: float = 0.95,
    bootstrap: int = 1000,
    clustered: bool = False,
    curves: bool = True,
    rng: Rng = 0,
    stream: "StreamOptions | None" = None,
) -> Evaluation:
    """Evaluate confidence scores on predictions with all applicable metrics.

    Answers: how well does each score separate failures from successes?

    Parameters
    ----------
    predictions : Predictions, mapping from split to Predictions, or PredictionScan
        Predictions of one data set, or of several splits, which are evaluated separately. The key
        of a split may also be a single name. For files that do not fit in memory, pass the result
        of `scan_predictions`. A path, a dataframe, a list of rows or a mapping from name to array
        is also accepted if it has the column names of `read_predictions`. If
        `probabilities_or_loss` is passed, this argument is an array of labels or of confidences.
    probabilities_or_loss : array of shape (n, K) or (n,), optional
        Class probabilities of shape (n, K) if `predictions` contains labels. Losses of shape (n,)
        if `predictions` contains confidences; for a 0/1 loss, 1 is a wrong prediction.
        Alternatively, pass a tuple of both arrays as `predictions`.
    scores : sequence of str or fitted scores, optional
        Names of confidence columns, names of registered scores (``abstain list scores``), or
        fitted scores from `abstain.confidence.fit`. The default is all scores that can be computed
        from the predictions.
    metrics : sequence of str, optional
        Names of metrics (``abstain list metrics``). The number in a name can be changed, as in
        ``coverage@2risk``. A range low:high:count, as in ``cwsa@0.5:0.99:20``, requests several
        metrics. The default is all applicable metrics.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss of a prediction. The named losses are "zero_one" (the default), "cross_entropy",
        "brier" and "balanced_error". An array contains the loss of each sample, and is only valid
        for a single data set.
    interval : {"analytic", "bootstrap", "none"}, default="analytic"
        Method for confidence intervals. "analytic" uses influence functions, which some metrics do
        not have. "bootstrap" uses resampling, which works for every metric. "none" computes no
        intervals.
    notes : sequence of str or Note, optional
        Notes to add to those of the evaluation, such as the notes of a file reader.
    level : float, default=0.95
        Confidence level of the intervals.
    bootstrap : int, default=1000
        Number of resamples, if `interval` is "bootstrap".
    clustered : bool, default=False
        Whether the samples of one group are dependent. Resampling then draws whole groups.
    curves : bool, default=True
        Whether to compute curves with confidence bands and the most notable samples. If False,
        `Evaluation.curves` is empty.
    rng : int, Generator or None, default=0
        Seed of the resamples.
    stream : StreamOptions, optional
        Options for scanned files, such as the folder from which an interrupted run resumes.

    Returns
    -------
    Evaluation
        The results, curves and notes. Metric values are fractions, not percentages.

    Raises
    ------
    UnknownNameError
        If a score or metric does not exist.
    MissingInputError
        If a requested score needs an input that the predictions do not have.
    DomainError
        If `level` is not in [0.5, 0.9999].
    InputError
        If a requested metric applies to no split, if two scores have the same name, or if a
        split column has the name of a column of the results.

    Notes
    -----
    If a metric is undefined for valid data, its value is NaN and the result states the reason.
    `Evaluation.skipped` lists the metrics that do not apply, with the reasons.

    Scanned files are read once in batches, and the values of the metrics equal those of data in
    memory. For scanned files, `Evaluation.skipped` also lists the metrics that need all samples at
    once.

    Examples
    --------
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> ab.evaluate(predictions, metrics=["augrc"]).value("augrc")
    0.09375
    >>> ab.evaluate([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 0]).value("augrc")
    0.09375
    """
    predictions, notes_of_reader = read_source(predictions, probabilities_or_loss)
    requested_metrics = parse_metrics(metrics)
    intervals = IntervalOptions.from_arguments(
        interval, level=level, bootstrap=bootstrap, clustered=clustered, rng=rng
    )
    if not isinstance(predictions, Predictions | Mapping):
        # The module is imported here, because predictions in memory do not need it.
        from abstain.evaluation.stream import StreamOptions, StreamPlan, evaluate_stream

        plan = StreamPlan(
            scores=scores,
            metrics=requested_metrics,
            loss=loss,
            intervals=intervals,
            curves=curves,
            notes=tuple(reading_notes(notes)),
            options=stream or StreamOptions(),
        )
        return evaluate_stream(predictions, plan)
    if stream is not None:
        raise InputError("`stream` requires scanned files: pass the result of `scan_predictions`")
    splits = check_splits(predictions)
    all_notes = reading_notes(notes, splits.values(), reader=notes_of_reader)
    builder = EvaluationBuilder(requested_metrics, all_notes, curves=curves)
    splits, loss = positive_weight_splits(splits, loss)
    scored_splits = []
    column_scores: set[str] = set()
    for split, predictions_of_split in splits.items():
        column_scores.update(predictions_of_split.confidence or ())
        losses = per_sample_loss(predictions_of_split, loss)
        for score in compute_scores(predictions_of_split, scores):
            s = join(predictions_of_split, score, losses)
            scored_split = InMemorySplit(split, score.name, s, intervals, predictions_of_split)
            scored_splits.append(scored_split)
            builder.add(scored_split)
    evaluation = builder.build(loss_name(loss, splits.values()), frozenset(column_scores))
    evaluation = replace(evaluation, n_classes=_count_classes(splits.values()))
    if len(scored_splits) == 1:
        return evaluation
    # The module is imported here, because the evaluation of one score does not need it.
    from abstain.evaluation.score_tests import compute_score_tests, find_equal_rankings

    equal_rankings = find_equal_rankings(scored_splits, evaluation.results)
    tests = compute_score_tests(scored_splits, evaluation.results, equal_rankings)
    return replace(evaluation, equal_rankings=equal_rankings, tests=tests)


def _count_classes(predictions: Iterable[Predictions]) -> int:
    """Return the largest number of classes over all splits, or 0 if no split has classes."""
    return max((p.n_classes for p in predictions), default=0)
