"""A comparison as a document: what a page, a paper or a terminal says of it, and its words."""

from collections.abc import Iterator, Sequence

from abstain.curves.bands import RiskCoverageBand
from abstain.evaluation.comparison import Comparison
from abstain.plots.bands import whole
from abstain.plots.words import SUPPOSED, checked, metric_title, percent, ranks_note, sentence
from abstain.report import document as doc
from abstain.report.glossary import metric_words, score_words
from abstain.report.subjects.comparison.across import metrics_compared, over_all, ranks, stability
from abstain.report.subjects.comparison.figures import Shown, first_curve
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.report.subjects.comparison.summary import summary
from abstain.report.subjects.comparison.tables import (
    glance_table,
    margin_table,
    pairs_table,
    share_of_pairs,
    tested,
    values_table,
)
from abstain.report.subjects.comparison.verdict import comparison_verdict
from abstain.report.words import count, remarks, unique
from abstain.typing import Split

_TITLE = "Comparison of confidence scores"

#: Figures and rows of pairs on one page: beyond these a page is too heavy to open.
_FIGURES, _PAIRS = 90, 4000

#: Letters of a name that a column of a table has room for.
_NAME = 18


def comparison_document(comparison: Comparison, origin: doc.Origin) -> doc.Document:
    """Return what a comparison says."""
    checked(comparison)
    data = comparison.data[: _most_data(comparison)]
    return doc.Document(
        origin.title or _TITLE,
        _TITLE,
        lambda: (
            doc.BlocksOfRole(lambda: summary(comparison, is_complete=origin.full), role="summary"),
            doc.BlocksOfRole(lambda: first_curve(comparison), role="summary"),
            doc.BlocksOfRole(lambda: _sections(comparison, data, origin.command), role="detail"),
        ),
        verdict=tuple(comparison_verdict(comparison)),
        facts=tuple(_facts(comparison, origin.source)),
        findings=remarks(comparison.notes, origin.notes),
        is_complete=origin.full,
        longest=min(max(map(len, comparison.methods)), _NAME),
    )


def _most_data(comparison: Comparison) -> int:
    """Return how many data sets the page has room for."""
    figures = 3 * len(comparison.metrics) + 5
    shown = len(comparison.pairs) * share_of_pairs(len(comparison.methods))
    pairs = max(int(shown) // len(comparison.data), 1)
    return max(min(_FIGURES // figures, _PAIRS // pairs), 1)


def _facts(comparison: Comparison, source: str) -> Iterator[tuple[str, str]]:
    """Yield what was compared by what."""
    sizes = {e.n for e in comparison.estimates}
    yield "Source", source
    if len(sizes) == 1:
        yield "Samples", count(*sizes)
    yield "Methods", str(len(comparison.methods))
    yield "Metrics", ", ".join(map(metric_title, comparison.metrics))
    yield "Data sets", str(len(comparison.data))
    if len(comparison.runs) > 1:
        yield "Runs", str(len(comparison.runs))
    yield "Test that decides", comparison.describe_tests() or "none"
    if comparison.bootstrap:
        seed = "" if comparison.seed is None else f", seed {comparison.seed}"
        yield "Resamples", f"{count(comparison.bootstrap)}{seed}"


# ------------------------------------------------------------------------------------ sections
def _sections(comparison: Comparison, data: Sequence[Split], command: str) -> Iterator[doc.Block]:
    shown = Shown(comparison, data)
    adjusted = ", adjusted for the number of pairs" if comparison.is_adjusted else ""
    glance = (
        "The best value of each metric, who is not told from it and who is found worse, at the "
        f"level of {percent(comparison.level)}{adjusted}. Arrows "
        "point to where better is."
    )
    leaders: list[doc.Block] = [doc.Prose(glance, "lead"), glance_table(comparison)]
    if len(data) < len(comparison.data):
        shares = f"{len(data)} of {len(comparison.data)}"
        note = (
            "This table and the results over all data sets are complete; figures and tables in "
            f"detail are of the first {shares} data sets. `--figures svg` writes all figures."
        )
        leaders.append(doc.Prose(note, "notes"))
    yield doc.Section("glance", "Who leads, and how surely", tuple(leaders), nav="Who leads")
    yield from _choices(comparison, data)
    yield _values(shown)
    yield _differences(shown)
    yield _ranks(shown)
    yield from over_all(shown)
    yield from metrics_compared(shown)
    yield from _curves(shown)
    yield _glossary(comparison)
    cite = (
        "Cite the sources of the metrics you report, listed above, and name this version and the "
        "test."
    )
    yield doc.reproduce(command, cite=cite)


def _choices(comparison: Comparison, data: Sequence[Split]) -> Iterator[doc.Controls]:
    """Yield what to choose: a metric, a data set."""
    first = comparison.metrics[:1]
    options = {
        ("metric", "Metric"): [p.head for p in places_of(comparison, data=data[:1])],
        ("data", "Data"): [p.where or "all samples" for p in places_of(comparison, first, data)],
    }
    choices = [
        doc.Choice(name, label, tuple(doc.Option(str(i), said) for i, said in enumerate(found)))
        for (name, label), found in options.items()
        if len(found) > 1
    ]
    if choices:
        yield doc.Controls(tuple(choices), "What the figures and tables show", sticky=True)


def _values(shown: Shown) -> doc.Section:
    lead = (
        "The diamond is the best value and the dotted line runs through it. Filled dots are not "
        "told from the best by the test of the pairs; hollow dots are found worse. Compare methods "
        "by that test, not by whether their intervals overlap: all were measured on the same "
        "samples."
    )
    views = shown.views(lambda p: [*shown.of("forest", p), values_table(p)])
    title = "Values and their intervals"
    return doc.Section(
        "values", title, (doc.Prose(lead, "lead", role="interactive"), *views), nav="Values"
    )


def _differences(shown: Shown) -> doc.Section:
    p_name = shown.comparison.p_value_label
    lead = (
        "Every pair of methods on the same samples. A blue cell says that the method of its row is "
        f"found better than that of its column; a gray one holds the {p_name}-value of a pair "
        "that is not told apart. Not told apart does not mean equal: more samples may find what "
        "these did not."
    )
    views = shown.views(lambda p: [*shown.of("significance", p), *_pairs(p)])
    title = "Which differences are more than chance"
    blocks = (doc.Prose(lead, "lead", role="interactive"), *views)
    return doc.Section("differences", title, blocks, nav="Differences")


def _pairs(place: Place) -> Iterator[doc.Block]:
    """Yield the pairs by the test that decides; folded, those by others; apart, those by none."""
    found = [(pairs[0], pairs_table(place, pairs)) for pairs in tested(place)]
    valid = [(first.test, table) for first, table in found if first.valid]
    if not valid:
        yield doc.Prose("There is no pair to compare.")
    for i, (test, table) in enumerate(valid):
        yield table if i == 0 else doc.Fold(f"By another test: {test}", (table,))
    if margin := margin_table(place):
        yield margin
    why = (
        " Resamples of one data set are no independent samples: with more of them every p-value "
        "shrinks, whatever the methods. The rows are here so that published ones can be checked."
    )
    warning = (doc.Span("Do not conclude from these p-values.", "strong"), why)
    for first, table in found:
        if not first.valid:
            title = f"As the literature reports it: {first.test} (not a valid test)"
            yield doc.Fold(title, (doc.Prose(warning, "caution"), table), look="caution")


def _ranks(shown: Shown) -> doc.Section:
    lead = (
        "The area of a blob is the share of studies of this size in which the method would get "
        f"that rank, {SUPPOSED}. A ranking is firm where each row is one large blob. The "
        "leader is flattered: a lead that is chance is taken for real here. Ranks and chances are "
        f"{ranks_note(is_adjusted=shown.comparison.is_adjusted)}."
    )
    nothing = doc.Prose("There are no ranks.")
    views = shown.views(lambda p: ranks(p, shown) or [nothing])
    blocks = (doc.Prose(lead, "lead", role="interactive"), *views, *stability(shown.comparison))
    return doc.Section("ranks", "How firm the ranking is", blocks, nav="Ranks")


# -------------------------------------------------------------------------------------- curves
#: Curves shown at first; a reader can show the others that are drawn.
_CURVES = 3

#: Rows of a table of a band for each method; the files of figures have every point.
_POINTS = 10


def _curves(shown: Shown) -> Iterator[doc.Section]:
    """Yield the section of the curves, where there are some."""
    comparison = shown.comparison
    views = []
    for j, split in enumerate(shown.data):
        place = Place(comparison, "", split)
        halves = [half for k in ("selective", "generalized") for half in _half(place, k, shown)]
        if halves:
            views.append(doc.Box(tuple(halves), look="pair", tags={"data": str(j)}))
    if not views:
        return
    lead = (
        "The inner band holds the true risk at any one coverage, the outer one with thin edges the "
        "whole true curve. Bands of two methods may overlap although the methods differ: both "
        "curves were measured on the same samples."
    )
    drawn = comparison.methods_with_curves
    if len(drawn) < len(comparison.methods):
        lead += f" {len(drawn)} of {len(comparison.methods)} methods are drawn, the first by rank."
    chips = doc.Choice("method", "Methods in the figures", tuple(_options(comparison)), some=True)
    yield doc.Section(
        "curves",
        "Risk against coverage, with bands",
        (doc.Prose(lead, "lead"), doc.Controls((chips,)), *views),
        nav="Curves",
        role="interactive",
    )


def _options(comparison: Comparison) -> Iterator[doc.Option]:
    standings = comparison.standings_of(comparison.metrics[0], comparison.data[0])
    first = [s.method for s in standings][:_CURVES] or list(comparison.methods[:_CURVES])
    for name in comparison.methods_with_curves:
        yield doc.line_option(comparison.methods.index(name), name, on=name in first)


def _half(place: Place, kind: str, shown: Shown) -> Iterator[doc.Box]:
    """Yield one kind of curve with some of its points."""
    kept = place.comparison.methods_with_curves
    found = [b for b in place.comparison.bands if b.data == place.data and b.method in kept]
    if not found:
        return
    bands = {band.method: getattr(band, kind) for band in found}
    (figure,) = shown.of(f"{kind}-bands", place, " ".join(_notes(list(bands.values()))))
    risk = (
        doc.numbers("Coverage"),
        doc.numbers("Risk"),
        doc.ends("Pointwise"),
        doc.ends("Simultaneous"),
    )
    rows = (row for method, band in bands.items() for row in _points(method, band))
    points = doc.Table((doc.METHOD, *risk), doc.rows_of(rows), caption=figure.title, look="points")
    yield doc.Box((figure, doc.Fold("Some points of these curves", (points,))))


def _points(method: str, band: RiskCoverageBand) -> Iterator[tuple[doc.Cell, ...]]:
    """Yield a few points of a band, evenly chosen from its grid."""
    speaks = whole(band)
    step = max(len(band.coverage) // _POINTS, 1)
    # From the right: full coverage is the point that everyone looks for.
    for i in reversed(range(len(band.coverage) - 1, -1, -step)):
        yield (
            method,
            doc.Number(float(band.coverage[i])),
            doc.Number(float(band.risk[i])),
            doc.Range(float(band.low[i]), float(band.high[i])),
            doc.Range(float(band.low_all[i]), float(band.high_all[i])) if speaks[i] else None,
        )


def _notes(bands: Sequence[RiskCoverageBand]) -> list[str]:
    first = max(band.simultaneous_from for band in bands)
    more = [f"The outer band speaks of coverages from {first:.2g} up."] if first else []
    if not any(whole(band).any() for band in bands):
        more = [f"It would speak of coverages from {first:.2g} up only."]
    return [*more, *(f"{sentence(n)}." for n in unique(b.note for b in bands) if n)]


# ---------------------------------------------------------------------------------------- words
_WORDS = {
    "Interval": (
        "If the study were repeated with new samples, {level} of such intervals would hold the "
        "true value; two intervals that overlap may still belong to methods that differ, "
        "because both were measured on the same samples."
    ),
    "Difference, ratio": (
        "The value of the first method minus, or over, that of the second on the same samples."
    ),
    "p": (
        "How often chance alone would show a difference at least this large if the two methods "
        "were equally good; it does not say how large or how likely a difference is."
    ),
    "Adjusted p": (
        "The p-value raised for the number of pairs looked at, so that one pair found by chance "
        "among all of them is as rare as one p-value promises; below {alpha:g} a difference "
        "counts as found."
    ),
    "Superiority": (
        "If the values found were the true ones, how many of 100 studies of this size would find "
        "the first method better, ties counted half. A lead that is chance is taken for real here, "
        "so it is no evidence of one: that is p. Over several {blocks} it is the share of them on "
        "which the first is better."
    ),
    "Rank chances": (
        "If the values found were the true ones, how many of 100 studies of this size would give "
        "the method each rank; 1 is best. The leader is flattered: of two equally good methods "
        "the one that happens to lead comes first in more than half. They are "
        "{ranks_note}."
    ),
    "Within the margin": (
        "Shown where a method worse than the reference by the margin or more would rarely come "
        "out like this ({p_name} below {alpha:g}). Not shown does not mean worse."
    ),
    "CD": (
        "Nemenyi's critical difference: methods whose mean ranks over the {blocks} are closer "
        "than this are not told apart (Demsar 2006). It takes the {blocks} as independent."
    ),
    "Friedman": (
        "A test of whether the methods rank differently at all, each of the {blocks}, taken as "
        "independent, ranking them once."
    ),
    "Kendall's tau": ("How alike two rankings are: 1 the same order, 0 unrelated, −1 the reverse."),
    "Pointwise and simultaneous band": (
        "The first holds the true risk at any one coverage, the second the whole true curve at "
        "once, each at the level of {level}."
    ),
}


def _glossary(comparison: Comparison) -> doc.Section:
    """Return the words with their meanings at the level of the comparison."""
    level, alpha = percent(comparison.level), round(1 - comparison.level, 10)
    blocks = comparison.block_kind
    unasked = set() if comparison.mean_ranks else {"CD", "Friedman"}
    unasked |= set() if comparison.non_inferiority else {"Within the margin"}
    unasked |= set() if comparison.is_adjusted else {"Adjusted p"}
    values = {
        "level": level,
        "alpha": alpha,
        "blocks": blocks,
        "p_name": comparison.p_value_label,
        "ranks_note": ranks_note(is_adjusted=comparison.is_adjusted),
    }
    words = [
        doc.Entry(title, said.format(**values))
        for title, said in _WORDS.items()
        if title not in unasked
    ]
    metrics = metric_words(comparison.metrics)
    methods = score_words(comparison.methods)
    title = f"{len(metrics)} metrics and {len(methods)} methods with their sources"
    sources = doc.Section(
        "metrics",
        "Metrics and methods",
        (doc.Fold(title, (doc.Glossary((*metrics, *methods)),)),),
        level=3,
    )
    return doc.Section("glossary", "Glossary", (doc.Glossary(tuple(words)), sources))
