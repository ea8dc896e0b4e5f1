"""First screen of a decision rule, with key numbers, results per group and the figure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from abstain.evaluation.rules import RuleChecks
from abstain.evaluation.rules.outcomes import Share
from abstain.inference.intervals import Interval
from abstain.plots import DecisionRuleDisplay
from abstain.plots.formatting import format_percent
from abstain.report import document as doc
from abstain.report.formatting import format_count, format_interval
from abstain.report.subjects.rule.sentences import (
    format_target,
)
from abstain.report.subjects.rule.tables import (
    answers_table,
    calibration_table,
    class_table,
    has_classes,
    percent_text,
    reason_blocks,
    side_by_side_table,
)

#: Maximum number of data sets that are side by side in a table.
MAX_SIDE_BY_SIDE: Final = 4
#: Maximum number of groups of one data set in the key table.
MAX_GROUPS: Final = 20


def key_numbers(checks: RuleChecks) -> tuple[doc.KeyNumber, ...]:
    """Return the key numbers of the data sets, or of the calibration data if there are none."""
    if len(checks) == 1:
        return tuple(_numbers_of_data_set(checks))
    if not checks.checks:
        return tuple(_numbers_of_calibration(checks))
    return tuple(_ranges(checks))


def _numbers_of_data_set(checks: RuleChecks) -> Iterator[doc.KeyNumber]:
    """Yield the share of answers and the error rates on the only data set."""
    (check,) = checks.checks
    outcome = checks.outcomes[0][0] if checks.outcomes else None
    n_answered = f"{format_count(check.accepted)} of {format_count(check.n)}"
    yield doc.KeyNumber("Answered", percent_text(check.coverage), n_answered)
    if outcome is None:
        return
    if check.accepted:
        yield doc.KeyNumber(
            "Wrong answers",
            percent_text(check.selective_risk),
            _interval(check.selective_risk_interval),
        )
    yield _share_number("Wrong without abstention", outcome.wrong_without_abstention)
    if outcome.classes is None or not check.accepted:
        return
    yield _share_number("Sensitivity, answered", outcome.classes.sensitivity)
    yield _share_number("Specificity, answered", outcome.classes.specificity)
    n_negative = format_count(outcome.classes.false_negatives.count)
    n_positive = format_count(outcome.classes.false_positives.count)
    yield doc.KeyNumber(
        "False neg. / false pos.",
        f"{n_negative} / {n_positive}",
        f"of {format_count(outcome.wrong.count)} wrong answers",
    )


def _share_number(label: str, share: Share) -> doc.KeyNumber:
    return doc.KeyNumber(label, percent_text(share.value), _interval(share.interval))


def _numbers_of_calibration(checks: RuleChecks) -> Iterator[doc.KeyNumber]:
    """Yield the coverage, the risk, the limit and delta for the calibration data."""
    rule = checks.rule
    if rule.coverage is not None:
        counts = f"{format_count(rule.accepted)} of {format_count(rule.n)}"
        yield doc.KeyNumber("Answered in calibration", percent_text(rule.coverage), counts)
    if rule.risk is not None and checks.is_binary:
        label = "Wrong answers in calibration"
        yield doc.KeyNumber(label, percent_text(rule.risk), "optimistic")
    if rule.target is not None and rule.quantity and rule.quantity != "cost":
        yield doc.KeyNumber("Limit", format_target(rule), rule.quantity)
    if rule.delta is not None:
        yield doc.KeyNumber("Delta", f"{rule.delta:g}", "probability that the guarantee fails")


def _ranges(checks: RuleChecks) -> Iterator[doc.KeyNumber]:
    """Yield the lowest and the highest value of each key number over several data sets."""
    results = checks.checks
    if checks.rule.attainable and checks.rule.quantity:
        n_holding = sum(check.verdict == "holds" for check in results)
        label = "Target holds in all groups" if any(checks.groups) else "Target holds"
        yield doc.KeyNumber(label, f"{n_holding} of {len(results)}", "data sets")
    yield _range_number("Answered", [check.coverage for check in results])
    # The first outcome of a data set is the total over its groups.
    totals = [outcomes[0] for outcomes in checks.outcomes if outcomes[0] is not None]
    wrong = [total.wrong.value for total in totals if total.wrong.total]
    if wrong:
        yield _range_number("Wrong answers", wrong)
    if totals:
        without_rule = [total.wrong_without_abstention.value for total in totals]
        yield _range_number("Wrong without abstention", without_rule)


def _range_number(label: str, shares: Sequence[float]) -> doc.KeyNumber:
    """Return a key number with the lowest and the highest share over several data sets."""
    limits = format_interval(min(shares), max(shares), "percent")
    return doc.KeyNumber(label, limits, "lowest, highest")


def _interval(interval: Interval) -> str:
    return format_interval(interval.low, interval.high, "percent")


# ---------------------------------------------------------------------------------- key table
def overview_blocks(checks: RuleChecks, review: doc.Section) -> Iterator[doc.Block]:
    """Yield the main table and the main figure side by side.

    If there is no main table, the record for a safety review replaces it.
    """
    tables = list(_key_tables(checks))
    figure = _key_figure(checks)
    if figure is None:
        if tables:
            yield doc.Box(tuple(tables), "stack", role="key")
    elif is_review_on_first_screen(checks):
        yield doc.Box((figure, replace(review, role="detail")), "overview", role="key")
    else:
        yield doc.Box((doc.Box(tuple(tables), "stack"), figure), "overview", role="key")


def is_review_on_first_screen(checks: RuleChecks) -> bool:
    """Return whether the record for a safety review replaces the key table."""
    return not checks.checks and not checks.rule.parts and checks.curve is not None


def _key_figure(checks: RuleChecks) -> doc.Figure | None:
    """Return the curves of the calibration data, or None if there are none."""
    if checks.curve is None and not checks.group_curves:
        return None
    display = DecisionRuleDisplay(checks, shows_data=False)
    dots = "Dots: thresholds." if checks.rule.per else "Dot: threshold."
    ends = "Dotted lines end at the certified bound." if checks.rule.guarantee != "none" else ""
    return doc.Figure(
        "calibration-curve", display.title, display, f"Calibration data. {dots} {ends}".rstrip()
    )


def _key_tables(checks: RuleChecks) -> Iterator[doc.Block]:
    """Yield a table of the results, whose layout depends on the numbers of data sets and groups."""
    if not checks.checks:
        if checks.rule.parts:
            yield calibration_table(checks)
            yield from reason_blocks(checks)
        return
    has_groups = any(checks.groups)
    if has_groups and 1 < len(checks) <= MAX_SIDE_BY_SIDE:
        yield side_by_side_table(checks)
    elif has_groups and len(checks) > 1:
        # With many data sets, only the details contain all groups.
        yield answers_table(checks, totals_only=True)
    else:
        answers = answers_table(checks, max_groups=MAX_GROUPS, shows_classes=False)
        if not has_classes(checks):
            yield answers
        else:
            # The table with all columns is wider than 80 characters, and with limits, wider than
            # its column of a page.
            yield replace(answers, role="summary")
            yield class_table(checks, MAX_GROUPS)
            has_limits = bool(checks.rule.limits)
            page_table = answers if has_limits else answers_table(checks, max_groups=MAX_GROUPS)
            yield replace(page_table, role="detail")
        n_omitted = count_groups(checks) - MAX_GROUPS
        if n_omitted > 0:
            text = f"{format_count(n_omitted)} groups with a lower excess are omitted. All are in "
            yield doc.SeeAlso(text, "the files of --out.", ".frame().", role="summary")
    yield doc.Prose(interval_note(checks), "notes")


def count_groups(checks: RuleChecks) -> int:
    """Return the largest number of groups in one data set."""
    return max((len({check.group for check in groups}) for groups in checks.groups), default=0)


def interval_note(checks: RuleChecks) -> str:
    """Return a sentence that states which intervals are simultaneous."""
    level = format_percent(checks.level)
    risk = "wrong answers" if checks.is_binary else "the mean loss"
    if not any(checks.groups):
        return f"Intervals hold at {level} for each data set separately."
    return (
        f"Intervals of {risk} hold jointly for a data set and its groups at {level} and decide "
        f"whether the target holds. Other intervals are exact {level} intervals. The result of the "
        "row All is that of the total. The target of the rule holds only if it also holds in each "
        "group."
    )
