"""`compare`: is this method really better? Estimates, paired differences and rankings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, Unpack, cast

from abstain._foundation import checks
from abstain._foundation.random import seed_of
from abstain.confidence import Scorer
from abstain.errors import InputError
from abstain.evaluation._compare_across import across_data
from abstain.evaluation._compare_data import DataPart, compare_data
from abstain.evaluation._compare_findings import findings_of_comparison
from abstain.evaluation._plan import TEST_NAMES, TESTS, Plan
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.evaluate import metrics_of, refuse_unknown, splits_of
from abstain.evaluation.findings import sources
from abstain.evaluation.records import Finding
from abstain.evaluation.units import Roles, Unit, units_of
from abstain.inference.multiplicity import ADJUSTMENTS, Adjustment
from abstain.inference.proportions import level_of
from abstain.metrics import Metric
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import AnyArray, Rng, Split

#: More than this take minutes, and their table of pairs is read by nobody.
_MOST_METHODS = 300


class CompareOptions(TypedDict, total=False):
    """Options of `compare` beyond what is compared by what."""

    loss: "str | CostMatrix | AnyArray | None"
    runs: str | None
    methods: str | None
    clustered: bool
    own_weights: bool
    adjustment: str
    margin: float | None
    reference: str | None
    notes: Sequence[str | Finding]
    bands: bool


def compare(
    predictions: Predictions | Mapping[Split, Predictions],
    *,
    scores: Sequence[str | Scorer] | None = None,
    metrics: Sequence[str] = ("augrc",),
    level: float = 0.95,
    test: str = "influence",
    bootstrap: int = 0,
    rng: Rng = 0,
    **more: Unpack[CompareOptions],
) -> Comparison:
    """Compare methods on the same samples.

    Answers: which method is better, by how much, and is that more than chance? Which rank may
    each really have?

    Parameters
    ----------
    predictions : Predictions, or mapping from split to Predictions
        One data set, or several, as `read_predictions` returns them.
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
        needs them, then 1000. They add bootstrap rankings and what the literature reports.
    rng : int, Generator or None, default=0
        The seed of everything drawn.
    **more : optional
        `loss`: as in `evaluate`. `runs`: the column of the splits whose values are runs (seeds);
        they are averaged. `methods`: the column whose values are methods (classifiers) instead
        of data sets. `clustered`: whether samples of one group are not independent.
        `own_weights`: whether methods may weigh the samples differently, such as weight 0 for
        those that their own classifier got wrong.
        `adjustment`: "holm" (the default), "bonferroni" or "none". `margin` and `reference`:
        test that every method is at most that much worse than the reference. `notes`:
        sentences to carry into the findings. `bands`: False leaves out the risk-coverage curves,
        half of the time with many methods.

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
    refuse_unknown(more, CompareOptions, "compare")
    plan = _plan(level, test, bootstrap, rng, more)
    roles = Roles(
        more.get("runs"),
        more.get("methods"),
        more.get("clustered", False),
        more.get("own_weights", False),
    )
    units = units_of(predictions, roles, scores, more.get("loss"))
    _refuse_many(len(units[0].scored))
    chosen = metrics_of(metrics) or []
    _refuse_inapplicable(chosen, units)
    _refuse_reference(plan, units)
    data = dict.fromkeys(unit.data for unit in units)
    parts = [compare_data([u for u in units if u.data == d], chosen, plan) for d in data]
    found = _joined(units, chosen, parts, plan)
    said = sources(more.get("notes", ()), splits_of(predictions).values())
    findings = sorted((*found.findings, *said), key=lambda finding: finding.level != "warning")
    return replace(found, findings=tuple(findings))


def _joined(
    units: Sequence[Unit], metrics: Sequence[Metric], parts: Sequence[DataPart], plan: Plan
) -> Comparison:
    """Put what was found on each data set and over all of them into one record."""
    together = across_data(parts, metrics, plan)
    return Comparison(
        metrics=tuple(metric.name for metric in metrics),
        methods=tuple(units[0].scored),
        data=tuple(part.data for part in parts),
        runs=tuple(dict.fromkeys(unit.run for unit in units)),
        level=plan.level,
        estimates=tuple(e for part in parts for e in part.estimates),
        pairs=(*(p for part in parts for p in part.pairs), *together.pairs),
        standings=(*(s for part in parts for s in part.standings), *together.standings),
        across=together.across,
        agreements=(*(a for part in parts for a in part.agreements), *together.agreements),
        stability=tuple(s for part in parts for s in part.stability),
        bands=tuple(b for part in parts for b in part.bands),
        findings=tuple(findings_of_comparison(units, parts, together, plan)),
        test=TEST_NAMES[plan.test],
        bootstrap=max((part.resamples for part in parts), default=0),
        seed=plan.seed,
        non_inferiority=tuple(n for part in parts for n in part.non_inferiority),
        aggregates=together.aggregates,
        improvements=together.improvements,
        profiles=together.profiles,
    )


def _plan(level: float, test: str, bootstrap: int, rng: Rng, more: CompareOptions) -> Plan:
    resamples = 0 if bootstrap == 0 else checks.positive_int(bootstrap, "bootstrap")
    if resamples == 1:
        msg = "`bootstrap` must be 0 (none) or at least 2 resamples, better 1000; got 1"
        raise InputError(msg)
    margin = more.get("margin")
    if (margin is None) != (more.get("reference") is None):
        msg = "`margin` and `reference` go together: how much worse than which method?"
        raise InputError(msg)
    return Plan(
        level=level_of(level),
        test=checks.one_of(test, "test", TESTS),
        adjustment=cast(
            "Adjustment", checks.one_of(more.get("adjustment", "holm"), "adjustment", ADJUSTMENTS)
        ),
        resamples=resamples,
        seed=seed_of(rng),
        margin=None if margin is None else checks.fraction(margin, "margin", high=float("inf")),
        reference=more.get("reference"),
        bands=more.get("bands", True),
    )


def _refuse_many(methods: int) -> None:
    if methods > _MOST_METHODS:
        msg = (
            f"{methods:,} methods make {methods * (methods - 1) // 2:,} pairs, each of which would "
            f"be tested; at most {_MOST_METHODS} methods are compared. Name those that matter"
        )
        raise InputError(msg)


def _refuse_inapplicable(metrics: Sequence[Metric], units: Sequence[Unit]) -> None:
    scored = [(name, s) for unit in units for name, s in unit.scored.items()]
    for metric in metrics:
        for name, s in scored:
            missing = metric.missing(s)
            if missing:
                msg = f"the metric {metric.name!r} does not apply to {name!r}: it {missing}"
                raise InputError(msg)


def _refuse_reference(plan: Plan, units: Sequence[Unit]) -> None:
    methods = tuple(units[0].scored)
    if plan.reference is not None:
        checks.one_of(plan.reference, "reference", methods)
