"""Evaluate CWSA, CWSA+ and the AUC-MCC on simulated models and on predictions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.errors import InputError, suggest
from abstain.metrics import CwsaSweep, cwsa_area, cwsa_plus_area
from abstain.simulate import Population
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._display import Row
from abstain_bench.studies._display import group_rows as group_rows
from abstain_bench.studies._inputs import DataArgument, as_names, check_repeats
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies.cwsa import claims, experiments
from abstain_bench.studies.cwsa.claims import Axioms as Axioms
from abstain_bench.studies.cwsa.claims import Claim as Claim
from abstain_bench.studies.cwsa.conclusions import conclude, make_figures
from abstain_bench.studies.cwsa.experiments import (
    COMPARISON as COMPARISON,
)
from abstain_bench.studies.cwsa.experiments import (
    IMBALANCE,
    SHARPENING,
    SHIFT,
    Conditions,
    tidy_rows,
)
from abstain_bench.studies.cwsa.experiments import (
    NOISE as NOISE,
)
from abstain_bench.studies.cwsa.models import (
    DIGITS,
    OVERCONFIDENT_TEXT,
    QUANTITIES,
    TITLES,
    ProbabilisticPredictions,
    SimulatedModel,
    finite_or_none,
    load_predictions,
    models,
    sweep_rows,
)
from abstain_bench.studies.cwsa.printed_numbers import (
    check_printed_numbers,
    compare_printed_numbers,
)

PAPER_URL: Final = "https://arxiv.org/abs/2505.18622"

#: Bounds and number of the thresholds in the released code.
_MIN_THRESHOLD = 0.5
_MAX_THRESHOLD = 0.99
_N_THRESHOLDS = 20

#: Quantities for which the AUC-MCC is computed.
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

    The study answers the questions: what do CWSA, CWSA+ and their areas measure, and do these
    metrics reward the intended properties?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        Predictions with confidences in [0, 1] and a 0/1 loss. The experiments use the data set
        `reference`, or all data sets if it is not set. By default, a softmax regression is trained
        on the digits data set of scikit-learn. Digits with noisy pixels are used as shifted data
        sets.
    thresholds : sequence of float, optional
        At least 2 thresholds in [0, 1). The default is the 20 thresholds of the released code,
        evenly spaced from 0.5 to 0.99.
    at : float, default=0.9
        Threshold of the experiments with label noise, class imbalance and shifts.
    scores : sequence of str, optional
        Confidence columns, or scores of the catalogue that are probabilities. By default, all
        confidence columns. If there are none, the default is the maximum softmax response.
    reference : str, optional
        Name of the data set for which the model was developed. All other data sets are regarded as
        shifts of this data set. By default, the data sets are compared with each other.
    samples : int, default=1000
        Number of samples in a simulation of a model.
    repeats : int, default=200
        Number of simulations of each model, at least 2.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each number), "claims" (one row for each reading of a claim
        and data set), "models" and "areas"; figures "sweep", "sharpening" and "label-noise". If the
        data are suitable, the result also contains the table "label-noise", "imbalance", "shift",
        "comparison" or "sharpening".

    Raises
    ------
    InputError
        If a threshold is not in [0, 1), if there is only one threshold, if a data set has weights,
        or if there is no data set named `reference`.
    MissingInputError
        If no score of a data set has values in [0, 1] and a 0/1 loss.

    Notes
    -----
    The expectations of simulated models are exact (`abstain.simulate.expected_cwsa`).

    References
    ----------
    .. [1] Shahnazari et al. (2025), sections 3 to 5, appendix A.2, https://arxiv.org/abs/2505.18622

    .. rubric:: Captions

    results
        Each row contains one number. The column "expected" is the exact value of the population.
        The column "sd" is the standard deviation over repeated samples.
    claims
        Each row contains the verdict on a reading of a claim for a data set. A claim without a data
        set is decided by simulated models or printed numbers.
    models
        Exact values of the populations at the threshold of the experiments, and mean ± standard
        deviation over repeated samples.
    areas
        The AUC-MCC is computed by the trapezoidal rule over the thresholds. It covers the coverages
        between the first and the last threshold. The full areas cover coverages from 0 to 1.
    label-noise
        Expected values if a share of the labels is replaced by another class.
    imbalance
        The class with the highest error rate is weighted to the share in the column "share". The
        weights do not change the CWSA of this class.
    printed
        Numbers that the paper prints for simulated models, and expectations of these models. The
        distance is in standard deviations of a sample of 1,000.
    shift
        The model was developed for the first data set.
    comparison
        No data set is the reference.
    sharpening
        The logits of the same predictions are divided by a temperature. Temperatures below 1
        increase all confidences.
    sweep
        Lines of simulated models are exact.

    .. rubric:: Glossary

    CWSA
        Sum of the weights of accepted correct predictions, minus the sum of the weights of accepted
        wrong predictions, divided by the number of all samples. The weight is (confidence -
        threshold)/(1 - threshold).
    CWSA+
        Sum of the weights of accepted correct predictions, divided by the number of accepted
        samples.
    AUC-MCC
        Area under a metric against coverage, over the thresholds of a sweep.
    Brier
        Mean of (confidence - correctness)². Its expectation is minimal if each confidence is the
        probability of a correct prediction.
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
    grid = _check_thresholds(thresholds)
    seed = as_seed(rng)
    conditions = Conditions(_check_threshold(at), checks.positive_int(samples, "samples"), seed)
    n_repeats = check_repeats(repeats)
    datasets = load_predictions(data, as_names(scores))
    reference = DIGITS if data is None else reference
    unshifted = _select_unshifted(datasets, reference)
    populations = models()
    simulated = _simulate_models(populations, grid, conditions, n_repeats)
    experiment_rows = experiments.run_experiments(datasets, unshifted, grid, conditions)
    printed = compare_printed_numbers(simulated, _check_thresholds(()))
    checked_claims = [
        *claims.check_models(populations, grid),
        *claims.check_predictions(unshifted, grid, experiment_rows),
        *check_printed_numbers(printed, populations[OVERCONFIDENT_TEXT]),
    ]
    optional_tables = experiment_rows | {"printed": printed}
    tables: dict[str, Sequence[Row]] = {
        "results": [
            *_value_rows(simulated, datasets, grid),
            *tidy_rows(experiment_rows, conditions.threshold),
        ],
        "claims": [claim.row() for claim in checked_claims],
        "models": [_model_row(model, conditions.threshold) for model in simulated],
        "areas": _area_rows(simulated, datasets, grid),
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
        notes=tuple(note for name, note in _NOTES.items() if not name or experiment_rows[name]),
        verdict=tuple(conclude(checked_claims, simulated, experiment_rows)),
        main_tables=tuple(
            name for name in tables if name not in {"results", SHARPENING, "printed"}
        ),
    )


def _value_rows(
    simulated: Sequence[SimulatedModel],
    datasets: Sequence[ProbabilisticPredictions],
    grid: FloatArray,
) -> list[Row]:
    """Return the metrics of all models and predictions at each threshold."""
    rows: list[Row] = []
    for model in simulated:
        rows += model.rows()
    for predictions in datasets:
        rows += sweep_rows(predictions.name, grid, vars(predictions.sweep(grid)))
    return rows


def _area_rows(
    simulated: Sequence[SimulatedModel],
    datasets: Sequence[ProbabilisticPredictions],
    grid: FloatArray,
) -> list[Row]:
    """Return the areas over thresholds of all models and predictions."""
    model_rows = [_area_row(model.name, model.expected, None) for model in simulated]
    data_rows = [
        _area_row(predictions.name, predictions.sweep(grid), predictions)
        for predictions in datasets
    ]
    return [*model_rows, *data_rows]


def _select_unshifted(
    datasets: Sequence[ProbabilisticPredictions], reference: str
) -> list[ProbabilisticPredictions]:
    """Return the predictions on the reference, or all predictions if there is no reference."""
    names = list(dict.fromkeys(predictions.data for predictions in datasets))
    if reference and reference not in names:
        raise InputError(
            f"no data set is named {reference!r}; got {', '.join(map(repr, names))}."
            f"{suggest(reference, names)}"
        )
    if not reference:
        return list(datasets)
    return [predictions for predictions in datasets if predictions.data == reference]


def _simulate_models(
    populations: Mapping[str, Population],
    grid: FloatArray,
    conditions: Conditions,
    n_repeats: int,
) -> list[SimulatedModel]:
    """Draw repeated samples of each population, each with its own seed."""
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


def _check_thresholds(thresholds: Sequence[float]) -> FloatArray:
    """Validate thresholds and sort them. The default is the thresholds of the released code."""
    if not len(thresholds):
        return np.linspace(_MIN_THRESHOLD, _MAX_THRESHOLD, _N_THRESHOLDS)
    distinct = np.unique([_check_threshold(threshold) for threshold in thresholds])
    if distinct.size < 2:
        raise InputError(
            f"`thresholds` must contain at least 2 different values; got {tuple(thresholds)}"
        )
    return distinct


def _check_threshold(threshold: float) -> float:
    """Check that a threshold is in [0, 1)."""
    value = checks.fraction(threshold, "thresholds")
    if value == 1:
        raise InputError(
            "`thresholds` must be in [0, 1); got 1.0. At 1, the weight (confidence - threshold)/"
            "(1 - threshold) is undefined"
        )
    return value


def _model_row(model: SimulatedModel, threshold: float) -> Row:
    """Return a row with the exact and the simulated metrics of a model at one threshold."""
    at_threshold = model.at_thresholds(np.array([threshold]))
    exact = {name: finite_or_none(getattr(at_threshold.expected, name)[0]) for name in QUANTITIES}
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


def _area_row(name: str, sweep: CwsaSweep, predictions: ProbabilisticPredictions | None) -> Row:
    """Return a row with the areas over thresholds and, for predictions, over all coverages."""
    full_cwsa = None
    full_cwsa_plus = None
    if predictions is not None:
        full_cwsa = cwsa_area(predictions.confidence, predictions.loss)
        full_cwsa_plus = cwsa_plus_area(predictions.confidence, predictions.loss)
    return {
        "data": name,
        "coverage_range": float(sweep.coverage[0] - sweep.coverage[-1]),
        **{quantity: sweep.auc_mcc(quantity) for quantity in _AREA_QUANTITIES},
        "full_cwsa": full_cwsa,
        "full_cwsa_plus": full_cwsa_plus,
    }


#: Notes by experiment. The note with an empty name applies to all results.
_NOTES: Final = {
    "": (
        "CWSA is divided by the number of all samples and CWSA+ by the number of accepted samples, "
        "as in the tables and the code of the paper. Its equation divides both by the number of "
        "accepted samples."
    ),
    SHIFT: (
        "The shift experiment of the released code replaces labels, like its label-noise "
        "experiment. Here, a shift changes the inputs of the model."
    ),
    IMBALANCE: (
        "In the imbalance experiment of the released code, errors are independent of the class, so "
        "the metrics cannot change. Here, the weight of the class with the highest error rate "
        "changes."
    ),
}


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
