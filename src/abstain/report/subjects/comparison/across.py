"""What a comparison says of all data sets or runs together, and of its metrics."""

import math
from collections.abc import Iterator

from abstain.evaluation.comparison import Comparison
from abstain.plots import RankingChangeDisplay
from abstain.plots.words import SUPPOSED, metric_title, percent, sentence
from abstain.report import document as doc
from abstain.report.subjects.comparison.figures import Shown
from abstain.report.subjects.comparison.place import Place
from abstain.report.subjects.comparison.tables import (
    chances_tables,
    pairs_table,
    shared_note,
    tested,
)
from abstain.report.words import unique
from abstain.tables import split_name

#: From so many runs on an interval by resampling them holds about what it promises.
_ENOUGH = 10

#: With more methods the chances of their ranks stand below the figure, not beside it.
_BESIDE = 8

#: So many rows are not folded away.
_FEW = 4


def over_all(shown: Shown) -> Iterator[doc.Section]:
    """Yield the section over all data sets or runs, where there are several."""
    comparison = shown.comparison
    parts = [
        doc.Box(tuple(found), tags={"metric": str(i)})
        for i, metric in enumerate(comparison.metrics)
        if (found := _of_metric(Place(comparison, metric, None), shown))
    ]
    if not parts:
        return
    blocks = comparison.block_kind
    one = blocks.removesuffix("s")
    averaged = " (its runs averaged)" if blocks == "data sets" and len(comparison.runs) > 1 else ""
    lead = (
        f"Each {one}{averaged} ranks the methods once. Bars join methods whose mean ranks are "
        f"closer than the critical difference. Few {blocks} can tell few methods apart, however "
        "large each is."
    )
    caution = independence_said(comparison)
    yield doc.Section(
        "overall",
        f"Over all {blocks}",
        (doc.Prose(lead, "lead"), *([doc.Prose(caution, "caution")] if caution else []), *parts),
    )


def independence_said(comparison: Comparison) -> str:
    """Say what the tests across data sets or runs take for granted, and which test to read."""
    if not comparison.mean_ranks:
        return ""
    blocks = comparison.block_kind
    taken = (
        f"Friedman's, Wilcoxon's and Nemenyi's tests take the {blocks} as independent of each other"
    )
    if blocks == "runs":
        return (
            f"{taken}, which folds that share training data are not. For differences of these "
            "trained models, read the pairs; for what training again would give, read Friedman "
            "and Wilcoxon."
        )
    return (
        f"{taken}, which shifted copies of the same images are not. For differences on these data "
        "sets, read the pairs of each; for what to expect of other data sets, read Friedman and "
        "Wilcoxon."
    )


def _of_metric(place: Place, shown: Shown) -> list[doc.Block]:
    across = place.comparison.mean_ranks_of(place.metric)
    if across is None and not place.standings:
        return []
    found = tested(place)
    blocks: list[doc.Block] = []
    if across is not None:
        note = sentence(across.note)
        said = {shared_note(pairs) for pairs in found}
        blocks += shown.of("critical-difference", place, "" if note in said else note)
        ranked = zip(across.methods, across.mean_ranks, strict=True)
        table = doc.Table(
            (doc.METHOD, doc.numbers("Mean rank")),
            doc.rows_of((method, doc.Number(rank, form="two")) for method, rank in ranked),
            caption=f"Mean ranks over all {place.comparison.block_kind}; {place.title}",
        )
        blocks.append(doc.Fold("Mean ranks", (table,)))
    blocks += [pairs_table(place, pairs) for pairs in found]
    blocks += ranks(place, shown)
    beside = [*shown.of("profile", place), *_aggregates(place)]
    blocks += [doc.Box(tuple(beside), look="side")] if beside else []
    return [*blocks, *_improvements(place)]


def ranks(place: Place, shown: Shown) -> list[doc.Block]:
    """Return the blobs of the ranks with their tables beside or below them."""
    tables = chances_tables(place)
    if not tables:
        return []
    blocks = (*shown.of("ranks", place), doc.Box(tuple(tables)))
    beside = len(place.comparison.methods) <= _BESIDE
    return [doc.Box(blocks, look="side" if beside else "stack")]


def _aggregates(place: Place) -> list[doc.Table]:
    """Return the interquartile means, with what they and their intervals rest on."""
    found = [a for a in place.comparison.aggregates if a.metric == place.metric]
    if not found:
        return []
    scores, over = found[0].scores, place.comparison.aggregated_over
    said = [f"Interquartile mean over {scores} {over}; {place.title}."]
    if all(math.isnan(a.low) for a in found):
        said.append("No intervals.")
    elif scores < _ENOUGH:
        said.append(
            f"The intervals rest on {scores} {over}, too few for them to hold what they promise: "
            "take them for a rough range."
        )
    said += unique(f"{sentence(a.note)}." for a in found if a.note)
    interval = doc.ends(f"{percent(place.comparison.level)} interval")
    table = doc.Table(
        (doc.METHOD, doc.numbers("Interquartile mean"), interval),
        doc.rows_of(
            (a.method, doc.Number(a.interquartile_mean), doc.Range(a.low, a.high)) for a in found
        ),
        caption=" ".join(said),
        sortable=True,
    )
    return [table]


def _improvements(place: Place) -> list[doc.Fold]:
    """Return the chances that a run of one method beats a run of another."""
    found = [i for i in place.comparison.improvements if i.metric == place.metric]
    if not found:
        return []
    several = len(place.comparison.runs) > 1
    title = (
        "How often a run of one method beats a run of another"
        if several
        else "On how many data sets one method beats another"
    )
    columns = (
        doc.Column("First", "name"),
        doc.Column("Second", "name"),
        doc.numbers("First better, %"),
        doc.ends(f"{percent(place.comparison.level)} interval"),
    )
    rows = (
        (
            i.first,
            i.second,
            doc.Number(i.probability, form="hundred"),
            doc.Range(i.low, i.high, form="hundred"),
        )
        for i in found
    )
    about = f"{title}, in percent, ties half; {place.title}"
    return [doc.Fold(title, (doc.Table(columns, doc.rows_of(rows), caption=about, sortable=True),))]


# -------------------------------------------------------------------------------- the metrics
def metrics_compared(shown: Shown) -> Iterator[doc.Section]:
    """Yield the section on what the choice of the metric does to the ranking."""
    comparison = shown.comparison
    if not comparison.agreements:
        return
    lead = (
        "Lines join the rank of each method by one metric with its rank by another. Drawn lines "
        "in orange fall, dashed ones in blue rise, thin ones stay."
    )
    taus = doc.Fold(
        "Kendall's tau of all pairs of metrics",
        (_taus(comparison),),
        open=len(comparison.agreements) <= _FEW,
    )
    changes = (
        doc.Box(
            (figure, _change(drawn.display, figure)),
            look="side",
            tags={} if drawn.data is None else {"data": str(comparison.data.index(drawn.data))},
        )
        for drawn, figure in shown.changes()
    )
    yield doc.Section(
        "metrics-compared",
        "Does the ranking depend on the metric?",
        (doc.Prose(lead, "lead", role="interactive"), *changes, taus),
        nav="Metrics compared",
    )


def _change(display: RankingChangeDisplay, figure: doc.Figure) -> doc.Table:
    titles = map(metric_title, (display.first, display.second))
    rows: Iterator[tuple[doc.Cell, ...]] = (
        (method, *(doc.Number(rank, form="rank") for rank in found))
        for method, found in display.ranks.items()
    )
    heads = (doc.METHOD, *(doc.numbers(f"Rank by {title}") for title in titles))
    return doc.Table(heads, doc.rows_of(rows), caption=figure.title)


def _taus(comparison: Comparison) -> doc.Table:
    together = f"all {comparison.block_kind} together"
    columns = (
        doc.Column("Metric"),
        doc.Column("Metric"),
        doc.Column("Data", "name"),
        doc.numbers("tau"),
        doc.ends(f"{percent(comparison.level)} of studies"),
    )
    rows = (
        (
            metric_title(a.first),
            metric_title(a.second),
            together if a.data is None else split_name(a.data) or "all samples",
            _tau(a.tau),
            doc.Range(a.low, a.high, form="two"),
        )
        for a in comparison.agreements
    )
    return doc.Table(
        columns,
        doc.rows_of(rows),
        title="Kendall's tau",
        caption=(
            "Kendall's tau of two rankings: 1 the same order, −1 the reverse. The range is that of "
            f"studies of this size, {SUPPOSED}."
        ),
        sortable=True,
    )


def stability(comparison: Comparison) -> Iterator[doc.Fold]:
    """Yield how alike the rankings of resamples are, where there are some."""
    rows = [
        (
            metric_title(s.metric),
            split_name(s.data) if s.data else "all samples",
            _tau(s.mean_tau),
            doc.Range(s.low, s.high, form="two"),
        )
        for s in comparison.stability
    ]
    if rows:
        about = (
            "Kendall's tau between the rankings of pairs of resamples: 1 when all resamples agree"
        )
        columns = (
            doc.Column("Metric"),
            doc.Column("Data", "name"),
            doc.numbers("Mean tau"),
            doc.ends("Range"),
        )
        table = doc.Table(columns, doc.rows_of(rows), caption=about)
        yield doc.Fold("How alike the rankings of resamples are", (table,))


def _tau(value: float) -> doc.Number:
    """Return a tau, whose last digits are rounding."""
    return doc.Number(round(value, 12), form="two")
