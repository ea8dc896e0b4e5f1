"""Mean, spread and error of every estimator of the AURC against the size of the sample."""

from collections.abc import Sequence
from typing import Final

from abstain._foundation import checks
from abstain._foundation.random import named_generator, seed_of
from abstain.errors import InputError
from abstain.studies._estimates import DRAWS, TARGETS, rows_of
from abstain.studies._estimator_words import by_data_of, summary_of, verdict_of
from abstain.studies._figures import estimator_figures
from abstain.studies._given import (
    LOGITS,
    Data,
    Populations,
    StudyRequest,
    chosen_names,
    enough,
    sources_of,
    ties_said,
    truths_said,
)
from abstain.studies._sources import Source
from abstain.studies._study import Row, StudyEntry, StudyResult, stopwatch
from abstain.studies._words import ESTIMATOR_TITLES, PAPER, WORDS
from abstain.studies.weights import checked_sizes
from abstain.typing import Rng

SIZES: Final = (8, 16, 32, 64, 128, 256, 512, 1024)

#: What is studied without a file: smooth, tied, continuous, and where 2 x SELE is no bound.
USUAL: Final = (
    "two-gaussians",
    "beta-scores",
    "discrete-scores",
    "continuous-loss",
    "two-sele-counterexample",
    LOGITS,
)


def study_estimators(
    data: Data = None,
    *,
    populations: Populations = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    estimators: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    repeats: int = 1000,
    replace: bool = False,
    rng: Rng = 0,
) -> StudyResult:
    """Measure every estimator of the AURC on many samples of each size.

    Answers: how far from the truth is each estimator on a batch of n samples, on average and in
    spread?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Samples are drawn from its rows; the truth is the plug-in of all rows.
    populations : sequence of str, Population or LogitPopulation, optional
        Simulated populations, whose truth is exact, and "logits", whose truth is estimated from
        400,000 samples without drawn labels. Without data and populations: five that differ in
        kind, and "logits".
    scores : sequence of str, optional
        Of data: by default the six of table S2 that they allow ("msr", "mls", "margin", "pe",
        "gini", "l2_norm"), else their own confidences.
    losses : sequence of str, optional
        Of data: by default "zero_one" and, with class scores, "cross_entropy".
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
        A seed, a generator, or None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set, loss, score, estimator and size, each number
        with its Monte-Carlo standard error) and "summary"; figures of mean, bias, MSE and MAE.

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
    with stopwatch() as seconds:
        chosen, least = checked_sizes(sizes, least=2), enough(repeats)
        names, seed = _estimators(estimators), seed_of(rng)
        wanted = StudyRequest(chosen_names(scores), chosen_names(losses), replace)
        sources, notes = sources_of(data, populations, USUAL, wanted)
        rows: list[Row] = []
        for source in sources:
            fitting, draw = _fitting(source, chosen), named_generator(seed, source.name)
            rows += [row for n in fitting for row in rows_of(source, names, n, least, draw)]
        kinds = sorted({source.kind for source in sources})
        return ESTIMATORS.result(
            parameters={
                "data": tuple(source.name for source in sources),
                "samples": tuple(kinds),
                "sizes": tuple(sorted({row["n"] for row in rows})),
                "repeats": least,
                "draws": DRAWS,
            },
            tables={"results": rows, "summary": summary_of(rows), "by-data": by_data_of(rows)},
            shown=_shown(rows),
            figures=estimator_figures(rows),
            notes=(*notes, *_too_few(sources, chosen), *_notes(kinds, sources, names)),
            verdict=verdict_of(rows),
            seconds=seconds(),
            captions=_CAPTIONS,
            glossary=WORDS,
            labels=ESTIMATOR_TITLES,
        )


def _shown(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the tables to print: several cases of one data set also by loss."""
    cases = {(row["data"], row["loss"], row["score"]) for row in rows}
    one_of_many = len(cases) > 1 and len({row["data"] for row in rows}) == 1
    return ("summary", "by-data") if one_of_many else ("summary",)


def _estimators(names: Sequence[str] | None) -> tuple[str, ...]:
    if not names:
        return tuple(TARGETS)
    titles = {title: name for name, title in ESTIMATOR_TITLES.items()}
    given = [titles.get(name, name) for name in ([names] if isinstance(names, str) else names)]
    return tuple(checks.one_of(name, "estimators", tuple(TARGETS)) for name in dict.fromkeys(given))


def _fitting(source: Source, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Leave out the sizes that a file has not rows enough for."""
    most = source.largest
    fitting = tuple(n for n in sizes if most is None or n <= most)
    if not fitting:
        msg = (
            f"{source.name!r} has {most} samples, fewer than the smallest of `sizes`, {sizes[0]}; "
            "ask for smaller ones or draw with replacement"
        )
        raise InputError(msg)
    return fitting


def _too_few(sources: Sequence[Source], sizes: tuple[int, ...]) -> list[str]:
    """Say which files have too few rows for the larger sizes, in one sentence."""
    short = [s for s in sources if s.largest is not None and s.largest < sizes[-1]]
    if not short:
        return []
    more = f" (likewise {len(short) - 1} more data sets)" if len(short) > 1 else ""
    return [f"{short[0].name}: {short[0].largest} samples, so sizes above that are left out{more}."]


def _notes(
    kinds: Sequence[str], sources: Sequence[Source], estimators: tuple[str, ...]
) -> list[str]:
    said = {
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
    about = [said[kind] for kind in kinds if kind in said]
    ties = ties_said(sources) if "trapezoid" in estimators else []
    return [*about, *ties, *truths_said(sources)]


_CAPTIONS: Final = {
    "results": "Each number with its Monte-Carlo standard error.",
    "summary": "As shares of the true value, medians over data sets, losses and scores.",
    "by-data": "As shares of the true value, averaged over the scores of a data set.",
}

#: The study in the catalogue.
ESTIMATORS: Final = StudyEntry(
    name="estimators",
    title="Estimators of the AURC against sample size",
    question="How far from the truth is each estimator on n samples, on average and in spread?",
    source=f"Zhou et al. (2025), section 4, {PAPER}",
    run=study_estimators,
)
