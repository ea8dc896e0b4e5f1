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
from abstain.typing import Array, IntArray, Split

#: Maximum number of scores that are tested together, and maximum number of influences, one for each
#: sample and score.
_MAX_SCORES = 100
_MAX_INFLUENCES = 20_000_000


def choose_tested_metric(results: Iterable[Result]) -> Metric | None:
    """Return the metric for tests: AUGRC, or the first ranking metric with influence functions."""
    testable: dict[str, Metric] = {}
    for result in results:
        metric = result.metric
        is_rank_metric = metric.identity.family in {"area", "ranking"}
        if is_rank_metric and metric.measurement.influence is not None:
            testable.setdefault(metric.name, metric)
    if "augrc" in testable:
        return testable["augrc"]
    return next(iter(testable.values()), None)


def compute_score_tests(
    parts: Sequence[InMemorySplit],
    results: Sequence[Result],
    equal_rankings: Iterable[tuple[str, ...]],
) -> ScoreTests | None:
    """Return the tests of the differences between all scores, or None without testable pairs.

    If several scores rank the samples in the same order, only the first is tested. If all splits
    contain the same samples, for example the predictions of several models, scores of different
    splits are tested too.
    """
    metric = choose_tested_metric(results)
    if metric is None or parts[0].intervals.kind == "none":
        return None
    repeated: set[str] = set()
    for scores in equal_rankings:
        repeated.update(scores[1:])
    distinct = [part for part in parts if part.score not in repeated]
    tested = [part for part in distinct if not part.reason_not_applicable(metric)]
    if len(tested) < 2:
        return None
    level = parts[0].intervals.level
    plan = Plan.from_options(level=level, bootstrap=0, rng=0, bands=False, skip_slow=True)
    parts_by_split: dict[Split, list[InMemorySplit]] = {}
    for part in tested:
        parts_by_split.setdefault(part.split, []).append(part)
    differences: list[ScoreDifference] = []
    aligned_samples = _align_splits(parts_by_split)
    if aligned_samples is not None:
        differences += _test_pairs(aligned_samples, tested[0].cluster, metric, plan)
    else:
        for parts_of_split in parts_by_split.values():
            samples = {(part.split, part.score): part.s for part in parts_of_split}
            differences += _test_pairs(samples, parts_of_split[0].cluster, metric, plan)
    return ScoreTests(
        metric=metric.name,
        level=level,
        differences=tuple(differences),
        has_same_samples=aligned_samples is not None,
    )


def _align_splits(
    parts_by_split: dict[Split, list[InMemorySplit]],
) -> dict[ScoreKey, Scored] | None:
    """Return the samples of all scores in the order of the first split, or None if they differ."""
    first_split = next(iter(parts_by_split))
    reference = parts_by_split[first_split][0].predictions
    samples: dict[ScoreKey, Scored] = {}
    for split, parts in parts_by_split.items():
        rows = None
        if split != first_split:
            rows = rows_of_same_samples(reference, parts[0].predictions)
            if rows is None:
                return None
        for part in parts:
            samples[split, part.score] = _reorder(part.s, rows)
    return samples


def _reorder(s: Scored, rows: IntArray | None) -> Scored:
    """Reorder the samples by row indices, or keep the order if these are None."""
    if rows is None or np.array_equal(rows, np.arange(rows.size)):
        return s
    weight = None if s.weight is None else s.weight[rows]
    return Scored(s.confidence[rows], s.loss[rows], weight)


def _test_pairs(
    samples: dict[ScoreKey, Scored], cluster: IntArray | None, metric: Metric, plan: Plan
) -> Iterator[ScoreDifference]:
    """Yield the tests of all pairs of scores on the same samples, with Holm's adjustment.

    If there are too many scores or samples, nothing is yielded.
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
            first=keys[pair.first],
            second=keys[pair.second],
            difference=pair.difference,
            low=pair.low,
            high=pair.high,
            adjusted=pair.adjusted,
            is_significant=bool(pair.better),
        )


# --------------------------------------------------------------------------- identical rankings
#: Differences of confidences are rounding errors up to this number times the largest confidence.
_ROUNDING = 1e-12
#: Maximum share of samples that are tied in only one of two equal rankings.
_MAX_SHARE_OF_OTHER_TIES = 0.001


def find_equal_rankings(
    parts: Sequence[InMemorySplit], results: Sequence[Result]
) -> tuple[tuple[str, ...], ...]:
    """Return groups of scores that rank the samples of every split in the same order.

    Rankings that only differ by rounding errors are treated as equal.
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
        if first in grouped or second in grouped:
            continue
        # Values of the metric are available, and they differ for most pairs of different rankings.
        if not _have_equal_values(values[first], values[second]):
            continue
        if _have_equal_rankings(samples[first], samples[second]):
            groups.setdefault(first, [first]).append(second)
            grouped.add(second)
    return tuple(map(tuple, groups.values()))


def _have_equal_values(first: list[float], second: list[float]) -> bool:
    """Return whether the metric of two scores is equal on every split, up to rounding."""
    if len(first) != len(second):
        return False
    return bool(np.allclose(first, second, rtol=1e-6, atol=0.0, equal_nan=True))


def _have_equal_rankings(first: dict[Split, Scored], second: dict[Split, Scored]) -> bool:
    """Return whether two scores have the same splits and rank their samples in the same order."""
    if first.keys() != second.keys():
        return False
    return all(_is_same_order(first[split].confidence, second[split].confidence) for split in first)


def _is_same_order(first: Array, second: Array) -> bool:
    """Return whether two scores rank the samples in the same order, with the same ties."""
    order = np.lexsort((second, first))
    first_steps = np.diff(np.asarray(first, np.float64)[order])
    second_steps = np.diff(np.asarray(second, np.float64)[order])
    first_tolerance = _ROUNDING * max(float(np.abs(first).max()), 1.0)
    second_tolerance = _ROUNDING * max(float(np.abs(second).max()), 1.0)
    if (second_steps < -second_tolerance).any():
        return False
    is_tied_in_first = np.abs(first_steps) <= first_tolerance
    is_tied_in_second = np.abs(second_steps) <= second_tolerance
    n_other_ties = int(np.count_nonzero(is_tied_in_first != is_tied_in_second))
    return n_other_ties <= _MAX_SHARE_OF_OTHER_TIES * order.size
