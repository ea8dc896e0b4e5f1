"""The watches of a monitor: their counts, bets and alarms."""

from dataclasses import dataclass
from typing import Final, Literal

from abstain.inference.wager import Wager

#: Names of the watches, in the order of all tables.
WATCHES: Final = ("coverage", "confidence", "risk")
WatchName = Literal["coverage", "confidence", "risk"]

#: Number of values over which `recent_mean` averages.
RECENT: Final = 200


@dataclass(frozen=True)
class Alarm:
    """An alarm of a watch.

    Attributes
    ----------
    watch : {"coverage", "confidence", "risk"}
        The watch that raised the alarm.
    n_predictions : int
        Number of predictions at the time of the alarm.
    reason : str
        A sentence with the numbers.
    acknowledged : bool
        Whether the watch was reset after the alarm.

    Examples
    --------
    >>> from abstain.monitoring import Alarm
    >>> Alarm("risk", 40, "too high").line
    'ALARM risk: too high'
    """

    watch: WatchName
    n_predictions: int
    reason: str
    acknowledged: bool = False

    @property
    def line(self) -> str:
        """The line that scripts can search for; it begins with ALARM."""
        return f"ALARM {self.watch}: {self.reason}"


@dataclass(frozen=True)
class WatchTally:
    """Counts of a watch since its start or reset.

    Attributes
    ----------
    n : int
        Number of values.
    total : float
        Sum of the values.
    recent_mean : float
        Mean of about the last 200 values, with exponentially decreasing weights.
    """

    n: int = 0
    total: float = 0.0
    recent_mean: float = 0.0

    @property
    def mean(self) -> float:
        """Mean of the values; NaN without values."""
        return self.total / self.n if self.n else float("nan")

    def after(self, value: float) -> "WatchTally":
        """Return the counts with one more value."""
        n = self.n + 1
        return WatchTally(
            n, self.total + value, self.recent_mean + (value - self.recent_mean) / min(n, RECENT)
        )


@dataclass(frozen=True, eq=False)
class Watch:
    """One watch since its start or reset.

    Attributes
    ----------
    name : {"coverage", "confidence", "risk"}
        The quantity that is tested.
    wager : Wager or None
        State of the bets; None if the watch is off.
    alarm_capital : float
        The capital at which the alarm is raised: one over the probability of a false alarm.
    tally : WatchTally
        Counts of the values: whether each prediction is answered, the p-values of the confidences,
        or the losses.
    has_alarm : bool
        Whether the watch has raised an alarm that was not reset.
    since : int
        Number of predictions before the start or reset.
    """

    name: WatchName
    wager: Wager | None
    alarm_capital: float
    tally: WatchTally = WatchTally()
    has_alarm: bool = False
    since: int = 0

    @property
    def capital(self) -> float:
        """Capital of the bets, 1 at the start; NaN if the watch is off."""
        return float("nan") if self.wager is None else float(self.wager.capital.mean())

    @property
    def state(self) -> Literal["off", "quiet", "alarm"]:
        """Whether the watch is off, quiet, or has an alarm."""
        if self.wager is None:
            return "off"
        return "alarm" if self.has_alarm else "quiet"
