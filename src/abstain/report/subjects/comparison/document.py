"""Report of a comparison, with its sections, figures and glossary."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from abstain.curves.bands import RiskCoverageBand
from abstain.evaluation.comparison import Comparison
from abstain.plots.bands import has_simultaneous_band
from abstain.plots.formatting import (
    SIMULATION_ASSUMPTION,
    capitalize_first,
    check_comparison,
    format_percent,
    metric_title,
    ranks_note,
)
from abstain.report import document as doc
from abstain.report.formatting import build_remarks, format_count, unique
from abstain.report.glossary import metric_entries, score_entries
from abstain.report.subjects.comparison.figures import DetailView, first_curve_figure
from abstain.report.subjects.comparison.metric_result import (
    MetricResult,
    main_result,
    metric_results,
)
from abstain.report.subjects.comparison.overall import (
    metric_comparison_section,
    overall_section,
    rank_blocks,
    stability_table,
)
from abstain.report.subjects.comparison.overview import Overview, quote
from abstain.report.subjects.comparison.summary import summary_blocks
from abstain.report.subjects.comparison.tables import (
    displayed_share_of_pairs,
    non_inferiority_table,
    overview_table,
    pairs_by_test,
    pairs_table,
    values_table,
)
from abstain.report.subjects.comparison.verdict import comparison_answer, key_numbers
from abstain.typing import Split

#: Maximum number of figures and of rows of pairs on a page, to limit its size.
_MAX_FIGURES, _MAX_PAIRS = 90, 4000

#: Maximum width of a column of names, in characters.
_MAX_NAME_WIDTH = 18

#: Maximum number of methods for which figures with a row per method are not collapsed.
_MAX_OPEN_METHODS = 12


def comparison_document(comparison: Comparison, options: doc.ReportOptions) -> doc.Document:
    """Build the report of a comparison of methods."""
    check_comparison(comparison)
    data = comparison.data[: _max_data_sets(comparison)]
    overview = Overview(main_result(comparison))
    return doc.Document(
        options.title or _title(comparison),
        tuple(_context(comparison, options.source)),
        lambda: (
            doc.DeferredBlocks(
                lambda: summary_blocks(comparison, is_complete=options.full), role="summary"
            ),
            doc.DeferredBlocks(lambda: first_curve_figure(comparison), role="summary"),
            doc.DeferredBlocks(lambda: _sections(comparison, data), role="detail"),
        ),
        answer=tuple(comparison_answer(comparison)),
        key_numbers=tuple(key_numbers(comparison)),
        overview=lambda: (
            doc.DeferredBlocks(lambda: _overview_blocks(comparison, overview), role="detail"),
        ),
        facts=tuple(_facts(comparison, options.source)),
        findings=build_remarks(comparison.notes, options.notes),
        command=options.command,
        citation_advice=_CITATION_ADVICE,
        is_complete=options.full,
        name_width=min(max(map(len, comparison.methods)), _MAX_NAME_WIDTH),
    )


def _title(comparison: Comparison) -> str:
    n_methods = len(comparison.methods)
    if not comparison.reference:
        return f"Comparison of {n_methods} methods"
    plural = "s" if n_methods > 2 else ""
    return f"Comparison: {comparison.reference} against {n_methods - 1} other method{plural}"


def _context(comparison: Comparison, source: str) -> Iterator[str]:
    """Yield the source of the data, and the numbers of data sets, samples and failures."""
    if source:
        yield source
    if len(comparison.data) > 1:
        yield f"{len(comparison.data)} data sets"
    if len(comparison.runs) > 1:
        yield f"{len(comparison.runs)} runs"
    if comparison.estimates:
        n_samples = [estimate.n for estimate in comparison.estimates]
        n_failures = [estimate.failures for estimate in comparison.estimates]
        yield f"{_format_count_range(n_samples)} samples"
        yield f"{_format_count_range(n_failures)} failures"


def _format_count_range(counts: Sequence[float]) -> str:
    """Return a text with the smallest and the largest count, or one number if they are equal."""
    smallest = format_count(min(counts))
    largest = format_count(max(counts))
    return smallest if smallest == largest else f"{smallest} to {largest}"


def _overview_blocks(comparison: Comparison, overview: Overview) -> Iterator[doc.Block]:
    """Yield the main table, and a summary table with a row for each metric and data set."""
    has_several_data_sets = len(comparison.data) > 1
    if has_several_data_sets and not comparison.reference:
        # Tests over a few data sets have low power, so the results of each data set come first.
        yield overview_table(comparison)
        if overview.rows:
            title = f"All methods over {len(comparison.data)} data sets"
            yield doc.Collapsible(title, tuple(overview.blocks(is_complete=True)))
        return
    if overview.rows:
        yield from overview.blocks()
    if len(comparison.metrics) * len(comparison.data) > 1 or not overview.rows:
        yield overview_table(comparison)


def _max_data_sets(comparison: Comparison) -> int:
    """Return the number of data sets with detailed results."""
    n_figures = 3 * len(comparison.metrics) + 5
    n_pairs = len(comparison.pairs) * displayed_share_of_pairs(len(comparison.methods))
    n_pairs_per_data_set = max(int(n_pairs) // len(comparison.data), 1)
    return max(min(_MAX_FIGURES // n_figures, _MAX_PAIRS // n_pairs_per_data_set), 1)


def _facts(comparison: Comparison, source: str) -> Iterator[tuple[str, str]]:
    """Yield the data, methods, metrics and tests of the comparison."""
    sizes = {e.n for e in comparison.estimates}
    yield "Source", source
    if len(sizes) == 1:
        yield "Samples", format_count(*sizes)
    yield "Methods", str(len(comparison.methods))
    yield "Metrics", ", ".join(map(metric_title, comparison.metrics))
    yield "Data sets", str(len(comparison.data))
    if len(comparison.runs) > 1:
        yield "Runs", str(len(comparison.runs))
    yield "Deciding test", comparison.describe_tests() or "none"
    if comparison.bootstrap:
        seed = "" if comparison.seed is None else f", seed {comparison.seed}"
        yield "Resamples", f"{format_count(comparison.bootstrap)}{seed}"


# ------------------------------------------------------------------------------------ sections
def _sections(comparison: Comparison, data: Sequence[Split]) -> Iterator[doc.Block]:
    """Yield the sections on differences, values, ranks, metrics, curves and terms."""
    view = DetailView(comparison, data)
    if len(data) < len(comparison.data):
        note = (
            "The table above and the results over all data sets are complete. The other figures "
            f"and tables contain the first {len(data)} of {len(comparison.data)} data sets. "
            "`--figures svg` writes all figures."
        )
        yield doc.Prose(note, "notes")
    yield from _selection_controls(comparison, data)
    yield _detail_section(
        "differences",
        "Differences of all pairs",
        "Differences",
        _DIFFERENCES_LEAD + _reference_note(comparison),
        view.boxes(lambda result: _difference_blocks(result, view)),
    )
    yield _detail_section(
        "values",
        "Values and intervals",
        "Values",
        _VALUES_LEAD,
        view.boxes(lambda result: _value_blocks(result, view)),
    )
    yield _detail_section(
        "ranks",
        "Rank probabilities",
        "Ranks",
        _RANKS_LEAD.format(ranks_note=ranks_note(is_adjusted=comparison.is_adjusted)),
        _rank_section_blocks(view),
    )
    yield from overall_section(view)
    yield from metric_comparison_section(view)
    yield from _curves_section(view)
    yield _glossary_section(comparison)


def _difference_blocks(result: MetricResult, view: DetailView) -> Iterator[doc.Block]:
    """Yield the significance map and the tables of all pairs."""
    yield from view.figures("significance", result)
    yield from _pair_blocks(result)


def _rank_section_blocks(view: DetailView) -> list[doc.Block]:
    """Return the rank probabilities, which are collapsed if there are many methods."""
    no_ranks = doc.Prose("There are no ranks.")
    blocks: list[doc.Block] = list(
        view.boxes(lambda result: rank_blocks(result, view) or [no_ranks])
    )
    blocks += stability_table(view.comparison)
    if len(view.comparison.methods) > _MAX_OPEN_METHODS:
        return [_collapse(blocks, "Figure and table of the rank probabilities")]
    return blocks


def _value_blocks(result: MetricResult, view: DetailView) -> Iterator[doc.Block]:
    """Yield the forest plot and the table of values, which is collapsed if it is long."""
    figures = view.figures("forest", result)
    table = values_table(result)
    if len(result.comparison.methods) > _MAX_OPEN_METHODS:
        yield _collapse((*figures, table), "Figure and table of all values")
    else:
        yield from figures
        yield _collapse((table,), "Table of all values, differences and ranks")


def _collapse(blocks: Iterable[doc.Block], summary: str) -> doc.Collapsible:
    return doc.Collapsible(summary, tuple(blocks))


def _detail_section(
    anchor: str, title: str, nav_title: str, lead: str, blocks: Iterable[doc.Block]
) -> doc.Section:
    """Return a section for HTML pages, which begins with an explanation of the figures."""
    lead_block = doc.Prose(lead, "lead", role="interactive")
    return doc.Section(anchor, title, (lead_block, *blocks), nav_title=nav_title)


_CITATION_ADVICE: Final = (
    "If you publish these results, cite the sources of the metrics listed above, and state this "
    "version and the test."
)
_VALUES_LEAD: Final = (
    "The diamond and the dotted line mark the best value. Methods with filled dots are not "
    "significantly different from the best method by the tests of all pairs; methods with hollow "
    "dots are significantly worse. Overlapping intervals do not imply that a difference is not "
    "significant, because all methods were evaluated on the same samples."
)
_DIFFERENCES_LEAD: Final = (
    "Paired tests of all pairs of methods on the same samples, adjusted for the number of pairs. A "
    "difference that is not significant can still exist: with more samples, it may become "
    "significant."
)
_RANKS_LEAD: Final = (
    "The area of a circle is the probability that a method has this rank in a study of this size, "
    f"{SIMULATION_ASSUMPTION}. The probabilities are optimistic for the best method, because a "
    "difference that is due to chance is treated as real: use the tests and the rank intervals to "
    "decide. The probabilities are {ranks_note}."
)


def _reference_note(comparison: Comparison) -> str:
    """Explain why p-values of pairs differ from those of the tests against a reference."""
    if not (comparison.reference and comparison.is_adjusted):
        return ""
    return (
        f" The first table adjusts only for the comparisons with {quote(comparison.reference)}, so "
        "its p-values are smaller than those of the same pairs in this section."
    )


def _selection_controls(comparison: Comparison, data: Sequence[Split]) -> Iterator[doc.Controls]:
    """Yield the menus to select a metric and a data set."""
    results = list(metric_results(comparison, data=data))
    metrics = [result.title_with_arrow for result in results[:: len(data)]]
    data_sets = [result.data_name or "all samples" for result in results[: len(data)]]
    choices = []
    if len(metrics) > 1:
        choices.append(doc.Choice("metric", "Metric", _numbered_options(metrics)))
    if len(data_sets) > 1:
        choices.append(doc.Choice("data", "Data", _numbered_options(data_sets)))
    if choices:
        yield doc.Controls(tuple(choices), "Selection for figures and tables", is_sticky=True)


def _numbered_options(labels: Sequence[str]) -> tuple[doc.Option, ...]:
    return tuple(doc.Option(str(i), label) for i, label in enumerate(labels))


def _pair_blocks(result: MetricResult) -> Iterator[doc.Block]:
    """Yield tables of pairs for the main test, for other valid tests and for invalid tests."""
    tables = [(pairs[0], pairs_table(result, pairs)) for pairs in pairs_by_test(result)]
    valid_tables = [(pair.test, table) for pair, table in tables if pair.valid]
    if not valid_tables:
        yield doc.Prose("There are no pairs of methods.")
    for i, (test, table) in enumerate(valid_tables):
        title = f"Additional test: {test}" if i else f"Table of {len(table.rows)} pairs: {test}"
        yield doc.Collapsible(title, (table,))
    non_inferiority = non_inferiority_table(result)
    if non_inferiority is not None:
        yield non_inferiority
    reason = (
        " Resamples of one data set are not independent samples, so every p-value decreases with "
        "the number of resamples. The table is for comparison with published p-values only."
    )
    warning = (doc.Span("These p-values are not valid.", "strong"), reason)
    for pair, table in tables:
        if not pair.valid:
            title = f"Test from the literature: {pair.test} (not valid)"
            yield doc.Collapsible(title, (doc.Prose(warning, "caution"), table), style="caution")


# -------------------------------------------------------------------------------------- curves
#: Number of curves that are visible initially.
_N_INITIAL_CURVES = 3

#: Approximate number of points per curve in the table. The figure files contain all points.
_MAX_POINTS = 10


def _curves_section(view: DetailView) -> Iterator[doc.Section]:
    """Yield the section with the risk-coverage curves if the comparison contains curves."""
    comparison = view.comparison
    boxes = []
    for i, split in enumerate(view.data):
        result = MetricResult(comparison, "", split)
        selective = _curve_boxes(result, "selective", view)
        generalized = _curve_boxes(result, "generalized", view)
        curve_boxes = (*selective, *generalized)
        if curve_boxes:
            boxes.append(doc.Box(curve_boxes, layout="pair", tags={"data": str(i)}))
    if not boxes:
        return
    lead = (
        "The inner band is a pointwise confidence band. The outer band, with thin edges, is a "
        "simultaneous confidence band for the complete curve. Bands of two methods can overlap "
        "although their difference is significant, because both curves were measured on the same "
        "samples."
    )
    methods = comparison.methods_with_curves
    if len(methods) < len(comparison.methods):
        lead += (
            f" The figures contain the {len(methods)} best of {len(comparison.methods)} methods."
        )
    standings = comparison.standings_of(comparison.metrics[0], comparison.data[0])
    best_first = [standing.method for standing in standings] or comparison.methods
    selected = best_first[:_N_INITIAL_CURVES]
    options = [
        doc.line_option(comparison.methods.index(name), name, is_selected=name in selected)
        for name in methods
    ]
    choice = doc.Choice("method", "Methods in the figures", tuple(options), is_multiple=True)
    yield doc.Section(
        "curves",
        "Risk-coverage curves with confidence bands",
        (doc.Prose(lead, "lead"), doc.Controls((choice,)), *boxes),
        nav_title="Curves",
        role="interactive",
    )


def _curve_boxes(result: MetricResult, kind: str, view: DetailView) -> Iterator[doc.Box]:
    """Yield the figure of one kind of risk, and a table with some points of the curves."""
    comparison = result.comparison
    bands: dict[str, RiskCoverageBand] = {}
    for method_bands in comparison.bands:
        method = method_bands.method
        if method_bands.data == result.data and method in comparison.methods_with_curves:
            bands[method] = getattr(method_bands, kind)
    if not bands:
        return
    (figure,) = view.figures(f"{kind}-bands", result, _band_notes(list(bands.values())))
    columns = (
        doc.METHOD_COLUMN,
        doc.number_column("Coverage"),
        doc.number_column("Risk"),
        doc.interval_column("Pointwise"),
        doc.interval_column("Simultaneous"),
    )
    rows: list[tuple[doc.Cell, ...]] = []
    for method, band in bands.items():
        rows += _band_rows(method, band)
    table = doc.Table(columns, doc.single_group(rows), caption=figure.title, layout="points")
    yield doc.Box((figure, doc.Collapsible("Table of some points", (table,))))


def _band_rows(method: str, band: RiskCoverageBand) -> Iterator[tuple[doc.Cell, ...]]:
    """Yield a few evenly spaced points of a risk-coverage band as rows of a table."""
    has_simultaneous = has_simultaneous_band(band)
    n_points = len(band.coverage)
    step = max(n_points // _MAX_POINTS, 1)
    # The last point is at full coverage, which the table must contain.
    first = (n_points - 1) % step
    for i in range(first, n_points, step):
        simultaneous = None
        if has_simultaneous[i]:
            simultaneous = doc.Range(float(band.low_all[i]), float(band.high_all[i]))
        yield (
            method,
            doc.Number(float(band.coverage[i])),
            doc.Number(float(band.risk[i])),
            doc.Range(float(band.low[i]), float(band.high[i])),
            simultaneous,
        )


def _band_notes(bands: Sequence[RiskCoverageBand]) -> str:
    """Return the notes on the coverage at which the simultaneous bands start."""
    min_coverage = max(band.simultaneous_from for band in bands)
    notes = []
    if not any(has_simultaneous_band(band).any() for band in bands):
        notes.append(f"A simultaneous band needs a coverage of at least {min_coverage:.2g}.")
    elif min_coverage:
        notes.append(f"The simultaneous band starts at a coverage of {min_coverage:.2g}.")
    notes += [f"{capitalize_first(note)}." for note in unique(b.note for b in bands) if note]
    return " ".join(notes)


# ------------------------------------------------------------------------------------- glossary
_GLOSSARY = {
    "Confidence interval": (
        "If the study is repeated with new samples, {level} of such intervals contain the true "
        "value. Intervals of two methods can overlap although their difference is significant, "
        "because both methods were evaluated on the same samples."
    ),
    "Difference, ratio": (
        "The value of the first method minus the value of the second method on the same samples, "
        "or divided by it."
    ),
    "p": (
        "The p-value: the probability of a difference at least this large if the two methods are "
        "equally good. It measures neither the size nor the probability of a difference."
    ),
    "Adjusted p": (
        "The p-value adjusted for multiple comparisons: if all methods are equally good, the "
        "probability that any pair has an adjusted p-value below {alpha:g} is at most {alpha:g}. A "
        "difference is significant if its adjusted p-value is below {alpha:g}."
    ),
    "Rank probabilities": (
        "The number of 100 simulated studies of this size in which a method has each rank (1 is "
        "the best), if the estimates were the true values. The numbers are optimistic for the best "
        "method: if two methods are equally good, the one with the better estimate ranks first in "
        "more than half of the studies. They are {ranks_note}."
    ),
    "Rank interval": (
        "The ranks that the significant differences do not exclude: from 1 plus the number of "
        "significantly better methods to the number of methods minus the number of significantly "
        "worse ones. If all methods are equally good, it contains all ranks."
    ),
    "Within the margin": (
        "Shown if the test rejects the hypothesis that the method is worse than the reference by "
        "the margin or more ({p_name} below {alpha:g}). Not shown does not mean that the method is "
        "worse."
    ),
    "CD": (
        "Nemenyi's critical difference: methods whose mean ranks over the {blocks} differ by less "
        "are not significantly different (Demsar 2006). It assumes independent {blocks}."
    ),
    "Friedman test": (
        "A test of the hypothesis that all methods have the same mean rank. It ranks the methods "
        "on each of the {blocks} and assumes independent {blocks}."
    ),
    "Kendall's tau": (
        "The similarity of two rankings: 1 for the same order, 0 for unrelated orders, −1 for the "
        "reverse order."
    ),
    "Pointwise and simultaneous band": (
        "With a probability of {level}, a pointwise band contains the true risk at a given "
        "coverage, and a simultaneous band contains the complete true curve."
    ),
}


def _glossary_section(comparison: Comparison) -> doc.Section:
    """Return the definitions of the terms in the report of a comparison."""
    meanings = dict(_GLOSSARY)
    if not comparison.mean_ranks:
        del meanings["CD"], meanings["Friedman test"]
    if not (comparison.agreements or comparison.stability):
        del meanings["Kendall's tau"]
    if not comparison.non_inferiority:
        del meanings["Within the margin"]
    if not comparison.is_adjusted:
        del meanings["Adjusted p"]
    terms = doc.define_terms(
        meanings,
        level=format_percent(comparison.level),
        alpha=round(1 - comparison.level, 10),
        blocks=comparison.block_kind,
        p_name=comparison.p_value_label,
        ranks_note=ranks_note(is_adjusted=comparison.is_adjusted),
    )
    metrics = metric_entries(comparison.metrics)
    methods = score_entries(comparison.methods)
    title = f"Metrics ({len(metrics)}) and methods ({len(methods)}) with their sources"
    sources = doc.Collapsible(title, (doc.Glossary((*metrics, *methods)),))
    definitions = doc.Collapsible(f"Terms ({len(terms)})", (doc.Glossary(terms),))
    return doc.Section("glossary", "Glossary", (definitions, sources))
