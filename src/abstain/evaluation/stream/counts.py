"""Count samples by confidence, class and group, and keep a few extreme samples.

The counts of different batches can be merged, so several processes can read the data. Merges in the
order of the data always give the same result.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from abstain._foundation.names import encode_names
from abstain._foundation.notes import Note
from abstain._foundation.option_format import format_option
from abstain._foundation.scored import Scored
from abstain.confidence import ConfidenceScore
from abstain.errors import InputError
from abstain.evaluation.inputs import RequestedScores, compute_scores, join, positive_weight_batch
from abstain.evaluation.records import ExtremeSample
from abstain.evaluation.scored_split import (
    MAX_SAMPLES,
    extreme_samples,
    least_confident_successes,
    most_confident_failures,
)
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.streaming import GroupCounts, SortedRuns, merge, one_pass, sorted_runs
from abstain.streaming.groups import ValueCounts, empty_value_counts
from abstain.tables.scan import ScannedBatch, Skipped
from abstain.typing import AnyArray, Array, BoolArray, IntArray, Split

#: Label of samples whose class is unknown.
NO_CLASS = "(no known class)"

_K = TypeVar("_K")
#: Type variable for counts that have a method `merged`.
_C = TypeVar("_C", bound=Any)

#: State of the samples, which is rows on disk for graded losses or weights, and counts otherwise.
SampleState: TypeAlias = GroupCounts | SortedRuns

#: A sort key and a sample. The sample with the lowest key comes first.
KeyedSample: TypeAlias = tuple[float, ExtremeSample]


@dataclass(frozen=True, eq=False)
class CountingOptions:
    """The requested scores and loss, and the folder for rows with graded losses or weights."""

    scores: RequestedScores
    loss: "str | CostMatrix | AnyArray | None"
    #: A folder on this machine, or None if rows must not be written.
    folder: Path | None = None
    #: Maximum number of bytes of the rows that one metric reads.
    memory: int = 1 << 30

    def losses(self, p: Predictions) -> tuple[Array, bool]:
        """Return the losses of a batch, and whether the losses are graded or weighted."""
        losses = per_sample_loss(p, self.loss)
        is_binary = losses.dtype.kind == "b" or bool(((losses == 0) | (losses == 1)).all())
        graded = p.weight is not None or not is_binary
        if graded and self.folder is None:
            subject = (
                "weighted samples are" if p.weight is not None else "losses beyond 0 and 1 are"
            )
            raise InputError(
                f"{subject} sorted on the disk of one machine, which the processes of a cluster do "
                f"not share; take {format_option('engine', 'stream')}"
            )
        return losses, graded

    def on_disk(self, state: SampleState) -> SortedRuns:
        """Return a state of the same samples as rows on disk."""
        if isinstance(state, SortedRuns):
            return state
        runs = sorted_runs(self.folder or Path(), memory=self.memory)
        return runs.with_counts(state.successes, state.failures, state.precision)


@dataclass(frozen=True, eq=False)
class NameCounts:
    """Number of samples of a class or group, and the confidences of its failures."""

    n: int = 0
    failures: ValueCounts = field(default_factory=empty_value_counts)

    def merged(self, other: "NameCounts") -> "NameCounts":
        """Return the sum of these counts and other counts."""
        return NameCounts(self.n + other.n, self.failures.merged(other.failures))


CountsByName: TypeAlias = Mapping[Hashable, NameCounts]


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Counts of one score on one split."""

    state: SampleState
    #: The state with the probability of success as confidence, if the score is no probability.
    by_probability: SampleState | None
    #: Whether all values of the score so far are in [0, 1].
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
        """Return the counts with a batch added."""
        s = join(p, score, loss)
        failed: BoolArray = loss != 0
        has_probability = score.probability is not None and score.probability is not score.values
        by_probability = self.by_probability if has_probability else None
        if by_probability is not None:
            by_probability = by_probability.updated(score.probability, loss, p.weight)
        count_names = not self.is_on_disk
        over, under = most_confident_failures(s), least_confident_successes(s)
        return ScoreCounts(
            self.state.updated(score.values, loss, p.weight),
            by_probability,
            self.is_probability and score.probability is not None,
            self.is_column,
            _add_names(
                self.by_class, class_codes(p) if count_names else None, s.confidence, failed
            ),
            _add_names(
                self.by_group, group_codes(p) if count_names else None, s.confidence, failed
            ),
            _lowest_keys(
                self.overconfident,
                _keyed_samples(p, s, over, -s.confidence[over].astype(float), at),
            ),
            _lowest_keys(self.underconfident, _keyed_samples(p, s, under, s.confidence[under], at)),
        )

    def merged(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return the counts of these samples and of later samples together."""
        have_probability = self.by_probability is not None and other.by_probability is not None
        return ScoreCounts(
            merge(self.state, other.state),
            merge(self.by_probability, other.by_probability) if have_probability else None,  # type: ignore[type-var]
            self.is_probability and other.is_probability,
            self.is_column,
            _merge_counts(self.by_class, other.by_class),
            _merge_counts(self.by_group, other.by_group),
            _lowest_keys(self.overconfident, other.overconfident),
            _lowest_keys(self.underconfident, other.underconfident),
        )

    @property
    def is_on_disk(self) -> bool:
        """Whether rows are stored on disk, because losses are graded or weighted."""
        return isinstance(self.state, SortedRuns)

    @property
    def finalized(self) -> "ScoreCounts":
        """The counts after all pending samples are counted or written."""
        by_probability = None if self.by_probability is None else _finalize(self.by_probability)
        return replace(self, state=_finalize(self.state), by_probability=by_probability)

    def on_disk(self, options: CountingOptions) -> "ScoreCounts":
        """Return the samples as rows on disk, without classes and groups."""
        if self.is_on_disk:
            return self
        by_probability = (
            None if self.by_probability is None else options.on_disk(self.by_probability)
        )
        state = options.on_disk(self.state)
        return replace(self, state=state, by_probability=by_probability, by_class={}, by_group={})


def _finalize(state: SampleState) -> SampleState:
    return state.flushed if isinstance(state, SortedRuns) else state.finalized


def empty_score_counts(*, has_probability: bool, is_column: bool) -> ScoreCounts:
    """Return empty counts, to which batches are added."""
    by_probability = one_pass() if has_probability else None
    return ScoreCounts(one_pass(), by_probability, is_probability=True, is_column=is_column)


# ------------------------------------------------------------------------------------ names
#: The code of each sample and the name of each code, or None without names.
_NameCodes: TypeAlias = tuple[IntArray, Sequence[Hashable]] | None


def class_codes(p: Predictions) -> _NameCodes:
    """Return the codes of the labels, or None if there are no labels or no predictions."""
    if not (p.has_labels and p.has_prediction):
        return None
    # Unknown classes have the code -1 and come first.
    return p.label_codes + 1, (NO_CLASS, *p.class_names)


def group_codes(p: Predictions) -> _NameCodes:
    """Return the codes of the groups with the names of the groups as text."""
    if p.group is None:
        return None
    names, codes = encode_names(p.group, "group")
    return codes, [str(name) for name in names]


def _add_names(
    counts_by_name: CountsByName, name_codes: _NameCodes, confidence: Array, failed: BoolArray
) -> CountsByName:
    """Return the counts of classes or groups with the samples of a batch added."""
    if name_codes is None:
        return counts_by_name
    codes, names = name_codes
    counts = np.bincount(codes, minlength=len(names))
    failed_confidence, failed_codes = confidence[failed], codes[failed]
    order = np.argsort(failed_codes, kind="stable")
    ends = np.cumsum(np.bincount(failed_codes, minlength=len(names)))
    failures = np.split(failed_confidence[order], ends[:-1])
    out = dict(counts_by_name)
    for i in np.flatnonzero(counts).tolist():
        before = out.get(names[i], NameCounts())
        out[names[i]] = NameCounts(before.n + int(counts[i]), before.failures.added(failures[i]))
    return out


def _merge_counts(first: Mapping[_K, _C], second: Mapping[_K, _C]) -> dict[_K, _C]:
    """Return the merged counts of each key."""
    merged = dict(first)
    for key, counts in second.items():
        merged[key] = merged[key].merged(counts) if key in merged else counts
    return merged


# ------------------------------------------------------------------------------------ samples
def _keyed_samples(
    p: Predictions, s: Scored, rows: IntArray, key: Array, at: str
) -> tuple[KeyedSample, ...]:
    samples = extreme_samples(p, s, rows, at)
    return tuple(zip(map(float, key), samples, strict=True))


def _lowest_keys(
    first: tuple[KeyedSample, ...], second: tuple[KeyedSample, ...]
) -> tuple[KeyedSample, ...]:
    """Return the samples with the lowest keys; earlier samples precede others with equal keys."""
    return tuple(sorted((*first, *second), key=lambda keyed: keyed[0])[:MAX_SAMPLES])


# ------------------------------------------------------------------------------------ splits
@dataclass(frozen=True, eq=False)
class SplitCounts:
    """Counts of the samples of one split."""

    n: int = 0
    #: Number of samples whose class is unknown, or None without labels.
    n_unknown_class: int | None = None
    #: Number of samples of each pair of label and prediction.
    label_prediction_counts: Mapping[tuple[Hashable, Hashable], int] = field(default_factory=dict)
    scores: Mapping[str, ScoreCounts] = field(default_factory=dict)

    #: Whether samples have weights.
    has_weights: bool = False
    #: Whether samples have classes or groups.
    has_names: bool = False

    def updated(self, p: Predictions, options: CountingOptions, at: str) -> "SplitCounts":
        """Return the counts with a batch added."""
        losses, graded = options.losses(p)
        scores = dict(self.scores)
        for score in compute_scores(p, options.scores):
            before = scores.get(score.name)
            if before is None:
                has_probability = (
                    score.probability is not None and score.probability is not score.values
                )
                before = empty_score_counts(
                    has_probability=has_probability, is_column=score.is_user_column
                )
            before = before.on_disk(options) if graded else before
            scores[score.name] = before.updated(p, score, losses, at)
        n_unknown_class = None
        if p.has_labels:
            n_unknown_class = (self.n_unknown_class or 0) + int(np.count_nonzero(p.label_codes < 0))
        has_names = class_codes(p) is not None or p.group is not None
        pair_counts = Counter(self.label_prediction_counts) + _count_label_prediction_pairs(p)
        return SplitCounts(
            self.n + p.n, n_unknown_class, pair_counts, scores, p.weight is not None, has_names
        )

    @property
    def finalized(self) -> "SplitCounts":
        """The counts after all pending samples are counted."""
        return replace(self, scores={name: score.finalized for name, score in self.scores.items()})

    def merged(self, other: "SplitCounts") -> "SplitCounts":
        """Return the counts of these samples and of later samples together."""
        unknown_counts = [
            count for count in (self.n_unknown_class, other.n_unknown_class) if count is not None
        ]
        n_unknown_class = sum(unknown_counts) if unknown_counts else None
        return SplitCounts(
            self.n + other.n,
            n_unknown_class,
            Counter(self.label_prediction_counts) + Counter(other.label_prediction_counts),
            _merge_counts(self.scores, other.scores),
            self.has_weights or other.has_weights,
            self.has_names,
        )


def _count_label_prediction_pairs(p: Predictions) -> Counter[tuple[Hashable, Hashable]]:
    if not (p.has_labels and p.has_prediction):
        return Counter()
    names = (NO_CLASS, *p.class_names)
    keys = (p.label_codes + 1) * len(names) + p.prediction_codes + 1
    pair_keys, counts = np.unique(keys, return_counts=True)
    pairs = [(names[key // len(names)], names[key % len(names)]) for key in pair_keys.tolist()]
    return Counter(dict(zip(pairs, counts.tolist(), strict=True)))


# ------------------------------------------------------------------------------------ all
@dataclass(frozen=True, eq=False)
class StreamCounts:
    """Counts of all batches that have been read so far."""

    #: Numbers of counted pieces and rows, without skipped pieces and rows.
    n_pieces: int = 0
    n_rows: int = 0
    splits: Mapping[Split, SplitCounts] = field(default_factory=dict)
    #: Number of rows of each batch, and notes about the batch.
    notes: tuple[tuple[int, tuple[Note, ...]], ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def updated(
        self, batch: ScannedBatch, options: CountingOptions, *, several: bool
    ) -> "StreamCounts":
        """Return the counts with a batch added; `several` adds the file to the sample names."""
        splits, n_rows = dict(self.splits), 0
        at = f"{batch.chunk.file_label}: " if several else ""
        for split, predictions in batch.splits.items():
            n_rows += predictions.n
            p = positive_weight_batch(predictions)
            if p is None:
                continue
            splits[split] = splits.get(split, SplitCounts()).updated(p, options, at)
        return StreamCounts(
            self.n_pieces + 1,
            self.n_rows + n_rows,
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
        """Whether any rows are stored on disk."""
        scores = [score for split in self.splits.values() for score in split.scores.values()]
        return any(score.is_on_disk for score in scores)

    @property
    def finalized(self) -> "StreamCounts":
        """The counts after all pending samples are counted."""
        return replace(self, splits={name: split.finalized for name, split in self.splits.items()})

    def merged(self, other: "StreamCounts") -> "StreamCounts":
        """Return the counts of these pieces and of later pieces together."""
        return StreamCounts(
            self.n_pieces + other.n_pieces,
            self.n_rows + other.n_rows,
            _merge_counts(self.splits, other.splits),
            (*self.notes, *other.notes),
            (*self.skipped, *other.skipped),
        )
