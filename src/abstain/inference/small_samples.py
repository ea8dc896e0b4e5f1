"""How sure a standard error is of itself, and when failures are too few to trust an interval.

A 0/1 loss puts nearly all of the influence on a few samples, the failures. The standard error is
then an estimate from few numbers, and a normal quantile is too short: t quantiles are needed, with
as many degrees of freedom as the influences themselves support. `degrees_of_freedom` reads them
off (Satterthwaite's rule): 2 (sum u^2)^2 / (sum u^4 - (sum u^2)^2 / n), n - 1 for equal shares,
about twice the number of failures when those alone count and count alike, fewer when a handful
carries the sum.
"""

from typing import Final, NamedTuple, TypeVar

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.typing import FloatArray

#: One number, or one for each of many.
Numbers = TypeVar("Numbers", float, FloatArray)

#: From this many failures up, nominal 95 % intervals cover 93 to 97 % in the simulations.
FEW_FAILURES: Final = 10

#: The same for the AURC and its kin, whose most confident failures weigh without bound.
FEW_FAILURES_HEAVY: Final = 25

#: With fewer independent clusters than this, clustered intervals are too short.
FEW_CLUSTERS: Final = 20


class Failures(NamedTuple):
    """How many failures a number rests on, and among which samples: "" for all."""

    number: int
    among: str = ""


class Expected(NamedTuple):
    """The variance that a model expects, worth so many degrees of freedom beside the data's own."""

    variance: float
    degrees: float


def moderated(variance: float, degrees: float, model: Expected) -> tuple[float, float]:
    """Return the variance and its degrees of freedom, those of the model added.

    A sample without the rare outlier that makes the variance shows too little of it; the model
    knows of it. Never below what the sample shows.
    """
    together = degrees + model.degrees
    mixed = (degrees * variance + model.degrees * model.variance) / together
    return max(mixed, variance), together


def rounding(rows: Numbers, size: Numbers) -> Numbers:
    """Return how far two influences on numbers of this size may be apart by rounding alone.

    Running sums over the samples leave up to about 0.02 eps n of the size; the least true
    difference, two neighbors that change places, is 1/n of it.
    """
    return float(np.finfo(np.float64).eps) * (64 + rows) * size


def degrees_of_freedom(parts: FloatArray) -> float:
    """Return Satterthwaite's degrees of freedom of the sum of squared parts, at least 1.

    Takes what each independent unit adds to the error, shape (units,).
    """
    square = parts * parts
    second, fourth = np.array(square.sum()), np.array(square @ square)
    return float(degrees_from(second, fourth, np.array(float(parts.size))))


def degrees_from(second: FloatArray, fourth: FloatArray, units: FloatArray) -> FloatArray:
    """Return the same from the sums of the second and fourth powers of the parts."""
    excess, most = fourth - second * second / units, np.maximum(units - 1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.clip(2 * second * second / excess, 1.0, most)
    return np.asarray(np.where(excess <= 0, most, found))


def skewness(parts: FloatArray) -> float:
    """Return the skewness of the error whose parts these are."""
    spread = float(np.sqrt(parts @ parts))
    scaled = parts / spread
    return float(np.sum(scaled**3))


def straightened(t: Numbers, skew: Numbers) -> Numbers:
    """Return Hall's (1992) cubic transformation of a t statistic, its skewness taken out by half.

    The whole correction makes true nulls fail too often, since the skewness is itself estimated
    from few failures; none makes the intervals of true differences too short on one side. Half of
    it was the best of all tried.
    """
    g = skew / 2
    return t + g * t * t / 3 + g * g * t**3 / 27 + g / 6


def skewed(y: float | FloatArray, skew: float | FloatArray) -> FloatArray:
    """Return the t statistic that `straightened` turns into y."""
    g = np.asarray(skew) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        out = 3 / g * (np.cbrt(1 + g * (y - g / 6)) - 1)
    # Below this the cube root loses more digits than the correction has.
    return np.asarray(np.where(np.abs(g) < 1e-5, y, out))


def events(value: float, standard_error: float) -> float:
    """Return how many Poisson events would have this relative error."""
    return (value / standard_error) ** 2


def t_quantile(level: float, degrees: float) -> float:
    """Return the quantile that a central interval of this level reaches."""
    return float(special.stdtrit(degrees, (1 + level) / 2))


def t_quantiles(level: float, degrees: FloatArray) -> FloatArray:
    """Return the same of many degrees of freedom."""
    return np.asarray(special.stdtrit(degrees, (1 + level) / 2))


def t_probability(x: float, degrees: float) -> float:
    """Return the chance that Student's t is at most x."""
    return float(special.stdtr(degrees, x))


def t_probabilities(x: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return the same of many."""
    return np.asarray(special.stdtr(degrees, x))


def warning(failures: int | Failures | None, *, heavy: bool, units: int | None = None) -> str:
    """Return what to be careful about, or an empty string.

    `units` is the number of clusters, None without them.
    """
    notes = []
    needed = FEW_FAILURES_HEAVY if heavy else FEW_FAILURES
    known = counted(failures)
    if known is not None and known.number < needed:
        words = {0: "no failures", 1: "only 1 failure"}.get(
            known.number, f"only {known.number} failures"
        )
        notes.append(f"{words}{known.among}: below {needed} the interval is a rough guide")
    return "; ".join(filter(None, (*notes, few_clusters(units))))


def counted(failures: int | Failures | None) -> Failures | None:
    """Return the failures with their words."""
    return Failures(failures) if isinstance(failures, int) else failures


def few_clusters(units: int | None) -> str:
    """Return the warning for few independent clusters, or an empty string."""
    if units is None or units >= FEW_CLUSTERS:
        return ""
    words = "only 1 cluster" if units == 1 else f"only {units} clusters"
    return f"{words}: below {FEW_CLUSTERS} the interval may be too short"
