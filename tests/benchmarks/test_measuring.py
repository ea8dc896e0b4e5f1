"""Variants are timed in rounds, failures have reasons, and results are stored."""

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
from tests.benchmarks.example_results import RANKING, RESULTS

from benchmarks import run


def test_variants_and_reference_are_timed_in_the_same_rounds():
    calls = []

    def record(name):
        return lambda _: lambda: calls.append(name)

    case = BenchmarkCase(
        "r", "ranking", lambda *_: None, Variant("base", record("base")),
        tuple(Variant(name, record(name)) for name in "ab"), seconds=0.0, rounds=3,
    )  # fmt: skip
    measurements = measure(case)
    assert list(measurements) == ["base", "a", "b"]
    assert measurements["a"].rounds == 3
    order = [name for i, name in enumerate(calls) if i == 0 or calls[i - 1] != name]
    assert order == ["base", "a", "b"] * 3


def test_a_variant_that_fails_does_not_stop_the_others():
    measurements = measure(RANKING)
    assert measurements["broken"].reason == "failed: ValueError: no such | variant"
    assert measurements["augrc (numba)"].ratio > 1.0


def test_an_absent_peer_has_a_reason():
    def absent(_):
        raise AbsentError("it is not installed")

    case = BenchmarkCase(
        "r", "peers", lambda *_: None, Variant("base", lambda _: int), (Variant("p", absent),)
    )
    assert measure(case, seconds=0.0)["p"].reason == "absent: it is not installed"


def test_time_of_a_share_of_the_work_is_scaled_up():
    def work(_):
        return lambda: sum(range(300_000))

    case = BenchmarkCase(
        "r", "resampling", lambda *_: None, Variant("base", work), (Variant("tenth", work, work_share=0.1),),
        seconds=0.0, rounds=4,
    )  # fmt: skip
    assert measure(case)["tenth"].ratio == pytest.approx(10, rel=0.9)


def test_memory_of_a_process_excludes_its_parent():
    memory_of_parent = bytearray(150 * 2**20)
    cost = python("-c", "pass")()
    assert cost.peak < 60, f"the parent has {len(memory_of_parent)} bytes"
    assert 0 < cost.cpu_seconds < 10


def test_facts_about_the_output_of_a_command():
    assert python("-c", "pass", read_facts=lambda: {"page, MB": 2.0})().facts == {"page, MB": 2.0}


def test_error_of_a_failed_command():
    with pytest.raises(RuntimeError, match="no such thing"):
        Command((sys.executable, "-c", "raise SystemExit('no such thing')"))()


@pytest.mark.skipif(not CLEAR.exists(), reason="memory is measured on Linux")
def test_memory_of_a_call_excludes_its_data():
    case = next(name for name in catalogue(SMALL) if name.startswith("rank metrics"))
    peak = peak_extra(case, "ab.risk_coverage_areas (NumPy)", ("--quick",))
    assert 0 <= peak < 20


@pytest.mark.parametrize("sizes", [FULL, SMALL], ids=["full", "small"])
def test_sections_and_keys_of_the_catalogue_are_valid(sizes):
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
def test_memory_of_a_reference_is_measured():
    pytest.importorskip("torchmetrics")
    (case,) = (item for item in catalogue(SMALL).values() if item.section == "updates")
    reference_only = dataclasses.replace(case, variants=())
    measurements = measure(reference_only, seconds=0.0, memory=("--quick",))
    assert measurements[case.reference.key].peak is not None


def test_run_and_resume_one_case(tmp_path, capsys):
    arguments = ["--quick", "--to", str(tmp_path), "--only", "weights*"]
    assert run.main(arguments) == 0
    stored = json.loads((tmp_path / "cases.json").read_text("utf-8"))
    (case,) = stored["cases"].values()
    assert case["variants"]["ab.aurc, both (NumPy)"]["ratio"] > 0
    assert "## Weights and graded losses" in (tmp_path / "performance.md").read_text("utf-8")
    assert "[1/1]" in capsys.readouterr().err
    assert run.main([*arguments, "--resume"]) == 0
    assert "[1/1]" not in capsys.readouterr().err


def test_stored_results_can_be_read(tmp_path):
    results = Results(tmp_path / "cases.json", dict(RESULTS))
    results.write()
    stored = Results.read(results.path)
    assert str(stored.cases) == str(Results(results.path, dict(RESULTS)).cases)
    assert stored.missing_variants(RANKING) == ["broken"]


def test_variants_that_are_not_measured_again_keep_their_results(tmp_path):
    results = Results(tmp_path / "cases.json", dict(RESULTS))
    measurement = RESULTS["numbers"].variants["augrc (numba)"]
    results.add(RANKING, CaseResult({"np.sort": measurement}, "now", "here", {}, duration=2.0))
    stored = Results.read(results.path).cases["numbers"]
    assert (stored.date, stored.duration) == ("now", 62.0)
    assert set(stored.variants) == set(RESULTS["numbers"].variants)
    assert stored.variants["np.sort"].ratio == 2.5


def test_quick_results_are_not_published(capsys):
    with pytest.raises(SystemExit):
        run.main(["--quick"])
    assert "--quick needs --to FOLDER" in capsys.readouterr().err


def test_list_contains_every_variant(capsys):
    assert run.main(["--list", "--only", "starting"]) == 0
    assert "    abstain --help\n" in capsys.readouterr().out


def test_list_contains_the_duration_of_cases(tmp_path, monkeypatch, capsys):
    case = next(iter(catalogue(FULL)))
    results = Results(tmp_path / "cases.json", {case: RESULTS["numbers"]})
    results.write()
    assert run.main(["--list", "--table", str(results.path)]) == 0
    assert f"{case} (60 s)\n" in capsys.readouterr().out


def test_accelerator_cases_run_on_the_cpu(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setenv(accelerator.DEVICE, "")
    arguments = ["--quick", "--only", "accelerator, * float16", "--to", str(tmp_path)]
    assert run.main([*arguments, "--device", "cpu"]) == 0
    (case,) = Results.read(tmp_path / "cases.json").cases.values()
    assert all(variant.seconds > 0 for variant in case.variants.values())
    assert "failed" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["--device", "cpu"])


def test_a_command_that_does_not_finish_is_killed(monkeypatch, tmp_path):
    starter = tmp_path / "starter.py"
    code = Path(processes.__file__).read_text("utf-8").replace("TIMEOUT = 200", "TIMEOUT = 1")
    starter.write_text(code, "utf-8")
    monkeypatch.setattr(processes, "__file__", str(starter))
    with pytest.raises(RuntimeError, match="killed after 1 s"):
        Command((sys.executable, "-c", "import time; time.sleep(60)"))()


def test_other_cases_are_measured_if_a_setup_fails(tmp_path, monkeypatch, capsys):
    def fails(folder, share):
        raise OSError("no space left")

    working = catalogue(SMALL)["losses, 128 x 10"]
    failing = dataclasses.replace(RANKING, setup=fails)
    cases = {
        failing.name: failing,
        working.name: dataclasses.replace(working, variants=(), reference=RANKING.reference),
    }
    monkeypatch.setattr(run, "catalogue", lambda sizes: cases)
    assert run.main(["--quick", "--to", str(tmp_path)]) == 0
    stored = Results.read(tmp_path / "cases.json").cases
    assert stored[failing.name].variants["broken"].reason == "failed: OSError: no space left"
    assert stored[working.name].variants["np.sort"].seconds > 0
    table = Results(tmp_path / "cases.json", dict(RESULTS))
    quick = dataclasses.replace(failing, is_quick=True)
    assert run.compare_with_table({quick.name: quick}, table) == 1
    assert "augrc (numba): failed: OSError: no space left" in capsys.readouterr().out
