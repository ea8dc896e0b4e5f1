"""A monitor at work: predictions and labels one after the other, until it is a record again."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from abstain._foundation.arrays import sealed
from abstain.errors import InputError
from abstain.inference.exchangeability import rank_p_value
from abstain.inference.wager import played, waiting_share
from abstain.monitoring.ledger import ANSWERED, LABELED, uniform
from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.requests import Item, rows_of, terms_of
from abstain.monitoring.seen import Seen
from abstain.monitoring.sentences import reason
from abstain.monitoring.watches import Alarm, Watch
from abstain.typing import Array

#: Points of the history that are kept; then every second one is.
POINTS: Final = 400
#: Numbers of such a point: events, predictions; values and their sum of the coverage and of the
#: risk; the capital of each watch.
COLUMNS: Final = 9


class Counter:
    """A watch at work."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.tally = watch, watch.tally
        self.alarmed = watch.alarmed
        if watch.wager is not None:
            self.held, self.steps = watch.wager.held, watch.wager.steps

    def add(self, value: float, seen: "float | Array") -> bool:
        """Count a value and bet on what is `seen`; tell whether this gives alarm."""
        self.tally = self.tally.after(value)
        wager = self.watch.wager
        if wager is None:
            return False
        self.steps += 1
        self.held = played(self.held, seen, self.steps, wager.claims, wager.edges)
        if self.alarmed or self.capital < self.watch.bar:
            return False
        self.alarmed = True
        return True

    @property
    def capital(self) -> float:
        """What it owns."""
        if self.watch.wager is None:
            return math.nan
        streams = self.held.size // self.held.shape[-1]
        return float(self.held.sum() / streams) + waiting_share(self.steps)

    def done(self) -> Watch:
        """Return the watch."""
        wager = self.watch.wager
        if wager is not None:
            wager = replace(wager, held=sealed(self.held), steps=self.steps)
        return replace(self.watch, wager=wager, tally=self.tally, alarmed=self.alarmed)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Predictions with all that is drawn for them."""

    names: Sequence[str]
    #: Shape (n, 4). Of `keys_of`.
    numbers: Array
    answered: Array
    home: Array
    predicted: Array
    chance: Array
    #: Hashes of the predicted classes; 0 where they are not said.
    answers: Array
    #: Losses that came with them, and hashes of true classes; NaN and 0 where none did.
    losses: Array
    labels: Array

    @property
    def drawn(self) -> Array:
        """Uniform numbers: for the place among ties, and for whether to ask."""
        return uniform(self.numbers[:, 2:])

    def truth(self, i: int) -> tuple[float, int] | None:
        """Return the label that came with a prediction, if one did."""
        loss, label = float(self.losses[i]), int(self.labels[i])
        return None if math.isnan(loss) and not label else (loss, label)


class Course:
    """What changes while lines are read."""

    def __init__(self, plan: MonitorPlan, seen: Seen) -> None:
        self.plan = plan
        self.ledger, self.counts = seen.ledger, seen.counts
        self.coverage, self.confidence, self.risk = map(Counter, seen.watches)
        self.urn = None if seen.urn is None else seen.urn.copy()
        self.requests = seen.requests
        self.sums = seen.requests.sums.copy()
        self.items = deque(seen.requests.each())
        self.awaited = {item.place: item for item in self.items if item.waits}
        self.early = dict(seen.early)
        self.history, self.stride = [*seen.history], seen.stride
        self.events = seen.events
        self.alarms = [*seen.alarms]
        self.seen = seen.ledger.end

    # ------------------------------------------------------------------------ predictions
    def predictions(self, batch: Arrivals) -> None:
        """Take predictions that are new; count those that are not."""
        keys, drawn = batch.numbers[:, 0], batch.drawn
        places = self.ledger.places(keys)
        fresh: dict[int, int] = {}
        rows: list[tuple[int, int, int]] = []
        for i, (key, place) in enumerate(zip(keys.tolist(), places.tolist(), strict=True)):
            if max(place, fresh.get(key, -1)) >= max(self.seen - self.plan.remember, 0):
                self.count(replayed=1)
                self._again(batch, i, place)
                continue
            fresh[key] = self.seen
            answered = bool(batch.answered[i])
            early = self.early.pop(key, None) or batch.truth(i)
            flags = ANSWERED * answered + LABELED * (early is not None)
            rows.append((key, flags, int(batch.answers[i])))
            self._watch(batch, i, drawn[i])
            if early is not None:
                loss = self._loss(*early, int(batch.answers[i]), batch.names[i])
                self._label(self.seen - 1, loss, answered=answered)
            self._note()
        if rows:
            self.ledger = self.ledger.with_rows(*map(list, zip(*rows, strict=True)))
            if self.ledger.keys.size > self.plan.remember + self.plan.remember // 4:
                self.ledger = self.ledger.last(self.plan.remember)

    def _again(self, batch: Arrivals, i: int, place: int) -> None:
        """Take the label of a prediction that was known, if one came with it now."""
        if batch.truth(i) is not None and place >= 0:
            one = slice(i, i + 1)
            self.labels(
                batch.names[one], batch.numbers[one, 0], batch.losses[one], batch.labels[one]
            )

    def _watch(self, batch: Arrivals, i: int, drawn: Array) -> None:
        answered = bool(batch.answered[i])
        place, self.seen = self.seen, self.seen + 1
        if self.coverage.add(float(answered), float(answered)):
            self._alarm(self.coverage)
        if self.urn is not None:
            p = float(rank_p_value(self.urn, batch.home[i], drawn[0]))
            self.urn[batch.home[i]] += 1
            if self.confidence.add(p, np.array([p, abs(2 * p - 1)])):
                self._alarm(self.confidence)
        if self.plan.label_share is None:
            return
        if answered:
            asked = bool(drawn[1] < batch.chance[i])
            name = batch.names[i] if asked else ""
            item = Item(place, batch.predicted[i], batch.chance[i], asked, math.nan, name)
            self.items.append(item)
            if asked:
                self.awaited[place] = item
        elif self.plan.kind == "generalized risk":
            # What is not answered costs nothing, and that is known.
            self.items.append(Item(place, 0.0, 1.0, asked=False, loss=math.nan))
        self._settle()

    def _note(self) -> None:
        """Count an event, and keep a point of the history at every so many."""
        self.events += 1
        if self.events % self.stride:
            return
        self.history.append(self.point())
        if len(self.history) > POINTS:
            self.stride *= 2
            self.history = [row for row in self.history if row[0] % self.stride == 0]

    def point(self) -> tuple[float, ...]:
        """Return where everything stands now."""
        tallies = (t for c in (self.coverage, self.risk) for t in (c.tally.n, c.tally.total))
        capitals = (c.capital for c in (self.coverage, self.confidence, self.risk))
        return (float(self.events), float(self.seen), *map(float, tallies), *capitals)

    # ------------------------------------------------------------------------ labels
    def labels(self, names: Sequence[str], keys: Array, losses: Array, labels: Array) -> None:
        """Take labels: losses, or where these are NaN hashes of true classes."""
        found = self.ledger.places(keys)
        known: list[int] = []
        done: set[int] = set()
        oldest = max(self.seen - self.plan.remember, 0)
        columns = (x.tolist() for x in (keys, found, losses, labels))
        rows = zip(names, *columns, strict=True)
        for name, key, place, loss, label in rows:
            if place < oldest:
                self._keep(key, loss, label)
                continue
            row = place - self.ledger.first
            flags = int(self.ledger.flags[row])
            if flags & LABELED or place in done:
                self.count(repeated=1)
                continue
            cost = self._loss(loss, label, int(self.ledger.answers[row]), name)
            known.append(place)
            done.add(place)
            self._label(place, cost, answered=bool(flags & ANSWERED))
            self._note()
        if known:
            self.ledger = self.ledger.labeled(known)

    def _keep(self, key: int, loss: float, label: int) -> None:
        """Keep a label whose prediction was not seen yet."""
        if key in self.early:
            self.count(repeated=1)
            return
        self.early[key] = (loss, label)
        if len(self.early) > self.plan.remember:
            del self.early[next(iter(self.early))]

    def _loss(self, loss: float, label: int, answer: int, name: str) -> float:
        if not math.isnan(loss):
            return loss
        if not answer:
            msg = (
                f"the label of {name!r} names a class, and its prediction did not: give "
                "`correct` or `loss` with the label, or `prediction` with the prediction"
            )
            raise InputError(msg)
        return float(label != answer)

    def _label(self, place: int, loss: float, *, answered: bool) -> None:
        if self.plan.label_share is not None:
            item = self.awaited.pop(place, None)
            if item is None:
                self.count(unasked=1)
                return
            item.loss = loss
            self._settle()
        elif answered or self.plan.kind == "generalized risk":
            cost = loss * answered
            if self.risk.add(cost, cost):
                self._alarm(self.risk)
        else:
            self.count(abstained=1)

    def _settle(self) -> None:
        """Count the answers of which all is known, in the order in which they were given."""
        least, late = self.plan.least_chance, self.seen - 1 - self.plan.patience
        while self.items and not (self.items[0].waits and self.items[0].place > late):
            item = self.items.popleft()
            found, waits = self.requests, item.waits
            mass = item.loss / item.chance if item.asked and not waits else 0.0
            drawn = item.predicted / item.chance if item.asked and not waits else 0.0
            if waits:
                self.awaited.pop(item.place, None)
                found = replace(found, missing=found.missing + 1)
            else:
                found = replace(found, n=found.n + 1, labeled=found.labeled + item.asked)
            self.requests = found
            self.sums += terms_of(item.predicted, mass - drawn, mass)
            # A label that never came counts as right: this gives no false alarm.
            if self.risk.add(mass * least, mass * least):
                self._alarm(self.risk)

    # ------------------------------------------------------------------------ what is found
    def count(self, **more: int) -> None:
        """Count something that is only counted."""
        found = {name: getattr(self.counts, name) + value for name, value in more.items()}
        self.counts = replace(self.counts, **found)

    def _alarm(self, counter: Counter) -> None:
        watch = counter.watch
        said = reason(self.plan, replace(watch, tally=counter.tally), self.labeled)
        self.alarms.append(Alarm(watch.name, self.seen, said))

    @property
    def labeled(self) -> int:
        """Labels behind the risk."""
        return self.risk.tally.n if self.plan.label_share is None else self.requests.labeled

    def done(self) -> Seen:
        """Return what was seen by now."""
        items, names = rows_of([*self.items])
        requests = replace(self.requests, items=sealed(items), names=names, sums=sealed(self.sums))
        return Seen(
            ledger=self.ledger,
            requests=requests,
            watches=tuple(c.done() for c in (self.coverage, self.confidence, self.risk)),
            counts=self.counts,
            urn=None if self.urn is None else sealed(self.urn),
            early=tuple(self.early.items()),
            history=tuple(self.history),
            events=self.events,
            stride=self.stride,
            alarms=tuple(self.alarms),
        )
