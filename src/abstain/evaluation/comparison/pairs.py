"""Every pair of methods on one data set, by each test that was asked for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any

import numpy as np

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.comparison.plan import TEST_NAMES, Plan
from abstain.evaluation.comparison.tables import PairedDifference
from abstain.evaluation.comparison.values import MethodValues
from abstain.inference.differences import (
    Differences,
    PairedNumbers,
    compare_pairs,
    warnings_by_pair,
)
from abstain.inference.multiplicity import adjust
from abstain.inference.paired import (
    REPLICATES_WARNING,
    BootstrapDifference,
    bootstrap_differences,
    wilcoxon_on_replicates,
)
from abstain.inference.permutation import permutation_test, permutation_test_by_ranks
from abstain.inference.small_samples import few_clusters_warning
from abstain.metrics import Metric
from abstain.metrics.rank_weights import augrc_weight
from abstain.typing import Array, FloatArray

#: The literature's test, kept under its own name.
ON_REPLICATES = "Wilcoxon on bootstrap replicates"

#: Goes with the pairs of the permutation test.
_SWAPS = "swaps give no interval: see that of another test of this pair"


@dataclass(frozen=True, eq=False, kw_only=True)
class _Tested:
    """What one test tells of every pair, in the order of `combinations`: a column a field."""

    p_value: Sequence[float]
    notes: Sequence[str]
    #: The other numbers of a pair, where the test tells them.
    more: dict[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Family:
    """The pairs of one metric on one data set, which are adjusted together."""

    sampled: MethodValues
    plan: Plan

    def two(self) -> Iterator[tuple[int, int]]:
        """Return each pair once."""
        return combinations(range(len(self.sampled.methods)), 2)

    def told(self, test: str, found: _Tested) -> Iterator[PairedDifference]:
        """Adjust the p-values for the number of pairs; name the better method where one is."""
        metric, methods, mean = (
            self.sampled.metric,
            self.sampled.methods,
            self.sampled.mean.tolist(),
        )
        adjusted = adjust(found.p_value, method=self.plan.adjustment).tolist()
        columns = [
            dict(zip(found.more, row, strict=True))
            for row in zip(*found.more.values(), strict=True)
        ]
        known = columns or [{}] * len(adjusted)
        rows = zip(self.two(), found.p_value, adjusted, found.notes, known, strict=True)
        for (i, j), p_value, p, note, more in rows:
            apart = mean[i] - mean[j]
            lead = i if (apart < 0) == metric.lower_is_better else j
            yield PairedDifference(
                metric=metric.name,
                data=self.sampled.data,
                first=methods[i],
                second=methods[j],
                difference=apart,
                p_value=p_value,
                adjusted=p,
                adjustment=self.plan.adjustment,
                test=test,
                better=methods[lead] if p < self.plan.alpha and apart != 0 else "",
                note=note,
                **more,
            )


def pairs(sampled: MethodValues, plan: Plan) -> Iterator[PairedDifference]:
    """Return all pairs by every test there are numbers for; the deciding test comes first."""
    if not sampled.is_defined:
        return
    family = _Family(sampled, plan)
    made: dict[str, Callable[[_Family], _Tested]] = {}
    if sampled.shares is not None:
        made["influence"] = _by_influence
    if sampled.replicates is not None:
        made["bootstrap"] = _by_bootstrap
    if plan.test == "permutation":
        made["permutation"] = _by_permutation
    for test in sorted(made, key=lambda test: test != sampled.deciding_test(plan.test)):
        yield from family.told(TEST_NAMES[test], made[test](family))
    if (
        plan.published_test
        and sampled.replicates is not None
        and not any(sampled.unreliable_reasons)
    ):
        yield from _on_replicates(family)


# ------------------------------------------------------------------------------------ influence
def differences_of(sampled: MethodValues, plan: Plan) -> Differences:
    """Return the differences of the means of every two methods by their influences."""
    every = range(len(sampled.methods))
    failures, shares = (
        [sampled.fewest_failures(i) for i in every],
        sampled.shares_at_fixed_threshold,
    )
    shares = sampled.shares if shares is None else shares
    if shares is None:
        raise InputError(f"{sampled.metric.name} has no influence function")
    units = sampled.n_units_per_pair
    clusters = [None] * units.size if sampled.runs[0].cluster is None else units.tolist()
    pairs = PairedNumbers.all_pairs(
        sampled.mean,
        shares,
        bounds=sampled.bounds,
        failures=failures,
        level=plan.level,
        n_units=units.astype(np.float64),
    )
    return compare_pairs(
        pairs,
        lower_is_better=sampled.metric.lower_is_better,
        bounds=sampled.bounds,
        warnings=warnings_by_pair(
            failures, heavy_tailed=sampled.metric.measurement.heavy_tailed, clusters=clusters
        ),
        max_shifts=None if sampled.shares_at_fixed_threshold is None else sampled.jump_effects,
        no_error_at_threshold=sampled.metric.measurement.no_error_at_threshold,
        ratios=not plan.skip_slow or sampled.replicates is not None,
    )


def _by_influence(family: _Family) -> _Tested:
    found = differences_of(family.sampled, family.plan)
    more = {
        "low": found.low,
        "high": found.high,
        "standard_error": found.standard_error,
        "ratio": found.ratio,
        "ratio_low": found.ratio_low,
        "ratio_high": found.ratio_high,
        "superiority": found.superiority,
    }
    return _Tested(
        p_value=found.p_value.tolist(),
        notes=_with_reasons(family, found.notes),
        more={name: column.tolist() for name, column in more.items()},
    )


def _with_reasons(family: _Family, notes: Sequence[str]) -> list[str]:
    """Replace the notes of pairs of which a method allows no test by the reason."""
    why = family.sampled.unreliable_reason
    return [why(i, j) or note for (i, j), note in zip(family.two(), notes, strict=True)]


# ------------------------------------------------------------------------------------ resamples
#: What resamples tell of a pair beside its p-value.
_RESAMPLED = ("low", "high", "standard_error", "ratio", "ratio_low", "ratio_high", "superiority")


def _by_bootstrap(family: _Family) -> _Tested:
    sampled = family.sampled
    found = bootstrap_differences(
        sampled.mean_replicates,
        sampled.mean,
        lower_is_better=sampled.metric.lower_is_better,
        level=family.plan.level,
    )
    seen = [
        _spread_seen(own, sampled.mean[[i, j]])
        for own, (i, j) in zip(found, family.two(), strict=True)
    ]
    nan = float("nan")
    notes = [
        "; ".join(filter(None, (own.note, few_clusters_warning(sampled.n_clusters(i, j)))))
        if varied
        else "every resample shows the same difference, so its spread cannot be seen"
        for own, varied, (i, j) in zip(found, seen, family.two(), strict=True)
    ]
    told = list(zip(found, seen, strict=True))
    return _Tested(
        p_value=[own.p_value if varied else nan for own, varied in told],
        notes=_with_reasons(family, notes),
        more={
            name: [getattr(own, name) if varied else nan for own, varied in told]
            for name in _RESAMPLED
        },
    )


def _spread_seen(found: BootstrapDifference, values: FloatArray) -> bool:
    """Tell whether resamples vary; that they all show the same difference proves nothing."""
    least = 1e-12 * float(np.abs(values).max())
    return not (found.standard_error <= least < abs(found.difference))


def _on_replicates(family: _Family) -> Iterator[PairedDifference]:
    """Run the literature's test, one-sided for both directions of each pair."""
    sampled, plan = family.sampled, family.plan
    lower, methods, mean = sampled.metric.lower_is_better, sampled.methods, sampled.mean.tolist()
    raw = wilcoxon_on_replicates(sampled.mean_replicates, lower_is_better=lower, adjustment="none")
    off = ~np.eye(len(methods), dtype=np.bool_)
    adjusted = raw.copy()
    adjusted[off] = adjust(raw[off], method=plan.adjustment)
    for i, j in permutations(range(len(methods)), 2):
        yield PairedDifference(
            metric=sampled.metric.name,
            data=sampled.data,
            first=methods[i],
            second=methods[j],
            difference=mean[i] - mean[j],
            p_value=float(raw[i, j]),
            adjusted=float(adjusted[i, j]),
            adjustment=plan.adjustment,
            test=ON_REPLICATES,
            better=methods[i] if adjusted[i, j] < plan.alpha else "",
            valid=False,
            note=REPLICATES_WARNING,
        )


# ------------------------------------------------------------------------------------ swaps
def _by_permutation(family: _Family) -> _Tested:
    scored = _for_swaps(family.sampled)
    unit, metric = family.sampled.runs[0], family.sampled.metric
    size = family.plan.n_draws("permutation", len(scored))
    p_values = []
    for i, j in family.two():
        one, two = ((s.confidence, s.loss) for s in (scored[i], scored[j]))
        options: dict[str, Any] = {
            "permutations": size,
            "rng": family.plan.seed,
            "cluster": unit.cluster,
        }
        # The weight of a rank is the rank itself: no sort for each swap.
        if metric.measurement.rank_weight is augrc_weight:
            found = permutation_test_by_ranks(lambda u: u, one, two, **options)
        else:
            found = permutation_test(_statistic(metric), one, two, **options)
        p_values.append(found.p_value)
    return _Tested(p_value=p_values, notes=[_SWAPS] * len(p_values))


def _for_swaps(sampled: MethodValues) -> list[Scored]:
    scored = list(sampled.runs[0].scored.values())
    plain = sampled.metric.measurement.rank_based and not sampled.metric.measurement.needs - {
        need for need in sampled.metric.measurement.needs if need.name.endswith("LOSS")
    }
    weighted = any(s.weight is not None for s in scored)
    if len(sampled.runs) > 1 or weighted or not plain:
        raise InputError(
            "test='permutation' swaps the ranks of two scores: it needs one run, no weights, and "
            f"a metric of ranks and losses; got {sampled.metric.name!r} over "
            f"{len(sampled.runs)} run(s). Use 'influence' or 'bootstrap'."
        )
    return scored


def _statistic(metric: Metric) -> Callable[[Array, Array], float]:
    return lambda confidence, loss: float(metric.compute(Scored(confidence, loss)).value)
