"""Test CWSA, CWSA+ and the AUC-MCC on models with known populations and on predictions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.errors import InputError, suggest
from abstain.metrics import cwsa_area, cwsa_plus_area
from abstain.simulate import Population
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._inputs import DataArgument, as_names, check_repeats
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies._tables import Row, group_rows
from abstain_bench.studies.cwsa import claims, experiments
from abstain_bench.studies.cwsa.claims import Axioms, Claim
from abstain_bench.studies.cwsa.conclusions import conclude
from abstain_bench.studies.cwsa.experiments import (
    COMPARISON,
    IMBALANCE,
    NOISE,
    SHARPENING,
    SHIFT,
    Conditions,
    tidy_rows,
)
from abstain_bench.studies.cwsa.figures import make_figures
from abstain_bench.studies.cwsa.models import (
    OVERCONFIDENT_TEXT,
    QUANTITIES,
    TITLES,
    SimulatedModel,
    finite_or_none,
    models,
    population_auc_mcc,
    sweep_thresholds,
)
from abstain_bench.studies.cwsa.predictions import (
    DIGITS,
    ProbabilisticPredictions,
    load_predictions,
)
from abstain_bench.studies.cwsa.printed_numbers import (
    check_printed_numbers,
    compare_printed_numbers,
)

PAPER_URL: Final = "https://arxiv.org/abs/2505.18622"

#: Thresholds of the released code: bounds and number.
_MIN_THRESHOLD, _MAX_THRESHOLD, _N_THRESHOLDS = 0.5, 0.99, 20

#: Quantities with an area under them.
_AREA_QUANTITIES: Final = QUANTITIES[1:]


@timed
def study_cwsa(
    data: DataArgument = None,
    *,
    thresholds: Sequence[float] = (),
    at: float = 0.9,
    scores: Sequence[str] = (),
    reference: str = "",
    samples: int = 1000,
    repeats: int = 200,
    rng: Rng = 0,
) -> StudyResult:
    """Compute CWSA and CWSA+ over thresholds, and test the claims of the paper about them.

    The study answers the question: what do CWSA, CWSA+ and the area under them measure, and do they
    reward the intended properties?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Predictions with confidences in [0, 1] and a 0/1 loss. Every experiment runs on each data
        set that is not a shift of `reference`. By default a softmax regression on scikit-learn's
        digits; its shifts are the same digits with noisy pixels.
    thresholds : sequence of float, optional
        Thresholds in [0, 1), at least 2. By default the 20 of the released code, evenly spaced from
        0.5 to 0.99.
    at : float, default=0.9
        Threshold of the experiments with label noise, class imbalance and shifts.
    scores : sequence of str, optional
        Confidence columns, or scores of the catalogue that are probabilities. By default all
        columns, or the maximum softmax response.
    reference : str, optional
        Name of the data set for which the model was developed; all others are then shifts of it.
        Without it, the data sets are compared without a reference.
    samples : int, default=1000
        Number of samples of a simulated model.
    repeats : int, default=200
        Number of simulations of each model, at least 2.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each number of sweeps and experiments), "claims" (one row for
        each reading of a claim and data set), "models", "areas", "label-noise", "imbalance",
        "shift" or "comparison", and "sharpening", if the data permit them; figures "sweep",
        "sharpening" and "label-noise".

    Raises
    ------
    InputError
        If a threshold is outside [0, 1) or there is only one, data have weights, or no data set
        has the name `reference`.
    MissingInputError
        If no confidence is in [0, 1], or the loss is not 0 or 1.

    Notes
    -----
    The expectations of simulated models are exact (`abstain.simulate.expected_cwsa`). Cost: a pass
    over the samples for each repetition, and one for each temperature and claim.

    References
    ----------
    .. [1] Shahnazari et al. (2025), sections 3 to 5, appendix A.2, https://arxiv.org/abs/2505.18622

    Captions
    --------
    results
        One row for each number. Expected: exact value of the population. SD: over repeated samples.
    claims
        One row for each reading of a claim and each data set, with the section of the paper.
        Without a data set: decided by simulated models or printed numbers.
    models
        Exact values of the populations at the threshold of the experiments. Mean ± SD: over
        repeated samples.
    areas
        AUC-MCC: trapezoids over the thresholds, so between the coverages of the first and the last
        one. Full: from coverage 0 to 1, with a vertex for each confidence.
    label-noise
        A share of the labels is replaced by another class: expectation over the random labels.
    imbalance
        The class with the highest error rate is weighted to the given share. Its own CWSA does not
        change.
    printed
        Every number that the paper prints for a simulated model, and the expectation of that model.
        Distance: in standard deviations of a sample of 1,000.
    shift
        The model was developed for the first data set.
    comparison
        No data set is known to be a shift of another.
    sharpening
        The same predictions with logits divided by a temperature. Below 1, all confidences are
        higher.
    sweep
        Lines of simulated models are exact.

    Glossary
    --------
    CWSA
        Sum of the weights (confidence - threshold)/(1 - threshold) of accepted correct predictions
        minus that of accepted wrong predictions, divided by the number of all samples.
    CWSA+
        Sum of the weights of accepted correct predictions, divided by the number of accepted
        samples.
    AUC-MCC
        Area under a metric against coverage, over the thresholds of a sweep.
    Brier
        Mean of (confidence - correctness)²: minimal if each confidence is the probability of a
        correct prediction.
    ECE
        Mean difference between confidence and accuracy in bins of equal width.
    Accuracy
        Share of correct predictions among all samples.

    Examples
    --------
    >>> result = study_cwsa(thresholds=[0.5, 0.7, 0.9], repeats=5)
    >>> result.rows("models")[0]["cwsa"]
    0.225
    """
    grid, seed = _check_thresholds(thresholds), as_seed(rng)
    conditions = Conditions(_check_threshold(at), checks.positive_int(samples, "samples"), seed)
    n_repeats = check_repeats(repeats)
    populations = models()
    datasets = load_predictions(data, as_names(scores))
    unshifted, shifts = _split_by_reference(datasets, DIGITS if data is None else reference)
    simulated = _simulate_models(populations, grid, conditions, n_repeats)
    experiment_rows = _run_experiments(unshifted, shifts, grid, conditions)
    printed = compare_printed_numbers(_at_published_thresholds(simulated))
    checked_claims = [
        *_check_claims(unshifted, grid, experiment_rows, simulated),
        *check_printed_numbers(printed, populations[OVERCONFIDENT_TEXT]),
    ]
    optional_tables = experiment_rows | {"printed": printed}
    tables: dict[str, Sequence[Row]] = {
        "results": [
            *(row for model in simulated for row in model.rows()),
            *(row for predictions in datasets for row in _sweep_rows(predictions, grid)),
            *_tidy_experiments(experiment_rows, conditions.threshold),
        ],
        "claims": [claim.row() for claim in checked_claims],
        "models": [_model_row(model, conditions.threshold) for model in simulated],
        "areas": [
            *map(_population_area_row, simulated),
            *(_area_row(predictions, grid) for predictions in datasets),
        ],
        **{name: rows for name, rows in optional_tables.items() if rows},
    }
    return CWSA.result(
        parameters={
            "data": tuple(predictions.name for predictions in datasets),
            "thresholds": tuple(grid.tolist()),
            "at": conditions.threshold,
            "samples": conditions.n_samples,
            "repeats": n_repeats,
        },
        tables=tables,
        figures=make_figures(simulated, unshifted, grid, experiment_rows),
        notes=_notes(experiment_rows),
        verdict=tuple(conclude(checked_claims, simulated, experiment_rows)),
        main_tables=tuple(
            name for name in tables if name not in {"results", SHARPENING, "printed"}
        ),
    )


def _simulate_models(
    populations: Mapping[str, Population],
    grid: FloatArray,
    conditions: Conditions,
    n_repeats: int,
) -> list[SimulatedModel]:
    return [
        SimulatedModel.simulate(
            name,
            population,
            grid,
            n_samples=conditions.n_samples,
            repeats=n_repeats,
            seed=conditions.seed + i,
        )
        for i, (name, population) in enumerate(populations.items())
    ]


def _split_by_reference(
    datasets: Sequence[ProbabilisticPredictions], reference: str
) -> tuple[list[ProbabilisticPredictions], list[ProbabilisticPredictions]]:
    """Separate the shifts of the reference from the other data sets."""
    names = list(dict.fromkeys(predictions.data for predictions in datasets))
    if reference and reference not in names:
        raise InputError(
            f"no data set is named {reference!r}; got {', '.join(map(repr, names))}."
            f"{suggest(reference, names)}"
        )
    if not reference:
        return list(datasets), []
    unshifted = [predictions for predictions in datasets if predictions.data == reference]
    return unshifted, [predictions for predictions in datasets if predictions.data != reference]


def _run_experiments(
    unshifted: Sequence[ProbabilisticPredictions],
    shifts: Sequence[ProbabilisticPredictions],
    grid: FloatArray,
    conditions: Conditions,
) -> dict[str, list[Row]]:
    """Run every experiment on each data set, and compare the shifts with their reference."""
    comparison = experiments.comparison_rows([*unshifted, *shifts], conditions)
    return {
        NOISE: experiments.noise_rows(unshifted, conditions),
        IMBALANCE: [row for p in unshifted for row in experiments.imbalance_rows(p, conditions)],
        SHIFT: comparison if shifts else [],
        COMPARISON: [] if shifts else comparison,
        SHARPENING: [row for p in unshifted for row in experiments.sharpening_rows(p, grid)],
    }


def _tidy_experiments(
    experiment_rows: Mapping[str, Sequence[Row]], threshold: float
) -> Iterator[Row]:
    settings = {NOISE: "rate", IMBALANCE: "share", SHARPENING: "temperature"}
    for name, rows in experiment_rows.items():
        yield from tidy_rows(rows, name, settings.get(name, ""), threshold)


def _check_thresholds(thresholds: Sequence[float]) -> FloatArray:
    """Validate thresholds; by default return those of the released code."""
    if not len(thresholds):
        return np.linspace(_MIN_THRESHOLD, _MAX_THRESHOLD, _N_THRESHOLDS)
    distinct = np.unique([_check_threshold(threshold) for threshold in thresholds])
    if distinct.size < 2:
        raise InputError(
            f"`thresholds` must contain at least 2 different values; got {tuple(thresholds)}"
        )
    return distinct


def _check_threshold(threshold: float) -> float:
    value = checks.fraction(threshold, "thresholds")
    if value == 1:
        raise InputError(
            "`thresholds` must be in [0, 1); got 1.0. At 1, the weight (confidence - threshold)/"
            "(1 - threshold) is undefined"
        )
    return value


def _at_published_thresholds(simulated: Sequence[SimulatedModel]) -> dict[str, SimulatedModel]:
    """Return the models at the thresholds of the paper."""
    grid = _check_thresholds(())
    return {
        model.name: (model if np.array_equal(model.thresholds, grid) else model.at_thresholds(grid))
        for model in simulated
    }


def _check_claims(
    unshifted: Sequence[ProbabilisticPredictions],
    grid: FloatArray,
    experiment_rows: Mapping[str, Sequence[Row]],
    simulated: Sequence[SimulatedModel],
) -> Iterator[Claim]:
    """Test the claims on the simulated models and on each data set."""
    yield from claims.check_models({model.name: model.population for model in simulated}, grid)
    sharpening_by_data = group_rows(experiment_rows[SHARPENING], "data")
    noise_by_data = group_rows(experiment_rows[NOISE], "data")
    for predictions in unshifted:
        yield from Axioms(predictions, grid).claims()
        yield claims.check_sharpening(sharpening_by_data[predictions.name])
        yield from claims.check_values_on_data(predictions, grid)
        yield claims.check_noise(noise_by_data[predictions.name])


def _sweep_rows(predictions: ProbabilisticPredictions, grid: FloatArray) -> list[Row]:
    sweep = sweep_thresholds(predictions.confidence, predictions.loss, grid)
    return [
        {
            "experiment": "sweep",
            "data": predictions.name,
            "setting": None,
            "threshold": threshold,
            "quantity": quantity,
            "value": finite_or_none(getattr(sweep, quantity)[i]),
            "expected": None,
            "sd": None,
        }
        for quantity in QUANTITIES
        for i, threshold in enumerate(grid.tolist())
    ]


def _model_row(model: SimulatedModel, threshold: float) -> Row:
    """Return the exact values of a model at one threshold, with mean and SD of samples."""
    at_threshold = model.at_thresholds(np.array([threshold]))
    exact = {name: finite_or_none(values[0]) for name, values in at_threshold.expected.items()}
    row: dict[str, Any] = {
        "model": model.name,
        "accuracy": 1 - model.population.risk,
        "coverage": exact["coverage"],
    }
    for name in ("cwsa", "cwsa_plus"):
        row[name] = exact[name]
        row[f"{name}_mean"] = finite_or_none(at_threshold.sampled[name].mean())
        row[f"{name}_mean_deviation"] = finite_or_none(at_threshold.sd(name)[0])
    return row | {"ECE": model.ece, "AURC": model.population.aurc()}


def _population_area_row(model: SimulatedModel) -> Row:
    expected = model.expected
    coverage = expected["coverage"]
    return {
        "data": model.name,
        "coverage_range": float(coverage[0] - coverage[-1]),
        **{name: population_auc_mcc(expected[name], coverage) for name in _AREA_QUANTITIES},
        "full_cwsa": None,
        "full_cwsa_plus": None,
    }


def _area_row(predictions: ProbabilisticPredictions, grid: FloatArray) -> Row:
    sweep = sweep_thresholds(predictions.confidence, predictions.loss, grid)
    return {
        "data": predictions.name,
        "coverage_range": float(sweep.coverage[0] - sweep.coverage[-1]),
        **{name: sweep.auc_mcc(name) for name in _AREA_QUANTITIES},
        "full_cwsa": cwsa_area(predictions.confidence, predictions.loss),
        "full_cwsa_plus": cwsa_plus_area(predictions.confidence, predictions.loss),
    }


_NORMALIZATION_NOTE: Final = (
    "CWSA is divided by the number of all samples and CWSA+ by the number of accepted samples, as "
    "in the tables and the code of the paper. Its equation divides both by the number of accepted "
    "samples."
)
_SHIFT_NOTE: Final = (
    "The shift experiment of the released code replaces labels, like its label-noise experiment. "
    "Here, a shift changes the inputs of the model."
)
_IMBALANCE_NOTE: Final = (
    "In the imbalance experiment of the released code, errors are independent of the class, so the "
    "metrics cannot change. Here, the weight of the class with the highest error rate changes."
)


def _notes(experiment_rows: Mapping[str, Sequence[Row]]) -> tuple[str, ...]:
    """Return notes about normalization and about the experiments of this run."""
    notes = [_NORMALIZATION_NOTE]
    if experiment_rows[SHIFT]:
        notes.append(_SHIFT_NOTE)
    if experiment_rows[IMBALANCE]:
        notes.append(_IMBALANCE_NOTE)
    return tuple(notes)


#: The study in the catalogue.
CWSA: Final = StudyEntry(
    name="cwsa",
    title="Confidence-weighted selective accuracy",
    question=(
        "What do CWSA, CWSA+ and the area under them measure, and do they reward the intended "
        "properties?"
    ),
    source=f"Shahnazari et al. (2025), {PAPER_URL}",
    run=study_cwsa,
    quick={"repeats": 20},
    labels=TITLES,
)
