"""The state of a monitor: everything that changes while a rule is in use."""

from dataclasses import dataclass

from abstain.monitoring.ledger import Ledger
from abstain.monitoring.requests import Requests
from abstain.monitoring.watches import Alarm, Watch
from abstain.typing import IntArray


@dataclass(frozen=True)
class Counts:
    """Counts of predictions and labels that are not evaluated.

    Attributes
    ----------
    replayed : int
        Predictions whose id was already known.
    repeated : int
        Labels of a prediction that already had one.
    abstained : int
        Labels of rejected predictions, which have no effect on a selective risk.
    unasked : int
        Labels that were not requested, if labels are requested.
    """

    replayed: int = 0
    repeated: int = 0
    abstained: int = 0
    unasked: int = 0


@dataclass(frozen=True, eq=False)
class MonitorState:
    """Observations of a rule in use.

    Attributes
    ----------
    ledger : Ledger
        The predictions that were counted.
    requests : Requests
        The labels that were requested.
    watches : tuple of Watch
        Watches of the coverage, the confidences and the risk.
    counts : Counts
        Counts of predictions and labels that are not evaluated.
    urn : ndarray or None
        Number of confidences in each block of the calibration data.
    early : tuple
        Labels whose predictions have not arrived yet.
    history : tuple of tuple of float
        Points of the history; see `abstain.monitoring.running.RunningMonitor.point`.
    events : int
        Number of accepted predictions and labels.
    stride : int
        Number of events between two points of the history.
    alarms : tuple of Alarm
        All alarms, including those that were reset.
    """

    ledger: Ledger
    requests: Requests
    watches: tuple[Watch, ...]
    counts: Counts = Counts()
    urn: IntArray | None = None
    early: tuple[tuple[int, tuple[float, int]], ...] = ()
    history: tuple[tuple[float, ...], ...] = ()
    events: int = 0
    stride: int = 16
    alarms: tuple[Alarm, ...] = ()
