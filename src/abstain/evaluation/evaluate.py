"""`evaluate`: every score that predictions allow, every metric that applies."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from abstain._foundation.notes import Note
from abstain.confidence import ScoreState
from abstain.errors import InputError
from abstain.evaluation.collector import ResultCollector
from abstain.evaluation.counted_rows import counted_splits
from abstain.evaluation.findings import sources
from abstain.evaluation.inputs import join, loss_name, metrics_of, read_source, scores_of, splits_of
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.part import ScoredPart
from abstain.evaluation.records import Evaluation
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Rng, Split

if TYPE_CHECKING:
    from abstain.evaluation.stream import StreamOptions
    from abstain.tables import PredictionScan


def evaluate(
    predictions: "Predictions | Mapping[Split, Predictions] | PredictionScan | Any",
    beside: AnyArray | None = None,
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
    """Evaluate confidence scores on predictions.

    Answers: how well does each score tell failures from successes, by every metric that applies?

    Parameters
    ----------
    predictions : Predictions, mapping from split to Predictions, or PredictionScan
        One set of predictions, or several parts evaluated by themselves, as
        `read_predictions` returns them; or files that need not fit in memory, as
        `scan_predictions` finds them. Also what `read_predictions` reads under usual names: a
        path, a dataframe, a list of rows, a mapping from name to array; or the first of two
        arrays.
    beside : array of shape (n, K) or (n,), optional
        The second of two arrays: the probabilities of all classes, (n, K), where the first holds
        the labels; the loss, 1 where wrong, where the first is a confidence. Their shapes say
        which. A tuple of both does the same.
    scores : sequence of str or fitted scores, optional
        Names of confidence columns or of the catalogue (``abstain list scores``), and what
        `abstain.confidence.fit` returned. By default all names that the predictions allow.
    metrics : sequence of str, optional
        Names of the catalogue (``abstain list metrics``), also with a number of your own such as
        ``coverage@2risk``, or with a range of them, low:high:count: ``cwsa@0.5:0.99:20``. By
        default all that apply.
    loss : str, CostMatrix or array of shape (n,), optional
        What counts as wrong: "zero_one" (the default), "cross_entropy", "brier",
        "balanced_error", a cost matrix, or an array of your own (for one set of predictions).
    interval : {"analytic", "bootstrap", "none"}, default="analytic"
        How to say where each number may lie on new data: by influence functions, which some
        metrics have not, by resampling, which every metric has, or not at all.
    notes : sequence of str or Note, optional
        Sentences to carry into the findings, such as those of the reader of a file.
    level : float, default=0.95
        Of the intervals.
    bootstrap : int, default=1000
        Resamples, where they are drawn.
    clustered : bool, default=False
        Whether samples of one group are not independent.
    curves : bool, default=True
        Whether to make what a page draws beside the numbers: curves with their bands, and the
        samples worth looking at. Without them `Evaluation.cases` is empty.
    rng : int, Generator or None, default=0
        The seed of the resamples.
    stream : StreamOptions, optional
        How files that are scanned are read: interrupted and resumed, by a cluster.

    Returns
    -------
    Evaluation
        Results, the curves behind them, and findings in plain words. Values are fractions.

    Raises
    ------
    UnknownNameError
        If a score or metric does not exist.
    MissingInputError
        If a score asked for needs something that the predictions lack.
    DomainError
        If `level` is not in [0.5, 0.9999].
    InputError
        If a metric asked for by name does not apply to any split, if two scores have one name, or
        if a column that splits the data has the name of a column of the results.

    Notes
    -----
    A metric that valid data leave undefined gives NaN and a reason. Metrics that do not apply
    are listed in `Evaluation.skipped` with the reason. Cost: one sort for each score, two more
    where scores are tied; all CWSA and CWSA+ take one pass together, however many thresholds.
    Files that are scanned are read once, a batch at a time, and give the same numbers; what needs
    every sample at once is in `Evaluation.skipped`.

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
    predictions, notes = read_source(predictions, beside, notes)
    chosen = metrics_of(metrics)
    how = IntervalOptions.checked(
        interval, level=level, bootstrap=bootstrap, clustered=clustered, rng=rng
    )
    if not isinstance(predictions, Predictions | Mapping):
        # What counts batches is loaded for those who have them.
        from abstain.evaluation.stream import StreamOptions, StreamPlan, counted_evaluation

        said, options = tuple(sources(notes)), stream or StreamOptions()
        plan = StreamPlan(scores, chosen, loss, how, curves, said, options)
        return counted_evaluation(predictions, plan)
    if stream is not None:
        raise InputError(
            "`stream` is for files that are scanned: give what `scan_predictions` returns"
        )
    splits = splits_of(predictions)
    found = ResultCollector(chosen, sources(notes, splits.values()), curves=curves)
    splits, loss = counted_splits(splits, loss)
    for split, predicted in splits.items():
        losses = per_sample_loss(predicted, loss)
        for score in scores_of(predicted, scores):
            s = join(predicted, score, losses)
            found.add(ScoredPart(split, score.name, s, how, predicted))
    own = frozenset(name for p in splits.values() for name in p.confidence or ())
    return found.evaluation(loss_name(loss, splits.values()), own)
