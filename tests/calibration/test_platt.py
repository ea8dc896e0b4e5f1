"""Platt scaling against scikit-learn, on separable data, and on scores that rank wrongly."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from abstain.calibration import Platt, fit_platt
from abstain.errors import DomainError, ShapeError

FEW = settings(max_examples=30)


def draw(seed, n=300, slope=1.5, offset=0.5):
    rng = np.random.default_rng(seed)
    x = np.round(3 * rng.normal(size=n), 2)
    return x, (rng.random(n) > expit(slope * x + offset)).astype(float)


def of_sklearn(x, target, weight):
    """Unpenalized logistic regression; a target between 0 and 1 is both classes, weighted."""
    X = np.concatenate([x, x])[:, None]
    y = np.repeat([1, 0], x.size)
    w = np.concatenate([target * weight, (1 - target) * weight])
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-14, max_iter=1000)
    with warnings.catch_warnings():
        # At its last digits the line search may find nothing lower.
        warnings.simplefilter("ignore")
        model.fit(X[w > 0], y[w > 0], sample_weight=w[w > 0])
    return float(model.coef_[0, 0]), float(model.intercept_[0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_sklearn(seed, weighted):
    x, loss = draw(seed)
    weight = np.random.default_rng(seed).integers(0, 4, x.size) if weighted else np.ones(x.size)
    plain = fit_platt(x, loss, smooth=False, weight=weight if weighted else None)
    assert (plain.slope, plain.intercept) == pytest.approx(
        of_sklearn(x, 1 - loss, weight), rel=1e-9
    )
    right, wrong = (weight * (1 - loss)).sum(), (weight * loss).sum()
    target = np.where(loss == 0, (right + 1) / (right + 2), 1 / (wrong + 2))
    smooth = fit_platt(x, loss, weight=weight if weighted else None)
    assert (smooth.slope, smooth.intercept) == pytest.approx(
        of_sklearn(x, target, weight), rel=1e-9
    )
    assert smooth.slope < plain.slope


def test_equals_sklearn_on_graded_losses():
    x, _ = draw(0)
    loss = np.random.default_rng(1).random(x.size)
    state = fit_platt(x, loss, smooth=False)
    assert (state.slope, state.intercept) == pytest.approx(
        of_sklearn(x, 1 - loss, np.ones(x.size)), rel=1e-7, abs=1e-9
    )


@pytest.mark.parametrize("smooth", [False, True])
def test_a_known_curve_is_recovered_within_its_error(smooth):
    x, loss = draw(11, n=40_000, slope=0.8, offset=-0.3)
    state = fit_platt(x, loss, smooth=smooth)
    p = expit(0.8 * x - 0.3)
    X = np.column_stack([x, np.ones(x.size)])
    error = np.sqrt(np.diag(np.linalg.inv((X * (p * (1 - p))[:, None]).T @ X)))
    assert abs(state.slope - 0.8) < 4 * error[0]
    assert abs(state.intercept + 0.3) < 4 * error[1]


def test_a_calibrated_score_is_left_alone():
    """The population: each log-odds right and wrong, weighted by its probability."""
    x = np.linspace(-4, 6, 40)
    state = fit_platt(
        np.repeat(x, 2),
        np.tile([0, 1], 40),
        smooth=False,
        weight=np.column_stack([expit(x), expit(-x)]).ravel(),
    )
    assert (state.slope, state.intercept) == pytest.approx((1.0, 0.0), abs=1e-9)


def test_the_mean_probability_is_the_accuracy():
    x, loss = draw(3)
    assert fit_platt(x, loss, smooth=False).apply(x).mean() == pytest.approx(
        1 - loss.mean(), abs=1e-13
    )


@FEW
@given(st.integers(0, 10_000), st.data())
def test_weights_are_repetitions(seed, data):
    x, loss = draw(seed, n=15)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=15, max_size=15)))
    times[0] = max(times[0], 1)
    weighted = fit_platt(x, loss, weight=times)
    repeated = fit_platt(np.repeat(x, times), np.repeat(loss, times))
    assert weighted.slope == pytest.approx(repeated.slope, rel=1e-7, abs=1e-9)
    assert weighted.intercept == pytest.approx(repeated.intercept, rel=1e-7, abs=1e-9)


@FEW
@given(st.integers(0, 10_000), st.sampled_from([1e-200, 1e-8, 1.0, 1e8, 1e200]), st.booleans())
def test_scale_and_offset_of_the_score_do_not_matter(seed, scale, shifted):
    x, loss = draw(seed, n=80)
    unit = fit_platt(x, loss)
    moved = scale * (x + (50 if shifted else 0))
    np.testing.assert_allclose(
        fit_platt(moved, loss).apply(moved), unit.apply(x), rtol=1e-7, atol=1e-12
    )


# ------------------------------------------------------------------------- separable and wrong


@pytest.mark.parametrize(
    ("x", "loss"),
    [
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0]),
        ([1.0, 2.0, 2.0, 4.0], [1, 1, 0, 0]),
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0]),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1]),
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1]),
    ],
)
def test_separable_data_stay_finite_or_raise_an_error(x, loss):
    state = fit_platt(x, loss)
    assert np.isfinite([state.slope, state.intercept]).all()
    p = state.apply(x)
    assert ((p > 0) & (p < 1)).all()
    with pytest.raises(DomainError, match=r"no finite logistic map .* `smooth=True`"):
        fit_platt(x, loss, smooth=False)


def test_many_separable_samples_reach_their_targets():
    x = np.repeat([-1.0, 1.0], 100_000)
    state = fit_platt(x, x < 0)
    np.testing.assert_allclose(
        state.apply([-1.0, 1.0]), [1 / 100_002, 100_001 / 100_002], rtol=1e-9
    )


def test_all_right_follows_the_rule_of_succession():
    np.testing.assert_allclose(fit_platt([0.1, 0.5, 0.9], [0, 0, 0]).apply([0.1, 0.9]), 4 / 5)


def test_one_overlap_is_enough_without_smoothing():
    state = fit_platt([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0], smooth=False)
    assert np.isfinite(state.slope)


def test_a_score_that_ranks_the_wrong_way_is_said_and_not_turned():
    x, loss = draw(5)
    state = fit_platt(-x, loss)
    assert state.slope < 0
    assert "not more often correct" in state.note
    assert "negate" in state.note
    assert fit_platt(x, loss).note == ""
    assert fit_platt(x, loss).slope == pytest.approx(-state.slope, rel=1e-9)


def test_a_constant_score_is_the_accuracy():
    state = fit_platt([3.0] * 10, [0] * 7 + [1] * 3, smooth=False)
    assert state.slope == 0
    assert state.apply([3.0, -8.0]) == pytest.approx([0.7, 0.7])
    assert "all confidences are equal" in state.note


# ------------------------------------------------------------------------------- arrays, errors


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
def test_narrow_numbers_are_their_own_values(dtype):
    x, loss = draw(2)
    narrow = x.astype(dtype)
    wide = fit_platt(narrow.astype(float), loss)
    assert fit_platt(narrow, loss) == wide
    np.testing.assert_array_equal(wide.apply(narrow), wide.apply(narrow.astype(float)))


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    x, loss = draw(2)
    state = fit_platt(torch.tensor(x), torch.tensor(loss))
    assert state == fit_platt(x, loss)
    p = state.apply(torch.tensor(x))
    assert isinstance(p, torch.Tensor)
    np.testing.assert_array_equal(p.numpy(), state.apply(x))


def test_extreme_scores_saturate_without_a_warning():
    p = Platt(1e300, 0.0, smooth=True, n=1).apply([-1e300, 0.0, 1e300])
    np.testing.assert_array_equal(p, [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("x", "loss", "error", "words"),
    [
        ([0.1, np.nan], [0, 1], DomainError, "`confidence` must be finite"),
        ([0.1, 0.2], [0, 2], DomainError, r"`loss` must lie in \[0, 1\].*one minus"),
        ([0.1, 0.2], [0, -1], DomainError, "`loss` must not be negative"),
        ([0.1, 0.2], [0], ShapeError, "`loss`"),
        ([], [], ShapeError, "empty"),
        ([0.0, 5e-324], [0, 1], DomainError, "`slope` must be finite.*Rescale"),
    ],
)
def test_bad_input_is_named(x, loss, error, words):
    with pytest.raises(error, match=words):
        fit_platt(x, loss)


def test_apply_checks_its_input():
    with pytest.raises(DomainError, match="`confidence` must be finite"):
        Platt(1.0, 0.0, smooth=True, n=1).apply([np.inf])


def test_the_numbers_that_are_passed_are_fitted_also_where_they_could_be_probabilities():
    """Log-odds leave calibrated probabilities as they are; the probabilities themselves cannot."""
    rng = np.random.default_rng(4)
    p = rng.beta(4, 1, 20_000)
    loss = (rng.random(p.size) > p).astype(float)
    on_log_odds, on_values = fit_platt(logit(p), loss), fit_platt(p, loss)
    assert (on_log_odds.slope, on_log_odds.intercept) == pytest.approx((1, 0), abs=0.05)
    assert np.abs(on_log_odds.apply(logit(p)) - p).max() < 0.02
    assert (on_values.slope, on_values.intercept) == pytest.approx(
        of_sklearn(p, *smoothed(loss)), rel=1e-6
    )
    assert np.abs(on_values.apply(p) - p).max() > 0.05


def smoothed(loss):
    """Return Platt's targets, and the weight of each sample."""
    right, wrong = (loss == 0).sum(), (loss == 1).sum()
    return np.where(loss == 0, (right + 1) / (right + 2), 1 / (wrong + 2)), np.ones(loss.size)
