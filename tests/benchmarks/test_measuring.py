"""Rounds take turns, variants that fail tell why, and processes are measured by themselves."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from benchmarks.cases import SECTIONS, accelerator, catalogue
from benchmarks.cases.entry import FULL, SMALL, AbsentError, BenchmarkCase, Variant
from benchmarks.measuring import processes
from benchmarks.measuring.memory import CLEAR, peak_extra
from benchmarks.measuring.processes import Command, python
from benchmarks.measuring.rounds import measure
from benchmarks.results import CaseResult, Results
from tests.benchmarks.made_table import RANKING, RESULTS

from benchmarks import run


def test_contenders_take_turns_with_the_reference():
    turns = []

    def noting(name):
        return lambda _: lambda: turns.append(name)

    case = BenchmarkCase(
        "r", "ranking", lambda *_: None, Variant("base", noting("base")),
        tuple(Variant(name, noting(name)) for name in "ab"), seconds=0.0, rounds=3,
    )  # fmt: skip
    measurements = measure(case)
    assert list(measurements) == ["base", "a", "b"]
    assert measurements["a"].rounds == 3
    runs = [name for i, name in enumerate(turns) if i == 0 or turns[i - 1] != name]
    assert runs == ["base", "a", "b"] * 3


def test_a_variant_that_fails_does_not_stop_the_others():
    measurements = measure(RANKING)
    assert measurements["broken"].reason == "failed: ValueError: no such | variant"
    assert measurements["augrc (numba)"].ratio > 1.0


def test_an_absent_peer_says_so():
    def absent(_):
        raise AbsentError("it is not installed")

    case = BenchmarkCase(
        "r", "peers", lambda *_: None, Variant("base", lambda _: int), (Variant("p", absent),)
    )
    assert measure(case, seconds=0.0)["p"].reason == "absent: it is not installed"


def test_a_part_of_the_work_is_scaled_up():
    def work(_):
        return lambda: sum(range(300_000))

    case = BenchmarkCase(
        "r", "resampling", lambda *_: None, Variant("base", work), (Variant("tenth", work, work_share=0.1),),
        seconds=0.0, rounds=4,
    )  # fmt: skip
    assert measure(case)["tenth"].ratio == pytest.approx(10, rel=0.9)


def test_a_process_is_measured_by_itself():
    hoard = bytearray(150 * 2**20)
    spent = python("-c", "pass")()
    assert spent.peak < 60, f"the memory of its parent counts ({len(hoard)} bytes)"
    assert 0 < spent.cpu_seconds < 10


def test_what_a_command_leaves_is_read():
    assert python("-c", "pass", read_facts=lambda: {"page, MB": 2.0})().facts == {"page, MB": 2.0}


def test_a_command_that_fails_says_why():
    with pytest.raises(RuntimeError, match="no such thing"):
        Command((sys.executable, "-c", "raise SystemExit('no such thing')"))()


@pytest.mark.skipif(not CLEAR.exists(), reason="memory is measured on Linux")
def test_the_memory_of_a_call_is_that_beyond_its_data():
    case = next(name for name in catalogue(SMALL) if name.startswith("rank metrics"))
    peak = peak_extra(case, "ab.risk_coverage_areas (NumPy)", ("--quick",))
    assert 0 <= peak < 20


@pytest.mark.parametrize("sizes", [FULL, SMALL], ids=["full", "small"])
def test_the_catalogue_is_in_order(sizes):
    cases = catalogue(sizes)
    sections = {section.name for section in SECTIONS}
    for case in cases.values():
        assert case.section in sections
        keys = [variant.key for variant in (case.reference, *case.variants)]
        assert len(set(keys)) == len(keys), case.name
        for variant in case.variants:
            assert all(target.compared_to in {"", *keys} for target in variant.targets)
            assert bool(variant.series) == bool(case.growing)


@pytest.mark.skipif(not CLEAR.exists(), reason="memory is measured on Linux")
def test_the_memory_of_a_reference_is_measured_where_it_asks_for_it():
    pytest.importorskip("torchmetrics")
    (case,) = (one for one in catalogue(SMALL).values() if one.section == "updates")
    alone = dataclasses.replace(case, variants=())
    measurements = measure(alone, seconds=0.0, memory=("--quick",))
    assert measurements[case.reference.key].peak is not None


def test_one_case_end_to_end_and_taken_up_again(tmp_path, capsys):
    arguments = ["--quick", "--to", str(tmp_path), "--only", "weights*"]
    assert run.main(arguments) == 0
    stored = json.loads((tmp_path / "cases.json").read_text("utf-8"))
    (case,) = stored["cases"].values()
    assert case["variants"]["ab.aurc, both (NumPy)"]["ratio"] > 0
    assert "## Weights and graded losses" in (tmp_path / "performance.md").read_text("utf-8")
    assert "[1/1]" in capsys.readouterr().err
    assert run.main([*arguments, "--resume"]) == 0
    assert "[1/1]" not in capsys.readouterr().err


def test_what_is_stored_is_read_again(tmp_path):
    results = Results(tmp_path / "cases.json", dict(RESULTS))
    results.write()
    again = Results.read(results.path)
    assert str(again.cases) == str(Results(results.path, dict(RESULTS)).cases)
    assert again.missing_variants(RANKING) == ["broken"]


def test_contenders_that_were_not_measured_now_stay(tmp_path):
    results = Results(tmp_path / "cases.json", dict(RESULTS))
    one = RESULTS["numbers"].variants["augrc (numba)"]
    results.add(RANKING, CaseResult({"np.sort": one}, "now", "here", {}, duration=2.0))
    kept = Results.read(results.path).cases["numbers"]
    assert (kept.date, kept.duration) == ("now", 62.0)
    assert set(kept.variants) == set(RESULTS["numbers"].variants)
    assert kept.variants["np.sort"].ratio == 2.5


def test_small_numbers_are_not_published(capsys):
    with pytest.raises(SystemExit):
        run.main(["--quick"])
    assert "--quick needs --to FOLDER" in capsys.readouterr().err


def test_the_list_names_every_variant(capsys):
    assert run.main(["--list", "--only", "starting"]) == 0
    assert "    abstain --help\n" in capsys.readouterr().out


def test_the_list_tells_what_cases_took(tmp_path, monkeypatch, capsys):
    case = next(iter(catalogue(FULL)))
    results = Results(tmp_path / "cases.json", {case: RESULTS["numbers"]})
    results.write()
    assert run.main(["--list", "--table", str(results.path)]) == 0
    assert f"{case} (60 s)\n" in capsys.readouterr().out


def test_cases_on_an_accelerator_run_on_what_stands_in_for_it(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setenv(accelerator.DEVICE, "")
    arguments = ["--quick", "--only", "accelerator, * float16", "--to", str(tmp_path)]
    assert run.main([*arguments, "--device", "cpu"]) == 0
    (case,) = Results.read(tmp_path / "cases.json").cases.values()
    assert all(variant.seconds > 0 for variant in case.variants.values())
    assert "failed" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["--device", "cpu"])


def test_a_command_that_hangs_is_ended(monkeypatch, tmp_path):
    starter = tmp_path / "starter.py"
    code = Path(processes.__file__).read_text("utf-8").replace("TIMEOUT = 200", "TIMEOUT = 1")
    starter.write_text(code, "utf-8")
    monkeypatch.setattr(processes, "__file__", str(starter))
    with pytest.raises(RuntimeError, match="killed after 1 s"):
        Command((sys.executable, "-c", "import time; time.sleep(60)"))()


def test_a_set_up_that_fails_is_told_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    def fails(folder, share):
        raise OSError("no space left")

    good = catalogue(SMALL)["losses, 128 x 10"]
    bad = dataclasses.replace(RANKING, setup=fails)
    cases = {
        bad.name: bad,
        good.name: dataclasses.replace(good, variants=(), reference=RANKING.reference),
    }
    monkeypatch.setattr(run, "catalogue", lambda sizes: cases)
    assert run.main(["--quick", "--to", str(tmp_path)]) == 0
    stored = Results.read(tmp_path / "cases.json").cases
    assert stored[bad.name].variants["broken"].reason == "failed: OSError: no space left"
    assert stored[good.name].variants["np.sort"].seconds > 0
    table = Results(tmp_path / "cases.json", dict(RESULTS))
    assert run.compare_with_table({bad.name: dataclasses.replace(bad, is_quick=True)}, table) == 1
    assert "augrc (numba): failed: OSError: no space left" in capsys.readouterr().out
