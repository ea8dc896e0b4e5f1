"""Calibrate confidence scores to probabilities of a correct prediction (`calibrate`)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from abstain._foundation import checks, json_records, records
from abstain._foundation.lazy_imports import special
from abstain.calibration import (
    Calibration,
    Platt,
    Temperature,
    fit_binning,
    fit_isotonic,
    fit_platt,
    from_json,
)
from abstain.calibration.temperature import fit_temperature_of_scores
from abstain.confidence import SCORES, ConfidenceScore, FittedScore, ScoreState, from_arrays
from abstain.confidence import score as named_score
from abstain.confidence.kernels import CERTAIN
from abstain.confidence.softmax_scores import MSR
from abstain.errors import InputError, MissingInputError, suggest
from abstain.evaluation.inputs import positive_weight_rows
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray

InputKind = Literal["logits", "log_odds", "values", "probability"]
_KIND = "calibrated_score"
#: Prefix of the array names that belong to the base score in an archive.
_BASE_PREFIX = "base."


@dataclass(frozen=True)
class CalibratedScore:
    """A confidence score with a fitted calibration.

    A calibrated score can be passed to every function that accepts a fitted score.

    Attributes
    ----------
    name : str
        Name of the score in results, such as "msr+platt".
    base : str or fitted score
        The score to which the calibration is applied. Either the name of a score or an object with
        a method ``score(predictions)``.
    calibration : Temperature, Platt, Isotonic or Binning
        The fitted calibration.
    input_kind : {"logits", "log_odds", "values", "probability"}
        The quantity of the base score to which the calibration is applied.
    limits : (float, float) or None
        Bounds to which log-odds are clipped. `limits` is None unless the calibration samples have
        probabilities of exactly 0 or 1.
    note : str
        Remark about the fit, or an empty string.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.calibration import Platt
    >>> platt = Platt(slope=0.5, intercept=0.0, smooth=True, n=1000)
    >>> calibrated = ab.CalibratedScore("msr+platt", "msr", platt, "log_odds")
    >>> p = ab.Predictions(logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 0])
    >>> calibrated.score(p).probability.round(4).tolist()
    [0.7311, 0.6225]
    """

    name: str
    base: str | ScoreState
    calibration: Calibration
    input_kind: InputKind
    limits: tuple[float, float] | None = None
    note: str = ""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the calibrated confidences of samples, which need no labels.

        Parameters
        ----------
        predictions : Predictions
            Predictions with the inputs of the base score.

        Returns
        -------
        ConfidenceScore
            `probability` is the calibrated probability of a correct prediction, and `values` rank
            the samples. `values` are log-odds for Platt scaling and temperature, because
            probabilities near 1 would be tied by rounding. If the Platt slope is at most 0,
            `values` are the base score, because the calibration would reverse the order. For
            isotonic and histogram calibration, `values` are the probabilities.

        Raises
        ------
        MissingInputError
            If the predictions do not have the inputs of the base score.

        Examples
        --------
        >>> import abstain as ab
        >>> logits = [[4.0, 0.0]] * 4
        >>> p = ab.Predictions(logits=logits, labels=[0, 0, 0, 1])
        >>> ab.calibrate("msr", p, method="temperature").score(p).probability.round(4).tolist()
        [0.75, 0.75, 0.75, 0.75]
        """
        if isinstance(self.calibration, Temperature):
            temperature = self.calibration.temperature
            tempered = named_score(str(self.base), predictions, temperature=temperature)
            return ConfidenceScore(self.name, tempered.values, tempered.probability)
        base_score = named_score(self.base, predictions)
        x = calibration_input(base_score, self.input_kind, self.base, predictions)
        probability = self.calibration.apply(clip_to_limits(x, self.limits))
        if not isinstance(self.calibration, Platt):
            values = probability
        elif self.calibration.slope > 0:
            values = _platt_log_odds(self.calibration, x)
        else:
            values = base_score.values
        return ConfidenceScore(self.name, values, probability)

    def to_json(self) -> str:
        """Return a JSON text from which `from_json` restores the score exactly."""
        if isinstance(self.base, str):
            return json.dumps(self._json_fields(self.base), allow_nan=False)
        hint = "save only its `.calibration`"
        if isinstance(self.base, FittedScore):
            hint = "save it with `abstain.save` to a file that ends in '.npz'"
        raise InputError(f"the base score {self.base.name!r} cannot be written as JSON; {hint}")

    def _json_fields(self, base: Any) -> dict[str, Any]:
        """Return the fields of the JSON text; `base` represents the base score."""
        return {
            "kind": _KIND,
            "format": 1,
            "name": self.name,
            "base": base,
            "on": self.input_kind,
            "limits": self.limits,
            "note": self.note,
            "calibration": json.loads(self.calibration.to_json()),
        }

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the JSON fields and the arrays of the fitted base score.

        The names of the arrays begin with "base.", as in "base.means".
        """
        if not isinstance(self.base, FittedScore):
            raise InputError("only a calibration of a fitted score has arrays; use `to_json`")
        base_fields, base_arrays = self.base.to_arrays()
        arrays = {_BASE_PREFIX + name: array for name, array in base_arrays.items()}
        return self._json_fields(base_fields), arrays

    @classmethod
    def from_arrays(
        cls, plain: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> "CalibratedScore":
        """Validate the result of `to_arrays`, and restore the score."""
        for name in arrays:
            if not name.startswith(_BASE_PREFIX):
                json_records.raise_error(f"`{name}` is not a field of a calibrated score")
        base = plain.get("base")
        if not isinstance(base, Mapping):
            json_records.raise_error(
                f"the field `base` must be an object; got {json_records.short_repr(base)}"
            )
        base_arrays = {name.removeprefix(_BASE_PREFIX): x for name, x in arrays.items()}
        return _parse_fields({**plain, "base": from_arrays(base, base_arrays)})

    @classmethod
    def from_json(cls, text: str) -> "CalibratedScore":
        """Restore a score from JSON text that `to_json` returned.

        Parameters
        ----------
        text : str
            JSON text of kind "calibrated_score".

        Returns
        -------
        CalibratedScore
            A score with the same parameters as the saved score.

        Raises
        ------
        InputError
            If the text is not JSON of this kind, or if a field is missing, unknown, duplicate or
            invalid. The message names the field.

        Examples
        --------
        >>> import abstain as ab
        >>> p = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 1, 0, 1])
        >>> calibrated = ab.calibrate("confidence", p, method="isotonic")
        >>> ab.CalibratedScore.from_json(calibrated.to_json()) == calibrated
        True
        """
        try:
            fields = json_records.parse_object(text)
            base = fields.get("base", "")
            if not isinstance(base, str) or ("base" in fields and not base):
                rule = "the field `base` must be the name of a score"
                json_records.raise_error(f"{rule}; got {json_records.short_repr(base)}")
            return _parse_fields(fields)
        except InputError as error:
            raise InputError(f"`text` is not the JSON of a calibrated score: {error}") from None


@dataclass(frozen=True)
class _SavedFields:
    """The fields of the JSON text of a calibrated score."""

    name: records.NonEmptyText
    base: Any
    on: InputKind
    limits: tuple[records.Number, records.Number] | None
    note: str
    calibration: dict[str, Any]

    def __post_init__(self) -> None:
        records.check(self)
        if self.limits is not None and self.limits[0] > self.limits[1]:
            json_records.raise_error(
                "the field `limits` must be two numbers, the smaller one first"
            )


def _parse_fields(fields: Mapping[str, Any]) -> CalibratedScore:
    """Validate all fields except `base`, and return the calibrated score."""
    fields = dict(fields)
    json_records.pop_kind(fields, (_KIND,))
    json_records.pop_version(fields, "format", (1,))
    saved = records.from_fields(_SavedFields, fields, "a calibrated score")
    calibration = from_json(json.dumps(saved.calibration))
    if isinstance(calibration, Temperature) != (saved.on == "logits"):
        json_records.raise_error(f"the field `on` must fit the calibration; got {saved.on!r}")
    return CalibratedScore(
        name=saved.name,
        base=saved.base,
        calibration=calibration,
        input_kind=saved.on,
        limits=saved.limits,
        note=saved.note,
    )


def _platt_log_odds(platt: Platt, x: FloatArray) -> FloatArray:
    """Convert probabilities to finite log-odds."""
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        log_odds: FloatArray = platt.slope * x.astype(np.float64) + platt.intercept
    return np.clip(log_odds, -largest, largest)


def calibration_input(
    score: ConfidenceScore, kind: InputKind, base: str | ScoreState, predictions: Predictions
) -> FloatArray:
    """Return the values of the base score that the calibration transforms, shape (n,)."""
    if kind == "values":
        return np.asarray(score.values)
    if score.probability is None:
        raise MissingInputError(
            f"the score {score.name!r} was a probability in the fit of the calibration, but its "
            "values are not within [0, 1] in these data"
        )
    if kind == "probability":
        return np.asarray(score.probability)
    if isinstance(base, str) and _has_log_odds(base, predictions):
        return np.asarray(score.values)
    log_odds: FloatArray = special.logit(score.probability.astype(np.float64))
    return np.clip(log_odds, -CERTAIN, CERTAIN)


def _has_log_odds(name: str, predictions: Predictions) -> bool:
    """Return whether the values of a registered score are log-odds of its probabilities."""
    if name in (predictions.confidence or {}):
        return False
    entry = SCORES.get(name.partition("@")[0])
    return entry is not None and entry.unit == "log-odds"


def clip_to_limits(x: FloatArray, limits: tuple[float, float] | None) -> FloatArray:
    """Clip numbers to the limits, if there are any."""
    return x if limits is None else np.clip(x, *limits)


json_records.READERS[_KIND] = CalibratedScore.from_json
json_records.ARCHIVE_READERS[_KIND] = CalibratedScore.from_arrays


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
    """Fit a calibration of a confidence score to held-out predictions.

    Answers: how probable is it that an answer with this confidence is correct?

    Parameters
    ----------
    score : str or fitted score
        A confidence column, a registered score (``abstain list scores``), or an object with a
        method ``score(predictions)``.
    predictions : Predictions
        Held-out samples, which must not contain training samples of the model or samples on which
        the calibration is checked. Sample weights are used in the fit.
    method : {"platt", "isotonic", "histogram", "temperature"}, default="platt"
        Calibration method. "platt" fits a logistic curve, "isotonic" fits a non-decreasing curve,
        and "histogram" uses the accuracy in bins. "temperature" fits the temperature of the softmax
        and is only valid for the score "msr".
    loss : str, CostMatrix or array of shape (n,), optional
        Loss in [0, 1]. The default is the loss of the predictions if they have one, and "zero_one"
        otherwise. The method "temperature" uses the labels instead of a loss.
    name : str, optional
        Name of the calibrated score. The default is "SCORE+METHOD".
    **options
        Options of the method. The option of "platt" is `smooth`. The options of "histogram" are
        `bins`, `binning` and `limits`.

    Returns
    -------
    CalibratedScore
        The calibrated score. The result can be passed to every function that accepts a score, such
        as ``evaluate(test, scores=[calibrated])``.

    Raises
    ------
    InputError
        If the method or an option does not exist, or if `method` is "temperature" and the score
        is not "msr".
    DomainError
        If a loss is outside [0, 1]. For the method "temperature", DomainError is also raised if a
        label is not a class or has probability 0.
    MissingInputError
        If the predictions do not have the inputs of the score.

    Notes
    -----
    If the score is a probability, Platt scaling is fitted to its log-odds, so that a calibrated
    score stays unchanged. Otherwise, Platt scaling is fitted to the values of the score. A
    probability of exactly 0 or 1 is replaced by the smallest or the largest other probability, and
    `note` reports the replacement. The fit sorts the samples once. The fit of a temperature
    requires 20 to 40 passes over the logits.

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
    # Only the selected state of a result of `select_score` is kept, without the other candidates.
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
    fit = _FITS[method]
    calibration = fit(clip_to_limits(x, limits), losses, weight=predictions.weight, **options)
    note = "; ".join(text for text in (limits_note, calibration.note) if text)
    return CalibratedScore(name, score, calibration, input_kind, limits, note)


def _check_options(method: str, options: Mapping[str, Any]) -> None:
    """Raise InputError for options that the calibration method does not support."""
    valid_options = _OPTIONS[method]
    for name in options:
        if name not in valid_options:
            listed = ", ".join(f"`{option}`" for option in valid_options) or "none"
            hint = suggest(name, valid_options)
            raise InputError(
                f"the method {method!r} has no option {name!r}.{hint} Its options: {listed}."
            )


def _input_kind(score: ConfidenceScore, method: str) -> InputKind:
    """Return the values of a score that a calibration method transforms."""
    if score.probability is None or method == "isotonic":
        return "values"
    return "log_odds" if method == "platt" else "probability"


def _fit_temperature(score: str | ScoreState, predictions: Predictions) -> Any:
    """Return the softmax temperature that maximizes the likelihood of the labels."""
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
    """Return the range of finite log-odds and a note; None and "" if all log-odds are finite."""
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
