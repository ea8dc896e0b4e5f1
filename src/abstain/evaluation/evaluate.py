"""`evaluate`: every score that predictions allow, every metric that applies."""

from collections.abc import Mapping, Sequence

from abstain._foundation.measurement import Measured
from abstain.confidence import ScoreState
from abstain.errors import InputError
from abstain.evaluation.cases import case_of
from abstain.evaluation.findings import findings_of, sources
from abstain.evaluation.inputs import join, loss_name, metrics_of, scores_of, splits_of
from abstain.evaluation.records import Case, Evaluation, Finding, Result, ordered
from abstain.evaluation.uncertainty import ScoredPart, Uncertainty, with_intervals
from abstain.metrics import METRICS, Metric
from abstain.metrics.entry import measured_at_once
from abstain.metrics.ties import UntiedOrders, has_bounds
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Rng, Split

#: Families whose metrics are told with their range over all orders of tied samples.
_WITH_TIE_BOUNDS = frozenset({"area", "ranking"})


def evaluate(
    predictions: Predictions | Mapping[Split, Predictions],
    *,
    scores: Sequence[str | ScoreState] | None = None,
    metrics: Sequence[str] | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    interval: str = "analytic",
    notes: Sequence[str | Finding] = (),
    level: float = 0.95,
    bootstrap: int = 1000,
    clustered: bool = False,
    curves: bool = True,
    rng: Rng = 0,
) -> Evaluation:
    """Evaluate confidence scores on predictions.

    Answers: how well does each score tell failures from successes, by every metric that applies?

    Parameters
    ----------
    predictions : Predictions, or mapping from split to Predictions
        One set of predictions, or several parts evaluated by themselves, as
        `read_predictions` returns them.
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
    notes : sequence of str or Finding, optional
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

    Examples
    --------
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> ab.evaluate(predictions, metrics=["augrc"]).value("augrc")
    0.09375
    """
    splits = splits_of(predictions)
    chosen = metrics_of(metrics)
    how = Uncertainty.checked(
        interval, level=level, bootstrap=bootstrap, clustered=clustered, rng=rng
    )
    results: list[Result] = []
    cases: list[Case] = []
    findings = sources(notes, splits.values())
    skipped: dict[str, str] = {}
    binary = True
    for split, predicted in splits.items():
        losses = per_sample_loss(predicted, loss)
        for score in scores_of(predicted, scores):
            part = ScoredPart(split, score.name, predicted, join(predicted, score, losses), how)
            binary = binary and part.s.binary
            measured = with_intervals(_measure(part, chosen, skipped), part)
            results += measured
            cases += [case_of(part)] if curves else []
            findings += findings_of(part, measured)
    _refuse_inapplicable(chosen, results, skipped)
    for name in {result.metric for result in results}:
        # It applied to another score or split.
        skipped.pop(name, None)
    label, said = loss_name(loss, splits.values()), ordered(findings)
    asked = tuple(metric.name for metric in chosen or ())
    own = frozenset(name for p in splits.values() for name in p.confidence or ())
    return Evaluation(tuple(results), tuple(cases), said, label, skipped, binary, asked, own)


def _measure(
    part: ScoredPart, chosen: list[Metric] | None, skipped: dict[str, str]
) -> list[Result]:
    apply = []
    for metric in METRICS.values() if chosen is None else chosen:
        missing = metric.missing(part.s)
        if missing:
            skipped[metric.name] = missing
        else:
            apply.append(metric)
    orders, found = UntiedOrders(part.s), measured_at_once(apply, part.s)
    return [_result(part, m, value, orders) for m, value in zip(apply, found, strict=True)]


def _result(part: ScoredPart, metric: Metric, measured: Measured, orders: UntiedOrders) -> Result:
    s = part.s
    tied = s.events.tied
    bounded = metric.family in _WITH_TIE_BOUNDS and has_bounds(metric, s)
    low, high = (float("nan"), float("nan"))
    if bounded:
        value = measured.value
        low, high = orders.bounds(metric) if tied and not measured.reason else (value, value)
    return Result(
        split=part.split,
        score=part.score,
        metric=metric.name,
        value=float(measured.value),
        n=s.n,
        failures=s.failures,
        accepted=measured.accepted,
        tied_share=tied / s.n,
        tie_low=float(low),
        tie_high=float(high),
        convention=metric.convention,
        lower_is_better=metric.lower_is_better,
        reason=measured.reason,
    )


def _refuse_inapplicable(
    chosen: list[Metric] | None, results: list[Result], skipped: Mapping[str, str]
) -> None:
    """Refuse a metric that was asked for by name and applies nowhere."""
    measured = {result.metric for result in results}
    for metric in chosen or ():
        if metric.name not in measured:
            msg = f"the metric {metric.name!r} does not apply: it {skipped[metric.name]}"
            raise InputError(msg)
