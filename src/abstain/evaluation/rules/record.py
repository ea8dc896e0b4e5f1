"""The result of checking a decision rule on several data sets (`RuleChecks`)."""

import math
from dataclasses import dataclass
from typing import Any, Final

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import Note
from abstain.curves.risk_coverage import RiskCoverageCurve
from abstain.evaluation.records import format_counts
from abstain.evaluation.rules.conditions import AnswerCondition
from abstain.evaluation.rules.outcomes import AnswerOutcomes
from abstain.evaluation.rules.remedies import Remedies
from abstain.inference.intervals import Interval
from abstain.shift import UnlabeledRisk
from abstain.thresholds import DecisionRule, Disparity, RuleCheck, disparities
from abstain.typing import Split

#: Name and verdict of the row of the calibration data.
CALIBRATION: Final = "calibration"
CALIBRATION_VERDICT: Final = "chosen here"

_NAN = float("nan")
#: The columns of a row that also have a column with `_low` and one with `_high`.
_WITH_INTERVAL = ("coverage", "selective_risk", "generalized_risk", "excess")

#: Columns with the largest difference and ratio between groups of a data set. The risk is the
#: risk of the target of the rule.
DISPARITY_COLUMNS: Final = (
    "rejection_difference",
    "rejection_ratio",
    "risk_difference",
    "risk_ratio",
)

#: The columns of a table of checks, after the columns that split the data.
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
    *(f"{number}{end}" for number in _WITH_INTERVAL for end in ("", "_low", "_high")),
    *(f"{number}{end}" for number in DISPARITY_COLUMNS for end in ("", "_low", "_high")),
    "verdict",
    "note",
)


#: For each column of a table of checks: the attribute of `UnlabeledRisk` that it contains.
ESTIMATES: Final = {
    "estimated_risk_mean_confidence": "mean_confidence",
    "estimated_risk_thresholded_confidence": "thresholded_confidence",
    "estimated_risk_reweighted": "reweighted",
}


@dataclass(frozen=True, eq=False)
class RuleChecks(NotebookDisplay):
    """A decision rule and its checks on other data sets.

    Attributes
    ----------
    rule : DecisionRule
        The rule, with the numbers on its calibration data.
    checks : tuple of RuleCheck
        One check for each data set, in the order of the input. Without labels, the risks and the
        excess are NaN.
    splits : tuple of tuple of (column, value)
        The split of each data set; empty if the data sets are not defined by columns.
    level : float
        Confidence level of the intervals, which is joint for a data set and its groups.
    groups : tuple of tuple of RuleCheck
        The checks of the groups of each data set, sorted by name; empty without groups.
    curve : RiskCoverageCurve or None
        Curve of the calibration data, if they were passed: generalized for a rule on the
        generalized risk, else selective.
    notes : tuple of Note
        Notes about the rule and the data, warnings first.
    is_binary : bool
        Whether every loss is 0 or 1. A mean loss is then the share of wrong answers.
    threshold_probability : float or None
        The threshold as a probability of a correct prediction, if it is known to be log-odds.
    estimates : tuple of UnlabeledRisk or None
        Estimated risk of each unlabeled data set, if it can be estimated.
    group_curves : tuple of (str, RiskCoverageCurve)
        For a rule with several thresholds, the curve of each group of the calibration data.
    conditions : tuple of AnswerCondition
        The condition under which the rule answers, for each threshold, as text with few digits.
    positive : str
        The positive class; "" if there is none.
    outcomes : tuple of tuple of AnswerOutcomes or None
        For each data set, its errors and then those of its groups, among the answers and among all
        samples. None without labels, and for losses other than 0 and 1.
    remedies : tuple of Remedies
        For each group of the calibration data without a threshold, what would give one.

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
    group_curves: tuple[tuple[str, RiskCoverageCurve], ...] = ()
    conditions: tuple[AnswerCondition, ...] = ()
    positive: str = ""
    outcomes: tuple[tuple[AnswerOutcomes | None, ...], ...] = ()
    remedies: tuple[Remedies, ...] = ()

    def __repr__(self) -> str:
        """Return the rule and the numbers of data sets and warnings."""
        n_warnings = sum(note.level == "warning" for note in self.notes)
        counts = format_counts({"data set": len(self), "warning": n_warnings})
        return f"RuleChecks({self.rule!s}; {counts}; .frame() has the numbers)"

    def __len__(self) -> int:
        """Return the number of data sets."""
        return len(self.checks)

    def all_checks(self) -> list[RuleCheck]:
        """Return the check of each data set, followed by the checks of its groups."""
        return [check for index in range(len(self)) for check in self._checks_of(index)]

    def _checks_of(self, index: int) -> tuple[RuleCheck, ...]:
        groups = self.groups[index] if self.groups else ()
        return (self.checks[index], *groups)

    def results_of(self, index: int) -> list[tuple[RuleCheck, AnswerOutcomes | None]]:
        """Return the check and the outcomes of a data set, followed by those of its groups."""
        checks = self._checks_of(index)
        outcomes = self.outcomes[index] if self.outcomes else (None,) * len(checks)
        return list(zip(checks, outcomes, strict=True))

    def all_outcomes(self) -> list[AnswerOutcomes]:
        """Return the outcomes of all data sets and groups that have them."""
        return [outcome for group in self.outcomes for outcome in group if outcome]

    def condition_of(self, group: str) -> AnswerCondition | None:
        """Return the condition of a group; None if the rule has no such group."""
        return next((c for c in self.conditions if c.group == group), None)

    def disparities(self) -> list[Disparity]:
        """Return the disparities between the groups of each data set; empty without groups.

        A disparity is the largest difference and ratio between two groups, with intervals: of the
        rejection rate, and of the risk of the rule (by default the selective risk).
        """
        return [
            disparity for index in range(len(self)) for disparity in self._disparities_of(index)
        ]

    def _disparities_of(self, index: int) -> list[Disparity]:
        groups = self._checks_of(index)[1:]
        has_limits = bool(self.rule.parts) and not self.rule.per
        if has_limits:
            # Limits of classes are not compared, because classes differ in difficulty.
            groups = tuple(check for check in groups if check.group.startswith("group:"))
        is_generalized = self.rule.quantity == "generalized risk"
        quantities = {"rejection rate", "generalized risk" if is_generalized else "selective risk"}
        return [d for d in disparities(groups) if d.quantity in quantities]

    def rows(self) -> list[dict[str, Any]]:
        """Return flat rows: the calibration data, if any, then each data set and its groups.

        The row of a group has the `name` of its data set, its group as `subgroup`, and the `role`
        "group". `together` is the number of rows for which the intervals hold jointly. The row of
        the calibration data has no intervals, because the threshold was chosen on these data and
        the numbers are optimistic. If risks of unlabeled data were estimated, the rows also have
        the columns of the estimates (`abstain.shift.unlabeled_risk`).
        """
        split_columns = dict.fromkeys(column for split in self.splits for column, _ in split)
        empty_split = dict.fromkeys(split_columns, "")
        rows: list[dict[str, Any]] = []
        estimates: list[UnlabeledRisk | None] = []
        calibration = self.calibration_values()
        if calibration is not None:
            rows.append({**empty_split, **self._calibration_row(calibration)})
            estimates.append(None)
        for index, split in enumerate(self.splits):
            for check in self._checks_of(index):
                disparity = [] if check.group else self._disparities_of(index)
                rows.append({**empty_split, **dict(split), **self._check_row(check, disparity)})
                estimates.append(self.estimates[index] if self.estimates else None)
        if any(self.estimates):
            return [row | estimate_columns(e) for row, e in zip(rows, estimates, strict=True)]
        return rows

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)

    def _rule_columns(self, rule: DecisionRule) -> dict[str, Any]:
        return {
            "score": rule.score,
            "method": rule.method,
            "guarantee": rule.guarantee,
            "threshold": _nan_if_none(rule.threshold),
            "threshold_scale": rule.scale,
            "threshold_probability": _nan_if_none(rule.threshold_on("probability")),
            "threshold_log_odds": _nan_if_none(rule.threshold_on("log-odds")),
            "target": _nan_if_none(rule.target),
            "delta": _nan_if_none(rule.delta),
            "bound": _nan_if_none(rule.bound),
            "level": self.level,
        }

    def _check_row(self, check: RuleCheck, disparity: list[Disparity]) -> dict[str, Any]:
        columns = {
            **check.row(),
            "role": "group" if check.group else "check",
            "together": check.n_joint_verdicts,
            "note": check.note,
            **self._rule_columns(check.rule),
            **_disparity_columns(disparity),
        }
        return {name: columns[name] for name in CHECK_COLUMNS}

    def calibration_values(self) -> dict[str, Any] | None:
        """Return the numbers of the rule on its calibration data, or None if they are unknown.

        The keys are columns of a row: n, accepted, coverage, the risks and the excess. If the rule
        has no risk and the curve of the calibration data is available, the risk is read from it.
        """
        rule, point = self.rule, self._point_on_curve()
        if rule.n == 0 and point is None:
            return None
        values: dict[str, Any] = {
            "n": rule.n,
            "accepted": rule.accepted,
            "coverage": _nan_if_none(rule.coverage),
            "selective_risk": _nan_if_none(rule.risk),
        }
        if point is not None and rule.failures is None:
            values |= point
        if values["coverage"] == 0 and self.curve is not None:
            values["generalized_risk"] = 0.0
        else:
            values["generalized_risk"] = values["coverage"] * values["selective_risk"]
        return {**values, "excess": _excess(rule, values)}

    def _point_on_curve(self) -> dict[str, Any] | None:
        """Return the working point of the rule on the curve of the calibration data."""
        curve, threshold = self.curve, self.rule.threshold
        if curve is None:
            return None
        n_samples = int(curve.accepted[-1])
        n_vertices = 0 if threshold is None else int((curve.thresholds >= threshold).sum())
        if n_vertices == 0:
            return {"n": n_samples, "accepted": 0, "coverage": 0.0, "selective_risk": _NAN}
        vertex = n_vertices - 1
        coverage, risk = float(curve.coverage[vertex]), float(curve.risk[vertex])
        return {
            "n": n_samples,
            "accepted": int(curve.accepted[vertex]),
            "coverage": coverage,
            "selective_risk": risk if curve.kind == "selective" else risk / coverage,
        }

    def _calibration_row(self, values: dict[str, Any]) -> dict[str, Any]:
        interval_columns = [f"{name}{end}" for name in _WITH_INTERVAL for end in ("_low", "_high")]
        columns = {
            "name": CALIBRATION,
            "subgroup": "",
            "role": CALIBRATION,
            "together": 1,
            **self._rule_columns(self.rule),
            **_disparity_columns([]),
            **values,
            **dict.fromkeys(interval_columns, _NAN),
            "verdict": CALIBRATION_VERDICT if self.rule.attainable else "unattainable",
            "note": "the threshold was chosen on these data",
        }
        return {name: columns[name] for name in CHECK_COLUMNS}


def _disparity_columns(disparities_of_data: list[Disparity]) -> dict[str, float]:
    """Return the columns of `DISPARITY_COLUMNS` with their intervals; NaN without groups."""
    columns = {f"{name}{end}": _NAN for name in DISPARITY_COLUMNS for end in ("", "_low", "_high")}
    for disparity in disparities_of_data:
        prefix = "rejection" if disparity.quantity == "rejection rate" else "risk"
        for measure in ("difference", "ratio"):
            interval: Interval = getattr(disparity, f"{measure}_interval")
            name = f"{prefix}_{measure}"
            columns[name] = getattr(disparity, measure)
            columns[f"{name}_low"] = interval.low
            columns[f"{name}_high"] = interval.high
    return columns


def _excess(rule: DecisionRule, achieved: dict[str, Any]) -> float:
    """Return by how much the target is missed, as `RuleCheck.excess` does."""
    if rule.target is None or not rule.quantity:
        return _NAN
    if rule.quantity == "cost":
        return float(achieved["generalized_risk"] - rule.target * achieved["coverage"])
    value = float(achieved[rule.quantity.replace(" ", "_")])
    return rule.target - value if rule.quantity == "coverage" else value - rule.target


def _nan_if_none(value: float | None) -> float:
    return math.nan if value is None else value


def estimate_columns(estimate: UnlabeledRisk | None) -> dict[str, float]:
    """Return the estimates as columns of a row; NaN if there are none."""
    if estimate is None:
        return dict.fromkeys(ESTIMATES, float("nan"))
    return {column: float(getattr(estimate, name)) for column, name in ESTIMATES.items()}
