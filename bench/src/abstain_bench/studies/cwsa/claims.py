"""Test the claims of the paper on simulated models and on predictions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from abstain.metrics import CwsaSweep, cwsa, cwsa_plus
from abstain.simulate import Population
from abstain.typing import FloatArray
from abstain_bench.studies._display import Row, group_rows
from abstain_bench.studies.cwsa.experiments import NOISE, SHARPENING, best_temperatures
from abstain_bench.studies.cwsa.models import (
    CALIBRATED,
    OVERCONFIDENT,
    OVERCONFIDENT_TEXT,
    PERFECT,
    PERFECT_TEXT,
    UNDERCONFIDENT,
    ProbabilisticPredictions,
    population_ece,
    population_sweep,
    sweep_thresholds,
)

HOLDS = "holds"
FAILS = "fails"
PARTLY = "partly"
OPEN = "not decided"

#: Axioms of appendix A.2 with several readings.
_MONOTONICITY: Final = "Monotonicity: a more confident correct prediction contributes no less"
_RESPONSIVENESS: Final = "Calibration responsiveness: a better calibrated model scores better"

#: Differences below this value are rounding errors.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Claim:
    """A verdict on one interpretation of a claim for one data set, with evidence."""

    section: str
    claim: str
    verdict: str
    evidence: str
    #: Text of the reading. Empty if the claim has only one reading.
    reading: str = ""
    #: Name of the data set. Empty for simulated models and printed numbers.
    data: str = ""

    def row(self) -> Row:
        """Return the claim as a table row."""
        columns = ("section", "claim", "reading", "data", "verdict", "evidence")
        return {column: getattr(self, column) for column in columns}


def verdict_by_claim(claims: Iterable[Claim]) -> dict[str, str]:
    """Combine the verdicts on each claim over interpretations and data sets."""
    verdicts: dict[str, set[str]] = {}
    for claim in claims:
        verdicts.setdefault(claim.claim, set()).add(claim.verdict)
    combined = {}
    for name, values in verdicts.items():
        decided = values - {OPEN}
        combined[name] = PARTLY if len(decided) > 1 else next(iter(decided), OPEN)
    return combined


def to_verdict(*, holds: bool, holds_somewhere: bool = False) -> str:
    """Return the verdict on a claim that holds at all, at some or at no thresholds."""
    if holds:
        return HOLDS
    return PARTLY if holds_somewhere else FAILS


def check_predictions(
    datasets: Sequence[ProbabilisticPredictions],
    thresholds: FloatArray,
    experiment_rows: Mapping[str, Sequence[Row]],
) -> Iterator[Claim]:
    """Test the claims on the predictions for each data set."""
    sharpening_by_data = group_rows(experiment_rows[SHARPENING], "data")
    noise_by_data = group_rows(experiment_rows[NOISE], "data")
    for predictions in datasets:
        yield from Axioms(predictions, thresholds).claims()
        yield check_sharpening(sharpening_by_data[predictions.name])
        yield from check_values_on_data(predictions, thresholds)
        yield check_noise(noise_by_data[predictions.name])


# ------------------------------------------------------------------------- on predictions
@dataclass(frozen=True, eq=False)
class Axioms:
    """Test the axioms of appendix A.2 on predictions."""

    predictions: ProbabilisticPredictions
    thresholds: FloatArray

    def claims(self) -> Iterator[Claim]:
        """Yield the verdict on each interpretation of each axiom."""
        claims = (
            *self._check_monotonicity(),
            *self._check_overconfidence(),
            self._check_abstention(),
            self._check_normalization(),
            self._check_responsiveness(),
        )
        yield from (replace(claim, data=self.predictions.name) for claim in claims)

    def _check_monotonicity(self) -> Iterator[Claim]:
        """Test whether the metrics never decrease if a correct prediction is more confident."""
        correct = np.sort(self.predictions.confidence[self.predictions.loss == 0])
        smallest_step = np.inf
        for threshold in self.thresholds.tolist():
            weights = correct[correct >= threshold] - threshold
            steps = np.diff(weights, prepend=0.0)
            smallest_step = min(smallest_step, float(steps.min(initial=0.0)))
        yield Claim(
            "A.2",
            _MONOTONICITY,
            to_verdict(holds=smallest_step >= 0),
            f"{correct.size} correct predictions at {self.thresholds.size} thresholds: the weight "
            "is (confidence - threshold)/(1 - threshold)",
            reading="of two accepted correct predictions, the more confident contributes no less",
        )
        changes = self._changes_by_raised_confidence
        yield Claim(
            "A.2",
            _MONOTONICITY,
            to_verdict(holds=not any(change < -_ROUNDING for change in changes["all"])),
            f"smallest change {min(changes['all'], default=0.0):.2g} over {len(changes['all'])} "
            "thresholds",
            reading="a higher confidence of a correct prediction never lowers CWSA (tables: over "
            "all samples)",
        )
        names = {"accepted": "CWSA (equation: over the accepted)", "plus": "CWSA+"}
        for key, name in names.items():
            n_lower = sum(change < -_ROUNDING for change in changes[key])
            yield Claim(
                "A.2",
                _MONOTONICITY,
                to_verdict(holds=n_lower == 0) if changes[key] else OPEN,
                "a correct prediction whose confidence is raised from below the threshold to the "
                f"threshold lowers it at {n_lower} of {len(changes[key])} thresholds: it is "
                "accepted with weight 0, and the mean is over more samples",
                reading=f"a higher confidence of a correct prediction never lowers {name}",
            )

    @cached_property
    def _changes_by_raised_confidence(self) -> dict[str, list[float]]:
        """Change of each metric at each threshold if one confidence is raised to the threshold.

        The raised confidence is the highest below the threshold among the correct predictions. The
        keys "all" and "accepted" refer to CWSA with two different denominators, and "plus" refers
        to CWSA+.
        """
        confidence = self.predictions.confidence
        loss = self.predictions.loss
        metrics: dict[str, Any] = {
            "all": cwsa,
            "accepted": partial(cwsa, normalize="accepted"),
            "plus": cwsa_plus,
        }
        changes: dict[str, list[float]] = {name: [] for name in metrics}
        for threshold in self.thresholds.tolist():
            correct_below = np.flatnonzero((confidence < threshold) & (loss == 0))
            if not correct_below.size or not (confidence >= threshold).any():
                continue
            highest = correct_below[np.argmax(confidence[correct_below])]
            raised = confidence.copy()
            raised[highest] = threshold
            for name, metric in metrics.items():
                before = metric(confidence, loss, threshold=threshold)
                changes[name].append(metric(raised, loss, threshold=threshold) - before)
        return changes

    def _check_overconfidence(self) -> Iterator[Claim]:
        """Test whether CWSA and CWSA+ decrease if all wrong predictions get confidence 1."""
        confidence = self.predictions.confidence
        is_wrong = self.predictions.loss > 0
        before = self.predictions.sweep(self.thresholds)
        certain_errors = np.where(is_wrong, 1.0, confidence)
        cost = before.cwsa - self.predictions.sweep(self.thresholds, certain_errors).cwsa
        yield Claim(
            "A.2",
            "Overconfidence: a wrong prediction lowers CWSA more if it is more confident",
            to_verdict(holds=bool((cost >= -_ROUNDING).all())) if is_wrong.any() else OPEN,
            "if the confidence of all wrong predictions is 1, CWSA is lower by "
            f"{cost.min():.3f} to {cost.max():.3f}",
        )
        lowest = self.thresholds[:1]
        certain_accepted = np.where(is_wrong & (confidence >= lowest), 1.0, confidence)
        cwsa_plus_before = before.cwsa_plus[0]
        cwsa_plus_after = self.predictions.sweep(lowest, certain_accepted).cwsa_plus[0]
        is_lower = bool(cwsa_plus_after < cwsa_plus_before - _ROUNDING)
        yield Claim(
            "abstract",
            "CWSA+ also penalizes overconfident errors",
            to_verdict(holds=is_lower) if is_wrong.any() else OPEN,
            f"if the confidence of all wrong predictions above {lowest[0]:g} is 1, CWSA+ changes "
            f"from {cwsa_plus_before:.6f} to {cwsa_plus_after:.6f}: a wrong prediction contributes "
            "0 at any confidence",
        )

    def _check_abstention(self) -> Claim:
        """Test whether confidences below the threshold do not affect the metrics."""
        confidence = self.predictions.confidence
        rng = np.random.default_rng(0)
        largest_change = 0.0
        for threshold in self.thresholds.tolist():
            random_below = np.where(
                confidence < threshold, threshold * rng.random(confidence.size), confidence
            )
            before = self.predictions.sweep([threshold])
            after = self.predictions.sweep([threshold], random_below)
            if before.accepted[0]:
                changes = (before.cwsa - after.cwsa, before.cwsa_plus - after.cwsa_plus)
                largest_change = max(largest_change, float(np.abs(changes).max()))
        return Claim(
            "A.2",
            "Abstention: samples below the threshold have no influence",
            to_verdict(holds=largest_change <= _ROUNDING),
            f"random confidences below the threshold: largest change {largest_change:.1g}",
        )

    def _check_normalization(self) -> Claim:
        """Test whether CWSA+ is in [0, 1] and is 1 only for certain and correct predictions."""
        cwsa_plus_values = self.predictions.sweep(self.thresholds).cwsa_plus
        values = cwsa_plus_values[np.isfinite(cwsa_plus_values)]
        is_in_range = bool(((values >= 0) & (values <= 1)).all())
        certain_confidence = np.ones(9)
        almost_certain_confidence = np.append(np.ones(8), 0.999)
        no_loss = np.zeros(9)
        certain = sweep_thresholds(certain_confidence, no_loss, self.thresholds)
        almost_certain = sweep_thresholds(almost_certain_confidence, no_loss, self.thresholds)
        is_one_if_certain = bool(
            (certain.cwsa_plus > 1 - _ROUNDING).all()
            and (almost_certain.cwsa_plus < 1 - _ROUNDING).all()
        )
        return Claim(
            "A.2",
            "Normalization: CWSA+ is in [0, 1], and is 1 only if all predictions are correct and "
            "certain",
            to_verdict(holds=is_in_range and is_one_if_certain),
            f"{values.min():.3f} to {values.max():.3f} here; 1 for nine correct predictions with "
            "confidence 1, and below 1 if one of the confidences is 0.999",
        )

    def _check_responsiveness(self) -> Claim:
        """Test whether the metrics never decrease if confidences move toward correctness."""
        confidence = self.predictions.confidence
        loss = self.predictions.loss
        improved = np.where(loss > 0, confidence / 2, (1 + confidence) / 2)
        before = self.predictions.sweep(self.thresholds)
        after = self.predictions.sweep(self.thresholds, improved)
        n_cwsa = int((after.cwsa >= before.cwsa - _ROUNDING).sum())
        is_undefined = ~np.isfinite(before.cwsa_plus)
        is_no_lower = after.cwsa_plus >= before.cwsa_plus - _ROUNDING
        n_plus = int((is_undefined | is_no_lower).sum())
        n = self.thresholds.size
        n_lower = sum(change < -_ROUNDING for change in self._changes_by_raised_confidence["plus"])
        return Claim(
            "A.2",
            _RESPONSIVENESS,
            to_verdict(
                holds=n_cwsa == n == n_plus and not n_lower,
                holds_somewhere=max(n_cwsa, n_plus) > 0,
            ),
            "confidences moved halfway to 1 if correct and halfway to 0 if wrong: CWSA does not "
            f"decrease at {n_cwsa} of {n} thresholds, CWSA+ at {n_plus}; one correct prediction "
            f"raised to the threshold alone lowers CWSA+ at {n_lower}. This improves the ranking "
            "too, not only the calibration",
            reading="higher confidence if correct, lower if wrong",
        )


def check_values_on_data(
    predictions: ProbabilisticPredictions, thresholds: FloatArray
) -> Iterator[Claim]:
    """Test claims about the range of CWSA and its dependence on the threshold."""
    sweep = predictions.sweep(thresholds)
    largest = float(np.abs(sweep.cwsa).max())
    claim = partial(Claim, data=predictions.name)
    yield claim(
        "3.3",
        "CWSA has an unbounded range",
        FAILS,
        f"each weight is in [0, 1], so CWSA is in [-1, 1]; up to {largest:.3f} here",
    )
    is_defined = np.isfinite(sweep.cwsa_plus)
    n_above = int((sweep.cwsa_plus > sweep.selective_accuracy)[is_defined].sum())
    yield claim(
        "5.2",
        "CWSA+ is above the selective accuracy at every threshold (stated for CIFAR-10)",
        to_verdict(holds=n_above == is_defined.sum(), holds_somewhere=n_above > 0),
        f"above at {n_above} of {is_defined.sum()}: CWSA+ is the mean of the same correct "
        "predictions with weights of at most 1",
    )
    n_increases = int((np.diff(sweep.cwsa) > _ROUNDING).sum())
    n_steps = thresholds.size - 1
    yield claim(
        "5.2",
        "CWSA increases steadily with the threshold (stated for CIFAR-10)",
        to_verdict(holds=n_increases == n_steps, holds_somewhere=n_increases > 0),
        f"increases at {n_increases} of {n_steps} steps, from {sweep.cwsa[0]:.3f} to "
        f"{sweep.cwsa[-1]:.3f}",
    )


def check_sharpening(rows: Sequence[Row]) -> Claim:
    """Test whether the metrics and the Brier score are optimal at the same temperature."""
    temperatures = list(best_temperatures(rows))
    n = len(temperatures)
    n_cwsa = sum(cwsa < brier for cwsa, _, brier in temperatures)
    n_plus = sum(cwsa_plus < brier for _, cwsa_plus, brier in temperatures)
    lowest = min(row["temperature"] for row in rows)
    n_lowest = sum(cwsa == lowest for cwsa, _, _ in temperatures)
    return Claim(
        "A.2",
        _RESPONSIVENESS,
        to_verdict(holds=n_cwsa + n_plus == 0, holds_somewhere=n_cwsa + n_plus < 2 * n),
        "the same predictions with logits divided by a temperature: the best temperature by CWSA "
        f"is below that by the Brier score at {n_cwsa} of {n} thresholds (the lowest tested, "
        f"{lowest:g}, at {n_lowest}), by CWSA+ at {n_plus}",
        reading="better calibrated confidences score better",
        data=rows[0]["data"],
    )


# ------------------------------------------------------------------------- on populations
def check_models(populations: Mapping[str, Population], thresholds: FloatArray) -> Iterator[Claim]:
    """Test claims about the simulated models by their exact expectations."""
    sweeps = {
        name: population_sweep(population, thresholds) for name, population in populations.items()
    }
    yield from _check_ranking(sweeps)
    yield _check_decline(sweeps)
    calibrated_ece = population_ece(populations[CALIBRATED])
    overconfident_ece = population_ece(populations[OVERCONFIDENT_TEXT])
    yield Claim(
        "5.3, 5.4",
        "The calibrated model is calibrated, and the overconfident one is not",
        to_verdict(holds=calibrated_ece < overconfident_ece),
        f"ECE of the populations: {calibrated_ece:.4f} calibrated, {overconfident_ece:.4f} "
        "overconfident: the accuracy of the first exceeds its high confidences, the accuracy of "
        "the second is close to its confidences",
    )
    yield _check_underconfident_accuracy(sweeps)
    areas = {name: sweep.auc_mcc("cwsa_plus") for name, sweep in sweeps.items()}
    yield Claim(
        "4.3",
        "The AUC-MCC ranks models by one number",
        to_verdict(holds=areas[PERFECT_TEXT] >= max(areas.values()) - _ROUNDING),
        f"of CWSA+: {areas[PERFECT_TEXT]:.3f} for the model that is always correct and certain, "
        f"{areas[CALIBRATED]:.3f} for the calibrated and {areas[OVERCONFIDENT_TEXT]:.3f} for the "
        "overconfident one: it depends on the range of coverage between the first and the last "
        "threshold",
    )


def _check_ranking(sweeps: Mapping[str, CwsaSweep]) -> Iterator[Claim]:
    """Test whether the expected metrics are highest for the calibrated model."""
    for quantity, title in (("cwsa_plus", "CWSA+"), ("cwsa", "CWSA")):
        calibrated = getattr(sweeps[CALIBRATED], quantity)
        n_ahead = {}
        for name in (OVERCONFIDENT_TEXT, OVERCONFIDENT, UNDERCONFIDENT):
            other = np.nan_to_num(getattr(sweeps[name], quantity))
            n_ahead[name] = int((calibrated > other).sum())
        n = calibrated.size
        counts = n_ahead.values()
        yield Claim(
            "1",
            f"{title} ranks the calibrated model ahead of the overconfident and underconfident "
            "ones",
            to_verdict(holds=all(count == n for count in counts), holds_somewhere=any(counts)),
            f"expected values: ahead of the overconfident model of equal accuracy at "
            f"{n_ahead[OVERCONFIDENT_TEXT]} of {n} thresholds, of that of the released code "
            f"(accuracy 80%) at {n_ahead[OVERCONFIDENT]}, of the underconfident one at "
            f"{n_ahead[UNDERCONFIDENT]}",
        )


def _check_decline(sweeps: Mapping[str, CwsaSweep]) -> Claim:
    """Test whether the selective accuracy of the overconfident model decreases over thresholds."""
    perfect = sweeps[PERFECT].cwsa
    accuracy = _finite(sweeps[OVERCONFIDENT_TEXT].selective_accuracy)
    return Claim(
        "5.4",
        "The CWSA of the overconfident model decreases with the threshold because an increasing "
        "share of the accepted samples is confidently wrong",
        to_verdict(holds=bool(accuracy[-1] < accuracy[0] - _ROUNDING)),
        f"the selective accuracy changes from {accuracy[0]:.4f} to {accuracy[-1]:.4f}; the CWSA of "
        f"the model without failures decreases too, from {perfect[0]:.3f} to {perfect[-1]:.3f}: "
        "the weights decrease",
    )


def _finite(numbers: FloatArray) -> FloatArray:
    return np.asarray(numbers[np.isfinite(numbers)])


def _check_underconfident_accuracy(sweeps: Mapping[str, CwsaSweep]) -> Claim:
    """Test whether the selective accuracy of the underconfident model decreases over thresholds."""
    accuracy = _finite(sweeps[UNDERCONFIDENT].selective_accuracy)
    verdict = OPEN
    evidence = "no threshold accepts any sample"
    if accuracy.size:
        verdict = to_verdict(holds=bool(accuracy[-1] < accuracy[0] - _ROUNDING))
        evidence = (
            f"{accuracy.min():.4f} to {accuracy.max():.4f} over the {accuracy.size} thresholds "
            "that accept samples: its confidence is independent of the loss"
        )
    return Claim(
        "5.5",
        "The selective accuracy of the underconfident model decreases with its coverage",
        verdict,
        evidence,
    )


def check_noise(rows: Sequence[Row]) -> Claim:
    """Test whether label noise reduces CWSA and CWSA+ less than it reduces accuracy."""
    without_noise = rows[0]
    noisiest = rows[-1]
    columns = {"accuracy": "accuracy", "CWSA": "cwsa", "CWSA+": "cwsa_plus"}
    losses = {
        title: 1 - noisiest[column] / without_noise[column]
        for title, column in columns.items()
        if without_noise[column]
    }
    metric_losses = [losses.get("CWSA", 0.0), losses.get("CWSA+", 0.0)]
    is_robust = [loss <= losses["accuracy"] for loss in metric_losses]
    decreases = ", ".join(f"{title} by {loss:.0%}" for title, loss in losses.items())
    return Claim(
        "7",
        "CWSA and CWSA+ are robust to noise",
        to_verdict(holds=all(is_robust), holds_somewhere=any(is_robust)),
        f"with {noisiest['rate']:.0%} of the labels replaced, {decreases} lower",
        data=rows[0]["data"],
    )
