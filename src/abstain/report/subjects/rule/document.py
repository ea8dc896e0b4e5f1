"""Report of a decision rule and of its checks on other data."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from abstain.evaluation.rules import CALIBRATION, RuleChecks
from abstain.plots import DecisionRuleDisplay, RiskExcessDisplay
from abstain.plots.formatting import format_percent
from abstain.plots.verdicts import check_rule_checks, total_verdict
from abstain.report import document as doc
from abstain.report.formatting import build_remarks, format_count, join_first
from abstain.report.subjects.rule.glossary import glossary_entries
from abstain.report.subjects.rule.overview import (
    MAX_GROUPS,
    count_groups,
    is_review_on_first_screen,
    key_numbers,
    overview_blocks,
)
from abstain.report.subjects.rule.remedies import remedies_section
from abstain.report.subjects.rule.review import review_section
from abstain.report.subjects.rule.sentences import (
    answer_sentences,
    estimate,
    facts,
    format_limit_name,
    group_name,
    guarantee_sentences,
    interval_scope,
    keep_worst_groups,
    row_estimate,
    rule_title,
    verdict_span,
)
from abstain.report.subjects.rule.tables import (
    all_samples_table,
    answers_table,
    calibration_table,
    has_classes,
    reason_blocks,
)
from abstain.thresholds import DecisionRule

DEFAULT_TITLE = "Decision rule"
#: Maximum width of a column of names, in characters.
_MAX_NAME_WIDTH = 26
#: Maximum number of data sets in the title line.
_MAX_CONTEXT_NAMES: Final = 3
_DISPARITY_CAPTION: Final = (
    "The groups with the largest difference in the rejection rate and in the risk. Small print: "
    "{level} confidence intervals of the largest difference and ratio of any two groups, from "
    "simultaneous intervals of all groups."
)
_USAGE_CODE: Final = """\
import abstain as ab

rule = ab.tables.load("rule.json")
answer = rule.apply(predictions)  # or logits=..., or confidences{group_argument}
# True: answer, False: abstain"""
_DESCRIPTION_BY_FIGURE = {
    "decision-rule": (
        "The diamond is the selected working point, and its bar extends to the certified bound. "
        "The dotted line is the target. The other points are the working points of the same "
        "threshold on other data."
    ),
    "risk-excess": (
        "Filled circles: the target holds; crosses: it is violated; hollow circles: inconclusive. "
        "The result of a data set is that of its total, without its groups. "
        "The data sets are in input order. A gray line connects the severities of one shift."
    ),
}


def rule_document(checks: RuleChecks, options: doc.ReportOptions) -> doc.Document:
    """Build the report of a decision rule and of its checks on other data."""
    checks = check_rule_checks(checks)
    return doc.Document(
        options.title or _default_title(checks.rule),
        tuple(_context(checks, options.source)),
        lambda: (
            doc.DeferredBlocks(partial(_summary_blocks, checks), role="summary"),
            *_sections(checks, options),
        ),
        answer=tuple(answer_sentences(checks)),
        key_numbers=key_numbers(checks),
        overview=lambda: overview_blocks(checks, review_section(checks, options)),
        facts=(("Calibration data", options.source), *facts(checks.rule)),
        findings=build_remarks(checks.notes, options.notes, lambda _: ""),
        command=options.command,
        is_alarm=not checks.rule.attainable,
        name_width=min(max(map(len, _row_names(checks)), default=8), _MAX_NAME_WIDTH),
    )


def _row_names(checks: RuleChecks) -> list[str]:
    """Return the names of the groups or, if there are no groups, of the data sets."""
    groups = [check.limit or check.group for group in checks.groups for check in group]
    return groups or [check.name for check in checks.checks]


def _default_title(rule: DecisionRule) -> str:
    return f"{DEFAULT_TITLE} per {group_name(rule)}" if rule.per else DEFAULT_TITLE


def _context(checks: RuleChecks, source: str) -> Iterator[str]:
    rule = checks.rule
    if rule.n:
        name = f"{source} " if source else "data "
        yield f"calibration {name}({format_count(rule.n)})"
    sizes = [f"{check.name} ({format_count(check.n)})" for check in checks.checks]
    if sizes:
        yield f"test {join_first(sizes, _MAX_CONTEXT_NAMES)}"


def _sections(checks: RuleChecks, options: doc.ReportOptions) -> Iterator[doc.Block]:
    """Yield the sections with the details, starting with remedies for missing thresholds."""
    rule = checks.rule
    yield from remedies_section(checks)
    n_groups = count_groups(checks)
    is_incomplete = n_groups > MAX_GROUPS or (rule.limits and has_classes(checks))
    if (n_groups and len(checks) > 1) or is_incomplete:
        table = replace(answers_table(checks), title="Answers of all groups")
        yield doc.Section("answers", "Answers", (table,))
    all_samples = all_samples_table(checks)
    if all_samples is not None:
        yield doc.Section("all-samples", "All samples", (all_samples,))
    review = review_section(checks, options)
    if rule.parts and checks.checks:
        title = "Calibration" if rule.per else "Limits"
        blocks = (calibration_table(checks), *reason_blocks(checks))
        yield doc.Box((doc.Section("parts", title, blocks), review), "pair")
    elif not is_review_on_first_screen(checks):
        yield review
    yield doc.Section("all-results", "All results", tuple(_collapsed_results(checks)))
    yield doc.Section("rule", "Use the rule", tuple(_usage_blocks(rule)))
    glossary = doc.Glossary(glossary_entries(checks))
    yield doc.Collapsible("Glossary", (glossary,), anchor="glossary", style="end")


def _collapsed_results(checks: RuleChecks) -> Iterator[doc.Block]:
    """Yield the collapsed tables and figures of the results."""
    summary = "Coverage, risks and excess over the target, with intervals"
    yield doc.Collapsible(summary, tuple(_results_blocks(checks)))
    disparities = _disparity_table(checks)
    if disparities is not None:
        yield doc.Collapsible("Disparity between groups", (disparities,))
    figures = tuple(_figure_blocks(checks))
    if figures:
        yield doc.Collapsible("Figures", (doc.Box(figures, "figures"),), is_open=len(checks) > 1)


def _results_blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    """Yield the explanation and the table of the results on each data set."""
    lead = "Results of the threshold on each data set, compared with its target."
    if checks.rule.guarantee != "none":
        population = checks.rule.population or "data like the calibration data"
        lead = (
            f"The guarantee applies to {population}. The table shows whether it also holds on "
            "other data, which may be shifted."
        )
    yield doc.Prose(lead, "lead")
    rows = _rows_with_total_verdicts(checks)
    if rows:
        yield _results_table(checks, rows)
    else:
        yield doc.Prose("The rule was not checked on other data.")


def _rows_with_total_verdicts(checks: RuleChecks) -> list[dict[str, Any]]:
    """Return the rows of the results, in which the verdict of a data set is that of its total.

    The results of its groups are in their own rows.
    """
    rows = checks.rows()
    all_checks = checks.all_checks()
    # The first row may be that of the calibration data, which has no check.
    for row, check in zip(reversed(rows), reversed(all_checks), strict=False):
        row["verdict"] = total_verdict(check)
        row["note"] = check.excess_interval.note
    return rows


def _results_table(checks: RuleChecks, rows: list[dict[str, Any]]) -> doc.Table:
    """Return a table of the coverage, the risks and the excess over the target."""
    is_generalized = checks.rule.quantity == "generalized risk"
    level = format_percent(checks.level)
    return doc.Table(
        (
            doc.Column("Data", "name"),
            doc.number_column(doc.Label("Samples", short_text="n")),
            doc.Column("Accepted", "number", detail_level="column"),
            doc.number_column("Coverage"),
            doc.Column("Selective risk", "number", detail_level="column" if is_generalized else ""),
            doc.Column(
                "Generalized risk", "number", detail_level="" if is_generalized else "column"
            ),
            doc.Column("Excess", "number", detail_level="intervals"),
            doc.Column("Result"),
        ),
        doc.single_group(_row(row, checks) for row in rows),
        title="All results with intervals",
        caption=(
            f"Small print: {level} confidence intervals, {interval_scope(checks)}. Excess: values "
            "above 0 are worse than the target. Values are fractions."
        ),
        layout="leads",
    )


def _row(row: dict[str, Any], checks: RuleChecks) -> doc.Row:
    """Return the row of a data set or, indented, of a group or a limit of a group."""
    rule, is_binary = checks.rule, checks.is_binary
    name = row["subgroup"] or row["name"]
    if row["role"] == "limit":
        limit = next(part.name for part in rule.limits if name.endswith(f": {part.name}"))
        name = name.removesuffix(limit) + format_limit_name(limit, binary=is_binary)
    elif row["role"] == "group" and rule.limits and not rule.per:
        name = format_limit_name(name, binary=is_binary)
    cells = (
        name,
        doc.Number(row["n"], number_format="count"),
        doc.Number(row["accepted"], number_format="count"),
        *(row_estimate(row, name) for name in ("coverage", "selective_risk", "generalized_risk")),
        row_estimate(row, "excess", "signed"),
        verdict_span(row),
    )
    if row["subgroup"]:
        return doc.Row(cells, "group")
    return doc.Row(cells, "marked" if row["role"] == CALIBRATION else "")


def rule_figures(
    checks: RuleChecks,
) -> list[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]]:
    """Return the names and displays of the figures that can be drawn from the results."""
    figures: list[tuple[str, DecisionRuleDisplay | RiskExcessDisplay]] = []
    rule_display = DecisionRuleDisplay.from_checks(checks)
    if checks.curve is not None or (checks.rule.attainable and checks.rows()):
        figures.append(("decision-rule", rule_display))
    if checks.checks and checks.rule.attainable and checks.rule.quantity:
        figures.append(("risk-excess", RiskExcessDisplay.from_checks(checks)))
    return figures


def _figure_blocks(checks: RuleChecks) -> list[doc.Figure]:
    """Return the figures of the details, without those at the top of the report."""
    return [
        doc.Figure(key, display.title, display, _DESCRIPTION_BY_FIGURE[key])
        for key, display in rule_figures(checks)
        if key != "decision-rule" or (checks.checks and not checks.group_curves)
    ]


def _usage_blocks(rule: DecisionRule) -> Iterator[doc.Block]:
    """Yield Python code that applies the rule, and the rule as JSON."""
    if rule.attainable:
        score = f"“{rule.score}”" if rule.score else "the same score"
        group_suffix = " of its group" if rule.per else ""
        yield doc.Prose(
            f"The rule answers if the confidence is at least the threshold{group_suffix}, and "
            f"abstains otherwise. The confidence must be {score}, computed in the same way as for "
            "the calibration data.",
            "lead",
        )
        yield doc.Code(_USAGE_CODE.format(group_argument=", with group=..." if rule.per else ""))
    else:
        yield doc.Prose("This rule has no threshold, so it rejects all samples.", "lead")
    yield doc.Collapsible("The rule as JSON", (doc.Code(rule.to_json()),))


def _summary_blocks(checks: RuleChecks) -> Iterator[doc.Block]:
    """Yield the blocks that a terminal prints after the key table."""
    if any(checks.groups) and len(checks) > 1:
        if checks.rule.per:
            yield replace(calibration_table(checks), title="")
        rows, n_omitted = keep_worst_groups(_rows_with_total_verdicts(checks), MAX_GROUPS)
        yield replace(_results_table(checks, rows), title="")
        if n_omitted:
            groups = f"{format_count(n_omitted)} groups"
            text = f"{groups} with a lower excess are omitted. All rows are in "
            yield doc.SeeAlso(text, "the files of --out.", ".frame().")
    disparities = _disparity_table(checks)
    if disparities is not None:
        yield replace(disparities, title="")
    for section in remedies_section(checks):
        yield from section.blocks
    yield doc.Prose(f"Rule: {rule_title(checks.rule)}.", "notes")
    for sentence in guarantee_sentences(checks):
        yield doc.Prose(sentence, "notes")


def _disparity_table(checks: RuleChecks) -> doc.Table | None:
    """Return a table of the disparity between groups, or None if there are no groups."""
    disparities = checks.disparities()
    if not (disparities and checks.rule.attainable):
        return None
    has_several_data_sets = len({disparity.name for disparity in disparities}) > 1
    rows = []
    for disparity in disparities:
        cells: list[doc.Cell] = [disparity.name] if has_several_data_sets else []
        cells += [
            disparity.quantity.capitalize(),
            disparity.highest or "-",
            disparity.lowest or "-",
            estimate(disparity.difference, disparity.difference_interval),
            estimate(disparity.ratio, disparity.ratio_interval),
        ]
        rows.append(cells)
    columns = [doc.Column("Data", "name")] if has_several_data_sets else []
    columns += [
        doc.Column("Quantity", "name"),
        doc.Column("Highest group"),
        doc.Column("Lowest group"),
        doc.number_column("Difference"),
        doc.number_column("Ratio"),
    ]
    return doc.Table(
        tuple(columns),
        doc.single_group(rows),
        title="Disparity between groups",
        caption=_DISPARITY_CAPTION.format(level=format_percent(checks.level)),
    )
