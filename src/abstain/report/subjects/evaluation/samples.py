"""Samples worth looking at, and where the silent failures come from."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from abstain.evaluation.records import Contribution, ExtremeSample, ScoreCurves
from abstain.report import document as doc
from abstain.report.pictures import Pictures
from abstain.report.subjects.evaluation.lookup import Pivot
from abstain.report.subjects.evaluation.verdict import leading_score
from abstain.report.words import number, unique
from abstain.tables import split_name

#: Rows of a table of parts.
_SHOWN = 8
#: What a class is to a sample, and how many classes there are to choose from at most.
_ROLES: Final = {"label": "Label", "prediction": "Predicted"}
_MOST: Final = 100

_LEAD = (
    "Confident failures pass any threshold: they are wrong labels, unusual inputs or blind spots. "
    "Unsure successes are what abstaining costs. The parts of classes and groups add up to the "
    "AUGRC; bold where a part is larger than its number of samples explains."
)


@dataclass(frozen=True)
class SampleBrowser:
    """The samples of every score and split, and what they can be chosen by."""

    found: Pivot
    pictures: Pictures

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The classes that samples have, by what they are to them: "label" or "prediction"."""
        samples = [*chain.from_iterable(map(_samples_of, self.found.cases.values()))]
        known = {role: unique(getattr(one, role) for one in samples) for role in _ROLES}
        few = {role: tuple(names) for role, names in known.items() if 1 < len(names) <= _MOST}
        return few if all(known.values()) else {}

    def section(self) -> doc.Section:
        """Return the samples, those of one score shown at a time."""
        blocks: list[doc.Block] = [doc.Prose(_LEAD, "lead")]
        if self.pictures.reason:
            blocks.append(doc.Prose(f"{self.pictures.reason}.", "about"))
        if choices := tuple(self._choices()):
            blocks.append(doc.Controls(choices, role="interactive"))
        blocks += [self._box(case) for case in self.found.cases.values()]
        return doc.Section(
            "samples", "Samples worth looking at", tuple(blocks), nav="Samples", role="interactive"
        )

    def _choices(self) -> Iterator[doc.Choice]:
        found = self.found
        if len(found.scores) > 1:
            leader = found.score_place[leading_score(found, found.splits[0])]
            options = tuple(doc.Option(str(i), name) for i, name in enumerate(found.scores))
            yield doc.Choice("by", "By score", options, chosen=str(leader))
        for role, names in self.names.items():
            options = tuple(doc.Option(str(i), name) for i, name in enumerate(names))
            yield doc.Choice(role, _ROLES[role], (doc.Option("", "all"), *options))

    def _box(self, case: ScoreCurves) -> doc.Box:
        tags = {
            "split": str(self.found.split_place[case.split]),
            "by": str(self.found.score_place[case.score]),
        }
        split = f", {split_name(case.split)}" if self.found.several else ""
        where = f"{case.score}{split}"
        shown = (
            self._table(case.overconfident, f"Most confident failures ({where})"),
            self._table(case.underconfident, f"Least confident successes ({where})"),
            *parts(case, where),
        )
        return doc.Box(shown, "pair", tags)

    def _table(self, samples: tuple[ExtremeSample, ...], caption: str) -> doc.Table:
        seen = any(sample.id in self.pictures.sources for sample in samples)
        named = any(sample.prediction for sample in samples)
        columns = (
            doc.Column("Sample"),
            *((doc.Column("Picture", sort=False),) if seen else ()),
            *((doc.Column("Label"), doc.Column("Predicted")) if named else ()),
            doc.numbers("Confidence"),
            *(() if self.found.evaluation.is_binary else (doc.numbers("Loss"),)),
        )
        rows = [
            doc.Row(tuple(self._cells(one, seen=seen, named=named)), tags=self._tags(one))
            for one in samples
        ]
        return doc.Table(
            columns,
            doc.rows_of(rows),
            caption=caption,
            look="samples",
            sortable=True,
            rest="" if rows else "None.",
        )

    def _tags(self, sample: ExtremeSample) -> dict[str, str]:
        return {role: str(names.index(getattr(sample, role))) for role, names in self.names.items()}

    def _cells(self, sample: ExtremeSample, *, seen: bool, named: bool) -> Iterator[doc.Cell]:
        yield sample.id
        if seen:
            source = self.pictures.sources.get(sample.id, "")
            yield doc.Shot(source, f"The picture {sample.id}", "") if source else None
        if named:
            yield from (sample.label, sample.prediction)
        yield doc.Number(sample.confidence, form="six")
        if not self.found.evaluation.is_binary:
            yield doc.Number(sample.loss)


def _samples_of(case: ScoreCurves) -> tuple[ExtremeSample, ...]:
    return (*case.overconfident, *case.underconfident)


def parts(case: ScoreCurves, where: str) -> Iterator[doc.Table]:
    """Yield a table for the classes and one for the groups, where there are several of them."""
    for kind, found in (("class", case.by_class), ("group", case.by_group)):
        if len(found) > 1 and case.failures:
            yield _parts(kind, found, where)


def _parts(kind: str, found: tuple[Contribution, ...], where: str) -> doc.Table:
    heads = ("Samples", "Share of samples", "Share of AUGRC", "Part of AUGRC")
    more = len(found) - _SHOWN
    return doc.Table(
        (doc.Column(kind.capitalize()), *map(doc.numbers, heads)),
        doc.rows_of(map(_part, found[:_SHOWN])),
        caption=f"AUGRC by {kind}, largest part first ({where})",
        rest=f"and {more} more" if more > 0 else "",
    )


def _part(part: Contribution) -> tuple[doc.Cell, ...]:
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
