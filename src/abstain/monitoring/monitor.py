"""`Monitor`: a decision rule in use, and what was seen of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation import checks, json_records
from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain.errors import DomainError, FileFormatError, InputError
from abstain.inference.prediction_powered_mean import PredictionPoweredMean, estimates_from_sums
from abstain.monitoring.archive import KIND, from_arrays, to_arrays
from abstain.monitoring.arrivals import ArrivedLabel, Prediction, labels_of, predictions_of
from abstain.monitoring.followed_file import Read
from abstain.monitoring.lines import Line
from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.running import RunningMonitor
from abstain.monitoring.state import MonitorState
from abstain.monitoring.watches import WATCHES, Alarm, Watch, WatchName
from abstain.tables import save
from abstain.typing import AnyArray, Array

_NAN: Final = float("nan")


@dataclass(frozen=True, eq=False)
class Monitor(NotebookDisplay):
    """A decision rule in use: what is watched, what was seen, and which alarms were given.

    Made by `start`; `update`, `labels` and `reset` return another one.

    Attributes
    ----------
    plan : MonitorPlan
        What is watched and promised.
    seen : MonitorState
        What came in, and what was found.
    read : tuple of FilePosition
        How far each file of a watched folder was read.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("given", 0.5)
    >>> watching = ab.monitoring.start(rule, max_risk=0.05)
    >>> ids = [f"row {i}" for i in range(400)]
    >>> watching = watching.update(ids, np.linspace(0.4, 1, 400))
    >>> watching = watching.labels(ids[::-1], loss=np.arange(400) % 5 == 0)
    >>> [alarm.watch for alarm in watching.alarms]
    ['risk']
    """

    plan: MonitorPlan
    seen: MonitorState
    read: Read = ()

    # ------------------------------------------------------------------------ what comes in
    def update(
        self, ids: Sequence[object], confidence: AnyArray, *, prediction: AnyArray | None = None
    ) -> "Monitor":
        """Return the monitor after more predictions.

        Parameters
        ----------
        ids : sequence of length n
            A name for each, by which labels find it; a name that is known is not counted again.
        confidence : array of shape (n,)
            Finite, on the scale that `start` was told.
        prediction : sequence of length n, optional
            The predicted classes, where labels will be classes too.

        Returns
        -------
        Monitor
            The same, however the predictions are cut into calls.

        Raises
        ------
        ShapeError, DomainError
            Lengths that differ, or a confidence that is not finite or not on the scale.
        """
        if not len(ids):
            return self
        return self._after(predictions_of(self.plan, ids, confidence, prediction))

    def _after(self, arrivals: Sequence[Prediction | ArrivedLabel]) -> "Monitor":
        running = RunningMonitor(self.plan, self.seen)
        running.take(arrivals)
        return replace(self, seen=running.done())

    def labels(
        self, ids: Sequence[object], loss: AnyArray | None = None, *, label: AnyArray | None = None
    ) -> "Monitor":
        """Return the monitor after more labels, which may come late, early and in any order.

        Parameters
        ----------
        ids : sequence of length n
            The names of their predictions.
        loss : array of shape (n,), optional
            In [0, 1]; 1 is wrong.
        label : sequence of length n, optional
            Instead: the true classes, where the predictions named theirs.

        Returns
        -------
        Monitor
            A second label of one prediction is counted and not taken.

        Raises
        ------
        InputError, ShapeError, DomainError
            Not one of `loss` and `label`, lengths that differ, a loss outside [0, 1], or a class
            for a prediction without one.
        """
        if (loss is None) == (label is None):
            raise InputError("give one of `loss` and `label`")
        if not len(ids):
            return self
        if label is not None and any(name is None for name in label):
            raise DomainError(
                "`label` must be known: leave out the ids whose class has not come; got None"
            )
        losses = np.full(len(ids), _NAN)
        if loss is not None:
            losses = checks.unit_interval(checks.loss(loss, length=len(ids)), "loss")
        return self._after(labels_of(self.plan, ids, losses, label))

    def reset(self, *names: WatchName) -> "Monitor":
        """Return the monitor with alarms acknowledged: these watches begin afresh.

        By default all whose alarm stands. Each gets its chance of a false alarm anew.
        """
        wanted = names or tuple(w.name for w in self.watches if w.alarmed)
        for name in wanted:
            checks.one_of(name, "name", WATCHES)
        watches = tuple(
            Watch(w.name, self.plan.wager(w.name), w.bar, since=self.predictions)
            if w.name in wanted
            else w
            for w in self.watches
        )
        known = tuple(
            replace(a, acknowledged=True) if a.watch in wanted else a for a in self.alarms
        )
        urn = self.plan.urn if "confidence" in wanted else self.seen.urn
        return replace(self, seen=replace(self.seen, watches=watches, alarms=known, urn=urn))

    def take(self, lines: Sequence[Line], *, skipped: list[str] | None = None) -> "Monitor":
        """Return the monitor after lines of `abstain.monitoring.lines`, in their order.

        A line that does not fit those before, such as a class for a prediction without one, is an
        error with its place, or, with a list `skipped`, its message is added there.
        """

        def on_bad_line(_: int, error: FileFormatError) -> bool:
            if skipped is None:
                raise error
            skipped.append(str(error))
            return True

        running = RunningMonitor(self.plan, self.seen)
        running.take_lines(lines, on_bad_line)
        return replace(self, seen=running.done())

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return all of it as plain values and arrays, for `abstain.save`."""
        return to_arrays(self.plan, self.seen, self.read)

    @classmethod
    def from_arrays(cls, plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> "Monitor":
        """Make it of what `to_arrays` gave, part by part checked."""
        return cls(*from_arrays(plain, arrays))

    def at(self, read: Read) -> "Monitor":
        """Return the monitor with how far the files of a folder were read."""
        return replace(self, read=read)

    def keep(self, path: str | Path) -> "Monitor":
        """Write all of it to a file (.npz), whole or not at all, and return it."""
        save(self, path)
        return self

    # ------------------------------------------------------------------------ what is known
    @property
    def watches(self) -> tuple[Watch, ...]:
        """Those of the coverage, the confidences and the risk, as they stand."""
        return self.seen.watches

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms that were given, those that were reset too."""
        return self.seen.alarms

    @property
    def standing(self) -> tuple[Alarm, ...]:
        """The alarms that were not reset."""
        return tuple(alarm for alarm in self.alarms if not alarm.acknowledged)

    @property
    def predictions(self) -> int:
        """How many predictions were counted."""
        return self.seen.ledger.end

    @property
    def to_label(self) -> tuple[str, ...]:
        """The ids whose labels are asked for and have not come, the oldest first."""
        return tuple(item.name for item in self.seen.requests.each() if item.waits)

    def wanted(self) -> list[dict[str, Any]]:
        """Return a row for each label that is asked for and has not come.

        With the chance that it was to be asked for, and the failure that is expected.
        """
        waiting = (item for item in self.seen.requests.each() if item.waits)
        return [{"id": i.name, "chance": i.chance, "predicted": i.predicted} for i in waiting]

    def estimate(self, *, level: float = 0.95) -> PredictionPoweredMean | None:
        """Return the risk by the labels that were asked for, with and without predictions.

        None where no labels are asked for, or none is settled. Where some never come, those that
        do stand for them: both estimates are then off if these would have said something else.
        """
        found = self.seen.requests
        if self.plan.label_share is None or not found.n or (found.missing and not found.labeled):
            return None
        return estimates_from_sums(
            found.powered(), found.n + found.missing, found.labeled, level=level
        )

    def points(self) -> list[dict[str, float]]:
        """Return a row for each point of the history, and one for now."""
        rows = [*self.seen.history, RunningMonitor(self.plan, self.seen).point()]
        return [self.plan.history_row(row) for row in rows if row[0] > 0]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each watch: what it saw, what it is held to, how it stands."""
        return [self._row(watch) for watch in self.watches]

    def _row(self, watch: Watch) -> dict[str, Any]:
        plan, open_ = self.plan, watch.name == "confidence"
        low, high = (_NAN, _NAN) if open_ else plan.limits(watch)
        least, most = {
            "coverage": plan.coverage or (_NAN, _NAN),
            "confidence": (0.5, 0.5) if plan.reference is not None else (_NAN, _NAN),
            "risk": (_NAN, _NAN if plan.max_risk is None else plan.max_risk),
        }[watch.name]
        risk_of = watch.name == "risk" and plan.label_share is not None
        return {
            "watch": watch.name,
            "n": self.seen.requests.labeled if risk_of else watch.tally.n,
            "value": plan.mean(watch),
            "low": low,
            "high": high,
            "least": least,
            "most": most,
            "lately": plan.recent_mean(watch),
            "capital": watch.capital,
            "bar": watch.bar,
            "state": watch.state,
            "since": watch.since,
        }

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)


json_records.ARCHIVE_READERS[KIND] = Monitor.from_arrays
