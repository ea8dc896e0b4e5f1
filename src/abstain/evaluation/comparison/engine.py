"""`compare`: is this method really better? Estimates, paired differences and rankings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any

from abstain._foundation import checks
from abstain._foundation.notes import Note
from abstain.confidence import ScoreState
from abstain.errors import InputError
from abstain.evaluation.comparison.across import Blocks, DataPart, FoundRows, across_data
from abstain.evaluation.comparison.estimates import bands_of, estimates, non_inferiorities
from abstain.evaluation.comparison.findings import findings_of_comparison
from abstain.evaluation.comparison.pairs import pairs
from abstain.evaluation.comparison.plan import TEST_NAMES, Plan
from abstain.evaluation.comparison.record import Comparison
from abstain.evaluation.comparison.standings import agreements, stabilities, standings
from abstain.evaluation.comparison.units import Roles, Unit, units_of
from abstain.evaluation.comparison.variation import SampledRows, measured, resampled
from abstain.evaluation.findings import sources
from abstain.evaluation.inputs import metrics_of, read_source, splits_of
from abstain.evaluation.records import ordered
from abstain.metrics import Metric
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import AnyArray, Rng, Split

#: More than this take minutes, and their table of pairs is read by nobody.
_MOST_METHODS = 300


def compare(
    predictions: Predictions | Mapping[Split, Predictions] | Any,
    *,
    scores: Sequence[str | ScoreState] | None = None,
    metrics: Sequence[str] = (DEFAULT_METRIC,),
    level: float = 0.95,
    test: str = "influence",
    bootstrap: int = 0,
    rng: Rng = 0,
    loss: "str | CostMatrix | AnyArray | None" = None,
    runs: str | None = None,
    methods: str | None = None,
    clustered: bool = False,
    own_weights: bool = False,
    adjustment: str = "holm",
    margin: float | None = None,
    reference: str | None = None,
    notes: Sequence[str | Note] = (),
    bands: bool = True,
    literature: bool = False,
    ties: str = "mean",
) -> Comparison:
    """Compare methods on the same samples.

    Answers: which method is better, by how much, and is that more than chance? Which rank may
    each really have?

    Parameters
    ----------
    predictions : Predictions, or mapping from split to Predictions
        One data set, or several, as `read_predictions` returns them. Also what `evaluate` opens:
        a path, a dataframe, arrays by name, a tuple of labels and probabilities.
    scores : sequence of str or fitted scores, optional
        Names of confidence columns or of the catalogue, and what `abstain.confidence.fit`
        returned: the methods to compare. By default all names that the predictions allow.
    metrics : sequence of str, default=("augrc",)
        Names of the catalogue, also with a number of your own such as ``coverage@2risk``.
    level : float, default=0.95
        Of the intervals; a difference is called found when its adjusted p-value is below
        1 - level.
    test : {"influence", "bootstrap", "permutation"}, default="influence"
        The test that decides. Influence functions need no resampling; metrics without one are
        decided by the paired bootstrap.
    bootstrap : int, default=0
        Resamples to draw, shared by all methods and runs; 0 for none, unless `test` or a metric
        needs them, then 1000. They add bootstrap rankings and the paired bootstrap of each pair.
    rng : int, Generator or None, default=0
        The seed of everything drawn.
    loss : str, CostMatrix or array of shape (n,), optional
        As in `evaluate`.
    runs : str, optional
        The column of the splits whose values are runs (seeds); they are averaged.
    methods : str, optional
        The column whose values are methods (classifiers) instead of data sets.
    clustered : bool, default=False
        Whether samples of one group are not independent.
    own_weights : bool, default=False
        Whether methods may weigh the samples differently, such as weight 0 for those that their
        own classifier got wrong.
    adjustment : {"holm", "bonferroni", "none"}, default="holm"
        For the number of pairs.
    margin : float, optional
        Test that every method is at most that much worse than the `reference`.
    reference : str, optional
        The method that must not be lost against; goes with `margin`.
    notes : sequence of str or Note, optional
        Sentences to carry into the findings.
    bands : bool, default=True
        False leaves out the risk-coverage curves.
    literature : bool, default=False
        Whether the pairs are also tested as papers do, by Wilcoxon's test on the resamples. Its
        p-values shrink with the number of resamples, so they decide nothing and `valid` is False;
        they are for checking published ones.
    ties : {"mean", "min"}, default="mean"
        Which rank methods of equal value have in `standings`: the mean of theirs, or the lowest, as
        published tables print it. Tests across data sets take the mean in either case.

    Returns
    -------
    Comparison
        Estimates, pairs, standings and more, each also a table (`Comparison.frame`).

    Raises
    ------
    UnknownNameError
        If a score or metric does not exist.
    InputError
        If there are fewer than two methods, the samples (or, without `own_weights`, the weights)
        of two methods do not match, a column for runs or methods does not split the data, or a
        metric does not apply.
    DomainError
        If `level` or `margin` is out of range.

    Notes
    -----
    Methods of one data set are compared on the same samples, so what makes a sample hard for
    all of them cancels. Runs on the same samples are averaged sample by sample; the intervals
    then speak of these runs on new samples, not of new runs. With `own_weights` a sample moves
    each method by its share of that method's weight, nothing where it has none; a pair is then
    still compared on the same draw of samples, of which each method answers for its own. Cost:
    one sort a method and run, and one product of the (n, methods) matrix of influences.

    References
    ----------
    .. [1] Traub et al. (2024), section 4.1, https://arxiv.org/abs/2407.01032
    .. [2] DeLong et al. (1988), Comparing the areas under two or more correlated receiver
       operating characteristic curves, https://doi.org/10.2307/2531595

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(1)
    >>> right = rng.random(500) < 0.8
    >>> good, poor = right + rng.normal(size=500), right + 3 * rng.normal(size=500)
    >>> predictions = ab.Predictions(confidence={"good": good, "poor": poor}, loss=1.0 - right)
    >>> found = ab.compare(predictions)
    >>> pair = found.pairs[0]
    >>> pair.better, round(pair.difference, 3), round(pair.p_value, 3)
    ('good', -0.014, 0.038)
    """
    predictions, notes = read_source(predictions, None, notes)
    plan = Plan.checked(
        level=level,
        test=test,
        bootstrap=bootstrap,
        rng=rng,
        adjustment=adjustment,
        margin=margin,
        reference=reference,
        bands=bands,
        literature=literature,
        ties=ties,
    )
    units = units_of(predictions, Roles(runs, methods, clustered, own_weights, scores, loss))
    found = _found(units, metrics_of(metrics) or [], plan)
    said = sources(notes, splits_of(predictions).values())
    return replace(found, findings=ordered((*found.findings, *said)))


def _found(units: Sequence[Unit], metrics: Sequence[Metric], plan: Plan) -> Comparison:
    """Compare on one data set after the other, then over all."""
    _refuse(units, metrics, plan)
    data = dict.fromkeys(unit.data for unit in units)
    parts = [compare_data([u for u in units if u.data == d], metrics, plan) for d in data]
    by_metric = zip(*(part.sampled for part in parts), strict=True)
    together = across_data([Blocks(own) for own in by_metric], plan)
    found = findings_of_comparison(units, parts, together, plan)
    return joined(parts, together, plan, metrics=metrics, methods=units[0].scored, findings=found)


def compare_data(units: Sequence[Unit], metrics: Sequence[Metric], plan: Plan) -> DataPart:
    """Compare the methods on the runs of one data set."""
    rows = SampledRows.of(units)
    sampled = [measured(metric, units, rows) for metric in metrics]
    lacking = any(metric.measurement.influence is None for metric in metrics)
    resamples = plan.resamples_of(len(units[0].scored), needed=lacking)
    if resamples:
        drawn = resampled(metrics, units, resamples, plan.seed)
        sampled = [replace(s, replicates=r) for s, r in zip(sampled, drawn, strict=True)]
    return DataPart(
        data=units[0].data,
        sampled=tuple(sampled),
        estimates=tuple(e for s in sampled for e in estimates(s, plan)),
        pairs=tuple(p for s in sampled for p in pairs(s, plan)),
        standings=tuple(row for s in sampled for row in standings(s, plan)),
        agreements=tuple(agreements(sampled, plan)),
        stability=tuple(stabilities(sampled, plan)),
        bands=tuple(bands_of(units[0], plan)) if plan.bands and not plan.lean else (),
        non_inferiority=tuple(n for s in sampled for n in non_inferiorities(s, plan)),
        resamples=resamples,
    )


def joined(
    parts: Sequence[DataPart],
    together: FoundRows,
    plan: Plan,
    *,
    metrics: Sequence[Metric],
    methods: Iterable[str],
    findings: Iterable[Note],
) -> Comparison:
    """Put what was found on each data set, and over all of them, into one record."""
    runs = (unit.run for part in parts for unit in part.sampled[0].units)
    tables: dict[str, Any] = {
        table.name: tuple(row for found in (*parts, together) for row in getattr(found, table.name))
        for table in fields(FoundRows)
    }
    return Comparison(
        metrics=tuple(metric.name for metric in metrics),
        methods=tuple(methods),
        data=tuple(part.data for part in parts),
        runs=tuple(dict.fromkeys(runs)),
        level=plan.level,
        findings=ordered(findings),
        test=TEST_NAMES[plan.test],
        bootstrap=max((part.resamples for part in parts), default=0),
        seed=plan.seed,
        **tables,
    )


def _refuse(units: Sequence[Unit], metrics: Sequence[Metric], plan: Plan) -> None:
    """Refuse what cannot be compared."""
    methods = tuple(units[0].scored)
    if len(methods) > _MOST_METHODS:
        pairs = len(methods) * (len(methods) - 1) // 2
        raise InputError(
            f"{len(methods):,} methods make {pairs:,} pairs, each of which would "
            f"be tested; at most {_MOST_METHODS} methods are compared. Name those that matter"
        )
    for metric, (name, s) in product(metrics, [own for u in units for own in u.scored.items()]):
        if missing := metric.reason_not_applicable(s):
            raise InputError(f"the metric {metric.name!r} does not apply to {name!r}: it {missing}")
    if plan.reference is not None:
        checks.one_of(plan.reference, "reference", methods)
