"""`DensityRatios`: density of the deployed data divided by that of the calibration data."""

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import DomainError, InputError
from abstain.typing import AnyArray, BoolArray, FloatArray, Rng

#: Origin of the ratios, and the phrases for it.
Origin = Literal["given", "classifier", "labels"]
_ORIGIN_PHRASES: Final = {
    "given": "by the density ratios given",
    "classifier": "by density ratios that a classifier estimated",
    "labels": "by class ratios estimated from predicted classes",
}

#: Share of the samples with the largest ratios whose share of the weight is reported.
_TOP_SHARE: Final = 0.01


@dataclass(frozen=True, eq=False)
class DensityRatios:
    """Density ratios (importance weights) of the calibration samples.

    The ratio of a sample is dQ/dP, with the distribution P of the calibration data and Q of the
    deployed data. Ratios are not frequency weights: a sample with ratio 3 is one sample, not three.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Finite, not negative, not all zero; only their proportions matter.
    largest : float
        Upper bound of all ratios, also of samples that were not observed.
    origin : {"given", "classifier", "labels"}
        Whether the ratios are known, estimated by a classifier between the two data sets, or
        estimated from predicted classes.
    bounded : bool
        Whether `largest` is known; otherwise it is the largest of the values.
    cut : float
        Share of the weight that clipping removed, in [0, 1).
    standard_error : float or None
        Largest standard error of an estimated ratio over the classes, if available.

    Raises
    ------
    InputError, ShapeError, DomainError
        If the values are not valid ratios or above `largest`, or the origin is unknown.

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
        """Validate the ratios and their upper bound."""
        checks.one_of(self.origin, "origin", tuple(_ORIGIN_PHRASES))
        values = _check_ratio(self.values)
        largest = checks.positive(self.largest, "largest")
        if largest < values.max():
            _reject_above(values, largest)
        object.__setattr__(self, "values", read_only(values))

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.values.size)

    @property
    def effective_size(self) -> float:
        """Effective sample size: (sum of ratios)^2 / sum of squared ratios."""
        scaled = self.values / self.values.max()
        return float(scaled.sum() ** 2 / (scaled @ scaled))

    @property
    def expected_draws(self) -> float:
        """Expected number of samples that `draw` keeps: sum of the ratios / `largest`."""
        return float((self.values / self.largest).sum())

    @property
    def top_share(self) -> float:
        """Share of the weight of the 1% of the samples with the largest ratios (at least one)."""
        count = max(1, int(_TOP_SHARE * self.n))
        return float(np.sort(self.values)[-count:].sum() / self.values.sum())

    @property
    def heaviest(self) -> int:
        """Index of the sample with the largest ratio; the first one of equals."""
        return int(np.argmax(self.values))

    def draw(self, rng: Rng = None) -> BoolArray:
        """Sample from the deployed distribution by rejection sampling.

        A sample is kept with probability ratio / `largest`.

        Parameters
        ----------
        rng : int, Generator or None
            Random number generator.

        Returns
        -------
        ndarray of shape (n,)
            Booleans. The kept samples are independent draws from Q if the ratios are exact and none
            exceeds `largest`.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([1.0, 0.0, 1.0], largest=1.0).draw(0).tolist()
        [True, False, True]
        """
        # A separate stream, independent of data that were generated with the same seed.
        generator = named_generator(as_seed(rng), "density ratios")
        is_accepted: BoolArray = generator.random(self.n) * self.largest < self.values
        return is_accepted

    def rows(self, selection: AnyArray) -> "DensityRatios":
        """Select the ratios of some samples; the upper bound does not change.

        Parameters
        ----------
        selection : array
            A mask or indices.

        Returns
        -------
        DensityRatios
            The ratios of these samples.

        Raises
        ------
        ShapeError, DomainError
            If there are no samples, or all ratios are 0.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([0.5, 0.5, 2.0]).rows([0, 1]).largest
        2.0
        """
        return replace(self, values=self.values[np.asarray(selection)])

    def __str__(self) -> str:
        """Describe the effective size and the largest ratios."""
        mean, heaviest = float(self.values.mean()), self.heaviest
        text = (
            f"{self.n} samples are worth {self.effective_size:.0f} {_ORIGIN_PHRASES[self.origin]}. "
            f"The heaviest, sample {heaviest}, counts {self.values[heaviest] / mean:.3g} times the "
            f"mean; the heaviest 1 % carry {100 * self.top_share:.3g} % of the weight; "
        )
        if self.bounded:
            text += f"no ratio is above {self.largest / mean:.3g} times the mean"
        else:
            text += "the largest ratio seen stands for the largest there is"
        if self.standard_error is not None:
            text += f"; their standard errors are at most {self.standard_error:.2g}"
        return text + (f"; {100 * self.cut:.2g} % of the weight was cut off" if self.cut else "")

    @property
    def target(self) -> str:
        """Description of the population to which a guarantee with these ratios refers."""
        text = f"data like the calibration data reweighted {_ORIGIN_PHRASES[self.origin]}"
        return text + (", as far as these were not cut off" if self.cut else "")


def density_ratios(
    ratio: AnyArray,
    *,
    largest: float | None = None,
    clip: float | None = None,
    origin: Origin = "given",
) -> DensityRatios:
    """Validate density ratios of calibration samples, for guarantees on deployed data.

    Answers: how many independent samples are equivalent to the reweighted calibration data?

    Parameters
    ----------
    ratio : array of shape (n,)
        Density of the deployed data divided by that of the calibration data, at each calibration
        sample; up to a constant factor. Not negative, not all zero.
    largest : float, optional
        Upper bound of all ratios, in the same unit, which a guarantee requires. By default the
        largest of `ratio`, which is an estimate.
    clip : float, optional
        Clip ratios at this multiple of their mean. The guarantee then refers to another
        distribution: the generalized risk on the deployed data can be larger by the share of the
        weight that clipping removed, which `cut` estimates.
    origin : {"given", "classifier", "labels"}, default="given"
        Origin of the ratios, for the description of the guarantee.

    Returns
    -------
    DensityRatios
        Density ratios for the argument `ratio=` of the rules.

    Raises
    ------
    InputError, ShapeError, DomainError
        If `ratio` is not a finite vector, is negative or all zero, `largest` is below the largest
        ratio, `clip` is not above 1, or `largest` and `clip` are both passed.

    Notes
    -----
    Rejection sampling keeps a sample with probability ratio / largest, and the kept samples follow
    the deployed distribution [1]_. With a largest ratio of 100 and a mean ratio of 1, it removes
    99% of the samples; `expected_draws` is the expected number of kept samples.

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
    values = _check_ratio(ratio)
    if clip is not None:
        if largest is not None:
            raise InputError("pass `largest` or `clip`: clipped ratios have an upper bound")
        return _clip_ratios(values, clip, origin)
    max_ratio = float(values.max())
    if largest is None:
        return DensityRatios(values, max_ratio, origin)
    return DensityRatios(values, checks.positive(largest, "largest"), origin, bounded=True)


def _reject_above(values: FloatArray, bound: float) -> None:
    index = int(np.argmax(values))
    raise DomainError(
        f"`largest` must be at least every ratio; got {bound!r}, and {values[index]:g} at index "
        f"{index}. Increase it (--max-ratio), or clip the ratios with `clip` (--clip)"
    )


def _check_ratio(ratio: AnyArray) -> FloatArray:
    values = checks.finite(checks.vector(ratio, "ratio"), "ratio").astype(np.float64)
    checks.reject_entries("ratio", "must not be negative", values, values < 0)
    checks.finite_sum(values, "ratio")
    if not values.any():
        raise DomainError("`ratio` must not be zero everywhere: no sample is from deployed data")
    return values


def _clip_ratios(values: FloatArray, clip: float, origin: Origin) -> DensityRatios:
    multiple = checks.number(clip, "clip")
    if multiple <= 1:
        raise DomainError(f"`clip` must be above 1, a multiple of the mean ratio; got {multiple!r}")
    bound = multiple * float(values.mean())
    clipped = np.minimum(values, bound)
    cut_share = max(1.0 - float(clipped.sum() / values.sum()), 0.0)
    # If no ratio reaches the bound, the largest ratio is the tighter bound.
    largest = min(bound, float(values.max()))
    return DensityRatios(clipped, largest, origin, bounded=largest == bound, cut=cut_share)


def as_density_ratios(ratio: "AnyArray | DensityRatios", n: int) -> DensityRatios:
    """Return density ratios of n samples; an array is validated."""
    attribute = getattr(ratio, "ratios", None)
    if isinstance(attribute, DensityRatios):
        raise InputError(
            f"`ratio` must be density ratios, not a {type(ratio).__name__}: pass its .ratios"
        )
    ratios = ratio if isinstance(ratio, DensityRatios) else density_ratios(ratio)
    if ratios.n != n:
        checks.vector(ratios.values, "ratio", length=n, reference="confidence")
    return ratios
