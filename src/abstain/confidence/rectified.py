"""ReAct: logits from features clipped at a percentile of the training features."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.records import ClassNames, Number, Positive, axes
from abstain.confidence._entry import ConfidenceScore, positive_temperature
from abstain.confidence._fit_data import (
    confidences,
    doubles,
    feature_blocks,
    last_layer,
    logits_of,
    refuse_other_classes,
)
from abstain.confidence.fitted import FittedScore, option_name
from abstain.confidence.logit_scores import max_logit, negative_energy
from abstain.confidence.softmax_scores import max_softmax_response
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, FloatArray

#: The percentile of Sun et al.
DEFAULT_PERCENTILE = 90.0
#: What the clipped logits may be scored by.
Base = Literal["energy", "msr", "mls"]
BASES = get_args(Base)


@dataclass(frozen=True, eq=False, kw_only=True)
class RectifiedActivations(FittedScore):
    """A logit score of features whose large values are cut off.

    Attributes
    ----------
    name : str
        The name that results carry.
    classes : tuple
        The class names, in the order of the logits.
    threshold : float
        Features above it are set to it.
    base : {"energy", "msr", "mls"}
        The score of the logits.
    temperature : float
        Divides the logits, for "energy" and "msr".
    weight : ndarray of shape (K, d)
        The last layer's weight.
    bias : ndarray of shape (K,)
        The last layer's bias.
    """

    kind: ClassVar[str] = "react"

    classes: ClassNames
    threshold: Number
    base: Base
    temperature: Positive
    weight: Annotated[FloatArray, axes("K", "d")]
    bias: Annotated[FloatArray, axes("K")]

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        refuse_other_classes(predictions, self.classes, self.name)
        values = np.empty(predictions.n)
        k, d = self.weight.shape
        for rows, x in feature_blocks(predictions, d, self.name, also=k):
            logits = logits_of(np.minimum(x, self.threshold), self.weight, self.bias)
            values[rows] = self._of(logits)
        # No probability: the clipped logits may prefer another class than the prediction.
        return confidences(self.name, values)

    def _of(self, logits: FloatArray) -> FloatArray:
        score = negative_energy if self.base == "energy" else max_softmax_response
        plain = self.base == "mls"
        out: FloatArray = (
            max_logit(logits) if plain else score(logits, temperature=self.temperature)
        )
        return out


def fit_rectified(
    predictions: Predictions,
    *,
    last_layer: AnyArray,
    percentile: Any,
    base: Base,
    temperature: Any,
) -> RectifiedActivations:
    """Fit the threshold on the training features."""
    share = checks.fraction(percentile, "percentile", high=100.0)
    checks.one_of(base, "base", BASES)
    cooled = positive_temperature(temperature)
    if base == "mls" and cooled != 1:
        msg = "a temperature does not change the order of the largest logit; drop `temperature`"
        raise InputError(msg)
    weight, bias = _layer(last_layer, predictions)
    return RectifiedActivations(
        name=option_name(
            "react",
            base=(base, "energy"),
            percentile=(share, DEFAULT_PERCENTILE),
            T=(cooled, 1.0),
        ),
        classes=predictions.class_names or tuple(range(len(bias))),
        threshold=float(np.percentile(doubles(predictions), share)),
        base=base,
        temperature=cooled,
        weight=weight,
        bias=bias,
    )


def _layer(given: AnyArray, predictions: Predictions) -> tuple[FloatArray, ...]:
    return last_layer(given, predictions, RectifiedActivations.kind)
