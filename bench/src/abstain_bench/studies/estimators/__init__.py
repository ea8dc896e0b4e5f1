"""Mean, spread and error of every estimator of the AURC against the size of the sample."""

import re
from collections.abc import Sequence
from typing import Final

from abstain._foundation import checks
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import InputError
from abstain.plots.drawable import Drawable
from abstain.plots.series import SeriesDisplay
from abstain.typing import Rng
from abstain_bench.studies._data import (
    LOGITS,
    Data,
    Populations,
    StudyRequest,
    checked_sizes,
    enough,
    ties_said,
    truths_said,
)
from abstain_bench.studies._estimates import DRAWS, rows_of
from abstain_bench.studies._figures import above_zero, lines
from abstain_bench.studies._models import CAPTION, OVER_MODELS, tables_of
from abstain_bench.studies._sources import OWN, Source
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed
from abstain_bench.studies._words import COLORS, ESTIMATOR_TITLES, PAPER, WORDS, loss_said
from abstain_bench.studies.estimators.models import models_figure, models_of, models_said
from abstain_bench.studies.estimators.words import by_data_of, summary_of, verdict_of

#: What is studied without a file: smooth, tied, continuous, and where 2 x SELE is no bound.
USUAL: Final = (
    "two-gaussians",
    "beta-scores",
    "discrete-scores",
    "continuous-loss",
    "two-sele-counterexample",
    LOGITS,
)

_NAMES: Final = tuple(ESTIMATOR_TITLES)

#: Figures are made of so many data sets and losses; the tables have all of them.
_MOST: Final = 6

#: Column, title and axis of each figure, and what its bands are: a column, and how often.
_STATISTICS: Final = {
    "mean": ("Mean and standard deviation of the estimates", "Mean estimate", ("sd", 1.0)),
    "bias": (
        "Bias of the estimates, with two Monte-Carlo standard errors",
        "Bias",
        ("bias_se", 2.0),
    ),
    "mse": ("Mean squared error of the estimates", "Mean squared error", None),
    "mae": ("Mean absolute error of the estimates", "Mean absolute error", None),
}


@timed
def study_estimators(
    data: Data = None,
    *,
    populations: Populations = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    estimators: Sequence[str] | None = None,
    sizes: Sequence[int] = (8, 16, 32, 64, 128, 256, 512, 1024),
    repeats: int = 1000,
    replace: bool = False,
    rng: Rng = 0,
) -> StudyResult:
    """Measure every estimator of the AURC on many samples of each size.

    Answers: how far from the truth is each estimator on a batch of n samples, on average and in
    spread? Batches are drawn from the rows of files, as in the paper, or from simulated
    populations whose truth is exact.

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Samples are drawn from its rows; the truth is the plug-in of all rows.
    populations : sequence of str, Population or LogitPopulation, optional
        Simulated populations (``abstain list populations``), whose truth is exact, and "logits",
        whose truth is estimated from 400,000 samples without drawn labels. Without data and
        populations: five that differ in kind, and "logits".
    scores : sequence of str, optional
        Scores of the data: by default the six of table S2 that they allow ("msr", "mls",
        "margin", "pe", "gini", "l2_norm"), else their own confidences.
    losses : sequence of str, optional
        Losses of the data: by default "zero_one" and, with class scores, "cross_entropy".
    estimators : sequence of str, optional
        Some of "plugin", "log", "monte-carlo", "trapezoid", "sele", "2sele" and "augrc", which is
        measured against its own true value. By default all.
    sizes : sequence of int, default=(8, 16, ..., 1024)
        Sample sizes, at least 2.
    repeats : int, default=1000
        Samples of each size, at least 2.
    replace : bool, default=False
        Draw the rows of data independently, so that a row may come twice, in place of batches
        without replacement (the paper cuts its test sets into such batches). The truth is then the
        limit of the plug-in.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set, loss, score, estimator and size, each number
        with its Monte-Carlo standard error) and "summary"; figures of mean, bias, MSE and MAE. With
        several files "over-models" and the figure "models" too (figures 4, S13 and S14 of the
        paper): mean and deviation over them, each the outputs of another model.

    Raises
    ------
    InputError
        If a name is unknown, no size fits the data, or `repeats` is below 2.

    Notes
    -----
    All estimators see the same samples. Monte-Carlo weights are drawn anew for each sample, from
    25 draws. Cost: a sort of every sample for each score; the defaults take some ten seconds.

    References
    ----------
    .. [1] Zhou et al. (2025), section 4, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> found = study_estimators(populations=["beta-scores"], sizes=[8, 32], repeats=200)
    >>> found.frame().filter(estimator="2sele")["bias"].round(2).to_list()
    [0.09, 0.04]
    """
    chosen, least = checked_sizes(sizes, least=2), enough(repeats)
    names, seed = _estimators(estimators), as_seed(rng)
    asked = StudyRequest(data, populations, scores, losses, replace)
    sources = asked.sources(USUAL)
    rows: list[Row] = []
    for source in sources:
        fitting, draw = _fitting(source, chosen), named_generator(seed, source.name)
        rows += [row for n in fitting for row in rows_of(source, names, n, least, draw)]
    over = models_of(rows, sources)
    return ESTIMATORS.result(
        parameters={
            "data": tuple(source.name for source in sources),
            "samples": tuple(sorted({source.kind for source in sources})),
            "sizes": tuple(sorted({row["n"] for row in rows})),
            "repeats": least,
            "draws": DRAWS,
        },
        tables={"results": rows, "summary": summary_of(rows), "by-data": by_data_of(rows)}
        | tables_of(over),
        shown=_shown(rows),
        figures=_figures(rows) | models_figure(over),
        notes=(*asked.left_out, *_too_few(sources, chosen), *_notes(sources, names)),
        verdict=(*verdict_of(rows), *models_said(over)),
    )


def _estimators(names: Sequence[str] | None) -> tuple[str, ...]:
    if not names:
        return _NAMES
    titles = {title: name for name, title in ESTIMATOR_TITLES.items()}
    given = [titles.get(name, name) for name in ([names] if isinstance(names, str) else names)]
    return tuple(checks.one_of(name, "estimators", _NAMES) for name in dict.fromkeys(given))


def _fitting(source: Source, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Leave out the sizes that a file has not rows enough for."""
    most = source.largest
    fitting = tuple(n for n in sizes if most is None or n <= most)
    if not fitting:
        raise InputError(
            f"{source.name!r} has {most} samples, fewer than the smallest of `sizes`, {sizes[0]}; "
            "ask for smaller ones or draw with replacement"
        )
    return fitting


# --------------------------------------------------------------------------------- the figures
def _figures(rows: Sequence[Row]) -> dict[str, Drawable]:
    """Return four figures for each data set and loss, their panels the scores.

    Where nothing errs there is no figure of errors.
    """
    parts = {}
    if alone := [row for row in rows if row["score"] == OWN]:
        parts[""] = ("simulated populations", alone, "data")
    several = len({row["data"] for row in rows}) > 1
    for data, loss in dict.fromkeys((r["data"], r["loss"]) for r in rows if r["score"] != OWN):
        mine = [row for row in rows if (row["data"], row["loss"]) == (data, loss)]
        slug = re.sub(r"[^A-Za-z0-9]+", "-", f"{loss}-{data}" if several else loss)
        parts[f"-{slug.strip('-').lower()}"] = (f"{data}, {loss_said(loss)}", mine, "score")
    found = {
        f"{statistic}{key}": _figure(*part, statistic)
        for key, part in list(parts.items())[:_MOST]
        for statistic in _STATISTICS
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def _figure(said: str, rows: list[Row], panel: str, statistic: str) -> SeriesDisplay | None:
    title, axis, band = _STATISTICS[statistic]
    # AUGRC is another number, so its mean has no place beside those of the AURC.
    rows = [r for r in rows if statistic != "mean" or r["target"] == "aurc"]
    drawn = lines(
        rows,
        lambda row: row[statistic],
        lambda row: row[panel],
        half=None if band is None else lambda row: band[1] * row[band[0]],
    )
    # Without a band the axis is logarithmic.
    drawn = above_zero(drawn) if band is None else drawn
    if not drawn:
        return None
    levels = {}
    if statistic in {"mean", "bias"}:
        levels = {r[panel]: r["truth"] if statistic == "mean" else 0.0 for r in rows}
    return SeriesDisplay(
        drawn,
        f"{title}: {said}",
        "Sample size n",
        axis,
        log_y=band is None,
        order=COLORS,
        level=levels,
        level_name="true value" if statistic == "mean" else "no bias",
    )


def _shown(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the tables to print: several cases of one data set also by loss."""
    cases = {(row["data"], row["loss"], row["score"]) for row in rows}
    one_of_many = len(cases) > 1 and len({row["data"] for row in rows}) == 1
    return ("summary", "by-data") if one_of_many else ("summary",)


def _too_few(sources: Sequence[Source], sizes: tuple[int, ...]) -> list[str]:
    """Say which files have too few rows for the larger sizes, in one sentence."""
    short = [s for s in sources if s.largest is not None and s.largest < sizes[-1]]
    if not short:
        return []
    more = f" (likewise {len(short) - 1} more data sets)" if len(short) > 1 else ""
    return [f"{short[0].name}: {short[0].largest} samples, so sizes above that are left out{more}."]


def _notes(sources: Sequence[Source], estimators: tuple[str, ...]) -> list[str]:
    kinds = sorted({source.kind for source in sources})
    about = [_OF_KIND[kind] for kind in kinds if kind in _OF_KIND]
    ties = ties_said(sources) if "trapezoid" in estimators else []
    return [*about, *ties, *truths_said(sources)]


_OF_KIND: Final = {
    "file, without replacement": (
        "Samples of a file are drawn from its rows without replacement, as in the paper, and "
        "the truth is the plug-in of all rows. With n near the number of rows the spread "
        "shrinks for that reason alone; drawn with replacement, rows are independent."
    ),
    "file, with replacement": (
        "Samples of a file are drawn from its rows independently; the truth is what the "
        "plug-in goes to. Rows that come twice are tied."
    ),
    "population": "The truth of a population is exact, by closed form or quadrature.",
}

#: The study in the catalogue.
ESTIMATORS: Final = StudyEntry(
    name="estimators",
    title="Estimators of the AURC against sample size",
    question="How far from the truth is each estimator on n samples, on average and in spread?",
    source=f"Zhou et al. (2025), section 4, {PAPER}",
    run=study_estimators,
    quick={"repeats": 200, "sizes": (8, 32, 128)},
    captions={
        "results": "Each number with its Monte-Carlo standard error.",
        "summary": "As shares of the true value, medians over data sets, losses and scores.",
        "by-data": "As shares of the true value, averaged over the scores of a data set.",
        OVER_MODELS: f"{CAPTION} |Bias| of a model is what the code of the paper calls its MAE.",
        "models": (
            "|Bias| is the distance of a model's mean estimate from its truth, which the code of "
            "the paper calls MAE."
        ),
    },
    glossary=WORDS,
    labels=ESTIMATOR_TITLES,
)
