"""Evaluate all applicable scores and metrics (`evaluate`)."""

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
        Predictions of one data set, or of several splits that are evaluated separately (the
        return value of `read_predictions`), or files that need not fit in memory (the return
        value of `scan_predictions`). Inputs of `read_predictions` with the usual column names
        also work: a path, a dataframe, a list of rows, a mapping from name to array. If
        `probabilities_or_loss` is passed: the labels or the confidence.
    probabilities_or_loss : array of shape (n, K) or (n,), optional
        If `predictions` are labels: the class probabilities, shape (n, K). If `predictions` are
        confidences: the loss, shape (n,), 1 for a wrong prediction. The number of dimensions
        decides. A tuple of both arrays as `predictions` is equivalent.
    scores : sequence of str or fitted scores, optional
        Names of confidence columns or of registered scores (``abstain list scores``), and fitted
        scores from `abstain.confidence.fit`. By default all scores that the predictions allow.
    metrics : sequence of str, optional
        Names of metrics (``abstain list metrics``), also with other numbers, such as
        ``coverage@2risk``, or with a range low:high:count, such as ``cwsa@0.5:0.99:20``. By
        default all applicable metrics.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss of a prediction: "zero_one" (the default), "cross_entropy", "brier",
        "balanced_error", a cost matrix, or an array with the loss of each sample (for one data
        set only).
    interval : {"analytic", "bootstrap", "none"}, default="analytic"
        Method for confidence intervals: influence functions, which some metrics do not have;
        resampling, which works for every metric; or no intervals.
    notes : sequence of str or Note, optional
        Notes to add to those of the evaluation, such as the notes of a file reader.
    level : float, default=0.95
        Confidence level of the intervals.
    bootstrap : int, default=1000
        Number of resamples, if `interval` is "bootstrap".
    clustered : bool, default=False
        Whether the samples of one group are dependent. Resampling then draws whole groups.
    curves : bool, default=True
        Whether to compute the inputs of figures: curves with confidence bands, and the most
        notable samples. If False, `Evaluation.curves` is empty.
    rng : int, Generator or None, default=0
        Seed of the resamples.
    stream : StreamOptions, optional
        Options for scanned files, such as the folder from which an interrupted run resumes.

    Returns
    -------
    Evaluation
        Results, curves and notes. Values are fractions.

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
    If a metric is undefined for valid data, its value is NaN and the result has a reason. Metrics
    that do not apply are listed in `Evaluation.skipped` with the reason. Cost: one sort for each
    score, and two more for a score with ties. All CWSA and CWSA+ metrics share one pass,
    whatever the number of thresholds. Scanned files are read once, batch by batch, and give the
    same numbers. `Evaluation.skipped` then also lists the metrics that need all samples at once.

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
        # Imported here, since predictions in memory do not need it.
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
    parts = []
    for split, predictions_of_split in splits.items():
        losses = per_sample_loss(predictions_of_split, loss)
        for score in compute_scores(predictions_of_split, scores):
            s = join(predictions_of_split, score, losses)
            parts.append(InMemorySplit(split, score.name, s, intervals, predictions_of_split))
            builder.add(parts[-1])
    column_scores = frozenset(name for p in splits.values() for name in p.confidence or ())
    evaluation = builder.build(loss_name(loss, splits.values()), column_scores)
    if len(parts) == 1:
        return replace(evaluation, n_classes=_count_classes(splits.values()))
    # Imported here, since one score does not need it.
    from abstain.evaluation.score_tests import compute_score_tests, find_equal_rankings

    equal_rankings = find_equal_rankings(parts, evaluation.results)
    return replace(
        evaluation,
        n_classes=_count_classes(splits.values()),
        equal_rankings=equal_rankings,
        tests=compute_score_tests(parts, evaluation.results, equal_rankings),
    )


def _count_classes(predictions: Iterable[Predictions]) -> int:
    """Return the largest number of classes; 0 without classes."""
    return max((p.n_classes for p in predictions), default=0)
