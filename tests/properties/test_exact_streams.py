"""Exact states: any partition, order and tree of merges gives the numbers of the whole catalogue."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstain import streaming
from abstain._foundation.scored import validate_samples
from abstain.errors import UncountedError, UndefinedMetricWarning
from abstain.metrics import METRICS
from abstain.metrics.entry import Need
from abstain.metrics.intervals import interval_of_metric

OF_CLASSES = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES, Need.UNKNOWN_CLASSES}
SERVED = [name for name, entry in METRICS.items() if not entry.measurement.needs & OF_CLASSES]

#: What takes more of the successes than how many of them lie between two failures.
OF_SUCCESSES = {
    "aurc", "auarc", "e_aurc", "normalized_aurc", "ause", "failure_ap_success", "fpr_at_95tpr",
    "f1_auc", "selective_accuracy@0.9", "ece", "ece_equal_mass", "mce", "smooth_ece", "cwsa@0.5",
    "cwsa@0.9", "cwsa_plus@0.5", "cwsa_plus@0.9", "cwsa_area", "cwsa_plus_area",
    "auc_mcc", "auc_mcc_plus",
}  # fmt: skip


@st.composite
def batches(draw):
    n = draw(st.integers(1, 14))
    values = st.one_of(st.sampled_from([0.0, -0.0, 0.5, 1.0]), st.floats(0, 1))
    c = np.array(draw(st.lists(values, min_size=n, max_size=n)))
    x = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    c = c.astype(draw(st.sampled_from([np.float64, np.float32, np.float16])))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, n], strict=True) if a < b]
    return c, x.astype(draw(st.sampled_from([bool, np.uint8, float]))), parts


def gathered(empty, c, x, parts, data):
    """Give the parts in some order to states that are merged in some order."""
    states = [empty]
    for part in data.draw(st.permutations(parts)):
        if data.draw(st.booleans()):
            states.append(streaming.update(empty, c[part], x[part]))
        else:
            states[-1] = streaming.update(states[-1], c[part], x[part])
    while len(states) > 1:
        at = data.draw(st.integers(0, len(states) - 2))
        states[at : at + 2] = [streaming.merge(states[at + 1], states[at])]
    return states[0]


def in_two_passes(c, x, parts, data):
    first = gathered(streaming.first_pass(), c, x, parts, data)
    cuts = data.draw(st.sampled_from([(), (0.25, 0.5, 0.9)]))
    return gathered(streaming.second_pass(first, cuts=cuts), c, x, parts, data)


def in_one_pass(c, x, parts, data):
    return gathered(streaming.one_pass(), c, x, parts, data)


def same(a, b):
    return a == b or (np.isnan(a) and np.isnan(b)) or abs(a - b) <= 1e-12 * max(1.0, abs(a))


@pytest.mark.parametrize("make", [in_one_pass, in_two_passes])
@given(batches(), st.data())
def test_any_partition_and_order_gives_the_numbers_of_the_batch(make, batch, data):
    c, x, parts = batch
    state, whole = make(c, x, parts, data), validate_samples(c, x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for name in SERVED:
            if make is in_two_passes and name in OF_SUCCESSES:
                continue
            value = streaming.compute(state, name)
            assert same(METRICS[name].compute(whole).value, value.value), name
            assert value.low == value.high == value.value or np.isnan(value.value)


def test_two_passes_refuse_what_they_cannot_do_and_nothing_else():
    c, x = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([0, 1, 0, 0, 1])
    state = streaming.update(streaming.first_pass(), c, x)
    state = streaming.update(streaming.second_pass(state), c, x)
    refused = set()
    for name in SERVED:
        try:
            streaming.compute(state, name)
        except UncountedError as error:
            refused.add((name, repr(name) in str(error) and "streaming.one_pass" in str(error)))
    assert refused == {(name, True) for name in OF_SUCCESSES}


def sample(n, seed, ties):
    rng = np.random.default_rng(seed)
    c = rng.random(n).astype(np.float32)
    c = np.round(c, 2) if ties else c
    return c, rng.random(n) < 0.2 * (1 - c)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("n", [300, 9000])
def test_intervals_equal_those_of_the_batch(n, ties):
    c, x = sample(n, 0, ties)
    whole = validate_samples(c, x)
    one = streaming.scored(streaming.update(streaming.one_pass(), c, x))
    first = streaming.update(streaming.first_pass(), c, x)
    two = streaming.scored(streaming.update(streaming.second_pass(first), c, x))
    served = 0
    for name in SERVED:
        entry = METRICS[name]
        expected = interval_of_metric(entry, whole)
        ends = [expected.low, expected.high]
        interval = interval_of_metric(entry, one)
        assert interval.note == expected.note
        np.testing.assert_allclose([interval.low, interval.high], ends, rtol=1e-9, err_msg=name)
        try:
            interval = interval_of_metric(entry, two)
        except (UncountedError, AttributeError):
            continue
        if Need.UNIT_CONFIDENCE not in entry.measurement.needs:
            served += 1
            np.testing.assert_allclose([interval.low, interval.high], ends, rtol=1e-9, err_msg=name)
    assert served >= 10
