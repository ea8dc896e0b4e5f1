"""Define the result of checking a decision rule on several data sets (`RuleChecks`)."""

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

#: Name and verdict of the calibration data in a table of checks.
CALIBRATION: Final = "calibration"
CALIBRATION_VERDICT: Final = "chosen here"

_NAN = float("nan")
#: Columns whose interval bounds are in two more columns, with the suffixes `_low` and `_high`.
_WITH_INTERVAL = ("coverage", "selective_risk", "generalized_risk", "excess")

#: Columns with the largest difference and ratio between the groups of a data set. The risk is the
#: kind of risk that the target of the rule limits.
DISPARITY_COLUMNS: Final = (
    "rejection_difference",
    "rejection_ratio",
    "risk_difference",
    "risk_ratio",
)

#: Columns of a table of checks, after the split columns.
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


#: Mapping from columns of a table of checks to the attributes of `UnlabeledRisk` in the columns.
ESTIMATES: Final = {
    "estimated_risk_mean_confidence": "mean_confidence",
    "estimated_risk_thresholded_confidence": "thresholded_confidence",
    "estimated_risk_reweighted": "reweighted",
}


@dataclass(frozen=True, eq=False)
class RuleChecks(NotebookDisplay):
    """A decision rule, and the results of its checks on other data sets.

    Attributes
    ----------
    rule : DecisionRule
        The rule, with its coverage and risk on the calibration data.
    checks : tuple of RuleCheck
        One check for each data set, in the order of the input. If a data set has no labels, the
        risks and the excess are NaN.
    splits : tuple of tuple of (column, value)
        The split of each data set. A split is empty if no columns define the data set.
    level : float
        Confidence level of the intervals. The intervals of a data set and its groups hold jointly
        at this level.
    groups : tuple of tuple of RuleCheck
        The checks of the groups of each data set, sorted by the names of the groups. The inner
        tuple is empty if the data set has no groups.
    curve : RiskCoverageCurve or None
        Risk-coverage curve of the calibration data, or None if these were not passed. The curve
        shows the generalized risk if the rule limits this risk, and the selective risk otherwise.
    notes : tuple of Note
        Notes about the rule and the data. Warnings come first.
    is_binary : bool
        Whether every loss is 0 or 1. If True, a mean loss is a share of wrong answers.
    threshold_probability : float or None
        The threshold, converted to a probability of a correct prediction. The attribute is None
        unless the threshold is in log-odds.
    estimates : tuple of UnlabeledRisk or None
        Estimated risk of each unlabeled data set. For a data set whose risk cannot be estimated,
        the entry is None.
    group_curves : tuple of (str, RiskCoverageCurve)
        The curve of each group of the calibration data, for a rule with several thresholds.
    conditions : tuple of AnswerCondition
        The condition under which the rule answers a sample, for each threshold.
    positive : str
        Name of the positive class, or "" if there is no positive class.
    outcomes : tuple of tuple of AnswerOutcomes or None
        The errors on each data set and then on its groups, as shares of the answers and of all
        samples. Without labels, or if a loss is neither 0 nor 1, the entry is None.
    remedies : tuple of Remedies
        The remedies for each group of the calibration data that has no threshold.

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
        """Return a summary of the rule, with the numbers of data sets and warnings."""
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
        """Return the check and the outcomes of a data set, and of each of its groups, as pairs."""
        checks = self._checks_of(index)
        outcomes = self.outcomes[index] if self.outcomes else (None,) * len(checks)
        return list(zip(checks, outcomes, strict=True))

    def all_outcomes(self) -> list[AnswerOutcomes]:
        """Return all available outcomes of data sets and groups."""
        return [outcome for group in self.outcomes for outcome in group if outcome]

    def condition_of(self, group: str) -> AnswerCondition | None:
        """Return the condition under which a group is answered, or None for an unknown group."""
        return next((c for c in self.conditions if c.group == group), None)

    def disparities(self) -> list[Disparity]:
        """Return the disparities between the groups of each data set, if there are groups.

        A disparity is the largest difference and the largest ratio between two groups, with
        intervals. The method compares the rejection rate, and the kind of risk that the rule
        limits (by default, the selective risk).
        """
        return [
            disparity for index in range(len(self)) for disparity in self._disparities_of(index)
        ]

    def _disparities_of(self, index: int) -> list[Disparity]:
        """Return the disparities of the rejection rate and the risk between groups."""
        groups = tuple(check for check in self._checks_of(index)[1:] if not check.limit)
        if self.rule.limits and not self.rule.per:
            # Limits of classes are not compared, because classes differ in difficulty.
            groups = tuple(check for check in groups if check.group.startswith("group:"))
        is_generalized = self.rule.quantity == "generalized risk"
        quantities = {"rejection rate", "generalized risk" if is_generalized else "selective risk"}
        return [d for d in disparities(groups) if d.quantity in quantities]

    def rows(self) -> list[dict[str, Any]]:
        """Return table rows for the calibration data, the data sets and their groups.

        In the row of a group, `name` is the name of the data set, `subgroup` is the group, and
        `role` is "group". In the row of a limit of a group, `role` is "limit". The column
        `together` is the number of rows whose intervals hold jointly. The row of the calibration
        data has no intervals, and its risks are optimistic, because the threshold was selected on
        these data. If the risk of unlabeled data was estimated, the estimates are additional
        columns (see `abstain.shift.unlabeled_risk`).
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
        if not any(self.estimates):
            return rows
        return [
            row | estimate_columns(estimate) for row, estimate in zip(rows, estimates, strict=True)
        ]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)

    def _rule_columns(self, rule: DecisionRule) -> dict[str, Any]:
        """Return the columns of a row that describe the rule."""
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
        """Return the row of a check, with the columns of the rule and of the disparities."""
        columns = {
            **check.row(),
            "role": "limit" if check.limit else "group" if check.group else "check",
            "together": check.n_joint_verdicts,
            "note": check.note,
            **self._rule_columns(check.rule),
            **_disparity_columns(disparity),
        }
        return {name: columns[name] for name in CHECK_COLUMNS}

    def calibration_values(self) -> dict[str, Any] | None:
        """Return n, accepted, coverage, risks and excess of the rule on its calibration data.

        If the rule does not contain its risk, the risk is taken from the curve of the calibration
        data. If these numbers are not available, the result is None.
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
        """Return the operating point of the rule on the curve of the calibration data."""
        curve, threshold = self.curve, self.rule.threshold
        if curve is None:
            return None
        n_samples = int(curve.accepted[-1])
        n_points = 0 if threshold is None else int((curve.thresholds >= threshold).sum())
        if n_points == 0:
            return {"n": n_samples, "accepted": 0, "coverage": 0.0, "selective_risk": _NAN}
        point = n_points - 1
        coverage, risk = float(curve.coverage[point]), float(curve.risk[point])
        return {
            "n": n_samples,
            "accepted": int(curve.accepted[point]),
            "coverage": coverage,
            "selective_risk": risk if curve.kind == "selective" else risk / coverage,
        }

    def _calibration_row(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the row of the calibration data, which has no intervals."""
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
    """Return the disparity columns with their intervals, which are NaN without groups."""
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
    """Return the excess over the target, as defined for `RuleCheck`."""
    if rule.target is None or not rule.quantity:
        return _NAN
    if rule.quantity == "cost":
        return float(achieved["generalized_risk"] - rule.target * achieved["coverage"])
    value = float(achieved[rule.quantity.replace(" ", "_")])
    return rule.target - value if rule.quantity == "coverage" else value - rule.target


def _nan_if_none(value: float | None) -> float:
    return math.nan if value is None else value


def estimate_columns(estimate: UnlabeledRisk | None) -> dict[str, float]:
    """Return the estimates as columns of a row, which are NaN if there are no estimates."""
    if estimate is None:
        return dict.fromkeys(ESTIMATES, float("nan"))
    return {column: float(getattr(estimate, name)) for column, name in ESTIMATES.items()}
