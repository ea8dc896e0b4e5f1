"""Report sections on extreme samples and on contributions of classes and groups to the AUGRC."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from abstain.evaluation.records import Contribution, ExtremeSample, ScoreCurves
from abstain.report import document as doc
from abstain.report.formatting import format_fixed, format_number, unique
from abstain.report.images import SampleImages
from abstain.report.subjects.evaluation.lookup import ResultLookup
from abstain.report.subjects.evaluation.verdict import find_best_score
from abstain.tables import split_name

#: Maximum number of samples of a page, and minimum number for each score and kind.
_MAX_PAGE_SAMPLES: Final = 200
_MIN_SAMPLES: Final = 4
#: Maximum number of rows of a table of contributions.
_MAX_ROWS = 8
#: Class roles of a sample with their labels, and the maximum number of classes in a menu.
_ROLES: Final = {"label": "Label", "prediction": "Predicted"}
_MAX_CLASSES: Final = 100

_LEAD = (
    "Confident failures are accepted at most thresholds. Typical causes are wrong labels, unusual "
    "inputs and systematic errors of the model. Successes with a low confidence are the first "
    "correct answers that abstention rejects. The contributions of all classes or groups add up to "
    "the AUGRC. A share of the AUGRC is bold if it is larger than the share of the samples. With "
    "several scores or splits, fewer samples of each are shown."
)


@dataclass(frozen=True)
class SampleBrowser:
    """Section with the extreme samples of each score and split.

    Menus select the split, the score and the classes.
    """

    lookup: ResultLookup
    images: SampleImages

    @cached_property
    def class_names(self) -> dict[str, tuple[str, ...]]:
        """Classes of the samples for the menus, by the role "label" or "prediction"."""
        samples: list[ExtremeSample] = []
        for case in self.lookup.cases.values():
            samples += case.overconfident
            samples += case.underconfident
        names_by_role = {}
        for role in _ROLES:
            names = unique(getattr(sample, role) for sample in samples)
            if 1 < len(names) <= _MAX_CLASSES:
                names_by_role[role] = tuple(names)
        return names_by_role

    def section(self) -> doc.Section:
        """Return the section with the extreme samples.

        Initially, the samples of one score are visible.
        """
        blocks: list[doc.Block] = [doc.Prose(_LEAD, "lead")]
        if self.images.reason:
            blocks.append(doc.Prose(f"{self.images.reason}.", "about"))
        choices = tuple(self._choices())
        if choices:
            blocks.append(doc.Controls(choices, role="interactive"))
        blocks += [self._box(case) for case in self.lookup.cases.values()]
        if len(self.lookup.scores) > 1:
            blocks += self._contributions()
        return doc.Section(
            "samples",
            "Extreme samples",
            tuple(blocks),
            nav_title="Samples",
            role="interactive",
        )

    def _choices(self) -> Iterator[doc.Choice]:
        """Yield the menus for the split, the score and the classes of the samples."""
        lookup = self.lookup
        if lookup.has_several_splits:
            splits = _numbered_options([split_name(split) for split in lookup.splits])
            yield doc.Choice("split", "Split", splits)
        if len(lookup.scores) > 1:
            best_index = lookup.score_index[find_best_score(lookup, lookup.splits[0])]
            scores = _numbered_options(lookup.scores)
            yield doc.Choice("by", "By score", scores, selected=str(best_index))
        for role, names in self.class_names.items():
            options = (doc.Option("", "all"), *_numbered_options(names))
            yield doc.Choice(role, _ROLES[role], options)

    def _box(self, case: ScoreCurves) -> doc.Box:
        """Return the tables of extreme samples of one split and score."""
        tags = {
            "split": str(self.lookup.split_index[case.split]),
            "by": str(self.lookup.score_index[case.score]),
        }
        split = f", {split_name(case.split)}" if self.lookup.has_several_splits else ""
        case_name = f"{case.score}{split}"
        n_cases = len(self.lookup.cases)
        n_samples = max(_MIN_SAMPLES, _MAX_PAGE_SAMPLES // (2 * n_cases))
        failures = case.overconfident[:n_samples]
        successes = case.underconfident[:n_samples]
        tables = [
            self._table(failures, f"Most confident failures ({case_name})"),
            self._table(successes, f"Least confident successes ({case_name})"),
        ]
        if len(self.lookup.scores) == 1:
            tables += contribution_tables(case, case_name)
        return doc.Box(tuple(tables), "pair", tags)

    def _contributions(self) -> Iterator[doc.Box]:
        """Yield tables of the shares of classes and groups in the AUGRC, by score."""
        for split, index in self.lookup.split_index.items():
            cases = [case for case in self.lookup.cases.values() if case.split == split]
            suffix = f" ({split_name(split)})" if self.lookup.has_several_splits else ""
            tables = tuple(shared_contribution_tables(cases, suffix))
            if tables:
                yield doc.Box(tables, tags={"split": str(index)})

    def _table(self, samples: tuple[ExtremeSample, ...], caption: str) -> doc.Table:
        """Return a table of samples.

        Columns without data, such as the image, are omitted.
        """
        has_images = any(sample.id in self.images.sources for sample in samples)
        has_classes = any(sample.prediction for sample in samples)
        has_probability = any(sample.probability is not None for sample in samples)
        columns = [doc.Column("Sample")]
        if has_images:
            columns.append(doc.Column("Image", is_sortable=False))
        if has_classes:
            columns += [doc.Column("Label"), doc.Column("Predicted")]
        if has_probability:
            columns.append(doc.number_column("Probability"))
        columns.append(doc.number_column("Confidence"))
        if not self.lookup.evaluation.is_binary:
            columns.append(doc.number_column("Loss"))
        rows = []
        for sample in samples:
            cells = self._cells(sample, has_images=has_images, has_classes=has_classes)
            rows.append(doc.Row(tuple(cells), tags=self._tags(sample)))
        return doc.Table(
            tuple(columns),
            doc.single_group(rows),
            caption=caption,
            layout="samples",
            is_sortable=True,
            footer="" if rows else "None.",
        )

    def _tags(self, sample: ExtremeSample) -> dict[str, str]:
        return {
            role: str(names.index(getattr(sample, role)))
            for role, names in self.class_names.items()
        }

    def _cells(
        self, sample: ExtremeSample, *, has_images: bool, has_classes: bool
    ) -> Iterator[doc.Cell]:
        """Yield the table cells of a sample in the order of the columns."""
        yield sample.id
        if has_images:
            source = self.images.sources.get(sample.id, "")
            yield doc.Thumbnail(source, f"Image of sample {sample.id}", "") if source else None
        if has_classes:
            yield from (sample.label, sample.prediction)
        if sample.probability is not None:
            yield doc.Number(sample.probability, number_format="six_digits")
        yield doc.Number(sample.confidence, number_format="six_digits")
        if not self.lookup.evaluation.is_binary:
            yield doc.Number(sample.loss)


def _numbered_options(labels: Sequence[str]) -> tuple[doc.Option, ...]:
    return tuple(doc.Option(str(i), label) for i, label in enumerate(labels))


def contribution_tables(case: ScoreCurves, case_name: str) -> Iterator[doc.Table]:
    """Yield the contributions of several classes and of several groups to the AUGRC."""
    for kind, subsets in (("class", case.by_class), ("group", case.by_group)):
        if len(subsets) > 1 and case.failures:
            yield _contribution_table(kind, subsets, case_name)


def _contribution_table(kind: str, subsets: tuple[Contribution, ...], case_name: str) -> doc.Table:
    """Return the largest contributions of classes or groups to the AUGRC."""
    headers = ("Samples", "Share of samples", "Share of AUGRC", "Contribution to AUGRC")
    n_remaining = len(subsets) - _MAX_ROWS
    return doc.Table(
        (doc.Column(kind.capitalize()), *map(doc.number_column, headers)),
        doc.single_group(map(_contribution_row, subsets[:_MAX_ROWS])),
        caption=f"Contributions to the AUGRC by {kind}, largest first ({case_name})",
        footer=f"{n_remaining} more" if n_remaining > 0 else "",
    )


def shared_contribution_tables(cases: Sequence[ScoreCurves], suffix: str) -> Iterator[doc.Table]:
    """Yield tables of the shares of classes and groups in the AUGRC, by score."""
    if not cases or not cases[0].failures:
        return
    for kind, subsets_by_score in (
        ("class", {case.score: case.by_class for case in cases}),
        ("group", {case.score: case.by_group for case in cases}),
    ):
        if len(subsets_by_score[cases[0].score]) > 1:
            yield _shared_contribution_table(kind, subsets_by_score, suffix)


def _shared_contribution_table(
    kind: str, subsets_by_score: Mapping[str, tuple[Contribution, ...]], suffix: str
) -> doc.Table:
    """Return a table of the shares of classes or groups in the AUGRC, sorted by the first score."""
    first_subsets = next(iter(subsets_by_score.values()))
    rows = []
    for subset in first_subsets[:_MAX_ROWS]:
        cells: list[doc.Cell] = [
            subset.name,
            doc.Number(subset.n, number_format="count"),
            _percent(subset.sample_share),
        ]
        for subsets in subsets_by_score.values():
            subset_by_name = {other.name: other for other in subsets}
            cells.append(_share_cell(subset_by_name.get(subset.name)))
        rows.append(cells)
    headers = ("Samples", "Share of samples", *subsets_by_score)
    n_remaining = len(first_subsets) - _MAX_ROWS
    return doc.Table(
        (doc.Column(kind.capitalize()), *map(doc.number_column, headers)),
        doc.single_group(rows),
        caption=f"Share of the AUGRC by {kind}, a column for each score{suffix}",
        footer=f"{n_remaining} more" if n_remaining > 0 else "",
    )


def _share_cell(subset: Contribution | None) -> doc.Cell:
    if subset is None:
        return None
    text = _percent(subset.share)
    return doc.Span(text, "strong") if subset.share > subset.sample_share else text


def _percent(share: float) -> str:
    return f"{format_fixed(100 * share, 1)}%"


def _contribution_row(subset: Contribution) -> tuple[doc.Cell, ...]:
    """Return cells with the share of a class or group in the AUGRC and its contribution."""
    share: doc.Cell = doc.Number(subset.share)
    if subset.share > subset.sample_share:
        share = doc.Span(format_number(subset.share), "strong")
    return (
        subset.name,
        doc.Number(subset.n, number_format="count"),
        doc.Number(subset.sample_share),
        share,
        doc.Number(subset.contribution),
    )
