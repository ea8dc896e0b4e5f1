"""The checked options of a comparison."""

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

#: The values of the argument `test` of `compare`, with the names of the tests in the results.
TEST_NAMES = {
    "influence": "influence function",
    "bootstrap": "paired bootstrap",
    "permutation": "permutation",
}
#: Default numbers of resamples and of permutations, if a test needs them.
_RESAMPLES, _PERMUTATIONS = 1000, 2000
#: Maximum of the numbers that are chosen automatically.
_MAX_DRAWS = 50_000


@dataclass(frozen=True)
class Plan:
    """The checked options of a comparison."""

    #: Confidence level of the intervals.
    level: float
    #: A key of `TEST_NAMES`.
    test: str = "influence"
    #: Adjustment of the p-values for the number of pairs.
    adjustment: Adjustment = "holm"
    #: Number of resamples that the caller requested; 0 for none.
    resamples: int = 0
    #: Seed of resamples, permutations and normal draws.
    seed: int = 0
    #: Margin of the test of non-inferiority.
    margin: float | None = None
    #: Method that all others are tested against, specified before seeing the values.
    reference: str | None = None
    #: Whether to compute risk-coverage curves with bands.
    bands: bool = True
    #: Whether to run the test of the literature on the resamples, which never decides.
    published_test: bool = False
    #: Whether to skip the slow parts of a comparison of many methods: the curves, the ratios of
    #: pairs without resamples, and the resamples of metrics without an influence function. Such
    #: metrics then have values and ranks, but no intervals.
    skip_slow: bool = False
    #: Displayed rank of tied methods. Tests always use their mean rank.
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
        """Check the options of a caller."""
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
        """The significance level of adjusted p-values."""
        return 1.0 - self.level

    def n_tests(self, n_methods: int) -> int:
        """Return the number of pairs that the p-values are adjusted for."""
        return n_methods * (n_methods - 1) // 2 if self.adjustment != "none" else 1

    def n_deciding_tests(self, n_methods: int) -> int:
        """Return the number of tests of the conclusions: those against a specified reference."""
        if self.reference is None or self.adjustment == "none":
            return self.n_tests(n_methods)
        return n_methods - 1

    def n_draws(self, test: str, n_methods: int) -> int:
        """Return the number of draws with which the smallest adjusted p-value can be significant.

        The maximum is 50,000. The note `few_draws` reports a comparison that needs more.
        """
        # A permutation test counts both tails at once, the bootstrap each tail separately.
        minimum, factor = (_PERMUTATIONS, 2) if test == "permutation" else (_RESAMPLES, 4)
        n_required = ceil(factor * self.n_tests(n_methods) / self.alpha - 1e-9)
        return max(minimum, min(_MAX_DRAWS, n_required))

    def n_resamples(self, n_methods: int, *, has_metric_without_influence: bool) -> int:
        """Return the number of resamples to draw."""
        if self.skip_slow:
            return self.resamples if n_methods > 1 else 0
        if self.resamples:
            return self.resamples
        if self.test == "bootstrap" or has_metric_without_influence:
            return self.n_draws("bootstrap", n_methods)
        return _RESAMPLES if self.published_test else 0
