"""The numbers of an evaluation as tables: at a glance, every one, for a terminal, for a paper."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, Literal

from abstain.errors import UnknownNameError, suggest
from abstain.evaluation.records import Evaluation, Result
from abstain.plots.words import metric_title, sentence
from abstain.report import document as doc
from abstain.report.subjects.evaluation.lookup import Pivot, footnotes, note_of
from abstain.report.words import (
    between,
    count,
    meaning,
    narrow_title,
    number,
    printed_x1000,
    short_title,
    unique,
)
from abstain.tables import split_name
from abstain.typing import Split

#: The metrics whose intervals a terminal prints: as many as fit beside the names.
_MOST: Final = 3

#: Rows of the table at a glance beyond which it scrolls.
_TALL: Final = 8


def value(result: Result | None, found: Pivot) -> doc.Number | None:
    """Return a result as a number, with its interval and how it stands to the other scores."""
    if result is None:
        return None
    interval = result.interval
    form = interval.method if interval.exists else ""
    best = (result.split, result.score, result.metric.name) in found.best
    return doc.Number(
        doc.NAN if result.reason else result.value,
        interval.low,
        interval.high,
        per_thousand=result.metric.display.per_thousand,
        stands="best" if best else "",
        note=". ".join(text for text in (form, interval.note) if text),
        reason=result.reason,
    )


def _label(name: str, found: Pivot, title: str) -> doc.Label:
    sample = next(r for r in found.results.values() if r.metric.name == name)
    better = _better(sample)
    return doc.Label(title, better, short=narrow_title(name), title=f"{better} is better")


def _better(result: Result) -> Literal["lower", "higher"]:
    return "lower" if result.metric.lower_is_better else "higher"


# ---------------------------------------------------------------------------------------- a page
def headline_on_page(found: Pivot) -> doc.Table:
    """Return the headline metrics of each split and score."""
    rows = [
        doc.Row(
            (
                *([split_name(split)] if found.several else []),
                score,
                *(value(found.results.get((split, score, m)), found) for m in found.headline),
            ),
            tags={"score": str(found.score_place[score])},
        )
        for split, score in found.pairs()
    ]
    scroll = f": {len(rows)} rows, scroll for the rest" if len(rows) > _TALL else ""
    each = "split and score" if found.several else "score"
    return doc.Table(
        (
            *([doc.Column("Split", "name")] if found.several else []),
            doc.Column("Score", "name", head=True),
            *(doc.Column(_label(m, found, short_title(m)), "number") for m in found.headline),
        ),
        doc.rows_of(rows),
        title="At a glance",
        caption=f"Headline metrics, one row for each {each}{scroll}",
        anchor="glance",
        look="glance",
        sortable=True,
    )


def every(found: Pivot) -> Iterator[doc.Block]:
    """Yield what is chosen of all numbers, and all of them with what they mean."""
    families = unique(r.metric.identity.family for r in found.results.values())
    options = [doc.Option("headline", "headline metrics"), doc.Option("", "all metrics")]
    options += [doc.Option(_key(family), family) for family in families]
    family = doc.Choice("family", "Show", tuple(options), chosen="headline")
    yield doc.Controls((family, doc.Find("every", "numbers")))
    level = found.level
    small = f"; small, the {level} interval" if level else ""
    split = "; the split chosen above" if found.several else ""
    yield doc.Table(
        (
            doc.Column("Metric"),
            doc.Column("Score", "name"),
            doc.numbers("Value"),
            doc.Column("What it means", "words"),
            doc.numbers("Samples"),
            doc.numbers("Failures"),
        ),
        tuple(
            doc.Rows(
                tuple(_explained(r, found) for r in _ordered(found, split)), tags={"split": str(i)}
            )
            for i, split in enumerate(found.splits)
        ),
        title="Every number, explained",
        caption=f"Every metric for every score{small}{split}",
        anchor="every",
        look="cards",
        sortable=True,
    )


def _key(family: str) -> str:
    return family.replace(" ", "-")


def _ordered(found: Pivot, split: Split) -> list[Result]:
    """Return the results of one split, metric by metric so that scores stand together."""
    keys = [(split, score, metric) for metric in found.metrics for score in found.scores]
    return [found.results[key] for key in keys if key in found.results]


def _explained(result: Result, found: Pivot) -> doc.Row:
    ties = between(result.tie_low, result.tie_high)
    depends_on_ties = ties and number(result.tie_low) != number(result.tie_high)
    shown = value(result, found)
    tie_range = f"{ties} over all orders of ties" if depends_on_ties else ""
    accepted = result.n if result.accepted is None else result.accepted
    samples = doc.Number(accepted, form="count")
    if result.accepted is not None:
        samples = replace(samples, said=f"{count(accepted)} of {count(result.n)}")
    note = note_of(result)
    cells: tuple[doc.Cell, ...] = (
        doc.Label(
            sentence(result.metric.title), _better(result), note=result.metric.identity.convention
        ),
        result.score,
        shown and replace(shown, note="", beside=tie_range),
        (meaning(result), *([doc.Span(note, "small")] if note else [])),
        samples,
        doc.Number(result.failures, form="count"),
    )
    headline = " headline" if result.metric.name in found.headline else ""
    tags = {
        "score": str(found.score_place[result.score]),
        "family": f"{_key(result.metric.identity.family)}{headline}",
    }
    return doc.Row(cells, tags=tags)


# ------------------------------------------------------------------------------------ a terminal
def headline(found: Pivot, *, whole: bool) -> doc.Table:
    """Return the headline metrics; where all were asked for, none is left out for want of room."""
    shown = [
        doc.Column(_label(m, found, short_title(m)), "number", drop=True) for m in found.headline
    ]
    cells = {
        pair: [_alone(found.results.get((*pair, m)), found) for m in found.headline]
        for pair in found.pairs()
    }
    made = _by_split(found, shown, cells)
    return replace(made, instead=tuple(spoken(found))) if whole else made


def _alone(result: Result | None, found: Pivot) -> doc.Number | None:
    """Return a value without its interval."""
    shown = value(result, found)
    return shown and replace(shown, low=doc.NAN, high=doc.NAN)


def spans(found: Pivot) -> Iterator[doc.Table]:
    """Yield where some headline numbers may lie; nothing when no number has an interval."""
    with_interval = {r.metric.name for r in found.results.values() if r.interval.exists}
    wanted = dict.fromkeys([*found.headline, *found.metrics])
    names = [name for name in wanted if name in with_interval][:_MOST]
    if not names:
        return
    level = found.level
    columns = [
        doc.Column(replace(_label(m, found, short_title(m)), short=""), "number") for m in names
    ]
    cells = {pair: [_span(found.results.get((*pair, m))) for m in names] for pair in found.pairs()}
    title = f"{level} intervals: where the numbers may lie on new data"
    yield replace(_by_split(found, columns, cells), title=title)


def _span(result: Result | None) -> doc.Range | None:
    return None if result is None else doc.Range(result.interval.low, result.interval.high)


def _by_split(
    found: Pivot,
    columns: Sequence[doc.Column],
    cells: Mapping[tuple[Split, str], Sequence[doc.Cell]],
) -> doc.Table:
    """Return a row for each split and score, the parts of a split in columns of their own."""
    parts = unique(column for split in found.splits for column, _ in split)
    rows: dict[Split, list[doc.Row]] = {split: [] for split in found.splits}
    for (split, score), own in cells.items():
        values = dict(split)
        rows[split].append(doc.Row((*(values.get(part, "") for part in parts), score, *own)))
    apart = bool(parts) and len(found.scores) > 1
    every = tuple(chain.from_iterable(rows.values()))
    groups = tuple(doc.Rows(tuple(own)) for own in rows.values()) if apart else (doc.Rows(every),)
    lead = [doc.Column(part, "name", once=True) for part in parts]
    return doc.Table((*lead, doc.Column("Score", "name"), *columns), groups)


def spoken(found: Pivot) -> Iterator[doc.Table]:
    """Yield a table of every number of each split, with what it means."""
    level = found.level
    for split in found.splits:
        rows = [
            (
                doc.Label(sentence(result.metric.title), _better(result)),
                result.score,
                value(result, found),
                meaning(result),
            )
            for result in _ordered(found, split)
        ]
        yield doc.Table(
            (
                doc.Column("Metric", once=True),
                doc.Column("Score"),
                doc.Column(f"Value, {level} interval" if level else "Value", "number"),
                doc.Column("What it means", "words"),
            ),
            doc.rows_of(rows),
            title=split_name(split) if split or found.several else "",
        )


# --------------------------------------------------------------------------------------- a paper
def paper(
    evaluation: Evaluation,
    metrics: Sequence[str] | None,
    *,
    thousand: bool = False,
    intervals: bool = False,
) -> Iterator[doc.Block]:
    """Yield metrics x scores for each split, and the sentences below them."""
    found = Pivot(evaluation)
    wanted = found.metrics if metrics is None else [_known(name, found) for name in metrics]
    shown = []
    for split in found.splits:
        rows = {m: [found.results.get((split, s, m)) for s in found.scores] for m in wanted}
        kept = {m: results for m, results in rows.items() if any(results)}
        shown += [r for results in kept.values() for r in results if r is not None]
        yield doc.Table(
            (doc.Column("Metric"), *map(doc.numbers, found.scores)),
            doc.rows_of(
                _across(m, results, found, thousand, intervals) for m, results in kept.items()
            ),
            caption=doc.Span(split_name(split), "strong") if found.several else "",
            only=doc.PAPER,
        )
    yield doc.Prose(" ".join(_conventions(shown, intervals=intervals)), "notes", only=doc.PAPER)


def _across(
    metric: str, results: Sequence[Result | None], found: Pivot, thousand: bool, intervals: bool
) -> tuple[doc.Cell, ...]:
    scale = 1000 if thousand and printed_x1000(metric) else 1
    write = value if intervals else _alone
    cells = [write(result, found) for result in results]
    label = replace(_label(metric, found, metric_title(metric)), scale=scale)
    return (label, *(cell and replace(cell, scale=scale) for cell in cells))


def _known(name: str, found: Pivot) -> str:
    if name not in found.metrics:
        raise UnknownNameError(
            f"the evaluation has no metric {name!r}.{suggest(name, found.metrics)}"
        )
    return name


def _conventions(results: Sequence[Result], *, intervals: bool) -> list[str]:
    """Return the sentences of the footnote."""
    named = {
        sentence(r.metric.title): r.metric.identity.convention
        for r in results
        if r.metric.identity.convention
    }
    sentences = [
        "Values are fractions; arrows point to where better is; bold marks the best score.",
        "Tied samples are accepted or rejected together; the order of rows never matters.",
    ]
    if named:
        listed = "; ".join(f"{title}: {convention}" for title, convention in named.items())
        sentences.append(f"Conventions: {listed}.")
    reasons = unique(r.reason for r in results if r.reason)
    if reasons:
        sentences.append(f"Undefined: {'; '.join(reasons)}.")
    return [*sentences, *footnotes(results)] if intervals else sentences
