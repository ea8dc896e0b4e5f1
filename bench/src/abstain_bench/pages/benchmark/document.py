"""Build the benchmark report as a document that pages and the terminal display."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from abstain._foundation.notes import Note
from abstain.plots.formatting import format_percent
from abstain.report import document as doc
from abstain.report.formatting import (
    build_remarks,
    find_metric,
    format_count,
    format_duration,
    short_title,
)
from abstain.report.glossary import metric_entries
from abstain_bench.pages.benchmark.front import front_blocks, front_curve, verdict_of
from abstain_bench.pages.benchmark.grids import (
    TOP,
    back,
    main_tables,
    metric_heading,
    new_class_tables,
    wide_table,
)
from abstain_bench.pages.benchmark.leaderboard import (
    Grid,
    Leaderboard,
    kind_title,
)
from abstain_bench.pages.benchmark.methods import (
    backbones_section,
    calibration_section,
    methods_section,
    published_section,
    published_summary,
)
from abstain_bench.pages.benchmark.studies import change_figure, corruption_section, studies_section
from abstain_bench.results import BenchmarkResults
from abstain_bench.runs.costs import Cost, CostRow, costs_by_score, costs_by_stage
from abstain_bench.runs.selection import needs_probabilities
from abstain_bench.runs.studies import ERROR_RULES, Study

#: Maximum number of rows of the table of mean ranks in a terminal.
_MAX_ROWS: Final = 8

_LEAD: Final = (
    (
        "A method (row) is a confidence score, which should be low for wrong predictions. A "
        "study (column) is one source of failures. Methods are in the order of their mean ranks. "
        "For each method, a table shows the setting that is best on validation data by the "
        "metric of this table. A darker blue indicates a better rank in the column. The "
    ),
    doc.Span("glossary", link="#glossary"),
    " explains the terms.",
)


def benchmark_document(results: BenchmarkResults, origin: doc.ReportOptions) -> doc.Document:
    """Build the report of a benchmark, including a comparison with other models."""
    board = Leaderboard(results)
    kind = "Benchmark of confidence scores"
    default_title = f"Benchmark on {results.task}" if results.task else kind
    return doc.Document(
        origin.title or default_title,
        (kind,),
        lambda: (
            doc.DeferredBlocks(lambda: _summary(board), role="summary"),
            doc.DeferredBlocks(lambda: _sections(board, origin), role="detail"),
        ),
        answer=tuple(verdict_of(board)),
        facts=(*facts_of(results), ("Source", origin.source)),
        findings=findings_of(results, origin.notes),
        command=origin.command,
    )


def _sections(board: Leaderboard, origin: doc.ReportOptions) -> Iterator[doc.Block]:
    """Yield the sections of a report on a single page, from the overview to the glossary."""
    glance = tuple(front_blocks(board, origin.images))
    yield doc.Section("glance", "At a glance", glance, role="interactive")
    yield from method_sections(board, origin, (studies_section(board, origin.images),))


def method_sections(
    board: Leaderboard, origin: doc.ReportOptions, between: Sequence[doc.Block] = ()
) -> Iterator[doc.Block]:
    """Yield the sections about all methods, with `between` before the method descriptions."""
    results = board.results
    yield _controls(board)
    yield _rankings_section(board)
    yield from published_section(results)
    yield from corruption_section(board)
    yield from _new_classes_section(board)
    yield from between
    yield methods_section(board)
    yield from calibration_section(board)
    yield from backbones_section(board, [Leaderboard(other) for other in origin.other_models])
    yield from costs_section(results.costs)
    yield from _excluded_section(results.left_out)
    yield doc.Section("glossary", "Glossary", (doc.Glossary(tuple(glossary_entries(results))),))


def _controls(board: Leaderboard) -> doc.Controls:
    """Return the page controls that select a metric, display intervals, or jump to a section."""
    headings = (metric_heading(board.grid(metric)) for metric in board.results.comparisons)
    metrics = tuple(doc.Option(str(i), heading) for i, heading in enumerate(headings))
    studies = tuple((board.anchors[study.name], study.title) for study in board.results.headline)
    methods = tuple((board.method_anchor(method), method.name) for method in board.results.methods)
    return doc.Controls(
        (
            doc.Choice("metric", "Metric", metrics),
            doc.Switch("with-intervals", "Intervals"),
            doc.JumpMenu("a study or method", (("Studies", studies), ("Methods", methods))),
        ),
        "Metric, intervals and navigation",
        is_sticky=True,
    )


def _rankings_section(board: Leaderboard) -> doc.Section:
    lead = doc.Prose(_LEAD, "lead")
    change = change_figure(board, None, "change", "Mean ranks over all studies. ")
    blocks = (lead, *main_tables(board), *change, back(TOP))
    return doc.Section("tables", "Rankings", blocks)


def _new_classes_section(board: Leaderboard) -> Iterator[doc.Section]:
    tables = tuple(new_class_tables(board))
    if tables:
        title = "New classes: definitions of a failure"
        yield doc.Section("new-classes", title, (*tables, back(TOP)), nav_title="New classes")


def _excluded_section(reasons: Mapping[str, str]) -> Iterator[doc.Section]:
    entries = tuple(doc.GlossaryEntry(name, reason) for name, reason in reasons.items())
    if entries:
        glossary = doc.Glossary(entries)
        yield doc.Section("left-out", "Excluded methods", (glossary,), nav_title="Excluded")


# -------------------------------------------------------------------------------------- terminal
def _summary(board: Leaderboard) -> Iterator[doc.Block]:
    """Yield the tables, the notes and the curves that are displayed in a terminal."""
    results = board.results
    if board.metrics:
        grid = board.grid(board.metrics[0])
        yield _leaders(grid, board.baseline)
        if board.mean_rank_by_method(grid.metric):
            yield from _overall(board, grid)
        unit = "times 1000" if grid.label.scale > 1 else "fractions"
        alpha = format_percent(round(1 - results.level, 10))
        yield doc.Prose(
            f"Values are {unit}. ≈ and Similar: not significantly different from the best at the "
            f"level {alpha}, adjusted for all pairs of a study.",
            "notes",
        )
    yield from published_summary(results)
    if results.left_out:
        yield doc.Prose(
            f"Excluded methods (reasons in the report): {', '.join(results.left_out)}.", "notes"
        )
    yield from front_curve(board)


def _leaders(grid: Grid, baseline: str) -> doc.Table:
    """Return a table of the best methods, the best value and the baseline value for each study."""
    columns = (
        doc.Column("Study"),
        doc.Column("Best"),
        *map(doc.number_column, ("Value", "Similar", "Baseline")),
    )
    rows = [_leaders_row(grid, study, baseline) for study in grid.studies]
    return doc.Table(columns, doc.single_group(rows), title=metric_heading(grid))


def _leaders_row(grid: Grid, study: Study, baseline: str) -> tuple[doc.Cell, ...]:
    """Return the best methods and value, the number of similar methods and the baseline value."""
    values = {
        name: replace(entry.number, low=doc.NAN, high=doc.NAN)
        for name, entry in grid.column(study).items()
    }
    n_similar: doc.Cell = None
    if grid.is_tested(study):
        similar = grid.methods_with_relation(study, "not told apart")
        n_similar = doc.Number(len(similar), number_format="count")
    best_methods: doc.Cell = None
    best_value: doc.Cell = None
    best = grid.methods_with_relation(study)
    if best:
        best_methods = doc.Span(", ".join(best), "best")
        best_value = replace(values[best[0]], mark="")
    return study.title, best_methods, best_value, n_similar, values.get(baseline)


def _overall(board: Leaderboard, grid: Grid) -> Iterator[doc.Block]:
    """Yield tables of the best mean ranks and of the number of studies that each method wins."""
    means = {metric: board.mean_rank_by_method(metric) for metric in board.metrics}
    relations = {
        method.name: [entry.relation_to_best for entry in grid.row(method) if entry]
        for method in grid.methods
    }
    rows: list[list[doc.Cell]] = []
    for name in means[grid.metric]:
        mean_ranks = [ranks.get(name, doc.NAN) for ranks in means.values()]
        counts = [relations[name].count(relation) for relation in ("best", "not told apart")]
        rows.append(
            [
                name,
                *(doc.Number(rank, number_format="two_decimals") for rank in mean_ranks),
                *(doc.Number(count, number_format="count") for count in counts),
            ]
        )
    headers = [*(f"Rank by {short_title(metric)}" for metric in means), "Best in", "Alike in"]
    yield doc.Table(
        (doc.Column("Method"), *map(doc.number_column, headers)),
        doc.single_group(rows[:_MAX_ROWS]),
        title="Best mean ranks over all studies",
    )
    n_more = len(rows) - _MAX_ROWS
    if n_more > 0:
        yield doc.SeeAlso(f"{format_count(n_more)} more methods ", "in the report", "in the report")


# ----------------------------------------------------------------------- facts, findings, words
#: Packages whose versions the document lists.
_PACKAGES: Final = ("abstain", "torch", "numpy")

#: Facts of the run folder that the document displays unchanged, with their titles.
_DISPLAYED_FACTS: Final = {
    "python": "Python",
    "device": "Device",
    "precision": "Precision of training",
    "dtype": "Stored precision",
}


def facts_of(results: BenchmarkResults) -> tuple[tuple[str, str], ...]:
    """Return the title and the text of each fact; the text is empty if the fact is unknown."""
    facts = results.facts
    arms = dict.fromkeys(method.arm for method in results.methods if method.arm)
    seconds = facts.get("seconds")
    duration = format_duration(seconds) if isinstance(seconds, int | float) and seconds else ""
    return (
        ("Task", results.task),
        ("Model", results.model),
        ("Seeds", _seeds_text(facts.get("seeds") or results.configured("seeds"))),
        ("Training objectives", ", ".join(arms)),
        ("Methods", str(len(results.methods))),
        ("Studies", str(len(results.headline))),
        ("Metrics", ", ".join(short_title(metric) for metric in results.comparisons)),
        ("Training images", _count_text(facts.get("train"))),
        ("Validation images", _count_text(facts.get("validation"))),
        *((title, str(facts.get(name) or "")) for name, title in _DISPLAYED_FACTS.items()),
        ("Versions", _versions_text(facts.get("versions"))),
        ("Time of all jobs", duration),
    )


def _count_text(count: object) -> str:
    return format_count(count) if isinstance(count, int | float) else ""


def _versions_text(versions: object) -> str:
    if not isinstance(versions, Mapping):
        return ""
    return ", ".join(f"{name} {versions[name]}" for name in _PACKAGES if versions.get(name))


def _seeds_text(seeds: object) -> str:
    """Format the number of seeds, followed by the list of seeds in parentheses."""
    if isinstance(seeds, Sequence) and not isinstance(seeds, str):
        # Without the number of seeds, a single seed 0 would look like a count of zero.
        return f"{format_count(len(seeds))} ({', '.join(map(str, seeds))})" if seeds else ""
    return "" if seeds is None else str(seeds)


def findings_of(results: BenchmarkResults, notes: Sequence[str] = ()) -> tuple[doc.Remark, ...]:
    """Return the conclusions, each with the title of its study, followed by the notes."""
    titles = {study.name: study.title for study in results.studies}

    def describe_split(finding: Note) -> str:
        titles_of_split = (titles.get(value, value) for _, value in finding.split)
        return ", ".join(text for text in (finding.score, *titles_of_split) if text)

    return build_remarks(results.findings, notes, describe_split)


_GENERAL_TERMS: Final = {
    "Method": (
        "a confidence score: a number for each image that should be low if the prediction is "
        "wrong. Predictions below a threshold are rejected."
    ),
    "Failure": "a wrong prediction, or any prediction for an image of a new class.",
    "Coverage, selective risk": (
        "the share of images whose prediction is accepted at a threshold, and the share of "
        "failures among these."
    ),
    "Study": "one source of failures and its test images: a column of the tables.",
}

_STUDY_TERMS: Final = {
    "iid": "test images from the distribution of the training images (i.i.d.).",
    "corruption": (
        "the i.i.d. images with noise, blur, fog and similar corruptions; severity 5 is the worst. "
        "Values are means over the severities, as in FD-Shifts; thresholds are applied to the "
        "images of all severities."
    ),
    "sub-class": "images of known classes that look different from the training images.",
    "new-class": (
        "similar images of classes that are not in the training data, mixed with i.i.d. images; "
        "every prediction for a new class is wrong."
    ),
    "far-new-class": "the same with dissimilar images.",
}

#: Key that stands for the titles of all metrics that interpret a confidence as a probability.
_PROBABILITY_METRICS: Final = ""

_TABLE_TERMS: Final = {
    "× 1000": "AURC and AUGRC are multiplied by 1,000 if the header states it, as in papers.",
    _PROBABILITY_METRICS: (
        "computed after Platt scaling on validation data, because most confidences are not "
        "probabilities."
    ),
    "Settings": (
        "for each method, the setting that is best on validation data by the metric of the table. "
        "Rows, and the tables of two metrics, may refer to different networks."
    ),
    "Predictions": (
        "methods with dropout passes or several networks are evaluated with the predictions of the "
        "mean probabilities, all other methods with those of the network. Their failures differ."
    ),
    "Rank": "1 is best; methods with equal values share the mean of their ranks.",
    "†": (
        "not significantly different from the best of its column by the paired test on the same "
        "samples, adjusted for the number of pairs. This does not imply equality."
    ),
    "Interval": "confidence interval of the value on new data, for the same networks.",
    "Errors on known classes": "; ".join(f"“{name}”: {rule}" for name, rule in ERROR_RULES.items())
    + ".",
    "Threshold": (
        "set on validation data by selection with guaranteed risk (SGR) for each network; the "
        "guarantee refers to data from the distribution of the validation data."
    ),
}


def glossary_entries(results: BenchmarkResults) -> Iterator[doc.GlossaryEntry]:
    """Yield the definitions of general terms, metrics and table columns, in this order."""
    for title, meaning in _GENERAL_TERMS.items():
        yield doc.GlossaryEntry(title, meaning)
    kinds = {study.kind for study in results.headline}
    for kind, meaning in _STUDY_TERMS.items():
        if kind in kinds:
            yield doc.GlossaryEntry(kind_title(kind), meaning)
    yield from metric_entries(list(results.comparisons))
    metrics = filter(None, map(find_metric, results.comparisons))
    titles = [short_title(metric.name) for metric in metrics if needs_probabilities(metric)]
    for term, meaning in _TABLE_TERMS.items():
        for title in titles if term == _PROBABILITY_METRICS else [term]:
            yield doc.GlossaryEntry(title, meaning)


# ------------------------------------------------------------------------------------ costs
_COSTS_LEAD: Final = (
    "Sums of the measured seconds of all jobs; parallel jobs need less wall-clock time. Each "
    "process creates the images once, and each network is evaluated once for all scores, so the "
    "time of scores does not include these passes."
)


def costs_section(costs: Sequence[Cost]) -> Iterator[doc.Section]:
    """Yield the section with the durations of stages and scores, unless no job was run."""
    if not costs:
        return
    blocks: list[doc.Block] = [
        doc.Prose(_COSTS_LEAD, "lead"),
        _costs_table("Time by stage", ("Stage", "Part"), costs_by_stage(costs)),
    ]
    scores = costs_by_score(costs)
    if scores:
        title = "Time by score (fitting and computing)"
        blocks.append(doc.Collapsible(title, (_costs_table(title, ("Score",), scores),)))
    yield doc.Section("costs", "Costs", (*blocks, back(TOP)), nav_title="Costs")


def _costs_table(title: str, headers: Sequence[str], rows: Sequence[CostRow]) -> doc.Table:
    """Return a table with the jobs, the duration and the share of the total duration per row."""
    columns = (*map(doc.Column, headers), *map(doc.number_column, ("Jobs", "Seconds", "Share")))
    cells: list[list[doc.Cell]] = [
        [
            *row.labels,
            doc.Number(row.jobs, number_format="count"),
            doc.Number(row.seconds, display_text=f"{row.seconds:.1f}"),
            doc.Number(row.share, display_text=f"{row.share:.1%}"),
        ]
        for row in rows
    ]
    return wide_table(title, columns, cells)
