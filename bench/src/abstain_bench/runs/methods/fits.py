"""Functions that fit the score of a method; all numbers come from `abstain.confidence`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from abstain.confidence import ConfidenceScore, ScoreState
from abstain.confidence.energies import compute_logits
from abstain.confidence.fitted_score import features_as_double
from abstain.evaluation import fit_score
from abstain.evaluation.score_selection import LIKELIHOOD
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import Predictions
from abstain.typing import Array
from abstain_bench.runs.methods.entry import FitData

FitFunction: TypeAlias = Callable[[FitData], ScoreState]


def fit_temperature(data: FitData) -> ScoreState:
    """Fit the temperature of the softmax response on validation images by maximum likelihood."""
    return fit_score("temperature", data.split("validation"), objective=LIKELIHOOD)


def fit_pnorm(data: FitData) -> ScoreState:
    """Select the exponent of the p-norm on validation images."""
    return fit_score("pnorm", data.split("validation"), metric=DEFAULT_METRIC)


def fitted_on_train(
    kind: str, *, last_layer: bool = False, n_first: int | None = None, **options: Any
) -> FitFunction:
    """Return a function that fits a score of `FITTED` on all or the first training images."""

    def fit(data: FitData) -> ScoreState:
        train = data.split("train")
        if n_first is not None:
            train = train.subset(np.arange(min(n_first, train.n)))
        layer: dict[str, Any] = {"last_layer": (data.weight, data.bias)} if last_layer else {}
        return fit_score(kind, train, **options, **layer)

    return fit


@dataclass(frozen=True, eq=False)
class LastLayerScore:
    """A score of `FITTED` whose only parameters are those of the last layer."""

    name: str
    weight: Array | None
    bias: Array | None

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Check the last layer against the logits and compute the confidences (n,)."""
        last_layer = (self.weight, self.bias)
        return fit_score(self.name, predictions, last_layer=last_layer).score(predictions)


def fitted_react_with_temperature(percentile: float) -> FitFunction:
    """Return a function that fits ReAct on training images and its temperature on validation."""

    def fit(data: FitData) -> ScoreState:
        train, validation = data.split("train"), data.split("validation")
        options: dict[str, Any] = {
            "base": "msr",
            "percentile": percentile,
            "last_layer": (data.weight, data.bias),
        }
        plain: Any = fit_score("react", train, **options)
        logits = compute_logits(
            plain.reshape(features_as_double(validation)), plain.weight, plain.bias
        )
        rectified = Predictions(logits=logits, labels=validation.labels)
        tempered: Any = fit_score("temperature", rectified, objective=LIKELIHOOD)
        return fit_score("react", train, temperature=tempered.temperature, **options)

    return fit
