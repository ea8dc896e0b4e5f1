"""Estimate posterior expectations of metrics from different numbers of draws."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from abstain._foundation.random import as_generator
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError
from abstain.evaluation import PosteriorExpectation, posterior_expectation
from abstain.metrics import metric_named
from abstain.metrics.catalogue import DEFAULT_METRIC, POPULATION_AREA_METRIC
from abstain.plots.series import Series, SeriesDisplay
from abstain.predictions import Predictions
from abstain.simulate import logits
from abstain.typing import FloatArray, IntArray, Rng
from abstain_bench.studies._area_estimators import GLOSSARY, PAPER_URL
from abstain_bench.studies._display import (
    Row,
    average_over_models,
    column_series,
    group_rows,
    panels_above_zero,
)
from abstain_bench.studies._inputs import DataArgument, as_names, check_repeats, named_datasets
from abstain_bench.studies._study import StudyEntry, StudyResult, timed

#: Name of the simulated posterior.
SIMULATED: Final = "simulated posterior"

#: Numbers of samples, draws and classes of the simulated posterior.
SAMPLES: Final = 2000
DRAWS: Final = 256
_N_CLASSES: Final = 5
#: Standard deviation of the weights of the simulated posterior.
_WEIGHT_SD: Final = 0.25

_DEFAULT_METRICS: Final = (POPULATION_AREA_METRIC, DEFAULT_METRIC)

#: Maximum number of subsets of each size for which the metric of the mean predictor is computed.
_N_SUBSETS: Final = 12

#: Number of draws for which the conclusion reports the standard error.
_TYPICAL_DRAWS: Final = 8

#: Minimum number of draws with a finite value of the metric.
_MIN_DRAWS: Final = 4


@timed
def study_posterior(
    data: DataArgument = None,
    *,
    score: str = BASELINE,
    metrics: Sequence[str] = _DEFAULT_METRICS,
    loss: str | None = None,
    repeats: int = 500,
    rng: Rng = 0,
) -> StudyResult:
    """Estimate posterior expectations of metrics from different numbers of draws.

    The study answers the questions: what is the expected metric of a model drawn from the
    posterior, how large is its standard error for a number of draws, and how does it differ from
    the metric of the averaged predictions?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Predictions with Monte-Carlo samples of the class scores (``logit_samples`` or
        ``probability_samples`` of an .npz file, shape (n, S, K)). By default, a posterior over
        softmax-regression weights is simulated, with 2000 samples, 5 classes and 256 draws.
    score : str, default="msr"
        Confidence score of each draw (``abstain list scores``).
    metrics : sequence of str, default=("aurc_plugin", "augrc")
        Metrics of the catalogue (``abstain list metrics``).
    loss : str, optional
        Named loss (``abstain list losses``). The default is the loss of the predictions. If the
        predictions have no loss, the default is "zero_one".
    repeats : int, default=500
        Number of random subsets for each number of draws, at least 2.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (mean and standard deviation of two estimates over subsets of draws) and
        "expectations"; figures "draws" and "spread". One estimate is the metric averaged over the
        draws, and the other is the metric of the averaged predictions.

    Raises
    ------
    InputError
        If there are fewer than 4 draws or a metric does not apply.
    MissingInputError
        If the data have no Monte-Carlo samples.

    Notes
    -----
    Subsets are random samples of the available draws without replacement. The largest subset
    contains all draws, so its standard deviation is 0. Each metric is computed once per draw, and
    once for up to twelve subsets of each size.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 37-38, https://arxiv.org/abs/2410.15361

    .. rubric:: Captions

    expectations
        ± is the standard error for independent draws.
    results
        Mean and standard deviation over subsets of the draws.
    draws
        Bands: one standard deviation over subsets of this number of draws.

    .. rubric:: Glossary

    Expectation
        Mean, over models drawn from the posterior, of the metric of each model with its own
        confidence and loss.
    Mean predictor
        Classifier whose class probabilities are the mean over the draws.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(3, size=100)
    >>> draws = 2 * np.eye(3)[labels][:, None] + rng.normal(size=(100, 8, 3))
    >>> p = ab.Predictions(logit_samples=draws, labels=labels)
    >>> result = study_posterior(p, metrics=["augrc"])
    >>> result.frame()["draws"].to_list()
    [1, 2, 4, 8]
    """
    n_repeats = check_repeats(repeats)
    rng = as_generator(rng)
    datasets = named_datasets(data) or {SIMULATED: simulated(SAMPLES, DRAWS, rng=rng)}
    options: dict[str, Any] = {"score": score, "loss": loss}
    expectations = {}
    for name, predictions in datasets.items():
        for metric in as_names(metrics) or _DEFAULT_METRICS:
            try:
                expectation = posterior_expectation(predictions, metric=metric, **options)
            except MissingInputError as error:
                raise MissingInputError(f"{name}: {error}") from None
            expectations[name, metric] = expectation
    rows: list[Row] = []
    for (name, metric), expectation in expectations.items():
        rows += _rows(name, datasets[name], expectation, n_repeats, rng, metric=metric, **options)
    summary = [_summarize(*key, expectation) for key, expectation in expectations.items()]
    averages = average_over_models(
        summary, set(datasets), ("metric",), ("expectation", "mean_predictor")
    )
    all_expectations = expectations.values()
    reasons = dict.fromkeys(e.reason for e in all_expectations if e.reason)
    simulation_note = _SIMULATION_NOTE if SIMULATED in datasets else ()
    return POSTERIOR.result(
        parameters={
            "data": tuple(datasets),
            "score": score,
            "loss": next(iter(all_expectations)).loss,
            "draws": tuple(sorted({expectation.draws for expectation in all_expectations})),
            "repeats": n_repeats,
        },
        tables={"results": rows, "expectations": summary, **averages},
        main_tables=("expectations", *averages),
        figures=_figures(rows, expectations),
        verdict=tuple(_conclude(*key, expectation) for key, expectation in expectations.items()),
        notes=(*reasons, *_NOTES, *simulation_note),
    )


def simulated(n: int, draws: int, *, rng: Rng = 0) -> Predictions:
    """Simulate logits of softmax-regression models that are drawn from a posterior.

    Parameters
    ----------
    n, draws : int
        Numbers of samples and of models.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    Predictions
        Predictions with `logit_samples` of shape (n, draws, 5). For each draw, the logits of
        `abstain.simulate.logits` are multiplied by I + E/4, where the entries of the matrix E are
        independent and standard normal.

    Examples
    --------
    >>> simulated(10, 4).logit_samples.shape
    (10, 4, 5)
    """
    rng = as_generator(rng)
    z, labels = logits(_N_CLASSES).sample_logits(n, rng=rng)
    noise = rng.standard_normal((draws, _N_CLASSES, _N_CLASSES))
    weights = np.eye(_N_CLASSES) + _WEIGHT_SD * noise
    return Predictions(logit_samples=np.einsum("nk,skl->nsl", z, weights), labels=labels)


_SIMULATION_NOTE: Final = (
    "The posterior is simulated: a softmax regression with Gaussian weights.",
)


_NOTES: Final = (
    "The standard deviation is over the draws. It does not include the sampling error of the data.",
    (
        "Subsets are drawn without replacement from the available draws, so the measured standard "
        "deviation is below sd/sqrt(draws) if a subset contains a large part of them."
    ),
)


def _rows(
    name: str,
    predictions: Predictions,
    expectation: PosteriorExpectation,
    repeats: int,
    rng: np.random.Generator,
    **options: Any,
) -> Iterator[Row]:
    """Yield a row with both estimates for each number of draws, based on random subsets."""
    # Draws for which the metric is undefined are excluded.
    finite = np.flatnonzero(np.isfinite(expectation.values))
    if finite.size < _MIN_DRAWS:
        raise InputError(
            f"the metric has a value for {finite.size} draws of {name!r}; this study needs at "
            f"least {_MIN_DRAWS}"
        )
    powers_of_2 = 2 ** np.arange(int(np.log2(finite.size)) + 1)
    for n_draws in [*powers_of_2[powers_of_2 < finite.size].tolist(), finite.size]:
        random_order = rng.random((repeats, finite.size)).argsort(axis=1)
        subsets = finite[random_order[:, :n_draws]]
        averages = expectation.values[subsets].mean(axis=1)
        if n_draws == 1:
            # With one draw, the mean predictor equals the draw.
            mean_predictors = expectation.values[subsets[:, 0]]
        else:
            n_subsets = 1 if n_draws == finite.size else min(_N_SUBSETS, repeats)
            mean_predictors = _mean_predictor_values(predictions, subsets[:n_subsets], options)
        has_sd = mean_predictors.size > 1
        yield {
            "data": name,
            "metric": options["metric"],
            "draws": n_draws,
            "repeats": repeats,
            "mean": float(averages.mean()),
            "sd": float(averages.std(ddof=1)),
            "mean_predictor": float(mean_predictors.mean()),
            "mean_predictor_sd": float(mean_predictors.std(ddof=1)) if has_sd else 0.0,
        }


def _mean_predictor_values(
    predictions: Predictions, subsets: IntArray, options: dict[str, Any]
) -> FloatArray:
    """Compute the metric of the averaged predictions for each subset of the draws."""
    has_logits = predictions.logit_samples is not None
    samples_name = "logit_samples" if has_logits else "probability_samples"
    samples = getattr(predictions, samples_name)
    metric_values = []
    for subset in subsets:
        predictions_of_subset = replace(predictions, **{samples_name: samples[:, subset]})
        expectation = posterior_expectation(predictions_of_subset, **options)
        metric_values.append(expectation.mean_predictor_value)
    return np.array(metric_values)


def _summarize(name: str, metric: str, expectation: PosteriorExpectation) -> dict[str, Any]:
    return {
        "data": name,
        "metric": metric_named(metric).title,
        "n": expectation.n,
        "draws": expectation.draws,
        "expectation": expectation.mean,
        "expectation_se": expectation.standard_error,
        "sd_over_draws": expectation.standard_deviation,
        "min": float(np.nanmin(expectation.values)),
        "max": float(np.nanmax(expectation.values)),
        "mean_predictor": expectation.mean_predictor_value,
    }


def _figures(
    rows: Sequence[Row], expectations: dict[tuple[str, str], PosteriorExpectation]
) -> dict[str, Any]:
    """Plot both estimates, and the SD of the average, against the number of draws."""
    has_several_data = len({name for name, _ in expectations}) > 1
    metric_series: list[Series] = []
    sd_series: list[Series] = []
    levels = {}
    for (name, metric), group in group_rows(rows, "data", "metric").items():
        expectation = expectations[name, metric]
        title = metric_named(metric).title
        panel = f"{name}, {title}" if has_several_data else title
        levels[panel] = expectation.mean
        average = column_series(
            "average over the draws", group, "draws", "mean", half_width="sd", panel=panel
        )
        mean_predictor = column_series(
            "mean predictor",
            group,
            "draws",
            "mean_predictor",
            half_width="mean_predictor_sd",
            panel=panel,
        )
        metric_series += [average, mean_predictor]
        # The last subset contains all draws, so its standard deviation is 0 and cannot be plotted
        # on a logarithmic axis.
        *proper_subsets, _all_draws = group
        measured_sd = column_series("measured", proper_subsets, "draws", "sd", panel=panel)
        n_draws = tuple(float(row["draws"]) for row in group)
        independent_sd = tuple(expectation.standard_deviation / np.sqrt(n_draws))
        sd_series += [measured_sd, Series("sd/sqrt(draws)", n_draws, independent_sd, panel=panel)]
    axis = "Draws from the posterior"
    figures = {
        "draws": SeriesDisplay(
            tuple(metric_series),
            "Average metric of the draws, and metric of the mean predictor",
            axis,
            "Metric",
            level=levels,
            level_name="all draws",
        ),
    }
    visible = panels_above_zero(sd_series)
    if visible:
        figures["spread"] = SeriesDisplay(
            visible,
            "Standard deviation of the average over the draws",
            axis,
            "Standard deviation",
            log_y=True,
        )
    return figures


def _conclude(name: str, metric: str, expectation: PosteriorExpectation) -> str:
    """Report the expectation, the metric of the averaged predictions, and a standard error."""
    n_draws = int(np.isfinite(expectation.values).sum())
    mean = expectation.mean
    mean_predictor = expectation.mean_predictor_value
    if np.isnan(mean_predictor):
        comparison = "The metric of the mean predictor is undefined."
    elif np.isclose(mean_predictor, mean, rtol=1e-12, atol=0.0):
        comparison = "The mean predictor has the same value."
    else:
        relation = "lower" if mean_predictor < mean else "higher"
        comparison = (
            f"The mean predictor has {mean_predictor:.4g}, {relation} by "
            f"{abs(mean_predictor - mean):.2g}: the expectation differs from the metric of the "
            "averaged predictions."
        )
    conclusion = (
        f"{metric_named(metric).title} on {name}: the expectation over {n_draws} draws is "
        f"{mean:.4g} \u00b1 {expectation.standard_error:.2g}. {comparison}"
    )
    # The measured standard deviation is not used, because large subsets of the draws overlap.
    error = expectation.standard_deviation / np.sqrt(_TYPICAL_DRAWS)
    if n_draws <= _TYPICAL_DRAWS or error == 0:
        return conclusion
    return f"{conclusion} The standard error with {_TYPICAL_DRAWS} draws is {error:.2g}."


#: The study in the catalogue.
POSTERIOR: Final = StudyEntry(
    name="posterior",
    title="Expectation over a posterior",
    question=(
        "What is the expected metric of a model drawn from the posterior, and how many draws are "
        "needed to estimate it?"
    ),
    source=f"Zhou et al. (2025), eq. 37-38, {PAPER_URL}",
    run=study_posterior,
    quick={"repeats": 20},
    terms={term: GLOSSARY[term] for term in ("AURC", "AUGRC", "SD")},
)
