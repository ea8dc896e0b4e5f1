"""Tables, figures and conclusions of the fine-tuning experiment."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, stdev
from typing import Any

from abstain._foundation.notes import Note
from abstain.metrics.catalogue import CLASSIFIER_METRIC
from abstain_bench.runs.jobs import Outcome
from abstain_bench.studies._sentences import signed
from abstain_bench.studies._tables import Row
from abstain_bench.studies.finetuning import paper
from abstain_bench.studies.finetuning.experiment import BEFORE, ComparedObjective, Experiment
from abstain_bench.studies.finetuning.figure import DifferencesDisplay
from abstain_bench.studies.finetuning.results import (
    MEASURES,
    FinalPredictions,
    ReferenceDifference,
    compare_with_reference,
    evaluate_models,
    values_by_objective,
)

_BEFORE_TITLE = "before fine-tuning"

#: Columns of the table of the objectives: title, loss, metric, factor.
_COLUMNS = (
    ("accuracy_%", "zero_one", CLASSIFIER_METRIC, 100),
    *((m.column, m.loss, m.metric, 1000) for m in MEASURES if m.column),
)


_SELECTION_NOTE = (
    "All objectives start from the same pretrained model of a seed and take the same number of "
    "steps. Settings were selected on validation data, with the same number of settings for each "
    "objective."
)

_INTERVALS_NOTE = (
    "The intervals for new samples hold for the trained models of this run. The intervals for new "
    "samples and seeds also include the variation between the seeds, estimated from few seeds."
)

_COPIES_NOTE = (
    "Each test image is used {} times with different distortions. The intervals treat the copies "
    "of an image as one cluster."
)

_FIGURE_CAPTION = (
    "Thick lines are intervals for new samples, thin lines for new samples and new seeds. "
    "Differences are multiplied by 1000."
)


def summarize_experiment(
    experiment: Experiment,
    predictions: FinalPredictions,
    selected: Mapping[str, int],
    tuning_rows: Sequence[Row],
    outcomes: Sequence[Outcome],
) -> dict[str, Any]:
    """Return the fields of the result: tables, figures, conclusions and notes."""
    titles = {objective.name: objective.title for objective in experiment.objectives}
    titles[BEFORE] = _BEFORE_TITLE
    rows = evaluate_models(predictions)
    paper_tables = paper.tables(experiment, rows, selected)
    copies = experiment.data.test_copies
    differences = compare_with_reference(
        predictions, rows, experiment.reference, clustered=copies > 1
    )
    compared = [difference for difference in differences if difference.objective != BEFORE]
    reference = titles[experiment.reference]
    return {
        "tables": {
            "results": rows,
            "objectives": _objective_rows(rows, titles, experiment, selected),
            "against_reference": [_display_row(d, titles) for d in compared if d.measure.column],
            "differences": [_difference_row(d, titles) for d in differences],
            "tuning": list(tuning_rows),
            "jobs": [_job_row(outcome) for outcome in outcomes],
            **paper_tables,
        },
        "figures": {
            measure.figure: DifferencesDisplay(
                [d for d in compared if d.measure == measure], titles, measure.title, reference
            )
            for measure in MEASURES
            if measure.figure
        },
        "verdict": (
            *_conclusions(compared, titles, reference),
            *paper.conclude_order(experiment, paper_tables.get(paper.TABLE, ())),
        ),
        "notes": (
            *failure_warnings(experiment, {name for name, _ in predictions}, outcomes),
            _SELECTION_NOTE,
            _INTERVALS_NOTE,
            *([_COPIES_NOTE.format(copies)] if copies > 1 else []),
        ),
        "captions": {m.figure: f"{m.title}. {_FIGURE_CAPTION}" for m in MEASURES if m.figure},
        "main_tables": ("objectives", *paper_tables, "against_reference"),
    }


# --------------------------------------------------------------------------------- tables
def _objective_rows(
    rows: Sequence[Row],
    titles: Mapping[str, str],
    experiment: Experiment,
    selected: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return mean and standard deviation over the seeds of each objective."""
    settings = {objective.name: objective.settings for objective in experiment.objectives}
    values_by_column = {
        column: values_by_objective(rows, loss, metric) for column, loss, metric, _ in _COLUMNS
    }
    objective_rows = []
    for name in values_by_column[_COLUMNS[0][0]]:
        objective_row: dict[str, Any] = {"objective": titles[name]}
        for column, _, _, factor in _COLUMNS:
            values = values_by_column[column][name]
            objective_row[column] = factor * fmean(values)
            if len(values) > 1:
                objective_row[f"{column}_deviation"] = factor * stdev(values)
        label = "–" if name == BEFORE else settings[name][selected[name]].label
        objective_rows.append(objective_row | {"setting": label})
    return objective_rows


def _display_row(difference: ReferenceDifference, titles: Mapping[str, str]) -> dict[str, Any]:
    has_seeds = difference.seeds > 1
    return {
        "measure": difference.measure.title,
        "objective": titles[difference.objective],
        "difference": _times_1000(difference.difference),
        "new_samples": _interval_text(difference.difference_low, difference.difference_high),
        "new_samples_and_seeds": _new_seeds_text(difference) if has_seeds else "–",
        "better_in": f"{difference.better_seeds} of {difference.seeds} seeds",
        "result": f"{difference.verdict}{_seed_qualification(difference)}",
    }


def _interval_text(low: float, high: float) -> str:
    if math.isnan(low + high):
        return "undefined"
    return f"{_times_1000(low)} to {_times_1000(high)}"


def _new_seeds_text(difference: ReferenceDifference) -> str:
    return _interval_text(difference.new_seeds_low, difference.new_seeds_high)


def _times_1000(value: float) -> str:
    return signed(1000 * value, "{:+.2f}")


def _difference_row(difference: ReferenceDifference, titles: Mapping[str, str]) -> dict[str, Any]:
    return {
        **asdict(difference),
        "relative": difference.relative,
        "verdict": difference.verdict,
        "title": titles[difference.objective],
    }


def _job_row(outcome: Outcome) -> dict[str, Any]:
    return {
        "job": outcome.job.name,
        "status": outcome.status,
        "seconds": outcome.seconds,
        "error": outcome.error,
    }


# ------------------------------------------------------------------------------ conclusions
def _conclusions(
    differences: Sequence[ReferenceDifference], titles: Mapping[str, str], reference: str
) -> Iterator[str]:
    """Yield the conclusions for each main measure with the 0/1 loss."""
    for measure in MEASURES:
        if measure.column and measure.loss == "zero_one":
            measured = [d for d in differences if d.measure == measure]
            yield from _conclude_measure(measured, titles, reference)


def _conclude_measure(
    differences: Sequence[ReferenceDifference], titles: Mapping[str, str], reference: str
) -> list[str]:
    """Report the objectives that are better, not significantly different, and worse."""
    ascending = sorted(differences, key=lambda d: d.difference)
    lowest = ascending[0]
    measure = lowest.measure.title
    by_verdict = {
        verdict: [d for d in ascending if d.verdict == verdict]
        for verdict in ("better", "inconclusive", "worse")
    }
    if by_verdict["better"]:
        details = "; ".join(_detailed_difference(d, titles) for d in by_verdict["better"])
        conclusions = [f"Significantly lower {measure} than {reference}: {details}."]
        if lowest.seeds == 1:
            conclusions[0] += (
                " With one seed, this compares trained models, not objectives: another seed may "
                "give another order."
            )
    else:
        details = _detailed_difference(lowest, titles)
        conclusion = f"No objective has a significantly lower {measure} than {reference}."
        conclusions = [f"{conclusion} The lowest is {details}."]
    for verdict, start in (
        ("inconclusive", f"{measure} not significantly different from {reference}"),
        ("worse", f"Significantly higher {measure} than {reference}"),
    ):
        if by_verdict[verdict]:
            changes = "; ".join(
                f"{titles[d.objective]} {_relative_change(d)}{_seed_qualification(d)}"
                for d in by_verdict[verdict]
            )
            conclusions.append(f"{start}: {changes}.")
    return conclusions


def _seed_qualification(difference: ReferenceDifference) -> str:
    """Qualify a significant result that may not hold for other seeds."""
    if difference.verdict == "inconclusive":
        return ""
    if difference.seeds == 1:
        return " (of one seed only)"
    return " (of these seeds only)" if difference.is_zero_in_new_seeds_interval else ""


def _detailed_difference(difference: ReferenceDifference, titles: Mapping[str, str]) -> str:
    details = (
        f"times 1000: {_times_1000(difference.difference)}, 95% interval "
        f"{_interval_text(difference.difference_low, difference.difference_high)}"
    )
    if difference.seeds > 1:
        details += f"; with new seeds {_new_seeds_text(difference)}"
        if difference.is_zero_in_new_seeds_interval:
            details += ", which contains 0"
        details += f"; better in {difference.better_seeds} of {difference.seeds} seeds"
    return f"{titles[difference.objective]} {_relative_change(difference)} ({details})"


def _relative_change(difference: ReferenceDifference) -> str:
    if math.isnan(difference.relative):
        return "(the reference is 0)"
    return f"{signed(100 * difference.relative)}%"


# --------------------------------------------------------------------------------- warnings
def failure_warnings(
    experiment: Experiment, complete: Collection[str], outcomes: Sequence[Outcome]
) -> list[Note]:
    """Return a warning for each objective with failed jobs."""
    outcomes_by_objective = {
        objective.name: [outcome for outcome in outcomes if _belongs_to(outcome, objective)]
        for objective in experiment.objectives
    }
    objective_outcomes = {id(o) for group in outcomes_by_objective.values() for o in group}
    shared = [outcome for outcome in outcomes if id(outcome) not in objective_outcomes]
    texts = []
    if any(outcome.status == "failed" for outcome in shared):
        n_skipped = sum(outcome.status == "left out" for outcome in outcomes)
        texts.append(f"{_failure_text('pretrained models', shared)} {n_skipped} jobs are skipped.")
    for objective in experiment.objectives:
        group = outcomes_by_objective[objective.name]
        if objective.name not in complete:
            texts.append(_failure_text(f"{objective.title} is not compared", group))
        elif any(outcome.status == "failed" for outcome in group):
            text = _failure_text(objective.title, group)
            texts.append(f"{text} It is compared without them.")
    return [Note.warning("failed_jobs", text) for text in texts]


def _failure_text(start: str, outcomes: Sequence[Outcome]) -> str:
    """Return the number of failed jobs, and the error of the first one."""
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    unavailable = failed or [outcome for outcome in outcomes if not outcome.is_done]
    reason = f" ({unavailable[0].job.name}: {unavailable[0].error})" if unavailable else ""
    return f"{start}: {len(failed)} of {len(outcomes)} jobs failed{reason}."


def _belongs_to(outcome: Outcome, objective: ComparedObjective) -> bool:
    """Return whether a job trains an objective."""
    name = re.escape(objective.name)
    return bool(re.fullmatch(rf"(tune-{name}-[0-9]+|final-{name})-seed[0-9]+", outcome.job.name))
