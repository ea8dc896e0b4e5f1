"""Check the options of a comparison."""

from dataclasses import dataclass
from math import ceil, inf
from typing import cast

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.errors import InputError
from abstain.inference.intervals import check_level
from abstain.inference.multiplicity import ADJUSTMENTS, Adjustment
from abstain.inference.ranking import TIES, Ties
from abstain.typing import Rng

#: Mapping from values of the argument `test` of `compare` to the names of the tests in the results.
TEST_NAMES = {
    "influence": "influence function",
    "bootstrap": "paired bootstrap",
    "permutation": "permutation",
}
#: Default numbers of resamples and of permutations, if a test needs them.
_RESAMPLES, _PERMUTATIONS = 1000, 2000
#: Maximum number of resamples or permutations that is chosen automatically.
_MAX_DRAWS = 50_000


@dataclass(frozen=True)
class Plan:
    """Validated options of a comparison."""

    #: Confidence level of the intervals.
    level: float
    #: The requested test, which is a key of `TEST_NAMES`.
    test: str = "influence"
    #: Adjustment of the p-values for the number of pairs.
    adjustment: Adjustment = "holm"
    #: Number of resamples that the caller requested, or 0.
    resamples: int = 0
    #: Seed of resamples, permutations and normal draws.
    seed: int = 0
    #: Margin of the test of non-inferiority.
    margin: float | None = None
    #: Method against which all others are tested, specified before the values were known.
    reference: str | None = None
    #: Whether to compute risk-coverage curves with bands.
    bands: bool = True
    #: Whether to run Wilcoxon's test on the resamples, which is not used for conclusions.
    published_test: bool = False
    #: Whether to skip the slow parts of a comparison of many methods. The skipped parts are the
    #: curves, the ratios of pairs without resamples, and the resamples of metrics without an
    #: influence function. Metrics without resamples have values and ranks, but no intervals.
    skip_slow: bool = False
    #: Displayed rank of tied methods. Tests always use the mean rank of tied methods.
    ties: Ties = "mean"

    @classmethod
    def from_options(
        cls,
        *,
        level: float,
        bootstrap: int,
        rng: Rng,
        test: str = "influence",
        adjustment: str = "holm",
        margin: float | None = None,
        reference: str | None = None,
        bands: bool = True,
        published_test: bool = False,
        skip_slow: bool = False,
        ties: str = "mean",
    ) -> "Plan":
        """Validate the arguments of `compare`, and return them as options."""
        resamples = 0 if bootstrap == 0 else checks.positive_int(bootstrap, "bootstrap")
        if resamples == 1:
            raise InputError(
                "`bootstrap` must be 0 (no resamples) or at least 2; got 1. Use 1000 resamples or "
                "more"
            )
        if margin is not None and reference is None:
            raise InputError(
                "`margin` requires `reference`, the method that no other method should be worse "
                "than by the margin"
            )
        return cls(
            level=check_level(level),
            test=checks.one_of(test, "test", tuple(TEST_NAMES)),
            adjustment=cast("Adjustment", checks.one_of(adjustment, "adjustment", ADJUSTMENTS)),
            resamples=resamples,
            seed=as_seed(rng),
            margin=None if margin is None else checks.fraction(margin, "margin", high=inf),
            reference=reference,
            bands=bands,
            published_test=published_test,
            skip_slow=skip_slow,
            ties=cast("Ties", checks.one_of(ties, "ties", TIES)),
        )

    @property
    def alpha(self) -> float:
        """Significance level of the adjusted p-values."""
        return 1.0 - self.level

    def n_tests(self, n_methods: int) -> int:
        """Return the number of pairs for which the p-values are adjusted."""
        return n_methods * (n_methods - 1) // 2 if self.adjustment != "none" else 1

    def n_deciding_tests(self, n_methods: int) -> int:
        """Return the number of tests from which conclusions about the methods are drawn."""
        if self.reference is None or self.adjustment == "none":
            return self.n_tests(n_methods)
        return n_methods - 1

    def n_draws(self, test: str, n_methods: int) -> int:
        """Return the minimum number of draws with which an adjusted p-value can be significant.

        The maximum is 50,000. If fewer draws are made, the comparison has the note `few_draws`.
        """
        # A permutation test counts both tails together. The bootstrap counts each tail separately.
        minimum, factor = (_PERMUTATIONS, 2) if test == "permutation" else (_RESAMPLES, 4)
        n_required = ceil(factor * self.n_tests(n_methods) / self.alpha - 1e-9)
        return max(minimum, min(_MAX_DRAWS, n_required))

    def n_resamples(self, n_methods: int, *, has_metric_without_influence: bool) -> int:
        """Return the number of bootstrap resamples to draw."""
        if self.skip_slow:
            return self.resamples if n_methods > 1 else 0
        if self.resamples:
            return self.resamples
        if self.test == "bootstrap" or has_metric_without_influence:
            return self.n_draws("bootstrap", n_methods)
        return _RESAMPLES if self.published_test else 0
