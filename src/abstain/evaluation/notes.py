"""What the reader of the numbers should know: ties, saturation, small counts, in plain words."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.evaluation.records import Result
from abstain.evaluation.scored_split import ScoredSplit
from abstain.inference.small_samples import MIN_FAILURES, MIN_FAILURES_HEAVY_TAILED
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import Predictions
from abstain.typing import Array

#: Share of tied samples from which they are worth a sentence, and how far AUGRC may move over
#: all orders of them, relative to itself, before that is a warning.
TIED_NOTE, TIE_WARNING = 0.01, 0.05
#: Share of samples at one extreme confidence from which it is called a mass point, and from
#: which it is a warning.
MASS_POINT, SATURATED = 0.01, 0.20
#: Standard deviations of a score that knows nothing, from which on it is worth a warning.
_NOTABLE = 2.0


def reading_notes(
    notes: str | Sequence[str | Note], parts: Iterable[Predictions] = ()
) -> list[Note]:
    """Return what was met before the numbers: the notes given, and those of the predictions."""
    given = [notes] if isinstance(notes, str) else notes
    records = [note if isinstance(note, Note) else Note(READING, note) for note in given]
    texts = {note.text for note in records}
    new_texts = dict.fromkeys(t for part in parts for t in part.notes if t not in texts)
    return [*records, *(Note(READING, text) for text in new_texts)]


def score_notes(part: ScoredSplit, results: Iterable[Result]) -> list[Note]:
    """Return what is worth knowing about one score on one split."""
    s = part.s
    values = {result.metric.name: result for result in results}
    notes = [
        *_counts(s, part.n_unknown_class),
        *_saturation(s, part.scored_by_probability.probability_or_confidence),
        *_ties(s, values.get(DEFAULT_METRIC)),
    ]
    if text := direction_warning(s, own=part.is_column):
        notes.append(Note.warning("direction", text))
    if part.n_unknown_class:
        text = "samples belong to no class that the model knows; they count as wrong."
        notes.append(Note("unknown_class", f"{part.n_unknown_class:,} {text}"))
    if part.scored_by_probability.probability is None:
        text = "This score is not a probability, so calibration (ECE, MCE) and CWSA do not apply "
        notes.append(Note("scale", f"{text}to it."))
    # A split has the same samples under every score.
    shared = {"few_failures", "unknown_class", "all_right", "all_wrong", "all_alike"}
    score = part.score
    return [
        replace(note, split=part.split, score="" if note.kind in shared else score)
        for note in notes
    ]


def _counts(s: Scored, unknown: int | None) -> Iterator[Note]:
    if s.loss.min() == s.loss.max():
        yield _all_alike(s, known=unknown is None or unknown < s.n_samples)
    elif s.is_binary and s.n_failures < MIN_FAILURES_HEAVY_TAILED:
        yield _few_failures(s)


def _all_alike(s: Scored, *, known: bool) -> Note:
    same = "so no score can be told from another: ranking metrics are undefined."
    if not s.is_binary:
        return Note.warning("all_alike", f"All {s.n_samples:,} samples have the same loss, {same}")
    if s.n_failures == 0:
        return Note.warning("all_right", f"No sample of {s.n_samples:,} is wrong, {same}")
    check = " Check that labels and predictions name the classes alike." if known else ""
    return Note.warning("all_wrong", f"All {s.n_samples:,} samples are wrong, {same}{check}")


def _few_failures(s: Scored) -> Note:
    share = f"{s.n_failures:,} of {s.n_samples:,} samples are wrong."
    if s.n_failures < MIN_FAILURES:
        noise = f"With fewer than {MIN_FAILURES} failures every number here may change a lot"
        message = f"Only {share} {noise} on new data; do not rank by it."
        return Note.warning("few_failures", message)
    enough = "That is enough for the interval of AUGRC, but not for that of AURC below about"
    return Note("few_failures", f"{share} {enough} {MIN_FAILURES_HEAVY_TAILED} failures.")


def _n_failures_at_the_top(s: Scored) -> int:
    """Return how many samples of the highest confidence fail, whatever their weights."""
    if s.has_unit_weights:
        return int(s.merged_groups.loss[0])
    return int(np.count_nonzero(s.loss[s.confidence == s.confidence.max()]))


def _saturation(s: Scored, shown: Array) -> Iterator[Note]:
    top, bottom = _at_the_ends(s.merged_groups)
    if top == s.merged_groups.n_samples:
        yield Note.warning(
            "constant",
            f"Every confidence is {float(shown.max()):.6g}: this score cannot reject "
            "anything in particular.",
        )
        return
    if top > 1 and top / s.n_samples >= MASS_POINT:
        wrong = _n_failures_at_the_top(s)
        of_them = f" {wrong:,} of them are wrong, accepted at every threshold."
        of_them = of_them if wrong and s.is_binary else ""
        yield Note(
            "saturation",
            f"{top / s.n_samples:.1%} of the samples ({top:,}) have the highest confidence, "
            f"exactly {float(shown.max()):.6g}; no threshold can tell them apart.{of_them}",
            level="warning" if top / s.n_samples >= SATURATED else "note",
        )
    if bottom > 1 and bottom / s.n_samples >= MASS_POINT:
        yield Note(
            "abstentions",
            f"{bottom / s.n_samples:.1%} of the samples ({bottom:,}) have the lowest confidence, "
            f"exactly {float(shown.min()):.6g}; they are rejected together or not "
            "at all.",
        )


def _at_the_ends(groups: TieGroups) -> tuple[int, int]:
    """Return how many samples have the highest confidence, and how many the lowest."""
    ends = [0, -1]
    count = groups.count[ends]
    if groups.is_merged is not None:
        # A merged sample is tied with nothing.
        count = np.where(groups.is_merged[ends], 1, count)
    return int(count[0]), int(count[1])


def _ties(s: Scored, augrc: Result | None) -> Iterator[Note]:
    share = s.merged_groups.n_tied / s.n_samples
    if share < TIED_NOTE:
        return
    moved, is_large = "", False
    if augrc is not None and augrc.tie_high > augrc.tie_low:
        width = augrc.tie_high - augrc.tie_low
        is_large = width > TIE_WARNING * augrc.value
        moved = " Their order hardly matters: AUGRC would move by less than 1 %."
        if width >= 0.01 * augrc.value:
            moved = (
                f" Over all orders of the tied samples AUGRC lies between {augrc.tie_low:.4g} and "
                f"{augrc.tie_high:.4g}."
            )
    yield Note(
        "ties",
        f"{share:.1%} of the samples share their confidence with another sample; tied samples "
        f"are accepted or rejected together.{moved}",
        level="warning" if is_large else "note",
    )


def direction_warning(s: Scored, *, own: bool) -> str | None:
    """Say that failures are the more confident, where that is more than chance.

    The correlation of the loss with the (middle) rank of the confidence, against what it is for a
    score that knows nothing: for 0/1 losses the test of Mann and Whitney, corrected for ties. None
    when the score points the right way, or nobody can tell; the direction of an `own` score, which
    came with the data, can be given.
    """
    groups = s.merged_groups
    # A merged group has no loss, so that only its rank matters.
    rank = 0.5 - (groups.cumulative_weight - groups.weight / 2) / s.total_weight
    risk, varies = _mean_and_variance(s)
    spread = varies * _variance_of_ranks(groups)
    if spread <= 0:
        return None
    together = float(groups.loss @ rank) / s.total_weight
    correlation = together / math.sqrt(spread)
    # Samples of equal weight that tell as much.
    worth = (
        s.n_samples
        if s.has_unit_weights or s.weight is None
        else s.total_weight**2 / float(s.weight @ s.weight)
    )
    if correlation * math.sqrt(max(worth - 1, 0.0)) <= _NOTABLE:
        return None
    if s.is_binary:
        auroc = 0.5 - together / (risk * (1 - risk))
        said = (
            "Failures have higher confidence than successes more often than not (failure AUROC "
            f"{auroc:.3f})."
        )
    else:
        said = f"The more confident, the larger the loss (rank correlation {correlation:.3f})."
    if not own:
        return said
    return f"{said} If it is an uncertainty, say so: {format_option('lower_is_safer', value=True)}."


def _mean_and_variance(s: Scored) -> tuple[float, float]:
    """Return those of the losses."""
    if s.is_binary and s.has_unit_weights:
        risk = s.n_failures / s.n_samples
        return risk, risk * (1 - risk)
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    loss = s.loss.astype(np.float64)
    risk = float(weight @ loss) / s.total_weight
    return risk, float(weight @ (loss - risk) ** 2) / s.total_weight


def _variance_of_ranks(groups: TieGroups) -> float:
    """Return the variance of the middle ranks as shares of all: 1/12, less what ties take."""
    taken = groups.weight / groups.total_weight
    if groups.is_merged is not None:
        # Each merged sample counts as a group.
        ties = float((taken[~groups.is_merged] ** 3).sum())
        return (
            1 - ties - float(groups.count[groups.is_merged].sum()) / groups.total_weight**3
        ) / 12
    return (1 - float((taken**3).sum())) / 12
