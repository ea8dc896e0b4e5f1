"""Fit calibrations of confidence scores (`calibrate`)."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from abstain._foundation import checks
from abstain.calibration import Calibration, fit_binning, fit_isotonic, fit_platt
from abstain.calibration.temperature import fit_temperature_of_scores
from abstain.confidence import ConfidenceScore, FittedScore, ScoreState
from abstain.confidence import score as named_score
from abstain.confidence.kernels import CERTAIN
from abstain.confidence.softmax_scores import MSR
from abstain.errors import InputError, MissingInputError, suggest
from abstain.evaluation.calibration.score import (
    CalibratedScore,
    InputKind,
    calibration_input,
    clip_to_limits,
)
from abstain.evaluation.inputs import positive_weight_rows
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, FloatArray

CalibrationName = Literal["platt", "isotonic", "histogram", "temperature"]
CALIBRATIONS: tuple[CalibrationName, ...] = ("platt", "isotonic", "histogram", "temperature")

_FITS: dict[str, Callable[..., Calibration]] = {
    "platt": fit_platt,
    "isotonic": fit_isotonic,
    "histogram": fit_binning,
}
_OPTIONS: dict[str, tuple[str, ...]] = {
    "platt": ("smooth",),
    "isotonic": (),
    "histogram": ("bins", "binning", "limits"),
    "temperature": (),
}


def calibrate(
    score: str | ScoreState,
    predictions: Predictions,
    *,
    method: CalibrationName = "platt",
    loss: "str | CostMatrix | AnyArray | None" = None,
    name: str | None = None,
    **options: Any,
) -> CalibratedScore:
    """Fit a calibration of a confidence score on held-out predictions.

    Answers: how probable is it that an answer with this confidence is correct?

    Parameters
    ----------
    score : str or fitted score
        A confidence column, a registered score (``abstain list scores``), or a state with
        ``score(predictions)``.
    predictions : Predictions
        Held-out samples: neither the training samples of the model nor the samples that check
        the calibration. Their weights are used.
    method : {"platt", "isotonic", "histogram", "temperature"}, default="platt"
        A logistic curve, an isotonic (non-decreasing) curve, the accuracy in bins, or the
        temperature of the softmax (only for the score "msr").
    loss : str, CostMatrix or array of shape (n,), optional
        Loss in [0, 1]; by default the loss of the predictions, else "zero_one". A temperature is
        fitted to the labels instead.
    name : str, optional
        Name of the calibrated score; by default "SCORE+METHOD".
    **options
        Options of the method: `smooth` for "platt"; `bins`, `binning` and `limits` for
        "histogram".

    Returns
    -------
    CalibratedScore
        All functions that accept a score accept it: ``evaluate(test, scores=[calibrated])``.

    Raises
    ------
    InputError
        If the method or an option does not exist, or if `method` is "temperature" and the score
        is not "msr".
    DomainError
        If a loss is outside [0, 1]. For a temperature: if a label has no class or has
        probability 0.
    MissingInputError
        If the predictions do not have the inputs of the score.

    Notes
    -----
    If the score is a probability, Platt scaling is fitted on its log-odds, so that a calibrated
    score stays unchanged; otherwise it is fitted on the values of the score. Probabilities of
    exactly 0 or 1 are replaced by the outermost other probabilities, and `note` reports this.
    Cost: one sort; for a temperature 20 to 40 passes over the logits.

    Examples
    --------
    >>> import abstain as ab
    >>> held_out = ab.Predictions(logits=[[4.0, 0.0]] * 4, labels=[0, 0, 0, 1])
    >>> calibrated = ab.calibrate("msr", held_out, method="isotonic")
    >>> test = ab.Predictions(logits=[[5.0, 0.0], [0.0, 2.0]], labels=[0, 1])
    >>> calibrated.name, calibrated.score(test).probability.tolist()
    ('msr+isotonic', [0.75, 0.75])
    """
    checks.one_of(method, "method", CALIBRATIONS)
    _check_options(method, options)
    if name is not None and (not isinstance(name, str) or not name):  # type: ignore[redundant-expr]
        raise InputError(f"`name` must be a text that is not empty; got {name!r}")
    predictions, loss = positive_weight_rows(predictions, loss)
    # Of a result of `select_score`, only the selected state is kept, without its candidates.
    state = getattr(score, "state", None)
    score = state if isinstance(state, FittedScore) else score
    base_score = named_score(score, predictions)
    name = f"{base_score.name}+{method}" if name is None else name
    if method == "temperature":
        if loss is not None:
            raise InputError("`loss` is not used: a temperature is fitted to the labels; drop it")
        temperature = _fit_temperature(score, predictions)
        return CalibratedScore(name, MSR.name, temperature, "logits", note=temperature.note)
    losses = per_sample_loss(predictions, loss)
    input_kind = _input_kind(base_score, method)
    x = calibration_input(base_score, input_kind, score, predictions)
    limits, limits_note = _finite_limits(x) if input_kind == "log_odds" else (None, "")
    calibration = _FITS[method](
        clip_to_limits(x, limits), losses, weight=predictions.weight, **options
    )
    note = "; ".join(text for text in (limits_note, calibration.note) if text)
    return CalibratedScore(name, score, calibration, input_kind, limits, note)


def _check_options(method: str, options: Mapping[str, Any]) -> None:
    valid_options = _OPTIONS[method]
    for name in options:
        if name not in valid_options:
            listed = ", ".join(f"`{option}`" for option in valid_options) or "none"
            hint = suggest(name, valid_options)
            raise InputError(
                f"the method {method!r} has no option {name!r}.{hint} Its options: {listed}."
            )


def _input_kind(score: ConfidenceScore, method: str) -> InputKind:
    """Select the quantity to calibrate: Platt uses log-odds, bins use probabilities."""
    if score.probability is None or method == "isotonic":
        return "values"
    return "log_odds" if method == "platt" else "probability"


def _fit_temperature(score: str | ScoreState, predictions: Predictions) -> Any:
    if not isinstance(score, str) or score != MSR.name or score in (predictions.confidence or {}):
        raise InputError(
            "`method='temperature'` calibrates the softmax, that is the score 'msr'; got "
            f"{score if isinstance(score, str) else score.name!r}. Use 'platt' or 'isotonic'."
        )
    scores, codes = predictions.class_scores, predictions.label_codes
    if scores is None:
        raise MissingInputError(
            "a temperature needs class scores; pass `logits` or `probabilities`"
        )
    hint = (
        "The likelihood of an unknown class is 0 at every temperature: exclude these samples with "
        "`subset`."
    )
    checks.reject_entries("labels", "must name a class", codes, codes < 0, hint=hint)
    return fit_temperature_of_scores(scores, codes, predictions.weight)


def _finite_limits(log_odds: FloatArray) -> tuple[tuple[float, float] | None, str]:
    """Return the range of the finite log-odds and a note; (None, "") if all are finite or none."""
    is_finite = np.abs(log_odds) < CERTAIN
    infinite_share = 1.0 - float(is_finite.mean())
    if infinite_share == 0 or not is_finite.any():
        return None, ""
    low, high = float(log_odds[is_finite].min()), float(log_odds[is_finite].max())
    replacements = []
    if (log_odds <= -CERTAIN).any():
        replacements.append(f"{low:.3g}")
    if (log_odds >= CERTAIN).any():
        replacements.append(f"{high:.3g}")
    note = (
        f"{infinite_share:.1%} of the scores are probabilities of exactly 0 or 1, replaced by "
        f"log-odds {' and '.join(replacements)}"
    )
    return (low, high), note
