"""Streams: batches and merges do not matter, and the limits hold the exact value."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import abstain as ab
from abstain import streaming
from abstain._foundation.checks import reject_swapped_arguments
from abstain._foundation.scored import validate_samples
from abstain.errors import InputError, UndefinedMetricWarning
from abstain.metrics import METRICS, metric_named
from abstain.streaming.scales import SCALES, bin_index

# Made-up numbers too: each limit has cases of its own around a coverage, a risk, a threshold.
RANK = (
    "augrc", "aurc", "aurc_plugin", "aurc_log", "sele", "two_sele", "auarc", "failure_auroc",
    "selective_risk@0cov", "selective_risk@37.5cov", "selective_risk@80cov",
    "coverage@0risk", "coverage@20risk",
)  # fmt: skip
OF_PROBABILITIES = ("cwsa@0.5", "cwsa@0.903", "cwsa_plus@0.903")
ARRAYS = ("count", "weight", "loss", "min_confidence", "max_confidence")


def confidences(scale):
    if scale == "probability":
        # Close together around a few centers, so that coarse bins hold several.
        near = st.tuples(st.sampled_from([0.1, 0.5, 0.9, 0.999]), st.integers(-3, 3))
        return st.one_of(
            near.map(lambda pair: pair[0] * (1 + pair[1] / 4096)),
            st.sampled_from([0.0, 1.0, 0.5]),
            st.floats(0, 1),
        )
    return st.one_of(st.integers(-4, 4).map(lambda k: 3 + k / 512), st.floats(-1e3, 1e3))


@st.composite
def streams(draw, *, scale=None, losses=("binary", "unit", "any")):
    scale = draw(st.sampled_from(SCALES)) if scale is None else scale
    n = draw(st.integers(1, 14))
    kind = {
        "binary": st.integers(0, 1).map(float),
        "unit": st.floats(0, 1),
        "any": st.floats(0, 50),
    }[draw(st.sampled_from(losses))]
    c = np.array(draw(st.lists(confidences(scale), min_size=n, max_size=n)))
    x = np.array(draw(st.lists(kind, min_size=n, max_size=n)))
    numbers = st.sampled_from([st.integers(1, 3).map(float), st.floats(0.1, 4)])
    w = draw(st.none() | numbers.flatmap(lambda one: st.lists(one, min_size=n, max_size=n)))
    c = c.astype(draw(st.sampled_from([np.float64, np.float32, np.float16])))
    assume(not looks_swapped(c, x))
    return scale, c, x, None if w is None else np.array(w)


def looks_swapped(c, x):
    """Whether metrics refuse these as a loss and a confidence; a stream sees a part of more."""
    try:
        reject_swapped_arguments(c, x)
    except InputError:
        return True
    return False


def exact_value(name, c, x, w):
    return metric_named(name).compute(validate_samples(c, x, w)).value


def held(name, state, c, x, w):
    """Whether the limits hold the exact value, or both are undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = streaming.compute(state, name)
    exact = exact_value(name, c, x, w)
    if np.isnan(exact):
        return np.isnan(value.value)
    assert value.low <= value.value <= value.high
    # An exact state has no margin: there only sums in another order may differ.
    near = 1e-12 * abs(exact) if state.exact else 0.0
    return value.low - near <= exact <= value.high + near


@pytest.mark.parametrize("name", RANK + OF_PROBABILITIES)
def test_the_limits_hold_the_exact_value(name):
    binary = name == "failure_auroc"
    unit = name == "auarc" or name in OF_PROBABILITIES
    losses = ("binary",) if binary else ("binary", "unit") if unit else ("binary", "unit", "any")
    scale = "probability" if name in OF_PROBABILITIES else None

    @given(streams(scale=scale, losses=losses), st.sampled_from([256, 4096, 65536]))
    def check(stream, bins):
        scale, c, x, w = stream
        state = streaming.update(streaming.init(bins=bins, scale=scale), c, x, w)
        assert held(name, state, c, x, w)

    check()


@given(streams(losses=("binary",)), st.data())
def test_batches_and_merges_do_not_matter(stream, data):
    scale, c, x, w = stream
    w = None if w is None else np.ceil(w)
    empty = streaming.init(bins=256, scale=scale)
    whole = streaming.update(empty, c, x, w)
    cuts = sorted(data.draw(st.lists(st.integers(0, c.size), max_size=4)))
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, c.size], strict=True) if a < b]
    states = [empty]
    for part in data.draw(st.permutations(parts)):
        given_weight = None if w is None else w[part]
        if data.draw(st.booleans()):
            states.append(streaming.update(empty, c[part], x[part], given_weight))
        else:
            states[-1] = streaming.update(states[-1], c[part], x[part], given_weight)
    while len(states) > 1:
        at = data.draw(st.integers(0, len(states) - 2))
        states[at : at + 2] = [streaming.merge(states[at + 1], states[at])]
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(states[0], name), getattr(whole, name))
    assert streaming.compute(states[0]) == streaming.compute(whole)


@given(st.sampled_from(SCALES), st.sampled_from([256, 65536]), st.data())
def test_bins_keep_the_order(scale, bins, data):
    values = st.floats(0, 1) if scale == "probability" else st.floats(-1e300, 1e300)
    c = np.sort(data.draw(st.lists(values, min_size=2, max_size=30)))
    index = bin_index(np, c, scale=scale, bins=bins)
    assert (np.diff(index) >= 0).all()
    assert index.min() >= 0
    assert index.max() < bins
    if scale != "log-odds":
        with np.errstate(over="ignore"):
            short = c.astype(np.float32)
        kept = np.isfinite(short)
        wide = bin_index(np, short[kept].astype(np.float64), scale=scale, bins=bins)
        assert (bin_index(np, short[kept], scale=scale, bins=bins) == wide).all()


@given(streams(losses=("binary",)))
def test_one_confidence_a_bin_loses_nothing(stream):
    _, c, x, w = stream
    state = streaming.init()
    kept = np.isin(c.astype(np.float64), c.astype(np.float16).astype(np.float64))
    c = np.where(kept, c, 0).astype(np.float16).clip(0, 1)
    state = streaming.update(state, c, x, w)
    assert state.exact
    for name in ("augrc", "aurc", "aurc_plugin", "selective_risk@80cov", "coverage@20risk"):
        value = streaming.compute(state, name)
        assert value.low == value.value == value.high
        assert value.value == pytest.approx(exact_value(name, c, x, w), rel=1e-12)


def test_every_default_working_point_and_area_of_the_catalogue_is_bounded_or_refused():
    state = streaming.update(streaming.init(), [0.9, 0.8, 0.7], [0, 1, 0])
    refused = set()
    for name in METRICS:
        try:
            streaming.compute(state, name)
        except ab.errors.InputError:
            refused.add(name)
    assert not refused & set(RANK)
    assert {"cwsa@0.5", "coverage@5risk", "selective_risk@80cov"} & refused == set()
    assert {"e_aurc", "ece", "accuracy"} <= refused


def test_a_limit_of_no_loss_is_no_hair_above_zero():
    c = np.array([3.0, 3, 3, 3, 64, 3, 3, 3, 3, 65])
    x, w = np.zeros(10), np.ones(10)
    x[[3, 4]], w[4] = (36.0, 2**-8), 1.25
    state = streaming.update(streaming.init(bins=256, scale="log-odds"), c, x, w)
    assert held("selective_risk@0cov", state, c, x, w)
