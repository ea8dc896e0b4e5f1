"""An evaluation as a document: its page, what a terminal shows, the tables of a paper."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.curves.risk_coverage import thin
from abstain.evaluation.records import Evaluation, Result, ScoreCurves
from abstain.plots import Series, SeriesDisplay
from abstain.plots.words import percent
from abstain.report import document as doc
from abstain.report.glossary import metric_words, score_words, skipped_words
from abstain.report.pictures import Pictures
from abstain.report.subjects.evaluation import charts, tables
from abstain.report.subjects.evaluation.charts import chart_data
from abstain.report.subjects.evaluation.lookup import Pivot, forms, without
from abstain.report.subjects.evaluation.samples import SampleBrowser
from abstain.report.subjects.evaluation.verdict import verdict
from abstain.report.words import count, first_of, loss_label, remarks, unique
from abstain.tables import split_name

_TITLE: Final = "Selective classification report"

#: Scores that the facts name before the rest is only counted.
_NAMED: Final = 6

#: Scores whose curves a notebook shows.
_DRAWN: Final = 5
_VERTICES: Final = 200

#: Bands of more scores than these hide each other.
_BANDS: Final = 3


def evaluation_document(evaluation: Evaluation, origin: doc.Origin) -> doc.Document:
    """Return the report of an evaluation; its summary is complete if the caller asks for it."""
    found = Pivot(evaluation)
    return doc.Document(
        origin.title or _TITLE,
        "Selective classification report",
        lambda: (
            doc.BlocksOfRole(lambda: _summary(found, is_complete=origin.full), role="summary"),
            doc.BlocksOfRole(lambda: _sections(found, origin), role="detail"),
        ),
        verdict=tuple(verdict(found)),
        facts=tuple(_facts(found, origin.source)),
        findings=remarks(evaluation.notes, origin.notes),
        data=lambda: chart_data(found),
        is_complete=origin.full,
    )


def _facts(found: Pivot, source: str) -> Iterator[tuple[str, str]]:
    # Without curves there are no cases.
    counted: Iterator[Result | ScoreCurves] = chain(
        found.evaluation.results, found.evaluation.curves
    )
    first = next(counted, None)
    yield "Source", source
    # With several splits each has its own count, in the table of numbers.
    if first is not None and not found.several:
        yield "Samples", count(first.n)
        yield "Failures (loss above 0)", count(first.failures)
    yield "Loss", loss_label(found.evaluation.loss)
    yield "Scores", first_of(found.scores, _NAMED)
    if found.several:
        columns = unique(column for split in found.splits for column, _ in split)
        yield "Splits", f"{len(found.splits)}, by {', '.join(columns)}"


def _summary(found: Pivot, *, is_complete: bool) -> Iterator[doc.Block]:
    """Yield the headline metrics with some intervals, or every number, and one curve."""
    asked = bool(found.evaluation.requested_metrics)
    if is_complete or not found.headline or (asked and len(found.headline) < len(found.metrics)):
        yield from tables.spoken(found)
    else:
        yield tables.headline(found, whole=asked)
        yield from tables.spans(found)
    more = "" if is_complete else " --full shows every metric."
    best = "Bold: best score of its split. Arrows: where better is. Values are fractions."
    yield doc.More(best, more, " .frame() has every number.", "notes")
    yield from _curve(found)


def _curve(found: Pivot) -> Iterator[doc.Figure]:
    """Yield the curves of the first scores on the first split."""
    split = found.splits[0] if found.splits else ()
    cases = [case for case in found.evaluation.curves if case.split == split]
    if not cases:
        return
    display = SeriesDisplay(
        tuple(_line(case) for case in cases[:_DRAWN]),
        "Selective risk by coverage",
        "Coverage",
        "Selective risk",
        log_x=False,
    )
    place = f" of {split_name(split)}" if found.several else ""
    left = f"; the first {_DRAWN} of {len(cases)} scores" if len(cases) > _DRAWN else ""
    about = f"Selective risk by coverage{place}: how wrong the accepted are{left}."
    yield doc.Figure("curve", display.title, display, about)


def _line(case: ScoreCurves) -> Series:
    curve = thin(case.selective, vertices=_VERTICES)
    x, y = (np.asarray(to_numpy(v, "curve"), float) for v in (curve.coverage, curve.risk))
    return Series(case.score, tuple(x.tolist()), tuple(y.tolist()))


def _sections(found: Pivot, origin: doc.Origin) -> Iterator[doc.Block]:
    splits = tuple(doc.Option(str(i), split_name(split)) for i, split in enumerate(found.splits))
    lines = tuple(doc.line_option(i, name) for i, name in enumerate(found.scores))
    chosen = (
        *([doc.Choice("split", "Split", splits)] if found.several else []),
        doc.Choice("score", "Scores", lines, some=True),
    )
    yield doc.Controls(chosen, "What the charts and tables show", sticky=True, role="interactive")
    if found.cases:
        yield _curves(found)
    yield doc.Section("numbers", "The numbers", tuple(_numbers(found)), nav="Numbers")
    if any(case.reliability is not None for case in found.evaluation.curves):
        yield _reliability(found)
    if any(case.cwsa is not None for case in found.evaluation.curves):
        yield _cwsa(found)
    if found.cases:
        yield SampleBrowser(found, origin.pictures or Pictures()).section()
    yield doc.Section("glossary", "Glossary", tuple(_glossary(found)))
    yield doc.reproduce(
        origin.command,
        cite="Cite the sources of the metrics you report, listed above, and name this version.",
    )


# ---------------------------------------------------------------------------------------- charts
def _bands(found: Pivot) -> str:
    """Return the level of the bands, or an empty string where no curve has one."""
    bands = [case.band for case in found.evaluation.curves if case.band is not None]
    return next((percent(band.level) for band in bands if np.isfinite(band.low).all()), "")


def _curves(found: Pivot) -> doc.Section:
    bands, zero_one = _bands(found), found.evaluation.is_binary
    said = _RISKS if zero_one else _LOSSES
    pair = tuple(
        doc.Chart(
            kind,
            f"{kind.capitalize()} risk",
            said[kind],
            partial(charts.risk_coverage, found.scores, kind=kind, zero_one=zero_one, level=bands),
            "coverage",
            "risk",
        )
        for kind in ("selective", "generalized")
    )
    option = doc.Controls(
        (doc.Switch("bands", f"Show {bands} bands", on=len(found.scores) <= _BANDS),)
    )
    lead = _CURVES.format(errors="errors" if zero_one else "loss")
    hint = _HINT.format(bands=" and the band of its score" if bands else "")
    return doc.Section(
        "curves",
        "What abstaining buys",
        (
            doc.Prose(lead, "lead"),
            doc.Prose(
                "The charts need JavaScript; the tables below hold the same numbers.", "noscript"
            ),
            *([option] if bands else []),
            doc.Box(pair, "pair"),
            _dial(found, zero_one=zero_one),
            *([doc.Prose(_AREAS, "about")] if bands else []),
            doc.Prose(hint, "hint"),
            *([_points(found, bands)] if bands else []),
        ),
        nav="Curves",
        role="interactive",
    )


def _dial(found: Pivot, *, zero_one: bool) -> doc.Dial:
    groups = any(case.group_curves for case in found.evaluation.curves)
    heads = _WRONG if zero_one else _LOSS
    return doc.Dial("Move the threshold", _DIAL, heads, groups=groups, role="interactive")


def _points(found: Pivot, bands: str) -> doc.Fold:
    """Return the table that the page fills with some points of its curves."""
    split = " and the split" if found.several else ""
    names = ("Coverage", "Selective risk", "Generalized risk")
    table = doc.Table(
        (doc.Column("Score", "name"), *map(doc.numbers, names)),
        (doc.Rows(()),),
        title="Some points of the curves",
        caption=f"The scores{split} chosen above",
        anchor="points",
        look="points",
    )
    about = (
        f"Small, below each risk: its {bands} band at that coverage, then that of the whole curve."
    )
    return doc.Fold(
        "Some points of these curves, with their bands",
        (doc.Prose(about, "about"), table),
        look="scripted",
    )


def _reliability(found: Pivot) -> doc.Section:
    chart = doc.Chart(
        "reliability",
        "Reliability diagram",
        "Share right against mean confidence.",
        partial(charts.reliability, found.scores),
        "confidence",
        "accuracy",
    )
    title = "Does confidence mean what it says?"
    return doc.Section(
        "reliability",
        title,
        (doc.Prose(_RELIABILITY, "lead"), chart),
        nav="Reliability",
        role="interactive",
    )


def _cwsa(found: Pivot) -> doc.Section:
    about = {"CWSA": "Per sample of all.", "CWSA+": "Per accepted sample."}
    pair = tuple(
        doc.Chart(
            key,
            title,
            said,
            partial(charts.metric_coverage, found.scores, title=title),
            "coverage",
            "value",
        )
        for key, (title, said) in zip(("cwsa", "cwsa_plus"), about.items(), strict=True)
    )
    title = "Confidence-weighted selective accuracy"
    return doc.Section(
        "cwsa",
        title,
        (doc.Prose(_CWSA, "lead"), doc.Box(pair, "pair")),
        nav="Confidence-weighted accuracy",
        role="interactive",
    )


# --------------------------------------------------------------------------------------- numbers
def _numbers(found: Pivot) -> Iterator[doc.Block]:
    yield doc.Prose(tuple(_lead(found)), "lead", role="interactive")
    label = "Show AURC and AUGRC × 1000, as the literature prints them"
    yield doc.Controls((doc.Switch("thousand", label),), role="interactive")
    yield doc.Section(
        "headline",
        "At a glance",
        (tables.headline_on_page(found),),
        nav=None,
        level=3,
        role="interactive",
    )
    yield doc.Section(
        "all", "Every number, explained", tuple(tables.every(found)), level=3, role="interactive"
    )
    yield from tables.paper(found.evaluation, None, intervals=True)


def _lead(found: Pivot) -> Iterator[str | doc.Span]:
    yield (
        "All values are fractions between 0 and 1 unless the glossary says otherwise. Arrows point "
        "to where better is. "
    )
    yield doc.Span("Bold", "best")
    yield (
        " is the best of the scores on that split; it does not say that the lead is more than "
        "chance: "
    )
    yield doc.Span("abstain compare", "code")
    yield " does."
    if level := found.level:
        yield (
            f" The small numbers below are the {level} interval: where the value may lie on new "
            "data of the same kind. Two intervals that overlap do not say that two scores are "
            "alike, since both were measured on the same samples."
        )
    if not found.evaluation.is_binary:
        yield (
            " The loss here is not simply right or wrong: where a sentence says how many are "
            "wrong, read the mean loss."
        )


# -------------------------------------------------------------------------------------- glossary
def _glossary(found: Pivot) -> Iterator[doc.Block]:
    level = found.level
    words = {title: said for title, said in _WORDS.items() if level or title != "Interval"}
    yield doc.Glossary(
        tuple(
            doc.Entry(title, said.format(level=level) if isinstance(said, str) else said)
            for title, said in words.items()
        )
    )
    scores = doc.Glossary(score_words(found.scores, found.evaluation.column_scores))
    yield doc.Section("scores", "Scores in this report", (scores,), level=3)
    metrics = metric_words(found.metrics)
    title = f"{len(metrics)} metrics with range, direction and source"
    folded = doc.Fold(title, (doc.Glossary(metrics),))
    yield doc.Section("metrics", "Metrics in this report", (folded,), level=3)
    if level:
        title = "How they were made, and why some numbers have none"
        folded = doc.Fold(title, (doc.Glossary(tuple(_interval_words(found))),))
        yield doc.Section("intervals", "Intervals in this report", (folded,), level=3)
    if found.evaluation.skipped:
        skipped = doc.Glossary(skipped_words(found.evaluation.skipped))
        yield doc.Section("skipped", "Metrics that do not apply to these data", (skipped,), level=3)


def _interval_words(found: Pivot) -> Iterator[doc.Entry]:
    for form, titles in forms(found.evaluation.results).items():
        yield doc.Entry(form[:1].upper() + form[1:], "; ".join(titles))
    if reasons := without(found.evaluation.results):
        yield doc.Entry("No interval", " ".join(f"{r[:1].upper()}{r[1:]}." for r in reasons))


_CURVES: Final = (
    "Sort the samples by confidence and accept only those above a threshold. Further left, fewer "
    "samples are accepted; a useful confidence lets the {errors} fall faster than the coverage. "
    "Lower is better. Small dots are the working points worth choosing: no larger coverage has as "
    "low a selective risk. The dotted line is what a confidence that knows nothing would give."
)
_RISKS: Final = {
    "selective": "How often the accepted answers are wrong.",
    "generalized": (
        "How often, of all samples, an answer is accepted and wrong: a silent failure. The area "
        "below is the AUGRC."
    ),
}
_LOSSES: Final = {
    "selective": "Mean loss of the accepted answers.",
    "generalized": "Loss let through, per sample of all. The area below is the AUGRC.",
}
_AREAS: Final = (
    "The light areas say where the risk may lie on new data of the same kind, at any one coverage "
    "by itself. The dotted edges, drawn when one score is shown alone, are for the whole curve at "
    "once, from a coverage of 5 % or ten accepted samples up. Bands of two scores may overlap "
    "although the scores differ: both were measured on the same samples."
)
_DIAL: Final = (
    "What is accepted and refused at each threshold of the curves. Drag the slider, or use the "
    "arrow keys; the charts show the place."
)
_WRONG: Final = ("Wrong", "Share wrong")
_LOSS: Final = ("Loss", "Mean loss")
_HINT: Final = (
    "Hover or tap for the threshold behind a point{bands}. Drag to pan, hold Ctrl and turn the "
    "wheel to zoom, or use the buttons."
)
_RELIABILITY: Final = (
    "Samples are put in bins of similar confidence. On the dotted diagonal, of the samples with "
    "confidence 0.9 nine in ten are right. Below it the score is overconfident, above it too "
    "modest. Larger dots hold more samples. A score can rank well and still be off the diagonal."
)
_CWSA: Final = (
    "CWSA rewards right answers and punishes wrong ones by how far their confidence exceeds the "
    "threshold. Higher is better. CWSA is averaged over all samples, CWSA+ over the accepted ones, "
    "as in the published tables."
)
_WORDS: Final[dict[str, doc.Text]] = {
    "Confidence": (
        "A number for each sample; higher means more trusted. A ",
        doc.Span("score", "em"),
        " is one way to compute it.",
    ),
    "Coverage": (
        "The share of samples that are accepted, that is, whose confidence reaches the threshold."
    ),
    "Risk": (
        "The mean loss. ",
        doc.Span("Selective", "em"),
        " risk is that of the accepted samples; ",
        doc.Span("generalized", "em"),
        " risk counts what was accepted and wrong among all samples.",
    ),
    "Failure": "A sample with a loss above zero: under 0/1 loss, a wrong answer.",
    "Interval": (
        "Where the value may lie on new data of the same kind: made so that it holds the true "
        "value in {level} of studies like this one. How each was made is listed below the metrics."
    ),
    "Ties": (
        "Samples of equal confidence, which no threshold can tell apart: they are accepted or "
        "rejected together, and the order of rows never matters."
    ),
}
