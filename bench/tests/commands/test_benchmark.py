"""`abstain benchmark` as a user runs it: what it prints, leaves behind and refuses."""

import os
import re
import shutil
import tomllib
from importlib import import_module
from io import StringIO
from time import sleep

import polars as pl
import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

pytest.importorskip("torch")

from bench.tests.runs import followed
from bench.tests.runs.made_store import made_store

import abstain_bench.runs.run as runner
from abstain.cli import console as console_of_commands
from abstain.cli.main import run
from abstain.errors import InputError
from abstain_bench.commands import console as job_lines
from abstain_bench.commands.benchmark.run import changes_in
from abstain_bench.commands.console import JobLines
from abstain_bench.results import results_of
from abstain_bench.runs.costs import REPORT, read_costs
from abstain_bench.runs.jobs import Job, Outcome
from abstain_bench.runs.jobs.progress import ProgressWriter
from abstain_bench.runs.specification import default_config, read_config, to_toml_tables
from abstain_bench.runs.store import JOBS, MANIFEST, Store

#: Its package has a function of the same name.
COMMAND = import_module("abstain_bench.commands.benchmark.run")

#: Before a test puts another in its place.
runner_itself = runner.run_benchmark


def words(text):
    return " ".join(text.split())


class Runner:
    """Stands for `run_benchmark`: keeps what it was asked for, and tells of some jobs."""

    def __init__(self, outcomes=(), stop=None):
        self.outcomes, self.stop = list(outcomes), stop

    def __call__(self, config, out, *, on_outcome, **options):
        self.config, self.out, self.options = config, out, options
        followed.begin(out, config)
        for number, outcome in enumerate(self.outcomes):
            on_outcome(outcome, number + 1, len(self.outcomes))
        if self.stop:
            raise self.stop
        return Store.read(out), [one for one in self.outcomes if one.status != "begun"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def faked(monkeypatch):
    def use(*outcomes, stop=None):
        fake = Runner(outcomes, stop)
        monkeypatch.setattr(runner, "run_benchmark", fake)
        return fake

    return use


def test_a_task_by_name(folder, faked, capsys):
    fake = faked()
    assert run(["benchmark", "run", "glyphs", "--seeds", "3", "--jobs", "4"]) == 0
    assert fake.config == default_config("glyphs", seeds=3)
    assert (str(fake.out), fake.options["jobs"], fake.options["device"]) == ("runs", 4, "cpu")
    assert (fake.options["engine"], fake.options["address"]) == ("processes", "")
    assert "`abstain benchmark report runs` writes the report" in capsys.readouterr().out


def test_a_manifest_of_zeros_stops_no_run(folder, faked, capsys):
    followed.begin(folder / "runs", followed.small())
    path = folder / "runs" / MANIFEST
    path.write_bytes(bytes(path.stat().st_size))
    faked()
    assert run(["benchmark", "status", "runs"]) == 2
    assert "run the same command to write it again" in capsys.readouterr().err
    assert run(["benchmark", "run", "glyphs"]) == 0


def test_no_jobs_at_a_time_raise_an_error_and_a_folder_is_quoted(folder, faked, capsys):
    fake = faked()
    assert run(["benchmark", "run", "glyphs", "--jobs", "0", "--out", "my runs"]) == 0
    assert fake.options["jobs"] == 0
    assert "`abstain benchmark report 'my runs'`" in capsys.readouterr().out
    with pytest.raises(InputError, match="`jobs` must be"):
        runner_itself(default_config("glyphs"), folder / "x", jobs=0)


def test_a_summary_that_cannot_be_made_hides_no_run(folder, faked, capsys, monkeypatch):
    def stale(*_, **__):
        msg = "the run 'x' has changed"
        raise InputError(msg)

    faked()
    monkeypatch.setattr(Store, "tested_runs", ("x",))
    monkeypatch.setattr("abstain_bench.results.results_of", stale)
    assert run(["benchmark", "run", "glyphs"]) == 0
    printed = capsys.readouterr()
    assert "The summary is not available: the run 'x' has changed" in printed.err
    assert "Runs are in runs" in printed.out


def test_everything_can_be_requested_otherwise(folder, faked):
    fake = faked()
    (folder / "mine.toml").write_text('[benchmark]\ntask = "glyphs"\nseeds = [4]\n')
    asked = "--arms cross-entropy --methods msr mls --metrics aurc --samples 0 --severities 1 5"
    asked += " --corruptions fog --precision bf16-mixed --model tiny-conv --data ~/there"
    asked += " --device cuda:0,cuda:1 --engine dask --address tcp://x:1 --out there"
    assert run(["benchmark", "run", "mine.toml", *asked.split()]) == 0
    config = fake.config
    assert config.seeds == (4,)
    assert [arm.name for arm in config.arms] == ["cross-entropy"]
    assert (config.methods, config.metrics) == (("msr", "mls"), ("aurc",))
    assert (config.corruptions, config.severities, config.samples) == (("fog",), (1, 5), 0)
    assert (config.precision, config.model) == ("bf16-mixed", "tiny-conv")
    assert not config.folder.startswith("~")
    assert (fake.options["engine"], fake.options["address"]) == ("dask", "tcp://x:1")
    assert fake.options["device"] == "cuda:0,cuda:1"
    assert 1 <= fake.options["jobs"] <= 2


@pytest.mark.parametrize(("cores", "jobs"), [(1, 1), (2, 2), (16, 2)])
def test_unless_asked_no_more_than_two_jobs_take_the_machine(
    folder, faked, monkeypatch, cores, jobs
):
    fake = faked()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert run(["benchmark", "run", "glyphs", "--out", str(folder / "runs")]) == 0
    assert fake.options["jobs"] == jobs


def test_the_configuration_is_printed_to_be_edited(folder, faked, capsys):
    faked(stop=AssertionError("nothing is run"))
    assert run(["benchmark", "run", "digits", "--seeds", "2", "--print-config"]) == 0
    (folder / "mine.toml").write_text(capsys.readouterr().out)
    assert read_config(folder / "mine.toml") == default_config("digits", seeds=2)
    assert not (folder / "runs").exists()


def test_jobs_are_told_as_they_end(folder, faked, capsys):
    first = {
        "msr": {"augrc": 0.0123, "accuracy": 0.9},
        "mcd_msr": {"augrc": 0.0111, "accuracy": 0.91},
    }
    own = {
        "dg_res": {"augrc": 0.03, "accuracy": 0.8},
        "dg_msr": {"augrc": 0.04, "accuracy": 0.8},
    }
    faked(
        Outcome(Job("train-x", {}), "begun"),
        Outcome(Job("train-x", {}), "done", 2.0, facts={"losses": [1.0]}),
        Outcome(Job("test-x", {}), "done", 1.0, facts={"first": first}),
        Outcome(Job("test-y", {}), "kept", facts={"first": first}),
        Outcome(Job("test-z", {}), "done", facts={"first": own}),
    )
    assert run(["benchmark", "run", "glyphs"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "1/5 train-x: begun",
        "2/5 train-x: done in 2.0 s",
        "3/5 test-x: done in 1.0 s; accuracy 0.900, AUGRC 0.0123 (Maximum softmax response)",
        "4/5 test-y: kept",
        (
            "5/5 test-z: done in 0.0 s; accuracy 0.800, AUGRC 0.0400 (DeepGamblers, maximum "
            "softmax response), AUGRC 0.0300 (DeepGamblers, reservation score)"
        ),
    ]


def test_jobs_in_progress_say_how_far_they_are(folder, faked, capsys, monkeypatch):
    """Also where there is no terminal: a line each, now and then."""
    monkeypatch.setattr(job_lines, "_LINE_INTERVAL", 0.01)
    jobs = folder / "runs" / JOBS

    def go_on(*_, **__):
        jobs.mkdir(parents=True)
        writer = ProgressWriter(Job("train-[x]", {}), jobs, "epoch", 12)
        writer(2.5)
        sleep(0.2)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_benchmark", go_on)
    assert run(["benchmark", "run", "glyphs"]) == 130
    assert "train-[x]: epoch 3 of 12\n" in capsys.readouterr().err


def test_jobs_in_progress_have_a_line_of_the_bar(tmp_path):
    writer = ProgressWriter(Job("train-[x]", {}), tmp_path, "epoch", 12, interval=0)
    bar = Progress(TextColumn("{task.description}", markup=False), console=Console(file=StringIO()))
    lines = JobLines(bar, folder=tmp_path)
    writer(2.0)
    lines.update()
    writer.path.write_text(writer.path.read_text().replace("null", "40.5"))
    lines.update()
    jobs, own = bar.tasks
    assert (own.completed, own.total) == (2.0, 12)
    assert re.fullmatch(r"train-\[x\]: epoch 3 of 12, about (40|39) s left", own.description)
    writer.path.unlink()
    lines.update()
    assert [task.description for task in bar.tasks] == [jobs.description] == ["Jobs"]


def test_status_of_jobs_in_progress(folder, capsys):
    followed.begin(folder / "runs", followed.small())
    ProgressWriter(Job("train-x", {}), folder / "runs" / JOBS, "epoch", 12)(2.5)
    assert run(["benchmark", "status", "runs"]) == 0
    assert "Running: train-x: epoch 3 of 12\n" in capsys.readouterr().out


def test_failed_jobs_are_named_with_their_logs(folder, faked, capsys):
    job, other = Job("train-[x]", {}), Job("test-x", {})
    (folder / "runs" / JOBS).mkdir(parents=True)
    log = job.path(folder / "runs" / JOBS, ".log")
    log.write_text("Traceback")
    faked(Outcome(job, "failed", error="too hot"), Outcome(other, "left out", error="it needs x"))
    assert run(["benchmark", "run", "glyphs"]) == 1
    printed = capsys.readouterr()
    assert "1/2 train-[x]: failed: too hot" in printed.err
    assert f"2 of 2 jobs failed or were skipped. Their logs: runs/jobs/{log.name}." in printed.err
    assert "`abstain benchmark report runs`" in printed.out
    faked(Outcome(other, "failed", error="its process was killed"))
    assert run(["benchmark", "run", "glyphs"]) == 1
    assert "1 of 1 jobs failed or were skipped. The same command tries" in capsys.readouterr().err


def test_after_control_c_it_says_how_to_go_on(folder, faked, capsys):
    faked(stop=KeyboardInterrupt())
    assert run(["benchmark", "run", "glyphs"]) == 130
    assert "the same command continues" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["glyph"], "no task named 'glyph'. Did you mean 'glyphs'?.*must end in '.toml'"),
        (["none.toml"], "there is no configuration 'none.toml'"),
        (["glyphs", "--seeds", "0"], "`seeds` must be an integer of at least 1"),
        (["glyphs", "--methods", "mrs"], "no method named 'mrs'"),
        (["glyphs", "--arms", "x"], "no arm 'x'"),
    ],
)
def test_what_cannot_be_run(folder, faked, capsys, asked, said):
    faked(stop=AssertionError("nothing is run"))
    assert run(["benchmark", "run", *asked]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert re.search(said, err), err


def test_without_torch(folder, monkeypatch, capsys):
    monkeypatch.setattr(COMMAND, "is_installed", lambda name: name != "torch")
    assert run(["benchmark", "run", "glyphs"]) == 2
    assert "pip install torch" in capsys.readouterr().err


def test_a_folder_of_another_configuration(folder, faked, capsys):
    faked()
    assert run(["benchmark", "run", "glyphs", "--seeds", "2", "--samples", "4"]) == 0
    assert "another configuration" not in capsys.readouterr().err
    assert run(["benchmark", "run", "glyphs", "--seeds", "2", "--samples", "4"]) == 0
    assert "another configuration" not in capsys.readouterr().err
    assert run(["benchmark", "run", "glyphs", "--seeds", "3", "--samples", "4"]) == 0
    err = capsys.readouterr().err
    assert "runs of another configuration. They are used again" in err
    assert err.splitlines()[1:] == ["  seeds: with 2"]
    assert run(["benchmark", "run", "digits"]) == 2
    err = capsys.readouterr().err
    assert (
        "contains runs of the task 'glyphs'; choose another folder for 'digits' with --out" in err
    )


def test_what_differs_between_configurations():
    before = {"a": [1, 2], "b": {"c": 1, "d": [1]}, "e": 0, "folder": "x"}
    now = {"a": [2, 3], "b": {"c": 2, "d": [1]}, "f": "new", "folder": "y"}
    assert changes_in(before, now) == [
        "a: with 3, without 1",
        "b.c: 1 -> 2",
        "e: 0 -> not set",
        "f: not set -> new",
    ]
    assert changes_in({"a": [1, 2]}, {"a": [2, 1]}) == ["a: in another order"]


def test_status_of_a_run_that_goes_on(folder, capsys):
    config = followed.small()
    followed.begin(folder / "runs", config)
    assert run(["benchmark", "status", "runs"]) == 0
    printed = words(capsys.readouterr().out)
    assert "glyphs, small-conv, 2 seeds" in printed
    assert "cross-entropy 4 0 0 ? 0" in printed
    assert "If it is not running, the same `run` command continues it" in printed
    followed.before(folder / "runs", config, jobs=slice(9))
    assert run(["benchmark", "status", "runs"]) == 0
    assert "Settings selected so far by augrc" in words(capsys.readouterr().out)
    followed.before(folder / "runs", config)
    followed.after(folder / "runs", config)
    assert run(["benchmark", "status", "runs", "--metric", "accuracy"]) == 0
    printed = words(capsys.readouterr().out)
    assert "cross-entropy 4 4 4 2 2" in printed
    assert "Settings selected by accuracy on validation data" in printed
    assert "dg_res dg dropout0-reward6 0.95 2" in printed
    assert "The run is complete" in printed


def test_status_says_what_each_stage_took(folder, capsys):
    config = followed.small()
    followed.begin(folder / "runs", config)
    followed.before(folder / "runs", config)
    assert run(["benchmark", "status", "runs"]) == 0
    assert "Time by stage" not in capsys.readouterr().out
    assert run(["benchmark", "status", "runs", "--costs"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    start = lines.index(["Time", "by", "stage"])
    assert lines[start + 1] == ["stage", "part", "jobs", "seconds", "share"]
    assert [line[:3] for line in lines[start + 2 : start + 4]] == [
        ["train", "total", "8"],
        ["validate", "total", "10"],
    ]


def test_status_names_failures(folder, capsys):
    def fails(job, place):
        if job.name.startswith("train-dg"):
            msg = "[too] hot"
            raise OSError(msg)
        return followed.work(job, place)

    config = followed.small(seeds=[0])
    followed.begin(folder / "runs", config)
    followed.before(folder / "runs", config, fails)
    assert run(["benchmark", "status", "runs"]) == 0
    printed = words(capsys.readouterr().out)
    assert "Failed: train-dg-dropout0-reward3-seed0: OSError: [too] hot. Log: runs/" in printed
    assert "repeats failed jobs" in printed


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_folder_without_runs(folder, capsys, command):
    assert run(["benchmark", command, "."]) == 2
    assert "is no folder of runs: it has no manifest.json" in capsys.readouterr().err


def test_status_of_an_unknown_metric(folder, capsys):
    config = followed.small()
    followed.begin(folder, config)
    followed.before(folder, config, jobs=slice(4))
    assert run(["benchmark", "status", ".", "--metric", "augr"]) == 2
    assert "no setting was selected by 'augr'. Did you mean 'augrc'" in capsys.readouterr().err


def test_a_report_of_what_is_not_tested(folder, capsys):
    followed.begin(folder / "runs", followed.small())
    assert run(["benchmark", "report", "runs"]) == 2
    err = capsys.readouterr().err
    assert (
        "no run in 'runs' is tested yet; `abstain benchmark status runs` prints its progress" in err
    )


@pytest.fixture
def made(folder):
    return made_store(folder / "runs", n=40, severities=(1, 5))


def test_scores_of_others_are_exported_and_added(made, folder, capsys):
    assert run(["benchmark", "export", "runs", "all.parquet"]) == 0
    printed = words(capsys.readouterr().out)
    assert "Wrote all.parquet" in printed
    table = pl.read_parquet("all.parquet")
    logits = [name for name in table.columns if name.startswith("logit_")]
    largest = pl.max_horizontal(logits) if logits else pl.col("row") * 1.0
    mine = table.select("run", "exposure", "row", mine=largest)
    mine.write_csv("mine.csv")
    assert run(["benchmark", "add-scores", "runs", "mine.csv", "--title", "Mine"]) == 0
    printed = words(capsys.readouterr().out)
    assert "Added mine; `abstain benchmark report runs` includes it in the ranking." in printed
    store = Store.read("runs")
    assert [method.title for method in store.added_methods] == ["Mine"]
    assert run(["benchmark", "add-scores", "runs", "mine.csv"]) == 2
    assert "mine" in capsys.readouterr().err
    assert run(["benchmark", "add-scores", "runs", "mine.csv", "--replace"]) == 0
    assert run(["benchmark", "remove-scores", "runs", "mine"]) == 0
    assert "Removed mine" in capsys.readouterr().out
    assert Store.read("runs").added_methods == ()
    assert run(["benchmark", "remove-scores", "runs", "mine"]) == 2
    assert "no method 'mine' was added" in words(capsys.readouterr().err)


def test_a_report_and_its_tables(made, folder, capsys):
    asked = ["--methods", "msr", "confidnet", "--metrics", "augrc", "--studies", "iid", "unseen"]
    assert run(["benchmark", "report", "runs", *asked]) == 0
    printed = capsys.readouterr().out
    assert "confidnet" in printed
    assert "Wrote runs/report/benchmark.html, runs/report/pages, runs/report/tables" in printed
    page = (folder / "runs" / "report" / "benchmark.html").read_text()
    assert f"abstain benchmark report runs {' '.join(asked)}" in page
    values = pl.read_parquet(folder / "runs" / "report" / "tables" / "values.parquet")
    assert set(values["method"]) == {"msr", "confidnet"}
    expected = results_of(
        made, methods=["msr", "confidnet"], metrics=["augrc"], studies=["iid", "unseen"]
    )
    rows = expected.rows("estimates")
    assert values.height == len(rows)
    assert values["value"].to_list() == [row["value"] for row in rows]


def test_a_report_says_how_far_it_is_and_what_it_took(made, folder, capsys, monkeypatch):
    """Where there is no terminal a line now and then; the next status knows the rest."""
    monkeypatch.setattr(console_of_commands, "_SECONDS_BETWEEN_LINES", 0.0)
    arguments = [
        "--methods",
        "msr",
        "confidnet",
        "--metrics",
        "augrc",
        "--studies",
        "iid",
        "unseen",
    ]
    assert run(["benchmark", "report", "runs", *arguments]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"Comparing the methods: {i} of 2 studies" for i in (1, 2)]
    stages = {cost.part for cost in read_costs(folder / "runs") if cost.stage == REPORT}
    assert stages == {"reading", "comparison", "looks", "ranking", "page", "tables"}


def test_a_report_beside_runs_of_another_task(made, folder, capsys):
    followed.begin(folder / "other", followed.small())
    assert run(["benchmark", "report", "runs", "--beside", "other"]) == 2
    assert "no run in 'other' is tested yet" in capsys.readouterr().err
    manifest = (folder / "runs" / MANIFEST).read_text()
    shutil.copytree(folder / "runs", folder / "third")
    (folder / "third" / MANIFEST).write_text(manifest.replace('"task": "made"', '"task": "else"'))
    assert run(["benchmark", "report", "runs", "--beside", "third"]) == 2
    assert "runs of one task; got 'made' and 'else'" in capsys.readouterr().err


def test_runs_of_fd_shifts_are_imported(folder, capsys):
    from bench.tests.runs.shifts_folder import make_folder

    make_folder(folder / "theirs", 1)
    arguments = [
        "--arm",
        "confidnet",
        "--seed",
        "1",
        "--exposures",
        "validation",
        "iid",
        "skip",
        "skip",
    ]
    assert run(["benchmark", "import", "theirs", "runs", *arguments]) == 0
    printed = words(capsys.readouterr().out)
    assert "Imported confidnet-seed1" in printed
    assert run(["benchmark", "status", "runs"]) == 0
    printed = words(capsys.readouterr().out)
    assert "Imported: 1 run of confidnet" in printed
    # Nothing was run here, so no job took any time; "0 s" was printed.
    assert printed.endswith("The run is complete.")
    assert run(["benchmark", "import", "theirs", "runs", *arguments]) == 2
    assert run(["benchmark", "import", "theirs", "runs", *arguments, "--replace"]) == 0
    assert {"msr", "confidnet"} <= set(Store.read("runs").stored_runs[0].validation_values)


def test_methods_that_cannot_be_computed_have_one_line(folder, capsys):
    """There was a line for each of them."""
    from bench.tests.runs.shifts_folder import make_folder

    make_folder(folder / "theirs", 1, train=False, sampled=False)
    arguments = ["theirs", "runs", "--arm", "devries", "--seed", "1"]
    arguments += ["--exposures", "skip", "iid", "skip", "skip"]
    assert run(["benchmark", "import", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if "cannot be computed" in line]
    assert line.startswith("Note: 17 methods cannot be computed: ")
    assert line.count("(it is fitted on validation data, which are missing)") == 1
    assert "devries_mcd_msr, devries_mcd_pe" in line
    assert sum("devries_knn_1000" in line for line in lines) == 1


def test_open_set_runs_of_fd_shifts_are_imported(folder, capsys):
    from bench.tests.runs.shifts_folder import make_folder

    make_folder(folder / "theirs" / "test_results", 1, held_out=[0], abstains=True)
    (folder / "theirs" / "hydra").mkdir()
    (folder / "theirs" / "hydra" / "config.yaml").write_text("    out_classes:\n    - 0\n")
    arguments = ["theirs", "runs", "--arm", "dg", "--seed", "1"]
    arguments += ["--exposures", "validation", "iid", "skip", "skip"]
    assert run(["benchmark", "import", *arguments]) == 2
    (told,) = re.findall(r"--held-out 0", capsys.readouterr().err)
    assert run(["benchmark", "import", *arguments, *told.split()]) == 0
    assert "i.i.d. images are the exposure 'held-out-classes'" in words(capsys.readouterr().out)
    assert [exposure.key for exposure in Store.read("runs").exposures] == [
        "iid",
        "held-out-classes",
    ]


def test_every_field_of_the_file_can_be_printed():
    tables = to_toml_tables(default_config("glyphs"))
    assert set(tables) == {"benchmark", "exposures", "model", "variation", "recipe", "arms"}
    from abstain._foundation.toml import toml_text

    odd = tables | {
        "odd": {"a.b": 'x"\\\n\x7f', "c d": [True, 1.5, "é"], "none": None, "empty": {}}
    }
    read = tomllib.loads(toml_text(odd))
    assert read.pop("odd") == {"a.b": 'x"\\\n\x7f', "c d": [True, 1.5, "é"], "empty": {}}
    assert read == tables
