"""Points in time of a monitor, as rows of a table and of the figures."""

from collections.abc import Sequence

import numpy as np

from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.sentences import limits
from abstain.monitoring.watches import WATCHES, Watch, WatchTally

_NAN = float("nan")


def point_of(plan: MonitorPlan, row: Sequence[float]) -> dict[str, float]:
    """Return a point with the intervals that held there.

    `evidence` is the logarithm of a capital over that of its bar: 1 is the alarm, 0 the beginning.
    """
    events, seen, answers, answered, labels, lost, *capitals = row
    begun = dict(zip(WATCHES, plan.begun(), strict=True))
    found = {"events": events, "predictions": seen}
    for name, n, total in (("coverage", answers, answered), ("risk", labels, lost)):
        watch = begun[name]
        tally = WatchTally(int(n), total)
        share = plan.least_chance if name == "risk" else 1.0
        low, high = limits(plan, watch, tally) if n else (_NAN, _NAN)
        own = {name: tally.mean / share, f"{name}_low": low, f"{name}_high": high}
        found |= own
    for name, capital in zip(WATCHES, capitals, strict=True):
        found[f"{name}_evidence"] = _evidence(begun[name], capital)
    return found


def _evidence(watch: Watch, capital: float) -> float:
    return float(np.log(capital) / np.log(watch.bar)) if capital > 0 else _NAN
