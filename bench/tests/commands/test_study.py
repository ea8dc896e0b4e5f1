"""`abstain study` as a user runs it: what it prints, leaves behind and refuses."""

import importlib
import json
import tomllib
from collections.abc import Sequence
from inspect import signature
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cyclopts import App

import abstain as ab
from abstain._foundation.lazy_imports import is_installed
from abstain.cli.main import run
from abstain.errors import InputError
from abstain.simulate import POPULATIONS
from abstain.typing import Rng
from abstain_bench.commands.study import command_of
from abstain_bench.data.corruptions import CORRUPTIONS
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.tasks import TASKS
from abstain_bench.studies import STUDIES, StudyEntry, StudyResult, study_estimators


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    logits = 1.5 * np.eye(3)[labels] + rng.normal(size=(200, 3))
    columns = {f"z_{k}": logits[:, k] for k in range(3)}
    kind = np.where(np.arange(200) < 100, "iid", "noise")
    pl.DataFrame({"label": labels, "kind": kind, **columns}).write_parquet("test.parquet")
    samples = logits[:, None] + rng.normal(size=(200, 8, 3))
    np.savez("draws.npz", labels=labels, logit_samples=samples)
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


def test_estimators_of_a_file(folder, capsys):
    arguments = ["--logits", "z_*", "--score", "msr", "--loss", "zero_one"]
    arguments += ["--sizes", "8", "32", "--repeats", "40"]
    assert run(["study", "estimators", "test.parquet", *arguments, "--out", "out"]) == 0
    printed = words(capsys.readouterr().out)
    assert "RMSE relative to the AURC" in printed
    assert "Data: test.parquet" in printed
    assert "read label from 'label'" in printed
    left = {path.name for path in (folder / "out").iterdir()}
    assert left == {
        "results.csv", "results.parquet", "summary.csv", "summary.parquet", "by-data.csv",
        "by-data.parquet", "figures", "report.html", "study.json", "receipt.json",
    }  # fmt: skip
    figures = {path.suffix for path in (folder / "out" / "figures").iterdir()}
    assert figures == {".svg", ".csv"}
    p = ab.read_predictions("test.parquet", logits="z_*").only()
    expected = study_estimators(
        {"test.parquet": p}, scores=["msr"], losses=["zero_one"], sizes=[8, 32], repeats=40
    )
    assert pl.read_parquet(folder / "out" / "results.parquet").equals(expected.frame())
    page = (folder / "out" / "report.html").read_text()
    assert "abstain study estimators test.parquet" in page


def test_parts_are_named_by_what_sets_them_apart(folder, capsys):
    arguments = ["--logits", "z_*", "--by", "kind", "--score", "pe", "--loss", "zero_one"]
    assert run(["study", "population-forms", "test.parquet", *arguments, "--out", "out"]) == 0
    capsys.readouterr()
    names = pl.read_csv(folder / "out" / "results.csv")["data"].to_list()
    assert names == ["kind = iid", "kind = noise"]


def test_populations_and_formats_of_figures(folder, capsys):
    arguments = ["--population", "uniform-scores", "--sizes", "16", "64", "256", "--repeats", "20"]
    formats = ["--figures", "svg", "--figures", "pdf"]
    assert run(["study", "convergence", *arguments, *formats, "--out", "out"]) == 0
    assert "1/sqrt(n)" in capsys.readouterr().out
    made = {path.name for path in (folder / "out" / "figures").iterdir()}
    assert made == {
        f"{name}.{kind}" for name in ("rmse", "bound") for kind in ("svg", "pdf", "csv")
    }


def test_the_other_studies_run(folder, capsys):
    assert run(["study", "weights", "--sizes", "8", "--points", "9"]) == 0
    assert "The mean of the plug-in weights is 1" in words(capsys.readouterr().out)
    assert run(["study", "posterior", "draws.npz", "--metric", "augrc", "--repeats", "20"]) == 0
    assert "the expectation over 8 draws is" in words(capsys.readouterr().out)
    assert not [p for p in folder.iterdir() if p.is_dir()]


def test_lists(capsys):
    listed = {"studies": STUDIES, "populations": POPULATIONS, "corruptions": CORRUPTIONS}
    listed |= {"tasks": TASKS, "scores": METHODS}
    listed["datasets"] = importlib.import_module("abstain_bench.data").DATASETS
    if is_installed("torch"):
        listed["objectives"] = importlib.import_module("abstain.training").OBJECTIVES
        listed["models"] = importlib.import_module("abstain_bench.networks").MODELS
    for what, catalogue in listed.items():
        assert run(["list", what]) == 0
        printed = capsys.readouterr().out
        assert [name for name in catalogue if name not in printed] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["estimators", "--population", "gaussian"], "there is no population named 'gaussian'"),
        (["estimators", "test.parquet", "--logits", "z_*", "--score", "mrs"], "'mrs'"),
        (["estimators", "test.parquet", "--logits", "z_*", "--sizes", "999"], "200 samples"),
        (["estimators", "absent.csv"], "absent.csv"),
        (["convergence", "--sizes", "8", "16"], "at least 3 different `sizes`"),
        (["posterior", "test.parquet", "--logits", "z_*"], "Monte-Carlo samples"),
        (["weights", "--points", "0"], "`points`"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder, capsys, arguments, said):
    assert run(["study", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.startswith("abstain: ")
    assert captured.err.count("\n") == 1


def test_a_folder_that_cannot_be_written_raises_an_error_before_the_work(
    folder, capsys, monkeypatch
):
    def fail(*_, **__):
        pytest.fail("the study ran")

    monkeypatch.setattr(type(STUDIES["weights"]), "run", property(lambda _: fail), raising=False)
    (folder / "file").touch()
    assert run(["study", "weights", "--out", "file"]) == 2
    assert "is a file, not a folder" in capsys.readouterr().err
    assert run(["study", "finetune", "--out", "file"]) == 2
    assert "is a file, not a folder" in capsys.readouterr().err


def test_what_was_found_is_printed_when_its_files_cannot_be_written(folder, capsys):
    (folder / "out" / "differences.csv").mkdir(parents=True)
    arguments = ["--population", "uniform-scores", "--sizes", "50"]
    assert run(["study", "population-forms", *arguments, "--out", "out"]) == 2
    captured = capsys.readouterr()
    assert "relative difference between AURC_a and AURC_p is" in words(captured.out)
    assert "differences.csv' is a folder" in captured.err
    assert captured.err.count("\n") == 1
    assert [path.name for path in (folder / "out").iterdir()] == ["differences.csv"]


def test_more_than_memory_is_one_line(folder, capsys, monkeypatch):
    def fail(*_, **__):
        msg = "Unable to allocate 74.5 GiB"
        raise MemoryError(msg)

    monkeypatch.setattr(type(STUDIES["weights"]), "run", property(lambda _: fail), raising=False)
    assert run(["study", "weights"]) == 2
    assert capsys.readouterr().err.startswith("abstain: not enough memory: Unable to allocate 74.5")


def test_a_file_without_a_failure_has_figures(folder, capsys):
    n = np.arange(100)
    pl.DataFrame({"confidence": n / 100, "correct": np.ones(100, int)}).write_csv("right.csv")
    arguments = ["right.csv", "--sizes", "8", "16", "--repeats", "3", "--out", "out"]
    assert run(["study", "estimators", *arguments]) == 0
    assert capsys.readouterr().err == ""


def test_a_study_of_ones_own_has_a_command_by_its_entry(capsys):
    def squares(
        *, sizes: Sequence[int] = (2, 3), labels: Sequence[str] = ("n",), rng: Rng = 0
    ) -> StudyResult:
        """Square some numbers.

        Parameters
        ----------
        sizes : sequence of int
            What is squared.
        labels : sequence of str
            Of the squares.
        rng : int
            Nothing is drawn.
        """
        label = labels[0]
        rows = [{"n": n, label: n * n} for n in sizes]
        return mine.result(parameters={"rng": rng}, tables={"results": rows}, verdict=("Done.",))

    mine = StudyEntry(
        "squares",
        "Squares",
        "How large is a square?",
        "ours",
        squares,
    )
    own = App(name="own", result_action="return_value")
    own.command(command_of(mine), name="squares")
    own(["squares", "--sizes", "4", "5", "--label", "squared"])
    assert "25" in capsys.readouterr().out
    own(["squares", "--help"])
    printed = words(capsys.readouterr().out)
    assert "Square some numbers." in printed
    assert "What is squared. [default: (2, 3)]" in printed
    assert "Of the squares. (repeatable)" in printed
    assert "--seed INT Nothing is drawn. [default: 0]" in printed


def test_an_unknown_study_raises_an_error(capsys):
    assert run(["study", "estimator"]) != 0
    captured = capsys.readouterr()
    assert "estimators" in captured.out + captured.err


@pytest.mark.parametrize("data", ["digits", "digits8", "cifar100"])
def test_a_configuration_to_edit_is_printed(folder, capsys, data):
    pytest.importorskip("torch")
    assert run(["study", "finetune", "--data", data, "--print-config"]) == 0
    text = capsys.readouterr().out
    assert tomllib.loads(text)["data"]["name"] == data
    (folder / "mine.toml").write_text(text)
    assert run(["study", "finetune", "mine.toml", "--print-config"]) == 0
    assert capsys.readouterr().out == text
    assert run(["study", "finetune", "mine.toml", "--data", "cifar10", "--print-config"]) == 2
    assert "prints a file without changes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--out", "out"], "Interrupted: the same command continues."),
        ([], "Interrupted: nothing is stored; with --out, the same command continues."),
    ],
)
def test_an_interrupted_finetuning_says_how_to_go_on(folder, capsys, monkeypatch, more, said):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(STUDIES["finetune"]), "run", property(lambda _: stop), raising=False)
    assert run(["study", "finetune", *more]) == 130
    assert capsys.readouterr().err == f"{said}\n"


def test_a_study_that_is_stopped_says_so(capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(STUDIES["weights"]), "run", property(lambda _: stop), raising=False)
    assert run(["study", "weights"]) == 130
    assert capsys.readouterr().err == "abstain: stopped\n"


class Squares:
    """A study that counts how often it runs, and fails when it is told to."""

    def __init__(self, name, quick):
        self.runs, self.broken = [], False
        about = ("How large is a square?", "ours", self.run)
        self.entry = StudyEntry(name, name.title(), *about, quick=quick)

    def run(self, *, n: int = 9):
        self.runs.append(n)
        if self.broken:
            msg = "`n` cannot be squared"
            raise InputError(msg)
        rows = [{"n": n, "square": n * n}]
        return self.entry.result(
            parameters={"n": n}, tables={"results": rows}, verdict=(f"It is {n * n}.", "So.")
        )


@pytest.fixture
def squares(monkeypatch):
    made = {name: Squares(name, quick={"n": n}) for name, n in (("first", 2), ("second", 3))}
    monkeypatch.setattr(
        "abstain_bench.commands.study.STUDIES", {name: one.entry for name, one in made.items()}
    )
    return made


def test_every_study_runs_and_leaves_its_folder(folder, capsys, squares):
    assert run(["study", "--all", "--out", "out"]) == 0
    printed = words(capsys.readouterr().out)
    assert "2 of 2 studies are complete" in printed
    assert "It is 81." in printed
    left = pl.read_csv(folder / "out" / "results.csv")
    assert left["found"].to_list() == ["It is 81."] * 2
    fields = json.loads((folder / "out" / "first" / "study.json").read_text())
    assert (fields["parameters"], fields["verdict"]) == ({"n": 9}, ["It is 81.", "So."])
    assert (folder / "out" / "second" / "report.html").is_file()


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_takes_quick(name):
    assert "quick" in signature(command_of(STUDIES[name])).parameters


def test_a_study_without_smaller_settings_runs_with_quick(folder, capsys):
    assert not STUDIES["published"].quick
    assert run(["study", "published", "--quick"]) == 0
    assert "208 of 273 ranks" in words(capsys.readouterr().out)


def test_a_quick_run_takes_the_parameters_of_the_entries(folder, capsys, squares):
    assert run(["study", "--all", "--quick"]) == 0
    assert [one.runs for one in squares.values()] == [[2], [3]]
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_a_study_that_fails_stops_no_other_and_is_run_again(folder, capsys, squares):
    squares["first"].broken = True
    arguments = ["study", "--all", "--quick", "--out", "out"]
    assert run(arguments) == 1
    printed = words(capsys.readouterr().out)
    assert "1 of 2 studies are complete" in printed
    assert "first: `n` cannot be squared" in printed
    squares["first"].broken = False
    assert run(arguments) == 0
    assert [one.runs for one in squares.values()] == [[2, 2], [3]]
    assert "It is 9." in capsys.readouterr().out
    # Another command is another question.
    assert run(["study", "--all", "--out", "out"]) == 0
    assert squares["second"].runs == [3, 9]


def test_a_study_whose_files_were_changed_is_run_again(folder, capsys, squares):
    arguments = ["study", "--all", "--quick", "--out", "out"]
    assert run(arguments) == 0
    (folder / "out" / "first" / "study.json").unlink()
    assert run(arguments) == 0
    assert [one.runs for one in squares.values()] == [[2, 2], [3]]


def test_quick_settings_give_way_to_those_that_are_requested(capsys):
    mine = Squares("squares", quick={"n": 4})
    own = App(name="own", result_action="return_value")
    own.command(command_of(mine.entry), name="squares")
    own(["squares", "--quick"])
    own(["squares", "--quick", "--n", "5"])
    own(["squares"])
    assert mine.runs == [4, 5, 9]


def test_a_study_without_a_name_prints_the_help(capsys):
    assert run(["study"]) == 0
    printed = capsys.readouterr().out
    assert "--all" in printed
    assert [name for name in STUDIES if name not in printed] == []
