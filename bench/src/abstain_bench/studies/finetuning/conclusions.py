"""Create the tables, figures and conclusions of a fine-tuning experiment."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from operator import itemgetter
from statistics import fmean, stdev
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from abstain._foundation.notes import Note
from abstain.metrics.catalogue import CLASSIFIER_METRIC
from abstain.plots.drawable import Titled
from abstain.plots.labels import (
    MAX_LABEL_LENGTH,
    draw_rule,
    hide_frame,
    label_width,
    set_tick_labels,
    unique_labels,
)
from abstain.plots.style import INK, LIGHT, MUTED, PAPER
from abstain_bench import published
from abstain_bench.runs.jobs import Outcome
from abstain_bench.studies._area_estimators import loss_title
from abstain_bench.studies._display import Row, signed
from abstain_bench.studies.finetuning.experiment import BEFORE, ComparedObjective, Experiment
from abstain_bench.studies.finetuning.results import (
    MEASURES,
    FinalPredictions,
    ReferenceDifference,
    compare_with_reference,
    evaluate_models,
    values_by_objective,
)

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


#: Names of the networks in table 1 of the paper.
NETWORKS: Final[Mapping[str, str]] = {
    "resnet18-cifar": "ResNet18",
    "resnet34-cifar": "ResNet34",
    "resnet50-cifar": "ResNet50",
    "vgg16-bn": "VGG16BN",
    "vgg19-bn": "VGG19BN",
    "wrn-28-10": "WideResNet28x10",
}

#: Name of the table that compares the run with table 1 of the paper.
TABLE: Final = "table-1"


#: Mapping from columns of this table to the measures of the AURC with both losses.
_AREAS: Final = {
    measure.column.replace("x1000", "x100"): measure
    for measure in MEASURES
    if measure.metric == MEASURES[0].metric and measure.column
}


def compare_with_table_1(
    experiment: Experiment, rows: Sequence[Row], selected: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return a row with the measured and the published AURC for each objective in table 1."""
    cells = [
        cell
        for cell in published.table("population_aurc_table_1")
        if cell["task"] == experiment.data.name
        and cell["classifier"] == NETWORKS.get(experiment.model)
    ]
    comparison = []
    for objective in experiment.objectives:
        if objective.name not in selected:
            continue
        setting = selected[objective.name]
        cell = next((cell for cell in cells if _is_same(objective, setting, cell)), None)
        if cell is not None:
            comparison.append({
                "objective": objective.title,
                **_measured_areas(objective, rows),
                "table_1": float(cell["value"]),
                "table_1_deviation": float(cell["spread"]),
                "doubt": cell["doubt"],
            })  # fmt: skip
    return comparison


def _is_same(objective: ComparedObjective, setting: int, cell: Mapping[str, Any]) -> bool:
    """Return whether a cell of table 1 belongs to an objective."""
    # The block of a cell has the form "name=value;name=value".
    printed_options = dict(option.split("=") for option in cell["block"].split(";") if option)
    options = dict(objective.settings[setting].options)
    return objective.kind == cell["method"] and options == printed_options


def _measured_areas(objective: ComparedObjective, rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean and the SD over seeds of the AURC for both losses."""
    areas = {}
    for column, measure in _AREAS.items():
        values = values_by_objective(rows, measure.loss, measure.metric)[objective.name]
        areas[column] = 100 * fmean(values)
        areas[f"{column}_deviation"] = 100 * stdev(values) if len(values) > 1 else float("nan")
    return areas


def conclude_order(experiment: Experiment, comparison: Sequence[Row]) -> list[str]:
    """Compare the order of the objectives by AURC with the order in the paper."""
    if len(comparison) < 2:
        return []
    orders = [f"table 1 of the paper has {_order_text(comparison, 'table_1')}"]
    orders += [
        f"this run has {_order_text(comparison, column)} ({loss_title(measure.loss)})"
        for column, measure in _AREAS.items()
    ]
    network = NETWORKS[experiment.model]
    return [f"AURC on {experiment.data.name} with {network}: {'; '.join(orders)}."]


def _order_text(comparison: Sequence[Row], column: str) -> str:
    """Sort the titles of the objectives by a column, and join them with "<" or "="."""
    rows = sorted(comparison, key=itemgetter(column))
    text = str(rows[0]["objective"])
    for previous, row in pairwise(rows):
        sign = "=" if previous[column] == row[column] else "<"
        text += f" {sign} {row['objective']}"
    return text


#: Marker styles by verdict. Differences that are not significant have hollow markers.
_MARKERS: dict[str, dict[str, Any]] = {
    "better": {"marker": "D", "color": LIGHT[0], "markerfacecolor": LIGHT[0]},
    "worse": {"marker": "s", "color": LIGHT[1], "markerfacecolor": LIGHT[1]},
    "inconclusive": {"marker": "o", "color": INK, "markerfacecolor": PAPER},
}
_LEGEND = {
    "better": "significantly better",
    "worse": "significantly worse",
    "inconclusive": "not significantly different",
}

#: Maximum number of characters of a title on two lines.
_MAX_TITLE_LENGTH = 2 * MAX_LABEL_LENGTH - 8

#: Distance in inches from the axes to the legend.
_LEGEND_DISTANCE = 0.5


@dataclass(eq=False)
class DifferencesDisplay(Titled):
    """Plot the difference of each objective from the reference, the best objective first.

    Differences are multiplied by 1000. The thick line is the confidence interval for new samples,
    on which the conclusion is based. The thin line is the confidence interval for new samples and
    new seeds. `plot` passes its options to each call of ``Axes.errorbar``.
    """

    #: Differences of one metric and one loss.
    differences: Sequence[ReferenceDifference]
    #: Titles of the objectives by name.
    titles: dict[str, str]
    #: Titles of the metric and of the reference.
    metric: str
    reference: str

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"{self.metric}: difference from {self.reference} with 95% intervals"

    def frame(self) -> "pl.DataFrame":
        """Return a polars dataframe with one row per objective."""
        import polars as pl

        rows = [
            {**asdict(difference), "verdict": difference.verdict}
            for difference in self._sorted_differences()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Plot the differences with axes and legend."""
        rows = self._sorted_differences()
        for y, difference in enumerate(rows):
            draw_rule(axes, [0, 1], [y, y], transform=axes.get_yaxis_transform())
            self._draw_difference(axes, difference, y, kwargs)
        axes.axvline(0, color=MUTED, linewidth=1, zorder=1)
        hide_frame(axes)
        wrapped = self._wrapped_titles()
        tick_labels = [wrapped[self._title_of(difference)] for difference in rows]
        set_tick_labels(axes, "y", tick_labels, range(len(rows)))
        axes.set_ylim(len(rows) - 0.4, -0.6)
        better = "left is better" if rows and rows[0].lower_is_better else "right is better"
        axes.set_xlabel(f"Difference x 1000 ({better})")
        axes.locator_params(axis="x", nbins=7)
        self._draw_legend(axes)

    def _draw_difference(
        self, axes: "Axes", difference: ReferenceDifference, y: int, kwargs: dict[str, Any]
    ) -> None:
        """Plot a marker for the difference, and lines for its defined confidence intervals."""
        style: dict[str, Any] = {
            **_MARKERS[difference.verdict],
            "markersize": 5.5,
            "linestyle": "none",
            "capsize": 0,
            **kwargs,
        }
        x = 1000 * difference.difference
        intervals = {
            0.8: (difference.new_seeds_low, difference.new_seeds_high),
            2.4: (difference.difference_low, difference.difference_high),
        }
        for line_width, (low, high) in intervals.items():
            if not math.isnan(low + high):
                half_widths = [[x - 1000 * low], [1000 * high - x]]
                axes.errorbar([x], [y], xerr=half_widths, linewidth=line_width, **style)
        axes.errorbar([x], [y], **style)

    def _draw_legend(self, axes: "Axes") -> None:
        """Add a legend of the verdicts below the plot."""
        from matplotlib.lines import Line2D

        present = {difference.verdict for difference in self.differences}
        entries = {verdict: text for verdict, text in _LEGEND.items() if verdict in present}
        handles = [
            Line2D([], [], linestyle="none", markersize=6, **_MARKERS[verdict])
            for verdict in entries
        ]
        figure: Any = axes.figure
        height = float(axes.bbox.height / figure.dpi)
        axes.legend(
            handles,
            list(entries.values()),
            ncols=3,
            handletextpad=0.2,
            loc="upper left",
            bbox_to_anchor=(0, -_LEGEND_DISTANCE / height),
            fontsize=9,
            frameon=False,
            labelcolor=INK,
        )

    def _sorted_differences(self) -> list[ReferenceDifference]:
        sign = 1 if self.differences and self.differences[0].lower_is_better else -1
        return sorted(self.differences, key=lambda difference: sign * difference.difference)

    def _title_of(self, difference: ReferenceDifference) -> str:
        return self.titles.get(difference.objective, difference.objective)

    def _wrapped_titles(self) -> dict[str, str]:
        """Map each title to a shortened version with line breaks."""
        titles = [self._title_of(difference) for difference in self.differences]
        shortened = unique_labels(titles, _MAX_TITLE_LENGTH)
        return {title: "\n".join(wrap(text, MAX_LABEL_LENGTH)) for title, text in shortened.items()}

    def _size(self) -> tuple[float, float]:
        lines_by_title = [text.split("\n") for text in self._wrapped_titles().values()]
        title_width = label_width(line for lines in lines_by_title for line in lines)
        max_lines = max(map(len, lines_by_title), default=1)
        row_height = 0.3 if max_lines == 1 else 0.18 * max_lines + 0.06
        return 4.4 + title_width, 1.7 + row_height * len(self.differences)


_BEFORE_TITLE = "before fine-tuning"

#: Columns of the table "objectives", as tuples of title, loss, metric and factor.
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
    """Create tables, figures, conclusions and notes, which are fields of `StudyResult`."""
    titles = {objective.name: objective.title for objective in experiment.objectives}
    titles[BEFORE] = _BEFORE_TITLE
    rows = evaluate_models(predictions)
    printed = compare_with_table_1(experiment, rows, selected)
    paper_tables = {TABLE: printed} if printed else {}
    copies = experiment.data.test_copies
    differences = compare_with_reference(
        predictions, rows, experiment.reference, clustered=copies > 1
    )
    compared = [difference for difference in differences if difference.objective != BEFORE]
    displayed = [difference for difference in compared if difference.measure.column]
    reference = titles[experiment.reference]
    figures = {}
    captions = {}
    for measure in MEASURES:
        if measure.figure:
            plotted = [difference for difference in compared if difference.measure == measure]
            figures[measure.figure] = DifferencesDisplay(plotted, titles, measure.title, reference)
            captions[measure.figure] = f"{measure.title}. {_FIGURE_CAPTION}"
    notes: list[str | Note] = [
        *failure_warnings(experiment, {name for name, _ in predictions}, outcomes),
        _SELECTION_NOTE,
        _INTERVALS_NOTE,
    ]
    if copies > 1:
        notes.append(_COPIES_NOTE.format(copies))
    return {
        "tables": {
            "results": rows,
            "objectives": _objective_rows(rows, titles, experiment, selected),
            "against_reference": [_display_row(difference, titles) for difference in displayed],
            "differences": [_difference_row(difference, titles) for difference in differences],
            "tuning": list(tuning_rows),
            "jobs": [_job_row(outcome) for outcome in outcomes],
            **paper_tables,
        },
        "figures": figures,
        "verdict": (
            *_conclusions(compared, titles, reference),
            *conclude_order(experiment, printed),
        ),
        "notes": tuple(notes),
        "captions": captions,
        "main_tables": ("objectives", *paper_tables, "against_reference"),
    }


# --------------------------------------------------------------------------------- tables
def _objective_rows(
    rows: Sequence[Row],
    titles: Mapping[str, str],
    experiment: Experiment,
    selected: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return a row for each objective, with means and standard deviations over seeds."""
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
    """Convert a difference to a row of the table "against_reference"."""
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
    """Yield conclusions about every displayed metric with the 0/1 loss."""
    for measure in MEASURES:
        if measure.column and measure.loss == "zero_one":
            measured = [difference for difference in differences if difference.measure == measure]
            yield from _conclude_measure(measured, titles, reference)


def _conclude_measure(
    differences: Sequence[ReferenceDifference], titles: Mapping[str, str], reference: str
) -> list[str]:
    """Report which objectives are significantly better, equal or significantly worse."""
    ascending = sorted(differences, key=lambda difference: difference.difference)
    measure = ascending[0].measure.title
    conclusions = [_conclude_best(ascending, titles, reference)]
    starts = {
        "inconclusive": f"{measure} not significantly different from {reference}",
        "worse": f"Significantly higher {measure} than {reference}",
    }
    for verdict, start in starts.items():
        changes = [
            f"{titles[difference.objective]} {_relative_change(difference)}"
            f"{_seed_qualification(difference)}"
            for difference in ascending
            if difference.verdict == verdict
        ]
        if changes:
            conclusions.append(f"{start}: {'; '.join(changes)}.")
    return conclusions


def _conclude_best(
    ascending: Sequence[ReferenceDifference], titles: Mapping[str, str], reference: str
) -> str:
    """Report the objectives that are better than the reference, or else the smallest difference."""
    lowest = ascending[0]
    measure = lowest.measure.title
    better = [
        _detailed_difference(difference, titles)
        for difference in ascending
        if difference.verdict == "better"
    ]
    if not better:
        return (
            f"No objective has a significantly lower {measure} than {reference}. The lowest is "
            f"{_detailed_difference(lowest, titles)}."
        )
    conclusion = f"Significantly lower {measure} than {reference}: {'; '.join(better)}."
    if lowest.seeds > 1:
        return conclusion
    return (
        f"{conclusion} With one seed, this compares trained models, not objectives: another seed "
        "may give another order."
    )


def _seed_qualification(difference: ReferenceDifference) -> str:
    """Return a caveat for significant results that may not hold for new seeds."""
    if difference.verdict == "inconclusive":
        return ""
    if difference.seeds == 1:
        return " (of one seed only)"
    return " (of these seeds only)" if difference.is_zero_in_new_seeds_interval else ""


def _detailed_difference(difference: ReferenceDifference, titles: Mapping[str, str]) -> str:
    """Format a difference, its confidence intervals and the number of seeds with the same sign."""
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
    """Return a warning for each objective whose jobs failed."""
    outcomes_by_objective: dict[str, list[Outcome]] = {
        objective.name: [] for objective in experiment.objectives
    }
    shared = []
    for outcome in outcomes:
        name = _objective_name(outcome, experiment)
        if name is None:
            shared.append(outcome)
        else:
            outcomes_by_objective[name].append(outcome)
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
    """Format the number of failed jobs and the error message of the first."""
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    unavailable = failed or [outcome for outcome in outcomes if not outcome.is_done]
    reason = f" ({unavailable[0].job.name}: {unavailable[0].error})" if unavailable else ""
    return f"{start}: {len(failed)} of {len(outcomes)} jobs failed{reason}."


def _objective_name(outcome: Outcome, experiment: Experiment) -> str | None:
    """Return the objective that a job trains, or None if several objectives share the job."""
    for objective in experiment.objectives:
        name = re.escape(objective.name)
        if re.fullmatch(rf"(tune-{name}-[0-9]+|final-{name})-seed[0-9]+", outcome.job.name):
            return objective.name
    return None
