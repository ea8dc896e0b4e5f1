"""What CWSA, CWSA+ and the AUC-MCC do, on models of known law and on predictions."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.errors import InputError, suggest
from abstain.metrics import cwsa_area, cwsa_plus_area
from abstain.typing import FloatArray, Rng
from abstain_bench.studies._inputs import DataArgument, as_names, check_repeats
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies._tables import Row
from abstain_bench.studies.cwsa import claims, experiments
from abstain_bench.studies.cwsa.answers import DIGITS, Answers, answers_of
from abstain_bench.studies.cwsa.claims import Axioms, Claim
from abstain_bench.studies.cwsa.experiments import (
    COMPARISON,
    IMBALANCE,
    NOISE,
    SHARPENING,
    SHIFT,
    Conditions,
    tidy,
)
from abstain_bench.studies.cwsa.facts import printed_claims, printed_rows
from abstain_bench.studies.cwsa.figures import figures_of
from abstain_bench.studies.cwsa.models import (
    OVERCONFIDENT_TEXT,
    QUANTITIES,
    TITLES,
    Simulated,
    area_of,
    models,
    number,
    swept_quietly,
)
from abstain_bench.studies.cwsa.verdict import verdict_of

PAPER: Final = "https://arxiv.org/abs/2505.18622"

#: The thresholds of the released code.
_LOW, _HIGH, _COUNT = 0.5, 0.99, 20


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
    """Sweep CWSA and CWSA+ over thresholds, and try what is claimed of them.

    Answers: what do CWSA, CWSA+ and the area under them say of a model, and do they reward what
    they are meant to reward?

    Parameters
    ----------
    data : Predictions, or mapping from name or split to Predictions, optional
        With confidences in [0, 1] and a 0/1 loss. Every experiment is run on each data set that is
        not a shift of `reference`. Without data a softmax regression on scikit-learn's digits, with
        the same digits with noise on their pixels as shifts.
    thresholds : sequence of float, optional
        Thresholds in [0, 1), at least 2. By default the 20 of the released code, even from 0.5 to
        0.99.
    at : float, default=0.9
        The threshold at which labels are replaced, classes made rare and shifts compared.
    scores : sequence of str, optional
        Confidence columns, or scores of the catalogue that are probabilities. By default all
        columns, or the maximum softmax response.
    reference : str, optional
        Name of the data set that the model was made for; all others are then shifts of it. Without
        it the data sets are compared, and none is called a shift.
    samples : int, default=1000
        Number of samples of a simulated model.
    repeats : int, default=200
        How often each model is simulated, at least 2.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator of all random numbers; None for fresh entropy.

    Returns
    -------
    StudyResult
        Tables "results" (a row a number: sweeps and experiments), "claims" (a row for each reading
        of a claim and data set), "models", "areas", "label-noise", "imbalance", "shift" or
        "comparison", and "sharpening", each where the data allow it; figures "sweep", "sharpening"
        and "label-noise".

    Raises
    ------
    InputError
        If a threshold lies outside [0, 1) or there is only one, data have weights, or no data set
        has the name `reference`.
    MissingInputError
        If no confidence lies in [0, 1], or the loss is not 0 or 1.

    Notes
    -----
    What a simulated model has in expectation is exact (`abstain.simulate.expected_cwsa`). Cost: a
    pass over the samples for each repeat, and one for each temperature and claim.

    References
    ----------
    .. [1] Shahnazari et al. (2025), sections 3 to 5, appendix A.2, https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> found = study_cwsa(thresholds=[0.5, 0.7, 0.9], repeats=5)
    >>> found.rows("models")[0]["cwsa"]
    0.225
    """
    grid, seed = _grid(thresholds), as_seed(rng)
    asked = Conditions(_threshold(at), checks.positive_int(samples, "samples"), seed)
    options = {"samples": asked.samples, "repeats": check_repeats(repeats)}
    laws, parts = models(), answers_of(data, as_names(scores))
    unshifted, shifts = _by_reference(parts, DIGITS if data is None else reference)
    simulated = [
        Simulated.of(name, law, grid, seed=seed + i, **options)
        for i, (name, law) in enumerate(laws.items())
    ]
    found = _experiments(unshifted, shifts, grid, asked)
    printed = printed_rows(_of_their_grid(simulated))
    said = _claims(unshifted, grid, found, simulated)
    said += printed_claims(printed, laws[OVERCONFIDENT_TEXT])
    tables = {
        "results": [*_sweeps(simulated, parts, grid), *_tidied(found, asked.at)],
        "claims": [claim.row() for claim in said],
        "models": [_model_row(model, asked.at) for model in simulated],
        "areas": [*map(_law_areas, simulated), *(_areas(part, grid) for part in parts)],
    } | {name: rows for name, rows in (found | {"printed": printed}).items() if rows}
    usual = {"data": tuple(part.name for part in parts), "thresholds": tuple(grid.tolist())}
    return CWSA.result(
        parameters=usual | {"at": asked.at, **options},
        tables=tables,
        figures=figures_of(simulated, unshifted, grid, found),
        notes=_notes(found),
        verdict=tuple(verdict_of(said, simulated, found)),
        main_tables=tuple(
            name for name in tables if name not in {"results", SHARPENING, "printed"}
        ),
    )


def _by_reference(parts: Sequence[Answers], reference: str) -> tuple[list[Answers], list[Answers]]:
    """Separate the shifts of the reference from the other data sets; none without a reference."""
    names = list(dict.fromkeys(part.data for part in parts))
    if reference and reference not in names:
        msg = f"no data set is named {reference!r}; got {', '.join(map(repr, names))}"
        raise InputError(f"{msg}.{suggest(reference, names)}")
    shifts = [part for part in parts if reference and part.data != reference]
    return [part for part in parts if part not in shifts], shifts


def _experiments(
    unshifted: Sequence[Answers], shifts: Sequence[Answers], grid: FloatArray, asked: Conditions
) -> dict[str, list[Row]]:
    """Run every experiment on each data set, and compare the shifts with their reference."""
    compared = SHIFT if shifts else COMPARISON
    return {
        NOISE: experiments.noise_rows(unshifted, asked),
        IMBALANCE: [row for p in unshifted for row in experiments.imbalance_rows(p, asked)],
        SHIFT: [],
        COMPARISON: [],
        compared: experiments.comparison_rows([*unshifted, *shifts], asked),
        SHARPENING: [row for p in unshifted for row in experiments.sharpening_rows(p, grid)],
    }


def _sweeps(
    simulated: Sequence[Simulated], parts: Sequence[Answers], grid: FloatArray
) -> Iterator[Row]:
    for model in simulated:
        yield from model.rows()
    for part in parts:
        yield from _sweep_rows(part, grid)


def _tidied(found: dict[str, list[Row]], at: float) -> Iterator[Row]:
    settings = {NOISE: "rate", IMBALANCE: "share", SHARPENING: "temperature"}
    for name, rows in found.items():
        yield from tidy(rows, name, settings.get(name, ""), at)


def _grid(thresholds: Sequence[float]) -> FloatArray:
    if not len(thresholds):
        return np.linspace(_LOW, _HIGH, _COUNT)
    found = np.unique([_threshold(t) for t in thresholds])
    if found.size < 2:
        raise InputError(f"`thresholds` must hold at least 2; got {tuple(thresholds)}")
    return found


def _threshold(x: float) -> float:
    value = checks.fraction(x, "thresholds")
    if value == 1:
        raise InputError("`thresholds` must lie in [0, 1); got 1.0. At 1 the ramp has no width.")
    return value


def _of_their_grid(simulated: Sequence[Simulated]) -> dict[str, Simulated]:
    """Return the models at the thresholds of the paper, drawn again where others were asked for."""
    grid = _grid(())
    return {m.name: m if np.array_equal(m.thresholds, grid) else m.again(grid) for m in simulated}


def _claims(
    unshifted: Sequence[Answers],
    grid: FloatArray,
    found: dict[str, list[Row]],
    simulated: Sequence[Simulated],
) -> list[Claim]:
    """Decide the claims on the simulated models and on each data set."""
    laws = {model.name: model.population for model in simulated}
    sharpened, relabeled = (experiments.by_data(found[name]) for name in (SHARPENING, NOISE))
    decided = list(claims.of_models(laws, grid))
    for judged in unshifted:
        decided += Axioms(judged, grid).claims()
        decided += claims.of_sharpening(sharpened[judged.name])
        decided += claims.of_predictions(judged, grid)
        decided.append(claims.of_noise(relabeled[judged.name]))
    return decided


def _sweep_rows(part: Answers, grid: FloatArray) -> list[Row]:
    swept = swept_quietly(part.confidence, part.loss, grid)
    usual: dict[str, Any] = {"experiment": "sweep", "data": part.name, "setting": None}
    return [
        usual
        | {
            "threshold": threshold,
            "quantity": quantity,
            "value": number(getattr(swept, quantity)[i]),
            "expected": None,
            "sd": None,
        }
        for quantity in QUANTITIES
        for i, threshold in enumerate(grid.tolist())
    ]


def _model_row(model: Simulated, at: float) -> Row:
    """Return what a model has at one threshold, exactly and over repeated samples."""
    near, (_, _, signed, plus) = model.again(np.array([at])), QUANTITIES
    exact = {name: number(values[0]) for name, values in near.expected.items()}
    row: dict[str, Any] = {"model": model.name, "right": 1 - model.population.risk}
    row["coverage"] = exact["coverage"]
    for name in (signed, plus):
        row[name] = exact[name]
        row[f"{name}_mean"] = number(near.drawn[name].mean())
        row[f"{name}_mean_deviation"] = number(near.spread(name)[0])
    return row | {"ECE": model.ece, "AURC": model.population.aurc()}


def _law_areas(model: Simulated) -> Row:
    exact = model.expected
    areas = {name: area_of(exact[name], exact["coverage"]) for name in QUANTITIES[1:]}
    span = float(exact["coverage"][0] - exact["coverage"][-1])
    usual = {"data": model.name, "coverage_between": span, **areas}
    return usual | {"whole_cwsa": None, "whole_cwsa_plus": None}


def _areas(part: Answers, grid: FloatArray) -> Row:
    swept = swept_quietly(part.confidence, part.loss, grid)
    return {
        "data": part.name,
        "coverage_between": float(swept.coverage[0] - swept.coverage[-1]),
        **{name: swept.auc_mcc(name) for name in QUANTITIES[1:]},
        "whole_cwsa": cwsa_area(part.confidence, part.loss),
        "whole_cwsa_plus": cwsa_plus_area(part.confidence, part.loss),
    }


_NORMALIZED: Final = (
    "CWSA is divided by the number of all samples and CWSA+ by the number accepted, as in the "
    "tables and the code of the paper; its equation divides both by the number accepted."
)
_SHIFTED: Final = (
    "The released test of a shift replaces labels, as its test of label noise does; here a shift "
    "is of what the model sees."
)
_BALANCED: Final = (
    "In the released test of imbalance errors do not depend on the class, so that nothing can "
    "change; here the class with the most failures is weighed up and down."
)


def _notes(found: dict[str, list[Row]]) -> tuple[str, ...]:
    """Return what the reader must know about the experiments that were run."""
    notes = {_NORMALIZED: True, _SHIFTED: bool(found[SHIFT]), _BALANCED: bool(found[IMBALANCE])}
    return tuple(note for note, applies in notes.items() if applies)


#: The study in the catalogue.
CWSA: Final = StudyEntry(
    name="cwsa",
    title="Confidence-weighted selective accuracy",
    question=(
        "What do CWSA, CWSA+ and the area under them say of a model, and do they reward what they "
        "are meant to reward?"
    ),
    source=f"Shahnazari et al. (2025), {PAPER}",
    run=study_cwsa,
    quick={"repeats": 20},
    captions={
        "results": "One row a number. Expected: exact, of endless data. SD: over repeated samples.",
        "claims": (
            "A row for each reading of a claim and each data set, by the section of the paper. No "
            "data set: decided by simulated models or printed numbers."
        ),
        "models": (
            "Exact, of endless data, at the threshold of the experiments. Mean ± SD: over "
            "repeated samples."
        ),
        "areas": (
            "AUC-MCC: trapezoids over the thresholds, so between the coverages of the first and "
            "the last. Whole: from the origin to full coverage, a vertex for each confidence."
        ),
        NOISE: (
            "Another class instead of the true one, in a share of the samples: the mean over the "
            "labels that may be drawn."
        ),
        IMBALANCE: (
            "The class with the most failures is weighed to the share given. Its own CWSA does not "
            "change."
        ),
        "printed": (
            "Every number that the paper prints of a simulated model, beside what that model has. "
            "Away: in standard deviations of a sample of 1,000."
        ),
        SHIFT: "The first data set is the one that the model was made for.",
        COMPARISON: "None of these data sets is known to be a shift of another.",
        SHARPENING: (
            "The same answers, with logits divided by a temperature: below 1 each claim is bolder."
        ),
        "sweep": "Lines are exact for simulated models.",
    },
    glossary={
        "CWSA": (
            "Accepted samples weigh (confidence - threshold)/(1 - threshold), right ones added and "
            "wrong ones taken away; divided by the number of all samples."
        ),
        "CWSA+": "The same of the right ones alone, divided by the number accepted.",
        "AUC-MCC": "Area under a metric against coverage, over the thresholds of a sweep.",
        "Brier": "Mean of (confidence - right)²: least where claims are chances of being right.",
        "ECE": "How far confidence is from accuracy in bins of equal width, on average.",
        "Right": "Share of right answers, before anything is rejected.",
    },
    labels=TITLES,
)
