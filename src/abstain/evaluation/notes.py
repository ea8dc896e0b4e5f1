"""Write notes about ties, saturation, few failures and a reversed order of one score."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from abstain._foundation.notes import READING, Note
from abstain._foundation.option_format import format_option
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import TieGroups
from abstain.curves.reliability import cached_reliability_curve
from abstain.errors import InputError
from abstain.evaluation.records import Result
from abstain.evaluation.scored_split import ScoredSplit
from abstain.inference.small_samples import MIN_FAILURES, MIN_FAILURES_HEAVY_TAILED
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import Predictions
from abstain.typing import Array

#: A larger share of tied samples gives a note.
TIED_NOTE = 0.01
#: The note on ties is a warning if the orders of tied samples change the AUGRC by more than this
#: fraction.
TIE_WARNING = 0.05
#: Shares of samples with the same extreme confidence from which there is a note or a warning.
MASS_POINT, SATURATED = 0.01, 0.20
#: A larger difference between the mean probability and the accuracy gives a warning.
MIN_CALIBRATION_GAP = 0.1
#: A larger correlation, divided by its standard deviation under independence, gives a warning.
_SIGNIFICANT = 2.0


def reading_notes(
    notes: str | Iterable[str | Note],
    predictions: Iterable[Predictions] = (),
    *,
    reader: Iterable[Note | str] = (),
) -> list[Note]:
    """Combine the notes of the caller, the file reader and the predictions without duplicates."""
    argument: object = [notes] if isinstance(notes, str) else notes
    if not isinstance(argument, Iterable):
        raise InputError(f"`notes` must be a list of texts and notes; got {notes!r}")
    all_notes = (*argument, *reader)
    records = [note if isinstance(note, Note) else Note(READING, note) for note in all_notes]
    texts = {note.text for note in records}
    for p in predictions:
        for text in p.notes:
            if text not in texts:
                texts.add(text)
                records.append(Note(READING, text))
    return records


#: Kinds of notes that are the same for all scores of a split.
_KINDS_FOR_ALL_SCORES = frozenset(
    {"few_failures", "unknown_class", "all_right", "all_wrong", "all_alike"}
)


def score_notes(part: ScoredSplit, results: Iterable[Result]) -> list[Note]:
    """Return the notes about one score on one split."""
    s = part.s
    results_by_metric = {result.metric.name: result for result in results}
    notes = [
        *_loss_notes(s, part.n_unknown_class),
        *_saturation_notes(s, part.scored_by_probability.probability_or_confidence),
        *_tie_notes(s, results_by_metric.get(DEFAULT_METRIC)),
    ]
    direction = direction_warning(s, is_column=part.is_column)
    if direction:
        notes.append(Note.warning("direction", direction))
    if part.n_unknown_class:
        n_unknown = f"{part.n_unknown_class:,}"
        text = f"{n_unknown} samples have a class unknown to the model; they count as wrong."
        notes.append(Note("unknown_class", text))
    if part.scored_by_probability.is_calibratable:
        notes += _mean_calibration_notes(part.scored_by_probability)
    if part.scored_by_probability.probability is None:
        text = "This score is not a probability, so calibration (ECE, MCE) and CWSA do not apply."
        notes.append(Note("scale", text))
    located_notes = []
    for note in notes:
        score = "" if note.kind in _KINDS_FOR_ALL_SCORES else part.score
        located_notes.append(replace(note, split=part.split, score=score))
    return located_notes


def _loss_notes(s: Scored, n_unknown_class: int | None) -> Iterator[Note]:
    """Yield a note if all losses are equal or if failures are few."""
    if s.loss.min() == s.loss.max():
        has_known_classes = n_unknown_class is None or n_unknown_class < s.n_samples
        yield _equal_losses(s, has_known_classes=has_known_classes)
    elif s.is_binary and s.n_failures < MIN_FAILURES_HEAVY_TAILED:
        yield _few_failures(s)


def _equal_losses(s: Scored, *, has_known_classes: bool) -> Note:
    """Return a warning that all losses are equal, so that ranking metrics are undefined."""
    effect = "so scores cannot be compared: ranking metrics are undefined."
    if not s.is_binary:
        message = f"All {s.n_samples:,} samples have the same loss, {effect}"
        return Note.warning("all_alike", message)
    if s.n_failures == 0:
        return Note.warning("all_right", f"None of the {s.n_samples:,} samples is wrong, {effect}")
    advice = " Check that labels and predictions use the same class names."
    if not has_known_classes:
        advice = ""
    return Note.warning("all_wrong", f"All {s.n_samples:,} samples are wrong, {effect}{advice}")


def _few_failures(s: Scored) -> Note:
    """Return a note or a warning that intervals are unreliable because failures are few."""
    counts = f"{s.n_failures:,} of {s.n_samples:,} samples are wrong."
    if s.n_failures < MIN_FAILURES:
        message = (
            f"Only {counts} With fewer than {MIN_FAILURES} failures, all values may differ "
            "strongly on new data; do not rank scores by them."
        )
        return Note.warning("few_failures", message)
    message = (
        f"{counts} These are enough failures for the interval of the AUGRC, but the interval of "
        f"the AURC requires about {MIN_FAILURES_HEAVY_TAILED}."
    )
    return Note("few_failures", message)


def _mean_calibration_notes(s: Scored) -> Iterator[Note]:
    """Yield a warning if the difference between mean probability and accuracy is large."""
    curve = cached_reliability_curve(s, 15, "equal_width")
    gap = curve.mean_confidence - curve.mean_accuracy
    standard_error = 0.5 / math.sqrt(s.n_samples)
    if abs(gap) < max(MIN_CALIBRATION_GAP, 3 * standard_error):
        return
    direction = "high" if gap > 0 else "low"
    yield Note.warning(
        "miscalibrated",
        f"The probabilities are too {direction} (mean {curve.mean_confidence:.2f}, accuracy "
        f"{curve.mean_accuracy:.2f}). Do not read thresholds as probabilities of a correct answer.",
    )


def _n_failures_with_highest_confidence(s: Scored) -> int:
    """Return the unweighted number of failures among the samples with the highest confidence."""
    if s.has_unit_weights:
        return int(s.merged_groups.loss[0])
    return int(np.count_nonzero(s.loss[s.confidence == s.confidence.max()]))


def _saturation_notes(s: Scored, confidence: Array) -> Iterator[Note]:
    """Yield notes about samples that share the highest or the lowest confidence."""
    n_highest, n_lowest = _count_extreme_confidences(s.merged_groups)
    highest, lowest = f"{float(confidence.max()):.6g}", f"{float(confidence.min()):.6g}"
    if n_highest == s.merged_groups.n_samples:
        message = f"Every confidence is {highest}: this score cannot reject single samples."
        yield Note.warning("constant", message)
        return
    highest_share, lowest_share = n_highest / s.n_samples, n_lowest / s.n_samples
    if n_highest > 1 and highest_share >= MASS_POINT:
        message = (
            f"{highest_share:.1%} of the samples ({n_highest:,}) have the highest "
            f"confidence, exactly {highest}; no threshold separates them."
        )
        n_failures = _n_failures_with_highest_confidence(s)
        if n_failures and s.is_binary:
            message += f" {n_failures:,} of them are wrong and are accepted at every threshold."
        is_warning = highest_share >= SATURATED
        yield Note("saturation", message, level="warning" if is_warning else "note")
    if n_lowest > 1 and lowest_share >= MASS_POINT:
        message = (
            f"{lowest_share:.1%} of the samples ({n_lowest:,}) have the lowest "
            f"confidence, exactly {lowest}; they are rejected together or not at all."
        )
        yield Note("abstentions", message)


def _count_extreme_confidences(groups: TieGroups) -> tuple[int, int]:
    """Return the numbers of samples with the highest and with the lowest confidence."""
    extremes = [0, -1]
    count = groups.count[extremes]
    if groups.is_merged is not None:
        # A stream merges samples of different confidences. Only one of them has the extreme value.
        count = np.where(groups.is_merged[extremes], 1, count)
    return int(count[0]), int(count[1])


def _tie_notes(s: Scored, augrc: Result | None) -> Iterator[Note]:
    """Yield a note on the share of tied samples and their effect on the AUGRC."""
    tied_share = s.merged_groups.n_tied / s.n_samples
    if tied_share < TIED_NOTE:
        return
    message = (
        f"{tied_share:.1%} of the samples share their confidence with another sample; tied "
        "samples are accepted or rejected together."
    )
    if augrc is None or not augrc.tie_high > augrc.tie_low:
        yield Note("ties", message)
        return
    width = augrc.tie_high - augrc.tie_low
    if width >= 0.01 * augrc.value:
        message += (
            f" Over all orders of the tied samples, the AUGRC is between {augrc.tie_low:.4g} "
            f"and {augrc.tie_high:.4g}."
        )
    else:
        message += " Their order changes the AUGRC by less than 1%."
    is_warning = width > TIE_WARNING * augrc.value
    yield Note("ties", message, level="warning" if is_warning else "note")


def direction_warning(s: Scored, *, is_column: bool) -> str | None:
    """Return a warning if failures have significantly higher confidences than successes.

    The test statistic is the correlation between the loss and the mid-rank of the confidence. For
    0/1 losses, the test is the Mann-Whitney test with correction for ties. If the score is a
    column of the data, the warning names the option that reverses it.
    """
    groups = s.merged_groups
    rank = 0.5 - (groups.cumulative_weight - groups.weight / 2) / s.total_weight
    risk, loss_variance = _loss_mean_and_variance(s)
    variance_product = loss_variance * _rank_variance(groups)
    if variance_product <= 0:
        return None
    covariance = float(groups.loss @ rank) / s.total_weight
    correlation = covariance / math.sqrt(variance_product)
    if s.has_unit_weights or s.weight is None:
        effective_size = float(s.n_samples)
    else:
        effective_size = s.total_weight**2 / float(s.weight @ s.weight)
    if correlation * math.sqrt(max(effective_size - 1, 0.0)) <= _SIGNIFICANT:
        return None
    if s.is_binary:
        auroc = 0.5 - covariance / (risk * (1 - risk))
        text = (
            f"Failures tend to have higher confidence than successes (failure AUROC {auroc:.3f})."
        )
    else:
        text = (
            "Samples with higher confidence tend to have a larger loss (rank correlation "
            f"{correlation:.3f})."
        )
    if not is_column:
        return text
    return (
        f"{text} If the score is an uncertainty, set {format_option('lower_is_safer', value=True)}."
    )


def _loss_mean_and_variance(s: Scored) -> tuple[float, float]:
    """Return the weighted mean and the weighted variance of the loss."""
    if s.is_binary and s.has_unit_weights:
        risk = s.n_failures / s.n_samples
        return risk, risk * (1 - risk)
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    loss = s.loss.astype(np.float64)
    risk = float(weight @ loss) / s.total_weight
    return risk, float(weight @ (loss - risk) ** 2) / s.total_weight


def _rank_variance(groups: TieGroups) -> float:
    """Return the variance of mid-ranks scaled to [0, 1], which is 1/12 without ties."""
    share = groups.weight / groups.total_weight
    if groups.is_merged is None:
        return (1 - float((share**3).sum())) / 12
    # A stream merges samples of different confidences into one group. These samples are not tied.
    n_merged = float(groups.count[groups.is_merged].sum())
    ties = float((share[~groups.is_merged] ** 3).sum())
    return (1 - ties - n_merged / groups.total_weight**3) / 12
