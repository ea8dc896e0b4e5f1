"""Thresholds that were set on validation data, and what they keep in every study."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Final

import numpy as np

from abstain.benchmark.results.records import MEAN, ThresholdRow
from abstain.benchmark.results.samples import StudySamples
from abstain.benchmark.store import Run
from abstain.errors import AbstainError
from abstain.evaluation import set_threshold
from abstain.predictions import Predictions
from abstain.thresholds import DecisionRule, check

__all__ = ["Thresholds"]

_NAN: Final = float("nan")


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Sets the thresholds of methods and looks at what they achieve.

    Attributes
    ----------
    risk, delta : float
        What is asked for.
    level : float
        Of the intervals.
    """

    risk: float
    delta: float
    level: float
    _rules: dict[tuple[str, str], DecisionRule | None] = field(default_factory=dict)

    def rows(
        self, samples: StudySamples, runs: Mapping[str, Sequence[Run]]
    ) -> Iterator[ThresholdRow]:
        """Return the rows of one study: of each method and seed, and the means."""
        # A threshold meets all pictures: none can be left out for being classified wrongly.
        study = replace(samples.study, errors="kept")
        whole = StudySamples(study, samples.scores, samples.calibrators, samples.classes)
        for method, own in runs.items():
            found = [row for run in own if (row := self._row(whole, method, run)) is not None]
            yield from found
            if len(found) > 1:
                yield _mean(found)

    def _row(self, samples: StudySamples, method: str, run: Run) -> ThresholdRow | None:
        rule = self._rule(samples, method, run)
        if rule is None:
            return None
        confidence = samples.scores[run.name].confidence[method]
        loss = samples.judged(run, method).loss
        # One method gave both, so they are in one unit, however far the values reach.
        more: dict[str, Any] = {"name": samples.study.name, "level": self.level, "scale": "score"}
        found = check(rule, confidence, loss, **more)
        return ThresholdRow(
            study=samples.study.name,
            method=method,
            run=str(run.seed),
            risk=self.risk,
            delta=self.delta,
            threshold=rule.threshold,
            bound=_NAN if rule.bound is None else float(rule.bound),
            n=found.n,
            accepted=found.accepted,
            coverage=found.coverage,
            coverage_low=found.coverage_interval.low,
            coverage_high=found.coverage_interval.high,
            selective_risk=found.selective_risk,
            selective_risk_low=found.selective_risk_interval.low,
            selective_risk_high=found.selective_risk_interval.high,
            excess=found.excess,
            verdict=found.verdict,
            holds=int(found.verdict == "holds"),
            broken=int(found.verdict == "broken"),
            note=rule.reason or found.selective_risk_interval.note,
        )

    def _rule(self, samples: StudySamples, method: str, run: Run) -> DecisionRule | None:
        """Return the rule of a method in one run; None where there are no validation data."""
        place = (run.name, method)
        if place not in self._rules:
            known = samples.calibrators.validation(run, method)
            self._rules[place] = None if known is None else self._set(method, known)
        return self._rules[place]

    def _set(self, method: str, known: Predictions) -> DecisionRule | None:
        try:
            return set_threshold(known, score=method, max_risk=self.risk, delta=self.delta)
        except AbstainError:
            return None


def _mean(rows: Sequence[ThresholdRow]) -> ThresholdRow:
    """Return the means over the seeds."""
    verdicts = {row.verdict for row in rows}
    return replace(
        rows[0],
        run=MEAN,
        threshold=None,
        bound=_over([row.bound for row in rows]),
        n=sum(row.n for row in rows),
        accepted=sum(row.accepted for row in rows),
        coverage_low=_NAN,
        coverage_high=_NAN,
        selective_risk_low=_NAN,
        selective_risk_high=_NAN,
        verdict=verdicts.pop() if len(verdicts) == 1 else "differs",
        holds=sum(row.holds for row in rows),
        broken=sum(row.broken for row in rows),
        runs=len(rows),
        coverage=_over([row.coverage for row in rows]),
        selective_risk=_over([row.selective_risk for row in rows]),
        excess=_over([row.excess for row in rows]),
        note="",
    )


def _over(values: Sequence[float]) -> float:
    known = [value for value in values if isfinite(value)]
    return float(np.mean(known)) if known else _NAN
