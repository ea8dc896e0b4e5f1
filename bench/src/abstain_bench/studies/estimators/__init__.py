"""Measure bias and error of AURC estimators as functions of the sample size."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from abstain._foundation import checks
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import InputError
from abstain.plots.drawable import Drawable
from abstain.plots.series import SeriesDisplay
from abstain.typing import Rng
from abstain_bench.studies._area_estimators import (
    AREA_ESTIMATORS,
    COLOR_ORDER,
    DRAWS,
    ESTIMATOR_TITLES,
    GLOSSARY,
    PAPER_URL,
    error_rows,
    estimator_series,
    loss_title,
)
from abstain_bench.studies._display import (
    OVER_MODELS,
    Row,
    average_over_models,
    counted,
    group_rows,
    panels_above_zero,
    unique_values,
)
from abstain_bench.studies._display import (
    OVER_MODELS_CAPTION as OVER_MODELS_CAPTION,
)
from abstain_bench.studies._inputs import (
    LOGITS,
    DataArgument,
    PopulationsArgument,
    StudyRequest,
    check_repeats,
    check_sizes,
    tie_notes,
    true_value_notes,
)
from abstain_bench.studies._sources import UNNAMED, FileSource, SampleSource
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies.estimators.conclusions import (
    estimator_conclusions,
    model_conclusions,
    summarize_by_data,
    summarize_estimators,
)

#: Default populations. They include tied confidences, a continuous loss, and a population in which
#: 2 x SELE is below the AURC.
DEFAULT_POPULATIONS: Final = (
    "two-gaussians",
    "beta-scores",
    "discrete-scores",
    "continuous-loss",
    "two-sele-counterexample",
    LOGITS,
)

_NAMES: Final = tuple(ESTIMATOR_TITLES)

#: Maximum number of combinations of data set and loss that have figures.
_MAX_FIGURE_GROUPS: Final = 6


class _Statistic(NamedTuple):
    """Title and options of the figure for one statistic of the estimates."""

    title: str
    axis: str
    #: Column with the half-width of the band. If empty, the y axis is logarithmic.
    half_width: str = ""
    #: Name of the horizontal line at the true value. If empty, no line is drawn.
    level_name: str = ""


_STATISTICS: Final = {
    "mean": _Statistic(
        "Mean and standard deviation of the estimates", "Mean estimate", "sd", "true value"
    ),
    "bias": _Statistic(
        "Bias of the estimates, with two Monte-Carlo standard errors",
        "Bias",
        "two_bias_se",
        "no bias",
    ),
    "mse": _Statistic("Mean squared error of the estimates", "Mean squared error"),
    "mae": _Statistic("Mean absolute error of the estimates", "Mean absolute error"),
}


@timed
def study_estimators(
    data: DataArgument = None,
    *,
    populations: PopulationsArgument = (),
    scores: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    estimators: Sequence[str] | None = None,
    sizes: Sequence[int] = (8, 16, 32, 64, 128, 256, 512, 1024),
    repeats: int = 1000,
    replace: bool = False,
    rng: Rng = 0,
) -> StudyResult:
    """Measure the errors of AURC estimators on many random samples of each size.

    The study answers the question: how large are the bias and the standard deviation of each
    estimator on a batch of n samples? As in the paper, samples are drawn from files of predictions,
    or from simulated populations.

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Predictions whose rows are sampled. The true value is the plug-in estimate on all rows.
    populations : sequence of str, Population or LogitPopulation, optional
        Simulated populations (``abstain list populations``) with exact true values, and "logits".
        The true values of the population "logits" are estimated from 400,000 samples. The default
        is five simulated populations and "logits" if neither `data` nor `populations` is set.
    scores : sequence of str, optional
        Scores of the data. The default is the scores of table S2 that apply ("msr", "mls",
        "margin", "pe", "gini", "l2_norm"). If none applies, the default is the scores stored in the
        data.
    losses : sequence of str, optional
        Losses of the data. The default is "zero_one" and, if the data have class scores, also
        "cross_entropy".
    estimators : sequence of str, optional
        Estimators among "plugin", "log", "monte-carlo", "trapezoid", "sele", "2sele" and "augrc".
        Errors of the estimator "augrc" are relative to the true AUGRC. By default, all estimators.
    sizes : sequence of int, default=(8, 16, ..., 1024)
        Sample sizes, at least 2.
    repeats : int, default=1000
        Number of samples of each size, at least 2.
    replace : bool, default=False
        Whether rows are drawn with replacement. By default, rows are drawn without replacement, as
        in the paper. If rows are drawn with replacement, the true value is the limit of the plug-in
        estimate for large samples.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each data set, loss, score, estimator and size) and "summary";
        figures of mean, bias, MSE and MAE. If there are several files, the table "over-models" and
        the figure "models" (figures 4, S13 and S14 of the paper) contain means and standard
        deviations over the files. Each file must contain the predictions of one model.

    Raises
    ------
    InputError
        If a name does not exist, all sizes exceed the data, or `repeats` is below 2.

    Notes
    -----
    All estimators are computed on the same samples. The Monte-Carlo weights are averaged over 25
    independent draws for each sample. With default parameters, the study takes about ten seconds.

    References
    ----------
    .. [1] Zhou et al. (2025), section 4, https://arxiv.org/abs/2410.15361

    .. rubric:: Captions

    results
        Each number with its Monte-Carlo standard error.
    summary
        Relative to the true value; medians over data sets, losses and scores.
    by-data
        Relative to the true value; means over the scores of a data set.
    over-models
        Mean and standard deviation (with n - 1) over the files, each with the predictions of one
        model. The code of the paper calls the absolute bias of a model MAE.
    models
        Absolute bias is the distance between the mean estimate of a model and its true value. The
        code of the paper calls it MAE.

    Examples
    --------
    >>> result = study_estimators(populations=["beta-scores"], sizes=[8, 32], repeats=200)
    >>> result.frame().filter(estimator="2sele")["bias"].round(2).to_list()
    [0.09, 0.04]
    """
    requested_sizes = check_sizes(sizes, minimum=2)
    n_repeats = check_repeats(repeats)
    names = _check_estimators(estimators)
    seed = as_seed(rng)
    request = StudyRequest(data, populations, scores, losses, replace)
    sources = request.sources(DEFAULT_POPULATIONS)
    rows: list[Row] = []
    for source in sources:
        generator = named_generator(seed, source.name)
        for n in _feasible_sizes(source, requested_sizes):
            rows += error_rows(source, names, n, n_repeats, generator)
    over_models = _average_over_models(rows, sources)
    averages = _aurc_of_first_score(over_models.get(OVER_MODELS, ()))
    return ESTIMATORS.result(
        parameters={
            "data": tuple(source.name for source in sources),
            "samples": tuple(sorted({source.kind for source in sources})),
            "sizes": tuple(sorted({row["n"] for row in rows})),
            "repeats": n_repeats,
            "draws": DRAWS,
        },
        tables={
            "results": rows,
            "summary": summarize_estimators(rows),
            "by-data": summarize_by_data(rows),
            **over_models,
        },
        main_tables=_main_tables(rows),
        figures=_figures(rows) | _models_figure(averages),
        notes=(*request.omission_notes, *_notes(sources, requested_sizes, names)),
        verdict=(*estimator_conclusions(rows), *model_conclusions(averages)),
    )


def _check_estimators(names: Sequence[str] | None) -> tuple[str, ...]:
    """Convert names or titles of estimators to names; the default is all names."""
    if not names:
        return _NAMES
    name_by_title = {title: name for name, title in ESTIMATOR_TITLES.items()}
    requested = [names] if isinstance(names, str) else names
    distinct = dict.fromkeys(name_by_title.get(name, name) for name in requested)
    return tuple(checks.one_of(name, "estimators", _NAMES) for name in distinct)


def _feasible_sizes(source: SampleSource, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes that do not exceed the largest possible sample of a source."""
    max_size = source.max_size
    feasible = tuple(n for n in sizes if max_size is None or n <= max_size)
    if not feasible:
        raise InputError(
            f"{source.name!r} has {max_size} samples, fewer than the smallest of `sizes`, "
            f"{sizes[0]}; use smaller sizes or draw with replacement"
        )
    return feasible


def _aurc_of_first_score(averages: Sequence[Row]) -> list[Row]:
    """Return the rows for the first score and for estimators of the AURC."""
    return [
        row
        for row in averages
        if row["score"] == averages[0]["score"]
        and AREA_ESTIMATORS[row["estimator"]].target == "aurc"
    ]


def _average_over_models(
    rows: Sequence[Row], sources: Sequence[SampleSource]
) -> dict[str, list[Row]]:
    """Return a table of errors averaged over files, if there are at least two files."""
    files = {source.name for source in sources if isinstance(source, FileSource)}
    # In the code of the paper, "MAE" is the absolute bias.
    with_errors = [{**row, "abs_bias": abs(row["bias"]), "rmse": row["mse"] ** 0.5} for row in rows]
    columns = ("truth", "mean", "bias", "abs_bias", "mae", "rmse")
    return average_over_models(with_errors, files, ("loss", "score", "estimator", "n"), columns)


# --------------------------------------------------------------------------------- figures
def _figures(rows: Sequence[Row]) -> dict[str, Drawable]:
    """Plot each statistic for the populations, and for each pair of data set and loss.

    Each figure has one panel per population or per score of the data set.
    """
    figures: dict[str, Drawable] = {}
    populations = [row for row in rows if row["score"] == UNNAMED]
    named = [row for row in rows if row["score"] != UNNAMED]
    groups = list(group_rows(named, "data", "loss").items())[:_MAX_FIGURE_GROUPS]
    if populations:
        figures |= _statistic_figures("simulated populations", populations, "data", "")
        groups = groups[: _MAX_FIGURE_GROUPS - 1]
    has_several_data = len(unique_values(rows, "data")) > 1
    for (data, loss), group in groups:
        name = f"{loss}-{data}" if has_several_data else loss
        suffix = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        title = f"{data}, {loss_title(loss)}"
        figures |= _statistic_figures(title, group, "score", f"-{suffix}")
    return figures


def _statistic_figures(
    title: str, rows: list[Row], panel_column: str, suffix: str
) -> dict[str, Drawable]:
    """Return a figure for each statistic that has values, with a name that ends with the suffix."""
    figures: dict[str, Drawable] = {}
    for statistic in _STATISTICS:
        figure = _figure(title, rows, panel_column, statistic)
        if figure is not None:
            figures[f"{statistic}{suffix}"] = figure
    return figures


def _figure(
    group_title: str, rows: list[Row], panel_column: str, statistic: str
) -> SeriesDisplay | None:
    """Plot a statistic against the sample size, or return None if it has no values."""
    title, axis, half_width, level_name = _STATISTICS[statistic]
    # The mean of AUGRC estimates is not comparable with the means of AURC estimates.
    visible = [row for row in rows if statistic != "mean" or row["target"] == "aurc"]
    plotted = [{**row, "two_bias_se": 2 * row["bias_se"]} for row in visible]

    def panel(row: Row) -> str:
        return str(row[panel_column])

    series = estimator_series(plotted, statistic, panel, half_width=half_width)
    if not half_width:
        series = panels_above_zero(series)
    if not series:
        return None
    levels = {panel(row): row["truth"] if statistic == "mean" else 0.0 for row in visible}
    return SeriesDisplay(
        series,
        f"{title}: {group_title}",
        "Sample size n",
        axis,
        log_y=not half_width,
        order=COLOR_ORDER,
        level=levels if level_name else {},
        level_name=level_name,
    )


def _models_figure(averages: Sequence[Row]) -> dict[str, Drawable]:
    """Plot errors averaged over models, with bands of one standard deviation."""

    def mae_panel(row: Row) -> str:
        return f"{loss_title(row['loss'])}, MAE"

    def bias_panel(row: Row) -> str:
        return f"{loss_title(row['loss'])}, |bias|"

    maes = estimator_series(averages, "mae", mae_panel, half_width="mae_sd")
    biases = estimator_series(averages, "abs_bias", bias_panel, half_width="abs_bias_sd")
    visible = panels_above_zero([*maes, *biases])
    if not visible:
        return {}
    n_models = averages[0]["models"]
    score = averages[0]["score"]
    title = f"Error over {n_models} models, mean and standard deviation: {score}"
    display = SeriesDisplay(visible, title, "Sample size n", "Error", log_y=True, order=COLOR_ORDER)
    return {"models": display}


def _main_tables(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the displayed tables, with "by-data" for a single data set with several cases."""
    cases = group_rows(rows, "data", "loss", "score")
    if len(cases) > 1 and len(unique_values(rows, "data")) == 1:
        return ("summary", "by-data")
    return ("summary",)


_KIND_NOTES: Final = {
    "file, without replacement": (
        "Samples of a file are drawn from its rows without replacement, as in the paper, and the "
        "true value is the plug-in of all rows. If n is close to the number of rows, the standard "
        "deviation decreases for this reason alone. Draw with replacement for independent rows."
    ),
    "file, with replacement": (
        "The rows of a file are drawn with replacement. The true value is the limit of the "
        "plug-in. Rows that are drawn more than once are tied."
    ),
    "population": "The true value of a population is exact, by closed form or quadrature.",
}

#: The study in the catalogue.
ESTIMATORS: Final = StudyEntry(
    name="estimators",
    title="Estimators of the AURC by sample size",
    question="How large are the bias and the standard deviation of each estimator on n samples?",
    source=f"Zhou et al. (2025), section 4, {PAPER_URL}",
    run=study_estimators,
    quick={"repeats": 200, "sizes": (8, 32, 128)},
    terms=GLOSSARY,
    labels=ESTIMATOR_TITLES,
)


def _notes(
    sources: Sequence[SampleSource], sizes: tuple[int, ...], estimators: tuple[str, ...]
) -> Iterator[str]:
    """Yield notes about omitted sizes, sampling, ties and estimated true values."""
    small = [
        source for source in sources if source.max_size is not None and source.max_size < sizes[-1]
    ]
    if small:
        n_more = len(small) - 1
        more = f" (the same holds for {counted(n_more, 'more data set')})" if n_more else ""
        yield f"{small[0].name} has {small[0].max_size} samples, so larger sizes are omitted{more}."
    kinds = sorted({source.kind for source in sources})
    yield from (_KIND_NOTES[kind] for kind in kinds if kind in _KIND_NOTES)
    if "trapezoid" in estimators:
        yield from tie_notes(sources)
    yield from true_value_notes(sources)
