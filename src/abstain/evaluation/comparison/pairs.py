"""Every pair of methods on one data set, by each test that was asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.comparison.plan import TEST_NAMES, Plan
from abstain.evaluation.comparison.rows import PairedDifference
from abstain.evaluation.comparison.variation import Sampled
from abstain.inference.intervals import Difference, difference_from
from abstain.inference.multiplicity import adjust
from abstain.inference.paired import (
    WARNING,
    BootstrapDifference,
    bootstrap_difference,
    wilcoxon_on_replicates,
)
from abstain.inference.permutation import swap_test, swap_test_by_ranks
from abstain.inference.small_samples import few_clusters
from abstain.metrics import Metric
from abstain.metrics.rank_weights import augrc_weight
from abstain.typing import Array, FloatArray

#: The literature's test, kept under its own name.
ON_REPLICATES = "Wilcoxon on bootstrap replicates"

#: Goes with the pairs of the permutation test.
_SWAPS = "swaps give no interval: see that of another test of this pair"


@dataclass(frozen=True, eq=False)
class _Family:
    """The pairs of one metric on one data set, which are adjusted together."""

    sampled: Sampled
    plan: Plan

    def two(self) -> Iterator[tuple[int, int]]:
        """Return each pair once."""
        return combinations(range(len(self.sampled.methods)), 2)

    def values(self, i: int, j: int) -> tuple[float, float]:
        """Return the metric of both, averaged over the runs."""
        return float(self.sampled.mean[i]), float(self.sampled.mean[j])

    def pair(self, i: int, j: int, test: str, **known: Any) -> PairedDifference:
        """Make the record of a pair, of what is known of it."""
        first, second = self.values(i, j)
        return PairedDifference(
            metric=self.sampled.metric.name,
            data=self.sampled.data,
            first=self.sampled.methods[i],
            second=self.sampled.methods[j],
            difference=first - second,
            test=test,
            **known,
        )

    def adjusted(self, found: list[PairedDifference]) -> Iterator[PairedDifference]:
        """Adjust the p-values for the number of pairs; name the better method where one is."""
        p_values = adjust([pair.p_value for pair in found], method=self.plan.adjustment)
        sign = 1 if self.sampled.metric.lower_is_better else -1
        for pair, p in zip(found, p_values, strict=True):
            lead = pair.first if sign * pair.difference < 0 else pair.second
            apart = p < self.plan.alpha and pair.difference != 0
            yield replace(
                pair,
                adjusted=float(p),
                adjustment=self.plan.adjustment,
                better=lead if apart else "",
            )


def pairs(sampled: Sampled, plan: Plan) -> Iterator[PairedDifference]:
    """Return all pairs by every test there are numbers for; the deciding test comes first."""
    if not sampled.defined:
        return
    family = _Family(sampled, plan)
    made: dict[str, Callable[[_Family], Iterator[PairedDifference]]] = {}
    if sampled.shares is not None:
        made["influence"] = _by_influence
    if sampled.replicates is not None:
        made["bootstrap"] = _by_bootstrap
    if plan.test == "permutation":
        made["permutation"] = _by_permutation
    for test in sorted(made, key=lambda test: test != sampled.deciding(plan.test)):
        yield from family.adjusted(list(made[test](family)))
    if sampled.replicates is not None:
        yield from _on_replicates(family)


# ------------------------------------------------------------------------------------ influence
def difference(sampled: Sampled, i: int, j: int, plan: Plan) -> Difference:
    """Return the difference of the means of two methods by their influences."""
    influences, reaches = sampled.held_on(i, j)
    values = float(sampled.mean[i]), float(sampled.mean[j])
    if plan.lean and sampled.replicates is None:
        # The difference of numbers that are moved alike is the same, and a ratio, which takes
        # nearly all of the time, does not exist where one of them is 0.
        values = values[0] - max(values), values[1] - max(values)
    return difference_from(
        values,
        influences,
        lower_is_better=sampled.metric.lower_is_better,
        level=plan.level,
        failures=sampled.resting(i, j),
        heavy=sampled.metric.heavy,
        bounds=sampled.bounds,
        cluster=sampled.codes(influences),
        reaches=reaches,
    )


def _by_influence(family: _Family) -> Iterator[PairedDifference]:
    for i, j in family.two():
        found = difference(family.sampled, i, j, family.plan)
        yield family.pair(
            i,
            j,
            TEST_NAMES["influence"],
            low=found.low,
            high=found.high,
            standard_error=found.standard_error,
            ratio=found.ratio,
            ratio_low=found.ratio_low,
            ratio_high=found.ratio_high,
            p_value=found.p_value,
            superiority=found.superiority,
            note=found.note,
        )


# ------------------------------------------------------------------------------------ resamples
def _by_bootstrap(family: _Family) -> Iterator[PairedDifference]:
    drawn = family.sampled.mean_replicates
    for i, j in family.two():
        values = family.values(i, j)
        found = bootstrap_difference(
            drawn[i],
            drawn[j],
            values,
            lower_is_better=family.sampled.metric.lower_is_better,
            level=family.plan.level,
        )
        if not _spread_seen(found, values):
            why = "every resample shows the same difference, so its spread cannot be seen"
            yield family.pair(i, j, TEST_NAMES["bootstrap"], note=why)
            continue
        few = few_clusters(family.sampled.clusters(i, j))
        yield family.pair(
            i,
            j,
            TEST_NAMES["bootstrap"],
            p_value=found.p_value,
            low=found.low,
            high=found.high,
            standard_error=found.standard_error,
            superiority=found.superiority,
            note="; ".join(filter(None, (found.note, few))),
            **_ratio(drawn[i], drawn[j], values, family.plan),
        )


def _spread_seen(found: BootstrapDifference, values: tuple[float, float]) -> bool:
    """Tell whether resamples vary; that they all show the same difference proves nothing."""
    least = 1e-12 * max(map(abs, values))
    return not (found.standard_error <= least < abs(found.difference))


def _ratio(
    first: FloatArray, second: FloatArray, values: tuple[float, float], plan: Plan
) -> dict[str, float]:
    """Return the ratio with its percentile interval, where all values are above zero."""
    both = np.isfinite(first) & np.isfinite(second)
    if min(values) <= 0 or not both.any() or min(first[both].min(), second[both].min()) <= 0:
        return {}
    tail = (1 - plan.level) / 2
    low, high = np.quantile(first[both] / second[both], [tail, 1 - tail])
    return {"ratio": values[0] / values[1], "ratio_low": float(low), "ratio_high": float(high)}


def _on_replicates(family: _Family) -> Iterator[PairedDifference]:
    """Run the literature's test, one-sided for both directions of each pair."""
    sampled, plan = family.sampled, family.plan
    lower = sampled.metric.lower_is_better
    raw = wilcoxon_on_replicates(sampled.mean_replicates, lower_is_better=lower, adjustment="none")
    off = ~np.eye(len(sampled.methods), dtype=np.bool_)
    adjusted = raw.copy()
    adjusted[off] = adjust(raw[off], method=plan.adjustment)
    for i, j in permutations(range(len(sampled.methods)), 2):
        yield family.pair(
            i,
            j,
            ON_REPLICATES,
            p_value=float(raw[i, j]),
            adjusted=float(adjusted[i, j]),
            adjustment=plan.adjustment,
            better=sampled.methods[i] if adjusted[i, j] < plan.alpha else "",
            valid=False,
            note=WARNING,
        )


# ------------------------------------------------------------------------------------ swaps
def _by_permutation(family: _Family) -> Iterator[PairedDifference]:
    scored = _for_swaps(family.sampled)
    unit, metric = family.sampled.units[0], family.sampled.metric
    size = family.plan.draws("permutation", len(scored))
    for i, j in family.two():
        one, two = ((s.confidence, s.loss) for s in (scored[i], scored[j]))
        options: dict[str, Any] = {
            "permutations": size,
            "rng": family.plan.seed,
            "cluster": unit.cluster,
        }
        # The weight of a rank is the rank itself: no sort for each swap.
        if metric.rank_weight is augrc_weight:
            found = swap_test_by_ranks(lambda u: u, one, two, **options)
        else:
            found = swap_test(_statistic(metric), one, two, **options)
        yield family.pair(i, j, TEST_NAMES["permutation"], p_value=found.p_value, note=_SWAPS)


def _for_swaps(sampled: Sampled) -> list[Scored]:
    scored = list(sampled.units[0].scored.values())
    plain = sampled.metric.rank_based and not sampled.metric.needs - {
        need for need in sampled.metric.needs if need.name.endswith("LOSS")
    }
    weighted = any(s.weight is not None for s in scored)
    if len(sampled.units) > 1 or weighted or not plain:
        msg = (
            "test='permutation' swaps the ranks of two scores: it needs one run, no weights, and "
            f"a metric of ranks and losses; got {sampled.metric.name!r} over "
            f"{len(sampled.units)} run(s). Use 'influence' or 'bootstrap'."
        )
        raise InputError(msg)
    return scored


def _statistic(metric: Metric) -> Callable[[Array, Array], float]:
    return lambda confidence, loss: float(metric.compute(Scored(confidence, loss)).value)
