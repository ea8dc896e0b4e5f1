"""`CascadePlan`: the limits and costs of a cascade."""

from dataclasses import dataclass

from abstain._foundation import records
from abstain._foundation.records import (
    Fraction,
    NonNegative,
    NonNegativeInt,
    OpenFraction,
    PositiveInt,
)
from abstain.errors import DomainError, InputError
from abstain.thresholds.cascade.capacity import daily_share


@dataclass(frozen=True)
class CascadePlan:
    """Limits of risk and capacity, costs, and the split of the calibration samples.

    Attributes
    ----------
    max_risk : float
        The largest mean loss of all answers, including those of the person.
    delta : float
        The probability, over calibration sets, that the guarantee may fail.
    capacity : float
        The largest share of the samples that may go to the person; 1 for no limit, 0 for none.
    reviews, arrivals, overflow : int, int, float or None
        Daily number of reviews, daily number of samples, and share of days with more reviews, if
        `capacity` follows from them.
    person_cost, error_cost : float
        Cost of a review, and of a loss of 1.
    person_error : float or None
        Assumed error rate of the person; None if it is measured.
    ordered_by : float
        Share of the calibration samples that order the candidate thresholds; the others test them.
    seed : int
        Seed of the split of the samples.
    """

    max_risk: OpenFraction
    delta: OpenFraction
    capacity: Fraction = 1.0
    reviews: NonNegativeInt | None = None
    arrivals: PositiveInt | None = None
    overflow: OpenFraction | None = None
    person_cost: NonNegative = 1.0
    error_cost: NonNegative = 0.0
    person_error: Fraction | None = 0.0
    ordered_by: OpenFraction = 0.5
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        """Validate every field, and the fields of a day against each other."""
        records.check(self, owner="a cascade")
        is_set = [x is not None for x in (self.reviews, self.arrivals, self.overflow)]
        if any(is_set) and not all(is_set):
            raise InputError(
                "`reviews`, `arrivals` and `overflow` of a cascade go together; one is missing"
            )
        if self.reviews is None or self.arrivals is None or self.overflow is None:
            return
        share = daily_share(self.reviews, self.arrivals, overflow=self.overflow)
        if abs(share - self.capacity) > 1e-9:
            raise DomainError(
                f"`capacity` of a cascade must be {share!r}, which follows from the daily numbers; "
                f"got {self.capacity!r}"
            )

    @property
    def has_capacity_limit(self) -> bool:
        """Whether the share of reviewed samples is limited."""
        return self.capacity < 1
