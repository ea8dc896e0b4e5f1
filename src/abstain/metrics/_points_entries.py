"""Catalogue entries of working points, made by name: ``selective_risk@80cov``."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Measured, Scored
from abstain.metrics import _points
from abstain.metrics._entry import Metric, Need

_CONDESSA = "Condessa et al. (2017), {}, https://doi.org/10.1016/j.patcog.2016.10.011"
_GEIFMAN = "Geifman and El-Yaniv (2017), https://arxiv.org/abs/1705.08500"
_RULE = "lowest risk among thresholds that keep the coverage"


@dataclass(frozen=True)
class _Kind:
    title: str
    at: Callable[[TieGroups, int], Measured]
    lower_is_better: bool
    high: float
    meaning: str
    source: str
    short: str = ""
    narrow: str = ""
    needs: frozenset[Need] = frozenset()
    ordered: bool = True


_AT_COVERAGE = {
    "selective_risk": _Kind(
        "selective risk at {} % coverage",
        _points.selective_risk_of,
        lower_is_better=True,
        high=1.0,
        meaning="Keeping at least {} % of the samples, {{value}} of the accepted are wrong.",
        source=_GEIFMAN,
        short="Risk at {} % coverage",
        narrow="Risk at {} % cov.",
    ),
    "generalized_risk": _Kind(
        "generalized risk at {} % coverage",
        _points.generalized_risk_of,
        lower_is_better=True,
        high=1.0,
        meaning="Keeping at least {} % of the samples, {{value}} of all are accepted and wrong.",
        source="Traub et al. (2024), eq. 3, https://arxiv.org/abs/2407.01032",
        # The vertex is chosen by selective risk, so a better order can move it to a larger
        # coverage with more loss in all.
        ordered=False,
    ),
    "classification_quality": _Kind(
        "classification quality at {} % coverage",
        _points.classification_quality_at,
        lower_is_better=False,
        high=1.0,
        meaning="Keeping at least {} %, {{value}} of all samples are accepted and right or "
        "rejected and wrong.",
        source=_CONDESSA.format("eq. 7"),
        needs=frozenset({Need.UNIT_LOSS}),
        ordered=False,
    ),
    "rejection_quality": _Kind(
        "rejection quality at {} % coverage",
        _points.rejection_quality_at,
        lower_is_better=False,
        high=float("inf"),
        meaning="Keeping at least {} %, the odds of being wrong are {{value}} times higher among "
        "the rejected than among all.",
        source=_CONDESSA.format("eq. 9"),
        needs=frozenset({Need.UNIT_LOSS}),
        ordered=False,
    ),
}

_PATTERN = re.compile(r"(?P<kind>[a-z_]+)@(?P<percent>\d+(?:\.\d+)?)(?P<unit>cov|risk)")


def working_point_entry(name: str) -> Metric | None:
    """Make the metric that a name such as ``selective_risk@80cov`` asks for, if it is one."""
    match = _PATTERN.fullmatch(name)
    if match is None or float(match["percent"]) > 100:
        return None
    kind, percent = match["kind"], match["percent"]
    if match["unit"] == "risk" and kind == "coverage":
        return _coverage_at_risk(name, percent)
    if match["unit"] == "cov" and kind in _AT_COVERAGE:
        return _at_coverage(name, _AT_COVERAGE[kind], percent)
    return None


def _at_coverage(name: str, kind: _Kind, percent: str) -> Metric:
    share = float(percent) / 100

    def compute(s: Scored) -> Measured:
        return kind.at(s.groups, _points.at_coverage(s.groups, share))

    return Metric(
        name=name,
        title=kind.title.format(percent),
        family="working point",
        compute=compute,
        lower_is_better=kind.lower_is_better,
        low=0.0,
        high=kind.high,
        meaning=kind.meaning.format(percent),
        source=kind.source,
        needs=kind.needs,
        convention=_RULE,
        short=kind.short.format(percent),
        narrow=kind.narrow.format(percent),
        ordered=kind.ordered,
    )


def _coverage_at_risk(name: str, percent: str) -> Metric:
    risk = float(percent) / 100

    def compute(s: Scored) -> Measured:
        return _points.coverage_of(s.groups, _points.at_risk(s.groups, risk))

    return Metric(
        name=name,
        title=f"coverage at {percent} % risk",
        family="working point",
        compute=compute,
        lower_is_better=False,
        low=0.0,
        high=1.0,
        meaning=f"If at most {percent} % of the accepted may be wrong, {{value}} of the samples "
        "can be kept.",
        source=_GEIFMAN,
        convention="largest coverage with risk <= the target",
        narrow=f"Cov. at {percent} % risk",
        gradients=frozenset(),
    )


_DEFAULTS = (
    "selective_risk@80cov",
    "selective_risk@90cov",
    "selective_risk@95cov",
    "generalized_risk@80cov",
    "coverage@1risk",
    "coverage@5risk",
    "coverage@10risk",
    "classification_quality@80cov",
    "rejection_quality@80cov",
)

#: Their places among what a reader sees first: of each kind, one number.
_HEADLINE = {"coverage@5risk": 6, "selective_risk@80cov": 7}

ENTRIES = tuple(
    replace(entry, headline=_HEADLINE.get(name))
    for name in _DEFAULTS
    if (entry := working_point_entry(name))
)
