"""The watches of a monitor: what each saw, what it bets, and whether it gave alarm."""

from dataclasses import dataclass
from typing import Final, Literal

from abstain.inference.wager import Wager

#: What is watched, in the order of every table.
WATCHES: Final = ("coverage", "confidence", "risk")
WatchName = Literal["coverage", "confidence", "risk"]

#: Over so many values what is recent is remembered.
RECENT: Final = 200


@dataclass(frozen=True)
class Alarm:
    """What a watch found, once.

    Attributes
    ----------
    watch : {"coverage", "confidence", "risk"}
        Which.
    at : int
        How many predictions had been seen.
    reason : str
        A sentence with the numbers.
    acknowledged : bool
        Whether it was reset since.

    Examples
    --------
    >>> from abstain.monitoring import Alarm
    >>> Alarm("risk", 40, "too high").line
    'ALARM risk: too high'
    """

    watch: WatchName
    at: int
    reason: str
    acknowledged: bool = False

    @property
    def line(self) -> str:
        """The line that scripts look for."""
        return f"ALARM {self.watch}: {self.reason}"


@dataclass(frozen=True)
class WatchTally:
    """What a watch saw since it began or was reset.

    Attributes
    ----------
    n : int
        Values.
    total : float
        Their sum.
    recent : float
        Their mean over about the last 200, older ones fading.
    """

    n: int = 0
    total: float = 0.0
    recent: float = 0.0

    @property
    def mean(self) -> float:
        """Their mean; NaN of none."""
        return self.total / self.n if self.n else float("nan")

    def after(self, value: float) -> "WatchTally":
        """Return the tally with one more value."""
        n = self.n + 1
        return WatchTally(
            n, self.total + value, self.recent + (value - self.recent) / min(n, RECENT)
        )


@dataclass(frozen=True, eq=False)
class Watch:
    """One watch since it began or was reset.

    Attributes
    ----------
    name : {"coverage", "confidence", "risk"}
        What it is about.
    wager : Wager or None
        What it owns; None where there is nothing to hold the stream to.
    bar : float
        One over the chance of a false alarm that it may spend: a capital that reaches it is the
        alarm.
    tally : WatchTally
        What it saw: whether each prediction is answered; the p-values of the confidences; the
        losses.
    alarmed : bool
        Whether its alarm stands.
    since : int
        The predictions before it began.
    """

    name: WatchName
    wager: Wager | None
    bar: float
    tally: WatchTally = WatchTally()
    alarmed: bool = False
    since: int = 0

    @property
    def capital(self) -> float:
        """What it owns, 1 at the start; NaN where it is off."""
        return float("nan") if self.wager is None else float(self.wager.capital.mean())

    @property
    def state(self) -> Literal["off", "quiet", "alarm"]:
        """How it stands."""
        return "off" if self.wager is None else "alarm" if self.alarmed else "quiet"
