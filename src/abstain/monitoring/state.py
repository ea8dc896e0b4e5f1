"""What a monitor saw: everything that changes while a rule is in use."""

from dataclasses import dataclass

from abstain.monitoring.ledger import Ledger
from abstain.monitoring.requests import Requests
from abstain.monitoring.watches import Alarm, Watch
from abstain.typing import IntArray


@dataclass(frozen=True)
class Counts:
    """What was only counted.

    Attributes
    ----------
    replayed : int
        Predictions whose id was known.
    repeated : int
        Labels of a prediction that had one.
    abstained : int
        Labels of predictions that were not answered, which say nothing of a selective risk.
    unasked : int
        Labels that were not asked for, where labels are.
    """

    replayed: int = 0
    repeated: int = 0
    abstained: int = 0
    unasked: int = 0


@dataclass(frozen=True, eq=False)
class MonitorState:
    """What was seen of a rule in use.

    Attributes
    ----------
    ledger : Ledger
        Which predictions were counted.
    requests : Requests
        The labels that were asked for.
    watches : tuple of Watch
        Of the coverage, the confidences and the risk.
    counts : Counts
        What was only counted.
    urn : ndarray or None
        How many confidences fell where those of calibration lay.
    early : tuple
        Labels whose predictions were not seen yet.
    history : tuple of tuple of float
        Points in time, as `abstain.monitoring.running.RunningMonitor.point` makes them.
    events : int
        Predictions and labels that were taken.
    stride : int
        Events between two points of the history.
    alarms : tuple of Alarm
        All that were given, those that were reset too.
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
