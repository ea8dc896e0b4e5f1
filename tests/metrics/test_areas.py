"""risk_coverage_areas: the definition, the reference values, validation and array libraries."""

import importlib.util

import numpy as np
import pytest
from tests.references.conformance import CASES

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.metrics.areas.risk_coverage_areas import RiskCoverageAreas, risk_coverage_areas

HAS_NUMBA = importlib.util.find_spec("numba") is not None


@pytest.fixture(
    params=["numpy", pytest.param("numba", marks=pytest.mark.skipif(not HAS_NUMBA, reason="numba"))]
)
def backend(request, monkeypatch):
    monkeypatch.setenv("ABSTAIN_NO_NUMBA", "1" if request.param == "numpy" else "0")
    return request.param


def drawn(n=500, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=n), 1).astype(np.float32), rng.random(n) < 0.2


def approx(areas):
    return RiskCoverageAreas(
        *(pytest.approx(x, rel=1e-12, abs=1e-15) for x in vars(areas).values())
    )


def test_conformance(backend):
    for case in CASES:
        areas = risk_coverage_areas(case["confidence"], case["loss"])
        expected = case["expected"]
        assert areas.aurc == pytest.approx(expected["fdshifts_aurc"], abs=1e-9), case["name"]
        assert areas.augrc == pytest.approx(expected["fdshifts_augrc"], abs=1e-9), case["name"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("loss_dtype", ["bool", "uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 500, 40_000])
def test_every_dtype_gives_the_same(backend, n, dtype, loss_dtype):
    confidence, loss = drawn(n)
    confidence = confidence.astype(np.float16)
    expected = risk_coverage_areas(confidence.astype(np.float64), loss)
    got = risk_coverage_areas(confidence.astype(dtype), loss.astype(loss_dtype))
    assert got == approx(expected)
    assert [type(x) for x in vars(got).values()] == [float] * 3 + [int] * 3


def test_all_right_all_wrong_and_one_sample(backend):
    confidence = np.array([0.3, 0.1, 0.2])
    assert risk_coverage_areas(confidence, [0, 0, 0]) == RiskCoverageAreas(0, 0, 0, 3, 0, 0)
    assert risk_coverage_areas(confidence, [1, 1, 1]) == RiskCoverageAreas(1, 0.5, 1, 3, 3, 0)
    assert risk_coverage_areas([0.4], [True]) == RiskCoverageAreas(1, 0.5, 1, 1, 1, 0)


def test_integer_weights_count_a_sample_so_many_times(backend):
    confidence, loss = drawn(200)
    weight = np.random.default_rng(1).integers(0, 4, 200)
    weighted = risk_coverage_areas(confidence, loss, weight=weight)
    repeated = risk_coverage_areas(np.repeat(confidence, weight), np.repeat(loss, weight))
    assert weighted.aurc == pytest.approx(repeated.aurc, rel=1e-12)
    assert weighted.augrc == pytest.approx(repeated.augrc, rel=1e-12)
    assert weighted.risk == pytest.approx(repeated.risk, rel=1e-12)
    assert weighted.n == np.count_nonzero(weight)


def test_real_losses_equal_the_general_formula(backend):
    confidence, loss = drawn(300)
    scaled = risk_coverage_areas(confidence, loss * 2.5)
    plain = risk_coverage_areas(confidence, loss)
    assert scaled.aurc == pytest.approx(2.5 * plain.aurc, rel=1e-12)
    assert scaled.augrc == pytest.approx(2.5 * plain.augrc, rel=1e-12)
    assert (scaled.failures, scaled.tied) == (plain.failures, plain.tied)


def test_general_input_is_served(backend):
    confidence, loss = drawn(300)
    expected = approx(risk_coverage_areas(confidence, loss))
    as_int = np.round(confidence * 10).astype(int)
    assert risk_coverage_areas(as_int, loss) == expected
    assert risk_coverage_areas(confidence.tolist(), loss.tolist()) == expected
    assert risk_coverage_areas(confidence.astype(">f4"), loss) == expected
    assert risk_coverage_areas(confidence.astype(np.longdouble), loss) == expected


@pytest.mark.parametrize("n", [300, 40_000])
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "float64"])
def test_torch_tensors(backend, n, kind):
    torch = pytest.importorskip("torch")
    confidence, loss = drawn(n)
    tensor = torch.from_numpy(confidence).to(getattr(torch, kind))
    expected = approx(risk_coverage_areas(tensor.to(torch.float64).numpy(), loss))
    assert risk_coverage_areas(tensor, torch.from_numpy(loss)) == expected
    assert risk_coverage_areas(tensor.requires_grad_(), loss) == expected


@pytest.mark.parametrize("n", [300, 40_000])
def test_ml_dtypes_brain_floats(backend, n):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    confidence, loss = drawn(n)
    brain = confidence.astype(ml_dtypes.bfloat16)
    assert risk_coverage_areas(brain, loss) == approx(
        risk_coverage_areas(brain.astype(np.float64), loss)
    )


def message(function, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [10, 40_000])
def test_bad_confidence_raises_what_the_checks_raise(backend, n, dtype, bad):
    confidence, loss = drawn(n)
    confidence = confidence.astype(dtype)
    confidence[[3, 7]] = bad
    text = message(risk_coverage_areas, confidence, loss)
    assert text == message(checks.confidence, confidence)
    assert "index 3" in text


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("n", [10, 40_000])
def test_bad_loss_raises_what_the_checks_raise(backend, n, dtype, bad):
    confidence, loss = drawn(n)
    loss = loss.astype(np.float64)
    loss[5] = bad
    text = message(risk_coverage_areas, confidence.astype(dtype), loss)
    assert text == message(checks.loss, loss)
    assert "index 5" in text


@pytest.mark.parametrize(
    ("confidence", "loss"),
    [([], []), ([0.1, 0.2], [0]), ([[0.1], [0.2]], [0, 1]), (["a", "b"], [0, 1])],
)
def test_bad_shapes_are_refused(confidence, loss):
    with pytest.raises(InputError):
        risk_coverage_areas(np.array(confidence), np.array(loss))
