"""`CalibratedScore`: a confidence score whose numbers are probabilities of being right."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from abstain._foundation import json_records, records
from abstain._foundation.lazy_imports import special
from abstain.calibration import Calibration, Platt, Temperature, from_json
from abstain.confidence import SCORES, ConfidenceScore, FittedScore, ScoreState, from_arrays
from abstain.confidence import score as named_score
from abstain.confidence.kernels import CERTAIN
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

On = Literal["logits", "log_odds", "values", "probability"]
_FIELDS = ("name", "base", "on", "limits", "note", "calibration")
_KIND = "calibrated_score"
_BASE = "base."


@dataclass(frozen=True)
class CalibratedScore:
    """A confidence score with a fitted calibration; takes its place wherever scores go.

    Attributes
    ----------
    name : str
        The name that results carry, such as "msr+platt".
    base : str or fitted score
        What is calibrated: a name, or a state with ``score(predictions)``.
    calibration : Temperature, Platt, Isotonic or Binning
        The fitted state.
    on : {"logits", "log_odds", "values", "probability"}
        What of the base score the calibration takes.
    limits : (float, float) or None
        Log-odds are clipped to these, where probabilities of exactly 0 or 1 were among those
        fitted on.
    note : str
        What to know about the fit, or empty.

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
    on: On
    limits: tuple[float, float] | None = None
    note: str = ""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples; labels are not looked at.

        Parameters
        ----------
        predictions : Predictions
            With what the base score needs.

        Returns
        -------
        ConfidenceScore
            `probability` is the calibrated probability of being right. `values` rank: under Platt
            and temperature the log-odds, which do not round to ties near 1 (under a Platt slope
            that is not above 0 the base score itself, whose order the curve would turn); under
            isotonic and histogram the probabilities, ties and all.

        Raises
        ------
        MissingInputError
            The predictions lack what the base score needs.

        Examples
        --------
        >>> import abstain as ab
        >>> logits = [[4.0, 0.0]] * 4
        >>> p = ab.Predictions(logits=logits, labels=[0, 0, 0, 1])
        >>> ab.calibrate("msr", p, method="temperature").score(p).probability.round(4).tolist()
        [0.75, 0.75, 0.75, 0.75]
        """
        if isinstance(self.calibration, Temperature):
            T = self.calibration.temperature
            tempered = named_score(str(self.base), predictions, temperature=T)
            return ConfidenceScore(self.name, tempered.values, tempered.probability)
        own = named_score(self.base, predictions)
        x = what(own, self.on, self.base, predictions)
        p = self.calibration.apply(clipped(x, self.limits))
        values = p
        if isinstance(self.calibration, Platt):
            values = _log_odds(self.calibration, x) if self.calibration.slope > 0 else own.values
        return ConfidenceScore(self.name, values, p)

    def to_json(self) -> str:
        """Return it as a JSON text that `from_json` reads back exactly."""
        if not isinstance(self.base, str):
            hint = (
                "save all by `abstain.save` to a file that ends in '.npz'"
                if isinstance(self.base, FittedScore)
                else "save the `.calibration` alone"
            )
            raise InputError(f"the score {self.base.name!r} is no text; {hint}")
        return json.dumps(self._plain(self.base), allow_nan=False)

    def _plain(self, base: Any) -> dict[str, Any]:
        own = {field: getattr(self, field) for field in _FIELDS}
        state = json.loads(self.calibration.to_json())
        return {"kind": _KIND, "format": 1, **own, "base": base, "calibration": state}

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what is stored of it and of the fitted score that it calibrates.

        Plain values, such as JSON holds, and arrays by their place: "base.means".
        """
        if not isinstance(self.base, FittedScore):
            raise InputError("only a calibrated fitted score has arrays; use `to_json`")
        plain, arrays = self.base.to_arrays()
        return self._plain(plain), {_BASE + name: x for name, x in arrays.items()}

    @classmethod
    def from_arrays(
        cls, plain: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> "CalibratedScore":
        """Make it from what `to_arrays` gave, field by field checked."""
        for name in arrays:
            if not name.startswith(_BASE):
                json_records.raise_error(f"`{name}` is not a field of a calibrated score")
        base = plain.get("base")
        if not isinstance(base, Mapping):
            json_records.raise_error(
                f"the field `base` must be an object; got {json_records.short_repr(base)}"
            )
        own = {name.removeprefix(_BASE): x for name, x in arrays.items()}
        return _read({**plain, "base": from_arrays(base, own)})

    @classmethod
    def from_json(cls, text: str) -> "CalibratedScore":
        """Read back what `to_json` gave.

        Parameters
        ----------
        text : str
            JSON of kind "calibrated_score".

        Returns
        -------
        CalibratedScore
            Equal to the one that was written, to the last digit.

        Raises
        ------
        InputError
            If the text is no JSON of that kind, or a field is missing, unknown, there twice, of
            the wrong type or impossible. The field is named.

        Examples
        --------
        >>> import abstain as ab
        >>> p = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 1, 0, 1])
        >>> calibrated = ab.calibrate("confidence", p, method="isotonic")
        >>> ab.CalibratedScore.from_json(calibrated.to_json()) == calibrated
        True
        """
        try:
            found = json_records.parse_object(text)
            base = found.get("base", "")
            if not isinstance(base, str) or ("base" in found and not base):
                rule = "the field `base` must be the name of a score"
                json_records.raise_error(f"{rule}; got {json_records.short_repr(base)}")
            return _read(found)
        except InputError as error:
            raise InputError(f"`text` is not the JSON of a calibrated score: {error}") from None


@dataclass(frozen=True)
class _Saved:
    """The fields of a file."""

    name: records.NonEmptyText
    base: Any
    on: On
    limits: tuple[records.Number, records.Number] | None
    note: str
    calibration: dict[str, Any]

    def __post_init__(self) -> None:
        records.check(self)
        if self.limits is not None and self.limits[0] > self.limits[1]:
            json_records.raise_error(
                "the field `limits` must be two numbers, the smaller one first"
            )


def _read(given: Mapping[str, Any]) -> CalibratedScore:
    """Return the calibrated score of the fields of a file, each checked but the base."""
    found = dict(given)
    json_records.pop_kind(found, (_KIND,))
    json_records.pop_version(found, "format", (1,))
    own = records.from_fields(_Saved, found, "a calibrated score")
    state = from_json(json.dumps(own.calibration))
    if isinstance(state, Temperature) != (own.on == "logits"):
        json_records.raise_error(f"the field `on` must fit the calibration; got {own.on!r}")
    return CalibratedScore(own.name, own.base, state, own.on, own.limits, own.note)


def _log_odds(platt: Platt, x: FloatArray) -> FloatArray:
    """Return the log-odds of being right, of samples beyond the limits too, all finite."""
    most = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        out: FloatArray = platt.slope * x.astype(np.float64) + platt.intercept
    return np.clip(out, -most, most)


def what(
    own: ConfidenceScore, on: On, base: str | ScoreState, predictions: Predictions
) -> FloatArray:
    """Return what of a score the calibration takes, shape (n,)."""
    if on == "values":
        return np.asarray(own.values)
    if own.probability is None:
        raise MissingInputError(
            f"the score {own.name!r} was a probability where it was calibrated; here it is not "
            "within [0, 1]"
        )
    if on == "probability":
        return np.asarray(own.probability)
    if isinstance(base, str) and _in_log_odds(base, predictions):
        return np.asarray(own.values)
    log_odds: FloatArray = special.logit(own.probability.astype(np.float64))
    return np.clip(log_odds, -CERTAIN, CERTAIN)


def _in_log_odds(name: str, predictions: Predictions) -> bool:
    """Whether a score of the catalogue has log-odds as values, finer than its probability."""
    entry = SCORES.get(name.partition("@")[0])
    return name not in (predictions.confidence or {}) and (
        entry is not None and entry.unit == "log-odds"
    )


def clipped(x: FloatArray, limits: tuple[float, float] | None) -> FloatArray:
    """Return the numbers within the limits."""
    return x if limits is None else np.clip(x, *limits)


json_records.READERS[_KIND] = CalibratedScore.from_json
json_records.ARCHIVE_READERS[_KIND] = CalibratedScore.from_arrays
