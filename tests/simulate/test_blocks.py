"""The simulated models of the CWSA paper: their truths, by hand, by quadrature and by simulation."""

import numpy as np
import pytest

from abstain import simulate
from abstain.errors import DomainError, InputError, ShapeError
from abstain.metrics import cwsa_sweep
from abstain.simulate.confidence_weighted import _mean_excess_by_quadrature, _mean_excess_of_blocks

MODELS = [name for name in simulate.POPULATIONS if name.startswith("cwsa-")]

#: At 0.9, by hand: mass right less wrong times the mean ramp above the threshold.
AT_NINE = {
    "cwsa-calibrated": (0.9 * 0.5 * 0.5, 0.5),
    "cwsa-overconfident": ((0.8 - 0.2) * 0.5, 0.8 * 0.5),
    "cwsa-underconfident": (0.0, np.nan),
    "cwsa-perfect": (0.75, 0.75),
    "cwsa-random": (1 / 7 * 0.5 * (1 / 3 - 2 / 3), 1 / 6),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_by_hand(name):
    model = simulate.make(name)
    result = simulate.expected_cwsa(model, 0.9), simulate.expected_cwsa_plus(model, 0.9)
    np.testing.assert_allclose(result, AT_NINE[name], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_closed_form_is_the_integral_over_coverages(name):
    model = simulate.make(name)
    for threshold in (0.0, 0.31, 0.55, 0.65, 0.85, 0.93):
        by_coverage = _mean_excess_by_quadrature(model, threshold)
        np.testing.assert_allclose(
            _mean_excess_of_blocks(model, threshold), by_coverage, atol=1e-12
        )


@pytest.mark.parametrize("name", [*MODELS, "beta-scores", "overconfident", "discrete-scores"])
def test_a_large_sample_has_the_values(name):
    model, n, at = simulate.make(name), 40_000, np.array([0.0, 0.45, 0.55, 0.9, 0.97])
    confidence, loss = model.sample(n, rng=5)
    ramp = np.maximum(confidence - at[:, None], 0) / (1 - at[:, None])
    each = ramp * (1 - 2 * loss)
    error = each.std(axis=1) / np.sqrt(n)
    truth = simulate.expected_cwsa(model, at)
    assert (np.abs(each.mean(axis=1) - truth) <= 4.5 * error + 1e-12).all()
    for t, r in zip(at, ramp, strict=True):
        taken = confidence >= t
        if taken.any():
            values = (r * (1 - loss))[taken]
            plus = simulate.expected_cwsa_plus(model, float(t))
            assert abs(values.mean() - plus) <= 4.5 * values.std() / np.sqrt(values.size) + 1e-12


def test_a_thousand_samples_scatter_around_the_values():
    # As often within two standard errors as a mean is.
    model, held = simulate.make("cwsa-random"), []
    for seed in range(300):
        confidence, loss = model.sample(1000, rng=seed)
        each = np.maximum(confidence - 0.9, 0) / 0.1 * (1 - 2 * loss)
        held.append(abs(each.mean() + 1 / 42) <= 1.96 * each.std() / np.sqrt(1000))
    assert 0.91 <= np.mean(held) <= 0.98


def test_cwsa_is_a_mean_over_thresholds():
    # By parts: what is accepted and right, less what is accepted and wrong, over all t above tau.
    model, t = simulate.make("cwsa-calibrated"), np.linspace(0.6, 1.0, 200_001)
    coverage = model.coverage(t)
    net = coverage - 2 * model.generalized_risk(coverage)
    assert np.trapezoid(net, t) / 0.4 == pytest.approx(simulate.expected_cwsa(model, 0.6), abs=1e-9)


def test_the_sweep_of_a_sample_goes_to_the_sweep_of_the_population():
    model = simulate.make("cwsa-overconfident", informed_share=0.9)
    sweep = cwsa_sweep(*model.sample(100_000, rng=1))
    np.testing.assert_allclose(
        sweep.cwsa, simulate.expected_cwsa(model, sweep.threshold), atol=0.006
    )


def test_intervals_may_come_in_any_order():
    parts = ([0.8, 0.5], [1.0, 0.7], [0.75, 0.25], [0.0, 0.5])
    one, other = simulate.block_scores(*parts), simulate.block_scores(*(p[::-1] for p in parts))
    assert one.aurc() == other.aurc()
    assert one.threshold(0.75) == 0.8
    np.testing.assert_allclose(one.coverage([0.4, 0.6, 0.75, 0.9, 1.0]), [1, 0.875, 0.75, 0.375, 0])


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"high": [0.7, 0.8]}, DomainError, "must lie above"),
        ({"low": [0.5, 0.6]}, DomainError, "within another"),
        ({"mass": [0.5, 0.4]}, DomainError, "sum to 1"),
        ({"mass": [1.0, 0.0]}, DomainError, "above 0"),
        ({"risk": [0.5, 1.2]}, DomainError, "risk"),
        ({"risk": [0.5]}, ShapeError, "risk"),
    ],
)
def test_what_is_no_model_raises_an_error(options, error, said):
    usual = {"low": [0.5, 0.8], "high": [0.7, 1.0], "mass": [0.5, 0.5], "risk": [0.5, 0.1]}
    with pytest.raises(error, match=said):
        simulate.block_scores(**(usual | options))


def test_what_has_no_cwsa_raises_an_error():
    with pytest.raises(InputError, match="probabilities"):
        simulate.expected_cwsa(simulate.make("two-gaussians"), 0.5)
    with pytest.raises(DomainError, match=r"\[0, 1\)"):
        simulate.expected_cwsa(simulate.make("cwsa-perfect"), [0.5, 1.0])
    with pytest.raises(DomainError, match="informed_share"):
        simulate.confident_when_correct(1.0)
