"""Packed keys: NumPy kernels == compiled kernels == a loop over groups, for every dtype."""

import importlib.util
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abstain._foundation import blockwise, lazy_imports, packed
from abstain._foundation.tie_groups import TieGroups, group_ties
from abstain.metrics.areas.risk_coverage_areas import areas_from_keys
from abstain.metrics.rank_weights import augrc_weight, trapezoid_area

HAS_NUMBA = importlib.util.find_spec("numba") is not None
LOSSES = ["bool", "uint8", "int8", "int64", "float16", "float32", "float64"]
SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def floats(width):
    dtype = np.dtype(f"float{width}").type
    info = np.finfo(dtype)
    tiny, top = float(info.smallest_subnormal), float(info.max)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, tiny, -tiny, top, -top, float(info.tiny)]
    special += [float(np.nextafter(dtype(1), dtype(0))), float(np.nextafter(dtype(-1), dtype(0)))]
    return st.one_of(
        st.sampled_from(special),
        st.floats(allow_nan=False, allow_infinity=False, width=width),
    )


@st.composite
def samples(draw, widths=(32, 64)):
    width = draw(st.sampled_from(widths))
    rows = draw(st.lists(st.tuples(floats(width), st.booleans()), min_size=1, max_size=40))
    confidence = np.array([row[0] for row in rows], dtype=f"float{width}")
    loss = np.array([row[1] for row in rows], dtype=draw(st.sampled_from(LOSSES)))
    return confidence, loss


def naive_groups(confidence, loss, weight=None):
    table = defaultdict(lambda: [Fraction(0), Fraction(0), 0])
    weight = np.ones(len(loss)) if weight is None else weight
    for c, v, w in zip(confidence.tolist(), loss.tolist(), weight.tolist(), strict=True):
        row = table[c]  # -0.0 and 0.0 are one key
        row[0] += Fraction(w)
        row[1] += Fraction(w) * Fraction(v)
        row[2] += 1
    return [(c, *table[c]) for c in sorted(table, reverse=True)]


def naive_areas(confidence, loss, weight=None):
    """The definition, in exact arithmetic."""
    groups = naive_groups(confidence, loss, weight)
    total = sum(w for _, w, _, _ in groups)
    n = failed = area = selective = Fraction(0)
    risk = None
    for _, w, mass, _ in groups:
        before, was = failed, risk
        n, failed = n + w, failed + mass
        risk = failed / n
        area += w * (failed + before) / 2
        selective += w * (risk + (risk if was is None else was)) / 2
    tied = sum(m for *_, m in groups if m > 1)
    return float(selective / total), float(area / total**2), float(failed / total), tied


def reference_groups(confidence, loss, weight=None):
    """What group_ties did before there were packed keys."""
    order = np.argsort(confidence, kind="stable")[::-1]
    ordered = confidence[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    count = np.diff(starts, append=ordered.size)
    w = np.ones(ordered.size) if weight is None else weight[order]
    mass = loss[order].astype(np.float64) * w
    add = np.add.reduceat
    return TieGroups(ordered[starts], add(w, starts), add(mass, starts), count)


def assert_same_groups(got, expected):
    assert got.confidence.dtype == expected.confidence.dtype
    assert np.array_equal(got.confidence, expected.confidence)
    assert np.array_equal(got.count, expected.count)
    np.testing.assert_allclose(got.weight, expected.weight, rtol=1e-13)
    np.testing.assert_allclose(got.loss, expected.loss, rtol=1e-13)
    assert [x.dtype for x in (got.weight, got.loss, got.count)] == [np.float64] * 2 + [np.int64]


def check_areas(confidence, loss):
    areas = areas_from_keys(packed.pack_and_sort(confidence, loss))
    aurc, augrc, risk, tied = naive_areas(confidence, loss)
    assert areas.aurc == pytest.approx(aurc, abs=1e-15, rel=1e-13)
    assert areas.augrc == pytest.approx(augrc, abs=1e-15, rel=1e-13)
    assert areas.risk == pytest.approx(risk, rel=1e-14)
    assert (areas.n, areas.failures, areas.tied) == (
        len(loss), np.count_nonzero(loss), tied,
    )  # fmt: skip


@SETTINGS
@given(samples())
def test_areas_equal_the_definition(backend, data):
    check_areas(*data)


@SETTINGS
@given(samples(), st.integers(1, 5))
def test_blocks_of_any_size_give_the_same_areas(monkeypatch, data, block):
    monkeypatch.setenv("ABSTAIN_NO_NUMBA", "1")
    monkeypatch.setattr(blockwise, "_BLOCK", block)
    check_areas(*data)


@given(samples((16, 32, 64)))
def test_groups_equal_the_definition(data):
    groups = group_ties(*data)
    expected = naive_groups(*data)
    assert groups.confidence.tolist() == [row[0] for row in expected]
    assert groups.confidence.dtype == data[0].dtype
    assert groups.weight.tolist() == [float(row[1]) for row in expected]
    assert groups.loss.tolist() == [float(row[2]) for row in expected]
    assert groups.count.tolist() == [row[3] for row in expected]


def joined(events):
    """Join stretches that follow each other."""
    out = []
    for value, weight, mass, alone in events:
        before = out.pop() if alone and out and out[-1][-1] else (0, 0)
        out.append((value, weight + before[1], mass, alone))
    return out


@SETTINGS
@given(samples((16, 32, 64)), st.integers(1, 5))
def test_merged_groups_join_untied_successes(backend, monkeypatch, data, block):
    run = packed.kernels()
    monkeypatch.setattr(packed.KernelSelection, "kernels", lambda *_: run)
    groups = naive_groups(*data)
    expected = joined((c, float(w), float(m), k == 1 and m == 0) for c, w, m, k in groups)
    keys = packed.sorted_keys(*data)
    # Blocks, and the two signs, split merged groups only.
    for size in (1 << 16, block):
        monkeypatch.setattr(packed, "_BLOCK", size)
        merged = (x.tolist() for x in keys.merged_groups() if x is not None)
        assert joined(zip(*merged, strict=True)) == expected


@SETTINGS
@given(samples(), st.integers(0, 2**32 - 1))
def test_row_order_changes_no_bit(backend, data, seed):
    confidence, loss = data
    order = np.random.default_rng(seed).permutation(len(loss))
    one = areas_from_keys(packed.pack_and_sort(confidence, loss))
    assert one == areas_from_keys(packed.pack_and_sort(confidence[order], loss[order]))


def drawn(n, dtype, kind, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.normal(size=n).astype(dtype)
    if kind == "probabilities":
        confidence = np.abs(confidence)
    elif kind == "negative":
        confidence = -np.abs(confidence) - dtype(1e-3)
    elif kind == "tied":
        confidence = np.round(confidence, 1)
    elif kind == "one value":
        confidence = np.full(n, 0.25, dtype)
    return confidence, rng.random(n) < 0.05


KINDS = ["both signs", "probabilities", "negative", "tied", "one value"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 1023, 1024, 1025, 32768, 32769, 100_003])
def test_many_samples(backend, n, dtype, kind):
    confidence, loss = drawn(n, dtype, kind, seed=n)
    groups = reference_groups(confidence, loss)
    aurc = trapezoid_area(groups, groups.cumulative_loss)
    augrc = float(np.sum(augrc_weight(groups) * groups.loss)) / groups.total_weight
    areas = areas_from_keys(packed.pack_and_sort(confidence, loss))
    assert areas.aurc == pytest.approx(aurc, rel=1e-12, abs=1e-15)
    assert areas.augrc == pytest.approx(augrc, rel=1e-12, abs=1e-15)
    assert (areas.n, areas.failures, areas.tied) == (n, loss.sum(), groups.n_tied)
    assert_same_groups(group_ties(confidence, loss), groups)


@pytest.mark.parametrize("loss_dtype", LOSSES)
@pytest.mark.parametrize("n", [100, 50_000])
def test_half_precision(backend, n, loss_dtype):
    confidence, loss = drawn(n, np.float16, "both signs")
    confidence[:50] = np.resize(np.array([0.0, -0.0, 6e-8, -6e-8, 65504], np.float16), 50)
    loss = loss.astype(loss_dtype)
    assert_same_groups(group_ties(confidence, loss), reference_groups(confidence, loss))


@pytest.mark.parametrize("n", [100, 50_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_half_precision_with_real_losses_and_weights(n, weighted):
    rng = np.random.default_rng(3)
    confidence = rng.normal(size=n).astype(np.float16)
    loss, weight = rng.exponential(size=n), rng.random(n) + 0.1 if weighted else None
    got = group_ties(confidence, loss, weight)
    assert_same_groups(got, reference_groups(confidence, loss, weight))


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_declines_what_is_not_finite(backend, dtype, bad, sign):
    confidence = np.full(9, sign, dtype)
    confidence[4] = bad
    assert packed.pack_and_sort(confidence, np.zeros(9, bool)) is None


@pytest.mark.parametrize("bad", [2, -1, 0.5, np.nan, np.inf])
def test_declines_losses_other_than_0_and_1(backend, bad):
    confidence = np.linspace(0, 1, 9)
    loss = np.zeros(9)
    loss[4] = bad
    assert packed.pack_and_sort(confidence, loss) is None
    bits = confidence.astype(np.float16).view(np.uint16)
    assert packed.count_failures(bits, loss, infinity=packed.HALF_INFINITY) is None


def test_declines_dtypes_it_would_round(backend):
    confidence, loss = drawn(20, np.float64, "tied")
    assert packed.pack_and_sort(confidence.astype(np.longdouble), loss) is None
    assert packed.pack_and_sort(np.arange(20), loss) is None
    assert packed.pack_and_sort(confidence.astype(confidence.dtype.newbyteorder()), loss) is None
    assert packed.pack_and_sort(confidence, loss.astype(np.longdouble)) is None
    groups = group_ties(confidence.astype(np.longdouble), loss)
    assert np.array_equal(groups.count, group_ties(confidence, loss).count)


def test_reads_strided_and_read_only_input_and_leaves_it_alone(backend):
    confidence, loss = drawn(64, np.float32, "both signs")
    kept = confidence.copy(), loss.copy()
    confidence.flags.writeable = loss.flags.writeable = False
    strided = np.repeat(confidence, 2)[::2], np.repeat(loss, 2)[::2]
    assert areas_from_keys(packed.pack_and_sort(*strided)) == areas_from_keys(
        packed.pack_and_sort(confidence, loss)
    )
    assert np.array_equal(confidence, kept[0])
    assert np.array_equal(loss, kept[1])


@pytest.mark.parametrize("infinity", [packed.HALF_INFINITY, packed.BRAIN_INFINITY])
def test_every_pattern_of_16_bits(backend, infinity):
    bits = np.arange(1 << 16, dtype=np.uint16)
    as_float = {
        packed.HALF_INFINITY: lambda x: x.view(np.float16).astype(np.float64),
        packed.BRAIN_INFINITY: lambda x: packed.brain_floats(x).astype(np.float64),
    }[infinity]
    with np.errstate(invalid="ignore"):
        finite = bits[np.isfinite(as_float(bits))]
    loss = finite % 3 == 0
    values, weight, failed, count = packed.count_failures(finite, loss, infinity=infinity)
    expected = reference_groups(as_float(finite), loss)
    assert np.array_equal(values.astype(np.float64), expected.confidence)
    assert np.array_equal(weight, expected.weight)
    assert np.array_equal(failed, expected.loss)
    assert np.array_equal(count, expected.count)
    assert packed.count_failures(bits, bits > 3, infinity=infinity) is None


@pytest.mark.skipif(not HAS_NUMBA, reason="numba")
def test_compiled_and_numpy_agree_to_the_last_digits(monkeypatch):
    confidence, loss = drawn(300_000, np.float64, "both signs")
    results = []
    for off in ("0", "1"):
        monkeypatch.setenv("ABSTAIN_NO_NUMBA", off)
        results.append(areas_from_keys(packed.pack_and_sort(confidence, loss)))
    assert replace(results[0], aurc=0) == replace(results[1], aurc=0)
    assert results[0].aurc == pytest.approx(results[1].aurc, rel=1e-13)


def test_without_numba_numpy_does_the_work(monkeypatch):
    monkeypatch.delenv("ABSTAIN_NO_NUMBA", raising=False)
    lazy_imports._import_kernels.cache_clear()
    monkeypatch.setattr(lazy_imports, "is_installed", lambda _: False)
    try:
        assert packed.kernels() is blockwise
    finally:
        lazy_imports._import_kernels.cache_clear()


def test_a_numba_that_does_not_import_is_no_error(monkeypatch):
    def broken(_):
        raise ImportError

    monkeypatch.delenv("ABSTAIN_NO_NUMBA", raising=False)
    lazy_imports._import_kernels.cache_clear()
    monkeypatch.setattr(lazy_imports, "import_module", broken)
    try:
        assert packed.kernels() is blockwise
    finally:
        lazy_imports._import_kernels.cache_clear()


@pytest.mark.parametrize("seed", range(3))
def test_one_million_samples_are_exact(backend, seed):
    # The area in integers and the other one by exactly rounded summation.
    from math import fsum

    rng = np.random.default_rng(seed)
    confidence, loss = rng.random(1_000_000), rng.random(1_000_000) < 0.05
    areas = areas_from_keys(packed.pack_and_sort(confidence, loss))
    ordered = loss[np.argsort(-confidence)]
    failed = np.cumsum(ordered)
    n = len(loss)
    risk = failed / np.arange(1, n + 1)
    exact = (fsum(risk) + fsum(risk[:-1]) + risk[0]) / (2 * n)
    assert areas.aurc == pytest.approx(exact, rel=1e-14)
    assert areas.augrc == (2 * int(failed.sum()) - int(failed[-1])) / (2 * n * n)


def test_grouping_does_not_wait_for_numba():
    code = (
        "import sys, numpy as np; from abstain._foundation.tie_groups import group_ties; "
        "group_ties(np.linspace(0, 1, 99), np.zeros(99)); assert 'numba' not in sys.modules"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("ABSTAIN_NO_NUMBA", None)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_numba_is_loaded_once_it_pays(backend, monkeypatch):
    spent = packed.KernelSelection()
    monkeypatch.delitem(sys.modules, "abstain._foundation.compiled", raising=False)
    assert spent.kernels(packed._N_BEFORE_NUMBA - 1) is blockwise
    assert spent.kernels(1) is blockwise
    assert spent.kernels(1) is packed.kernels()
