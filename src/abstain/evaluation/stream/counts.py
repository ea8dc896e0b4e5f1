"""What is kept of batches: counts by confidence, of all samples and by name, and a few samples.

Everything here can be joined with the same of other batches, so that parts of the data may be read
one after the other or by several processes; joined in order, the result is the same.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from abstain._foundation.names import coded
from abstain._foundation.notes import Note
from abstain._foundation.option_words import option
from abstain._foundation.scored import Scored
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError
from abstain.evaluation.counted_rows import counted_batch
from abstain.evaluation.inputs import Asked, join, scores_of
from abstain.evaluation.part import (
    SHOWN,
    least_confident_successes,
    most_confident_failures,
    samples_of,
)
from abstain.evaluation.records import ExtremeSample
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.streaming import GroupCounts, SortedRuns, merge, one_pass, sorted_runs
from abstain.streaming.tally import Tally, empty_tally
from abstain.tables.scan import ScannedBatch, Skipped
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Split

#: Stands for the label of samples of no known class.
NO_CLASS = "(no known class)"

#: What is kept of the samples: counts, or rows on disk where losses or weights differ.
Kept: TypeAlias = GroupCounts | SortedRuns

#: A sample with what it is ordered by, the lowest first.
Keyed: TypeAlias = tuple[float, ExtremeSample]


@dataclass(frozen=True, eq=False)
class Question:
    """What is counted: of which scores, by which loss, and where rows go that cannot be counted."""

    scores: Asked
    loss: "str | CostMatrix | AnyArray | None"
    #: A folder on this machine; None where rows may not be written.
    folder: Path | None = None
    #: Bytes that what one metric takes of rows may fill.
    memory: int = 1 << 30

    def losses(self, p: Predictions) -> tuple[Array, bool]:
        """Return those of a batch, and whether they are graded or weighted."""
        losses = per_sample_loss(p, self.loss)
        counted = losses.dtype.kind == "b" or bool(((losses == 0) | (losses == 1)).all())
        graded = p.weight is not None or not counted
        if graded and self.folder is None:
            what = "weighted samples are" if p.weight is not None else "losses beyond 0 and 1 are"
            raise InputError(
                f"{what} sorted on the disk of one machine, which the processes of a cluster do "
                f"not share; take {option('engine', 'stream')}"
            )
        return losses, graded

    def on_disk(self, state: Kept) -> SortedRuns:
        """Return the same samples as rows."""
        if isinstance(state, SortedRuns):
            return state
        runs = sorted_runs(self.folder or Path(), memory=self.memory)
        return runs.of_counts(state.right, state.wrong, state.precision)


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

    state: Kept
    #: The same by the probability of being right, where that is another number than the score.
    chance: Kept | None
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
        chance = self.chance if other else None
        if chance is not None:
            chance = chance.updated(score.probability, loss, p.weight)
        named = not self.graded
        over, under = most_confident_failures(s), least_confident_successes(s)
        return ScoreCounts(
            self.state.updated(score.values, loss, p.weight),
            chance,
            self.sure and score.probability is not None,
            self.own,
            _with_names(self.by_class, classes_of(p) if named else None, s.confidence, failed),
            _with_names(self.by_group, groups_of(p) if named else None, s.confidence, failed),
            _lowest(self.overconfident, _keyed(p, s, over, -s.confidence[over].astype(float), at)),
            _lowest(self.underconfident, _keyed(p, s, under, s.confidence[under], at)),
        )

    def merged(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return those of these samples and of such as come after them."""
        both = self.chance is not None and other.chance is not None
        return ScoreCounts(
            merge(self.state, other.state),
            merge(self.chance, other.chance) if both else None,  # type: ignore[type-var]
            self.sure and other.sure,
            self.own,
            _joined(self.by_class, other.by_class),
            _joined(self.by_group, other.by_group),
            _lowest(self.overconfident, other.overconfident),
            _lowest(self.underconfident, other.underconfident),
        )

    @property
    def graded(self) -> bool:
        """Whether losses or weights differ, so that rows are on disk."""
        return isinstance(self.state, SortedRuns)

    @property
    def settled(self) -> "ScoreCounts":
        """The same with no sample waiting to be counted or written."""
        chance = None if self.chance is None else _settled(self.chance)
        return replace(self, state=_settled(self.state), chance=chance)

    def on_disk(self, question: Question) -> "ScoreCounts":
        """Return the same as rows; classes and groups are counted for 0/1 losses alone."""
        if self.graded:
            return self
        chance = None if self.chance is None else question.on_disk(self.chance)
        state = question.on_disk(self.state)
        return replace(self, state=state, chance=chance, by_class={}, by_group={})


def _settled(state: Kept) -> Kept:
    return state.flushed if isinstance(state, SortedRuns) else state.settled


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

    #: Whether samples have weights.
    weighted: bool = False
    #: Whether they have classes or groups.
    named: bool = False

    def updated(self, p: Predictions, question: Question, at: str) -> "SplitCounts":
        """Return those with a batch too."""
        losses, graded = question.losses(p)
        known = dict(self.scores)
        for score in scores_of(p, question.scores):
            before = known.get(score.name)
            if before is None:
                other = score.probability is not None and score.probability is not score.values
                before = score_counts(chance=other, own=score.own)
            before = before.on_disk(question) if graded else before
            known[score.name] = before.updated(p, score, losses, at)
        unknown = None
        if p.has_labels:
            unknown = (self.unknown or 0) + int(np.count_nonzero(p.label_codes < 0))
        named = classes_of(p) is not None or p.group is not None
        answers = dict(self.answers)
        for pair, count in _answers(p):
            answers[pair] = answers.get(pair, 0) + count
        return SplitCounts(self.n + p.n, unknown, answers, known, p.weight is not None, named)

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
        n, unknown = self.n + other.n, sum(known) if known else None
        return SplitCounts(n, unknown, answers, scores, self.weighted or other.weighted, self.named)


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
    notes: tuple[tuple[int, tuple[Note, ...]], ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def updated(self, batch: ScannedBatch, question: Question, *, several: bool) -> "StreamCounts":
        """Return those with a batch too; of `several` files its samples are named by theirs."""
        splits, rows = dict(self.splits), 0
        at = f"{batch.chunk.file_label}: " if several else ""
        for split, passed in batch.splits.items():
            rows += passed.n
            p = counted_batch(passed)
            if p is None:
                continue
            splits[split] = splits.get(split, SplitCounts()).updated(p, question, at)
        return StreamCounts(
            self.pieces + 1,
            self.rows + rows,
            splits,
            (*self.notes, (batch.n_rows, batch.notes)),
            (*self.skipped, *batch.skipped),
        )

    @property
    def named(self) -> bool:
        """Whether samples have classes or groups."""
        return any(split.named for split in self.splits.values())

    @property
    def graded(self) -> bool:
        """Whether rows are on disk."""
        kept = [score for split in self.splits.values() for score in split.scores.values()]
        return any(score.graded for score in kept)

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
