"""How outputs become what `abstain.confidence` scores; every number comes from there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from abstain.confidence import ScoreState, score
from abstain.confidence.energies import logits_of
from abstain.confidence.fitted_score import doubles
from abstain.errors import MissingInputError
from abstain.evaluation import fit_score
from abstain.evaluation.criterion import LIKELIHOOD
from abstain.metrics.catalogue import PRIMARY
from abstain.predictions import Predictions
from abstain.typing import FloatArray
from abstain_bench.runs.methods.entry import Known, ScoreFunction
from abstain_bench.runs.outputs import Outputs

#: What a method does with what it may be fitted on.
Fit: TypeAlias = Callable[[Known], ScoreFunction]


def unlabeled(outputs: Outputs, *, samples: bool = False) -> Predictions:
    """Return what a network said as predictions that hold no label.

    Answers: what may a method look at when it scores?

    Parameters
    ----------
    outputs : Outputs
        For n pictures.
    samples : bool, default=False
        With the passes or networks, and without the logits: classes are then predicted by the
        mean over them.

    Returns
    -------
    Predictions
        Logits and features, or samples. The loss, which has to be there, is 0.

    Raises
    ------
    MissingInputError
        Samples are asked for and there are none.

    Examples
    --------
    >>> from abstain_bench.runs.methods import unlabeled
    >>> from abstain_bench.runs.outputs import Outputs
    >>> unlabeled(Outputs([[2.0, 0.0]], labels=[1], places=[0])).has_labels
    False
    """
    nothing = np.zeros(outputs.n)
    if not samples:
        return Predictions(logits=outputs.logits, features=outputs.features, loss=nothing)
    if outputs.samples is None:
        raise MissingInputError(
            "these outputs hold no `samples`; ask for them when the outputs are made"
        )
    return Predictions(logit_samples=outputs.samples, loss=nothing)


def labeled(outputs: Outputs) -> Predictions:
    """Return what a network said, with labels, of the pictures of a known class.

    Answers: what may a method be fitted on?

    Parameters
    ----------
    outputs : Outputs
        For training or validation pictures.

    Returns
    -------
    Predictions
        As `Outputs.predictions` makes them.

    Examples
    --------
    >>> from abstain_bench.runs.methods import labeled
    >>> from abstain_bench.runs.outputs import Outputs
    >>> labeled(Outputs([[2.0, 0.0], [1.0, 0.0]], labels=[0, -1], places=[0, 1])).n
    1
    """
    found = outputs.predictions()
    known = outputs.labels >= 0
    return found if known.all() else found.subset(known)


@dataclass(frozen=True, eq=False)
class ByScore:
    """Scores by a name in `SCORES`, or by a fitted score.

    It looks at passes or networks where `samples`; `temperature` divides the logits first, for
    scores that have none of their own.
    """

    score: str | ScoreState
    samples: bool = False
    temperature: float = 1.0

    def __call__(self, outputs: Outputs) -> FloatArray:
        """Return the confidences (n,)."""
        seen = unlabeled(outputs, samples=self.samples)
        if self.temperature != 1.0:
            logits = np.asarray(outputs.logits, dtype=np.float64) / self.temperature
            seen = Predictions(logits=logits, loss=seen.loss)
        return np.asarray(score(self.score, seen).values, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ByLastLayer:
    """Scores by a score of `FITTED` that is the last layer, and nothing learned, of features."""

    kind: str
    weight: FloatArray | None
    bias: FloatArray | None

    def __call__(self, outputs: Outputs) -> FloatArray:
        """Return the confidences (n,)."""
        seen = unlabeled(outputs)
        state = fit_score(self.kind, seen, last_layer=(self.weight, self.bias))
        return np.asarray(score(state, seen).values, dtype=np.float64)


# ----------------------------------------------------------------------- how methods are fitted
def unfitted(function: ScoreFunction) -> Fit:
    """Fit nothing."""
    return lambda _: function


def named(name: str, *, samples: bool = False) -> Fit:
    """Fit nothing: a score of `abstain.confidence.SCORES`."""
    return unfitted(ByScore(name, samples))


def tempered(name: str) -> Fit:
    """Fit the temperature of the logits on validation pictures by their likelihood."""

    def fit(known: Known) -> ByScore:
        state: Any = fit_score("temperature", labeled(known.part("validation")), by=LIKELIHOOD)
        return ByScore(name, temperature=state.temperature)

    return fit


def on_training(
    kind: str, *, last_layer: bool = False, n_first: int | None = None, **options: Any
) -> Fit:
    """Fit a score of `abstain.confidence.FITTED` on the training pictures, or the first of them."""

    def fit(known: Known) -> ByScore:
        given = dict(options)
        if last_layer:
            given["last_layer"] = (known.weight, known.bias)
        train = labeled(known.part("train"))
        if n_first is not None:
            train = train.subset(np.arange(min(n_first, train.n)))
        return ByScore(fit_score(kind, train, **given))

    return fit


def rectified_with_temperature(percentile: float) -> Fit:
    """Fit ReAct on the training pictures, and a temperature of its logits on validation ones."""

    def fit(known: Known) -> ByScore:
        train, validation = (labeled(known.part(name)) for name in ("train", "validation"))
        options: dict[str, Any] = {
            "base": "msr",
            "percentile": percentile,
            "last_layer": (known.weight, known.bias),
        }
        plain: Any = fit_score("react", train, **options)
        logits = logits_of(plain.shaped(doubles(validation)), plain.weight, plain.bias)
        rectified = Predictions(logits=logits, labels=validation.labels)
        cooled: Any = fit_score("temperature", rectified, by=LIKELIHOOD)
        return ByScore(fit_score("react", train, temperature=cooled.temperature, **options))

    return fit


def on_nothing(kind: str) -> Fit:
    """Take the last layer for a score of `abstain.confidence.FITTED` that learns of no picture."""
    return lambda known: ByLastLayer(kind, known.weight, known.bias)


def on_validation(kind: str, *, metric: str = PRIMARY) -> Fit:
    """Choose the parameter of a score of `abstain.confidence.FITTED` on validation pictures."""
    return lambda known: ByScore(fit_score(kind, labeled(known.part("validation")), metric=metric))


def own(outputs: Outputs) -> FloatArray:
    """Return the confidence that the objective learned."""
    return np.array(_needed(outputs.confidence, "confidence"), dtype=np.float64)


def own_mean(outputs: Outputs) -> FloatArray:
    """Return the mean over passes of a learned probability, as log-odds."""
    odds = np.asarray(_needed(outputs.sample_confidence, "sample_confidence"))
    # A probability is a softmax over two classes, so its mean is what samples of them have.
    pairs = np.stack([odds, np.zeros_like(odds)], axis=2)
    scores = Predictions(logit_samples=pairs, unlabeled=True).class_scores
    values: FloatArray = -np.diff(_needed(scores, "samples").values, axis=1)[:, 0]
    return values


def own_waic(outputs: Outputs) -> FloatArray:
    """Return the mean over passes of a learned probability, less its standard deviation."""
    p = expit(np.asarray(_needed(outputs.sample_confidence, "sample_confidence")))
    values: FloatArray = p.mean(axis=1) - p.std(axis=1)
    return values


def _needed(x: Any, name: str) -> Any:
    if x is None:
        raise MissingInputError(f"these outputs hold no `{name}`")
    return x
