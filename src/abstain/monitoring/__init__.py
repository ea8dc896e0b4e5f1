"""Monitor a decision rule in production, and raise an alarm if its guarantee no longer holds.

`start` creates a `Monitor`. `Monitor.update` adds predictions, and `Monitor.labels` adds labels,
which may arrive later.
"""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

if TYPE_CHECKING:
    from abstain.monitoring.monitor import Monitor as Monitor
    from abstain.monitoring.plan import MonitorPlan as MonitorPlan
    from abstain.monitoring.plan import Reference as Reference
    from abstain.monitoring.plan import build_reference as build_reference
    from abstain.monitoring.starting import start as start
    from abstain.monitoring.state import Alarm as Alarm
    from abstain.monitoring.state import Counts as Counts
    from abstain.monitoring.state import MonitorState as MonitorState
    from abstain.monitoring.state import Watch as Watch
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        monitor=("Monitor",),
        starting=("start",),
        plan=("MonitorPlan", "Reference", "build_reference"),
        state=("Alarm", "Counts", "MonitorState", "Watch"),
    )
