"""Scores of the softmax: closed forms, and the order of saturated outputs."""

import numpy as np
import pytest
from scipy.special import expit
from tests.confidence import exact

from abstain import confidence
from abstain.confidence import SCORES
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions

FUNCTIONS = {
    "msr": confidence.max_softmax_response,
    "margin": confidence.probability_margin,
    "gini": confidence.negative_gini,
    "pe": confidence.negative_predictive_entropy,
    "gen": confidence.negative_generalized_entropy,
    "logit_margin": confidence.logit_margin,
}
NAMES = sorted(FUNCTIONS)
TEMPERED = sorted(FUNCTIONS.keys() - {"logit_margin"})
#: Scores on a scale without end, which an impossible rival would make infinite.
OPEN_ENDED = {"msr", "margin", "gini", "logit_margin"}


def softmax(z, dtype=np.float64):
    z = z.astype(dtype)
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def vit_like(n=60, classes=20, seed=0, dtype=np.float32):
    """Top logit 15 to 40 above the others, which spread."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, classes))
    z[np.arange(n), rng.integers(0, classes, n)] = rng.uniform(15, 40, n) + z.max(1)
    return z.astype(dtype)


def order(values):
    return np.argsort(np.array(values, dtype=object), kind="stable").tolist()


def test_closed_forms_at_small_scale():
    z = np.random.default_rng(3).normal(size=(300, 5)) * 2
    p = softmax(z)
    s = np.sort(p, axis=1)
    np.testing.assert_allclose(expit(FUNCTIONS["msr"](z)), s[:, -1], rtol=1e-13)
    np.testing.assert_allclose(np.tanh(FUNCTIONS["margin"](z) / 2), s[:, -1] - s[:, -2], rtol=1e-10)
    np.testing.assert_allclose(expit(FUNCTIONS["gini"](z)), (p**2).sum(1), rtol=1e-13)
    np.testing.assert_allclose(FUNCTIONS["pe"](z), (p * np.log(p)).sum(1), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", [2, 3, 20])
def test_values_are_exact_when_saturated(name, classes):
    z = vit_like(classes=classes)
    define, rescale = exact.BY_NAME[name]
    expected = [float(rescale(define(exact.softmax(row)))) for row in z]
    np.testing.assert_allclose(FUNCTIONS[name](z), expected, rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_order_is_kept_where_a_softmax_ties(name, dtype):
    z = vit_like(dtype=dtype)
    naive = softmax(z, np.float32).max(1)
    assert (naive == 1).sum() > 30
    define, _ = exact.BY_NAME[name]
    expected = [define(exact.softmax(row)) for row in z]
    assert order(FUNCTIONS[name](z).tolist()) == order(expected)


@pytest.mark.parametrize("name", NAMES)
def test_order_is_kept_near_uniform(name):
    z = np.random.default_rng(5).normal(size=(60, 4)) * 1e-3
    define, _ = exact.BY_NAME[name]
    expected = [define(exact.softmax(row)) for row in z]
    assert order(FUNCTIONS[name](z).tolist()) == order(expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_keep_their_order_where_the_largest_is_one(name, dtype):
    p = softmax(vit_like(classes=6) / 3).astype(dtype)
    define, rescale = exact.BY_NAME[name]
    p = p[(p.astype(float) > 0).sum(1) > 1]
    expected = [define(exact.normalized(row)) for row in p]
    values = FUNCTIONS[name](probabilities=p)
    np.testing.assert_allclose(values, [float(rescale(v)) for v in expected], rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_certainty_is_finite_and_above_everything_else(name):
    p = np.array([[1.0, 0.0, 0.0], [1.0, 5e-324, 0.0], [1.0, 1e-300, 0.0], [0.0, 1.0, 0.0]])
    values = FUNCTIONS[name](probabilities=p)
    assert np.isfinite(values).all()
    assert values[0] == values[3] == values.max()
    assert values[2] < values[0]
    if name in OPEN_ENDED:
        assert values[0] == 750
        assert values[2] < values[1] < values[0]


@pytest.mark.parametrize("name", NAMES)
def test_both_inputs_agree(name):
    z = np.random.default_rng(8).normal(size=(100, 7)) * 3
    from_p = FUNCTIONS[name](probabilities=softmax(z))
    np.testing.assert_allclose(from_p, FUNCTIONS[name](z), rtol=1e-9)


@pytest.mark.parametrize("name", TEMPERED)
def test_temperature_divides_the_logits(name):
    z = np.random.default_rng(9).normal(size=(50, 4)) * 3
    np.testing.assert_allclose(
        FUNCTIONS[name](z, temperature=2.5), FUNCTIONS[name](z / 2.5), rtol=1e-12
    )
    # A temperature acts on probabilities through their logarithms.
    tempered = FUNCTIONS[name](probabilities=softmax(z), temperature=2.5)
    np.testing.assert_allclose(tempered, FUNCTIONS[name](z / 2.5), rtol=1e-9)


def test_two_classes_give_one_score():
    z = np.random.default_rng(2).normal(size=(50, 2)) * 20
    np.testing.assert_allclose(FUNCTIONS["margin"](z), FUNCTIONS["msr"](z), rtol=1e-13)
    assert order(FUNCTIONS["gini"](z).tolist()) == order(FUNCTIONS["msr"](z).tolist())


def test_equal_logits():
    z = np.zeros((1, 4))
    assert FUNCTIONS["msr"](z)[0] == pytest.approx(-np.log(3))
    assert FUNCTIONS["margin"](z)[0] == 0
    assert FUNCTIONS["gini"](z)[0] == pytest.approx(-np.log(3))
    assert FUNCTIONS["pe"](z)[0] == pytest.approx(-np.log(4))


@pytest.mark.parametrize("name", NAMES)
def test_huge_gaps_stay_finite(name):
    z = np.array([[5e4, -5e4, 0.0], [800.0, 0.0, 0.0], [700.0, 0.0, 0.0]])
    values = FUNCTIONS[name](z)
    assert np.isfinite(values).all()
    assert values[0] >= values[1] >= values[2]
    if name != "pe":
        assert values[0] > values[1] > values[2]


def test_real_probabilities_stay_apart(shared):
    data = np.load(shared / "data/real/mnist_crossval_probabilities.npz", allow_pickle=False)
    p = data["probabilities"]
    top = p.max(axis=1)
    values = SCORES["msr"].compute(Predictions(probabilities=p, labels=data["labels"]))
    assert len(np.unique(values[top == 1])) > 100 > len(np.unique(top[top == 1]))


def test_real_logits_keep_the_order_that_their_probabilities_lost(shared):
    pl = pytest.importorskip("polars")
    frame = pl.read_parquet(shared / "data/real/digits_ccexam.parquet")
    frame = frame.filter(pl.col("model") == "mnist", pl.col("confidence") == 1.0).head(200)
    z = frame.select(pl.col("^logit_.*$")).to_numpy()
    values = confidence.max_softmax_response(z)
    expected = [exact.msr(exact.softmax(row)) for row in z]
    assert order(values.tolist()) == order(expected)
    assert len(set(values)) > 150


@pytest.mark.parametrize(("gamma", "top"), [(0.1, 1), (0.1, 3), (0.5, 2), (0.5, 7), (1.0, 200)])
def test_generalized_entropy_is_the_definition(gamma, top):
    z = np.concatenate([vit_like(10, 7), vit_like(10, 7, seed=1) / 20, np.zeros((1, 7))])
    expected = [float(exact.gen(exact.softmax(row), gamma, top)) for row in z]
    values = confidence.negative_generalized_entropy(z, gamma=gamma, top=top)
    np.testing.assert_allclose(values, expected, rtol=1e-13)


def test_generalized_entropy_and_its_published_form():
    """Sort, keep the last M, sum the powers: the code that goes with the paper."""
    p = softmax(np.random.default_rng(6).normal(size=(50, 200)) * 2)
    largest = np.sort(p, axis=1)[:, -100:]
    expected = -np.sum(largest**0.1 * (1 - largest) ** 0.1, axis=1)
    values = confidence.negative_generalized_entropy(probabilities=p)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_generalized_entropy_at_its_ends():
    lowest = confidence.negative_generalized_entropy(np.zeros((1, 4)), gamma=0.3)[0]
    assert lowest == pytest.approx(-4 * (3 / 16) ** 0.3)
    z = np.random.default_rng(2).normal(size=(40, 4)) * 3
    assert (confidence.negative_generalized_entropy(z, gamma=0.3) >= lowest).all()
    # With exponent 1 it is the Gini impurity.
    np.testing.assert_allclose(
        confidence.negative_generalized_entropy(z, gamma=1),
        expit(confidence.negative_gini(z)) - 1,
        rtol=1e-12,
    )
    # Gaps at which every other score of the softmax that is an entropy has become 0.
    values = confidence.negative_generalized_entropy([[5000.0, 0.0], [4000.0, 0.0], [900.0, 0.0]])
    assert values[0] > values[1] > values[2] > -1e-38


def test_generalized_entropy_refusals():
    z = np.zeros((1, 3))
    for gamma in (0, -0.1, 1.5):
        with pytest.raises(DomainError, match="`gamma` must be above 0 and at most 1; got"):
            confidence.negative_generalized_entropy(z, gamma=gamma)
    for top in (0, 2.5, True):
        with pytest.raises(InputError, match="`top` must be an integer of at least 1; got"):
            confidence.negative_generalized_entropy(z, top=top)


def test_logit_margin():
    z = np.random.default_rng(7).normal(size=(50, 5)) * 4
    s = np.sort(z, axis=1)
    np.testing.assert_allclose(confidence.logit_margin(z), s[:, -1] - s[:, -2], rtol=1e-15)
    # With two classes it is the log-odds.
    np.testing.assert_array_equal(
        confidence.logit_margin(z[:, :2]), confidence.max_softmax_response(z[:, :2])
    )
