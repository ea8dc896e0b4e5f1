"""Report of a cascade and of its checks on other data."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from abstain.evaluation.cascade import CascadeChecks
from abstain.plots import CascadeDisplay, CascadePathDisplay
from abstain.plots.formatting import capitalize_first, check_result_type, format_percent
from abstain.report import document as doc
from abstain.report.formatting import (
    build_remarks,
    format_count,
    format_interval,
    format_number,
    format_share,
    format_value,
    join_quoted,
)
from abstain.report.subjects.rule.sentences import (
    estimate,
    row_estimate,
    verdict_sentences,
    verdict_span,
)
from abstain.thresholds import RuleCheck
from abstain.thresholds.cascade import PERSON, Cascade, CascadePlan, CascadeStage

DEFAULT_TITLE = "Cascade and its checks"
_MAX_NAME_WIDTH = 26
#: Number of samples in a path table, and maximum number of data sets with a path table.
_N_PATH, _MAX_PATHS = 1000, 3
_FIGURE_DESCRIPTION: Final = (
    "Blue dots are certified cascades, and the diamond is the cheapest of them. Thin lines are the "
    "best thresholds of each model alone; a circle is a model that answers all samples. Squares "
    "are other data."
)


_USAGE_LEAD: Final = (
    "Run the first model on all samples, and each following model on the remaining samples. "
    "Confidences of samples that an earlier stage answers are not used and can be NaN."
)
_USAGE_CODE: Final = """\
import abstain as ab

cascade = ab.load("cascade.json")
# Index in cascade.names of the stage that answers each sample.
stage = cascade.decide({arguments})"""


def cascade_document(checks: CascadeChecks, options: doc.ReportOptions) -> doc.Document:
    """Build the report of a cascade and of its checks on other data."""
    checks = check_result_type(checks, CascadeChecks, "checks", "check_cascade")
    return doc.Document(
        options.title or DEFAULT_TITLE,
        ("Cascade",),
        partial(_blocks, checks),
        answer=(*_answer_sentences(checks), *_check_sentences(checks)),
        key_numbers=tuple(_key_numbers(checks)),
        overview=partial(_overview, checks),
        facts=(("Calibration data", options.source), *_facts(checks.cascade)),
        findings=build_remarks(checks.notes, options.notes, lambda _: ""),
        command=options.command,
        is_alarm=not checks.cascade.attainable,
        name_width=min(
            max((len(row["name"]) for row in checks.rows()), default=8), _MAX_NAME_WIDTH
        ),
    )


def _key_numbers(checks: CascadeChecks) -> Iterator[doc.KeyNumber]:
    """Yield the key numbers of the only data set, or those of the calibration data."""
    # The first row contains the results on the calibration data.
    row = checks.rows()[0]
    detail = "calibration data, optimistic"
    if len(checks) == 1:
        row = checks.rows()[-1]
        detail = ""
    if not math.isnan(row["risk"]):
        label = "Wrong answers" if checks.is_binary else "Mean loss"
        number_format: doc.NumberFormat = "percent" if checks.is_binary else "number"
        interval = _format_row_interval(row, "risk", number_format)
        yield doc.KeyNumber(label, format_value(row["risk"], number_format), interval or detail)
        limit = format_value(checks.cascade.plan.max_risk, number_format)
        yield doc.KeyNumber("Limit", limit, f"delta {checks.cascade.plan.delta:g}")
    interval = _format_row_interval(row, "reviews", "percent")
    value = format_value(row["reviews"], "percent")
    yield doc.KeyNumber(f"To the {PERSON}", value, interval or detail)
    if not math.isnan(row["cost"]):
        yield doc.KeyNumber("Cost per sample", format_number(row["cost"]), "in the unit of costs")


def _format_row_interval(row: dict[str, Any], name: str, number_format: doc.NumberFormat) -> str:
    """Format the interval of a quantity, or return an empty string if there is none."""
    low = row.get(f"{name}_low", doc.NAN)
    high = row.get(f"{name}_high", doc.NAN)
    return format_interval(low, high, number_format)


def _overview(checks: CascadeChecks) -> Iterator[doc.Block]:
    """Yield the check results, and a table and a figure of the path of 1,000 samples."""
    first = next(iter(checks.checks), None)
    display = CascadePathDisplay.from_checks(checks, first)
    figure = doc.Figure("cascade-path", display.title, display)
    tables = doc.Box((_results_table(checks), _path_table(checks, first)), "stack")
    yield doc.Box((tables, figure), layout="overview", role="key")


def _path_table(checks: CascadeChecks, check: RuleCheck | None) -> doc.Table:
    """Return a table of the expected counts and costs of 1,000 samples at each stage."""
    name = "the calibration data" if check is None else check.name
    path = checks.path(check, n=_N_PATH)
    has_losses = any(not math.isnan(stage.n_wrong) and stage.n_answered for stage in path)
    has_error_cost = checks.cascade.plan.error_cost > 0 and has_losses
    headers = ["Reach it", "Answered"]
    if has_losses:
        headers.append("Wrong" if checks.is_binary else "Total loss")
    headers += ["Cost each", "Cost"]
    if has_error_cost:
        headers.append("Cost of errors")
    rows = []
    for stage in path:
        cells: list[doc.Cell] = [stage.name]
        cells.append(_path_count(stage.n_reached))
        cells.append(_path_count(stage.n_answered))
        if has_losses:
            cells.append(_path_count(stage.n_wrong))
        cells.append(doc.Number(stage.cost_per_sample, number_format="six_digits"))
        cells.append(doc.Number(stage.cost, number_format="six_digits"))
        if has_error_cost:
            cells.append(_path_count(stage.error_cost))
        rows.append(cells)
    title = f"Path of {format_count(_N_PATH)} samples, {name}"
    return doc.Table(
        (doc.Column("Stage", "name"), *map(doc.number_column, headers)),
        doc.single_group(rows),
        title=title,
        caption=(doc.Span(title, "strong"), " in the unit of the costs"),
        layout="dense",
    )


def _path_count(value: float) -> doc.Number | None:
    if math.isnan(value):
        return None
    if value == 0 or value >= 10:
        return doc.Number(value, display_text=f"{value:,.0f}")
    return doc.Number(value, display_text=f"{value:,.1f}")


def _check_sentences(checks: CascadeChecks) -> list[str]:
    return verdict_sentences(checks.checks) if checks.cascade.attainable else []


def cascade_figures(checks: CascadeChecks) -> list[tuple[str, CascadeDisplay]]:
    """Return the name and the display of the figure, or nothing without calibration data."""
    display = CascadeDisplay.from_checks(checks)
    return [("cascade", display)] if checks.frontier is not None else []


def _blocks(checks: CascadeChecks) -> list[doc.Block]:
    """Return the sections on stages, results, use and terms."""
    stages_blocks: list[doc.Block] = [doc.Prose(text) for text in _guarantee_sentences(checks)]
    stages_blocks.append(_stages_table(checks))
    results_blocks = tuple(_results_blocks(checks))
    figures = [
        doc.Figure(key, display.title, display, _FIGURE_DESCRIPTION, role="key")
        for key, display in cascade_figures(checks)
    ]
    terms = [
        replace(term, source=_SOURCE) if term.title == "Certified" else term
        for term in doc.define_terms(_GLOSSARY, level=format_percent(checks.level))
    ]
    return [
        doc.Section("stages", "Stages", tuple(stages_blocks), role="key"),
        doc.Section("results", "Results on other data", results_blocks, nav_title="Results"),
        *_other_paths(checks),
        *doc.figures_section("Figure", figures),
        doc.Section("use", "Use the cascade", tuple(_usage_blocks(checks.cascade))),
        doc.glossary_section(terms),
    ]


def _other_paths(checks: CascadeChecks) -> Iterator[doc.Section]:
    """Yield a section with a path table for each data set, except the first data set."""
    tables = tuple(_path_table(checks, check) for check in checks.checks[1:_MAX_PATHS])
    if tables:
        yield doc.Section("paths", "Paths on other data", tables, nav_title="Paths")


def _stages_table(checks: CascadeChecks) -> doc.Table:
    """Return a table with the threshold, the cost and the share of answers of each stage."""
    cascade = checks.cascade
    # The person is the last stage and has no threshold.
    costs = [stage.cost for stage in cascade.stages]
    costs.append(cascade.plan.person_cost)
    thresholds = [_format_threshold(stage) for stage in cascade.stages]
    thresholds.append("all others")
    rows = []
    for i, name in enumerate(cascade.names):
        cells: list[doc.Cell] = [
            name,
            thresholds[i],
            doc.Number(costs[i], number_format="six_digits"),
            doc.Number(cascade.answered[i], number_format="four_decimals"),
        ]
        for check in checks.checks:
            stage_check = check.stages[i]
            cells.append(estimate(stage_check.share, stage_check.share_interval))
        rows.append(cells)
    data_names = [check.name or "data" for check in checks.checks]
    headers = ("Threshold", "Cost", "Calibration", *data_names)
    return doc.Table(
        (doc.Column("Stage", "name"), *map(doc.number_column, headers)),
        doc.single_group(rows),
        title="Share of the samples that each stage answers",
        caption="Threshold and cost per sample of each stage, and the share of the samples that it "
        "answers, with confidence intervals.",
        layout="leads",
        role="key",
    )


def _results_blocks(checks: CascadeChecks) -> Iterator[doc.Block]:
    """Yield the explanation of the results, and the risk of each stage by data set."""
    yield doc.Prose(
        "The guarantee applies to data like the calibration data. The table "
        "above shows whether it also holds on other data, which may be shifted.",
        "lead",
    )
    if checks.checks:
        level = format_percent(checks.level)
        note = f"In brackets: {level} confidence intervals. Risk and load are fractions."
        yield doc.Prose(note, "notes", role="summary")
    if all(math.isnan(check.risk) for check in checks.checks):
        return
    rows = []
    for i, name in enumerate(checks.cascade.names):
        stage_checks = [check.stages[i] for check in checks.checks]
        risks = [estimate(check.risk, check.risk_interval) for check in stage_checks]
        rows.append((name, *risks))
    data_columns = [doc.number_column(check.name) for check in checks.checks]
    quantity = "Share of wrong answers" if checks.is_binary else "Mean loss of the answers"
    yield doc.Table(
        (doc.Column("Stage", "name"), *data_columns),
        doc.single_group(rows),
        title="Risk of each stage",
        caption=f"{quantity} of each stage, with confidence intervals.",
        layout="leads",
    )


def _results_table(checks: CascadeChecks) -> doc.Table:
    """Return the results of the cascade, with a row for each data set."""
    plan = checks.cascade.plan
    has_daily_limit = plan.reviews is not None
    columns = [
        doc.Column("Data", "name"),
        doc.number_column(doc.Label("Samples", short_text="n")),
        doc.number_column("Risk"),
        doc.number_column(f"To the {PERSON}"),
        doc.Column("Cost", "number", detail_level="intervals"),
    ]
    if has_daily_limit:
        columns.append(doc.Column("Days over capacity", "number", detail_level="column"))
    joint_note = "Risk and load are checked jointly. " if plan.has_capacity_limit else ""
    return doc.Table(
        (*columns, doc.Column("Result")),
        doc.single_group(
            _results_row(row, has_daily_limit=has_daily_limit) for row in checks.rows()
        ),
        title="Results on other data",
        caption=(
            f"Small print: {format_percent(checks.level)} confidence intervals. {joint_note}Risk "
            "and load are fractions; the cost has the unit of the given costs."
        ),
        layout="dense",
        role="key",
    )


def _results_row(row: dict[str, Any], *, has_daily_limit: bool) -> doc.Row:
    """Return the table row of a data set.

    The row of the calibration data is highlighted.
    """
    cells = [
        row["name"],
        doc.Number(row["n"], number_format="count"),
        row_estimate(row, "risk"),
        row_estimate(row, "reviews"),
        row_estimate(row, "cost", "number"),
    ]
    if has_daily_limit:
        cells.append(row_estimate(row, "days_over"))
    is_calibration = row["verdict"] == "chosen here"
    return doc.Row((*cells, verdict_span(row)), "marked" if is_calibration else "")


def _usage_blocks(cascade: Cascade) -> Iterator[doc.Block]:
    """Yield Python code that applies the cascade, and the cascade as JSON."""
    if cascade.attainable:
        yield doc.Prose(_USAGE_LEAD, "lead")
        names = [re.sub(r"[\W_]", "_", stage.name) for stage in cascade.stages]
        arguments = ", ".join(f"confidence_of_{name}" for name in names)
        yield doc.Code(_USAGE_CODE.format(arguments=arguments))
    else:
        text = f"There are no thresholds, so all samples are forwarded to the {PERSON}."
        yield doc.Prose(text, "lead")
    yield doc.Collapsible("The cascade as JSON", (doc.Code(cascade.to_json()),))


# ----------------------------------------------------------------------------------- sentences
_REMEDIES: Final = (
    "Possible remedies: more calibration data, a larger maximum risk, a larger capacity of the "
    "person, a larger delta, or a confidence score that ranks failures lower."
)


def _answer_sentences(checks: CascadeChecks) -> list[str]:
    """Describe the stages, or the reason why there are no thresholds."""
    cascade, plan = checks.cascade, checks.cascade.plan
    if not cascade.attainable:
        target = _target_clause(plan, binary=checks.is_binary)
        reason = capitalize_first(cascade.reason).rstrip(".")
        unmet = f"no thresholds could be certified to guarantee that {target}"
        return [f"Unattainable: {unmet} (delta {plan.delta:g}).", f"{reason}.", _REMEDIES]
    return [_stages_sentence(cascade)]


def _guarantee_sentences(checks: CascadeChecks) -> list[str]:
    """Describe the guarantee and the expected shares of the samples."""
    cascade, plan = checks.cascade, checks.cascade.plan
    if not cascade.attainable:
        return []
    target = _target_clause(plan, binary=checks.is_binary)
    probability = format_percent(round(1 - plan.delta, 10))
    guarantee = (
        f"Guarantee: {target}, for new data like the calibration data. It holds with a probability "
        f"of at least {probability} over calibration sets."
    )
    shares = []
    for name, share in zip(cascade.names, cascade.answered, strict=True):
        if name == PERSON:
            shares.append(f"{format_share(share)} by the {name}")
        elif share > 0:
            shares.append(f"{format_share(share)} by “{name}”")
    expectation = (
        f"Answers on the {format_count(cascade.n)} calibration samples: {', '.join(shares)}. The "
        f"risk of these answers is {format_number(cascade.risk)}, and the mean cost per sample is "
        f"{format_number(cascade.cost)}."
    )
    return [guarantee, expectation]


def _stages_sentence(cascade: Cascade) -> str:
    """Return a sentence that states which samples each stage answers."""
    clauses: list[str] = []
    for stage in cascade.stages:
        if stage.answers == "none":
            continue
        if stage.answers == "all":
            clauses.append(f"“{stage.name}” answers all {'others' if clauses else 'samples'}")
            continue
        needs_scale = stage.scale != "probability" and stage.scale_description
        units = f" ({stage.scale_description})" if needs_scale else ""
        threshold = f"{_format_threshold(stage)}{units}"
        clause = f"“{stage.name}” answers if its confidence is at least {threshold}"
        clauses.append(f"otherwise, {clause}" if clauses else clause)
    if not any(stage.answers == "all" for stage in cascade.stages):
        clauses.append(f"the {PERSON} answers all others")
    sentence = capitalize_first(f"{'; '.join(clauses)}.")
    unused_names = [stage.name for stage in cascade.stages if stage.answers == "none"]
    if unused_names:
        verb = "is" if len(unused_names) == 1 else "are"
        sentence += f" {join_quoted(unused_names)} {verb} not used, because this costs less."
    return sentence


def _format_threshold(stage: CascadeStage) -> str:
    """Format a threshold with nine digits, so that similar thresholds have different texts."""
    if stage.threshold is None:
        return "answers all" if stage.answers == "all" else "not run"
    return f"{stage.threshold:.9g}"


def _target_clause(plan: CascadePlan, *, binary: bool) -> str:
    """Return a clause with the maximum risk and the maximum share of samples for the person."""
    if binary:
        risk = f"at most {format_percent(plan.max_risk)} of all answers are wrong"
    else:
        risk = f"the mean loss of all answers is at most {format_number(plan.max_risk)}"
    if not plan.has_capacity_limit:
        return risk
    if plan.capacity == 0:
        return f"{risk}, and no sample is forwarded to the {PERSON}"
    # The number is rounded up, so that the sentence does not promise more than the guarantee.
    capacity = format_percent(math.ceil(1e4 * plan.capacity - 1e-6) / 1e4)
    load = f"at most {capacity} of the samples are forwarded to the {PERSON}"
    if plan.reviews is not None and plan.arrivals is not None and plan.overflow is not None:
        load += (
            f" (with {format_count(plan.arrivals)} samples per day, more than "
            f"{format_count(plan.reviews)} on at most {format_percent(plan.overflow)} of the days)"
        )
    return f"{risk}, and {load}"


def _facts(cascade: Cascade) -> Iterator[tuple[str, str]]:
    """Yield the properties of a cascade as pairs of label and value."""
    plan = cascade.plan
    yield "Maximum risk", f"{plan.max_risk:g}, delta {plan.delta:g}"
    capacity = f"{plan.capacity:.4g}" if plan.has_capacity_limit else "no limit"
    yield f"Capacity of the {PERSON}", capacity
    if plan.reviews is not None:
        yield "Per day", f"{plan.reviews} of {plan.arrivals}, more on {plan.overflow:g} of the days"
    rate = "measured" if plan.person_error is None else f"{plan.person_error:g}, assumed"
    yield f"Error rate of the {PERSON}", rate
    costs = [f"{stage.name} {stage.cost:g}" for stage in cascade.stages]
    costs += [f"{PERSON} {plan.person_cost:g}", f"error {plan.error_cost:g}"]
    yield "Costs", ", ".join(costs)
    n_samples = format_count(cascade.n)
    yield "Calibration samples", f"{n_samples}, {format_count(cascade.tested)} of them for testing"


_GLOSSARY: Final = {
    "Cascade": (
        "A sequence of models. The first model whose confidence reaches its threshold answers; a "
        "person answers the remaining samples."
    ),
    "Risk": (
        "The share of wrong answers, including those of the person; for other losses than 0/1, the "
        "mean loss."
    ),
    "Load": "The share of the samples that are forwarded to the person.",
    "Cost": (
        "The mean cost per sample: the cost of each model that is run, of the review by the "
        "person, and of errors if they have a cost."
    ),
    "Delta": (
        "The maximum probability that the guarantee fails. If the cascade is computed repeatedly "
        "from new calibration sets, at most this share of the cascades violates the guarantee."
    ),
    "Certified": (
        "The calibration data are split into two parts. The first part orders candidate thresholds "
        "from the safest to the cheapest. The second part tests them in this order, up to the "
        "first failure. Thresholds that pass the test are certified."
    ),
    "Holds, violated, inconclusive": (
        "All {level} confidence intervals are at or below the target, one is above it, or neither. "
        "Risk and load are checked jointly."
    ),
}
_SOURCE: Final = "Angelopoulos et al. (2021), https://arxiv.org/abs/2110.01052"
