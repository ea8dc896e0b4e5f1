"""The curves of a comparison with their bands, and some of their points."""

from collections.abc import Iterator, Sequence

from abstain.curves.bands import RiskCoverageBand
from abstain.evaluation.comparison import Comparison
from abstain.plots.bands import whole
from abstain.plots.words import sentence
from abstain.report import document as doc
from abstain.report.subjects.comparison.figures import Shown
from abstain.report.subjects.comparison.place import Place
from abstain.report.subjects.comparison.tables import METHOD, ends, numbers
from abstain.report.words import unique

#: Curves shown at first; a reader can show the others that are drawn.
_CURVES = 3

#: Rows of a table of a band for each method; the files of figures have every point.
_POINTS = 10


def curves(shown: Shown) -> Iterator[doc.Section]:
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
    drawn = comparison.with_curves
    if len(drawn) < len(comparison.methods):
        lead += f" {len(drawn)} of {len(comparison.methods)} methods are drawn, the first by rank."
    chips = doc.Choice("method", "Methods in the figures", tuple(_options(comparison)), some=True)
    yield doc.Section(
        "curves",
        "Risk against coverage, with bands",
        (doc.Prose(lead, "lead"), doc.Controls((chips,)), *views),
        nav="Curves",
        only=doc.PAGE,
    )


def _options(comparison: Comparison) -> Iterator[doc.Option]:
    standings = comparison.standings_of(comparison.metrics[0], comparison.data[0])
    first = [s.method for s in standings][:_CURVES] or list(comparison.methods[:_CURVES])
    for name in comparison.with_curves:
        yield doc.line_option(comparison.methods.index(name), name, on=name in first)


def _half(place: Place, kind: str, shown: Shown) -> Iterator[doc.Box]:
    """Yield one kind of curve with some of its points."""
    kept = place.comparison.with_curves
    found = [b for b in place.comparison.bands if b.data == place.data and b.method in kept]
    if not found:
        return
    bands = {band.method: getattr(band, kind) for band in found}
    (figure,) = shown.of(f"{kind}-bands", place, " ".join(_notes(list(bands.values()))))
    risk = (numbers("Coverage"), numbers("Risk"), ends("Pointwise"), ends("Simultaneous"))
    rows = (row for method, band in bands.items() for row in _points(method, band))
    points = doc.Table((METHOD, *risk), doc.rows_of(rows), caption=figure.title, look="points")
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
            doc.Interval(float(band.low[i]), float(band.high[i])),
            doc.Interval(float(band.low_all[i]), float(band.high_all[i])) if speaks[i] else None,
        )


def _notes(bands: Sequence[RiskCoverageBand]) -> list[str]:
    first = max(band.simultaneous_from for band in bands)
    more = [f"The outer band speaks of coverages from {first:.2g} up."] if first else []
    if not any(whole(band).any() for band in bands):
        more = [f"It would speak of coverages from {first:.2g} up only."]
    return [*more, *(f"{sentence(n)}." for n in unique(b.note for b in bands) if n)]
