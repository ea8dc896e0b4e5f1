"""The document of a cascade and its checks on other data."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from abstain.evaluation.cascade import CascadeChecks
from abstain.plots import CascadeDisplay
from abstain.plots.formatting import check_result_type, format_percent
from abstain.report import document as doc
from abstain.report.formatting import build_remarks
from abstain.report.subjects.cascade.sentences import (
    cascade_sentences,
    facts,
    format_threshold,
    glossary_entries,
)
from abstain.report.subjects.rule.sentences import (
    estimate,
    row_estimate,
    verdict_sentences,
    verdict_span,
)
from abstain.thresholds import StageCheck
from abstain.thresholds.cascade import PERSON, Cascade

DEFAULT_TITLE = "Cascade and its checks"
_MAX_NAME_WIDTH = 26
_FIGURE_DESCRIPTION: Final = (
    "Blue dots are certified cascades, and the diamond is the cheapest of them. Thin lines are the "
    "best thresholds of each model alone; a circle is a model that answers all samples. Squares "
    "are other data."
)


def cascade_document(checks: CascadeChecks, options: doc.ReportOptions) -> doc.Document:
    """Return the document of a cascade and its checks."""
    checks = check_result_type(checks, CascadeChecks, "checks", "check_cascade")
    first_sentence, *further_sentences = (*cascade_sentences(checks), *_check_sentences(checks))
    return doc.Document(
        options.title or DEFAULT_TITLE,
        "Cascade",
        partial(_blocks, checks, options.command),
        verdict=(doc.Span(first_sentence, "strong"), *further_sentences),
        facts=(("Calibration data", options.source), *facts(checks.cascade)),
        findings=build_remarks(checks.notes, options.notes, lambda _: ""),
        is_alarm=not checks.cascade.attainable,
        name_width=min(
            max((len(row["name"]) for row in checks.rows()), default=8), _MAX_NAME_WIDTH
        ),
    )


def _check_sentences(checks: CascadeChecks) -> list[str]:
    return verdict_sentences(checks.checks) if checks.cascade.attainable else []


def cascade_figures(checks: CascadeChecks) -> list[tuple[str, CascadeDisplay]]:
    """Return the name and the display of the figure, if calibration data are available."""
    display = CascadeDisplay.from_checks(checks)
    return [("cascade", display)] if checks.frontier is not None else []


def _blocks(checks: CascadeChecks, command: str) -> list[doc.Block]:
    figures = tuple(
        doc.Figure(key, display.title, display, _FIGURE_DESCRIPTION, role="key")
        for key, display in cascade_figures(checks)
    )
    sentences = (*cascade_sentences(checks), " ".join(_check_sentences(checks)))
    return [
        *doc.summary_paragraphs(sentences, is_alarm=not checks.cascade.attainable),
        doc.Section("stages", "Stages", (_stages_table(checks),)),
        doc.Section(
            "results", "Results on other data", tuple(_results_blocks(checks)), nav_title="Results"
        ),
        *([doc.Section("figures", "Figure", (doc.Box(figures, "figures"),))] * bool(figures)),
        doc.Section("use", "Use the cascade", tuple(_usage_blocks(checks.cascade))),
        doc.Section("glossary", "Glossary", (doc.Glossary(glossary_entries(checks)),)),
        doc.reproduce_section(command),
    ]


def _stages_table(checks: CascadeChecks) -> doc.Table:
    """Return a row for each stage: threshold, cost, and share of answers on each data set."""
    cascade = checks.cascade
    columns = (
        doc.Column("Stage", "name"),
        doc.Column("Threshold", "number"),
        doc.Column("Cost", "number"),
        doc.Column("Calibration", "number"),
        *(doc.Column(check.name or "data", "number") for check in checks.checks),
    )
    costs = [*(stage.cost for stage in cascade.stages), cascade.plan.person_cost]
    thresholds = [*(format_threshold(stage) for stage in cascade.stages), "all others"]
    rows = [
        doc.Row(
            (
                name,
                thresholds[index],
                doc.Number(costs[index], number_format="six_digits"),
                doc.Number(cascade.answered[index], number_format="four_decimals"),
                *(estimate(s.share, s.share_interval) for s in _stage_checks(checks, index)),
            )
        )
        for index, name in enumerate(cascade.names)
    ]
    return doc.Table(
        columns,
        doc.single_group(rows),
        title="Share of the samples that each stage answers",
        caption="Threshold and cost per sample of each stage, and the share of the samples that it "
        "answers, with confidence intervals.",
        layout="leads",
        role="key",
    )


def _stage_checks(checks: CascadeChecks, index: int) -> list[StageCheck]:
    """Return the checks of one stage on all data sets."""
    return [check.stages[index] for check in checks.checks]


def _results_blocks(checks: CascadeChecks) -> Iterator[doc.Block]:
    yield doc.Prose(
        "The guarantee applies to data like the calibration data. The table shows whether it also "
        "holds on other data, which may be shifted.",
        "lead",
    )
    yield _results_table(checks)
    if checks.checks:
        level = format_percent(checks.level)
        note = f"In brackets: {level} confidence intervals. Risk and load are fractions."
        yield doc.Prose(note, "notes", role="summary")
    if not all(math.isnan(check.risk) for check in checks.checks):
        yield _stage_risk_table(checks)


def _stage_risk_table(checks: CascadeChecks) -> doc.Table:
    """Return the risk of each stage on each data set."""
    columns = (
        doc.Column("Stage", "name"),
        *(doc.Column(check.name, "number") for check in checks.checks),
    )
    rows = [
        doc.Row((name, *(estimate(s.risk, s.risk_interval) for s in _stage_checks(checks, index))))
        for index, name in enumerate(checks.cascade.names)
    ]
    quantity = "Share of wrong answers" if checks.is_binary else "Mean loss of the answers"
    return doc.Table(
        columns,
        doc.single_group(rows),
        title="Risk of each stage",
        caption=f"{quantity} of each stage, with confidence intervals.",
        layout="leads",
    )


def _results_table(checks: CascadeChecks) -> doc.Table:
    has_limit = checks.cascade.plan.has_capacity_limit
    columns = (
        doc.Column("Data", "name"),
        doc.Column(doc.Label("Samples", short_text="n"), "number"),
        doc.Column("Risk", "number"),
        doc.Column(f"To the {PERSON}", "number"),
        doc.Column("Cost", "number", detail_level="intervals"),
        *(
            [doc.Column("Days over capacity", "number", detail_level="column")]
            * (_has_daily_limit(checks))
        ),
        doc.Column("Result"),
    )
    joint_note = "Risk and load are checked jointly. " if has_limit else ""
    return doc.Table(
        columns,
        doc.single_group(_row(row, has_days=_has_daily_limit(checks)) for row in checks.rows()),
        title="Results on other data",
        caption=(
            f"Small print: {format_percent(checks.level)} confidence intervals. {joint_note}Risk "
            "and load are fractions; the cost has the unit of the given costs."
        ),
        layout="leads",
        role="key",
    )


def _has_daily_limit(checks: CascadeChecks) -> bool:
    return checks.cascade.plan.reviews is not None


def _row(row: dict[str, Any], *, has_days: bool) -> doc.Row:
    is_calibration = row["verdict"] == "chosen here"
    cells = (
        row["name"],
        doc.Number(row["n"], number_format="count"),
        *(row_estimate(row, name) for name in ("risk", "reviews")),
        row_estimate(row, "cost", "number"),
        *([row_estimate(row, "days_over")] * has_days),
        verdict_span(row),
    )
    return doc.Row(cells, "marked" if is_calibration else "")


def _usage_blocks(cascade: Cascade) -> Iterator[doc.Block]:
    if cascade.attainable:
        names = [stage.name for stage in cascade.stages]
        lines = ["import abstain as ab", "", 'cascade = ab.load("cascade.json")']
        lines += ["# Index in cascade.names of the stage that answers each sample."]
        lines += [f"stage = cascade.decide({', '.join(map(_argument_name, names))})"]
        yield doc.Prose(
            "Run the first model on all samples, and each following model on the remaining "
            "samples. Confidences of samples that an earlier stage answers are not used and can "
            "be NaN.",
            "lead",
        )
        yield doc.Code("\n".join(lines))
    else:
        yield doc.Prose(
            f"There are no thresholds, so all samples are forwarded to the {PERSON}.", "lead"
        )
    yield doc.Collapsible("The cascade as JSON", (doc.Code(cascade.to_json()),))


def _argument_name(name: str) -> str:
    identifier = "".join(letter if letter.isalnum() else "_" for letter in name)
    return f"confidence_of_{identifier}"
