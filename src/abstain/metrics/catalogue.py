"""Fills the catalogue of metrics, and makes those with numbers in their names."""

import copyreg
from typing import Any, Final

from abstain.errors import UnknownNameError
from abstain.metrics import (
    calibration,
    classifier,
    collaboration,
    f1_retention,
    failure_ranking,
    open_set,
    review,
    smooth_calibration,
)
from abstain.metrics.areas import (
    augrc,
    aurc,
    balanced,
    binary,
    excess,
    partial,
)
from abstain.metrics.confidence_weighted import areas as cwsa_areas
from abstain.metrics.confidence_weighted import cwsa
from abstain.metrics.entry import METRICS, Family, Metric
from abstain.metrics.working_points import entries as working_points

for _entry in (
    *augrc.ENTRIES,
    *aurc.ENTRIES,
    *excess.ENTRIES,
    aurc.ACHIEVABLE,
    aurc.AUARC,
    *balanced.ENTRIES,
    *failure_ranking.ENTRIES,
    *f1_retention.ENTRIES,
    *working_points.ENTRIES,
    *collaboration.ENTRIES,
    *classifier.ENTRIES,
    *calibration.ENTRIES,
    *smooth_calibration.ENTRIES,
    *cwsa.ENTRIES,
    *cwsa_areas.ENTRIES,
    *review.ENTRIES,
    *binary.ENTRIES,
    *open_set.ENTRIES,
):
    METRICS.add(_entry)

#: What ranks and decides where nobody says by which metric.
DEFAULT_METRIC: Final = augrc.AUGRC.name

#: What is said of the classifier beside it.
CLASSIFIER_METRIC: Final = classifier.ACCURACY.name

#: What estimates the area of a population from a sample of it.
POPULATION_AREA_METRIC: Final = aurc.PLUG_IN.name

#: What takes numbers of the user's.
FAMILIES: tuple[Family, ...] = (
    *working_points.FAMILIES,
    *partial.FAMILIES,
    *cwsa.FAMILIES,
    working_points.SELECTIVE_ACCURACY_FAMILY,
    *collaboration.FAMILIES,
    *open_set.FAMILIES,
    *calibration.FAMILIES,
)


#: A name that stands for several metrics.
RANGE_EXAMPLE: Final = "cwsa@0.5:0.99:20"


def metric_named(name: str) -> Metric:
    """Return a metric of the catalogue, or one made from a name such as ``coverage@2risk``.

    Answers: what is known of the metric of this name?

    Parameters
    ----------
    name : str
        A name of `METRICS`, or ``selective_risk@85cov``, ``generalized_risk@85cov``,
        ``classification_quality@85cov``, ``rejection_quality@85cov``, ``coverage@2risk``,
        ``partial_aurc@50-80cov``, ``partial_augrc@50-80cov``, ``cwsa@0.8``, ``cwsa_plus@0.8``,
        ``selective_accuracy@0.8``, ``oc_accuracy@0.5review``, ``oc_auc@0.5review``,
        ``oc_ap@0.5review``, ``scod_aurc@0.75cost``, ``scod_augrc@0.75cost``,
        ``scod_risk@80cov-0.75cost`` or ``ece@20bins`` with numbers of your own.

    Returns
    -------
    Metric
        Its title, direction, range, needs, source and how it is computed.

    Raises
    ------
    UnknownNameError
        If there is no such metric; the nearest name is suggested.

    Examples
    --------
    >>> from abstain.metrics import metric_named
    >>> metric_named("coverage@2risk").title
    'coverage at 2 % risk'
    """
    if name in METRICS:
        return METRICS[name]
    for family in FAMILIES:
        made = family.parse(name)
        if made is not None:
            return made
    if many := _metrics_in_range(name):
        raise UnknownNameError(
            f"{name!r} names {len(many)} metrics where one is asked for, such as {many[0].name!r}"
        )
    try:
        return METRICS[name]
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{error} Names with numbers of your own also work: {describe_numbered_names()}."
        ) from None


def metrics_named(name: str) -> tuple[Metric, ...]:
    """Return the metrics of a name: one, or as many as a range in it says.

    Answers: which metrics does ``cwsa@0.5:0.99:20`` stand for?

    Parameters
    ----------
    name : str
        As for `metric_named`; ``low:high:count`` in the place of a number stands for that many
        numbers in even steps, both ends in. Where a name has two numbers, both may be ranges.

    Returns
    -------
    tuple of Metric
        In the order of the numbers.

    Raises
    ------
    UnknownNameError
        If there is no such metric.
    InputError
        If a range has no steps, or one of its numbers has no meaning.

    Notes
    -----
    Each metric is at the number in its name, which has at most twelve decimals.

    Examples
    --------
    >>> from abstain.metrics import metrics_named
    >>> [metric.name for metric in metrics_named("selective_risk@80:100:3cov")]
    ['selective_risk@80cov', 'selective_risk@90cov', 'selective_risk@100cov']
    """
    return _metrics_in_range(name) or (metric_named(name),)


def _metrics_in_range(name: str) -> tuple[Metric, ...]:
    found = (family.parse_range(name) for family in FAMILIES)
    # One of the catalogue stays itself.
    return tuple(METRICS.get(m.name, m) for m in next((many for many in found if many), ()))


def describe_numbered_names() -> str:
    """Write a name of each family that takes numbers, and how many numbers are named at once."""
    names = ", ".join(family.example_name for family in FAMILIES)
    return f"{names}; low:high:count names many at once, such as {RANGE_EXAMPLE}"


def _reduce_metric(metric: Metric) -> Any:
    """Pickle a metric of the catalogue by its name, since its functions may be closures."""
    if METRICS.get(metric.name) is metric:
        return metric_named, (metric.name,)
    # As every other dataclass: 4 is the default protocol of Python.
    return metric.__reduce_ex__(4)


copyreg.pickle(Metric, _reduce_metric)
