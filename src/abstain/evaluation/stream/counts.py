"""Count samples by confidence, class and group, and store the most extreme samples.

Counts from several processes can be merged. The result is the same for every number of processes.
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

#: Stored samples: rows on disk for graded losses or weights, and counts by confidence otherwise.
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
        """Return the losses of a batch, and whether they require that rows are stored on disk."""
        losses = per_sample_loss(p, self.loss)
        is_binary = losses.dtype.kind == "b" or bool(((losses == 0) | (losses == 1)).all())
        if p.weight is None and is_binary:
            return losses, False
        if self.folder is None:
            subject = "losses beyond 0 and 1" if p.weight is None else "weighted samples"
            raise InputError(
                f"{subject} are sorted on the disk of one machine, which the processes of a "
                f"cluster do not share; take {format_option('engine', 'stream')}"
            )
        return losses, True

    def on_disk(self, state: SampleState) -> SortedRuns:
        """Convert counts to rows on disk."""
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
    """Counts of the samples of one split for one score."""

    state: SampleState
    #: The samples with the probability of a correct prediction as confidence. It is None if the
    #: score is a probability already or cannot be converted.
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
        by_probability = self.by_probability if _has_separate_probability(score) else None
        if by_probability is not None:
            by_probability = by_probability.updated(score.probability, loss, p.weight)
        by_class, by_group = self.by_class, self.by_group
        if not self.is_on_disk:
            by_class = _add_names(by_class, class_codes(p), s.confidence, loss != 0)
            by_group = _add_names(by_group, group_codes(p), s.confidence, loss != 0)
        failures, successes = most_confident_failures(s), least_confident_successes(s)
        failure_keys = -s.confidence[failures].astype(float)
        success_keys = s.confidence[successes]
        overconfident = _keyed_samples(p, s, failures, failure_keys, at)
        underconfident = _keyed_samples(p, s, successes, success_keys, at)
        return ScoreCounts(
            state=self.state.updated(score.values, loss, p.weight),
            by_probability=by_probability,
            is_probability=self.is_probability and score.probability is not None,
            is_column=self.is_column,
            by_class=by_class,
            by_group=by_group,
            overconfident=_lowest_keys(self.overconfident, overconfident),
            underconfident=_lowest_keys(self.underconfident, underconfident),
        )

    def merged(self, other: "ScoreCounts") -> "ScoreCounts":
        """Merge these counts with the counts of later samples."""
        by_probability = None
        if self.by_probability is not None and other.by_probability is not None:
            by_probability = merge(self.by_probability, other.by_probability)
        return ScoreCounts(
            state=merge(self.state, other.state),
            by_probability=by_probability,
            is_probability=self.is_probability and other.is_probability,
            is_column=self.is_column,
            by_class=_merge_counts(self.by_class, other.by_class),
            by_group=_merge_counts(self.by_group, other.by_group),
            overconfident=_lowest_keys(self.overconfident, other.overconfident),
            underconfident=_lowest_keys(self.underconfident, other.underconfident),
        )

    @property
    def is_on_disk(self) -> bool:
        """Whether rows are stored on disk, because losses are graded or samples have weights."""
        return isinstance(self.state, SortedRuns)

    @property
    def finalized(self) -> "ScoreCounts":
        """The counts after all buffered samples are counted or written to disk."""
        by_probability = None if self.by_probability is None else _finalize(self.by_probability)
        return replace(self, state=_finalize(self.state), by_probability=by_probability)

    def on_disk(self, options: CountingOptions) -> "ScoreCounts":
        """Convert the counts to rows on disk, without classes and groups."""
        if self.is_on_disk:
            return self
        by_probability = (
            None if self.by_probability is None else options.on_disk(self.by_probability)
        )
        state = options.on_disk(self.state)
        return replace(self, state=state, by_probability=by_probability, by_class={}, by_group={})


def _finalize(state: SampleState) -> SampleState:
    return state.flushed if isinstance(state, SortedRuns) else state.finalized


def empty_score_counts(score: ConfidenceScore) -> ScoreCounts:
    """Return empty counts of a score, to which batches are added."""
    by_probability = one_pass() if _has_separate_probability(score) else None
    is_column = score.is_user_column
    return ScoreCounts(one_pass(), by_probability, is_probability=True, is_column=is_column)


def _has_separate_probability(score: ConfidenceScore) -> bool:
    """Return whether the probabilities of a score differ from its values."""
    return score.probability is not None and score.probability is not score.values


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
    """Return the group codes of the samples, and the names of the groups as text."""
    if p.group is None:
        return None
    names, codes = encode_names(p.group, "group")
    return codes, [str(name) for name in names]


def _add_names(
    counts_by_name: CountsByName, name_codes: _NameCodes, confidence: Array, is_failure: BoolArray
) -> CountsByName:
    """Add the samples of a batch to the counts of classes or groups."""
    if name_codes is None:
        return counts_by_name
    codes, names = name_codes
    n_samples = np.bincount(codes, minlength=len(names))
    failure_codes = codes[is_failure]
    order = np.argsort(failure_codes, kind="stable")
    sorted_confidence = confidence[is_failure][order]
    ends = np.cumsum(np.bincount(failure_codes, minlength=len(names)))
    confidence_by_code = np.split(sorted_confidence, ends[:-1])
    updated = dict(counts_by_name)
    for code in np.flatnonzero(n_samples).tolist():
        counts = updated.get(names[code], NameCounts())
        updated[names[code]] = NameCounts(
            n=counts.n + int(n_samples[code]),
            failures=counts.failures.added(confidence_by_code[code]),
        )
    return updated


def _merge_counts(first: Mapping[_K, _C], second: Mapping[_K, _C]) -> dict[_K, _C]:
    """Merge two mappings of counts."""
    merged = dict(first)
    for key, counts in second.items():
        merged[key] = merged[key].merged(counts) if key in merged else counts
    return merged


# ------------------------------------------------------------------------------------ samples
def _keyed_samples(
    p: Predictions, s: Scored, indices: IntArray, keys: Array, at: str
) -> tuple[KeyedSample, ...]:
    """Return records of the samples with these indices, each with its sort key."""
    samples = extreme_samples(p, s, indices, at)
    return tuple(zip(map(float, keys), samples, strict=True))


def _lowest_keys(
    first: tuple[KeyedSample, ...], second: tuple[KeyedSample, ...]
) -> tuple[KeyedSample, ...]:
    """Return the samples with the lowest sort keys; equal keys keep their order."""
    return tuple(sorted((*first, *second), key=lambda keyed: keyed[0])[:MAX_SAMPLES])


# ------------------------------------------------------------------------------------ splits
@dataclass(frozen=True, eq=False)
class SplitCounts:
    """Counts of the samples of one split for all scores."""

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
        losses, must_be_on_disk = options.losses(p)
        scores = dict(self.scores)
        for score in compute_scores(p, options.scores):
            counts = scores.get(score.name) or empty_score_counts(score)
            if must_be_on_disk:
                counts = counts.on_disk(options)
            scores[score.name] = counts.updated(p, score, losses, at)
        n_unknown_class = None
        if p.has_labels:
            n_unknown_class = (self.n_unknown_class or 0) + int(np.count_nonzero(p.label_codes < 0))
        pair_counts = Counter(self.label_prediction_counts) + _count_label_prediction_pairs(p)
        return SplitCounts(
            n=self.n + p.n,
            n_unknown_class=n_unknown_class,
            label_prediction_counts=pair_counts,
            scores=scores,
            has_weights=p.weight is not None,
            has_names=class_codes(p) is not None or p.group is not None,
        )

    @property
    def finalized(self) -> "SplitCounts":
        """The counts after all buffered samples are counted."""
        return replace(self, scores={name: score.finalized for name, score in self.scores.items()})

    def merged(self, other: "SplitCounts") -> "SplitCounts":
        """Merge these counts with the counts of later samples."""
        n_unknown_class = self.n_unknown_class
        if n_unknown_class is None:
            n_unknown_class = other.n_unknown_class
        elif other.n_unknown_class is not None:
            n_unknown_class += other.n_unknown_class
        pair_counts = Counter(self.label_prediction_counts) + Counter(other.label_prediction_counts)
        return SplitCounts(
            n=self.n + other.n,
            n_unknown_class=n_unknown_class,
            label_prediction_counts=pair_counts,
            scores=_merge_counts(self.scores, other.scores),
            has_weights=self.has_weights or other.has_weights,
            has_names=self.has_names,
        )


def _count_label_prediction_pairs(p: Predictions) -> Counter[tuple[Hashable, Hashable]]:
    """Return the number of samples of each pair of label and predicted class."""
    if not (p.has_labels and p.has_prediction):
        return Counter()
    names = (NO_CLASS, *p.class_names)
    # Each pair has a code. Class codes start at -1, the code of an unknown class.
    pair_codes = (p.label_codes + 1) * len(names) + p.prediction_codes + 1
    codes, counts = np.unique(pair_codes, return_counts=True)
    pairs: Counter[tuple[Hashable, Hashable]] = Counter()
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        label, prediction = divmod(code, len(names))
        pairs[names[label], names[prediction]] = count
    return pairs


# ------------------------------------------------------------------------------------ all
@dataclass(frozen=True, eq=False)
class StreamCounts:
    """Counts of all batches that have been read so far."""

    #: Numbers of counted batches and rows, without skipped batches and rows.
    n_pieces: int = 0
    n_rows: int = 0
    splits: Mapping[Split, SplitCounts] = field(default_factory=dict)
    #: Number of rows of each batch, and notes about the batch.
    notes: tuple[tuple[int, tuple[Note, ...]], ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def updated(
        self, batch: ScannedBatch, options: CountingOptions, *, several: bool
    ) -> "StreamCounts":
        """Return the counts with a batch added.

        If several files are read, the ids of extreme samples begin with the file name.
        """
        splits, n_rows = dict(self.splits), self.n_rows
        id_prefix = f"{batch.chunk.file_label}: " if several else ""
        for split, predictions in batch.splits.items():
            n_rows += predictions.n
            p = positive_weight_batch(predictions)
            if p is None:
                continue
            splits[split] = splits.get(split, SplitCounts()).updated(p, options, id_prefix)
        return StreamCounts(
            n_pieces=self.n_pieces + 1,
            n_rows=n_rows,
            splits=splits,
            notes=(*self.notes, (batch.n_rows, batch.notes)),
            skipped=(*self.skipped, *batch.skipped),
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
        """The counts after all buffered samples are counted."""
        return replace(self, splits={name: split.finalized for name, split in self.splits.items()})

    def merged(self, other: "StreamCounts") -> "StreamCounts":
        """Merge these counts with the counts of later batches."""
        return StreamCounts(
            n_pieces=self.n_pieces + other.n_pieces,
            n_rows=self.n_rows + other.n_rows,
            splits=_merge_counts(self.splits, other.splits),
            notes=(*self.notes, *other.notes),
            skipped=(*self.skipped, *other.skipped),
        )
