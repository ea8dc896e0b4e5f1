"""Define the monitor of a decision rule."""

import math
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
from abstain.monitoring.arrivals import ArrivedLabel, Prediction, build_labels, build_predictions
from abstain.monitoring.followed_file import ReadPositions
from abstain.monitoring.lines import Line
from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.running import RunningMonitor
from abstain.monitoring.state import RECENT, WATCHES, Alarm, MonitorState, Watch, WatchName
from abstain.tables import save
from abstain.typing import AnyArray, Array

_NAN: Final = float("nan")


@dataclass(frozen=True, eq=False)
class Monitor(NotebookDisplay):
    """The monitor of a decision rule in use, with its observations and alarms.

    `start` creates a monitor. A monitor is immutable, so `update`, `labels` and `reset` return a
    new monitor.

    Attributes
    ----------
    plan : MonitorPlan
        Plan with the watches and their limits.
    state : MonitorState
        Observations and alarms.
    read_positions : tuple of FilePosition
        Position up to which each file of a watched folder was read.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("given", 0.5)
    >>> monitor = ab.monitoring.start(rule, max_risk=0.05)
    >>> ids = [f"row {i}" for i in range(400)]
    >>> monitor = monitor.update(ids, np.linspace(0.4, 1, 400))
    >>> monitor = monitor.labels(ids[::-1], loss=np.arange(400) % 5 == 0)
    >>> [alarm.watch for alarm in monitor.alarms]
    ['risk']
    """

    plan: MonitorPlan
    state: MonitorState
    read_positions: ReadPositions = ()

    # ------------------------------------------------------------------------ observations
    def update(
        self, ids: Sequence[object], confidence: AnyArray, *, prediction: AnyArray | None = None
    ) -> "Monitor":
        """Return the monitor after further predictions.

        Parameters
        ----------
        ids : sequence of length n
            Identifier (id) of each prediction, which must be unique. If an id has already arrived,
            the prediction is ignored.
        confidence : array of shape (n,)
            Finite confidences on the scale that was passed to `start`.
        prediction : sequence of length n, optional
            Predicted classes, which are required if labels are classes.

        Returns
        -------
        Monitor
            The updated monitor. One call with all predictions is equivalent to several calls with
            parts of them.

        Raises
        ------
        ShapeError, DomainError
            If lengths differ, or if a confidence is not finite or not on the scale.
        """
        if not len(ids):
            return self
        return self._add(build_predictions(self.plan, ids, confidence, prediction))

    def _add(self, arrivals: Sequence[Prediction | ArrivedLabel]) -> "Monitor":
        """Process predictions and labels in their order, and return the updated monitor."""
        running = RunningMonitor(self.plan, self.state)
        running.take(arrivals)
        return replace(self, state=running.done())

    def labels(
        self, ids: Sequence[object], loss: AnyArray | None = None, *, label: AnyArray | None = None
    ) -> "Monitor":
        """Process labels, which may arrive in any order, and return the updated monitor.

        Parameters
        ----------
        ids : sequence of length n
            Ids of the predictions.
        loss : array of shape (n,), optional
            Losses in [0, 1]. The 0/1 loss of a wrong prediction is 1.
        label : sequence of length n, optional
            True classes, as an alternative to losses if the predictions have classes.

        Returns
        -------
        Monitor
            The updated monitor. A second label of the same prediction is ignored, but counted in
            the statistics.

        Raises
        ------
        InputError, ShapeError, DomainError
            If not exactly one of `loss` and `label` is passed, if lengths differ, if a loss is
            outside [0, 1], or if the label of a prediction without a class is a class.
        """
        if (loss is None) == (label is None):
            raise InputError("give one of `loss` and `label`")
        if not len(ids):
            return self
        if label is not None and any(name is None for name in label):
            raise DomainError(
                "`label` must not contain None: omit the ids whose class has not arrived"
            )
        losses = np.full(len(ids), _NAN)
        if loss is not None:
            losses = checks.unit_interval(checks.loss(loss, length=len(ids)), "loss")
        return self._add(build_labels(self.plan, ids, losses, label))

    def reset(self, *names: WatchName) -> "Monitor":
        """Acknowledge alarms, restart their watches, and return the updated monitor.

        By default, all watches with an active alarm are restarted. After a restart, the
        false-alarm probability of a watch is the same as at the start.
        """
        reset_names = names or tuple(watch.name for watch in self.watches if watch.has_alarm)
        for name in reset_names:
            checks.one_of(name, "name", WATCHES)
        watches = tuple(
            self._restarted(watch) if watch.name in reset_names else watch for watch in self.watches
        )
        alarms = tuple(
            replace(alarm, acknowledged=True) if alarm.watch in reset_names else alarm
            for alarm in self.alarms
        )
        urn = self.plan.urn if "confidence" in reset_names else self.state.urn
        return replace(self, state=replace(self.state, watches=watches, alarms=alarms, urn=urn))

    def _restarted(self, watch: Watch) -> Watch:
        """Return a watch without observations."""
        wager = self.plan.wager(watch.name)
        return Watch(watch.name, wager, watch.alarm_capital, since=self.predictions)

    def take(self, lines: Sequence[Line], *, skipped: list[str] | None = None) -> "Monitor":
        """Process parsed lines in their order, and return the updated monitor.

        A line contradicts earlier lines if, for example, its label is a class but its prediction
        has no class. For such a line, an error with the location of the line is raised. If
        `skipped` is a list, the line is skipped and the error message is appended to the list.
        """

        def on_bad_line(_: int, error: FileFormatError) -> bool:
            if skipped is None:
                raise error
            skipped.append(str(error))
            return True

        running = RunningMonitor(self.plan, self.state)
        running.take_lines(lines, on_bad_line)
        return replace(self, state=running.done())

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the JSON values and arrays from which `from_arrays` restores the monitor."""
        return to_arrays(self.plan, self.state, self.read_positions)

    @classmethod
    def from_arrays(cls, plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> "Monitor":
        """Restore and validate a monitor from the dictionaries that `to_arrays` returned."""
        return cls(*from_arrays(plain, arrays))

    def with_read_positions(self, read: ReadPositions) -> "Monitor":
        """Return a copy of the monitor with new read positions of the files in a folder."""
        return replace(self, read_positions=read)

    def save(self, path: str | Path) -> "Monitor":
        """Write the monitor atomically to an ``.npz`` file, and return the monitor."""
        save(self, path)
        return self

    # ------------------------------------------------------------------------ results
    @property
    def watches(self) -> tuple[Watch, ...]:
        """Watches of the coverage, the confidences and the risk."""
        return self.state.watches

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms, including acknowledged alarms."""
        return self.state.alarms

    @property
    def active_alarms(self) -> tuple[Alarm, ...]:
        """Alarms that were not acknowledged."""
        return tuple(alarm for alarm in self.alarms if not alarm.acknowledged)

    @property
    def predictions(self) -> int:
        """Number of counted predictions."""
        return self.state.ledger.end

    @property
    def requested_ids(self) -> tuple[str, ...]:
        """Ids of the predictions whose requested labels have not arrived, oldest first."""
        return tuple(item.name for item in self.state.requests.iter_items() if item.is_waiting)

    def label_requests(self) -> list[dict[str, Any]]:
        """Return a row for each requested label that has not arrived.

        A row contains the probability of the request and the predicted probability of a failure.
        """
        return [
            {"id": item.name, "chance": item.probability, "predicted": item.predicted}
            for item in self.state.requests.iter_items()
            if item.is_waiting
        ]

    def estimate(self, *, level: float = 0.95) -> PredictionPoweredMean | None:
        """Estimate the risk from the requested labels, with and without failure probabilities.

        The result is None if no labels are requested or no answer has been counted yet. Labels that
        never arrive are ignored, which leads to a bias if they differ from the other labels.
        """
        requests = self.state.requests
        has_only_missing = requests.missing and not requests.labeled
        if self.plan.label_share is None or not requests.n or has_only_missing:
            return None
        return estimates_from_sums(
            requests.mean_sums(), requests.n + requests.missing, requests.labeled, level=level
        )

    def points(self) -> list[dict[str, float]]:
        """Return a row for each point of the history, and one for the current state.

        `coverage_recent` and `risk_recent` are means over the shortest window of the history with
        at least 200 values.
        """
        all_points = [*self.state.history, RunningMonitor(self.plan, self.state).point()]
        history = [point for point in all_points if point[0] > 0]
        rows = [self.plan.history_row(point) for point in history]
        # The columns of `RunningMonitor.point`.
        recent_coverage = _window_means([p[2] for p in history], [p[3] for p in history])
        recent_loss = _window_means([p[4] for p in history], [p[5] for p in history])
        for i, row in enumerate(rows):
            row["coverage_recent"] = recent_coverage[i]
            row["risk_recent"] = recent_loss[i] / self.plan.min_label_probability
        return rows

    def alarm_positions(self) -> list[float]:
        """Return the number of events at each alarm, rounded to a point of the history.

        An event is a counted prediction or label.
        """
        points = self.points()
        positions = []
        for alarm in self.alarms:
            later = [p for p in points if p["predictions"] >= alarm.n_predictions]
            with_evidence = [p for p in later if p[f"{alarm.watch}_evidence"] >= 1]
            candidates = with_evidence or later
            if candidates:
                positions.append(candidates[0]["events"])
        return positions

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each watch, with its counts, limits and state."""
        return [self._row(watch) for watch in self.watches]

    def _row(self, watch: Watch) -> dict[str, Any]:
        """Return the row of one watch."""
        plan = self.plan
        has_limits = watch.name != "confidence"
        low, high = plan.limits(watch) if has_limits else (_NAN, _NAN)
        allowed_low, allowed_high = plan.allowed_range(watch.name)
        recent = plan.recent_mean(watch)
        n_values = watch.tally.n
        if watch.name == "risk" and plan.label_share is not None:
            n_values = self.state.requests.labeled
        evidence = _NAN
        if watch.capital > 0:
            evidence = math.log(watch.capital) / math.log(watch.alarm_capital)
        return {
            "watch": watch.name,
            "n": n_values,
            "value": plan.mean(watch),
            "low": low,
            "high": high,
            "allowed_low": allowed_low,
            "allowed_high": allowed_high,
            "recent": recent,
            "is_recent_outside": bool(
                has_limits and (recent < allowed_low or recent > allowed_high)
            ),
            "capital": watch.capital,
            "alarm_capital": watch.alarm_capital,
            "evidence": evidence,
            "state": watch.state,
            "since": watch.since,
        }

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)


def _window_means(n: Sequence[float], total: Sequence[float]) -> list[float]:
    """Return, for each point of the history, the mean of about the 200 previous values.

    `n` and `total` are the cumulative count and sum of the values at each point.
    """
    means = []
    # There are no values before the first point.
    counts = [0.0, *n]
    totals = [0.0, *total]
    # The window contains the values after the point `start`.
    start = 0
    for i in range(1, len(counts)):
        if counts[i] < counts[i - 1]:
            # The watch was reset, so its counts began again at 0.
            start = i - 1
            counts[start] = 0.0
            totals[start] = 0.0
        while start + 1 < i and counts[i] - counts[start + 1] >= RECENT:
            start += 1
        n_values = counts[i] - counts[start]
        mean = (totals[i] - totals[start]) / n_values if n_values else _NAN
        means.append(mean)
    return means


json_records.ARCHIVE_READERS[KIND] = Monitor.from_arrays
