"""The device code on array libraries that run everywhere: the same lines serve CUDA and CuPy."""

from types import SimpleNamespace

import numpy as np
import pytest

import abstain as ab
from abstain._foundation import arrays, device
from abstain._foundation.device import validate_on_device
from abstain._foundation.tie_groups import group_ties
from abstain.errors import InputError
from abstain.metrics.areas import risk_coverage_areas as areas_module
from abstain.metrics.areas.risk_coverage_areas import risk_coverage_areas

DTYPES = ["float32", "float64", "int64"]


@pytest.fixture(params=["torch", "array_api_strict", "numpy"])
def xp(request):
    pytest.importorskip("array_api_compat")
    return pytest.importorskip(request.param)


def drawn(n=400, *, seed=0, binary=True):
    rng = np.random.default_rng(seed)
    loss = rng.random(n) < 0.2 if binary else rng.exponential(size=n)
    return np.round(rng.normal(size=n), 1), loss, rng.integers(0, 3, n)


def group_ties_on_device(confidence, loss, weight=None):
    return group_ties(*validate_on_device(confidence, loss, weight)[:3])


def on(xp, x, dtype=None):
    return xp.asarray(x if dtype is None else x.astype(dtype))


def assert_same(got, expected, rtol):
    names = ("confidence", "count", "weight", "loss")
    got = SimpleNamespace(**{name: arrays.to_numpy(getattr(got, name), name) for name in names})
    assert np.array_equal(got.confidence, expected.confidence)
    assert np.array_equal(got.count, expected.count)
    np.testing.assert_allclose(got.weight, expected.weight, rtol=rtol)
    np.testing.assert_allclose(got.loss, expected.loss, rtol=rtol, atol=1e-13 * expected.loss.sum())


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_equal_those_of_the_host(xp, dtype, weighted, binary):
    confidence, loss, weight = drawn(binary=binary)
    confidence = (confidence * 10).astype(dtype)
    weight = weight if weighted else None
    got = group_ties_on_device(
        on(xp, confidence), on(xp, loss), on(xp, weight) if weighted else None
    )
    host = confidence.astype(np.float64) if dtype == "int64" else confidence
    expected = group_ties(host, loss, weight.astype(float) if weighted else None)
    parts = [part for part in vars(got).values() if part is not None and part is not False]
    assert {type(part) for part in parts} == {type(on(xp, loss))}
    assert_same(got, expected, 0 if binary and not weighted else 1e-10)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n", [1, 2, 400])
def test_areas_equal_those_of_the_host(monkeypatch, xp, n, weighted, binary):
    confidence, loss, weight = drawn(n, binary=binary)
    weight = weight + (n < 3) if weighted else None
    expected = vars(risk_coverage_areas(confidence, loss, weight=weight)).values()
    monkeypatch.setattr(areas_module, "is_computed_on_device", lambda *_: True)
    on_device = on(xp, weight) if weighted else None
    areas = risk_coverage_areas(on(xp, confidence), on(xp, loss), weight=on_device)
    got = tuple(vars(areas).values())
    assert got == pytest.approx(tuple(expected), rel=1e-12, abs=1e-15)
    assert [type(x) for x in got] == [float] * 3 + [int] * 3


def test_a_loss_on_the_host_travels_to_the_confidence(xp):
    confidence, loss, weight = drawn()
    got = group_ties_on_device(on(xp, confidence), loss.tolist(), weight)
    assert_same(got, group_ties(confidence, loss, weight.astype(float)), 1e-12)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_short_floats(kind):
    torch = pytest.importorskip("torch")
    confidence, loss, _ = drawn()
    tensor = torch.from_numpy(confidence).to(getattr(torch, kind))
    got = group_ties_on_device(tensor, torch.from_numpy(loss))
    assert_same(got, group_ties(tensor.to(torch.float32).numpy(), loss), 0)


def test_both_zeros_are_one_value(xp):
    got = group_ties_on_device(on(xp, np.array([0.0, -0.0, 1.0])), on(xp, np.array([1, 0, 0])))
    assert [int(count) for count in got.count] == [1, 2]


BAD = {
    "confidence": [("finite", np.nan), ("finite", np.inf)],
    "loss": [("finite", np.nan), ("negative", -1.0)],
    "weight": [("finite", np.inf), ("negative", -2.0)],
}


@pytest.mark.parametrize(
    ("name", "rule", "value"), [(name, *case) for name, cases in BAD.items() for case in cases]
)
def test_bad_values_are_named(xp, name, rule, value):
    given = dict(zip(("confidence", "loss", "weight"), drawn(binary=False), strict=True))
    given = {key: x.astype(np.float64) for key, x in given.items()}
    given[name][17] = value
    with pytest.raises(InputError, match=f"`{name}`.*{rule}.*index 17"):
        group_ties_on_device(**{key: on(xp, x) for key, x in given.items()})


@pytest.mark.parametrize(
    ("confidence", "loss", "weight"),
    [
        (np.zeros(0), np.zeros(0), None),
        (np.zeros(3), np.zeros(2), None),
        (np.zeros((3, 1)), np.zeros(3), None),
        (np.zeros(3), np.zeros(3), np.zeros(3)),
    ],
)
def test_bad_shapes_are_refused(xp, confidence, loss, weight):
    with pytest.raises(InputError):
        group_ties_on_device(
            on(xp, confidence), on(xp, loss), None if weight is None else on(xp, weight)
        )


@pytest.fixture
def as_on_device(monkeypatch):
    """Treat tensors of the CPU as if they lay on a device."""
    for module in (arrays, device):
        monkeypatch.setattr(module, "is_on_device", arrays.is_torch)
    return pytest.importorskip("torch")


def test_arrays_on_a_device_take_this_way(as_on_device):
    torch = as_on_device
    confidence, loss, weight = drawn()
    tensors = [torch.from_numpy(x) for x in (confidence, loss, weight)]
    for w in (None, 2):
        got = risk_coverage_areas(*tensors[:2], weight=None if w is None else tensors[w])
        expected = risk_coverage_areas(confidence, loss, weight=None if w is None else weight)
        assert vars(got) == pytest.approx(vars(expected), rel=1e-12)


def test_every_metric_is_computed_there(as_on_device):
    torch = as_on_device
    confidence, loss, weight = drawn()
    given = torch.from_numpy(confidence), torch.from_numpy(loss), torch.from_numpy(weight)
    for metric in (ab.augrc, ab.aurc, ab.failure_auroc, ab.e_aurc, ab.achievable_aurc):
        got = metric(given[0], given[1], weight=given[2])
        assert got == pytest.approx(metric(confidence, loss, weight=weight), abs=1e-12)
        assert isinstance(got, float)
    curve = ab.risk_coverage_curve(given[0], given[1])
    assert isinstance(curve.risk, torch.Tensor)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_thresholds_mean_the_same_in_short_floats(as_on_device, kind):
    torch = as_on_device
    confidence = torch.tensor([0.9, 0.7, 0.7, 0.3], dtype=getattr(torch, kind))
    loss, host = torch.tensor([0, 1, 0, 1]), np.array([0, 1, 0, 1])
    held = arrays.to_numpy(confidence, "confidence")
    for threshold in (0.9, 0.7, 0.3, 1.0):
        got = ab.working_point(confidence, loss, threshold=threshold)
        # As text, since some of it is NaN.
        assert repr(got) == repr(ab.working_point(held, host, threshold=threshold))
    assert ab.metrics.ece(confidence, loss, bins=10) == pytest.approx(
        ab.metrics.ece(held, host, bins=10), abs=1e-12
    )
    got = ab.sample_contributions(confidence, loss)
    assert got.tolist() == ab.sample_contributions(held, host).tolist()


def test_on_cuda_when_there_is_one():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    confidence, loss, _ = drawn(100_000)
    tensors = torch.from_numpy(confidence).cuda(), torch.from_numpy(loss).cuda()
    assert_same(group_ties_on_device(*tensors), group_ties(confidence, loss), 0)
    assert risk_coverage_areas(*tensors).aurc == pytest.approx(
        risk_coverage_areas(confidence, loss).aurc, rel=1e-12
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_that_overflow_are_refused(xp, weighted):
    loss, weight = np.full(3, 1e200 if weighted else 1e308), np.full(3, 1e150)
    with pytest.raises(InputError, match="`weight \\* loss`" if weighted else "`loss`"):
        validate_on_device(
            on(xp, np.arange(3.0)), on(xp, loss), on(xp, weight) if weighted else None
        )
