"""Test the paired differences between scores, and find scores with identical rankings."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from abstain._foundation.scored import Scored
from abstain.evaluation.comparison.pairs import pairs
from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.runs import ScoredRun, rows_of_same_samples
from abstain.evaluation.comparison.values import RowWeights, compute_values
from abstain.evaluation.records import Result, ScoreDifference, ScoreKey, ScoreTests
from abstain.evaluation.scored_split import InMemorySplit
from abstain.metrics import Metric
from abstain.predictions import Predictions
from abstain.typing import Array, IntArray, Split

#: Maximum number of scores that are tested together, and maximum of samples times scores. The tests
#: store one number for each sample and score.
_MAX_SCORES = 100
_MAX_INFLUENCES = 20_000_000


def choose_tested_metric(results: Iterable[Result]) -> Metric | None:
    """Return the AUGRC, or else the first area or ranking metric with an influence function."""
    metrics = {
        result.metric.name: result.metric
        for result in results
        if result.metric.identity.family in {"area", "ranking"}
        and result.metric.measurement.influence is not None
    }
    return metrics.get("augrc") or next(iter(metrics.values()), None)


def compute_score_tests(
    parts: Sequence[InMemorySplit],
    results: Sequence[Result],
    equal_rankings: Iterable[tuple[str, ...]],
) -> ScoreTests | None:
    """Return the tests of the differences between all scores, or None without testable pairs.

    Of several scores with equal rankings, only the first is tested.
    All splits may contain the same samples, for example the predictions of several models. In this
    case, all combinations of scores and splits are tested together. Otherwise, the scores of each
    split are tested separately.
    """
    metric = choose_tested_metric(results)
    if metric is None or parts[0].intervals.kind == "none":
        return None
    repeated = {score for group in equal_rankings for score in group[1:]}
    by_split: dict[Split, list[InMemorySplit]] = {}
    for part in parts:
        if part.score not in repeated and not part.reason_not_applicable(metric):
            by_split.setdefault(part.split, []).append(part)
    if sum(map(len, by_split.values())) < 2:
        return None
    level = parts[0].intervals.level
    plan = Plan.from_options(level=level, bootstrap=0, rng=0, bands=False, skip_slow=True)
    rows_by_split = _rows_of_same_samples([group[0].predictions for group in by_split.values()])
    if rows_by_split is None:
        families = [{(p.split, p.score): p.s for p in group} for group in by_split.values()]
    else:
        pairs_of_rows = zip(by_split.values(), rows_by_split, strict=True)
        families = [
            {
                (p.split, p.score): _reorder(p.s, rows)
                for group, rows in pairs_of_rows
                for p in group
            }
        ]
    clusters = [group[0].cluster for group in by_split.values()]
    differences: list[ScoreDifference] = []
    for samples, cluster in zip(families, clusters, strict=False):
        differences += _test_pairs(samples, cluster, metric, plan)
    return ScoreTests(
        metric=metric.name,
        level=level,
        differences=tuple(differences),
        has_same_samples=rows_by_split is not None,
    )


def _rows_of_same_samples(
    predictions: Sequence[Predictions],
) -> list[IntArray | None] | None:
    """Return the rows of each split in the order of the first split; None if samples differ."""
    first = predictions[0]
    rows: list[IntArray | None] = [None]
    for other in predictions[1:]:
        rows_of_other = rows_of_same_samples(first, other)
        if rows_of_other is None:
            return None
        rows.append(rows_of_other)
    return rows


def _reorder(s: Scored, rows: IntArray | None) -> Scored:
    if rows is None or np.array_equal(rows, np.arange(rows.size)):
        return s
    weight = None if s.weight is None else s.weight[rows]
    return Scored(s.confidence[rows], s.loss[rows], weight)


def _test_pairs(
    samples: dict[ScoreKey, Scored], cluster: IntArray | None, metric: Metric, plan: Plan
) -> Iterator[ScoreDifference]:
    """Return the tests of all pairs of scores on the same samples, with Holm's adjustment.

    If the number of scores exceeds the maximum, the function tests no pair.
    """
    n_influences = sum(s.n_rows for s in samples.values())
    if not 2 <= len(samples) <= _MAX_SCORES or n_influences > _MAX_INFLUENCES:
        return
    keys = {str(i): key for i, key in enumerate(samples)}
    run = ScoredRun(
        data=(),
        run="",
        scored=dict(zip(keys, samples.values(), strict=True)),
        sample_names=None,
        labels=None,
        cluster=cluster,
        group=None,
    )
    values = compute_values(metric, [run], RowWeights.from_runs([run]))
    for pair in pairs(values, plan):
        yield ScoreDifference(
            keys[pair.first],
            keys[pair.second],
            pair.difference,
            pair.low,
            pair.high,
            pair.adjusted,
            is_significant=bool(pair.better),
        )


# --------------------------------------------------------------------------- identical rankings
#: Two neighboring confidences are tied up to rounding if their difference is at most the first
#: number times the largest confidence. Two rankings have the same ties if the share of samples that
#: are tied in only one ranking is at most the second number.
_ROUNDING = 1e-12
_MAX_SHARE_OF_OTHER_TIES = 0.001


def find_equal_rankings(
    parts: Sequence[InMemorySplit], results: Sequence[Result]
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of scores that sort the samples of every split in the same order.

    The function ignores rounding errors. For example, rounding may give the largest probability and
    its logarithm different ties.
    """
    metric = choose_tested_metric(results)
    if metric is None:
        return ()
    values: dict[str, list[float]] = {}
    for result in results:
        if result.metric.name == metric.name:
            values.setdefault(result.score, []).append(result.value)
    samples: dict[str, dict[Split, Scored]] = {}
    for part in parts:
        samples.setdefault(part.score, {})[part.split] = part.s
    groups: dict[str, list[str]] = {}
    grouped: set[str] = set()
    for first, second in combinations(values, 2):
        # The metric is already available, and most pairs of different rankings differ in it.
        have_equal_values = len(values[first]) == len(values[second]) and np.allclose(
            values[first], values[second], rtol=1e-6, atol=0.0, equal_nan=True
        )
        if not have_equal_values or {first, second} & grouped:
            continue
        if _have_equal_rankings(samples[first], samples[second]):
            groups.setdefault(first, [first]).append(second)
            grouped.add(second)
    return tuple(map(tuple, groups.values()))


def _have_equal_rankings(first: dict[Split, Scored], second: dict[Split, Scored]) -> bool:
    return first.keys() == second.keys() and all(
        _is_same_order(first[split].confidence, second[split].confidence) for split in first
    )


def _is_same_order(first: Array, second: Array) -> bool:
    """Return whether two scores sort the samples in the same order, with the same ties."""
    order = np.lexsort((second, first))
    steps = [np.diff(np.asarray(x, np.float64)[order]) for x in (first, second)]
    tolerances = [_ROUNDING * max(float(np.abs(x).max()), 1.0) for x in (first, second)]
    is_reversed = steps[1] < -tolerances[1]
    is_tied = [np.abs(x) <= tolerance for x, tolerance in zip(steps, tolerances, strict=True)]
    n_other_ties = np.count_nonzero(is_tied[0] != is_tied[1])
    has_same_ties = int(n_other_ties) <= _MAX_SHARE_OF_OTHER_TIES * order.size
    return has_same_ties and not bool(is_reversed.any())
