"""Process predictions and labels one after the other, and update the state of a monitor."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Final, NoReturn

import numpy as np

from abstain._foundation.arrays import read_only
from abstain.errors import FileFormatError, InputError
from abstain.inference.exchangeability import RankCounter
from abstain.inference.wager import RunningWager
from abstain.monitoring.arrivals import ArrivedLabel, Prediction, build_arrivals
from abstain.monitoring.lines import Line, OnBadLine
from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.state import (
    ANSWERED,
    LABELED,
    RECENT,
    Alarm,
    Counts,
    LedgerWriter,
    MonitorState,
    RequestItem,
    Requests,
    Watch,
    WatchTally,
    items_to_array,
    sum_terms,
)
from abstain.typing import Array

#: Maximum number of points in the history, above which every second point is removed.
POINTS: Final = 400
#: Number of values in a point of the history, see `RunningMonitor.point`.
COLUMNS: Final = 9


class RunningWatch:
    """A mutable watch, which counts values and updates its bets."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.alarmed = watch.has_alarm
        self._n = watch.tally.n
        self._total = watch.tally.total
        self._recent = watch.tally.recent_mean
        self._wager = None if watch.wager is None else RunningWager(watch.wager)

    def add(self, value: float, bet_on: "float | Array | None" = None) -> bool:
        """Count a value, and return whether it raises an alarm.

        The bets are updated with `bet_on`, which defaults to the value.
        """
        self._n += 1
        self._total += value
        self._recent += (value - self._recent) / min(self._n, RECENT)
        wager = self._wager
        if wager is None:
            return False
        wager.add(value if bet_on is None else bet_on)
        if self.alarmed or wager.capital < self.watch.alarm_capital:
            return False
        self.alarmed = True
        return True

    @property
    def tally(self) -> WatchTally:
        """Counts of the watch."""
        return WatchTally(self._n, self._total, self._recent)

    @property
    def capital(self) -> float:
        """Capital of the bets, or NaN if the watch is inactive."""
        return math.nan if self._wager is None else self._wager.capital

    def done(self) -> Watch:
        """Return the current state of the watch as an immutable record."""
        wager = self.watch.wager
        if wager is not None and self._wager is not None:
            money = read_only(self._wager.money.copy())
            wager = replace(wager, money=money, n_values=self._wager.n_values)
        return replace(self.watch, wager=wager, tally=self.tally, has_alarm=self.alarmed)


class RunningMonitor:
    """A mutable monitor, which is updated in place.

    The cost of processing a line does not depend on the number of earlier lines.
    """

    def __init__(self, plan: MonitorPlan, state: MonitorState) -> None:
        """Copy the state of a monitor into mutable objects."""
        self.plan = plan
        self.ledger = LedgerWriter(state.ledger)
        self.counts = asdict(state.counts)
        self.coverage, self.confidence, self.risk = map(RunningWatch, state.watches)
        self.ranks = None if state.urn is None else RankCounter(state.urn)
        self._rank_bets = np.empty((2, 1))
        requests = state.requests
        self.sums = requests.sums.tolist()
        self.n_settled = requests.n
        self.n_labeled = requests.labeled
        self.n_missing = requests.missing
        self.items = deque(requests.iter_items())
        self.awaited = {item.number: item for item in self.items if item.is_waiting}
        self.early = dict(state.early)
        self.history = [*state.history]
        self.stride = state.stride
        self.events = state.events
        self.alarms = [*state.alarms]

    @property
    def n_predictions(self) -> int:
        """Number of predictions that were counted."""
        return self.ledger.end

    # ------------------------------------------------------------------------ batches
    def take_lines(self, lines: Sequence[Line], on_bad_line: OnBadLine) -> None:
        """Process lines in their order.

        For an invalid line, the method calls `on_bad_line`, and stops if it returns False. A line
        that contradicts earlier lines is also invalid. Invalid lines do not change the monitor.
        """

        def on_error(i: int, error: InputError) -> bool:
            return on_bad_line(i, _at_line(lines[i], error))

        try:
            arrivals = build_arrivals(self.plan, lines)
        except InputError as error:
            if len(lines) == 1:
                on_error(0, error)
            else:
                self._take_one_by_one(lines, on_bad_line)
            return
        self._take(arrivals, on_error)

    def _take_one_by_one(self, lines: Sequence[Line], on_bad_line: OnBadLine) -> None:
        """Process each line separately, so that only invalid lines are skipped."""
        errors: list[FileFormatError] = []

        def record(_: int, error: FileFormatError) -> bool:
            errors.append(error)
            return True

        for i, line in enumerate(lines):
            self.take_lines([line], record)
            if errors and not on_bad_line(i, errors.pop()):
                return

    def take(self, arrivals: Sequence[Prediction | ArrivedLabel]) -> None:
        """Process predictions and labels in their order, and raise the first error."""
        self._take(arrivals, _reraise)

    def _take(
        self,
        arrivals: Sequence[Prediction | ArrivedLabel],
        on_error: Callable[[int, InputError], bool],
    ) -> None:
        """Process predictions and labels in their order, until `on_error` returns False."""
        keys = np.array([arrival.key for arrival in arrivals], np.uint64)
        indexed = self.ledger.find_indexed(keys)
        for i, (arrival, number) in enumerate(zip(arrivals, indexed, strict=True)):
            try:
                if isinstance(arrival, Prediction):
                    self._process_prediction(arrival, number)
                else:
                    self._process_label(arrival, number)
            except InputError as error:
                if not on_error(i, error):
                    break
        self.ledger.maintain(self.plan.remember)

    def _find_prediction(self, key: int, indexed: int) -> int | None:
        """Return the number of a prediction, counted from 0, or None if it is not remembered."""
        number = self.ledger.find(key, indexed)
        first_remembered = max(self.n_predictions - self.plan.remember, 0)
        return number if number >= first_remembered else None

    # ------------------------------------------------------------------------ predictions
    def _process_prediction(self, arrival: Prediction, indexed: int) -> None:
        """Process a new prediction; if its id is known, only count the repetition."""
        key = arrival.key
        if self._find_prediction(key, indexed) is not None:
            self.counts["replayed"] += 1
            if arrival.label is not None:
                self._process_label(arrival.label, indexed)
            return
        label = arrival.label
        if key in self.early:
            label = ArrivedLabel(arrival.name, key, *self.early[key])
        # The loss is computed before the state changes, because an invalid class raises an error.
        loss = None if label is None else self._loss_of_label(label, arrival.answer)
        number = self.n_predictions
        flags = ANSWERED if arrival.is_answered else 0
        if loss is not None:
            flags |= LABELED
        self.ledger.append(key, flags, arrival.answer)
        self._update_watches(arrival, number)
        if loss is not None:
            self.early.pop(key, None)
            self._count_loss(number, loss, is_answered=arrival.is_answered)
        self._record_event()

    def _update_watches(self, arrival: Prediction, number: int) -> None:
        """Update the watches of coverage and confidences, and request the label at random."""
        if self.coverage.add(float(arrival.is_answered)):
            self._raise_alarm(self.coverage)
        if self.ranks is not None:
            p_value = self.ranks.add(arrival.block, arrival.tie_break)
            self._rank_bets[0, 0] = p_value
            self._rank_bets[1, 0] = abs(2 * p_value - 1)
            if self.confidence.add(p_value, self._rank_bets):
                self._raise_alarm(self.confidence)
        if self.plan.label_share is not None:
            self._request_label(arrival, number)
            self._settle()

    def _request_label(self, arrival: Prediction, number: int) -> None:
        """Randomly decide whether to request the label of an answer, and store the answer."""
        if arrival.is_answered:
            is_requested = arrival.draw < arrival.label_probability
            name = arrival.name if is_requested else ""
            item = RequestItem(
                number, arrival.predicted, arrival.label_probability, is_requested, math.nan, name
            )
            self.items.append(item)
            if is_requested:
                self.awaited[number] = item
        elif self.plan.risk_kind == "generalized risk":
            # A rejected sample has loss 0, so its label is not needed.
            self.items.append(RequestItem(number, 0.0, 1.0, is_requested=False, loss=math.nan))

    def _record_event(self) -> None:
        """Count a prediction or label; add a point to the history after every `stride` events."""
        self.events += 1
        if self.events % self.stride:
            return
        self.history.append(self.point())
        if len(self.history) > POINTS:
            self.stride *= 2
            self.history = [row for row in self.history if row[0] % self.stride == 0]

    def point(self) -> tuple[float, ...]:
        """Return the current point of the history.

        The values are the numbers of events and predictions, the count and sum of the values for
        the coverage and for the risk, and the capital of each watch.
        """
        coverage = self.coverage.tally
        risk = self.risk.tally
        return (
            float(self.events),
            float(self.n_predictions),
            float(coverage.n),
            float(coverage.total),
            float(risk.n),
            float(risk.total),
            self.coverage.capital,
            self.confidence.capital,
            self.risk.capital,
        )

    # ------------------------------------------------------------------------ labels
    def _process_label(self, label: ArrivedLabel, indexed: int) -> None:
        """Process a label, or store it until its prediction arrives."""
        number = self._find_prediction(label.key, indexed)
        if number is None:
            self._store_early_label(label)
            return
        flags, answer = self.ledger.flags_and_answer(number)
        if flags & LABELED:
            self.counts["repeated"] += 1
            return
        loss = self._loss_of_label(label, answer)
        self.ledger.mark_labeled(number)
        self._count_loss(number, loss, is_answered=bool(flags & ANSWERED))
        self._record_event()

    def _store_early_label(self, label: ArrivedLabel) -> None:
        """Store a label until its prediction arrives; drop the oldest if there are too many."""
        if label.key in self.early:
            self.counts["repeated"] += 1
            return
        self.early[label.key] = (label.loss, label.class_hash)
        if len(self.early) > self.plan.remember:
            oldest = next(iter(self.early))
            del self.early[oldest]

    def _loss_of_label(self, label: ArrivedLabel, answer: int) -> float:
        """Return the loss of a label; `answer` is the hash of the predicted class, or 0."""
        if not math.isnan(label.loss):
            return label.loss
        if not answer:
            raise InputError(
                f"the label of {label.name!r} names a class, and its prediction did not: give "
                "`correct` or `loss` with the label, or `prediction` with the prediction"
            )
        return float(label.class_hash != answer)

    def _count_loss(self, number: int, loss: float, *, is_answered: bool) -> None:
        """If the label of a prediction is used, count its loss for the risk."""
        if self.plan.label_share is not None:
            item = self.awaited.pop(number, None)
            if item is None:
                self.counts["unasked"] += 1
                return
            item.loss = loss
            self._settle()
        elif is_answered or self.plan.risk_kind == "generalized risk":
            if self.risk.add(loss * is_answered):
                self._raise_alarm(self.risk)
        else:
            self.counts["abstained"] += 1

    def _settle(self) -> None:
        """Count answers in their order, up to the first answer whose label is still missing."""
        last_late_number = self.n_predictions - 1 - self.plan.patience
        while self.items:
            item = self.items[0]
            if item.is_waiting and item.number > last_late_number:
                return
            self.items.popleft()
            self._settle_item(item)

    def _settle_item(self, item: RequestItem) -> None:
        """Count one answer for the estimates and for the watch of the risk."""
        if item.is_waiting:
            self.awaited.pop(item.number, None)
            self.n_missing += 1
        else:
            self.n_settled += 1
            self.n_labeled += item.is_requested
        # A missing label counts as a correct answer, which causes no false alarm.
        weighted_loss = 0.0
        weighted_prediction = 0.0
        if item.is_requested and not item.is_waiting:
            weighted_loss = item.loss / item.probability
            weighted_prediction = item.predicted / item.probability
        terms = sum_terms(item.predicted, weighted_loss - weighted_prediction, weighted_loss)
        self.sums = [total + term for total, term in zip(self.sums, terms, strict=True)]
        if self.risk.add(weighted_loss * self.plan.min_label_probability):
            self._raise_alarm(self.risk)

    # ------------------------------------------------------------------------ results
    def _raise_alarm(self, running: RunningWatch) -> None:
        """Record an alarm of a watch, with its reason."""
        watch = replace(running.watch, tally=running.tally)
        reason = self.plan.alarm_reason(watch, self.labeled)
        self.alarms.append(Alarm(watch.name, self.n_predictions, reason))

    @property
    def labeled(self) -> int:
        """Number of labels that the estimate of the risk uses."""
        return self.risk.tally.n if self.plan.label_share is None else self.n_labeled

    def done(self) -> MonitorState:
        """Return the state of the monitor as an immutable record."""
        items, names = items_to_array([*self.items])
        requests = Requests(
            items=read_only(items),
            names=names,
            sums=read_only(np.array(self.sums, np.float64)),
            n=self.n_settled,
            labeled=self.n_labeled,
            missing=self.n_missing,
        )
        urn = None
        if self.ranks is not None:
            urn = read_only(np.array(self.ranks.counts, np.int64))
        return MonitorState(
            ledger=self.ledger.freeze(),
            requests=requests,
            watches=(self.coverage.done(), self.confidence.done(), self.risk.done()),
            counts=Counts(**self.counts),
            urn=urn,
            early=tuple(self.early.items()),
            history=tuple(self.history),
            events=self.events,
            stride=self.stride,
            alarms=tuple(self.alarms),
        )


def _at_line(line: Line, error: InputError) -> FileFormatError:
    """Return an error whose message begins with the location of the line."""
    located = FileFormatError(f"{line.location}: {error}")
    located.__cause__ = error
    return located


def _reraise(_: int, error: InputError) -> NoReturn:
    raise error
