"""Temperature scaling against exact expectations, known temperatures and data without a minimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from abstain.calibration import Temperature, fit_temperature
from abstain.calibration.temperature import fit_temperature_of_scores
from abstain.errors import DomainError, InputError, ShapeError
from abstain.metrics import nll
from abstain.predictions.outputs import ClassScores

FEW = settings(max_examples=30)


def draw(rng, n, k, T=1.0, spread=2.0):
    z = spread * rng.normal(size=(n, k))
    p = softmax(z / T, axis=1)
    labels = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return z, np.minimum(labels, k - 1)


def expected(z, T):
    """Every sample once with each label, weighted by its probability: the population itself."""
    n, k = z.shape
    return np.repeat(z, k, axis=0), np.tile(np.arange(k), n), softmax(z / T, axis=1).ravel()


def mean_nll(z, labels, T, weight=None):
    log_p = log_softmax(z / T, axis=1)[np.arange(len(labels)), labels]
    return float(np.average(-log_p, weights=weight))


@pytest.mark.parametrize("T", [0.05, 0.5, 1.0, 1.7, 40.0])
@pytest.mark.parametrize("k", [2, 5])
def test_the_population_has_exactly_its_own_temperature(k, T):
    z, labels, weight = expected(T * np.random.default_rng(0).normal(size=(60, k)), T)
    state = fit_temperature(z, labels, weight=weight)
    assert state.temperature == pytest.approx(T, rel=1e-9)
    assert not state.note


@pytest.mark.parametrize("T", [0.6, 1.0, 2.5])
def test_a_known_temperature_is_recovered_within_its_error(T):
    z, labels = draw(np.random.default_rng(7), 20_000, 4, T)
    result = fit_temperature(z, labels).temperature
    # Standard error of log T from the information: the variance of the logits under the softmax.
    p = softmax(z / T, axis=1)
    variance = ((p * z**2).sum(1) - (p * z).sum(1) ** 2).mean() / T**2
    assert abs(np.log(result / T)) < 4 / np.sqrt(variance * len(z))


def test_the_error_is_as_wide_as_said():
    """Over 60 draws, the mean of the standardized error and its spread are those of a normal."""
    errors = []
    for seed in range(60):
        z, labels = draw(np.random.default_rng(seed), 500, 3, 1.5)
        p = softmax(z / 1.5, axis=1)
        variance = ((p * z**2).sum(1) - (p * z).sum(1) ** 2).mean() / 1.5**2
        errors.append(
            np.log(fit_temperature(z, labels).temperature / 1.5) * np.sqrt(500 * variance)
        )
    assert abs(np.mean(errors)) < 4 / np.sqrt(60)
    assert 0.65 < np.std(errors) < 1.35


@FEW
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(5, 60), st.floats(0.01, 100))
def test_no_temperature_has_a_lower_nll(seed, k, n, scale):
    rng = np.random.default_rng(seed)
    z, labels = draw(rng, n, k)
    z = scale * np.where(rng.random((n, 1)) < 0.5, rng.normal(size=(n, k)), z)
    state = fit_temperature(z, labels)
    assert state.nll_after <= state.nll_before
    assert state.nll_before == pytest.approx(mean_nll(z, labels, 1.0), rel=1e-12)
    assert state.nll_after == pytest.approx(mean_nll(z, labels, state.temperature), rel=1e-9)
    if state.note:
        return
    for factor in (0.5, 0.99, 1.01, 2.0):
        assert mean_nll(z, labels, factor * state.temperature) > state.nll_after
    search = minimize_scalar(
        lambda t: mean_nll(z, labels, np.exp(t)),
        bracket=(np.log(state.temperature) - 0.1, np.log(state.temperature) + 0.1),
    )
    assert np.log(state.temperature) == pytest.approx(search.x, abs=1e-5)


def test_the_derivative_is_zero_at_the_minimum():
    z, labels = draw(np.random.default_rng(3), 300, 5)
    T = fit_temperature(3 * z, labels).temperature
    p = softmax(3 * z / T, axis=1)
    residual = (p * z).sum(axis=1) - z[np.arange(300), labels]
    assert abs(residual.mean()) < 1e-12


@FEW
@given(st.integers(0, 10_000), st.data())
def test_weights_are_repetitions(seed, data):
    rng = np.random.default_rng(seed)
    z, labels = draw(rng, 12, 3)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=12, max_size=12)))
    times[0] = max(times[0], 1)
    weighted = fit_temperature(z, labels, weight=times)
    repeated = fit_temperature(np.repeat(z, times, axis=0), np.repeat(labels, times))
    assert weighted.temperature == pytest.approx(repeated.temperature, rel=1e-9)
    assert weighted.nll_after == pytest.approx(repeated.nll_after, abs=1e-12)
    assert weighted.note == repeated.note


@FEW
@given(st.integers(0, 10_000), st.floats(0.01, 100))
def test_predictions_stay(seed, T):
    z = np.random.default_rng(seed).normal(size=(20, 5))
    p = Temperature(T, 1.0, 1.0, 20).apply(z)
    np.testing.assert_array_equal(p.argmax(axis=1), z.argmax(axis=1))
    np.testing.assert_allclose(p, softmax(z / T, axis=1), rtol=1e-12, atol=1e-300)
    # Two logits a rounding apart may tie; the predicted class still has the largest probability.
    near = np.array([[1.0, np.nextafter(1.0, 2.0)]])
    q = Temperature(T, 1.0, 1.0, 20).apply(near)
    assert q[0, 1] == q.max()


def test_the_nll_equals_that_of_the_catalogue():
    z, labels = draw(np.random.default_rng(1), 200, 4)
    state = fit_temperature(z, labels)
    assert nll(state.apply(z), labels) == pytest.approx(state.nll_after, rel=1e-9)


# ------------------------------------------------------------------------------- no minimum


def test_without_an_error_the_temperature_is_bounded_and_said():
    z = np.random.default_rng(0).normal(size=(50, 3))
    labels = z.argmax(axis=1)
    state = fit_temperature(z, labels)
    assert 0 < state.temperature < 1
    assert "there are no failures" in state.note
    reached = state.apply(z)[np.arange(50), labels].mean()
    assert reached == pytest.approx(51 / 52, abs=1e-9)
    assert state.nll_after < state.nll_before


def test_without_an_error_a_sure_model_is_not_made_surer():
    z = np.array([[50.0, 0.0], [0.0, 60.0]])
    state = fit_temperature(z, [0, 1])
    assert state.temperature == 1
    assert "left at 1" in state.note


def test_when_all_is_wrong_the_temperature_is_bounded_and_said():
    z = np.random.default_rng(0).normal(size=(50, 4))
    state = fit_temperature(z, z.argmin(axis=1))
    assert 100 < state.temperature < 1e5
    assert "not better than chance" in state.note
    np.testing.assert_allclose(state.apply(z), 0.25, atol=0.01)
    np.testing.assert_array_equal(state.apply(z).argmax(axis=1), z.argmax(axis=1))
    assert np.log(4) < state.nll_after < state.nll_before


def test_equal_logits_leave_it_at_one():
    state = fit_temperature([[2.0, 2.0], [-1.0, -1.0]], [0, 1])
    assert state.temperature == 1
    assert "temperature has no effect" in state.note


def test_an_error_among_many_keeps_the_minimum_inside():
    z = np.tile([[9.0, 0.0]], (1000, 1))
    labels = np.zeros(1000, dtype=int)
    labels[0] = 1
    state = fit_temperature(z, labels)
    assert not state.note
    assert state.apply(z)[0, 1] == pytest.approx(1 / 1000, rel=1e-9)


# ---------------------------------------------------------------------------------- numerics


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e200])
def test_the_scale_of_the_logits_does_not_matter(scale):
    z, labels = draw(np.random.default_rng(2), 100, 3)
    unit, far = fit_temperature(z, labels), fit_temperature(scale * z, labels)
    assert far.temperature == pytest.approx(scale * unit.temperature, rel=1e-8)
    np.testing.assert_allclose(far.apply(scale * z), unit.apply(z), rtol=1e-7)


def test_shifting_rows_does_not_matter():
    rng = np.random.default_rng(2)
    z, labels = draw(rng, 100, 3)
    shifted = z + 1000 * rng.normal(size=(100, 1))
    assert fit_temperature(shifted, labels).temperature == pytest.approx(
        fit_temperature(z, labels).temperature, rel=1e-9
    )


def test_extreme_logits_give_probabilities():
    p = Temperature(1e-3, 1.0, 1.0, 1).apply(np.array([[1e308, -1e308], [0.0, 0.0]]))
    np.testing.assert_array_equal(p, [[1, 0], [0.5, 0.5]])


def test_many_rows_go_by_blocks(monkeypatch):
    z, labels = draw(np.random.default_rng(5), 400, 3)
    temperature = fit_temperature(z, labels)
    p = temperature.apply(z)
    monkeypatch.setattr("abstain.predictions.softmax.BLOCK_ENTRIES", 30)
    parts = fit_temperature(z, labels)
    assert parts.temperature == pytest.approx(temperature.temperature, rel=1e-12)
    np.testing.assert_array_equal(temperature.apply(z), p)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_are_their_own_values(dtype):
    z, labels = draw(np.random.default_rng(4), 200, 4)
    narrow = z.astype(dtype)
    assert fit_temperature(narrow, labels) == fit_temperature(narrow.astype(float), labels)
    state = fit_temperature(narrow, labels)
    np.testing.assert_array_equal(state.apply(narrow), state.apply(narrow.astype(float)))
    assert state.apply(narrow).dtype == np.float64


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    z, labels = draw(np.random.default_rng(4), 200, 4)
    for dtype in (torch.float64, torch.bfloat16):
        tensor = torch.tensor(z).to(dtype)
        state = fit_temperature(tensor, torch.tensor(labels))
        p = state.apply(tensor)
        assert isinstance(p, torch.Tensor)
        np.testing.assert_array_equal(p.numpy(), state.apply(tensor.to(torch.float64).numpy()))


# ----------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("logits", "labels", "weight", "error", "words"),
    [
        ([[1.0, 0.0]], [2], None, DomainError, "`labels` must be a class code from 0 to 1"),
        ([[1.0, 0.0]], [-1], None, DomainError, "no known class"),
        ([[1.0, 0.0]], [0.5], None, DomainError, "`labels`"),
        ([[1.0, 0.0]], [0, 1], None, ShapeError, "`labels` must have one entry"),
        ([[np.nan, 0.0]], [0], None, DomainError, "`logits` must be finite"),
        ([[-np.inf, 0.0]], [1], None, DomainError, "large negative logit"),
        ([1.0, 0.0], [0, 1], None, ShapeError, "`logits` must have shape"),
        ([[1.0, 0.0]], [0], [-1.0], DomainError, "`weight` must not be negative"),
        ([[1.0, 0.0]], [0], [0.0], DomainError, "`weight` must not be zero everywhere"),
    ],
)
def test_bad_input_is_named(logits, labels, weight, error, words):
    with pytest.raises(error, match=words):
        fit_temperature(logits, labels, weight=weight)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": np.inf}, "temperature"),
        ({"nll_before": -1.0}, "nll_before"),
        ({"nll_after": np.nan}, "nll_after"),
        ({"n": 0}, "n"),
    ],
)
def test_an_impossible_state_is_refused(change, field):
    with pytest.raises(InputError, match=f"`{field}`"):
        Temperature(**{"temperature": 1.0, "nll_before": 1.0, "nll_after": 1.0, "n": 1, **change})


def test_next_to_no_minimum_the_bound_is_the_same():
    """Where rounding alone decides whether there is a minimum, nothing may hang on it."""
    z = np.array([[0.3, 0.0], [0.3, 0.0]])
    guessing = fit_temperature(z, [0, 1], weight=[1.0, 1.0])
    hair = fit_temperature(z, [0, 1], weight=[1.0 + 1e-9, 1.0])
    assert "not better than chance" in hair.note
    assert hair.temperature == pytest.approx(guessing.temperature)


def test_tiny_logits_that_say_nothing_are_not_sharpened():
    z = 1e-6 * np.random.default_rng(0).normal(size=(50, 4))
    state = fit_temperature(z, z.argmin(axis=1))
    assert state.temperature == 1
    assert state.nll_after == state.nll_before


def test_an_error_in_the_first_block_counts(monkeypatch):
    z = np.tile([[3.0, 0.0]], (100, 1))
    labels = np.array([1] + [0] * 99)
    monkeypatch.setattr("abstain.predictions.softmax.BLOCK_ENTRIES", 20)
    state = fit_temperature(z, labels)
    assert not state.note
    assert state.apply(z)[0, 1] == pytest.approx(0.01, rel=1e-9)


def test_classes_of_probability_zero_stay_impossible():
    """Probabilities are class scores too: their logarithms are logits, some of them -inf."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    labels = (p.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    padded = np.column_stack([p**3 / (p**3).sum(axis=1, keepdims=True), np.zeros(200)])
    with_zero = fit_temperature_of_scores(ClassScores(padded, are_logits=False), labels)
    without = fit_temperature_of_scores(ClassScores(padded[:, :3], are_logits=False), labels)
    assert with_zero.temperature == pytest.approx(without.temperature, rel=1e-9)
    assert with_zero.nll_after == pytest.approx(without.nll_after, rel=1e-12)
    assert without.temperature == pytest.approx(3, abs=0.8)
