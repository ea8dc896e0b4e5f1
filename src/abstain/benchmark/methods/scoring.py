"""How outputs become what `abstain.confidence` scores; every number comes from there."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain.benchmark.methods.entry import Known
from abstain.benchmark.outputs import Outputs
from abstain.confidence import FittedScore, ScoreState, score
from abstain.errors import MissingInputError
from abstain.evaluation import fit_score
from abstain.predictions import Predictions
from abstain.typing import FloatArray


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
    >>> from abstain.benchmark.methods import unlabeled
    >>> from abstain.benchmark.outputs import Outputs
    >>> unlabeled(Outputs([[2.0, 0.0]], labels=[1], places=[0])).has_labels
    False
    """
    nothing = np.zeros(outputs.n)
    if not samples:
        return Predictions(logits=outputs.logits, features=outputs.features, loss=nothing)
    if outputs.samples is None:
        msg = "these outputs hold no `samples`; ask for them when the outputs are made"
        raise MissingInputError(msg)
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
    >>> from abstain.benchmark.methods import labeled
    >>> from abstain.benchmark.outputs import Outputs
    >>> labeled(Outputs([[2.0, 0.0], [1.0, 0.0]], labels=[0, -1], places=[0, 1])).n
    1
    """
    found = outputs.predictions()
    known = outputs.labels >= 0
    return found if known.all() else found.subset(known)


@dataclass(frozen=True, eq=False)
class ByScore:
    """Scores by a name in `SCORES`, or by a fitted score.

    Attributes
    ----------
    score : str or abstain.confidence.Scorer
        The name, or the state.
    samples : bool
        Whether it looks at passes or networks.
    temperature : float
        Divides the logits first; for scores that have no temperature of their own.
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


@dataclass(frozen=True)
class NamedScore:
    """Fits nothing: a score of the catalogue by its name.

    Attributes
    ----------
    score : str
        In `abstain.confidence.SCORES`.
    samples : bool
        Whether it looks at passes or networks.
    """

    score: str
    samples: bool = False

    def __call__(self, _: Known) -> ByScore:
        """Return the function that scores."""
        return ByScore(self.score, self.samples)


@dataclass(frozen=True)
class Tempered:
    """Fits the temperature on validation pictures by their likelihood.

    Attributes
    ----------
    score : str
        In `abstain.confidence.SCORES`; computed from the logits at that temperature.
    """

    score: str

    def __call__(self, known: Known) -> ByScore:
        """Return the function that scores."""
        state: Any = fit_score("temperature", labeled(known.validation), by="nll")
        return ByScore(self.score, temperature=state.temperature)


@dataclass(frozen=True)
class OnTraining:
    """Fits a score of `abstain.confidence.FITTED` on the training pictures.

    Attributes
    ----------
    kind : str
        Its name there.
    last_layer : bool
        Whether it is given the last layer.
    options : tuple of (str, value)
        Those that differ from the defaults.
    """

    kind: str
    last_layer: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, known: Known) -> ByScore:
        """Return the function that scores."""
        options = dict(self.options)
        if self.last_layer:
            options["last_layer"] = (known.weight, known.bias)
        return ByScore(fit_score(self.kind, labeled(known.train), **options))


@dataclass(frozen=True)
class OnValidation:
    """Chooses the parameter of a score of `abstain.confidence.FITTED` on validation pictures.

    Attributes
    ----------
    kind : str
        Its name there.
    metric : str
        By which it is chosen.
    """

    kind: str
    metric: str = "augrc"

    def __call__(self, known: Known) -> ByScore:
        """Return the function that scores."""
        state: FittedScore = fit_score(self.kind, labeled(known.validation), metric=self.metric)
        return ByScore(state)


def own(_: Known) -> "Own":
    """Return the function that reads what the objective learned."""
    return Own()


def own_mean(_: Known) -> "OwnMean":
    """Return the function that averages what the objective says in each pass."""
    return OwnMean()


@dataclass(frozen=True)
class Own:
    """The confidence that the objective learned."""

    def __call__(self, outputs: Outputs) -> FloatArray:
        """Return the confidences (n,)."""
        return np.array(_needed(outputs.confidence, "confidence"), dtype=np.float64)


@dataclass(frozen=True)
class OwnMean:
    """The mean over passes of a learned probability, as log-odds."""

    def __call__(self, outputs: Outputs) -> FloatArray:
        """Return the confidences (n,)."""
        odds = np.asarray(_needed(outputs.sample_confidence, "sample_confidence"))
        # A probability is a softmax over two classes, so its mean is what samples of them have.
        pairs = np.stack([odds, np.zeros_like(odds)], axis=2)
        scores = Predictions(logit_samples=pairs, loss=np.zeros(len(odds))).class_scores
        values: FloatArray = -np.diff(_needed(scores, "samples").values, axis=1)[:, 0]
        return values


def _needed(x: Any, name: str) -> Any:
    if x is None:
        msg = f"these outputs hold no `{name}`"
        raise MissingInputError(msg)
    return x
