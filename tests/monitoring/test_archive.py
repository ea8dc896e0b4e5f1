"""A monitor that was saved is the same one, and goes on as if nothing had been."""

import numpy as np
import pytest
from tests.monitoring.streams import calibrated, drawn, names, same

import abstain as ab
from abstain.errors import FileFormatError, InputError
from abstain.monitoring.followed_file import FilePosition

RULE, DATA = calibrated()


@pytest.mark.parametrize("options", [{}, {"label_share": 0.2}])
def test_saved_and_loaded_it_goes_on_the_same(tmp_path, options):
    confidence, loss = drawn(np.random.default_rng(1), 800)
    ids = names("a", 800)
    whole = ab.monitoring.start(RULE, calibration=DATA, **options).labels(["later"], [1.0])
    cut = whole
    for i in range(0, 800, 200):
        part = slice(i, i + 200)
        whole = whole.update(ids[part], confidence[part]).labels(ids[part], loss[part])
        path = ab.save(cut, tmp_path / "state.npz")
        cut = ab.load(path).update(ids[part], confidence[part]).labels(ids[part], loss[part])
    assert same(whole, cut)
    first, second = (
        ab.save(m, tmp_path / n).read_bytes() for m, n in ((whole, "a.npz"), (cut, "b.npz"))
    )
    assert first == second


def test_what_is_damaged_or_of_another_form_raises_an_error(tmp_path):
    monitor = ab.monitoring.start(RULE, calibration=DATA)
    plain, arrays = monitor.to_arrays()
    from_arrays = ab.monitoring.Monitor.from_arrays

    with pytest.raises(InputError, match="form"):
        from_arrays({**plain, "form": 99}, arrays)
    with pytest.raises(FileFormatError, match="held_risk"):
        from_arrays(plain, {k: v for k, v in arrays.items() if k != "held_risk"})
    with pytest.raises(FileFormatError, match="bets on the risk"):
        from_arrays(plain, {**arrays, "held_risk": np.zeros(2)})
    for field, value in [("delta", 2), ("patience", "x"), ("seed", 2**64), ("coverage", [0.5])]:
        with pytest.raises(FileFormatError, match=rf"plan\.{field}"):
            from_arrays({**plain, "plan": {**plain["plan"], field: value}}, arrays)
    for field, value in [("stride", 0), ("events", "x"), ("settled", [0]), ("read", [["a", 1]])]:
        with pytest.raises(FileFormatError, match=field):
            from_arrays({**plain, field: value}, arrays)
    watch = {**plain["watches"][0], "total": "x"}
    with pytest.raises(FileFormatError, match=r"watches\[0\]\.total"):
        from_arrays({**plain, "watches": [watch, *plain["watches"][1:]]}, arrays)
    for name, value in [
        ("keys", np.zeros(3, np.uint64)),
        ("flags", np.zeros(0)),
        ("gaps", arrays["gaps"] - 100),
        ("urn", arrays["gaps"] - 1),
        ("held_risk", -arrays["held_risk"] - 1),
        ("names", np.frombuffer(b'["a"]', np.uint8)),
    ]:
        with pytest.raises(FileFormatError, match=f"`{name}`|`flags`"):
            from_arrays(plain, {**arrays, name: value})
    path = ab.save(monitor, tmp_path / "state.npz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileFormatError):
        ab.load(path)
    with pytest.raises(InputError, match=r"must end in '\.npz' for a monitor"):
        ab.save(monitor, tmp_path / "state.json")


def test_a_history_that_no_monitor_records_raises_an_error():
    """A NaN of the capital is valid where a watch is off, and nowhere else."""
    confidence, loss = drawn(np.random.default_rng(1), 200)
    ids = names("a", 200)
    monitor = ab.monitoring.start(RULE).update(ids, confidence).labels(ids, loss)
    plain, arrays = monitor.to_arrays()
    from_arrays = ab.monitoring.Monitor.from_arrays
    assert from_arrays(plain, arrays).points()
    assert np.isnan(arrays["history"][:, 7]).all()
    for column, value in [(0, np.nan), (3, np.nan), (5, -1.0), (6, np.nan), (8, np.inf), (7, 1.0)]:
        history = arrays["history"].copy()
        history[2, column] = value
        with pytest.raises(FileFormatError, match="`history` must be"):
            from_arrays(plain, {**arrays, "history": history})


def test_a_position_that_cannot_be_raises_an_error():
    plain, arrays = ab.monitoring.start(RULE).to_arrays()
    from_arrays = ab.monitoring.Monitor.from_arrays
    for position in (["a", 1], ["a", 1, 1, 1], ["a", 1, 1, -1, ""], ["a", 1, 1, 1, None]):
        with pytest.raises(FileFormatError, match="read"):
            from_arrays({**plain, "read": [position]}, arrays)


def test_the_largest_inode_of_a_file_system_is_loaded(tmp_path):
    monitor = ab.monitoring.start(ab.thresholds.DecisionRule("given", 0.5), max_risk=0.5)
    read = (FilePosition("1.jsonl", 1, 1, 2**64 - 1, ""),)
    path = ab.save(monitor.with_read_positions(read), tmp_path / "s.npz")
    assert ab.load(path).read_positions == read


def test_the_keys_of_files_equal_those_of_released_versions():
    """Earlier versions wrote these keys, whatever the attributes are named now."""
    monitor = ab.monitoring.start(
        ab.thresholds.DecisionRule("given", 0.5), coverage=(0.7, 0.9), max_risk=0.1
    )
    plain, _ = monitor.to_arrays()
    assert set(plain["plan"]) == {
        "delta", "scale", "coverage", "uncertain", "max_risk", "kind", "label_share", "patience",
        "remember", "seed",
    }  # fmt: skip
    assert set(plain["watches"][0]) == {"n", "total", "recent", "alarmed", "since", "steps"}
    assert set(plain["counts"]) == {"replayed", "repeated", "abstained", "unasked"}
    monitor = monitor.update([f"row {i}" for i in range(400)], [0.1] * 400)
    plain, arrays = monitor.to_arrays()
    assert set(plain["alarms"][0]) == {"watch", "at", "reason", "acknowledged"}
    assert ab.monitoring.Monitor.from_arrays(plain, arrays).alarms == monitor.alarms
