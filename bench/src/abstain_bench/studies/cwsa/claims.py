"""What the paper claims and data can decide, each with a verdict that follows from numbers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain.metrics import cwsa, cwsa_plus
from abstain.simulate import Population
from abstain.typing import FloatArray
from abstain_bench.studies._tables import Row
from abstain_bench.studies.cwsa.answers import Answers
from abstain_bench.studies.cwsa.experiments import boldest
from abstain_bench.studies.cwsa.models import (
    CALIBRATED,
    OVERCONFIDENT,
    OVERCONFIDENT_TEXT,
    PERFECT,
    PERFECT_TEXT,
    UNDERCONFIDENT,
    area_of,
    ece_of,
    expected_of,
    swept_quietly,
)

HOLDS, FAILS, PARTLY, OPEN = "holds", "fails", "partly", "not decided"

#: Axioms of appendix A.2 that are read in several ways.
_MONOTONE: Final = "Monotonicity: a surer right answer is worth no less"
_RESPONSIVE: Final = "Calibration responsiveness: a better calibrated model scores better"

#: A difference below this is rounding.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Claim:
    """One reading of a claim of the paper, on some data: its verdict, and why."""

    section: str
    claim: str
    verdict: str
    evidence: str
    #: How the claim is read, where it can be read in several ways.
    reading: str = ""
    #: The data set that decides it; empty for simulated models and printed numbers.
    data: str = ""

    def row(self) -> Row:
        """Return it as a row of a table."""
        columns = ("section", "claim", "reading", "data", "verdict", "evidence")
        return {name: getattr(self, name) for name in columns}


def verdict_by_claim(claims: Iterable[Claim]) -> dict[str, str]:
    """Combine the verdicts of all readings and data sets into one for each claim."""
    verdicts: dict[str, set[str]] = {}
    for claim in claims:
        verdicts.setdefault(claim.claim, set()).add(claim.verdict)
    return {claim: _combined(found - {OPEN}) for claim, found in verdicts.items()}


def _combined(verdicts: set[str]) -> str:
    if not verdicts:
        return OPEN
    return verdicts.pop() if len(verdicts) == 1 else PARTLY


def judged_by(*, holds: bool, ever: bool = False) -> str:
    """Return the verdict of a claim for all thresholds that holds at all, at some or at none."""
    return HOLDS if holds else PARTLY if ever else FAILS


# ------------------------------------------------------------------------- on predictions
@dataclass(frozen=True, eq=False)
class Axioms:
    """The axioms of appendix A.2, tried on predictions at some thresholds."""

    judged: Answers
    thresholds: FloatArray

    def claims(self) -> Iterator[Claim]:
        """Try each of them."""
        found = (
            *self._monotone(),
            *self._overconfidence(),
            self._abstention(),
            self._normalized(),
            self._responsive(),
        )
        yield from (replace(claim, data=self.judged.name) for claim in found)

    def _monotone(self) -> Iterator[Claim]:
        all_of, accepted, plus = self._raised
        right = np.sort(self.judged.confidence[self.judged.loss == 0])
        least = min(
            float(np.diff(right[right >= t] - t, prepend=0.0).min(initial=0.0))
            for t in self.thresholds.tolist()
        )
        yield Claim(
            "A.2",
            _MONOTONE,
            judged_by(holds=least >= 0),
            f"{right.size} right answers at {self.thresholds.size} thresholds: the weight is "
            "(confidence - threshold)/(1 - threshold)",
            "of two accepted right answers the surer adds no less",
        )
        yield Claim(
            "A.2",
            _MONOTONE,
            judged_by(holds=not any(d < -_ROUNDING for d in all_of)),
            f"least change {min(all_of, default=0.0):.2g} over {len(all_of)} thresholds",
            "to make a right answer surer never lowers CWSA (tables: over all samples)",
        )
        for name, found in (("CWSA (equation: over the accepted)", accepted), ("CWSA+", plus)):
            lower = sum(d < -_ROUNDING for d in found)
            yield Claim(
                "A.2",
                _MONOTONE,
                judged_by(holds=lower == 0) if found else OPEN,
                f"a right answer raised from below the threshold to it lowers it at {lower} of "
                f"{len(found)} thresholds: it is accepted with weight 0, and the mean is over more",
                f"to make a right answer surer never lowers {name}",
            )

    @cached_property
    def _raised(self) -> tuple[list[float], list[float], list[float]]:
        """Raise the surest right answer below each threshold to it; return what changes."""
        c, loss = self.judged.confidence, self.judged.loss
        changes: tuple[list[float], list[float], list[float]] = ([], [], [])
        for t in self.thresholds.tolist():
            below = np.flatnonzero((c < t) & (loss == 0))
            if not below.size or not (c >= t).any():
                continue
            raised = c.copy()
            raised[below[np.argmax(c[below])]] = t
            forms: tuple[Any, ...] = (
                lambda x, t=t: cwsa(x, loss, threshold=t),
                lambda x, t=t: cwsa(x, loss, threshold=t, normalize="accepted"),
                lambda x, t=t: cwsa_plus(x, loss, threshold=t),
            )
            for out, form in zip(changes, forms, strict=True):
                out.append(form(raised) - form(c))
        return changes

    def _overconfidence(self) -> Iterator[Claim]:
        c, loss = self.judged.confidence, self.judged.loss
        swept = swept_quietly(c, loss, self.thresholds)
        certain = swept_quietly(np.where(loss > 0, 1.0, c), loss, self.thresholds)
        cost = swept.cwsa - certain.cwsa
        yield Claim(
            "A.2",
            "Overconfidence: a wrong answer costs CWSA the more, the surer it is",
            judged_by(holds=bool((cost >= -_ROUNDING).all())) if loss.any() else OPEN,
            f"with all wrong answers certain it is lower by {cost.min():.3f} to {cost.max():.3f}",
        )
        lowest = self.thresholds[:1]
        accepted = np.where((loss > 0) & (c >= lowest), 1.0, c)
        before, after = (swept_quietly(x, loss, lowest).cwsa_plus[0] for x in (c, accepted))
        yield Claim(
            "abstract",
            "CWSA+ too penalizes overconfident mistakes",
            judged_by(holds=bool(after < before - _ROUNDING)) if loss.any() else OPEN,
            f"with all wrong answers above {lowest[0]:g} certain it goes from {before:.6f} to "
            f"{after:.6f}: a wrong answer adds 0, however sure",
        )

    def _abstention(self) -> Claim:
        c, loss = self.judged.confidence, self.judged.loss
        draw, largest = np.random.default_rng(0), 0.0
        for t in self.thresholds.tolist():
            moved = np.where(c < t, t * draw.random(c.size), c)
            one, other = (swept_quietly(x, loss, [t]) for x in (c, moved))
            if one.accepted[0]:
                changes = (one.cwsa - other.cwsa, one.cwsa_plus - other.cwsa_plus)
                largest = max(largest, *(float(abs(d[0])) for d in changes))
        return Claim(
            "A.2",
            "Abstention: what is below the threshold changes nothing",
            judged_by(holds=largest <= _ROUNDING),
            f"all confidences below the threshold drawn anew: largest change {largest:.1g}",
        )

    def _normalized(self) -> Claim:
        c, loss = self.judged.confidence, self.judged.loss
        swept = swept_quietly(c, loss, self.thresholds)
        found = swept.cwsa_plus[np.isfinite(swept.cwsa_plus)]
        top = 1 - _ROUNDING
        inside = bool(((found >= 0) & (found <= 1)).all())
        perfect = swept_quietly(np.ones(9), np.zeros(9), self.thresholds).cwsa_plus
        less = swept_quietly(np.append(np.ones(8), 0.999), np.zeros(9), self.thresholds).cwsa_plus
        return Claim(
            "A.2",
            "Normalization: CWSA+ lies in [0, 1], and is 1 only if all is right and certain",
            judged_by(holds=inside and bool((perfect > top).all() and (less < top).all())),
            f"{found.min():.3f} to {found.max():.3f} here; 1 for nine certain right answers, below "
            "1 when one of them is 0.999",
        )

    def _responsive(self) -> Claim:
        c, loss = self.judged.confidence, self.judged.loss
        apart = np.where(loss > 0, c / 2, (1 + c) / 2)
        one, other = (swept_quietly(x, loss, self.thresholds) for x in (c, apart))
        up = int((other.cwsa >= one.cwsa - _ROUNDING).sum())
        none = ~np.isfinite(one.cwsa_plus)
        plus = int((none | (other.cwsa_plus >= one.cwsa_plus - _ROUNDING)).sum())
        n, raised = self.thresholds.size, self._raised[2]
        lower = sum(d < -_ROUNDING for d in raised)
        return Claim(
            "A.2",
            _RESPONSIVE,
            judged_by(holds=up == n == plus and not lower, ever=max(up, plus) > 0),
            f"halfway to certain and halfway to 0: CWSA rises at {up} of {n} thresholds, CWSA+ "
            f"at {plus}; one right answer raised to the threshold alone lowers CWSA+ at {lower}. "
            "It is a better order besides, not a better calibration",
            "surer where right, less sure where wrong",
        )


def of_predictions(judged: Answers, thresholds: FloatArray) -> Iterator[Claim]:
    """Decide what the paper says of values on data."""
    swept = swept_quietly(judged.confidence, judged.loss, thresholds)
    known = np.isfinite(swept.cwsa_plus)
    largest = float(np.abs(swept.cwsa).max())
    yield Claim(
        "3.3",
        "CWSA has an unbounded range",
        FAILS,
        f"each weight lies in [0, 1], so that it lies in [-1, 1]; up to {largest:.3f} here",
        data=judged.name,
    )
    above = int((swept.cwsa_plus > swept.selective_accuracy)[known].sum())
    yield Claim(
        "5.2",
        "CWSA+ lies above the selective accuracy at every threshold (said of CIFAR-10)",
        judged_by(holds=above == known.sum(), ever=above > 0),
        f"above at {above} of {known.sum()}: it is the mean of the same right answers, each with "
        "a weight of at most 1",
        data=judged.name,
    )
    rises = int((np.diff(swept.cwsa) > _ROUNDING).sum())
    yield Claim(
        "5.2",
        "CWSA rises steadily with the threshold (said of CIFAR-10)",
        judged_by(holds=rises == thresholds.size - 1, ever=rises > 0),
        f"rises at {rises} of {thresholds.size - 1} steps, from {swept.cwsa[0]:.3f} to "
        f"{swept.cwsa[-1]:.3f}",
        data=judged.name,
    )


def of_sharpening(rows: Sequence[Row]) -> Iterator[Claim]:
    """Decide whether calibration is rewarded, from the temperatures that are best."""
    found = list(boldest(rows))
    bolder = sum(best < proper for best, _, proper in found)
    plus = sum(best < proper for _, best, proper in found)
    least = min(row["temperature"] for row in rows)
    bold = sum(best == least for best, _, _ in found)
    yield Claim(
        "A.2",
        _RESPONSIVE,
        judged_by(holds=bolder + plus == 0, ever=bolder + plus < 2 * len(found)),
        f"the same answers with logits divided by a temperature: CWSA is best at a lower "
        f"temperature than the Brier score at {bolder} of {len(found)} thresholds (at the lowest "
        f"tried, {least:g}, at {bold}), CWSA+ at {plus}",
        "claims nearer to the truth score better",
        rows[0]["data"],
    )


# ------------------------------------------------------------------------- on populations
def of_models(laws: dict[str, Population], thresholds: FloatArray) -> Iterator[Claim]:
    """Decide what the paper says of its simulated models, from their populations."""
    swept = {name: expected_of(law, thresholds) for name, law in laws.items()}
    yield from _of_ranking(swept, thresholds.size)
    yield from _of_decline(swept)
    yield _of_their_calibration(laws)
    low = swept[UNDERCONFIDENT]["selective_accuracy"]
    low = low[np.isfinite(low)]
    yield Claim(
        "5.5",
        "The selective accuracy of the underconfident model drops as its coverage falls",
        judged_by(holds=low.size > 1 and low[-1] < low[0] - _ROUNDING) if low.size else OPEN,
        f"{low.min():.4f} to {low.max():.4f} over the {low.size} thresholds that accept anything: "
        "its confidence says nothing of the loss"
        if low.size
        else "no threshold accepts any of it",
    )
    areas = {n: area_of(s["cwsa_plus"], s["coverage"]) for n, s in swept.items()}
    certain = areas[PERFECT_TEXT]
    yield Claim(
        "4.3",
        "The AUC-MCC ranks models by one number",
        judged_by(holds=certain >= max(areas.values()) - _ROUNDING),
        f"of CWSA+: {certain:.3f} for the model that is always right and certain, "
        f"{areas[CALIBRATED]:.3f} for the calibrated and "
        f"{areas[OVERCONFIDENT_TEXT]:.3f} for the overconfident one: it measures how much coverage "
        "lies between the first and the last threshold",
    )


def _of_ranking(swept: dict[str, dict[str, FloatArray]], n: int) -> Iterator[Claim]:
    for quantity, name in (("cwsa_plus", "CWSA+"), ("cwsa", "CWSA")):
        good = swept[CALIBRATED][quantity]
        others = (OVERCONFIDENT_TEXT, OVERCONFIDENT, UNDERCONFIDENT)
        ahead, of_code, of_shy = (
            int((good > np.nan_to_num(swept[other][quantity])).sum()) for other in others
        )
        yield Claim(
            "1",
            f"{name} ranks the calibrated model ahead of the overconfident and underconfident ones",
            judged_by(holds=ahead == of_code == of_shy == n, ever=ahead + of_code + of_shy > 0),
            f"in expectation ahead of the overconfident one, as often right, at {ahead} of {n} "
            f"thresholds, of the released code's, right in 80 %, at {of_code}, of the "
            f"underconfident one at {of_shy}",
        )


def _of_decline(swept: dict[str, dict[str, FloatArray]]) -> Iterator[Claim]:
    bold, perfect = swept[OVERCONFIDENT_TEXT], swept[PERFECT]
    right = bold["selective_accuracy"]
    right = right[np.isfinite(right)]
    falls = bool(right[-1] < right[0] - _ROUNDING)
    yield Claim(
        "5.4",
        "The overconfident model's CWSA falls with the threshold because ever more of what is kept "
        "is confidently wrong",
        judged_by(holds=falls),
        f"the share of right answers kept goes from {right[0]:.4f} to {right[-1]:.4f}; the model "
        f"that is never wrong falls too, from {perfect['cwsa'][0]:.3f} to "
        f"{perfect['cwsa'][-1]:.3f}: it is the ramp",
    )


def _of_their_calibration(laws: dict[str, Population]) -> Claim:
    good, bold = (ece_of(laws[name]) for name in (CALIBRATED, OVERCONFIDENT_TEXT))
    return Claim(
        "5.3, 5.4",
        "The calibrated model is calibrated, and the overconfident one is not",
        judged_by(holds=good < bold),
        f"ECE of the populations: {good:.4f} calibrated, {bold:.4f} overconfident: the first is "
        "right more often than it says where it is sure, the second nearly as often as it says",
    )


def of_noise(rows: Sequence[Row]) -> Claim:
    """Decide whether CWSA is robust to noise in the labels."""
    first, last = rows[0], rows[-1]
    lost = {
        name: 1 - last[key] / first[key]
        for name, key in (("the share right", "right"), ("CWSA", "cwsa"), ("CWSA+", "cwsa_plus"))
        if first[key]
    }
    said = ", ".join(f"{name} {share:.0%}" for name, share in lost.items())
    return Claim(
        "7",
        "CWSA and CWSA+ are robust to noise",
        judged_by(
            holds=lost.get("CWSA", 0.0) <= lost["the share right"]
            and lost.get("CWSA+", 0.0) <= lost["the share right"],
            ever=min(lost.get("CWSA", 0.0), lost.get("CWSA+", 0.0)) <= lost["the share right"],
        ),
        f"{last['rate']:.0%} of the labels replaced: lost are {said}",
        data=rows[0]["data"],
    )
