"""All that is said of a benchmark: one document, for a page and for a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from abstain.benchmark.results import BenchmarkResults
from abstain.plots.words import percent
from abstain.report import document as doc
from abstain.report.subjects.benchmark.backbones import backbones_section
from abstain.report.subjects.benchmark.corruption import corruption_section
from abstain.report.subjects.benchmark.facts import facts_of, findings_of, task_of, words_of
from abstain.report.subjects.benchmark.grids import TOP, back, head_of, inlier_tables, main_tables
from abstain.report.subjects.benchmark.leaderboard import Grid, Leaderboard
from abstain.report.subjects.benchmark.methods import calibration_section, methods_section
from abstain.report.subjects.benchmark.pictures import Pictures
from abstain.report.subjects.benchmark.studies import change_figure, studies_section
from abstain.report.subjects.benchmark.verdict import verdict_of
from abstain.report.words import short_title

#: Rows of the table of ranks on a terminal; the files have all of them.
_MOST: Final = 8

_LEAD: Final = (
    (
        "A method (a row) is a confidence score: it should be low where a network is wrong, so "
        "that such answers are not accepted. A study (a column) is one source of failures. Methods "
        "are grouped by how the networks they score were trained; of each the setting is shown "
        "that was best on validation data by the metric of the table. The stronger the blue, the "
        "better the rank in the column. The "
    ),
    doc.Span("glossary", link="#glossary"),
    " explains the words.",
)


def benchmark_document(results: BenchmarkResults, origin: doc.Origin) -> doc.Document:
    """Return all that is said of a benchmark, and of others of the same task with other models."""
    board, others = Leaderboard(results), [Leaderboard(other) for other in origin.beside]
    task = task_of(results)
    first, *verdict = verdict_of(board)
    return doc.Document(
        origin.title or (f"Benchmark on {task}" if task else "Benchmark of confidence scores"),
        "Benchmark of confidence scores",
        lambda: (*_sections(board, origin.pictures, others), doc.reproduce(origin.command)),
        lambda: _brief(board),
        verdict=(doc.Span(first, "strong"), *verdict),
        facts=(*facts_of(results), ("Source", origin.source)),
        findings=findings_of(results, origin.notes),
    )


def _sections(
    board: Leaderboard, pictures: Pictures | None, beside: Sequence[Leaderboard]
) -> Iterator[doc.Block]:
    results = board.results
    yield _controls(board)
    change = change_figure(board, None, "change", "By the mean rank over all studies. ")
    blocks = (*main_tables(board), *change)
    yield doc.Section("tables", "Who leads where", (doc.Prose(_LEAD, "lead"), *blocks, back(TOP)))
    yield from corruption_section(board)
    inliers = tuple(inlier_tables(board))
    if inliers:
        title = "New classes: what counts as a failure"
        yield doc.Section("new-classes", title, (*inliers, back(TOP)), nav="New classes")
    yield studies_section(board, pictures)
    yield methods_section(board)
    yield from calibration_section(board)
    yield from backbones_section(board, beside)
    if results.left_out:
        entries = tuple(doc.Entry(name, why) for name, why in results.left_out.items())
        title = "Methods left out, and why"
        yield doc.Section("left-out", title, (doc.Glossary(entries),), nav="Left out")
    yield doc.Section("glossary", "Glossary", (doc.Glossary(tuple(words_of(results))),))


def _controls(board: Leaderboard) -> doc.Controls:
    heads = (head_of(board.grid(metric)) for metric in board.results.comparisons)
    studies = tuple((board.places[study.name], study.title) for study in board.results.headline)
    methods = tuple((board.place(method), method.name) for method in board.results.methods)
    return doc.Controls(
        (
            doc.Choice(
                "metric", "Metric", tuple(doc.Option(str(i), head) for i, head in enumerate(heads))
            ),
            doc.Switch("with-intervals", "Intervals"),
            doc.Jump("a study or method", (("Studies", studies), ("Methods", methods))),
        ),
        "What the tables show, and where to go",
        sticky=True,
    )


# -------------------------------------------------------------------------------------- terminal
def _brief(board: Leaderboard) -> Iterator[doc.Block]:
    """Return the verdict, the leaders of each study, and the best methods over all studies."""
    results = board.results
    yield from map(doc.Prose, verdict_of(board))
    if board.metrics:
        grid = board.grid(board.metrics[0])
        yield from (doc.Prose(""), _leaders(grid, board.baseline), doc.Prose(""))
        if board.means(grid.metric):
            yield from (_overall(board, grid), doc.Prose(""))
        alpha = percent(round(1 - results.level, 10))
        yield doc.Prose(
            f"Values are {'times 1000' if grid.label.scale > 1 else 'fractions'}; ≈ and Alike: "
            f"cannot be told from the best at {alpha}; the level holds for all pairs of a study "
            "together.",
            "notes",
        )
    if results.left_out:
        yield doc.Prose(f"Left out, see the report: {', '.join(results.left_out)}.", "notes")
    yield from (doc.Prose(""), doc.Findings(findings_of(results)))


def _leaders(grid: Grid, base: str) -> doc.Table:
    """Return one row a study: its leader, who is not told from it, and the baseline."""
    rows: list[tuple[doc.Cell, ...]] = []
    for study in grid.studies:
        best, known = grid.standing(study), grid.column(study)
        plain = {n: replace(entry.number, low=doc.NAN, high=doc.NAN) for n, entry in known.items()}
        alike = doc.Number(len(grid.standing(study, "not told apart")), form="count")
        rows.append(
            (
                study.title,
                doc.Span(", ".join(best), "best") if best else None,
                replace(plain[best[0]], stands="") if best else None,
                alike if grid.is_tested(study) else None,
                plain.get(base),
            )
        )
    columns = (
        doc.Column("Study"),
        doc.Column("Best"),
        *(doc.Column(head, "number") for head in ("Value", "Alike", "Baseline")),
    )
    return doc.Table(columns, doc.rows_of(rows), title=head_of(grid))


def _overall(board: Leaderboard, grid: Grid) -> doc.Table:
    """Return the methods with the best mean ranks, and in how many studies each is best."""
    means = {metric: board.means(metric) for metric in board.metrics}
    stands = {m.name: [entry.stands for entry in grid.row(m) if entry] for m in grid.methods}
    rows: list[tuple[doc.Cell, ...]] = [
        (
            name,
            *(doc.Number(own.get(name, doc.NAN), form="two") for own in means.values()),
            doc.Number(stands[name].count("best"), form="count"),
            doc.Number(stands[name].count("not told apart"), form="count"),
        )
        for name in means[grid.metric]
    ]
    heads = [*(f"Rank by {short_title(metric)}" for metric in means), "Best in", "Alike in"]
    return doc.Table(
        (doc.Column("Method"), *(doc.Column(head, "number") for head in heads)),
        doc.rows_of(rows),
        title="The best mean ranks over all studies",
        most=_MOST,
        more="more methods in the report",
    )
