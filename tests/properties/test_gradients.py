"""Gradients flow where a metric is differentiable, and nowhere else."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.properties.backends import drawn, with_view

import abstain as ab
from abstain import curves
from abstain._foundation.scored import validate_samples
from abstain.errors import InputError
from abstain.metrics import METRICS, cwsa, ece, failure_auroc, partial_aurc, risk_coverage_areas

torch = pytest.importorskip("torch")

INPUTS = ("loss", "confidence", "probabilities")
every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=lambda m: m.name)
#: The area metrics that are means of rank-weighted losses, and how they are called.
RANK_WEIGHTED = {
    "augrc": ab.augrc,
    "aurc": ab.aurc,
    "aurc_plugin": lambda *a, **k: ab.aurc(*a, estimator="plugin", **k),
    "aurc_log": lambda *a, **k: ab.aurc(*a, estimator="log", **k),
    "sele": lambda *a, **k: ab.aurc(*a, estimator="sele", **k),
    "two_sele": lambda *a, **k: ab.aurc(*a, estimator="2sele", **k),
}


@pytest.fixture
def jax():
    result = pytest.importorskip("jax")
    before = result.config.jax_enable_x64
    result.config.update("jax_enable_x64", True)
    yield result
    result.config.update("jax_enable_x64", before)


def leaf(x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def value_of(metric, given):
    data = SimpleNamespace(**given)
    s = validate_samples(data.confidence, data.loss, data.weight, uses_values=True)
    if s.xp is np and not isinstance(data.probabilities, np.ndarray):
        # All arrays of a record are of one library.
        loss = data.loss.clone().requires_grad_(True)
        s = validate_samples(data.confidence, loss, data.weight, uses_values=True).without_gradient
    return metric.compute(replace(s, class_view=with_view(s, data))).value


def as_tensors(data, *, weighted):
    given = {name: torch.tensor(x) for name, x in vars(data).items()}
    return given if weighted else {**given, "weight": None}


@every_metric
@pytest.mark.parametrize("weighted", [False, True])
def test_declared_gradients_equal_those_of_finite_differences(metric, weighted):
    given = as_tensors(drawn(13, seed=7, ties=False), weighted=weighted)
    for name in metric.measurement.gradients:
        start = given[name].clone().requires_grad_(True)
        assert torch.autograd.gradcheck(
            lambda x, n=name: value_of(metric, {**given, n: x}), start, eps=1e-7, atol=1e-6
        )


@every_metric
def test_no_other_gradient_flows(metric):
    given = as_tensors(drawn(11, seed=3), weighted=True)
    for name in set(INPUTS) - metric.measurement.gradients:
        start = given[name].clone().requires_grad_(True)
        assert isinstance(value_of(metric, {**given, name: start}), float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RANK_WEIGHTED)
def test_the_gradient_is_the_weight_of_the_rank(name, weighted):
    data = drawn(seed=2)
    weight = data.weight if weighted else None
    # Contributions are phi x loss x weight / W: with losses of 1 what is left is the gradient.
    ones = np.ones(data.loss.size)
    expected = ab.sample_contributions(data.confidence, ones, metric=name, weight=weight)
    loss = leaf(data.loss)
    RANK_WEIGHTED[name](data.confidence, loss, weight=weight).backward()
    np.testing.assert_allclose(loss.grad.numpy(), expected, rtol=0, atol=1e-15)
    losses_of_zero = leaf(np.zeros(ones.size))
    RANK_WEIGHTED[name](data.confidence, losses_of_zero, weight=weight).backward()
    np.testing.assert_allclose(losses_of_zero.grad.numpy(), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", RANK_WEIGHTED)
def test_jax_has_the_same_gradients(jax, name):
    data = drawn(20, seed=4)
    loss = jax.numpy.asarray(data.loss)

    def of(loss):
        return RANK_WEIGHTED[name](data.confidence, loss, weight=data.weight)

    value, gradient = jax.value_and_grad(of)(loss)
    assert float(value) == pytest.approx(of(data.loss), abs=1e-12)
    tensor = leaf(data.loss)
    of(tensor).backward()
    np.testing.assert_allclose(np.asarray(gradient), tensor.grad.numpy(), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "of",
    [
        lambda c, x: ab.selective_risk(c, x, coverage=0.6, rule="expected"),
        lambda c, x: partial_aurc(c, x, low=0.2, high=0.7, interpolation="hyperbolic"),
        lambda c, x: ece(c, x, binning="equal_mass"),
        lambda c, x: cwsa(c, x, threshold=0.35, ramp="sqrt"),
        lambda c, x: ab.risk_coverage_curve(c, x).risk.sum(),
    ],
    ids=["selective_risk", "partial", "ece", "cwsa", "curve"],
)
def test_jax_and_torch_agree(jax, of):
    data = drawn(20, seed=4)
    c, loss = leaf(data.confidence), leaf(data.loss)
    of(c, loss).backward()
    there = jax.grad(lambda c, x: of(c, x) + 0 * c.sum(), argnums=(0, 1))(
        jax.numpy.asarray(data.confidence), jax.numpy.asarray(data.loss)
    )
    mine = [np.zeros(20) if x.grad is None else x.grad.numpy() for x in (c, loss)]
    for a, b in zip(there, mine, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=0, atol=1e-12)


def test_what_has_no_values_yet_raises_an_error(jax):
    with pytest.raises(InputError, match=r"`loss` has no values inside jax\.jit"):
        jax.jit(lambda x: ab.augrc(np.array([0.2, 0.1]), x))(jax.numpy.ones(2))


def test_two_libraries_share_no_gradient(jax):
    def of(x):
        return ab.metrics.ece(leaf([0.2, 0.1]), x)

    with pytest.raises(InputError, match="arrays of one library"):
        jax.grad(of)(jax.numpy.ones(2))


def test_bad_values_are_named_where_a_gradient_flows():
    with pytest.raises(InputError, match="`loss` must be finite; got nan at index 1"):
        ab.augrc([0.3, 0.2], leaf([1.0, np.nan]))


def test_ties_share_the_gradient_of_a_probability():
    p, loss = leaf([0.8, 0.8, 0.3]), torch.tensor([0.0, 1.0, 1.0])
    cwsa(p, loss, threshold=0.5).backward()
    # Each sample has its own sign: (1 - 2 loss) / (1 - threshold) / n.
    np.testing.assert_allclose(p.grad.numpy(), [2 / 3, -2 / 3, 0.0], atol=1e-15)
    p.grad = None
    ece(p, loss, bins=2).backward()
    np.testing.assert_allclose(p.grad.numpy(), [1 / 3, 1 / 3, 1 / 3], atol=1e-15)


def test_curves_carry_gradients():
    data = drawn(seed=5)
    c = torch.tensor(data.confidence)
    for kind, phi in (
        (ab.risk_coverage_curve, "selective"),
        (ab.generalized_risk_coverage_curve, "generalized"),
    ):
        loss = leaf(data.loss)
        curve = kind(c, loss)
        assert curve.risk.requires_grad
        assert not curve.coverage.requires_grad
        curve.risk[-1].backward()
        np.testing.assert_allclose(loss.grad.numpy(), 1 / data.loss.size, atol=1e-15, err_msg=phi)
    loss = leaf(data.loss)
    assert curves.reliability_curve(c, loss).accuracy.requires_grad
    assert curves.error_retention_curve(c, loss).error.requires_grad
    assert not curves.failure_roc_curve(c, leaf(data.errors)).failures.requires_grad
    sweep = ab.cwsa_sweep(c, leaf(data.loss), thresholds=[0.2, 0.7])
    assert sweep.cwsa.requires_grad
    assert sweep.frame().height == 2


def test_areas_carry_gradients():
    data = drawn(seed=5)
    loss = leaf(data.loss)
    areas = risk_coverage_areas(data.confidence, loss)
    (areas.aurc + areas.risk).backward()
    expected = ab.sample_contributions(data.confidence, np.ones(60), metric="aurc") + 1 / 60
    np.testing.assert_allclose(loss.grad.numpy(), expected, atol=1e-15)
    assert isinstance(areas.n, int)


def test_plain_numbers_where_nothing_is_to_be_differentiated():
    c, loss = leaf([0.9, 0.5, 0.2]), leaf([0.0, 1.0, 1.0])
    assert isinstance(ab.augrc(c, loss.detach()), float)
    assert isinstance(failure_auroc(c, loss), float)
    assert isinstance(ab.working_point(c, loss, coverage=0.5).selective_risk, float)
    with torch.no_grad():
        assert isinstance(ab.augrc(c, loss), float)


def test_transformations_of_torch():
    c, loss = np.array([0.9, 0.8, 0.8, 0.3]), torch.tensor([0.0, 1.0, 0.0, 1.0])
    got = torch.func.grad(lambda x: ab.augrc(c, x))(loss)
    np.testing.assert_allclose(got.numpy(), ab.sample_contributions(c, np.ones(4)), atol=1e-7)
    with pytest.raises(InputError, match=r"torch\.func\.vmap"):
        torch.func.vmap(lambda x: ab.augrc(c, x))(loss[None])


def test_jax_in_single_precision(jax):
    jax.config.update("jax_enable_x64", False)
    # Nothing asks for integers or floats that are not there: JAX would warn.
    loss = jax.numpy.asarray([0.0, 1.0, 1.0])
    slope = jax.grad(lambda c: ece(c, loss, bins=2))(jax.numpy.asarray([0.8, 0.8, 0.3]))
    assert slope.dtype == np.float32
    np.testing.assert_allclose(np.asarray(slope), [1 / 3, 1 / 3, 1 / 3], atol=1e-6)
