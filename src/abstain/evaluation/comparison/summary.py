"""Summarize each method by its difference from the reference, its rank and a conclusion."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from abstain.evaluation.comparison.pairs import interval_of_difference
from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.tables import (
    MEAN,
    Conclusion,
    Estimate,
    PairedDifference,
    SummaryRow,
    best_methods,
    sort_best_first,
)
from abstain.evaluation.comparison.values import MethodValues
from abstain.inference.multiplicity import adjust, levels_of_tests
from abstain.inference.paired import interval_of_test

_NAN = math.nan
_NO_INTERVAL = (_NAN, _NAN)


@dataclass(frozen=True)
class ReferenceTest:
    """A test of one method against the reference, with an unadjusted p-value."""

    p_value: float
    #: Whether the value of the method is better than the value of the reference.
    is_better: bool
    #: Function of the significance level and of the result of the test that returns the interval.
    interval: Callable[[float, bool], tuple[float, float]] | None = None
    note: str = ""


def summarize(
    method_values: MethodValues,
    estimates: Sequence[Estimate],
    pairs: Sequence[PairedDifference],
    plan: Plan,
) -> Iterator[SummaryRow]:
    """Yield the summary of each method on one data set; the best method comes first."""
    run = MEAN if len(method_values.runs) > 1 else method_values.runs[0].run
    ranked = sort_best_first(e for e in estimates if e.run == run)
    if not ranked:
        return
    reference = plan.reference or (best_methods(ranked) or [ranked[0].method])[0]
    test_name = pairs[0].test if pairs else ""
    deciding_pairs = [pair for pair in pairs if pair.test == test_name]
    test_reference = partial(_test_of_pair, method_values, plan=plan)
    yield from summary_rows(ranked, reference, deciding_pairs, test_reference, plan)


def _test_of_pair(
    method_values: MethodValues, pair: PairedDifference, method: str, *, plan: Plan
) -> ReferenceTest:
    """Return the test of a pair of methods, oriented as a test of `method` against the other."""
    if method == pair.first:
        reference, difference = pair.second, pair.difference
    else:
        reference, difference = pair.first, -pair.difference
    return ReferenceTest(
        p_value=pair.p_value,
        is_better=(difference < 0) == method_values.metric.lower_is_better,
        interval=partial(_interval_of_difference, method_values, plan, (method, reference)),
        note=pair.note,
    )


def _interval_of_difference(
    method_values: MethodValues,
    plan: Plan,
    methods: tuple[str, str],
    alpha: float,
    is_rejected: bool,
) -> tuple[float, float]:
    """Return the interval of the difference of two methods at level 1 - alpha."""
    test = method_values.deciding_test(plan.test)
    if test == "influence":
        return interval_of_difference(method_values, *methods, level=1 - alpha)
    if test == "bootstrap":
        first, second = method_values.select(methods).mean_replicates
        return interval_of_test(first - second, alpha, is_rejected=is_rejected)
    return _NO_INTERVAL


def summary_rows(
    ranked: Sequence[Estimate],
    reference: str,
    pairs: Sequence[PairedDifference],
    test_reference: Callable[[PairedDifference, str], ReferenceTest],
    plan: Plan,
) -> Iterator[SummaryRow]:
    """Yield the summary of each method.

    If the user specified the reference, the p-values are adjusted for the tests against it.
    By default, the reference is the best method, and the p-values are adjusted for all pairs.
    """
    pair_by_method = {}
    for pair in pairs:
        if pair.first == reference:
            pair_by_method[pair.second] = pair
        elif pair.second == reference:
            pair_by_method[pair.first] = pair
    # The adjustment uses all p-values of the family of tests.
    family = list(pair_by_method.values()) if plan.reference else list(pairs)
    p_values = [pair.p_value for pair in family]
    adjusted = adjust(p_values, method=plan.adjustment).tolist()
    levels = levels_of_tests(p_values, alpha=plan.alpha, method=plan.adjustment).tolist()
    index_by_pair = {(pair.first, pair.second): i for i, pair in enumerate(family)}
    rows = []
    value_of_reference = next((e.value for e in ranked if e.method == reference), _NAN)
    for estimate in ranked:
        row = SummaryRow(
            metric=estimate.metric,
            data=estimate.data,
            method=estimate.method,
            reference=reference,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            level=estimate.level,
            difference=estimate.value - value_of_reference,
            n_tests=len(family),
            test=pairs[0].test if pairs else "",
            lower_is_better=estimate.lower_is_better,
            note=estimate.note,
        )
        if estimate.method == reference:
            row = replace(row, conclusion="reference")
        elif estimate.method in pair_by_method:
            pair = pair_by_method[estimate.method]
            i = index_by_pair[pair.first, pair.second]
            test = test_reference(pair, estimate.method)
            row = _with_test(row, test, adjusted[i], levels[i], plan)
        rows.append(row)
    yield from _with_rank_bounds(rows, pairs)


def _with_test(
    row: SummaryRow, test: ReferenceTest, adjusted: float, alpha: float, plan: Plan
) -> SummaryRow:
    """Add the test against the reference to a row."""
    if math.isnan(adjusted):
        return replace(row, note=test.note or row.note)
    is_rejected = adjusted < plan.alpha and row.difference != 0
    conclusion: Conclusion = "not significantly different"
    if is_rejected:
        conclusion = "significantly better" if test.is_better else "significantly worse"
    low, high = test.interval(alpha, is_rejected) if test.interval else _NO_INTERVAL
    return replace(
        row,
        difference_low=low,
        difference_high=high,
        difference_level=1 - alpha,
        p_value=test.p_value,
        adjusted=adjusted,
        conclusion=conclusion,
    )


def _with_rank_bounds(
    rows: Sequence[SummaryRow], pairs: Sequence[PairedDifference]
) -> Iterator[SummaryRow]:
    """Add bounds of the ranks, which follow from the significant differences, to the rows.

    If b of k methods are significantly better than a method and w are significantly worse, the
    rank of this method is between 1 + b and k - w.
    """
    if not pairs:
        yield from rows
        return
    beaten_by: Mapping[str, set[str]] = {row.method: set() for row in rows}
    better_than: Mapping[str, set[str]] = {row.method: set() for row in rows}
    for winner, loser in _significant_pairs(rows, pairs):
        better_than[winner].add(loser)
        beaten_by[loser].add(winner)
    for row in rows:
        if math.isnan(row.value):
            yield row
            continue
        yield replace(
            row,
            rank_low=1 + len(beaten_by[row.method]),
            rank_high=len(rows) - len(better_than[row.method]),
        )


def _significant_pairs(
    rows: Sequence[SummaryRow], pairs: Sequence[PairedDifference]
) -> Iterator[tuple[str, str]]:
    """Yield the better and the worse method of each significantly different pair."""
    reference = rows[0].reference
    is_specified = rows[0].n_tests < len(pairs)
    for pair in pairs:
        # The tests against a specified reference replace the tests of these pairs.
        is_replaced = is_specified and reference in {pair.first, pair.second}
        if pair.better and not is_replaced:
            yield pair.better, pair.second if pair.better == pair.first else pair.first
    for row in rows:
        if row.conclusion == "significantly better":
            yield row.method, reference
        elif row.conclusion == "significantly worse":
            yield reference, row.method
