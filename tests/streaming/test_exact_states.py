"""States that count: what they keep, refuse, and how they are saved."""

import numpy as np
import pytest

import abstain as ab
from abstain import streaming
from abstain.errors import DomainError, FileFormatError, InputError, UncountedError
from abstain.metrics.working_points.quantities import split_at_threshold
from abstain.streaming import files, groups

C = np.array([0.9, 0.8, 0.8, 0.6, 0.5, 0.5, 0.2], np.float32)
X = np.array([0, 1, 0, 0, 1, 1, 0], np.uint8)


def both_passes(c=C, x=X, **options):
    first = streaming.update(streaming.first_pass(), c, x)
    return streaming.update(streaming.second_pass(first, **options), c, x)


def test_what_two_passes_keep():
    state = both_passes(cuts=[0.6, 0.7]).finalized
    np.testing.assert_array_equal(state.cuts, np.array([0.5, 0.6, 0.7, 0.8], np.float32))
    assert state.n_failures_at_cut.tolist() == [2, 0, 0, 1]
    assert state.n_successes_at_cut.tolist() == [0, 1, 0, 1]
    assert state.n_successes_between_cuts.tolist() == [1, 0, 0, 0, 1]
    assert streaming.compute(state).value == ab.augrc(C, X)


def test_what_reaches_a_cut():
    state = both_passes(cuts=[0.6, 0.7, 0.95])
    for threshold in (0.5, 0.6, 0.7, 0.8, 0.95):
        reached = np.float32(threshold) <= C
        assert state.accepted(threshold) == (reached.sum(), X[reached].sum())
    with pytest.raises(UncountedError, match=r"must be a cut.*got 0.65"):
        state.accepted(0.65)
    with pytest.raises(UncountedError, match="a state of two passes only counts"):
        split_at_threshold(streaming.scored(state), 0.6)


@pytest.mark.parametrize("waiting", [1, 300, 10**6])
def test_when_batches_are_sorted_in_does_not_matter(monkeypatch, waiting):
    for module in (groups, streaming.passes):
        monkeypatch.setattr(module, "MIN_PENDING_BYTES", waiting)
    monkeypatch.setattr(groups, "_MIN_COMPILED", 100)
    rng = np.random.default_rng(1)
    c = np.round(rng.random(500), 2)
    x = rng.random(500) < 0.2
    states = [streaming.first_pass(), streaming.one_pass()]
    for rows in np.array_split(np.arange(500), 40):
        states = [streaming.update(state, c[rows], x[rows]) for state in states]
    second = streaming.second_pass(states[0])
    for rows in np.array_split(np.arange(500), 7):
        second = streaming.update(second, c[rows], x[rows])
    value, count = np.unique(c[x], return_counts=True)
    np.testing.assert_array_equal(states[0].confidence, value)
    np.testing.assert_array_equal(states[0].count, count)
    expected = pytest.approx(ab.aurc(c, x, estimator="plugin"), rel=1e-12)
    assert streaming.compute(second, "aurc_plugin").value == expected
    assert streaming.compute(states[1], "aurc_plugin").value == expected


def test_states_stay_as_they_are():
    first = streaming.update(streaming.first_pass(), C, X)
    streaming.update(first, C, X)
    assert (first.n, first.n_failures) == (7, 3)
    second = streaming.second_pass(first)
    streaming.update(second, C, X)
    assert second.finalized.n_successes_between_cuts.sum() == 0
    with pytest.raises(ValueError, match="read-only"):
        first.count[0] = 7


def test_a_stream_without_failures_or_samples():
    state = both_passes(np.array([0.5, 0.25]), np.array([0, 0]))
    assert streaming.compute(state).value == 0
    with pytest.warns(ab.errors.UndefinedMetricWarning, match="no failures"):
        assert np.isnan(streaming.compute(state, "failure_auroc").value)
    nothing = (streaming.one_pass(), streaming.second_pass(streaming.first_pass()))
    for empty in nothing:
        with pytest.warns(ab.errors.UndefinedMetricWarning, match="there are no samples"):
            assert np.isnan(streaming.compute(empty).value)


def test_a_stream_of_failures():
    state = both_passes(np.array([0.5, 0.25]), np.array([1, 1]))
    assert streaming.compute(state).value == 0.5


def test_types_of_confidences_may_differ_between_batches():
    first = streaming.first_pass()
    wide = np.array([0.8, 0.3])
    for c, x in ((C, X), (wide, [1, 0])):
        first = streaming.update(first, c, x)
    second = streaming.second_pass(first)
    for c, x in ((C, X), (wide, [1, 0])):
        second = streaming.update(second, c, x)
    every = np.concatenate((C.astype(float), wide)), np.concatenate((X, [1, 0]))
    assert streaming.compute(second).value == pytest.approx(ab.augrc(*every), rel=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: streaming.update(streaming.one_pass(), [0.5], [0.5]), DomainError, "sorted_runs"),
        (lambda: streaming.update(streaming.first_pass(), [0.5], [2]), DomainError, "0 or 1"),
        (lambda: streaming.update(streaming.first_pass(), [0.5], [1], [2]), InputError, "`weight`"),
        (lambda: streaming.update(streaming.first_pass(), [np.nan], [1]), DomainError, "finite"),
        (
            lambda: streaming.merge(streaming.one_pass(), streaming.first_pass()),
            InputError,
            "same type; got GroupCounts and FailureCounts",
        ),
        (
            lambda: streaming.merge(both_passes(), both_passes(C[:3], X[:3])),
            InputError,
            "same first pass",
        ),
        (lambda: streaming.scored(streaming.first_pass()), InputError, "second_pass"),
        (
            lambda: streaming.compute(streaming.update(both_passes(), C, X)),
            InputError,
            "7 samples with 3 failures in the first pass, and 14",
        ),
        (lambda: streaming.compute(both_passes(), "aurc"), UncountedError, "'aurc' needs the conf"),
        (lambda: streaming.compute(both_passes(), "ece"), UncountedError, "'ece' needs the conf"),
        (
            lambda: streaming.compute(both_passes(C + 1), "classwise_ece"),
            DomainError,
            "needs class probabilities",
        ),
        (lambda: streaming.second_pass(streaming.first_pass(), cuts=[np.inf]), DomainError, "cuts"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def every_state():
    return {
        "Histogram": streaming.update(streaming.init(bins=256), C, X),
        "GroupCounts": streaming.update(streaming.one_pass(), C, X),
        "FailureCounts": streaming.update(streaming.first_pass(), C, X),
        "CutCounts": both_passes(cuts=[0.7]),
    }


@pytest.mark.parametrize("kind", list(every_state()))
def test_a_saved_state_goes_on_where_it_was(kind, tmp_path):
    state = every_state()[kind]
    streaming.save(state, tmp_path / "state.npz")
    result = streaming.load(tmp_path / "state.npz")
    assert type(result) is type(state)
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]
    with np.load(tmp_path / "state.npz") as archive:
        before = dict(archive)
    streaming.save(result, tmp_path / "again.npz")
    with np.load(tmp_path / "again.npz") as archive:
        for name, array in archive.items():
            np.testing.assert_array_equal(array, before[name])
    if kind != "FailureCounts":
        assert streaming.compute(result) == streaming.compute(state)


@pytest.mark.parametrize("kind", ["Histogram", "GroupCounts", "FailureCounts", "CutCounts"])
def test_files_of_version_2_with_the_old_array_names_remain_readable(kind, tmp_path):
    state = every_state()[kind]
    path = tmp_path / "state.npz"
    streaming.save(state, path)
    with np.load(path) as archive:
        arrays = dict(archive)
    renamed = {
        ".".join(files._OLD_NAMES.get(part, part) for part in name.split(".")): array
        for name, array in arrays.items()
    }
    assert renamed.keys() != arrays.keys()
    np.savez(path, **renamed | {"version": np.array(2)})
    streaming.save(streaming.load(path), path)
    with np.load(path) as archive:
        assert archive.files == list(arrays)
        for name, array in archive.items():
            np.testing.assert_array_equal(array, arrays[name])


def damaged(kind, /, **changes):
    def change(folder):
        streaming.save(every_state()[kind], folder / "state.npz")
        with np.load(folder / "state.npz") as archive:
            arrays = dict(archive) | changes
        np.savez(folder / "state.npz", **{k: v for k, v in arrays.items() if v is not None})

    return change


def cut_short(folder):
    damaged("GroupCounts")(folder)
    whole = (folder / "state.npz").read_bytes()
    (folder / "state.npz").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            damaged("GroupCounts", version=np.array(4)),
            "version 4; this abstain reads versions 1 to 3",
        ),
        (damaged("GroupCounts", kind=np.array("Other")), "contains no state"),
        (damaged("GroupCounts", kind=None), "contains no state"),
        (damaged("GroupCounts", n=np.array(8)), "sum of all counts"),
        (damaged("GroupCounts", precision=np.array(17)), "'precision' must be"),
        (
            damaged("FailureCounts", **{"value_counts.value": np.array([0.8, 0.5])}),
            "'value_counts' must be asc",
        ),
        (damaged("FailureCounts", **{"value_counts.count": None}), "no array 'value_counts.count'"),
        (damaged("CutCounts", n_samples=np.array(-1)), "must be an integer"),
        (damaged("CutCounts", n_successes_at_cut=np.array([1, 0, 1])), "do not add up"),
        (damaged("CutCounts", n_successes_between_cuts=np.zeros(3, np.int64)), "must be 4 counts"),
        (damaged("CutCounts", cuts=np.array([1.0, 0.5, 0.7])), "'cuts' must be ascending"),
        (damaged("Histogram", weight=np.full(256, np.nan)), "'weight' must be 256 numbers"),
        (damaged("Histogram", min_confidence=np.full(256, 2.0)), "contradict each other"),
        (damaged("Histogram", scale=np.array("wide")), "must be one of"),
        (cut_short, "state.npz"),
    ],
)
def test_damaged_files_are_refused_in_words(change, message, tmp_path):
    change(tmp_path)
    with pytest.raises(FileFormatError, match=message):
        streaming.load(tmp_path / "state.npz")


def test_states_have_files_of_one_kind(tmp_path):
    for path in ("state", "state.json"):
        with pytest.raises(InputError, match="must end in"):
            streaming.save(streaming.one_pass(), path)
    with pytest.raises(InputError, match="no file"):
        streaming.load(tmp_path / "gone.npz")
