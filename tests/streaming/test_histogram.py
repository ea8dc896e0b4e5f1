"""States of streams: what they keep, what they refuse, and how tight the limits are."""

import numpy as np
import pytest

import abstain as ab
from abstain import streaming
from abstain.errors import DomainError, InputError, ShapeError, UndefinedMetricWarning
from abstain.streaming.scales import bin_index


def network(n=10**5, seed=0):
    """Confidences of a classifier that is sure of most samples, some of them exactly 1."""
    rng = np.random.default_rng(seed)
    z = np.abs(rng.normal(4, 3, n))
    p = (1 / (1 + np.exp(-z))).astype(np.float32)
    wrong = rng.random(n) > p
    p[: n // 3][~wrong[: n // 3]] = 1
    return p, wrong.astype(float)


def filled(c, x, w=None, **options):
    return streaming.update(streaming.init(**options), c, x, w)


# Half of the bins' share of the samples and less; measured at n = 10^6 they are the same.
WIDTHS = {
    "augrc": 3e-6, "aurc": 5e-6, "aurc_plugin": 5e-6, "sele": 3e-6, "failure_auroc": 5e-5,
    "selective_risk@80cov": 1e-5, "coverage@1risk": 3e-4, "cwsa@0.5": 2e-4,
}  # fmt: skip


def test_the_limits_are_tight_on_probabilities():
    c, x = network()
    state = filled(c, x)
    assert not state.exact
    for name, width in WIDTHS.items():
        value = streaming.compute(state, name)
        exact = exact_of(name, c, x)
        assert value.low <= exact <= value.high, name
        assert value.high - value.low < width, name
        assert abs(value.value - exact) <= value.error_bound


def exact_of(name, c, x):
    from abstain._foundation.scored import validate_samples

    return ab.metrics.metric_named(name).compute(validate_samples(c, x)).value


def test_bfloat16_bins_would_be_far_coarser():
    # Why the scale "probability" is not the leading 16 bits of float32.
    c, x = network()
    widths = {
        name: width_of(index, x)
        for name, index in {
            "bfloat16": c.view(np.uint32) >> 16,
            "probability": bin_index(np, c.astype(float), scale="probability", bins=65536),
        }.items()
    }
    assert widths["bfloat16"] > 50 * widths["probability"]


def width_of(index, x):
    """Width of the limits of AUGRC: in each bin, failures x successes, over n^2."""
    _, bins = np.unique(index, return_inverse=True)
    count, failures = np.bincount(bins), np.bincount(bins, weights=x)
    return float(np.sum(failures * (count - failures))) / x.size**2


def test_a_mass_point_costs_nothing():
    c, x = network()
    state = filled(c, x)
    tie = state.max_confidence == 1
    assert tie.sum() == 1
    assert state.count[tie][0] == (c == 1).sum()
    assert not state.has_several_confidences[tie][0]


def test_limits_of_binary_losses_are_attained():
    # Three confidences in one bin of 256, among others far away.
    c = np.array([0.2, 0.7000, 0.7001, 0.7002, 0.95])
    x = np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    state = filled(c, x, bins=256)
    assert np.count_nonzero(state.count) == 3
    for name in ("augrc", "aurc_plugin", "aurc_log", "sele", "failure_auroc"):
        value = streaming.compute(state, name)
        inner = [
            exact_of(name, c, x[[0, *order, 4]]) for order in ((1, 2, 3), (2, 1, 3), (1, 3, 2))
        ]
        assert value.low == pytest.approx(min(inner), rel=1e-9)
        assert value.high == pytest.approx(max(inner), rel=1e-9)


def test_limits_of_what_right_answers_are_worth_are_the_ends_of_their_bin():
    # Of three confidences in one bin, one is wrong: it is not known which.
    c, x = np.array([0.7, 0.7001, 0.7002, 0.95]), np.array([0.0, 1.0, 0.0, 0.0])
    state = filled(c, x, bins=256)
    assert np.count_nonzero(state.count) == 2
    value = streaming.compute(state, "cwsa_plus@0.5")
    # The two right ones both at 0.7, or both at 0.7002; worth (p - 0.5) / 0.5, of four accepted.
    assert value.low == pytest.approx((2 * 0.4 + 0.9) / 4)
    assert value.high == pytest.approx((2 * 0.4004 + 0.9) / 4)
    assert value.low < exact_of("cwsa_plus@0.5", c, x) < value.high


def test_halves_have_bins_of_their_own():
    every = np.arange(0, 0x3C01, dtype=np.uint16).view(np.float16)
    for dtype, values in {
        "float16": every[every >= 1 / 32].astype(np.float64),
        "bfloat16": (np.arange(0, 0x3F81, dtype=np.uint32) << 16).view(np.float32).astype(float),
    }.items():
        kept = values[values >= 2.0**-33]
        index = bin_index(np, kept, scale="probability", bins=65536)
        assert np.unique(index).size == kept.size, dtype


@pytest.mark.parametrize(
    ("scale", "point", "neighbors"),
    [
        ("probability", 0.0, [2.0**-1074, 2.0**-40]),
        ("probability", 1.0, [1 - 2.0**-53, 1 - 2.0**-33]),
        ("real", 0.0, [-(2.0**-1074), 2.0**-1074]),
    ],
)
def test_points_where_confidences_pile_up_have_a_bin_of_their_own(scale, point, neighbors):
    for bins in (256, 65536):
        index = bin_index(np, np.array([point, -point * 0.0, *neighbors]), scale=scale, bins=bins)
        assert index[0] not in index[2:]
        assert point == 1 or index[0] == index[1]


def test_far_confidences_share_the_outermost_bins():
    c = np.array([-1e300, -1e12, 1e12, 1e300, 5.0])
    x = np.array([1, 0, 0, 1, 0.0])
    state = filled(c, x, scale="real")
    value = streaming.compute(state, "augrc")
    assert value.low < ab.augrc(c, x) < value.high
    assert state.n == 5


def test_weights():
    rng = np.random.default_rng(0)
    c, x = rng.random(500), (rng.random(500) < 0.3).astype(float)
    w = rng.integers(0, 4, 500)
    weighted, repeated = filled(c, x, w), filled(np.repeat(c, w), np.repeat(x, w))
    np.testing.assert_array_equal(weighted.weight, repeated.weight)
    assert streaming.compute(weighted, "aurc") == streaming.compute(repeated, "aurc")
    assert weighted.n == np.count_nonzero(w)


@pytest.mark.parametrize("scale", ["probability", "log-odds", "real"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [256, 65536])
def test_sorting_a_batch_fills_the_bins_that_each_sample_has(monkeypatch, scale, dtype, bins):
    rng = np.random.default_rng(0)
    near = np.array([0, -0.0, 1, 0.5, 2.0**-33, 2.0**-40, 1e-45, 1 - 2.0**-24, 0.25], dtype)
    c = np.concatenate([near, np.nextafter(near[2:], dtype(0)), rng.random(3000).astype(dtype)])
    if scale != "probability":
        far = [1e30, -1e30, np.finfo(dtype).max, np.finfo(dtype).min, 64, -64, -1e-45]
        c = np.concatenate([c, 5 * c - 2, np.array(far, dtype)])
    x = rng.random(c.size) < 0.3
    slow = filled(c, x, scale=scale, bins=bins)
    monkeypatch.setattr(streaming.histogram, "_MIN_SAMPLES_PER_BIN_TO_SORT", 0)
    fast = filled(c, x, scale=scale, bins=bins)
    for name in ("count", "weight", "loss", "min_confidence", "max_confidence"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name))
    assert (fast.binary, fast.largest_loss, fast.precision) == (True, 1, slow.precision)


def test_other_arrays():
    torch = pytest.importorskip("torch")
    c, x = network(100)
    brain = torch.tensor(c).to(torch.bfloat16)
    state = filled(brain, torch.tensor(x))
    assert state.exact
    expected = ab.augrc(brain, torch.tensor(x))
    assert streaming.compute(state).value == pytest.approx(expected, rel=1e-12)
    assert filled(c.tolist(), x.tolist()).precision == 64


def test_states_are_sealed():
    state = filled([0.5], [1])
    with pytest.raises(ValueError, match="read-only"):
        state.count[0] = 1


def test_undefined_is_nan_with_a_reason():
    with pytest.warns(UndefinedMetricWarning, match="augrc is undefined: there are no samples"):
        value = streaming.compute(streaming.init())
    assert np.isnan([value.value, value.low, value.high]).all()
    with pytest.warns(UndefinedMetricWarning, match="no failures"):
        streaming.compute(filled([0.5, 0.6], [0, 0]), "failure_auroc")
    with pytest.warns(UndefinedMetricWarning, match="no sample reaches"):
        streaming.compute(filled([0.5, 0.6], [0, 0]), "cwsa_plus@0.7")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: streaming.init(bins=1000),
            InputError,
            "power of two from 256 to 16777216; got 1000",
        ),
        (lambda: streaming.init(bins=True), InputError, "`bins`"),
        (lambda: streaming.init(scale="logit"), InputError, "`scale` must be one of"),
        (
            lambda: filled([0.5, 1.5], [0, 1]),
            DomainError,
            r"lie in \[0, 1\]; got 1.5.*scale='real'",
        ),
        (lambda: filled([0.5, np.nan], [0, 1]), DomainError, "`confidence` must be finite"),
        (lambda: filled([0.5], [-1]), DomainError, "`loss` must not be negative"),
        (lambda: filled([], []), ShapeError, "empty"),
        (
            lambda: streaming.merge(streaming.init(), streaming.init(bins=256)),
            InputError,
            "same bins; got 65536 bins .* and 256 bins",
        ),
        (
            lambda: streaming.merge(streaming.init(), streaming.init(scale="real")),
            InputError,
            "'probability' and 65536 bins on the scale 'real'",
        ),
        (lambda: streaming.compute(filled([0.5], [1]), "e_aurc"), InputError, "bounded memory"),
        (
            lambda: streaming.compute(filled([0.5], [1]), "augcr"),
            InputError,
            "Did you mean 'augrc'",
        ),
        (
            lambda: streaming.compute(filled([0.5], [0.5]), "failure_auroc"),
            DomainError,
            "needs a 0/1 loss",
        ),
        (
            lambda: streaming.compute(filled([5.0], [1], scale="real"), "cwsa@0.5"),
            DomainError,
            r"needs a confidence in \[0, 1\]",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
