"""A comparison as a document: what a page, a paper or a terminal says of it."""

from collections.abc import Iterator, Sequence

from abstain.evaluation.comparison import Comparison
from abstain.plots.words import NOT_ADJUSTED, SUPPOSED, checked, metric_title, percent
from abstain.report import document as doc
from abstain.report.findings import remarks
from abstain.report.subjects.comparison.across import (
    metrics_compared,
    over_all,
    ranks,
    stability,
)
from abstain.report.subjects.comparison.brief import brief
from abstain.report.subjects.comparison.curves import curves
from abstain.report.subjects.comparison.figures import Shown
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.report.subjects.comparison.tables import (
    glance_table,
    margin_table,
    pairs_table,
    tested,
    values_table,
)
from abstain.report.subjects.comparison.verdict import comparison_verdict
from abstain.report.subjects.comparison.words import glossary_of
from abstain.report.words import count
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
        lambda: _sections(comparison, data, origin.command),
        lambda: brief(comparison, full=origin.full),
        verdict=tuple(comparison_verdict(comparison)),
        facts=tuple(_facts(comparison, origin.source)),
        findings=remarks(comparison.findings, [*origin.notes, *_left_out(comparison, data)]),
        longest=min(max(map(len, comparison.methods)), _NAME),
    )


def _most_data(comparison: Comparison) -> int:
    """Return how many data sets the page has room for."""
    figures = 3 * len(comparison.metrics) + 5
    pairs = max(len(comparison.pairs) // len(comparison.data), 1)
    return max(min(_FIGURES // figures, _PAIRS // pairs), 1)


def _left_out(comparison: Comparison, data: Sequence[Split]) -> list[str]:
    if len(data) == len(comparison.data):
        return []
    shown = f"{len(data)} of {len(comparison.data)}"
    words = (
        "The first table and what is over all data sets are complete; figures and tables in "
        f"detail are of the first {shown} data sets. `--figures svg` leaves the figures of all."
    )
    return [words]


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
    yield "Test that decides", comparison.judged_by() or "none"
    if comparison.bootstrap:
        seed = "" if comparison.seed is None else f", seed {comparison.seed}"
        yield "Resamples", f"{count(comparison.bootstrap)}{seed}"


# ------------------------------------------------------------------------------------ sections
def _sections(comparison: Comparison, data: Sequence[Split], command: str) -> Iterator[doc.Block]:
    shown = Shown(comparison, data)
    glance = (
        "The best value of each metric, who is not told from it and who is found worse, at the "
        f"level of {percent(comparison.level)}, adjusted for the number of pairs. Arrows "
        "point to where better is."
    )
    leaders = (doc.Prose(glance, "lead"), glance_table(comparison))
    yield doc.Section("glance", "Who leads, and how surely", leaders, nav="Who leads")
    yield from _choices(comparison, data)
    yield _values(shown)
    yield _differences(shown)
    yield _ranks(shown)
    yield from over_all(shown)
    yield from metrics_compared(shown)
    yield from curves(shown)
    yield glossary_of(comparison)
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
        "values", title, (doc.Prose(lead, "lead", only=doc.PAGE), *views), nav="Values"
    )


def _differences(shown: Shown) -> doc.Section:
    lead = (
        "Every pair of methods on the same samples. A blue cell says that the method of its row is "
        "found better than that of its column; a gray one holds the adjusted p-value of a pair "
        "that is not told apart. Not told apart does not mean equal: more samples may find what "
        "these did not."
    )
    views = shown.views(lambda p: [*shown.of("significance", p), *_pairs(p)])
    title = "Which differences are more than chance"
    blocks = (doc.Prose(lead, "lead", only=doc.PAGE), *views)
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
        f"{NOT_ADJUSTED}."
    )
    nothing = doc.Prose("There are no ranks.")
    views = shown.views(lambda p: ranks(p, shown) or [nothing])
    blocks = (doc.Prose(lead, "lead", only=doc.PAGE), *views, *stability(shown.comparison))
    return doc.Section("ranks", "How firm the ranking is", blocks, nav="Ranks")
