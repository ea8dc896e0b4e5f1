"""What a comparison was asked to do, checked once, when it is called."""

from dataclasses import dataclass
from math import ceil, inf
from typing import cast

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.errors import InputError
from abstain.inference.intervals import level_of
from abstain.inference.multiplicity import ADJUSTMENTS, Adjustment
from abstain.inference.ranking import TIES, Ties
from abstain.typing import Rng

#: What `compare` may decide by, with the name that the results carry.
TEST_NAMES = {
    "influence": "influence function",
    "bootstrap": "paired bootstrap",
    "permutation": "permutation",
}
#: Resamples and permutations where the caller did not say how many but something needs them.
_RESAMPLES, _PERMUTATIONS = 1000, 2000
#: No more of them are drawn than these unless they were asked for.
_MOST = 50_000


@dataclass(frozen=True)
class Plan:
    """The checked options of a comparison."""

    #: Of the intervals.
    level: float
    #: One of `TEST_NAMES`.
    test: str = "influence"
    #: For the number of pairs.
    adjustment: Adjustment = "holm"
    #: As asked for; 0 for none.
    resamples: int = 0
    #: Of everything drawn.
    seed: int = 0
    #: Of the test of non-inferiority.
    margin: float | None = None
    reference: str | None = None
    #: Whether risk-coverage curves with bands are wanted.
    bands: bool = True
    #: Whether the literature's test on the resamples is wanted, which decides nothing.
    literature: bool = False
    #: Whether what takes most of the time with many methods is left out: the curves, and where
    #: nothing was resampled the ratio of a pair, and resamples of metrics that have no influence
    #: function, which then have values without intervals, ranked as they are.
    lean: bool = False
    #: Which rank equal methods have where ranks are shown; tests take the mean of theirs.
    ties: Ties = "mean"

    @classmethod
    def checked(
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
        literature: bool = False,
        lean: bool = False,
        ties: str = "mean",
    ) -> "Plan":
        """Make a plan of what a caller gave, or refuse it."""
        resamples = 0 if bootstrap == 0 else checks.positive_int(bootstrap, "bootstrap")
        if resamples == 1:
            raise InputError(
                "`bootstrap` must be 0 (none) or at least 2 resamples, better 1000; got 1"
            )
        if (margin is None) != (reference is None):
            raise InputError(
                "`margin` and `reference` go together: how much worse than which method?"
            )
        return cls(
            level=level_of(level),
            test=checks.one_of(test, "test", tuple(TEST_NAMES)),
            adjustment=cast("Adjustment", checks.one_of(adjustment, "adjustment", ADJUSTMENTS)),
            resamples=resamples,
            seed=as_seed(rng),
            margin=None if margin is None else checks.fraction(margin, "margin", high=inf),
            reference=reference,
            bands=bands,
            literature=literature,
            lean=lean,
            ties=cast("Ties", checks.one_of(ties, "ties", TIES)),
        )

    @property
    def alpha(self) -> float:
        """What an adjusted p-value must stay below."""
        return 1.0 - self.level

    def tests(self, methods: int) -> int:
        """Return how many tests the p-values are adjusted for."""
        return methods * (methods - 1) // 2 if self.adjustment != "none" else 1

    def draws(self, test: str, methods: int) -> int:
        """Return how many draws let the smallest p-value there is pass the adjustment.

        No more than 50,000, which is said where that is too few (`few_draws` among the findings).
        """
        # A swap test counts both sides at once, a bootstrap each by itself.
        least, factor = (_PERMUTATIONS, 2) if test == "permutation" else (_RESAMPLES, 4)
        return max(least, min(_MOST, ceil(factor * self.tests(methods) / self.alpha - 1e-9)))

    def resamples_of(self, methods: int, *, needed: bool) -> int:
        """Return how many resamples are drawn; `needed` where some metric has nothing else."""
        if self.lean:
            return self.resamples if methods > 1 else 0
        wanted = self.test == "bootstrap" or needed
        drawn = self.draws("bootstrap", methods) if wanted else 0
        return self.resamples or drawn or (_RESAMPLES if self.literature else 0)
