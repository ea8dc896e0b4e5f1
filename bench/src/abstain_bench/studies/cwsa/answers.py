"""Predictions of a real model as the study takes them: from files, or of digits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError
from abstain.evaluation.inputs import compute_scores, join
from abstain.predictions import Predictions, per_sample_loss
from abstain.typing import FloatArray, IntArray
from abstain_bench.studies._inputs import DataArgument, named_datasets

#: What the digits are called; with their shifts, which are the second part of the name.
DIGITS: Final = "digits"

#: Standard deviations of what is added to pixels from 0 to 16.
NOISES: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)


#: The least log-odds of a confidence of exactly 1 when it is sharpened: those of 1 - 1e-12.
_CERTAIN: Final = 27.63


@dataclass(frozen=True, eq=False)
class Answers:
    """Confidences of a model in [0, 1], whether it was wrong, and logits where they are known."""

    name: str
    confidence: FloatArray
    loss: FloatArray
    logits: FloatArray | None = None
    labels: IntArray | None = None
    #: How many classes there are, as far as is known.
    classes: int = 2
    #: The data set and the score that they are from; `name` has both where there are several.
    data: str = ""
    score: str = ""

    @cached_property
    def right(self) -> float:
        """Share of right answers."""
        return float(1 - self.loss.mean())

    def sharpened(self, temperature: float) -> FloatArray:
        """Return the confidences of logits divided by a temperature.

        Without logits, the log-odds of the confidence are divided by it.
        """
        return np.asarray(special.expit(self.sharpened_log_odds(temperature)))

    def sharpened_log_odds(self, temperature: float) -> FloatArray:
        """Return the log-odds of the sharpened confidences, which do not round to 1.

        Rank metrics need them: many sharpened confidences are exactly 1 in float64.
        """
        if self.logits is None:
            return _finite(special.logit(self.confidence)) / temperature
        scaled = self.logits / temperature
        top = scaled.argmax(axis=1)[:, None]
        others = scaled.copy()
        np.put_along_axis(others, top, -np.inf, axis=1)
        largest = np.take_along_axis(scaled, top, axis=1)[:, 0]
        return _finite(largest - special.logsumexp(others, axis=1))

    def relabeled(self, rate: float) -> "Answers":
        """Return what is measured when that share of the labels is another class, in expectation.

        The loss of a sample is then the chance that its answer counts as wrong: what CWSA, CWSA+
        and accuracies have on average over the labels that are drawn.
        """
        # A wrong answer is right by chance where the false label is the class that was named.
        lucky = rate / max(self.classes - 1, 1)
        return replace(self, loss=self.loss * (1 - lucky) + (1 - self.loss) * rate)


def _finite(log_odds: FloatArray) -> FloatArray:
    """Replace infinite log-odds by finite ones beyond all others."""
    largest = np.abs(log_odds[np.isfinite(log_odds)]).max(initial=0.0)
    limit = max(_CERTAIN, float(largest) + 1.0)
    return np.clip(log_odds, -limit, limit)


def answers_of(data: DataArgument, scores: Sequence[str]) -> list[Answers]:
    """Return files as the study takes them; without any, the digits."""
    parts = named_datasets(data)
    if not parts:
        return digits()
    return [found for name, p in parts.items() for found in _of_part(name, p, scores)]


def _of_part(name: str, p: Predictions, scores: Sequence[str]) -> list[Answers]:
    if p.weight is not None:
        raise InputError(
            f"the study changes labels and classes; {name!r} has weights, so leave them out"
        )
    asked = list(scores) or list(p.confidence or {}) or [BASELINE]
    losses = per_sample_loss(p, None).astype(np.float64)
    out = []
    for own in compute_scores(p, asked):
        s = join(p, own, losses)
        if not (s.has_probability and s.is_binary):
            continue
        view = s.class_view
        logits = None
        if view is not None and view.log_probabilities is not None and own.name == BASELINE:
            logits = np.asarray(view.log_probabilities, dtype=np.float64)
        out.append(
            Answers(
                name if len(asked) == 1 else f"{name}, {own.name}",
                np.asarray(s.probability_or_confidence, dtype=np.float64),
                losses,
                logits,
                None if view is None else np.asarray(view.labels),
                2 if view is None else len(view.classes),
                name,
                own.name,
            )
        )
    if not out:
        raise MissingInputError(
            f"{name!r} has no confidence in [0, 1] with a 0/1 loss; {asked} were tried"
        )
    return out


def digits(*, noises: Sequence[float] = NOISES) -> list[Answers]:
    """Classify half of scikit-learn's digits by a softmax regression on the other half.

    The first has the pixels as they are; the others with noise that the model never saw.
    """
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    found: Any = load_digits()
    draw = np.random.default_rng(0)
    order = draw.permutation(found.target.size)
    train, test = order[: order.size // 2], order[order.size // 2 :]
    # Of pixels from 0 to 1 the penalty of scikit-learn leaves it less sure than it could be.
    model = LogisticRegression(C=10.0, max_iter=500).fit(
        found.data[train] / 16, found.target[train]
    )
    out = []
    for noise in noises:
        shown = found.data[test] + noise * draw.normal(size=found.data[test].shape)
        logits = model.decision_function(np.clip(shown, 0, 16) / 16)
        labels = found.target[test]
        name = DIGITS if noise == 0 else f"{DIGITS}, noise {noise:g}"
        chosen = logits.argmax(axis=1)
        confidence = np.exp(logits.max(axis=1) - special.logsumexp(logits, axis=1))
        loss = (chosen != labels).astype(np.float64)
        confidence = np.minimum(confidence, 1.0)
        out.append(Answers(name, confidence, loss, logits, labels, 10, name, BASELINE))
    return out
