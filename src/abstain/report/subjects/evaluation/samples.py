"""Samples worth looking at, and where the silent failures come from."""

from collections.abc import Iterator

from abstain.evaluation.records import Case, ExtremeSample, Part
from abstain.report import document as doc
from abstain.report.subjects.evaluation.lookup import Pivot
from abstain.report.subjects.evaluation.verdict import leading_score
from abstain.report.words import number
from abstain.tables import split_name

#: Rows of a table of parts.
_SHOWN = 8

_LEAD = (
    "Confident failures pass any threshold: they are wrong labels, unusual inputs or blind spots. "
    "Unsure successes are what abstaining costs. The parts of classes and groups add up to the "
    "AUGRC; bold where a part is larger than its number of samples explains."
)


def section(found: Pivot) -> doc.Section:
    """Return the samples of every score and split, one of them shown at a time."""
    blocks: list[doc.Block] = [doc.Prose(_LEAD, "lead")]
    if len(found.scores) > 1:
        leader = found.score_place[leading_score(found, found.splits[0])]
        options = tuple(doc.Option(str(i), name) for i, name in enumerate(found.scores))
        choice = doc.Choice("by", "By score", options, chosen=str(leader))
        blocks.append(doc.Controls((choice,), only=doc.PAGE))
    for case in found.cases.values():
        tags = {
            "split": str(found.split_place[case.split]),
            "by": str(found.score_place[case.score]),
        }
        split = f", {split_name(case.split)}" if found.several else ""
        shown = _case(case, f"{case.score}{split}", graded=not found.evaluation.binary)
        blocks.append(doc.Box(tuple(shown), "pair", tags))
    return doc.Section(
        "samples", "Samples worth looking at", tuple(blocks), nav="Samples", only=doc.PAGE
    )


def _case(case: Case, where: str, *, graded: bool) -> Iterator[doc.Table]:
    yield _samples(case.overconfident, f"Most confident failures ({where})", graded)
    yield _samples(case.underconfident, f"Least confident successes ({where})", graded)
    yield from parts(case, where)


def _samples(samples: tuple[ExtremeSample, ...], caption: str, graded: bool) -> doc.Table:
    named = any(sample.prediction for sample in samples)
    columns = (
        doc.Column("Sample"),
        *((doc.Column("Label"), doc.Column("Predicted")) if named else ()),
        doc.numbers("Confidence"),
        *((doc.numbers("Loss"),) if graded else ()),
    )
    rows = [tuple(_cells(sample, named=named, graded=graded)) for sample in samples]
    return doc.Table(columns, doc.rows_of(rows), caption=caption, rest="" if rows else "None.")


def _cells(sample: ExtremeSample, *, named: bool, graded: bool) -> Iterator[doc.Cell]:
    yield sample.id
    if named:
        yield from (sample.label, sample.prediction)
    yield doc.Number(sample.confidence, form="six")
    if graded:
        yield doc.Number(sample.loss)


def parts(case: Case, where: str) -> Iterator[doc.Table]:
    """Yield a table for the classes and one for the groups, where there are several of them."""
    for kind, found in (("class", case.by_class), ("group", case.by_group)):
        if len(found) > 1 and case.failures:
            yield _parts(kind, found, where)


def _parts(kind: str, found: tuple[Part, ...], where: str) -> doc.Table:
    heads = ("Samples", "Share of samples", "Share of AUGRC", "Part of AUGRC")
    more = len(found) - _SHOWN
    return doc.Table(
        (doc.Column(kind.capitalize()), *map(doc.numbers, heads)),
        doc.rows_of(map(_part, found[:_SHOWN])),
        caption=f"AUGRC by {kind}, largest part first ({where})",
        rest=f"and {more} more" if more > 0 else "",
    )


def _part(part: Part) -> tuple[doc.Cell, ...]:
    # Worth a mark: more silent failures than the size of the part explains.
    above = part.share > part.sample_share
    share = doc.Span(number(part.share), "strong") if above else doc.Number(part.share)
    return (
        part.name,
        doc.Number(part.n, form="count"),
        doc.Number(part.sample_share),
        share,
        doc.Number(part.contribution),
    )
