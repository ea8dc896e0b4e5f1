"""Fills the catalogue of metrics, and makes those with numbers in their names."""

from typing import Final

from abstain.errors import UnknownNameError
from abstain.metrics import calibration, classifier, failure_ranking, retention, review
from abstain.metrics.areas import achievable, balanced, excess, generalized, partial, selective
from abstain.metrics.confidence_weighted import sweep, threshold
from abstain.metrics.entry import METRICS, Family, Metric
from abstain.metrics.working_points import entries as working_points

for _entry in (
    *generalized.ENTRIES,
    *selective.ENTRIES,
    *excess.ENTRIES,
    *achievable.ENTRIES,
    selective.AUARC,
    *balanced.ENTRIES,
    *failure_ranking.ENTRIES,
    *retention.ENTRIES,
    *working_points.ENTRIES,
    *classifier.ENTRIES,
    *calibration.ENTRIES,
    *threshold.ENTRIES,
    *sweep.ENTRIES,
    *review.ENTRIES,
):
    METRICS.add(_entry)

#: What ranks and decides where nobody says by which metric.
PRIMARY: Final = generalized.AUGRC.name

#: What is said of the classifier beside it.
OF_CLASSIFIER: Final = classifier.ACCURACY.name

#: What estimates the area of a population from a sample of it.
OF_POPULATION: Final = selective.PLUG_IN.name

#: What takes numbers of the user's.
FAMILIES: tuple[Family, ...] = (
    *working_points.FAMILIES,
    *partial.FAMILIES,
    *threshold.FAMILIES,
)


def metric_named(name: str) -> Metric:
    """Return a metric of the catalogue, or one made from a name such as ``coverage@2risk``.

    Answers: what is known of the metric of this name?

    Parameters
    ----------
    name : str
        A name of `METRICS`, or ``selective_risk@85cov``, ``generalized_risk@85cov``,
        ``classification_quality@85cov``, ``rejection_quality@85cov``, ``coverage@2risk``,
        ``partial_aurc@50-80cov``, ``partial_augrc@50-80cov``, ``cwsa@0.8`` or ``cwsa_plus@0.8``
        with numbers of your own.

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
        made = family.named(name)
        if made is not None:
            return made
    try:
        return METRICS[name]
    except UnknownNameError as error:
        msg = f"{error} Names with numbers of your own also work: {with_numbers()}."
        raise UnknownNameError(msg) from None


def with_numbers() -> str:
    """Write a name of each family that takes numbers."""
    return ", ".join(family.shown for family in FAMILIES)
