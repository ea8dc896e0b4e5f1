"""The scores of the parts of the data, measured one after the other and put together."""

from collections.abc import Iterable, Mapping

from abstain._foundation.measurement import Measured
from abstain._foundation.notes import Note
from abstain.errors import InputError
from abstain.evaluation.cases import case_of
from abstain.evaluation.findings import findings_of
from abstain.evaluation.records import Case, Evaluation, Result, ordered
from abstain.evaluation.uncertainty import EvaluatedPart, with_intervals
from abstain.metrics import METRICS, Metric
from abstain.metrics.entry import measured_at_once
from abstain.metrics.ties import UntiedOrders, has_bounds

#: Families whose metrics are told with their range over all orders of tied samples.
_WITH_TIE_BOUNDS = frozenset({"area", "ranking"})


class Assembly:
    """What was found so far: numbers, curves and findings, and which metrics apply nowhere."""

    def __init__(
        self, chosen: list[Metric] | None, findings: Iterable[Note], *, curves: bool
    ) -> None:
        self.chosen, self.curves = chosen, curves
        self.results: list[Result] = []
        self.cases: list[Case] = []
        self.findings = list(findings)
        self.skipped: dict[str, str] = {}
        self.binary = True

    def add(self, part: EvaluatedPart) -> None:
        """Measure one score on one part of the data."""
        self.binary = self.binary and part.s.binary
        measured = with_intervals(self._measured(part), part)
        self.results += measured
        self.cases += [case_of(part)] if self.curves else []
        self.findings += findings_of(part, measured)

    def add_alone(
        self, results: Iterable[Result], skipped: Mapping[str, str], *, binary: bool
    ) -> None:
        """Take numbers that were measured elsewhere, of samples that have no curves here."""
        self.results += results
        self.skipped |= skipped
        self.binary = self.binary and binary

    def evaluation(self, loss: str, own: frozenset[str]) -> Evaluation:
        """Return all of it; refuse a metric that was asked for by name and applies nowhere."""
        _refuse_inapplicable(self.chosen, self.results, self.skipped)
        for name in {result.metric.name for result in self.results}:
            # It applied to another score or split.
            self.skipped.pop(name, None)
        asked = tuple(metric.name for metric in self.chosen or ())
        return Evaluation(
            tuple(self.results),
            tuple(self.cases),
            ordered(self.findings),
            loss,
            self.skipped,
            self.binary,
            asked,
            own,
        )

    def _measured(self, part: EvaluatedPart) -> list[Result]:
        apply = []
        for metric in METRICS.values() if self.chosen is None else self.chosen:
            missing = part.missing(metric)
            if missing:
                self.skipped[metric.name] = missing
            else:
                apply.append(metric)
        orders = UntiedOrders(part.s)
        out: list[Result] = []
        # Those that take the same samples share passes over them.
        taken = {id(s): s for s in map(part.of, apply)}
        for s in taken.values():
            own = [m for m in apply if part.of(m) is s]
            found = zip(own, measured_at_once(own, s), strict=True)
            out += [_result(part, m, value, orders) for m, value in found]
        place = {metric.name: i for i, metric in enumerate(apply)}
        return sorted(out, key=lambda result: place[result.metric.name])


def _result(
    part: EvaluatedPart, metric: Metric, measured: Measured, orders: UntiedOrders
) -> Result:
    s = part.s
    tied = s.merged_groups.tied
    bounded = (
        metric.identity.family in _WITH_TIE_BOUNDS and part.bounds_ties and has_bounds(metric, s)
    )
    low, high = (float("nan"), float("nan"))
    if bounded:
        value = measured.value
        low, high = orders.bounds(metric) if tied and not measured.reason else (value, value)
    return Result(
        split=part.split,
        score=part.score,
        metric=metric,
        value=float(measured.value),
        n=s.samples,
        failures=s.failures,
        accepted=measured.accepted,
        tied_share=tied / s.samples,
        tie_low=float(low),
        tie_high=float(high),
        reason=measured.reason,
    )


def _refuse_inapplicable(
    chosen: list[Metric] | None, results: list[Result], skipped: Mapping[str, str]
) -> None:
    """Refuse a metric that was asked for by name and applies nowhere."""
    measured = {result.metric.name for result in results}
    for metric in chosen or ():
        if metric.name not in measured:
            raise InputError(
                f"the metric {metric.name!r} does not apply: it {skipped[metric.name]}"
            )
