"""What checking a decision rule on several data sets returns."""

import math
from dataclasses import dataclass
from typing import Any, Final

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import Note
from abstain.curves.risk_coverage import RiskCoverageCurve
from abstain.evaluation.records import format_counts
from abstain.evaluation.rules.estimates import estimate_columns
from abstain.inference.intervals import Interval
from abstain.shift import UnlabeledRisk
from abstain.thresholds import DecisionRule, Disparity, RuleCheck, disparities
from abstain.typing import Split

#: The name of the row of the calibration data, and what stands in it for a verdict.
CALIBRATION: Final = "calibration"
CHOSEN_HERE: Final = "chosen here"

_NAN = float("nan")
#: The numbers of a row that come with `_low` and `_high`.
_WITH_ENDS = ("coverage", "selective_risk", "generalized_risk", "excess")

#: How far apart the groups of a data set are, on its row; of the risk that the rule is about.
DISPARITY_COLUMNS: Final = (
    "rejection_difference",
    "rejection_ratio",
    "risk_difference",
    "risk_ratio",
)

#: The columns of a row behind those that split the data.
CHECK_COLUMNS: Final = (
    "name",
    "subgroup",
    "role",
    "score",
    "method",
    "guarantee",
    "threshold",
    "threshold_scale",
    "threshold_probability",
    "threshold_log_odds",
    "target",
    "delta",
    "bound",
    "level",
    "together",
    "n",
    "accepted",
    *(f"{number}{end}" for number in _WITH_ENDS for end in ("", "_low", "_high")),
    *(f"{number}{end}" for number in DISPARITY_COLUMNS for end in ("", "_low", "_high")),
    "verdict",
    "note",
)


@dataclass(frozen=True, eq=False)
class RuleChecks(NotebookDisplay):
    """A decision rule and what it achieves on other data sets.

    Attributes
    ----------
    rule : DecisionRule
        The rule, with what is known of its calibration data.
    checks : tuple of RuleCheck
        One for each data set, in the order given. Where no labels are known the risks and the
        excess are NaN.
    splits : tuple of tuple of (column, value)
        What sets each data set apart, where columns do; empty otherwise.
    level : float
        Of the intervals: of each, or of those of a data set and its groups together.
    groups : tuple of tuple of RuleCheck
        For each data set its groups, in the order of their names; empty where it has none.
    curve : RiskCoverageCurve or None
        Of the calibration data, when they were given: generalized for a rule on the generalized
        risk, else selective.
    findings : tuple of Note
        What the reader should know, warnings first.
    binary : bool
        Whether every loss seen is 0 or 1, so that a mean loss is a share of wrong answers.
    probability : float or None
        The threshold as a probability of being right, where it is known to be log-odds of one.
    estimates : tuple of UnlabeledRisk or None
        Of each data set without labels what its risk may be, where that can be estimated.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule, set_threshold
    >>> predictions = ab.Predictions(confidence=[0.9, 0.8, 0.4], loss=[0, 0, 1])
    >>> rule = set_threshold(predictions, method="risk", max_risk=0.1)
    >>> checks = check_rule(rule, {"later": ab.Predictions(confidence=[0.7, 0.9], loss=[1, 0])})
    >>> checks.frame().select("name", "coverage", "selective_risk").rows()
    [('calibration', 0.6666666666666666, 0.0), ('later', 0.5, 0.0)]
    """

    rule: DecisionRule
    checks: tuple[RuleCheck, ...]
    splits: tuple[Split, ...]
    level: float
    groups: tuple[tuple[RuleCheck, ...], ...] = ()
    curve: RiskCoverageCurve | None = None
    notes: tuple[Note, ...] = ()
    is_binary: bool = True
    threshold_probability: float | None = None
    estimates: tuple[UnlabeledRisk | None, ...] = ()

    def __repr__(self) -> str:
        """Say what is there, not the numbers."""
        warnings = sum(finding.level == "warning" for finding in self.notes)
        said = format_counts({"data set": len(self), "warning": warnings})
        return f"RuleChecks({self.rule!s}; {said}; .frame() has the numbers)"

    def __len__(self) -> int:
        """Count the data sets that were checked."""
        return len(self.checks)

    def all_checks(self) -> list[RuleCheck]:
        """Return each data set, followed by its groups."""
        return [check for place in range(len(self)) for check in self._of(place)]

    def _of(self, place: int) -> tuple[RuleCheck, ...]:
        groups = self.groups[place] if self.groups else ()
        return (self.checks[place], *groups)

    def disparities(self) -> list[Disparity]:
        """Return how far apart the groups of each data set are; empty where there are none.

        The rejection rate, then the risk that the rule is about (the selective risk, if none):
        the largest difference and ratio between two groups, with intervals.
        """
        return [found for place in range(len(self)) for found in self._apart(place)]

    def _apart(self, place: int) -> list[Disparity]:
        has_limits = bool(self.rule.parts) and not self.rule.per
        # Other limits are about classes, which differ by nature.
        groups = [
            check
            for check in self._of(place)[1:]
            if not has_limits or check.group.startswith("group:")
        ]
        is_generalized = self.rule.quantity == "generalized risk"
        quantities = {"rejection rate", "generalized risk" if is_generalized else "selective risk"}
        return [d for d in disparities(groups) if d.quantity in quantities]

    def rows(self) -> list[dict[str, Any]]:
        """Return flat rows: the calibration data, if any, then each data set and its groups.

        Of a group `name` is that of its data set, `subgroup` its own and `role` "group";
        `together` is how many rows the level of the intervals holds for.
        The row of the calibration data has no intervals: the threshold was chosen on them, so
        that they flatter it. Where the risk of data without labels was estimated, two columns say
        what came of it (`abstain.shift.unlabeled_risk`).
        """
        columns = list(dict.fromkeys(column for split in self.splits for column, _ in split))
        lead = dict.fromkeys(columns, "")
        known = self.calibration_values()
        first = [] if known is None else [{**lead, **self._calibration(known)}]
        rows = first + [
            {**lead, **dict(split), **self._row(check, [] if check.group else self._apart(place))}
            for place, split in enumerate(self.splits)
            for check in self._of(place)
        ]
        return self._estimated(rows, len(first))

    def _estimated(self, rows: list[dict[str, Any]], before: int) -> list[dict[str, Any]]:
        """Add what was estimated of data without labels, where anything was."""
        if not any(self.estimates):
            return rows
        of_row: list[UnlabeledRisk | None] = [None] * before
        for place, found in enumerate(self.estimates):
            of_row += [found] * len(self._of(place))
        return [row | estimate_columns(e) for row, e in zip(rows, of_row, strict=True)]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)

    def _about(self, rule: DecisionRule) -> dict[str, Any]:
        return {
            "score": rule.score,
            "method": rule.method,
            "guarantee": rule.guarantee,
            "threshold": _number(rule.threshold),
            "threshold_scale": rule.scale,
            "threshold_probability": _number(rule.threshold_on("probability")),
            "threshold_log_odds": _number(rule.threshold_on("log-odds")),
            "target": _number(rule.target),
            "delta": _number(rule.delta),
            "bound": _number(rule.bound),
            "level": self.level,
        }

    def _row(self, check: RuleCheck, apart: list[Disparity]) -> dict[str, Any]:
        own = check.row()
        role = "group" if check.group else "check"
        more = {"role": role, "together": check.together, "note": check.note}
        found = {**own, **more, **self._about(check.rule), **_ends_apart(apart)}
        return {name: found[name] for name in CHECK_COLUMNS}

    def calibration_values(self) -> dict[str, Any] | None:
        """Return what the rule achieves on its calibration data, or None when nothing is known.

        By the names of the columns of a row: n, accepted, coverage, the risks and the excess. What
        a rule without losses cannot say comes from the curve, when there is one.
        """
        rule, point = self.rule, self._vertex()
        if rule.n == 0 and point is None:
            return None
        known: dict[str, Any] = {"n": rule.n, "accepted": rule.accepted}
        known |= {"coverage": _number(rule.coverage), "selective_risk": _number(rule.risk)}
        if point is not None and rule.failures is None:
            known |= point
        whole = known["coverage"] * known["selective_risk"]
        nothing = known["coverage"] == 0 and not math.isnan(known["coverage"])
        known["generalized_risk"] = 0.0 if nothing and self.curve is not None else whole
        return {**known, "excess": _excess(rule, known)}

    def _vertex(self) -> dict[str, Any] | None:
        """Return the point of the rule on the curve of the calibration data."""
        curve, threshold = self.curve, self.rule.threshold
        if curve is None:
            return None
        known = {"n": int(curve.accepted[-1]), "accepted": 0, "coverage": 0.0}
        reached = 0 if threshold is None else int((curve.thresholds >= threshold).sum())
        if reached == 0:
            return {**known, "selective_risk": _NAN}
        at = reached - 1
        coverage, risk = float(curve.coverage[at]), float(curve.risk[at])
        selective = risk if curve.kind == "selective" else risk / coverage
        known |= {"accepted": int(curve.accepted[at]), "coverage": coverage}
        return {**known, "selective_risk": selective}

    def _calibration(self, known: dict[str, Any]) -> dict[str, Any]:
        ends = {f"{number}{end}": _NAN for number in _WITH_ENDS for end in ("_low", "_high")}
        found = {
            "name": CALIBRATION,
            "subgroup": "",
            "role": CALIBRATION,
            "together": 1,
            **self._about(self.rule),
            **_ends_apart([]),
            **known,
            **ends,
            "verdict": CHOSEN_HERE if self.rule.attainable else "unattainable",
            "note": "the threshold was chosen on these data",
        }
        return {name: found[name] for name in CHECK_COLUMNS}


def _ends_apart(found: list[Disparity]) -> dict[str, float]:
    """Return the columns of `APART`; NaN where there are no groups."""
    out = {f"{name}{end}": _NAN for name in DISPARITY_COLUMNS for end in ("", "_low", "_high")}
    for most in found:
        first = "rejection" if most.quantity == "rejection rate" else "risk"
        for number in ("difference", "ratio"):
            interval: Interval = getattr(most, f"{number}_interval")
            name = f"{first}_{number}"
            out |= {name: getattr(most, number), f"{name}_low": interval.low}
            out[f"{name}_high"] = interval.high
    return out


def _excess(rule: DecisionRule, achieved: dict[str, Any]) -> float:
    """Return how much worse than the target it is; as `RuleCheck.excess`."""
    if rule.target is None or not rule.quantity:
        return _NAN
    if rule.quantity == "cost":
        return float(achieved["generalized_risk"] - rule.target * achieved["coverage"])
    value = float(achieved[rule.quantity.replace(" ", "_")])
    return rule.target - value if rule.quantity == "coverage" else value - rule.target


def _number(value: float | None) -> float:
    return math.nan if value is None else value
