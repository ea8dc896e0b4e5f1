"""What is kept of batches: counts by confidence, of all samples and by name, and a few samples.

Everything here can be joined with the same of other batches, so that parts of the data may be read
one after the other or by several processes; joined in order, the result is the same.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from abstain._foundation.names import encode_names
from abstain._foundation.notes import Note
from abstain._foundation.option_format import format_option
from abstain._foundation.scored import Scored
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError
from abstain.evaluation.inputs import RequestedScores, compute_scores, join
from abstain.evaluation.positive_weights import positive_weight_batch
from abstain.evaluation.records import ExtremeSample
from abstain.evaluation.scored_split import (
    MAX_SAMPLES,
    extreme_samples,
    least_confident_successes,
    most_confident_failures,
)
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.streaming import GroupCounts, SortedRuns, merge, one_pass, sorted_runs
from abstain.streaming.value_counts import ValueCounts, empty_value_counts
from abstain.tables.scan import ScannedBatch, Skipped
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Split

#: Stands for the label of samples of no known class.
NO_CLASS = "(no known class)"

#: What is kept of the samples: counts, or rows on disk where losses or weights differ.
SampleState: TypeAlias = GroupCounts | SortedRuns

#: A sample with what it is ordered by, the lowest first.
KeyedSample: TypeAlias = tuple[float, ExtremeSample]


@dataclass(frozen=True, eq=False)
class CountingOptions:
    """What is counted: of which scores, by which loss, and where rows go that cannot be counted."""

    scores: RequestedScores
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
                f"not share; take {format_option('engine', 'stream')}"
            )
        return losses, graded

    def on_disk(self, state: SampleState) -> SortedRuns:
        """Return the same samples as rows."""
        if isinstance(state, SortedRuns):
            return state
        runs = sorted_runs(self.folder or Path(), memory=self.memory)
        return runs.with_counts(state.successes, state.failures, state.precision)


@dataclass(frozen=True, eq=False)
class NameCounts:
    """How many samples have a name, and the confidences of the failures among them."""

    n: int = 0
    failures: ValueCounts = field(default_factory=empty_value_counts)

    def merged(self, other: "NameCounts") -> "NameCounts":
        """Return those of both."""
        return NameCounts(self.n + other.n, self.failures.merged(other.failures))


CountsByName: TypeAlias = Mapping[Hashable, NameCounts]


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """What is kept of one score on one part of the data."""

    state: SampleState
    #: The same by the probability of being right, where that is another number than the score.
    by_probability: SampleState | None
    #: Whether every value so far means a probability.
    is_probability: bool
    #: Whether the score is a column of the data.
    is_column: bool
    by_class: CountsByName = field(default_factory=dict)
    by_group: CountsByName = field(default_factory=dict)
    overconfident: tuple[KeyedSample, ...] = ()
    underconfident: tuple[KeyedSample, ...] = ()

    def updated(
        self, p: Predictions, score: ConfidenceScore, loss: Array, at: str
    ) -> "ScoreCounts":
        """Return those with a batch too."""
        s = join(p, score, loss)
        failed: BoolArray = loss != 0
        other = score.probability is not None and score.probability is not score.values
        chance = self.by_probability if other else None
        if chance is not None:
            chance = chance.updated(score.probability, loss, p.weight)
        named = not self.is_on_disk
        over, under = most_confident_failures(s), least_confident_successes(s)
        return ScoreCounts(
            self.state.updated(score.values, loss, p.weight),
            chance,
            self.is_probability and score.probability is not None,
            self.is_column,
            _add_names(self.by_class, class_codes(p) if named else None, s.confidence, failed),
            _add_names(self.by_group, group_codes(p) if named else None, s.confidence, failed),
            _lowest_keys(
                self.overconfident,
                _keyed_samples(p, s, over, -s.confidence[over].astype(float), at),
            ),
            _lowest_keys(self.underconfident, _keyed_samples(p, s, under, s.confidence[under], at)),
        )

    def merged(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return those of these samples and of such as come after them."""
        both = self.by_probability is not None and other.by_probability is not None
        return ScoreCounts(
            merge(self.state, other.state),
            merge(self.by_probability, other.by_probability) if both else None,  # type: ignore[type-var]
            self.is_probability and other.is_probability,
            self.is_column,
            _merge_names(self.by_class, other.by_class),
            _merge_names(self.by_group, other.by_group),
            _lowest_keys(self.overconfident, other.overconfident),
            _lowest_keys(self.underconfident, other.underconfident),
        )

    @property
    def is_on_disk(self) -> bool:
        """Whether losses or weights differ, so that rows are on disk."""
        return isinstance(self.state, SortedRuns)

    @property
    def finalized(self) -> "ScoreCounts":
        """The same with no sample waiting to be counted or written."""
        chance = None if self.by_probability is None else _finalize(self.by_probability)
        return replace(self, state=_finalize(self.state), by_probability=chance)

    def on_disk(self, question: CountingOptions) -> "ScoreCounts":
        """Return the same as rows; classes and groups are counted for 0/1 losses alone."""
        if self.is_on_disk:
            return self
        chance = None if self.by_probability is None else question.on_disk(self.by_probability)
        state = question.on_disk(self.state)
        return replace(self, state=state, by_probability=chance, by_class={}, by_group={})


def _finalize(state: SampleState) -> SampleState:
    return state.flushed if isinstance(state, SortedRuns) else state.finalized


def empty_score_counts(*, chance: bool, own: bool) -> ScoreCounts:
    """Return the counts of no samples."""
    return ScoreCounts(
        one_pass(), one_pass() if chance else None, is_probability=True, is_column=own
    )


# ------------------------------------------------------------------------------------ names
#: The code of each sample and the name of each code; None where there are no names.
_NameCodes: TypeAlias = tuple[IntArray, Sequence[Hashable]] | None


def class_codes(p: Predictions) -> _NameCodes:
    """Return the labels of predictions that have some and say what was predicted."""
    if not (p.has_labels and p.has_prediction):
        return None
    # Those of no known class, of code -1, come first.
    return p.label_codes + 1, (NO_CLASS, *p.class_names)


def group_codes(p: Predictions) -> _NameCodes:
    """Return the groups of predictions, as text."""
    if p.group is None:
        return None
    names, codes = encode_names(p.group, "group")
    return codes, [str(name) for name in names]


def _add_names(
    known: CountsByName, found: _NameCodes, confidence: Array, failed: BoolArray
) -> CountsByName:
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
        out[names[i]] = NameCounts(before.n + int(counts[i]), before.failures.added(parts[i]))
    return out


def _merge_names(one: CountsByName, two: CountsByName) -> CountsByName:
    out = dict(one)
    for name, counts in two.items():
        out[name] = out[name].merged(counts) if name in out else counts
    return out


# ------------------------------------------------------------------------------------ samples
def _keyed_samples(
    p: Predictions, s: Scored, rows: IntArray, key: Array, at: str
) -> tuple[KeyedSample, ...]:
    found = extreme_samples(p, s, rows, at)
    return tuple(zip(map(float, key), found, strict=True))


def _lowest_keys(
    one: tuple[KeyedSample, ...], two: tuple[KeyedSample, ...]
) -> tuple[KeyedSample, ...]:
    """Return the lowest of both; of equal ones those that came first."""
    return tuple(sorted((*one, *two), key=lambda keyed: keyed[0])[:MAX_SAMPLES])


# ------------------------------------------------------------------------------------ splits
@dataclass(frozen=True, eq=False)
class SplitCounts:
    """What is kept of one part of the data."""

    n: int = 0
    #: Samples of no known class; None without labels.
    n_unknown_class: int | None = None
    #: How often each label came with each prediction.
    label_prediction_counts: Mapping[tuple[Hashable, Hashable], int] = field(default_factory=dict)
    scores: Mapping[str, ScoreCounts] = field(default_factory=dict)

    #: Whether samples have weights.
    has_weights: bool = False
    #: Whether they have classes or groups.
    has_names: bool = False

    def updated(self, p: Predictions, question: CountingOptions, at: str) -> "SplitCounts":
        """Return those with a batch too."""
        losses, graded = question.losses(p)
        known = dict(self.scores)
        for score in compute_scores(p, question.scores):
            before = known.get(score.name)
            if before is None:
                other = score.probability is not None and score.probability is not score.values
                before = empty_score_counts(chance=other, own=score.is_user_column)
            before = before.on_disk(question) if graded else before
            known[score.name] = before.updated(p, score, losses, at)
        unknown = None
        if p.has_labels:
            unknown = (self.n_unknown_class or 0) + int(np.count_nonzero(p.label_codes < 0))
        named = class_codes(p) is not None or p.group is not None
        answers = dict(self.label_prediction_counts)
        for pair, count in _count_label_prediction_pairs(p):
            answers[pair] = answers.get(pair, 0) + count
        return SplitCounts(self.n + p.n, unknown, answers, known, p.weight is not None, named)

    @property
    def finalized(self) -> "SplitCounts":
        """The same with no sample waiting to be counted."""
        return replace(self, scores={name: kept.finalized for name, kept in self.scores.items()})

    def merged(self, other: "SplitCounts") -> "SplitCounts":
        """Return those of these samples and of such as come after them."""
        scores = dict(self.scores)
        for name, counts in other.scores.items():
            scores[name] = scores[name].merged(counts) if name in scores else counts
        answers = dict(self.label_prediction_counts)
        for pair, count in other.label_prediction_counts.items():
            answers[pair] = answers.get(pair, 0) + count
        known = [
            unknown
            for unknown in (self.n_unknown_class, other.n_unknown_class)
            if unknown is not None
        ]
        n, unknown = self.n + other.n, sum(known) if known else None
        return SplitCounts(
            n, unknown, answers, scores, self.has_weights or other.has_weights, self.has_names
        )


def _count_label_prediction_pairs(
    p: Predictions,
) -> Iterable[tuple[tuple[Hashable, Hashable], int]]:
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
    n_pieces: int = 0
    n_rows: int = 0
    splits: Mapping[Split, SplitCounts] = field(default_factory=dict)
    #: The rows and the notes of batches that have some.
    notes: tuple[tuple[int, tuple[Note, ...]], ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def updated(
        self, batch: ScannedBatch, question: CountingOptions, *, several: bool
    ) -> "StreamCounts":
        """Return those with a batch too; of `several` files its samples are named by theirs."""
        splits, rows = dict(self.splits), 0
        at = f"{batch.chunk.file_label}: " if several else ""
        for split, passed in batch.splits.items():
            rows += passed.n
            p = positive_weight_batch(passed)
            if p is None:
                continue
            splits[split] = splits.get(split, SplitCounts()).updated(p, question, at)
        return StreamCounts(
            self.n_pieces + 1,
            self.n_rows + rows,
            splits,
            (*self.notes, (batch.n_rows, batch.notes)),
            (*self.skipped, *batch.skipped),
        )

    @property
    def has_names(self) -> bool:
        """Whether samples have classes or groups."""
        return any(split.has_names for split in self.splits.values())

    @property
    def is_on_disk(self) -> bool:
        """Whether rows are on disk."""
        kept = [score for split in self.splits.values() for score in split.scores.values()]
        return any(score.is_on_disk for score in kept)

    @property
    def finalized(self) -> "StreamCounts":
        """The same with no sample waiting to be counted."""
        return replace(self, splits={name: kept.finalized for name, kept in self.splits.items()})

    def merged(self, other: "StreamCounts") -> "StreamCounts":
        """Return those of these pieces and of such as come after them."""
        splits = dict(self.splits)
        for split, counts in other.splits.items():
            splits[split] = splits[split].merged(counts) if split in splits else counts
        return StreamCounts(
            self.n_pieces + other.n_pieces,
            self.n_rows + other.n_rows,
            splits,
            (*self.notes, *other.notes),
            (*self.skipped, *other.skipped),
        )
