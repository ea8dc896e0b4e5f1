"""`CascadePlan`: what is asked of a cascade."""

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
    """What is asked of a cascade: risk, capacity, costs, and how its thresholds are found.

    Attributes
    ----------
    max_risk : float
        The largest mean loss of all answers, those of the person among them.
    delta : float
        The chance, over calibration sets, that the promise may fail.
    capacity : float
        The largest share of the samples that may go to the person; 1 for no limit, 0 for none.
    reviews, arrivals, overflow : int, int, float or None
        What a person can do in a day, of how many samples, and the share of days on which there
        may be more, where `capacity` follows from them.
    person_cost, error_cost : float
        Of a review, and of a loss of 1.
    person_error : float or None
        The share of wrong answers of the person that is assumed; None where it is measured.
    ordered_by : float
        The share of the calibration samples that order the choices of thresholds; the others test.
    seed : int
        By which the samples are divided.
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
        known = [x is not None for x in (self.reviews, self.arrivals, self.overflow)]
        if any(known) and not all(known):
            raise InputError(
                "`reviews`, `arrivals` and `overflow` of a cascade go together; one is missing"
            )
        if self.reviews is None or self.arrivals is None or self.overflow is None:
            return
        share = daily_share(self.reviews, self.arrivals, overflow=self.overflow)
        if abs(share - self.capacity) > 1e-9:
            raise DomainError(
                f"`capacity` of a cascade must be {share!r} by its days; got {self.capacity!r}"
            )

    @property
    def has_capacity_limit(self) -> bool:
        """Whether there is a limit to what may go to the person."""
        return self.capacity < 1
