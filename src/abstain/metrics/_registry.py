"""Fills the catalogue of metrics, and makes parametrized ones by name."""

from abstain.errors import UnknownNameError
from abstain.metrics._augrc import ENTRIES as AUGRC
from abstain.metrics._aurc_entries import ENTRIES as AURC
from abstain.metrics._cwsa_at import ENTRIES as CWSA
from abstain.metrics._cwsa_at import cwsa_named
from abstain.metrics._entry import METRICS, Metric
from abstain.metrics._partial_entries import partial_entry
from abstain.metrics._points_entries import ENTRIES as WORKING_POINTS
from abstain.metrics._points_entries import working_point_entry
from abstain.metrics.balanced import ENTRIES as BALANCED
from abstain.metrics.calibration import ENTRIES as CALIBRATION
from abstain.metrics.classifier import ENTRIES as CLASSIFIER
from abstain.metrics.failure_ranking import ENTRIES as FAILURE_RANKING
from abstain.metrics.retention import ENTRIES as RETENTION
from abstain.metrics.review import ENTRIES as REVIEW

#: In the order reports show them.
_ALL = (
    *AUGRC,
    *AURC,
    *BALANCED,
    *FAILURE_RANKING,
    *RETENTION,
    *WORKING_POINTS,
    *CLASSIFIER,
    *CALIBRATION,
    *CWSA,
    *REVIEW,
)

for _entry in _ALL:
    METRICS.add(_entry)


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
    made = working_point_entry(name) or partial_entry(name) or cwsa_named(name)
    if made is not None:
        return made
    try:
        return METRICS[name]
    except UnknownNameError as error:
        forms = "selective_risk@85cov, coverage@2risk, partial_augrc@50-80cov, cwsa@0.8"
        msg = f"{error} Names with numbers of your own also work: {forms}."
        raise UnknownNameError(msg) from None
