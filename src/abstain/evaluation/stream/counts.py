"""What is kept of batches: counts by confidence, of all samples and by name, and a few samples.

Everything here can be joined with the same of other batches, so that parts of the data may be read
one after the other or by several processes; joined in order, the result is the same.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from abstain._foundation.names import coded
from abstain._foundation.scored import Scored
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, InputError
from abstain.evaluation.inputs import Asked, join, scores_of
from abstain.evaluation.notable import (
    SHOWN,
    least_confident_successes,
    most_confident_failures,
    samples_of,
)
from abstain.evaluation.records import ExtremeSample
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.streaming import GroupCounts, one_pass
from abstain.streaming.tally import Tally, empty_tally
from abstain.tables.scan import ScannedBatch, Skipped
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Split

#: Stands for the label of samples of no known class.
NO_CLASS = "(no known class)"

#: A sample with what it is ordered by, the lowest first.
Keyed: TypeAlias = tuple[float, ExtremeSample]


@dataclass(frozen=True, eq=False)
class NameCounts:
    """How many samples have a name, and the confidences of the failures among them."""

    n: int = 0
    wrong: Tally = field(default_factory=empty_tally)

    def merged(self, other: "NameCounts") -> "NameCounts":
        """Return those of both."""
        return NameCounts(self.n + other.n, self.wrong.joined(other.wrong))


Named: TypeAlias = Mapping[Hashable, NameCounts]


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """What is kept of one score on one part of the data."""

    state: GroupCounts
    #: The same by the probability of being right, where that is another number than the score.
    chance: GroupCounts | None
    #: Whether every value so far means a probability.
    sure: bool
    #: Whether the score is a column of the data.
    own: bool
    by_class: Named = field(default_factory=dict)
    by_group: Named = field(default_factory=dict)
    overconfident: tuple[Keyed, ...] = ()
    underconfident: tuple[Keyed, ...] = ()

    def updated(
        self, p: Predictions, score: ConfidenceScore, loss: Array, at: str
    ) -> "ScoreCounts":
        """Return those with a batch too."""
        s = join(p, score, loss)
        failed: BoolArray = loss != 0
        other = score.probability is not None and score.probability is not score.values
        chance = self.chance.updated(score.probability, loss) if other and self.chance else None
        over, under = most_confident_failures(s), least_confident_successes(s)
        return ScoreCounts(
            self.state.updated(score.values, loss),
            chance,
            self.sure and score.probability is not None,
            self.own,
            _with_names(self.by_class, classes_of(p), s.confidence, failed),
            _with_names(self.by_group, groups_of(p), s.confidence, failed),
            _lowest(self.overconfident, _keyed(p, s, over, -s.confidence[over].astype(float), at)),
            _lowest(self.underconfident, _keyed(p, s, under, s.confidence[under], at)),
        )

    def merged(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return those of these samples and of such as come after them."""
        both = self.chance is not None and other.chance is not None
        return ScoreCounts(
            self.state.merged(other.state),
            self.chance.merged(other.chance) if both else None,  # type: ignore[union-attr,arg-type]
            self.sure and other.sure,
            self.own,
            _joined(self.by_class, other.by_class),
            _joined(self.by_group, other.by_group),
            _lowest(self.overconfident, other.overconfident),
            _lowest(self.underconfident, other.underconfident),
        )

    @property
    def settled(self) -> "ScoreCounts":
        """The same with no sample waiting to be counted."""
        return self.merged(score_counts(chance=self.chance is not None, own=self.own))


def score_counts(*, chance: bool, own: bool) -> ScoreCounts:
    """Return the counts of no samples."""
    return ScoreCounts(one_pass(), one_pass() if chance else None, sure=True, own=own)


# ------------------------------------------------------------------------------------ names
#: The code of each sample and the name of each code; None where there are no names.
_Coded: TypeAlias = tuple[IntArray, Sequence[Hashable]] | None


def classes_of(p: Predictions) -> _Coded:
    """Return the labels of predictions that have some and say what was predicted."""
    if not (p.has_labels and p.has_prediction):
        return None
    # Those of no known class, of code -1, come first.
    return p.label_codes + 1, (NO_CLASS, *p.class_names)


def groups_of(p: Predictions) -> _Coded:
    """Return the groups of predictions, as text."""
    if p.group is None:
        return None
    names, codes = coded(p.group, "group")
    return codes, [str(name) for name in names]


def _with_names(known: Named, found: _Coded, confidence: Array, failed: BoolArray) -> Named:
    if found is None:
        return known
    codes, names = found
    counts = np.bincount(codes, minlength=len(names))
    wrong, own = confidence[failed], codes[failed]
    order = np.argsort(own, kind="stable")
    ends = np.cumsum(np.bincount(own, minlength=len(names)))
    parts = np.split(wrong[order], ends[:-1])
    out = dict(known)
    for i in np.flatnonzero(counts).tolist():
        before = out.get(names[i], NameCounts())
        out[names[i]] = NameCounts(before.n + int(counts[i]), before.wrong.adding(parts[i]))
    return out


def _joined(one: Named, two: Named) -> Named:
    out = dict(one)
    for name, counts in two.items():
        out[name] = out[name].merged(counts) if name in out else counts
    return out


# ------------------------------------------------------------------------------------ samples
def _keyed(p: Predictions, s: Scored, rows: IntArray, key: Array, at: str) -> tuple[Keyed, ...]:
    found = samples_of(p, s, rows, at)
    return tuple(zip(map(float, key), found, strict=True))


def _lowest(one: tuple[Keyed, ...], two: tuple[Keyed, ...]) -> tuple[Keyed, ...]:
    """Return the lowest of both; of equal ones those that came first."""
    return tuple(sorted((*one, *two), key=lambda keyed: keyed[0])[:SHOWN])


# ------------------------------------------------------------------------------------ splits
@dataclass(frozen=True, eq=False)
class SplitCounts:
    """What is kept of one part of the data."""

    n: int = 0
    #: Samples of no known class; None without labels.
    unknown: int | None = None
    #: How often each label came with each prediction.
    answers: Mapping[tuple[Hashable, Hashable], int] = field(default_factory=dict)
    scores: Mapping[str, ScoreCounts] = field(default_factory=dict)

    def updated(
        self, p: Predictions, scores: Asked, loss: "str | CostMatrix | AnyArray | None", at: str
    ) -> "SplitCounts":
        """Return those with a batch too."""
        losses = _counted_loss(p, loss)
        known = dict(self.scores)
        for score in scores_of(p, scores):
            before = known.get(score.name)
            if before is None:
                other = score.probability is not None and score.probability is not score.values
                before = score_counts(chance=other, own=score.own)
            known[score.name] = before.updated(p, score, losses, at)
        unknown = None
        if p.has_labels:
            unknown = (self.unknown or 0) + int(np.count_nonzero(p.label_codes < 0))
        answers = dict(self.answers)
        for pair, count in _answers(p):
            answers[pair] = answers.get(pair, 0) + count
        return SplitCounts(self.n + p.n, unknown, answers, known)

    @property
    def settled(self) -> "SplitCounts":
        """The same with no sample waiting to be counted."""
        return replace(self, scores={name: kept.settled for name, kept in self.scores.items()})

    def merged(self, other: "SplitCounts") -> "SplitCounts":
        """Return those of these samples and of such as come after them."""
        scores = dict(self.scores)
        for name, counts in other.scores.items():
            scores[name] = scores[name].merged(counts) if name in scores else counts
        answers = dict(self.answers)
        for pair, count in other.answers.items():
            answers[pair] = answers.get(pair, 0) + count
        known = [unknown for unknown in (self.unknown, other.unknown) if unknown is not None]
        return SplitCounts(self.n + other.n, sum(known) if known else None, answers, scores)


def _counted_loss(p: Predictions, loss: "str | CostMatrix | AnyArray | None") -> Array:
    """Return the 0/1 loss of a batch; refuse what counts do not tell."""
    instead = "evaluate the files in memory, or a part of them that fits"
    if p.weight is not None:
        msg = f"weighted samples are not streamed; {instead}"
        raise InputError(msg)
    losses = per_sample_loss(p, loss)
    if losses.dtype.kind != "b" and not ((losses == 0) | (losses == 1)).all():
        msg = f"a stream counts failures, and these losses are not all 0 or 1; {instead}"
        raise DomainError(msg)
    return losses


def _answers(p: Predictions) -> Iterable[tuple[tuple[Hashable, Hashable], int]]:
    if not (p.has_labels and p.has_prediction):
        return
    names = (NO_CLASS, *p.class_names)
    keys = (p.label_codes + 1) * len(names) + p.prediction_codes + 1
    found, counts = np.unique(keys, return_counts=True)
    for key, count in zip(found.tolist(), counts.tolist(), strict=True):
        yield (names[key // len(names)], names[key % len(names)]), count


# ------------------------------------------------------------------------------------ all
@dataclass(frozen=True, eq=False)
class StreamCounts:
    """What is kept of all batches so far."""

    #: How many pieces, and rows, left-out ones not counted.
    pieces: int = 0
    rows: int = 0
    splits: Mapping[Split, SplitCounts] = field(default_factory=dict)
    #: The rows and the notes of batches that have some.
    notes: tuple[tuple[int, tuple[str, ...]], ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def updated(
        self,
        batch: ScannedBatch,
        scores: Asked,
        loss: "str | CostMatrix | AnyArray | None",
        *,
        several: bool,
    ) -> "StreamCounts":
        """Return those with a batch too; of `several` files its samples are named by theirs."""
        splits, rows = dict(self.splits), 0
        at = f"{batch.piece.path.name}: " if several else ""
        for split, p in batch.splits.items():
            rows += p.n
            splits[split] = splits.get(split, SplitCounts()).updated(p, scores, loss, at)
        return StreamCounts(
            self.pieces + 1,
            self.rows + rows,
            splits,
            (*self.notes, (batch.rows, batch.notes)),
            (*self.skipped, *batch.skipped),
        )

    @property
    def settled(self) -> "StreamCounts":
        """The same with no sample waiting to be counted."""
        return replace(self, splits={name: kept.settled for name, kept in self.splits.items()})

    def merged(self, other: "StreamCounts") -> "StreamCounts":
        """Return those of these pieces and of such as come after them."""
        splits = dict(self.splits)
        for split, counts in other.splits.items():
            splits[split] = splits[split].merged(counts) if split in splits else counts
        return StreamCounts(
            self.pieces + other.pieces,
            self.rows + other.rows,
            splits,
            (*self.notes, *other.notes),
            (*self.skipped, *other.skipped),
        )
