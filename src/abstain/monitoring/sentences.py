"""What a watch found, in words: for alarms, pages and terminals alike."""

import numpy as np

from abstain.inference.confidence_sequence import anytime_limits
from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.watches import RECENT, Watch, WatchTally


def limits(plan: MonitorPlan, watch: Watch, tally: WatchTally | None = None) -> tuple[float, float]:
    """Return where the truth lies, at every moment but for the chance that the watch may spend.

    Of the coverage and the risk; for the confidences there is no such number.
    """
    seen = tally or watch.tally
    scale = plan.least_chance if watch.name == "risk" else 1.0
    low, high = anytime_limits(min(seen.total, seen.n), seen.n, level=1 - plan.chance(watch.name))
    return float(np.minimum(low / scale, 1.0)), float(np.minimum(high / scale, 1.0))


def value(plan: MonitorPlan, watch: Watch) -> float:
    """Return the coverage, the mean p-value, or the risk since the watch began; NaN of nothing."""
    return watch.tally.mean / (plan.least_chance if watch.name == "risk" else 1.0)


def recent(plan: MonitorPlan, watch: Watch) -> float:
    """Return the same over about the last 200 values."""
    if not watch.tally.n:
        return float("nan")
    return watch.tally.recent / (plan.least_chance if watch.name == "risk" else 1.0)


def reason(plan: MonitorPlan, watch: Watch, labeled: int) -> str:
    """Return why a watch gives alarm, in a sentence with the numbers."""
    now, lately = value(plan, watch), recent(plan, watch)
    sure = f"(a false alarm with a chance of at most {plan.delta / len(plan.watched):.4g})"
    if watch.name == "confidence":
        where = "lower" if lately < 0.5 else "higher"
        return (
            "the confidences are no longer distributed as on calibration: of the last "
            f"{min(watch.tally.n, RECENT)} the mean rank is {lately:.3f} where 0.5 is usual, so "
            f"they are {where} or otherwise spread {sure}"
        )
    low, high = limits(plan, watch)
    held = f"about {lately:.4g} lately; {now:.4g} in all, between {low:.4g} and {high:.4g}"
    if watch.name == "coverage":
        least, most = plan.coverage or (0.0, 1.0)
        return (
            f"the share that is answered has left {least:.4g} to {most:.4g}: {held}, after "
            f"{watch.tally.n:,} prediction{'s' if watch.tally.n != 1 else ''} {sure}"
        )
    return (
        f"the {plan.kind} has risen above the {plan.max_risk:.4g} that is promised: {held}, by "
        f"{labeled:,} label{'s' if labeled != 1 else ''} {sure}"
    )
