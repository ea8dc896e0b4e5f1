"""The catalogue of metrics, including metrics with numbers in their names."""

import copyreg
from typing import Any, Final

from abstain.errors import UnknownNameError
from abstain.metrics import (
    binary_tasks,
    calibration,
    classifier,
    collaboration,
    f1_retention,
    failure_ranking,
    open_set,
    smooth_calibration,
)
from abstain.metrics.areas import (
    augrc,
    aurc,
    balanced,
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
    *binary_tasks.ENTRIES,
    *open_set.ENTRIES,
):
    METRICS.add(_entry)

#: The metric that ranks methods and selects settings by default.
DEFAULT_METRIC: Final = augrc.AUGRC.name

#: The metric of the classifier that reports print next to the default metric.
CLASSIFIER_METRIC: Final = classifier.ACCURACY.name

#: The metric that estimates the AURC of a population.
POPULATION_AREA_METRIC: Final = aurc.PLUG_IN.name

#: Families of metrics whose names contain numbers, such as ``ece@20bins``.
FAMILIES: tuple[Family, ...] = (
    *working_points.FAMILIES,
    *partial.FAMILIES,
    *cwsa.FAMILIES,
    working_points.SELECTIVE_ACCURACY_FAMILY,
    *collaboration.FAMILIES,
    *open_set.FAMILIES,
    *calibration.FAMILIES,
)


#: Example of a name that represents several metrics.
RANGE_EXAMPLE: Final = "cwsa@0.5:0.99:20"


def metric_named(name: str) -> Metric:
    """Return the metric with this name, which may contain a number such as ``coverage@2risk``.

    Answers: how is this metric defined and computed?

    Parameters
    ----------
    name : str
        A name of `METRICS`, or ``selective_risk@85cov``, ``generalized_risk@85cov``,
        ``classification_quality@85cov``, ``rejection_quality@85cov``, ``coverage@2risk``,
        ``partial_aurc@50-80cov``, ``partial_augrc@50-80cov``, ``cwsa@0.8``, ``cwsa_plus@0.8``,
        ``selective_accuracy@0.8``, ``oc_accuracy@0.5review``, ``oc_auc@0.5review``,
        ``oc_ap@0.5review``, ``scod_aurc@0.75cost``, ``scod_augrc@0.75cost``,
        ``scod_risk@80cov-0.75cost`` or ``ece@20bins`` with any numbers.

    Returns
    -------
    Metric
        The entry of the metric, with its title, direction, range, required inputs, source and
        computation.

    Raises
    ------
    UnknownNameError
        If no metric has this name. The message suggests the most similar name.

    Examples
    --------
    >>> from abstain.metrics import metric_named
    >>> metric_named("coverage@2risk").title
    'coverage at 2% risk'
    """
    if name in METRICS:
        return METRICS[name]
    for family in FAMILIES:
        metric = family.parse(name)
        if metric is not None:
            return metric
    metrics = _metrics_in_range(name)
    if metrics:
        raise UnknownNameError(
            f"{name!r} represents {len(metrics)} metrics, but one metric is required, such as "
            f"{metrics[0].name!r}"
        )
    try:
        return METRICS[name]
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{error} Names with other numbers also work: {describe_numbered_names()}."
        ) from None


def metrics_named(name: str) -> tuple[Metric, ...]:
    """Return all metrics that a name represents.

    Answers: which metrics does ``cwsa@0.5:0.99:20`` represent?

    Parameters
    ----------
    name : str
        A name as in `metric_named`, in which a range may replace each number. The range
        ``low:high:count`` represents `count` evenly spaced numbers from `low` to `high`.

    Returns
    -------
    tuple of Metric
        One metric for each number of the range, in increasing order. A name without a range yields
        one metric.

    Raises
    ------
    UnknownNameError
        If no metric has this name.
    InputError
        If a range is invalid, or contains a number outside the domain of the metric.

    Notes
    -----
    Numbers in names are rounded to twelve decimals, and each metric uses the rounded number.

    Examples
    --------
    >>> from abstain.metrics import metrics_named
    >>> [metric.name for metric in metrics_named("selective_risk@80:100:3cov")]
    ['selective_risk@80cov', 'selective_risk@90cov', 'selective_risk@100cov']
    """
    return _metrics_in_range(name) or (metric_named(name),)


def _metrics_in_range(name: str) -> tuple[Metric, ...]:
    """Return the metrics of a name that contains a range, or an empty tuple for other names."""
    for family in FAMILIES:
        metrics = family.parse_range(name)
        if metrics:
            # Prefer entries of the catalogue, which have display options.
            return tuple(METRICS.get(metric.name, metric) for metric in metrics)
    return ()


def describe_numbered_names() -> str:
    """Return a text with an example name of each family and an example of a range."""
    names = ", ".join(family.example_name for family in FAMILIES)
    return f"{names}; low:high:count represents several numbers, such as {RANGE_EXAMPLE}"


def _reduce_metric(metric: Metric) -> Any:
    """Pickle a metric of the catalogue by name, because its functions may be closures."""
    if METRICS.get(metric.name) is metric:
        return metric_named, (metric.name,)
    # Protocol 4 is the default of Python.
    return metric.__reduce_ex__(4)


copyreg.pickle(Metric, _reduce_metric)
