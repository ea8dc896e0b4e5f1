"""Sorted runs on disk: any number of files, blocks and losses gives the numbers of the batch."""

import dataclasses
import math
import pathlib
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abstain import streaming
from abstain._foundation.scored import validate_samples
from abstain.errors import FileFormatError, InputError, UncountedError, UndefinedMetricWarning
from abstain.metrics import METRICS
from abstain.metrics.entry import Need
from abstain.metrics.intervals import interval_of_metric
from abstain.streaming import runs

OF_CLASSES = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES, Need.UNKNOWN_CLASSES}
IN_BLOCKS = ("augrc", "aurc", "aurc_plugin", "aurc_log", "sele", "two_sele")


def samples(n, seed=0, losses="binary", weighted=False, dtype=np.float32):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n), 2).astype(dtype)
    x = (rng.random(n) < 0.3).astype(float)
    x = x if losses == "binary" else np.round(x * rng.random(n), 3)
    return c, x, rng.integers(0, 4, n).astype(float) if weighted else None


def filled(folder, c, x, w=None, *, parts=5, memory=1 << 16):
    state = streaming.sorted_runs(folder, memory=memory)
    for rows in np.array_split(np.arange(c.size), parts):
        state = streaming.update(state, c[rows], x[rows], None if w is None else w[rows]).flushed
    return state


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
@pytest.mark.parametrize("losses", ["binary", "graded"])
@pytest.mark.parametrize("weighted", [True, False])
def test_all_numbers_and_intervals_equal_those_of_the_batch(
    monkeypatch, tmp_path, block, losses, weighted
):
    monkeypatch.setattr(runs, "BLOCK", block)
    c, x, w = samples(300, 1, losses, weighted)
    # In an interval of the batch a sample of weight 0 counts as one that was seen.
    w = None if w is None else w + 1
    whole = validate_samples(c, x, w)
    state = filled(tmp_path, c, x, w, memory=1 << 20)
    assert len(state.runs) == 5
    result = streaming.scored(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for name, entry in METRICS.items():
            if entry.measurement.needs & OF_CLASSES or entry.reason_not_applicable(whole):
                continue
            value = streaming.compute(state, name).value
            assert value == pytest.approx(entry.compute(whole).value, rel=1e-12, nan_ok=True), name
            if block == 7:
                ends = [
                    (i.low, i.high) for i in (interval_of_metric(entry, s) for s in (whole, result))
                ]
                np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("losses", ["binary", "graded"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("block", [3, 1 << 16])
def test_areas_are_added_up_where_memory_is_short(monkeypatch, tmp_path, losses, weighted, block):
    monkeypatch.setattr(runs, "BLOCK", block)
    c, x, w = samples(3000, 2, losses, weighted, np.float64)
    c = c + np.random.default_rng(3).choice([0, 1e-9, 2e-9, 3e-9], c.size)
    state = filled(tmp_path, c, x, w, memory=1 << 16)
    assert not state.fits_in_memory
    for name in IN_BLOCKS:
        expected = METRICS[name].compute(validate_samples(c, x, w)).value
        assert streaming.compute(state, name).value == pytest.approx(expected, rel=1e-12), name
    with pytest.raises(UncountedError, match=r"'e_aurc' needs .* MB for .* rows, but `memory` is"):
        streaming.compute(state, "e_aurc")
    with pytest.raises(UncountedError, match="`memory`"):
        streaming.scored(state)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_merges_and_files_do_not_matter(tmp_path, data):
    n = data.draw(st.integers(1, 12))
    values = st.sampled_from([0.1, 0.5, 0.9, -1.0, 0.0, -0.0, 2.0])
    c = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))
    x = np.array(data.draw(st.lists(st.sampled_from([0, 1, 0.25, 3]), min_size=n, max_size=n)))
    states = [streaming.sorted_runs(tmp_path)]
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=3)))
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, n], strict=True) if a < b]
    for part in data.draw(st.permutations(parts)):
        more = streaming.update(streaming.sorted_runs(tmp_path), c[part], x[part])
        states.append(more.flushed if data.draw(st.booleans()) else more)
    while len(states) > 1:
        at = data.draw(st.integers(0, len(states) - 2))
        states[at : at + 2] = [streaming.merge(states[at + 1], states[at])]
    for name in IN_BLOCKS:
        expected = METRICS[name].compute(validate_samples(c, x)).value
        assert streaming.compute(states[0], name).value == pytest.approx(expected, rel=1e-12)


def test_samples_go_to_disk_before_they_fill_the_memory(tmp_path):
    c, x, _ = samples(5000, dtype=np.float64)
    state = streaming.sorted_runs(tmp_path, memory=1 << 16)
    for rows in np.array_split(np.arange(c.size), 50):
        state = streaming.update(state, c[rows], x[rows])
        assert sum(part.nbytes for part in state.pending) < 1 << 14
    assert len(state.runs) > 3
    assert state.n == 5000
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(r.path.name for r in state.runs)


def test_the_areas_of_blocks_have_the_same_bits_whatever_the_files_are(monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "BLOCK", 50)
    rng = np.random.default_rng(5)
    n = 3000
    c, x = rng.random(n).round(2), rng.choice([0, 1, 1 / 3, 0.1], n)
    c[::3] = rng.random(1000)
    w = rng.choice([1, 2, 1 / 7], n)
    names = set()
    for parts, order in ((1, np.arange(n)), (4, rng.permutation(n)), (90, np.argsort(c))):
        state = filled(tmp_path, c[order], x[order], w[order], parts=parts)
        state = dataclasses.replace(state, total=math.fsum(w))
        assert not state.fits_in_memory
        names.add(tuple(streaming.compute(state, name).value for name in IN_BLOCKS))
    assert len(names) == 1


def test_few_rows_are_held_and_no_file_stays_open(monkeypatch, tmp_path):
    # Files one below the other, as of predictions that were sorted: the lower ones must wait.
    monkeypatch.setattr(runs, "BLOCK", 32)
    c, (_, x, _) = np.sort(np.random.default_rng(0).random(8000))[::-1], samples(8000, 2, "graded")
    state = filled(tmp_path, c, x, parts=40)
    held, opened = [], []
    read = runs.SortedRun.read

    def counted(run, kind, start, count):
        held.append(count)
        opened.append(len(list(pathlib.Path("/proc/self/fd").glob("*"))))
        return read(run, kind, start, count)

    monkeypatch.setattr(runs.SortedRun, "read", counted)
    value = streaming.compute(state, "augrc").value
    assert value == pytest.approx(METRICS["augrc"].compute(validate_samples(c, x)).value, rel=1e-12)
    assert max(held) == 32
    assert sum(held) == 8000
    assert len(set(opened)) <= 2


def test_a_saved_state_goes_on_where_it_was(tmp_path):
    c, x, _ = samples(200)
    state = filled(tmp_path / "runs", c[:150], x[:150])
    state = streaming.update(state, c[150:170], x[150:170])
    streaming.save(state, tmp_path / "state.npz")
    result = streaming.update(streaming.load(tmp_path / "state.npz"), c[170:], x[170:])
    expected = METRICS["aurc"].compute(validate_samples(c, x)).value
    assert streaming.compute(result, "aurc").value == pytest.approx(expected, rel=1e-12)
    assert (result.n, result.weighted, result.binary) == (200, False, True)
    empty = streaming.sorted_runs(tmp_path / "runs")
    streaming.save(empty, tmp_path / "empty.npz")
    assert streaming.load(tmp_path / "empty.npz").weighted is None


def test_damaged_runs_raise_a_readable_error(tmp_path):
    c, x, _ = samples(200)
    state = filled(tmp_path, c, x, parts=1)
    path = state.runs[0].path
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(FileFormatError, match=path.name):
        streaming.compute(state)
    with path.open("wb") as file:
        np.save(file, np.arange(5))
    with pytest.raises(FileFormatError, match="no longer the run of"):
        streaming.compute(state)
    path.unlink()
    with pytest.raises(InputError, match=path.name):
        streaming.compute(state)


def test_a_small_batch_of_confidences_0_and_1_is_one_of_the_stream(tmp_path):
    c, x = np.array([0, 1, 0, 1, 0.5, 0.7]), np.array([0, 0.5, 0.25, 0.1, 0, 1])
    state = filled(tmp_path, c, x, parts=2)
    expected = METRICS["augrc"].compute(validate_samples(c, x)).value
    assert streaming.compute(state).value == pytest.approx(expected, rel=1e-12)
    right = np.arange(200) % 2
    with pytest.raises(InputError, match="`confidence` must come first"):
        streaming.update(state, right, np.linspace(0, 1, 200))


def test_weights_are_given_for_all_or_none(tmp_path):
    state = streaming.update(streaming.sorted_runs(tmp_path), [0.5], [1])
    with pytest.raises(InputError, match="`weight` must be passed for all"):
        streaming.update(state, [0.5], [1], [2])
    other = streaming.update(streaming.sorted_runs(tmp_path), [0.5], [1], [2])
    with pytest.raises(InputError, match="`weight` must be passed for all"):
        streaming.merge(state, other)
    with pytest.raises(InputError, match="`memory` must be at least 65536"):
        streaming.sorted_runs(tmp_path, memory=100)


def test_without_samples(tmp_path):
    with pytest.warns(UndefinedMetricWarning, match="there are no samples"):
        assert np.isnan(streaming.compute(streaming.sorted_runs(tmp_path)).value)
