"""`calibrate`: a confidence score to one whose numbers are probabilities of being right."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from abstain._foundation import checks
from abstain.calibration import Calibration, fit_binning, fit_isotonic, fit_platt
from abstain.calibration.temperature import temperature_of
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
from abstain.evaluation.positive_weights import positive_weight_rows
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

    Answers: how likely is an answer right, given its confidence?

    Parameters
    ----------
    score : str or fitted score
        A confidence column, a name of the catalogue (``abstain list scores``), or a state with
        ``score(predictions)``.
    predictions : Predictions
        Held out: neither what the model was trained on nor what the result is checked on. Its
        weights count.
    method : {"platt", "isotonic", "histogram", "temperature"}, default="platt"
        A logistic curve, a curve that never falls, the share right in bins, or the temperature
        of the softmax, which is for the score "msr" alone.
    loss : str, CostMatrix or array of shape (n,), optional
        What counts as wrong, in [0, 1]; by default the loss that came with the predictions, else
        "zero_one". Temperature looks at the labels instead.
    name : str, optional
        By default "SCORE+METHOD".
    **options
        Of the method: `smooth` for "platt"; `bins`, `binning` and `limits` for "histogram".

    Returns
    -------
    CalibratedScore
        Goes wherever a score does: ``evaluate(test, scores=[calibrated])``.

    Raises
    ------
    InputError
        If the method or an option does not exist, or temperature is asked of another score.
    DomainError
        If a loss is outside [0, 1], or a label has no class or probability 0 and temperature is
        asked for.
    MissingInputError
        If the predictions lack what the score needs.

    Notes
    -----
    Platt scaling is fitted on log-odds where the score is a probability, so that it can leave a
    calibrated score as it is, and on the score's own values otherwise. Probabilities that are
    stored as exactly 0 or 1 are then taken as the outermost others, which `note` says. Cost: one
    sort, temperature 20 to 40 passes over the logits.

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
    _refuse_unknown(method, options)
    given: object = name
    if given is not None and (not isinstance(given, str) or not given):
        raise InputError(f"`name` must be a text that is not empty; got {name!r}")
    predictions, loss = positive_weight_rows(predictions, loss)
    # What `select_score` chose; the other candidates need not be kept.
    state = getattr(score, "state", None)
    score = state if isinstance(state, FittedScore) else score
    own = named_score(score, predictions)
    named = f"{own.name}+{method}" if name is None else name
    if method == "temperature":
        if loss is not None:
            raise InputError(
                "`loss` has no meaning for a temperature, which is fitted to the labels; drop it"
            )
        cooled = _temperature(score, predictions)
        return CalibratedScore(named, MSR.name, cooled, "logits", note=cooled.note)
    losses = per_sample_loss(predictions, loss)
    on = _on(own, method)
    x = calibration_input(own, on, score, predictions)
    limits, said = _limits(x) if on == "log_odds" else (None, "")
    fitted = _FITS[method](clip_to_limits(x, limits), losses, weight=predictions.weight, **options)
    note = "; ".join(part for part in (said, fitted.note) if part)
    return CalibratedScore(named, score, fitted, on, limits, note)


def _refuse_unknown(method: str, options: Mapping[str, Any]) -> None:
    known = _OPTIONS[method]
    for name in options:
        if name not in known:
            has = ", ".join(f"`{option}`" for option in known) or "none"
            raise InputError(
                f"the method {method!r} has no option {name!r}.{suggest(name, known)} It has {has}."
            )


def _on(own: ConfidenceScore, method: str) -> InputKind:
    """Choose what of the score is calibrated: a probability has log-odds and equal widths."""
    if own.probability is None or method == "isotonic":
        return "values"
    return "log_odds" if method == "platt" else "probability"


def _temperature(score: str | ScoreState, predictions: Predictions) -> Any:
    if not isinstance(score, str) or score != MSR.name or score in (predictions.confidence or {}):
        raise InputError(
            "`method='temperature'` calibrates the softmax, that is the score 'msr'; got "
            f"{score if isinstance(score, str) else score.name!r}. Use 'platt' or 'isotonic'."
        )
    scores, codes = predictions.class_scores, predictions.label_codes
    if scores is None:
        raise MissingInputError(
            "a temperature needs class scores; give `logits` or `probabilities`"
        )
    hint = "No temperature makes a sample of no known class likely: leave them out with `subset`."
    checks.reject_entries("labels", "must name a class", codes, codes < 0, hint=hint)
    return temperature_of(scores, codes, predictions.weight)


def _limits(x: FloatArray) -> tuple[tuple[float, float] | None, str]:
    """Return the outermost log-odds that are numbers, where some are not."""
    known = np.abs(x) < CERTAIN
    share = 1.0 - float(known.mean())
    if share == 0 or not known.any():
        return None, ""
    low, high = float(x[known].min()), float(x[known].max())
    ends = [f"{end:.3g}" for end, met in ((low, x <= -CERTAIN), (high, x >= CERTAIN)) if met.any()]
    said = (
        f"{share:.1%} of the scores are probabilities of exactly 0 or 1, taken as log-odds "
        f"{' and '.join(ends)}"
    )
    return (low, high), said
