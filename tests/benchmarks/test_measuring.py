"""Rounds take turns, contenders that fail tell why, and processes are measured by themselves."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from benchmarks.cases import SECTIONS, accelerator, catalogue
from benchmarks.cases.entry import FULL, SMALL, AbsentError, Contender, Race
from benchmarks.measuring import processes
from benchmarks.measuring.memory import CLEAR, peak_extra
from benchmarks.measuring.processes import Command, python
from benchmarks.measuring.rounds import measured
from benchmarks.results import Measured, Results
from tests.benchmarks.made_table import FOUND, SIDE

from benchmarks import run


def test_contenders_take_turns_with_the_reference():
    turns = []

    def noting(name):
        return lambda _: lambda: turns.append(name)

    race = Race(
        "r", "ranking", lambda *_: None, Contender("base", noting("base")),
        tuple(Contender(name, noting(name)) for name in "ab"), seconds=0.0, rounds=3,
    )  # fmt: skip
    found = measured(race)
    assert list(found) == ["base", "a", "b"]
    assert found["a"].rounds == 3
    runs = [name for i, name in enumerate(turns) if i == 0 or turns[i - 1] != name]
    assert runs == ["base", "a", "b"] * 3


def test_a_door_that_fails_does_not_stop_the_others():
    found = measured(SIDE)
    assert found["broken"].reason == "failed: ValueError: no such | contender"
    assert found["augrc (numba)"].ratio > 1.0


def test_an_absent_peer_says_so():
    def absent(_):
        raise AbsentError("it is not installed")

    race = Race(
        "r", "peers", lambda *_: None, Contender("base", lambda _: int), (Contender("p", absent),)
    )
    assert measured(race, seconds=0.0)["p"].reason == "absent: it is not installed"


def test_a_part_of_the_work_is_scaled_up():
    def work(_):
        return lambda: sum(range(300_000))

    race = Race(
        "r", "resampling", lambda *_: None, Contender("base", work), (Contender("tenth", work, part=0.1),),
        seconds=0.0, rounds=4,
    )  # fmt: skip
    assert measured(race)["tenth"].ratio == pytest.approx(10, rel=0.9)


def test_a_process_is_measured_by_itself():
    hoard = bytearray(150 * 2**20)
    spent = python("-c", "pass")()
    assert spent.peak < 60, f"the memory of its parent counts ({len(hoard)} bytes)"
    assert 0 < spent.processor < 10


def test_what_a_command_leaves_is_read():
    assert python("-c", "pass", left=lambda: {"page, MB": 2.0})().facts == {"page, MB": 2.0}


def test_a_command_that_fails_says_why():
    with pytest.raises(RuntimeError, match="no such thing"):
        Command((sys.executable, "-c", "raise SystemExit('no such thing')"))()


@pytest.mark.skipif(not CLEAR.exists(), reason="memory is measured on Linux")
def test_the_memory_of_a_call_is_that_beyond_its_data():
    race = next(iter(catalogue(SMALL)))
    peak = peak_extra(race, "ab.risk_coverage_areas (NumPy)", ("--quick",))
    assert 0 <= peak < 20


@pytest.mark.parametrize("sizes", [FULL, SMALL], ids=["full", "small"])
def test_the_catalogue_is_in_order(sizes):
    races = catalogue(sizes)
    sections = {section.name for section in SECTIONS}
    for race in races.values():
        assert race.section in sections
        keys = [contender.key for contender in (race.reference, *race.contenders)]
        assert len(set(keys)) == len(keys), race.name
        for contender in race.contenders:
            assert all(target.than in {"", *keys} for target in contender.targets)
            assert bool(contender.series) == bool(race.grows)


@pytest.mark.skipif(not CLEAR.exists(), reason="memory is measured on Linux")
def test_the_memory_of_a_reference_is_measured_where_it_asks_for_it():
    pytest.importorskip("torchmetrics")
    (race,) = (one for one in catalogue(SMALL).values() if one.section == "updates")
    alone = dataclasses.replace(race, contenders=())
    found = measured(alone, seconds=0.0, memory=("--quick",))
    assert found[race.reference.key].peak is not None


def test_one_race_end_to_end_and_taken_up_again(tmp_path, capsys):
    asked = ["--quick", "--to", str(tmp_path), "--only", "weights*"]
    assert run.main(asked) == 0
    stored = json.loads((tmp_path / "cases.json").read_text("utf-8"))
    (race,) = stored["races"].values()
    assert race["contenders"]["ab.aurc, both (NumPy)"]["ratio"] > 0
    assert "## Weights and graded losses" in (tmp_path / "performance.md").read_text("utf-8")
    assert "[1/1]" in capsys.readouterr().err
    assert run.main([*asked, "--resume"]) == 0
    assert "[1/1]" not in capsys.readouterr().err


def test_what_is_stored_is_read_again(tmp_path):
    results = Results(tmp_path / "cases.json", dict(FOUND))
    results.write()
    again = Results.read(results.path)
    assert str(again.races) == str(Results(results.path, dict(FOUND)).races)
    assert again.lacking(SIDE) == ["broken"]


def test_contenders_that_were_not_measured_now_stay(tmp_path):
    results = Results(tmp_path / "cases.json", dict(FOUND))
    one = FOUND["numbers"].contenders["augrc (numba)"]
    results.add(SIDE, Measured({"np.sort": one}, "now", "here", {}, took=2.0))
    kept = Results.read(results.path).races["numbers"]
    assert (kept.when, kept.took) == ("now", 62.0)
    assert set(kept.contenders) == set(FOUND["numbers"].contenders)
    assert kept.contenders["np.sort"].ratio == 2.5


def test_small_numbers_are_not_published(capsys):
    with pytest.raises(SystemExit):
        run.main(["--quick"])
    assert "--quick needs --to FOLDER" in capsys.readouterr().err


def test_the_list_names_every_door(capsys):
    assert run.main(["--list", "--only", "starting"]) == 0
    assert "    abstain --help\n" in capsys.readouterr().out


def test_the_list_tells_what_races_took(tmp_path, monkeypatch, capsys):
    race = next(iter(catalogue(FULL)))
    results = Results(tmp_path / "cases.json", {race: FOUND["numbers"]})
    results.write()
    assert run.main(["--list", "--table", str(results.path)]) == 0
    assert f"{race} (60 s)\n" in capsys.readouterr().out


def test_races_on_an_accelerator_run_on_what_stands_in_for_it(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setenv(accelerator.DEVICE, "")
    asked = ["--quick", "--only", "accelerator, * float16", "--to", str(tmp_path)]
    assert run.main([*asked, "--device", "cpu"]) == 0
    (race,) = Results.read(tmp_path / "cases.json").races.values()
    assert all(found.seconds > 0 for found in race.contenders.values())
    assert "failed" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["--device", "cpu"])


def test_a_command_that_hangs_is_ended(monkeypatch, tmp_path):
    starter = tmp_path / "starter.py"
    code = Path(processes.__file__).read_text("utf-8").replace("LIMIT = 200", "LIMIT = 1")
    starter.write_text(code, "utf-8")
    monkeypatch.setattr(processes, "__file__", str(starter))
    with pytest.raises(RuntimeError, match="ended after 1 s"):
        Command((sys.executable, "-c", "import time; time.sleep(60)"))()


def test_a_set_up_that_fails_is_told_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    def fails(folder, share):
        raise OSError("no space left")

    good = catalogue(SMALL)["losses, 128 x 10"]
    bad = dataclasses.replace(SIDE, setup=fails)
    races = {
        bad.name: bad,
        good.name: dataclasses.replace(good, contenders=(), reference=SIDE.reference),
    }
    monkeypatch.setattr(run, "catalogue", lambda sizes: races)
    assert run.main(["--quick", "--to", str(tmp_path)]) == 0
    stored = Results.read(tmp_path / "cases.json").races
    assert stored[bad.name].contenders["broken"].reason == "failed: OSError: no space left"
    assert stored[good.name].contenders["np.sort"].seconds > 0
    table = Results(tmp_path / "cases.json", dict(FOUND))
    assert run.against({bad.name: dataclasses.replace(bad, quick=True)}, table) == 1
    assert "augrc (numba): failed: OSError: no space left" in capsys.readouterr().out
