"""Random data on which every metric of the catalogue applies, as Hypothesis strategies."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from abstain._foundation.scored import ClassView, Scored

_GRID = st.integers(0, 8).map(lambda k: k / 8)
_FINE = st.floats(0, 1, allow_subnormal=False)


@st.composite
def scored_cases(
    draw: st.DrawFn, *, least: int = 1, most: int = 12, ties: bool = True, unknown: bool = False
) -> Scored:
    """Draw a two-class problem with 0/1 loss; half of the cases are full of ties.

    Where samples of no known class are asked for, the first is one, and so is a third.
    """
    n = draw(st.integers(least, most))
    numbers = draw(st.sampled_from([_GRID, _FINE])) if ties else _FINE
    confidence = np.array(draw(st.lists(numbers, min_size=n, max_size=n, unique=not ties)))
    wrong = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    lowest = -1 if unknown else 0
    labels = np.array(draw(st.lists(st.integers(lowest, 1), min_size=n, max_size=n)))
    if unknown:
        labels[0] = -1
        wrong |= labels < 0
    sure = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))) / 20 + 0.5
    prediction = np.where(wrong, np.minimum(1 - labels, 1), labels)
    return make(confidence, wrong.astype(float), labels, prediction, sure)


def make(
    confidence: np.ndarray,
    loss: np.ndarray,
    labels: np.ndarray,
    prediction: np.ndarray,
    sure: np.ndarray,
) -> Scored:
    """Join the columns into what metrics take; `sure` is the probability of the prediction."""
    p = np.where(prediction[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None])
    view = ClassView(labels, prediction, (0, 1), p, np.log(p))
    return Scored(confidence, loss, probability=confidence, class_view=view)


def rows(s: Scored, index: np.ndarray, *, keep_confidence: bool = False) -> Scored:
    """Take rows, or hand the rows' losses and classes out over the confidences as they stand."""
    view = s.class_view
    taken = ClassView(
        view.labels[index],
        view.prediction[index],
        view.classes,
        view.probabilities[index],
        view.log_probabilities[index],
    )
    where = np.arange(s.n_rows) if keep_confidence else index
    return replace(
        s,
        confidence=s.confidence[where],
        loss=s.loss[index],
        weight=None if s.weight is None else s.weight[index],
        probability=s.probability[where],
        class_view=taken,
    )


def in_order(s: Scored, *, best: bool) -> Scored:
    """Hand the samples out over the confidences in the best or the worst order."""
    most_confident_first = np.argsort(-s.confidence, kind="stable")
    by_loss = np.argsort(s.loss if best else -s.loss, kind="stable")
    index = np.empty(s.n_rows, dtype=int)
    index[most_confident_first] = by_loss
    return rows(s, index, keep_confidence=True)
