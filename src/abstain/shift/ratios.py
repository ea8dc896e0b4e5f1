"""`DensityRatios`: how much more often each calibration sample comes up where a rule is used."""

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import DomainError, InputError
from abstain.typing import AnyArray, BoolArray, FloatArray, Rng

#: Where ratios come from, and how that is said.
Origin = Literal["given", "classifier", "labels"]
_SAID: Final = {
    "given": "by the density ratios given",
    "classifier": "by density ratios that a classifier estimated",
    "labels": "by class ratios estimated from predicted classes",
}

#: The part of the samples, the heaviest, of which is said how much they carry.
_TOP: Final = 0.01


@dataclass(frozen=True, eq=False)
class DensityRatios:
    """How much more often each calibration sample comes up where a rule is used.

    Importance weights: dQ/dP at each sample, P the law of the calibration data and Q that of the
    data where the rule is used. No frequencies: a ratio of 3 is one sample, not three.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Finite, not negative, not all zero; only their proportions matter.
    largest : float
        What no ratio exceeds, of samples that were not seen too. At least the largest value.
    origin : {"given", "classifier", "labels"}
        Whether somebody knows them, a classifier told the two data sets apart, or the classes that
        were predicted say how often each class comes up.
    bounded : bool
        Whether `largest` is known; otherwise it is the largest of the values.
    cut : float
        The share of the weight that clipping cut off, in [0, 1).
    standard_error : float or None
        Of a ratio, where it is estimated with one: the largest over the classes.

    Raises
    ------
    InputError, ShapeError, DomainError
        Values that are no such ratios, or above `largest`; an origin that is none.

    Examples
    --------
    >>> from abstain.shift import density_ratios
    >>> ratios = density_ratios([0.5, 0.5, 1.0, 2.0], largest=4.0)
    >>> ratios.n, round(ratios.effective_size, 2), ratios.expected_draws
    (4, 2.91, 1.0)
    """

    values: FloatArray
    largest: float
    origin: Origin = "given"
    bounded: bool = False
    cut: float = 0.0
    standard_error: float | None = None

    def __post_init__(self) -> None:
        """Refuse what would void a guarantee without a word."""
        checks.one_of(self.origin, "origin", tuple(_SAID))
        values = _validated(self.values)
        top = checks.positive(self.largest, "largest")
        if top < values.max():
            _refuse_above(values, top)
        object.__setattr__(self, "values", read_only(values))

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.values.size)

    @property
    def effective_size(self) -> float:
        """How many equal samples are worth as much: (sum of ratios)^2 / sum of squared ratios."""
        scaled = self.values / self.values.max()
        return float(scaled.sum() ** 2 / (scaled @ scaled))

    @property
    def expected_draws(self) -> float:
        """How many samples `draw` keeps on average: the sum of the ratios by the largest."""
        return float((self.values / self.largest).sum())

    @property
    def top_share(self) -> float:
        """The share of the weight that the heaviest 1 % of the samples carry (at least one)."""
        count = max(1, int(_TOP * self.n))
        return float(np.sort(self.values)[-count:].sum() / self.values.sum())

    @property
    def heaviest(self) -> int:
        """The index of the sample with the largest ratio; the first of several."""
        return int(np.argmax(self.values))

    def draw(self, rng: Rng = None) -> BoolArray:
        """Draw a sample of the law where the rule is used: keep each with its ratio by the largest.

        Parameters
        ----------
        rng : int, Generator or None
            Of the draw.

        Returns
        -------
        ndarray of shape (n,)
            Booleans. The samples kept are independent draws from Q where the ratios are exact and
            none exceeds `largest`.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([1.0, 0.0, 1.0], largest=1.0).draw(0).tolist()
        [True, False, True]
        """
        # A stream of its own: a seed that drew the data too must not draw the same numbers again.
        own = named_generator(as_seed(rng), "density ratios")
        out: BoolArray = own.random(self.n) * self.largest < self.values
        return out

    def rows(self, selection: AnyArray) -> "DensityRatios":
        """Return the ratios of some of the samples; what no ratio exceeds stays the same.

        Parameters
        ----------
        selection : array
            A mask or indices.

        Returns
        -------
        DensityRatios
            Of these samples.

        Raises
        ------
        ShapeError, DomainError
            No samples; all of them with a ratio of 0.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([0.5, 0.5, 2.0]).rows([0, 1]).largest
        2.0
        """
        return replace(self, values=self.values[np.asarray(selection)])

    def __str__(self) -> str:
        """Say what they are worth, and which are extreme."""
        mean, at = float(self.values.mean()), self.heaviest
        said = (
            f"{self.n} samples are worth {self.effective_size:.0f} {_SAID[self.origin]}. The "
            f"heaviest, sample {at}, counts {self.values[at] / mean:.3g} times the mean; the "
            f"heaviest 1 % carry {100 * self.top_share:.3g} % of the weight; "
        )
        if self.bounded:
            said += f"no ratio is above {self.largest / mean:.3g} times the mean"
        else:
            said += "the largest ratio seen stands for the largest there is"
        if self.standard_error is not None:
            said += f"; their standard errors are at most {self.standard_error:.2g}"
        return said + (f"; {100 * self.cut:.2g} % of the weight was cut off" if self.cut else "")

    @property
    def target(self) -> str:
        """Whom a promise that rests on them is about, in words."""
        said = f"data like the calibration data reweighted {_SAID[self.origin]}"
        return said + (", as far as these were not cut off" if self.cut else "")


def density_ratios(
    ratio: AnyArray,
    *,
    largest: float | None = None,
    clip: float | None = None,
    origin: Origin = "given",
) -> DensityRatios:
    """Take density ratios of calibration samples, to guarantee a rule where it will be used.

    Answers: what are these samples worth, once each counts as often as it comes up there?

    Parameters
    ----------
    ratio : array of shape (n,)
        Density of the data where the rule is used, by that of the calibration data, at each
        calibration sample; up to a constant. Not negative, not all zero.
    largest : float, optional
        What no ratio exceeds, in the same unit. A guarantee needs it; by default the largest of
        `ratio`, which is a guess.
    clip : float, optional
        Cut ratios above so many times their mean. The promise is then about another law: the
        generalized risk where the rule is used may be more by the share that was cut off, as far
        as the samples tell (`cut`).
    origin : {"given", "classifier", "labels"}, default="given"
        How the ratios were had, for the promise in words.

    Returns
    -------
    DensityRatios
        What `ratio=` of the rules takes.

    Raises
    ------
    InputError, ShapeError, DomainError
        Not a finite vector; negative or all zero; `largest` below the largest ratio; `clip` not
        above 1; `largest` and `clip` together.

    Notes
    -----
    Rejection sampling keeps a sample with the chance ratio / largest, and what is kept is drawn
    from the law where the rule is used [1]_. So one ratio of 100 costs as much as 99 % of the
    samples: `expected_draws` says what is left.

    References
    ----------
    .. [1] Park, Dobriban, Lee and Bastani (2022), PAC prediction sets under covariate shift,
       ICLR, https://arxiv.org/abs/2106.09848

    Examples
    --------
    >>> from abstain.shift import density_ratios
    >>> ratios = density_ratios([0.2, 0.4, 0.4, 9.0], clip=2.0)
    >>> ratios.values.tolist(), round(ratios.cut, 2)
    ([0.2, 0.4, 0.4, 5.0], 0.4)
    """
    values = _validated(ratio)
    if clip is not None:
        if largest is not None:
            raise InputError("give `largest` or `clip`: what is clipped has a largest ratio")
        return _clipped(values, clip, origin)
    top = float(values.max())
    if largest is None:
        return DensityRatios(values, top, origin)
    return DensityRatios(values, checks.positive(largest, "largest"), origin, bounded=True)


def _refuse_above(values: FloatArray, bound: float) -> None:
    at = int(np.argmax(values))
    raise DomainError(
        f"`largest` must be at least every ratio; got {bound!r}, and {values[at]:g} at index {at}. "
        "Raise it (--max-ratio), or cut the ratios with `clip` (--clip)"
    )


def _validated(ratio: AnyArray) -> FloatArray:
    values = checks.finite(checks.vector(ratio, "ratio"), "ratio").astype(np.float64)
    checks.reject_entries("ratio", "must not be negative", values, values < 0)
    checks.finite_sum(values, "ratio")
    if not values.any():
        raise DomainError("`ratio` must not be zero everywhere: no sample is like the data to come")
    return values


def _clipped(values: FloatArray, clip: float, origin: Origin) -> DensityRatios:
    times = checks.number(clip, "clip")
    if times <= 1:
        raise DomainError(f"`clip` must be above 1, a multiple of the mean ratio; got {times!r}")
    bound = times * float(values.mean())
    kept = np.minimum(values, bound)
    cut = max(1.0 - float(kept.sum() / values.sum()), 0.0)
    # Where nothing reaches the bound, it would only make the largest ratio larger than it is.
    largest = min(bound, float(values.max()))
    return DensityRatios(kept, largest, origin, bounded=largest == bound, cut=cut)


def ratios_of(ratio: "AnyArray | DensityRatios", n: int) -> DensityRatios:
    """Return ratios of n samples, validated where they are a bare array."""
    own = getattr(ratio, "ratios", None)
    if isinstance(own, DensityRatios):
        raise InputError(
            f"`ratio` must be ratios, not the {type(ratio).__name__} around them: pass its .ratios"
        )
    found = ratio if isinstance(ratio, DensityRatios) else density_ratios(ratio)
    if found.n != n:
        checks.vector(found.values, "ratio", length=n, reference="confidence")
    return found
