"""Every score of plain arrays, in every array library: the same numbers, on the caller's device.

The functions are found by their being exported: a new one is tested here without being named.
"""

import inspect

import numpy as np
import pytest

from abstain import confidence
from abstain.errors import DomainError, ShapeError
from abstain.predictions import softmax

INPUTS = ("logits", "probabilities", "logit_samples", "probability_samples")


def inputs_of(name):
    return [p for p in inspect.signature(getattr(confidence, name)).parameters if p in INPUTS]


FUNCTIONS = [
    name
    for name in confidence.__all__
    if inspect.isfunction(getattr(confidence, name)) and inputs_of(name)
]
CASES = [(name, given) for name in FUNCTIONS for given in inputs_of(name)]
#: The functions of logits alone, where each case costs JAX several compilations.
FLAT = [case for case in CASES if case[1] == "logits"]
#: Scores that are smooth even where the two largest logits are equal.
SMOOTH = [
    "negative_energy",
    "negative_predictive_entropy",
    "negative_gini",
    "negative_generalized_entropy",
]


def logits():
    """Ordinary rows, saturated ones, a tie of the largest, and rows of equal logits."""
    z = np.random.default_rng(5).normal(size=(24, 5)) * 3
    z[0, 2], z[1, 0] = 60.0, 400.0
    z[2, :2] = z[2].max() + 1.0
    z[3] = 0.25
    return z


def probabilities():
    """The softmax of the logits, classes of probability 0, and a certain row."""
    z = logits()
    p = np.exp(z - z.max(-1, keepdims=True))
    p[4:8, 1] = 0.0
    p /= p.sum(-1, keepdims=True)
    p[8] = [0.0, 1.0, 0.0, 0.0, 0.0]
    return p


def data(given):
    if given == "logits":
        return logits()
    if given == "probabilities":
        return probabilities()
    first = logits() if given == "logit_samples" else probabilities()
    # The samples of the first rows are equal, those of the others are not.
    others = [np.where(np.arange(24)[:, None] < 10, first, np.roll(first, k, 0)) for k in (3, 5)]
    return np.stack([first, *others], axis=1)


def smooth_point(given):
    """A few rows away from ties of the largest, where every score has a derivative."""
    shape = (3, 4) if given in INPUTS[:2] else (3, 3, 4)
    z = np.random.default_rng(8).normal(size=shape) + np.array([2.0, 0.9, 0.0, -0.7])
    p = np.exp(z)
    return z if "logit" in given else p / p.sum(-1, keepdims=True)


def call(name, given, array, **options):
    return getattr(confidence, name)(**{given: array}, **options)


def assert_same(result, name, given, array, tolerance=1e-10):
    assert result.shape == (len(array),)
    np.testing.assert_allclose(
        np.asarray(result), call(name, given, array), rtol=tolerance, atol=tolerance
    )


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def configured_jax(*, float64):
    module = pytest.importorskip("jax")
    before = module.config.jax_enable_x64
    module.config.update("jax_enable_x64", float64)
    yield module
    module.config.update("jax_enable_x64", before)


@pytest.fixture
def narrow_jax():
    yield from configured_jax(float64=False)


@pytest.fixture
def jax():
    yield from configured_jax(float64=True)


def test_the_catalogue_is_covered():
    assert len(FUNCTIONS) >= 15
    assert {"max_softmax_response", "mean_max_logit", "logit_margin"} <= {*FUNCTIONS}


@pytest.mark.parametrize(("name", "given"), CASES)
def test_numpy_stays_numpy_and_untouched(name, given):
    array = data(given)
    array.flags.writeable = False
    result = call(name, given, array)
    assert type(result) is np.ndarray
    assert result.dtype == np.float64
    assert np.isfinite(result).all()
    np.testing.assert_array_equal(call(name, given, array.tolist()), result)


@pytest.mark.parametrize(("name", "given"), CASES)
def test_torch(name, given, torch):
    array = data(given)
    tensor = torch.from_numpy(array.copy())
    result = call(name, given, tensor)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.float64
    assert not result.requires_grad
    assert_same(result, name, given, array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    differentiated = call(name, given, tensor.requires_grad_())
    assert differentiated.requires_grad
    assert_same(differentiated.detach(), name, given, array)
    with torch.no_grad():
        assert not call(name, given, tensor).requires_grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64"])
@pytest.mark.parametrize(("name", "given"), CASES)
def test_narrow_torch_tensors_are_worked_on_in_float64(name, given, dtype, torch):
    tensor = torch.from_numpy(data(given))
    if dtype == "int64" and "probab" in given:
        tensor = torch.nn.functional.one_hot(tensor.argmax(-1), 5)
    narrow = tensor.to(getattr(torch, dtype))
    result = call(name, given, narrow)
    if narrow.is_floating_point():
        # With a gradient PyTorch works on the tensor, without one NumPy does.
        own = call(name, given, narrow.requires_grad_())
        torch.testing.assert_close(own.detach(), result, rtol=1e-10, atol=1e-10)
        narrow = narrow.detach()
    assert result.dtype == torch.float64
    # The float64 copy of bfloat16 rows misses 1 by more than float64 rounding may.
    wide = narrow.double().numpy()
    wide = wide / wide.sum(-1, keepdims=True) if "probab" in given else wide
    assert_same(result, name, given, wide)


@pytest.mark.parametrize("device", ["CPU_DEVICE", "device1"])
@pytest.mark.parametrize(("name", "given"), CASES)
def test_array_api_strict(name, given, device):
    """Its second device refuses to become NumPy, as an accelerator's memory would."""
    xp = pytest.importorskip("array_api_strict")
    array = data(given)
    where = xp.Device(device)
    result = call(name, given, xp.asarray(array, device=where))
    assert type(result).__module__.startswith("array_api_strict")
    assert (result.device, result.dtype) == (where, xp.float64)
    assert_same(result.to_device(xp.Device("CPU_DEVICE")), name, given, array)


@pytest.mark.parametrize(("name", "given"), FLAT)
def test_jax(name, given, jax):
    array = data(given)
    result = call(name, given, jax.numpy.asarray(array))
    assert isinstance(result, jax.Array)
    assert result.dtype == np.float64
    assert_same(result, name, given, array)


@pytest.mark.parametrize(("name", "given"), FLAT)
def test_jax_without_float64_gives_float32(name, given, narrow_jax):
    jax, array = narrow_jax, data(given)[4:].astype(np.float32)
    result = jax.jit(lambda x: call(name, given, x))(jax.numpy.asarray(array))
    assert result.dtype == np.float32
    # Float32 logits of size 10 leave about six digits of a log-odds, and fewer of their margin.
    assert_same(result, name, given, array, tolerance=2e-4)


@pytest.mark.parametrize(("name", "given"), CASES)
def test_cuda(name, given, torch):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    array = data(given)
    result = call(name, given, torch.from_numpy(array).cuda())
    assert result.device.type == "cuda"
    assert_same(result.cpu(), name, given, array)


@pytest.mark.parametrize(("name", "given"), CASES)
def test_torch_gradients_are_the_derivatives(name, given, torch):
    point = torch.from_numpy(smooth_point(given)).requires_grad_()
    assert call(name, given, point).requires_grad
    assert torch.autograd.gradcheck(lambda x: call(name, given, x), (point,))


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_at_ties_of_smooth_scores(name, torch):
    point = torch.tensor([[1.0, 1.0, 0.3], [0.2, 0.2, 0.2]], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda x: call(name, "logits", x), (point.requires_grad_(),), atol=1e-6
    )


def torch_slope(torch, name, given, array):
    point = torch.from_numpy(array.copy()).requires_grad_()
    call(name, given, point).sum().backward()
    return point.grad.numpy()


@pytest.mark.parametrize(("name", "given"), CASES)
def test_gradients_are_finite_everywhere(name, given, torch):
    """At ties, at probabilities of 0, where one class is certain, where the samples agree."""
    assert np.isfinite(torch_slope(torch, name, given, data(given))).all()


@pytest.mark.parametrize(("name", "given"), CASES)
def test_jax_under_jit_with_gradients(name, given, jax, torch):
    array = data(given)

    def total(x):
        values = call(name, given, x)
        return values.sum(), values

    compiled = jax.jit(jax.grad(total, has_aux=True))
    slope, values = compiled(jax.numpy.asarray(array))
    assert_same(values, name, given, array)
    assert np.isfinite(slope).all()
    # At the ties of the first rows each library may choose a side.
    expected = torch_slope(torch, name, given, array)
    np.testing.assert_allclose(slope[4:], expected[4:], rtol=1e-9, atol=1e-12)


def test_jax_gradients_without_jit(jax):
    slope = jax.grad(lambda x: confidence.max_softmax_response(x).sum())
    assert slope(jax.numpy.asarray([[3.0, 1.0]])).tolist() == [[1.0, -1.0]]
    with pytest.raises(DomainError, match="`logits` must be finite"):
        slope(jax.numpy.asarray([[np.nan, 1.0]]))


def test_refusals_on_a_device():
    xp = pytest.importorskip("array_api_strict")
    bad = xp.asarray([[0.5, 0.4]], device=xp.Device("device1"))
    with pytest.raises(DomainError, match=r"must sum to 1 .* got 0.9 at index 0"):
        confidence.negative_gini(probabilities=bad)


@pytest.mark.parametrize(("name", "given"), FLAT)
def test_jax_vmap(name, given, jax):
    array = data(given)
    each = jax.jit(jax.vmap(lambda z: call(name, given, z[None])[0]))
    assert_same(each(jax.numpy.asarray(array)), name, given, array)


@pytest.mark.parametrize(("name", "given"), CASES)
def test_torch_transformations(name, given, torch):
    array = data(given)
    x = torch.from_numpy(array)
    each = torch.func.vmap(lambda z: call(name, given, z[None])[0])
    assert_same(each(x), name, given, array)
    slope = torch.func.grad(lambda z: call(name, given, z).sum())(x)
    np.testing.assert_array_equal(slope, torch_slope(torch, name, given, array))


def test_values_are_not_checked_while_tracing(jax):
    bad = jax.numpy.asarray([[0.0, np.nan]])
    assert np.isnan(jax.jit(confidence.max_logit)(bad)[0])
    with pytest.raises(ShapeError, match=r"`logits` must have shape \(n, K\); got shape \(2,\)"):
        jax.jit(confidence.max_logit)(bad[0])


@pytest.mark.parametrize(("name", "given"), CASES)
def test_blocks_change_nothing(name, given, torch, monkeypatch):
    array = data(given)
    x = torch.from_numpy(array)
    whole, slope = call(name, given, x), torch_slope(torch, name, given, array)
    monkeypatch.setattr(softmax, "BLOCK_ENTRIES", 37)
    torch.testing.assert_close(call(name, given, x), whole, rtol=1e-14, atol=1e-14)
    sliced = torch_slope(torch, name, given, array)
    np.testing.assert_allclose(sliced, slope, rtol=1e-14, atol=1e-14)


def test_a_device_has_larger_blocks():
    host, device = (list(softmax.row_blocks(10**6, 1000, on_device=far)) for far in (False, True))
    assert len(host) > len(device) > 1
    assert device[-1].stop == 10**6


@pytest.mark.parametrize("library", ["torch", "jax", "strict"])
def test_refusals_name_the_entry(library, request):
    if library == "strict":
        make = pytest.importorskip("array_api_strict").asarray
    elif library == "torch":
        make = request.getfixturevalue("torch").tensor
    else:
        make = request.getfixturevalue("jax").numpy.asarray
    with pytest.raises(DomainError, match=r"`logits` must be finite; got nan at index \(1, 0\)"):
        confidence.max_logit(make([[0.0, 1.0], [np.nan, 1.0]]))
    with pytest.raises(DomainError, match=r"`probabilities` must not be negative; got -0.5 at"):
        confidence.negative_gini(probabilities=make([[1.5, -0.5]]))
    with pytest.raises(DomainError, match=r"must sum to 1 .* got 0.9 at index 1 \(1 such rows\)"):
        confidence.negative_gini(probabilities=make([[0.5, 0.5], [0.5, 0.4]]))
    with pytest.raises(ShapeError, match=r"`logits` must have shape \(n, K\); got shape \(2,\)"):
        confidence.max_softmax_response(make([0.0, 1.0]))
    with pytest.raises(ShapeError, match="at least two samples a row"):
        confidence.mean_max_logit(make([[[0.0, 1.0]]]))
    with pytest.raises(DomainError, match="`logits` must hold numbers; got complex"):
        confidence.max_logit(make([[1j, 2.0]]))


def test_refusals_of_tensors_with_a_gradient(torch):
    bad = torch.tensor([[np.inf, 0.0]], requires_grad=True)
    with pytest.raises(DomainError, match=r"`logits` must be finite; got inf at index \(0, 0\)"):
        confidence.max_logit(bad)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("negative_generalized_entropy", {"top": 1}),
        ("negative_generalized_entropy", {"top": 3, "gamma": 0.5}),
        ("normalized_max_logit", {"p": 2.5}),
        ("max_softmax_response", {"temperature": 2.5}),
        ("negative_energy", {"temperature": 0.5}),
    ],
)
def test_options(name, options, torch):
    xp = pytest.importorskip("array_api_strict")
    array, expected = logits(), call(name, "logits", logits(), **options)
    tensor = call(name, "logits", torch.from_numpy(array), **options)
    strict = call(name, "logits", xp.asarray(array), **options)
    for values in (tensor, strict):
        np.testing.assert_allclose(np.asarray(values), expected, rtol=1e-10, atol=1e-10)
    point = torch.from_numpy(smooth_point("logits")).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: call(name, "logits", x, **options), (point,))
