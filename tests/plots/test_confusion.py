"""The confusion matrix as a figure: the numbers of its table, at any size."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from abstain.errors import InputError
from abstain.integrations.sklearn import SelectiveClassifier
from abstain.metrics.selective_confusion import selective_confusion_matrix
from abstain.plots.confusion import SelectiveConfusionDisplay


def made(k, n=2000, names=None):
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    guess = np.where(rng.random(n) < 0.9, y, rng.integers(0, k, n))
    names = np.arange(k) if names is None else np.array(names)
    return names[y], names[guess], rng.random(n) < 0.8


def written(display):
    return [text.get_text() for text in display.ax_.texts]


def test_every_cell_is_plotted_with_its_number():
    display = SelectiveConfusionDisplay.from_predictions(*made(3)).plot()
    answered, abstained = display.ax_.collections
    assert answered.get_array().shape == (3, 3, 3)
    assert abstained.get_array().shape == (3, 1, 3)
    assert written(display) == [str(v) for v in display.frame()["value"].to_list()]
    names = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert names == ["0", "1", "2", "no\nanswer"]
    right, wrong, none = *answered.get_array()[0, :2], abstained.get_array()[0, 0]
    assert right[2] > right[0]
    assert wrong[0] > wrong[2]
    assert max(none) - min(none) < 0.1
    plt.close("all")


def test_shares_and_nothing():
    data = made(2)
    display = SelectiveConfusionDisplay.from_predictions(*data, normalize="true").plot()
    assert written(display)[0].startswith(".")
    empty = SelectiveConfusionDisplay.from_predictions(
        ["a"], ["a"], [True], classes=["a", "b"], normalize="true"
    ).plot()
    assert written(empty) == ["1", "0", "0", "–", "–", "–"]
    plt.close("all")


@pytest.mark.parametrize("k", [2, 12, 30, 200])
def test_names_and_numbers_stay_readable(k):
    names = [f"class {i} with a long name" for i in range(k)]
    for size in ((3.3, 3.6), None):
        display = SelectiveConfusionDisplay.from_predictions(*made(k, names=names))
        ax = None if size is None else Figure(figsize=size, layout="constrained").subplots()
        display.plot(ax=ax)
        figure = display.figure_
        figure.draw_without_rendering()
        sizes = {text.get_fontsize() for text in display.ax_.texts}
        assert all(s >= 5 for s in sizes)
        boxes = [t.get_window_extent() for t in display.ax_.get_yticklabels()]
        heights = sorted((b.y0, b.y1) for b in boxes)
        overlap = [a[1] - b[0] for a, b in pairwise(heights)]
        assert max(overlap) < 0.35 * (heights[0][1] - heights[0][0])
    plt.close("all")


def test_from_estimator_asks_for_acceptance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    rule = {"rule": "coverage", "rule_params": {"coverage": 0.7}}
    fitted = SelectiveClassifier(LogisticRegression(), **rule).fit(X, y)
    display = SelectiveConfusionDisplay.from_estimator(fitted, X, y)
    prediction, accepted, _ = fitted.predict_or_abstain(X)
    expected = selective_confusion_matrix(y, prediction, accepted)
    np.testing.assert_array_equal(display.confusion.counts, expected.counts)
    np.testing.assert_array_equal(
        SelectiveConfusionDisplay.from_confusion(expected).frame(), display.frame()
    )
    with pytest.raises(InputError, match="predict_or_abstain"):
        SelectiveConfusionDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)


def test_hostile_names_are_text():
    display = SelectiveConfusionDisplay.from_predictions(["$\\frac{$", "b"], ["b", "b"], [1, 1])
    image = display.image(".svg", keep_text=True)
    assert b"frac" in image
