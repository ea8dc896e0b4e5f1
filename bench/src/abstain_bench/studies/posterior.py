"""The expectation of a metric over a posterior, and how many draws it needs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from abstain._foundation.random import generator
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError
from abstain.evaluation import PosteriorExpectation, posterior_expectation
from abstain.metrics import metric_named
from abstain.metrics.catalogue import DEFAULT_METRIC, POPULATION_AREA_METRIC
from abstain.plots.series import Series, SeriesDisplay
from abstain.predictions import Predictions
from abstain.simulate import logits
from abstain.typing import Rng
from abstain_bench.studies._data import Data, chosen_names, enough, named_data
from abstain_bench.studies._figures import above_zero
from abstain_bench.studies._models import CAPTION, OVER_MODELS, over_models, tables_of
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed
from abstain_bench.studies._words import PAPER, WORDS

#: What a simulated posterior is called.
SIMULATED: Final = "simulated posterior"

#: The simulated posterior: samples, draws, and the spread of the weights around their mean.
SAMPLES: Final = 2000
DRAWS: Final = 256
_SPREAD: Final = 0.25
_CLASSES: Final = 5

#: What is estimated where nobody says what.
_METRICS: Final = (POPULATION_AREA_METRIC, DEFAULT_METRIC)

#: The metric of the mean predictor is computed for so many subsets of the draws.
_SUBSETS: Final = 12

#: As many draws as a posterior often has: what they tell is said.
_FEW: Final = 8


@timed
def study_posterior(
    data: Data = None,
    *,
    score: str = BASELINE,
    metrics: Sequence[str] = _METRICS,
    loss: str | None = None,
    repeats: int = 500,
    rng: Rng = 0,
) -> StudyResult:
    """Estimate metrics in expectation over a posterior, by the number of draws.

    Answers: how good is a model drawn from the posterior, how sure is that from so many draws, and
    how does it differ from averaging the draws first?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        With Monte-Carlo samples of the class scores (``logit_samples`` or ``probability_samples``
        of an .npz file, shape (n, S, K)). Without data a posterior over the weights of
        a softmax regression is simulated: 2000 samples of 5 classes, 256 draws.
    score : str, default="msr"
        The score of each draw (``abstain list scores``).
    metrics : sequence of str, default=("aurc_plugin", "augrc")
        Metrics of the catalogue (``abstain list metrics``).
    loss : str, optional
        A named loss (``abstain list losses``); by default "zero_one", or the one that came with the
        predictions.
    repeats : int, default=500
        Subsets of the draws for each number of draws, at least 2.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (mean and spread of the average over so many draws, and of the metric of
        the mean predictor from as many) and "expectations"; figures "draws" and "spread".

    Raises
    ------
    InputError
        If there are fewer than 4 draws, or a metric does not apply.
    MissingInputError
        If data has no Monte-Carlo samples.

    Notes
    -----
    Subsets are drawn without replacement from the draws there are, so that the spread vanishes
    with all of them. Cost: one evaluation for each draw and metric, and one more for each draw of
    a dozen subsets of each size.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 37-38, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(3, size=100)
    >>> draws = 2 * np.eye(3)[labels][:, None] + rng.normal(size=(100, 8, 3))
    >>> p = ab.Predictions(logit_samples=draws, labels=labels)
    >>> found = study_posterior(p, metrics=["augrc"])
    >>> found.frame()["draws"].to_list()
    [1, 2, 4, 8]
    """
    count, draw = enough(repeats), generator(rng)
    parts = named_data(data) or {SIMULATED: simulated(SAMPLES, DRAWS, rng=draw)}
    names = chosen_names(metrics) or _METRICS
    asked = {"score": score, "loss": loss}
    found = {
        (name, metric): _expectation(name, p, metric=metric, **asked)
        for name, p in parts.items()
        for metric in names
    }
    rows: list[Row] = []
    for (name, metric), whole in found.items():
        _refuse_few(name, whole)
        mean_predictor = partial(_of_some, parts[name], metric=metric, **asked)
        about = {"data": name, "metric": metric}
        rows += [about | row for row in _rows(whole, mean_predictor, count, draw)]
    lines = [_line(k, w) for k, w in found.items()]
    over = over_models(lines, set(parts), ("metric",), _VALUES)
    return POSTERIOR.result(
        parameters={
            "data": tuple(parts),
            "score": score,
            "loss": next(iter(found.values())).loss,
            "draws": tuple(sorted({whole.draws for whole in found.values()})),
            "repeats": count,
        },
        tables={"results": rows, "expectations": lines} | tables_of(over),
        shown=("expectations", *tables_of(over)),
        figures=_figures(rows, found),
        verdict=tuple(_said(k, w) for k, w in found.items()),
        notes=_notes(parts, found.values()),
    )


#: What is averaged over the files.
_VALUES: Final = {
    "expectation": lambda row: row["expectation"],
    "mean_predictor": lambda row: row["mean_predictor"],
}


def simulated(n: int, draws: int, *, rng: Rng = 0) -> Predictions:
    """Simulate the logits of models drawn from a posterior of a softmax regression.

    Parameters
    ----------
    n, draws : int
        Samples, and models drawn.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    Predictions
        With `logit_samples` of shape (n, draws, 5): the logits of `abstain.simulate.logits`,
        multiplied by I + E/4 with E of independent normal entries, one E for each draw.

    Examples
    --------
    >>> simulated(10, 4).logit_samples.shape
    (10, 4, 5)
    """
    draw = generator(rng)
    z, labels = logits(_CLASSES).sample_logits(n, rng=draw)
    turned = np.eye(_CLASSES) + _SPREAD * draw.standard_normal((draws, _CLASSES, _CLASSES))
    return Predictions(logit_samples=np.einsum("nk,skl->nsl", z, turned), labels=labels)


def _expectation(name: str, predictions: Predictions, **asked: Any) -> PosteriorExpectation:
    try:
        return posterior_expectation(predictions, **asked)
    except MissingInputError as error:
        raise MissingInputError(f"{name}: {error}") from None


def _refuse_few(name: str, whole: PosteriorExpectation) -> None:
    known = int(np.isfinite(whole.values).sum())
    if known < 4:
        raise InputError(
            f"{name!r} has {known} draws with a value; a spread by their number needs at least 4"
        )


def _rows(
    whole: PosteriorExpectation,
    mean_predictor: Callable[[Any], float],
    repeats: int,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield how the average and the mean predictor spread, for each number of draws."""
    # A draw on which the metric is undefined has no part in an average.
    defined = np.flatnonzero(np.isfinite(whole.values))
    for count in _counts(defined.size):
        order = defined[rng.random((repeats, defined.size)).argsort(axis=1)[:, :count]]
        means = whole.values[order].mean(axis=1)
        averaged = [
            mean_predictor(order[i])
            for i in range(1 if count == defined.size else min(_SUBSETS, repeats))
        ] if count > 1 else list(whole.values[order[:, 0]])  # fmt: skip
        yield {
            "draws": count,
            "repeats": repeats,
            "mean": float(means.mean()),
            "sd": float(means.std(ddof=1)),
            "mean_predictor": float(np.mean(averaged)),
            "mean_predictor_sd": float(np.std(averaged, ddof=1)) if len(averaged) > 1 else 0.0,
        }


def _counts(draws: int) -> list[int]:
    """Return 1, 2, 4 and so on up to all draws."""
    return [*(2**k for k in range(int(np.log2(draws)) + 1) if 2**k < draws), draws]


def _of_some(predictions: Predictions, draws: Any, **asked: Any) -> float:
    """Return the metric of the mean predictor of some of the draws, on the same samples."""
    given = predictions.logit_samples is not None
    name = "logit_samples" if given else "probability_samples"
    less: dict[str, Any] = {name: getattr(predictions, name)[:, draws]}
    return posterior_expectation(replace(predictions, **less), **asked).of_mean


def _line(key: tuple[str, str], whole: PosteriorExpectation) -> dict[str, Any]:
    return {
        "data": key[0],
        "metric": metric_named(key[1]).title,
        "n": whole.n,
        "draws": whole.draws,
        "expectation": whole.mean,
        "expectation_se": whole.standard_error,
        "sd_over_draws": whole.standard_deviation,
        "least": float(np.nanmin(whole.values)),
        "largest": float(np.nanmax(whole.values)),
        "mean_predictor": whole.of_mean,
    }


def _figures(
    rows: Sequence[Row], found: dict[tuple[str, str], PosteriorExpectation]
) -> dict[str, Any]:
    several = len({name for name, _ in found}) > 1
    panels = {key: (f"{key[0]}, " if several else "") + metric_named(key[1]).title for key in found}
    by_draws: list[Series] = []
    spread: list[Series] = []
    for key, panel in panels.items():
        mine = [row for row in rows if (row["data"], row["metric"]) == key]
        x = tuple(float(row["draws"]) for row in mine)
        for column, name in (
            ("mean", "average over the draws"),
            ("mean_predictor", "mean predictor"),
        ):
            error = "sd" if column == "mean" else "mean_predictor_sd"
            y = tuple(row[column] for row in mine)
            low = tuple(row[column] - row[error] for row in mine)
            high = tuple(row[column] + row[error] for row in mine)
            by_draws.append(Series(name, x, y, low, high, panel))
        spread.append(
            Series("measured", x[:-1], tuple(row["sd"] for row in mine[:-1]), panel=panel)
        )
        sd = found[key].standard_deviation
        spread.append(Series("sd/sqrt(draws)", x, tuple(sd / np.sqrt(x)), panel=panel))
    out = {
        "draws": SeriesDisplay(
            tuple(by_draws),
            "Metric of the draws on average, and of their mean predictor, by number of draws",
            "Draws from the posterior",
            "Metric",
            level={panel: found[key].mean for key, panel in panels.items()},
            level_name="all draws",
        ),
    }
    # Where the draws differ at all.
    if shown := above_zero(spread):
        title = "Standard deviation of the average over the draws"
        axes = ("Draws from the posterior", "Standard deviation")
        out["spread"] = SeriesDisplay(shown, title, *axes, log_y=True)
    return out


def _said(key: tuple[str, str], whole: PosteriorExpectation) -> str:
    """Say what the expectation is, what the mean predictor has, and what a few draws tell."""
    known = int(np.isfinite(whole.values).sum())
    out = (
        f"{metric_named(key[1]).title} on {key[0]}: {whole.mean:.4g} \u00b1 "
        f"{whole.standard_error:.2g} in expectation over {known} draws. {_beside(whole)}"
    )
    # By the formula: subsets of the draws there are agree the more, the larger a part they are.
    few = whole.standard_deviation / np.sqrt(_FEW)
    if known <= _FEW or few == 0:
        return out
    return f"{out} {_FEW} draws tell the expectation to \u00b1 {few:.2g}."


def _beside(whole: PosteriorExpectation) -> str:
    """Compare the mean predictor with the expectation."""
    if np.isnan(whole.of_mean):
        return "The mean predictor has no value."
    if np.isclose(whole.of_mean, whole.mean, rtol=1e-12, atol=0.0):
        return "The mean predictor has the same."
    side = "lower" if whole.of_mean < whole.mean else "higher"
    return (
        f"The mean predictor has {whole.of_mean:.4g}, {side} by "
        f"{abs(whole.of_mean - whole.mean):.2g}: the expectation is not the metric of the averaged "
        "model."
    )


def _notes(parts: dict[str, Predictions], found: Iterable[PosteriorExpectation]) -> tuple[str, ...]:
    reasons = dict.fromkeys(whole.reason for whole in found if whole.reason)
    drawn = (*reasons, _SPREAD_SAID, _SUBSETS_SAID)
    if SIMULATED not in parts:
        return drawn
    return (*drawn, _HOW)


_HOW: Final = "The posterior is simulated: Gaussian weights of a softmax regression."
_SPREAD_SAID: Final = (
    "The spread is that of the draws on these samples; it says nothing of other samples."
)
_SUBSETS_SAID: Final = (
    "Subsets are drawn without replacement from the draws there are, so that the measured spread "
    "is smaller than sd/sqrt(draws) where a subset is a large part of them."
)

#: The study in the catalogue.
POSTERIOR: Final = StudyEntry(
    name="posterior",
    title="Expectation over a posterior",
    question="How good is a model drawn from the posterior, and how many draws tell?",
    source=f"Zhou et al. (2025), eq. 37-38, {PAPER}",
    run=study_posterior,
    quick={"repeats": 20},
    captions={
        "expectations": "± is the standard error for independent draws.",
        OVER_MODELS: CAPTION,
        "results": "Mean and standard deviation over subsets of the draws.",
        "draws": "The bands are one standard deviation over subsets of that many draws.",
    },
    glossary={
        "Expectation": (
            "Mean over models drawn from the posterior of the metric of each model, with the "
            "confidence and the loss of that model."
        ),
        "Mean predictor": "The model whose class probabilities are the mean over the draws.",
        **{word: WORDS[word] for word in ("AURC", "AUGRC", "SD")},
    },
)
