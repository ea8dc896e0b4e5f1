"""What a comparison was asked to do, checked once."""

from dataclasses import dataclass

from abstain.inference.multiplicity import Adjustment

#: What `compare` may decide by, with the name that the results carry.
TESTS = ("influence", "bootstrap", "permutation")
TEST_NAMES = {
    "influence": "influence function",
    "bootstrap": "paired bootstrap",
    "permutation": "permutation",
}
#: Resamples and permutations where the caller did not say how many but something needs them.
RESAMPLES = 1000
PERMUTATIONS = 2000


@dataclass(frozen=True)
class Plan:
    """The checked options of a comparison.

    Attributes
    ----------
    level : float
        Of the intervals.
    test : str
        One of `TESTS`.
    adjustment : {"holm", "bonferroni", "none"}
        For the number of pairs.
    resamples : int
        As asked for; 0 for none.
    seed : int
        Of everything drawn.
    margin, reference : float and str, or None
        Of the test of non-inferiority.
    bands : bool
        Whether risk-coverage curves with bands are wanted.
    """

    level: float
    test: str
    adjustment: Adjustment
    resamples: int
    seed: int
    margin: float | None
    reference: str | None
    bands: bool = True

    @property
    def alpha(self) -> float:
        """What an adjusted p-value must stay below."""
        return 1.0 - self.level
