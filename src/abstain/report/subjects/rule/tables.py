"""Tables of the results, errors and calibration of a decision rule."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

from abstain.evaluation.rules import RuleChecks
from abstain.evaluation.rules.conditions import AnswerCondition
from abstain.evaluation.rules.outcomes import AnswerOutcomes, Share
from abstain.evaluation.rules.subsets import LABEL, OVERALL
from abstain.plots.formatting import format_percent
from abstain.plots.verdicts import total_verdict
from abstain.report import document as doc
from abstain.report.formatting import format_count, format_value
from abstain.report.subjects.rule.sentences import (
    format_limit_name,
    format_target,
    group_name,
    verdict_span,
)
from abstain.thresholds import DecisionRule, RuleCheck, RulePart

_TOTAL: Final = "All"
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_CALIBRATION_CAPTION: Final = "Measured on the calibration data, so optimistic."


def answers_table(
    checks: RuleChecks,
    *,
    totals_only: bool = False,
    max_groups: int | None = None,
    shows_classes: bool = True,
) -> doc.Table:
    """Return the results of a rule, with a row for each group or each data set.

    If there are more than `max_groups` groups, the table contains only those with the largest
    excess. If `shows_classes` is true, the table includes columns for the positive class.
    """
    has_groups = any(checks.groups) and not totals_only
    has_limits = bool(checks.rule.limits) and has_groups
    has_conditions = bool(checks.rule.per) and has_groups
    has_risk = bool(checks.all_outcomes()) or not checks.is_binary
    shows_classes = shows_classes and has_classes(checks)
    name = "Data"
    if has_groups:
        name = _group_header(checks.rule)
    columns = [doc.Column(name, "name")]
    if has_conditions:
        columns.append(doc.Column("Answer if"))
    columns.append(doc.number_column("Answered"))
    if has_risk:
        columns.append(doc.number_column(_risk_label(checks)))
    if has_limits:
        columns.append(doc.number_column("Limit"))
    columns.append(doc.Column("Result" if has_limits else _target_label(checks)))
    if shows_classes:
        columns += _class_columns()

    def cells_of(check: RuleCheck, outcome: AnswerOutcomes | None) -> list[doc.Cell]:
        return [
            row_name(checks, check) if has_groups else check.name,
            *([_condition_cell(checks, check)] if has_conditions else []),
            _answered_cell(check),
            *([_risk_cell(check, outcome)] if has_risk else []),
            *([_limit_text(check.rule)] if has_limits else []),
            _verdict_cell(checks, check),
            *(_class_cells(outcome) if shows_classes else []),
        ]

    layout = "dense conditions" if has_conditions else "dense"
    layout += " limits" if has_conditions and has_limits else ""
    groups = _row_groups(checks, cells_of, has_groups=has_groups, max_groups=max_groups)
    subject = "on other data"
    if has_groups:
        subject = "per limit" if name == _LIMIT_HEADER else f"per {name.lower()}"
    return doc.Table(
        tuple(columns),
        groups,
        title=f"Results {subject}",
        caption=(
            doc.Span(f"Rule and test results {subject}", "strong"),
            f" {symbol_note(checks)}",
        ),
        layout=layout,
    )


def has_classes(checks: RuleChecks) -> bool:
    """Return whether there is a positive class whose errors are counted."""
    return any(outcome.classes for outcome in checks.all_outcomes())


def class_table(checks: RuleChecks, max_groups: int | None) -> doc.Table:
    """Return a narrow table of the errors of the positive class, for a terminal."""
    has_groups = any(checks.groups)
    name = _group_header(checks.rule) if has_groups else "Data"

    def cells_of(check: RuleCheck, outcome: AnswerOutcomes | None) -> list[doc.Cell]:
        return [row_name(checks, check) if has_groups else check.name, *_class_cells(outcome)]

    return doc.Table(
        (doc.Column(name, "name"), *_class_columns()),
        _row_groups(checks, cells_of, has_groups=has_groups, max_groups=max_groups),
        title=f"Errors among the answers; positive class: {checks.positive}",
        layout="dense",
        role="summary",
    )


def _class_columns() -> list[doc.Column]:
    return [
        doc.number_column("Sensitivity"),
        doc.number_column("Specificity"),
        doc.number_column(doc.Label("False neg.")),
        doc.number_column(doc.Label("False pos.")),
    ]


def _class_cells(outcome: AnswerOutcomes | None) -> list[doc.Cell]:
    """Return a table of the shares and counts of the errors of the positive class."""
    if outcome is None or outcome.classes is None:
        return [None] * len(_class_columns())
    classes = outcome.classes
    return [
        _share_cell(classes.sensitivity),
        _share_cell(classes.specificity),
        _error_cell(classes.false_negatives.count, classes.sensitivity),
        _error_cell(classes.false_positives.count, classes.specificity),
    ]


def _row_groups(
    checks: RuleChecks,
    cells_of: Callable[[RuleCheck, AnswerOutcomes | None], Sequence[doc.Cell]],
    *,
    has_groups: bool,
    max_groups: int | None = None,
) -> tuple[doc.TableRows, ...]:
    """Return rows for each data set: its groups and the total, or only the total."""
    # The first result of a data set is the total, and the other results are those of the groups.
    results_by_data_set = [checks.results_of(index) for index in range(len(checks))]
    if not has_groups:
        return doc.single_group([cells_of(*results[0]) for results in results_by_data_set])
    row_groups = []
    for check, results in zip(checks.checks, results_by_data_set, strict=True):
        group_results = [result for result in results[1:] if _has_results(result[0])]
        rows = [
            doc.Row(tuple(cells_of(*result)), _row_kind(result[0]))
            for result in (*_keep_worst(group_results, max_groups), results[0])
        ]
        row_groups.append(doc.TableRows(tuple(rows), check.name if len(checks) > 1 else ""))
    return tuple(row_groups)


def _keep_worst(
    group_results: list[tuple[RuleCheck, AnswerOutcomes | None]], max_groups: int | None
) -> list[tuple[RuleCheck, AnswerOutcomes | None]]:
    """Return the groups with the largest lower bounds of the excess, in their original order.

    The severity of a group is the largest excess of the group and its limits.
    """
    severity: dict[str, float] = {}
    for check, _ in group_results:
        low = check.excess_interval.low
        low = -math.inf if math.isnan(low) else low
        severity[check.group] = max(severity.get(check.group, -math.inf), low)
    if max_groups is None or len(severity) <= max_groups:
        return group_results
    worst = sorted(severity, key=lambda group: severity[group], reverse=True)[:max_groups]
    return [result for result in group_results if result[0].group in worst]


_LIMIT_HEADER: Final = "Limit for"
#: Group and limit of the check of all samples.
_ALL_SAMPLES: Final = ("", "")


def _group_header(rule: DecisionRule) -> str:
    if rule.limits and not rule.per:
        return _LIMIT_HEADER
    return group_name(rule).capitalize() or "Group"


def _has_results(check: RuleCheck) -> bool:
    """Return whether a row has results. A limit without a threshold has none."""
    return not check.limit or check.rule.attainable


def row_name(checks: RuleChecks, check: RuleCheck) -> str:
    """Return the name of a group, of a limit, or of all samples."""
    is_limit = bool(check.limit) or bool(checks.rule.limits and not checks.rule.per)
    if check.group and is_limit:
        return format_limit_name(check.limit or check.group, binary=checks.is_binary)
    return check.group or _TOTAL


def _row_kind(check: RuleCheck) -> Literal["", "marked", "group"]:
    """Return the kind of a row, which is the total, a group or a limit of a group."""
    if check.limit:
        return "group"
    return "" if check.group else "marked"


def _risk_label(checks: RuleChecks) -> str:
    return "Wrong answers" if checks.is_binary else "Mean loss"


def _target_label(checks: RuleChecks) -> str:
    rule = checks.rule
    if rule.target is None or rule.quantity in {"", "cost"}:
        return "Result"
    noun = "Target" if rule.quantity == "coverage" else "Limit"
    suffix = " of all" if rule.quantity == "generalized risk" else ""
    return f"{noun} {format_target(rule)}{suffix}"


def symbol_note(checks: RuleChecks) -> str:
    """Return the meaning of p and of the names of limits, and the positive class."""
    texts = []
    if any(condition.symbol == "p" for condition in checks.conditions):
        if any(condition.opposite for condition in checks.conditions) and checks.positive:
            texts.append(f"p is the probability of {checks.positive}")
        else:
            texts.append("p is the probability of the predicted class")
    if checks.positive and any(outcome.classes for outcome in checks.all_outcomes()):
        texts.append(f"positive class: {checks.positive}")
    classes = [part.name for part in checks.rule.limits if part.name.startswith(f"{LABEL}:")]
    if classes and checks.is_binary:
        name = format_limit_name(classes[0], binary=True)
        subset = classes[0].removeprefix(f"{LABEL}:")
        texts.append(
            f"{name}: answered samples of class {subset} with another answer (false negatives)"
        )
    return "; ".join(texts)


def _condition_text(condition: AnswerCondition) -> doc.Text:
    """Return the condition for an answer. Its second alternative is in a small font."""
    if not condition.parts:
        return condition.text
    alternatives = [part.replace(" ", _NO_BREAK) for part in condition.parts]
    further = [doc.Span(f" or{_NO_BREAK}{text}", "small") for text in alternatives[1:]]
    return (alternatives[0], *further)


def _verdict_cell(checks: RuleChecks, check: RuleCheck) -> doc.Span:
    """Return the verdict. That of a data set is the verdict of the total, without its groups."""
    if checks.rule.limits and check.rule.attainable and check.rule.target is None:
        return doc.Span("no limit", "open")
    return verdict_span({"verdict": total_verdict(check), "note": check.excess_interval.note})


def _condition_cell(checks: RuleChecks, check: RuleCheck) -> doc.Cell:
    """Return the condition of a group, or an empty text in the rows of its limits."""
    condition = None if check.limit else checks.condition_of(check.group)
    return "" if condition is None else _condition_text(condition)


def _limit_text(rule: DecisionRule) -> str:
    return "none" if rule.target is None else format_percent(round(rule.target, 6))


def _answered_cell(check: RuleCheck) -> doc.Number:
    text = f"{format_count(check.accepted)} of {format_count(check.n)}"
    return doc.Number(check.coverage, display_text=text, small_text=percent_text(check.coverage))


def _risk_cell(check: RuleCheck, outcome: AnswerOutcomes | None) -> doc.Number | None:
    """Return the share of wrong answers with a simultaneous interval, or the mean loss."""
    interval = check.selective_risk_interval
    if check.accepted == 0:
        return None
    if outcome is None:
        if math.isnan(check.selective_risk):
            return None
        return doc.Number(
            check.selective_risk, interval.low, interval.high, number_format="four_decimals"
        )
    text = f"{format_count(outcome.wrong.count)} ({percent_text(check.selective_risk)})"
    return doc.Number(
        check.selective_risk,
        interval.low,
        interval.high,
        number_format="percent",
        display_text=text,
    )


def _share_cell(share: Share) -> doc.Number | None:
    if share.total == 0:
        return None
    return doc.Number(share.value, share.interval.low, share.interval.high, number_format="percent")


def _error_cell(count: int, share: Share) -> doc.Number | None:
    """Return a cell with the number of errors among the answered samples of a class."""
    if share.total == 0:
        return None
    return doc.Number(count, number_format="count", small_text=f"of {format_count(share.total)}")


def side_by_side_table(checks: RuleChecks) -> doc.Table:
    """Return a table with a row for each group and with columns for each data set."""
    checked = {(c.group, c.limit): c for group in checks.groups for c in group if _has_results(c)}
    rule = checks.rule
    columns = [doc.Column(_group_header(rule), "name")]
    column_groups: list[tuple[doc.Label | str, int]] = []
    columns += [doc.Column("Answer if")] if rule.per else []
    columns += [doc.number_column("Limit")] if rule.limits else []
    if len(columns) > 1:
        column_groups.append(("Rule", len(columns) - 1))
    for check in checks.checks:
        columns += [
            doc.number_column("Answered"),
            doc.number_column(_risk_label(checks)),
            doc.Column("Result" if rule.limits else _target_label(checks)),
        ]
        column_groups.append((check.name, 3))
    rows = []
    for subset, first_check in [*checked.items(), (_ALL_SAMPLES, checks.checks[0])]:
        cells: list[doc.Cell] = [row_name(checks, first_check)]
        if rule.per:
            cells.append(_condition_cell(checks, first_check))
        if rule.limits:
            cells.append(_limit_text(first_check.rule))
        for index in range(len(checks)):
            cells += _cells_of_subset(checks, index, subset)
        rows.append(doc.Row(tuple(cells), _row_kind(first_check)))
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title="Results of the data sets side by side",
        caption=(
            doc.Span("Rule and test results side by side", "strong"),
            f" {symbol_note(checks)}",
        ),
        layout="dense many",
        column_groups=tuple(column_groups),
        # A terminal prints no headers of column groups.
        role="detail",
    )


def _cells_of_subset(checks: RuleChecks, index: int, subset: tuple[str, str]) -> list[doc.Cell]:
    """Return three cells with the results of a group or limit on one data set."""
    for check, outcome in checks.results_of(index):
        if (check.group, check.limit) == subset:
            return [_answered_cell(check), _risk_cell(check, outcome), _verdict_cell(checks, check)]
    return [None, None, None]


# ------------------------------------------------------------------------------------ details
def all_samples_table(checks: RuleChecks) -> doc.Table | None:
    """Return the errors among all samples.

    An abstention is not an error.
    """
    outcomes = checks.all_outcomes()
    if not outcomes:
        return None
    shows_classes = has_classes(checks)
    has_groups = any(checks.groups)
    columns = [
        doc.Column(_group_header(checks.rule) if has_groups else "Data", "name"),
        doc.number_column(doc.Label("Samples", short_text="n")),
        doc.number_column("Wrong answers"),
    ]
    if shows_classes:
        columns += map(doc.number_column, ("False negatives", "False positives"))
    columns.append(doc.number_column("Wrong without abstention"))

    def cells_of(check: RuleCheck, outcome: AnswerOutcomes | None) -> list[doc.Cell]:
        """Return the error counts of a group or data set as cells."""
        name = row_name(checks, check) if has_groups else check.name
        cells: list[doc.Cell] = [name, doc.Number(check.n, number_format="count")]
        if outcome is None:
            return [*cells, *[None] * (len(columns) - 2)]
        cells.append(_count_of_total(outcome.wrong_of_all))
        if shows_classes:
            classes = outcome.classes
            cells.append(_count_of_total(classes.false_negatives) if classes else None)
            cells.append(_count_of_total(classes.false_positives) if classes else None)
        return [*cells, _count_of_total(outcome.wrong_without_abstention)]

    level = format_percent(checks.level)
    return doc.Table(
        tuple(columns),
        _row_groups(checks, cells_of, has_groups=has_groups),
        title="Errors among all samples",
        caption=(
            doc.Span("Errors among all samples", "strong"),
            f" an abstention is not an error; exact {level} intervals of the shares",
        ),
        layout="dense",
    )


def _count_of_total(share: Share) -> doc.Number | None:
    """Return a cell with a count, its total and its share, or None if the total is 0."""
    if share.total == 0:
        return None
    counts = f"{format_count(share.count)} of {format_count(share.total)}"
    return doc.Number(
        share.value,
        share.interval.low,
        share.interval.high,
        number_format="percent",
        display_text=f"{counts} ({percent_text(share.value)})",
    )


def calibration_table(checks: RuleChecks) -> doc.Table:
    """Return a table of the threshold and the calibration results of each group or limit."""
    rule = checks.rule
    columns = [doc.Column(group_name(rule).capitalize() if rule.per else "Risk of", "name")]
    columns += [doc.Column("Answer if")] if rule.per else []
    columns += [doc.number_column("Limit")] if rule.limits else []
    columns += [
        doc.number_column(doc.Label("Samples", short_text="n")),
        doc.number_column("Answered"),
        doc.number_column("Wrong answers" if checks.is_binary else "Mean loss"),
    ]
    if not rule.limits:
        # The certified bound of a rule with several limits is the limit.
        columns.append(doc.number_column("Certified bound"))
        columns.append(doc.Column("Delta", "number", detail_level="column"))
    rows = []
    for part in rule.parts:
        rows.append(doc.Row(tuple(_calibration_cells(checks, part))))
        rows += [
            doc.Row(tuple(_calibration_cells(checks, limit, is_limit=True)), "group")
            for limit in part.rule.parts
            if limit.name != OVERALL
        ]
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title="Thresholds of the groups" if rule.per else "Limits",
        caption=(
            doc.Span("Thresholds on the calibration data" if rule.per else "Limits", "strong"),
            f" {_CALIBRATION_CAPTION}",
        ),
        layout="dense",
    )


def reason_blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    """Yield the reasons why thresholds are missing, unless another section explains them."""
    explained_groups = {remedies.group for remedies in checks.remedies}
    if "" in explained_groups:
        # The reason of a rule with several limits contains the reason of each limit.
        return
    parts = [part for part in checks.rule.parts if part.rule.reason]
    for part in parts:
        if part.name not in explained_groups:
            yield doc.Prose(f"{part.name}: {part.rule.reason}.", "notes")


def _calibration_cells(
    checks: RuleChecks, part: RulePart, *, is_limit: bool = False
) -> list[doc.Cell]:
    """Return a row with the condition and the calibration results of a group or a limit."""
    rule = part.rule
    name = part.name
    if is_limit or not checks.rule.per:
        name = format_limit_name(name, binary=checks.is_binary)
    cells: list[doc.Cell] = [name]
    if checks.rule.per:
        cells.append("" if is_limit else _calibration_condition(checks, part))
    if checks.rule.limits:
        cells.append(_limit_text(rule))
    answered = None
    if rule.coverage is not None:
        text = f"{format_count(rule.accepted)} ({percent_text(rule.coverage)})"
        answered = doc.Number(rule.coverage, display_text=text)
    cells.append(doc.Number(rule.n, number_format="count"))
    cells += [answered, _calibration_risk(rule, is_binary=checks.is_binary)]
    if not checks.rule.limits:
        cells.append("none" if rule.bound is None else format_percent(round(rule.bound, 6)))
        cells.append(None if rule.delta is None else f"{rule.delta:.3g}")
    return cells


def _calibration_condition(checks: RuleChecks, part: RulePart) -> doc.Cell:
    """Return the condition under which the rule answers samples of a group."""
    if not part.rule.attainable:
        return doc.Span("no threshold", "open", tooltip=part.rule.reason)
    condition = checks.condition_of(part.name)
    return "" if condition is None else _condition_text(condition)


def _calibration_risk(rule: DecisionRule, *, is_binary: bool) -> doc.Number | None:
    """Return the risk on the calibration data. For a binary loss, add the number of failures."""
    if rule.risk is None:
        return None
    if not is_binary or rule.failures is None:
        return doc.Number(rule.risk, number_format="four_decimals")
    text = f"{format_count(rule.failures)} ({percent_text(rule.risk)})"
    return doc.Number(rule.risk, number_format="percent", display_text=text)


def percent_text(value: float) -> str:
    """Format a share as a percentage."""
    return format_value(value, "percent")
