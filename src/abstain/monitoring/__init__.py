"""A decision rule in use: whether it still keeps what it promised, and when it does not.

`start` makes a `Monitor`; its `update` takes predictions, its `labels` what comes later.
"""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

if TYPE_CHECKING:
    from abstain.monitoring.monitor import Monitor as Monitor
    from abstain.monitoring.plan import MonitorPlan as MonitorPlan
    from abstain.monitoring.reference import Reference as Reference
    from abstain.monitoring.reference import reference_of as reference_of
    from abstain.monitoring.starting import start as start
    from abstain.monitoring.state import Counts as Counts
    from abstain.monitoring.state import MonitorState as MonitorState
    from abstain.monitoring.watches import Alarm as Alarm
    from abstain.monitoring.watches import Watch as Watch
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        monitor=("Monitor",),
        starting=("start",),
        plan=("MonitorPlan",),
        reference=("Reference", "reference_of"),
        state=("Counts", "MonitorState"),
        watches=("Alarm", "Watch"),
    )
