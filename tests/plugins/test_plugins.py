"""Packages that extend abstain, and commands whose package is not installed."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import abstain as ab
from abstain._foundation import plugins
from abstain.cli.catalogues import CATALOGUES, all_catalogues
from abstain.cli.main import run
from abstain.errors import InputError
from abstain.report import build_document, render

EXAMPLE = Path(__file__).parent / "example"


@pytest.fixture
def example(monkeypatch):
    """Install the example package: its folder has the metadata of an installed package."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    plugins.extensions.cache_clear()
    import abstain_example

    yield abstain_example
    # The command `list` has the names of the catalogues at the time of its import.
    sys.modules.pop("abstain.cli.listing", None)
    del sys.modules["abstain_example"]
    plugins.extensions.cache_clear()


@pytest.fixture
def alone(monkeypatch):
    """Hide all packages that extend abstain."""
    plugins.extensions.cache_clear()
    monkeypatch.setattr(plugins, "entry_points", lambda **group: ())
    yield
    plugins.extensions.cache_clear()


def test_a_command_of_a_package_runs(example, capsys):
    assert run(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "Hello Ada\n"


def test_help_lists_commands_of_packages_and_why_one_cannot_be_loaded(example, capsys):
    assert run(["--help"]) == 0
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Print a greeting." in printed
    assert "'broken' of the package 'abstain-example' cannot be loaded (AttributeError" in printed
    assert "'wrong' of the package 'abstain-example' must be a Command; got Subject" in printed


def test_a_command_that_cannot_be_loaded_is_an_error(example, capsys):
    assert run(["broken"]) == 2
    assert "'broken' of the package 'abstain-example' cannot be" in capsys.readouterr().err
    assert run(["wrong"]) == 2
    assert "must be a Command; got Subject" in capsys.readouterr().err


def test_completion_and_suggestions_leave_out_commands_that_cannot_be_loaded(example, capsys):
    assert run(["completion", "bash"]) == 0
    printed = capsys.readouterr().out
    assert "greet" in printed
    assert "broken" not in printed
    assert run(["evalute"]) == 2
    message = capsys.readouterr()
    assert "evaluate" in message.out + message.err
    assert "unexpected error" not in message.err


def test_a_catalogue_that_cannot_be_loaded_leaves_the_others(example, capsys, monkeypatch):
    broken = EntryPoint("broken", "abstain_example:NOTHING", plugins.CATALOGUES)
    wrong = EntryPoint("metrics", "abstain_example:SUBJECT", plugins.CATALOGUES)
    with monkeypatch.context() as patch:
        patch.setattr(plugins, "extensions", lambda _: (broken, wrong))
        assert run(["list"]) == 0
        printed = capsys.readouterr().out
        assert "'broken' of the package 'abstain_example' cannot be loaded" in printed
        assert run(["list", "losses"]) == 0
        assert run(["list", "metrics"]) == 2
    printed = capsys.readouterr()
    assert "augrc" in printed.out
    assert "must be a ListedCatalogue; got Subject" in printed.err


def test_a_package_replaces_no_command(example, capsys):
    assert run(["evaluate", "--help"]) == 0
    assert "Evaluate confidence scores" in capsys.readouterr().out


def run_process(*arguments):
    """Run the program in a new process in which the example package is installed."""
    paths = os.pathsep.join([str(EXAMPLE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "abstain", *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_catalogue_of_a_package_is_listed():
    assert "greetings" in run_process("list")
    assert "Greets." in run_process("list", "greetings")


def test_a_catalogue_of_a_package_can_extend_another_one():
    printed = run_process("list", "losses")
    assert "brier" in printed
    assert "Greets." in printed


def test_a_result_of_a_package_is_reported(example):
    greeting = example.Greeting("<Ada>")
    assert "Hello &lt;Ada&gt;" in render(build_document(greeting), "html")
    assert render(build_document(greeting), "markdown").startswith("# A greeting")
    with pytest.raises(InputError, match="`images` cannot be used with Greeting"):
        build_document(greeting, images=object())


def test_a_section_of_a_package_follows_the_sections_of_a_report(example):
    samples = ab.Predictions(confidence={"<own>": [0.9, 0.8, 0.4]}, loss=[0, 1, 0])
    document = build_document(ab.evaluate(samples))
    for _ in range(2):
        text = render(document, "markdown")
        assert 0 < text.index("Hello \\<own>") < text.index("# Cite")
    assert "Hello &lt;own&gt;" in render(document, "html")
    rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    assert "Hello" not in render(build_document(ab.check_rule(rule, samples)), "html")


def test_a_section_of_the_wrong_kind_raises_an_error(example, monkeypatch):
    samples = ab.Predictions(confidence=[0.9, 0.8, 0.4], loss=[0, 1, 0])
    wrong = EntryPoint("Evaluation", "abstain_example:SUBJECT", plugins.SECTIONS)
    evaluation = ab.evaluate(samples)
    with monkeypatch.context() as patch:
        patch.setattr(plugins, "extensions", lambda _: (wrong,))
        with pytest.raises(InputError, match="must be a PageSection; got Subject"):
            build_document(evaluation)


def test_a_subject_belongs_to_the_classes_of_its_own_package(example):
    stranger = type("Greeting", (), {"__module__": "elsewhere"})()
    with pytest.raises(InputError, match=r"must be one of .*Evaluation, Greeting.*; got Greeting"):
        build_document(stranger)


@pytest.mark.parametrize("command", ["benchmark", "study", "data"])
def test_a_command_of_a_missing_package_names_the_package(command, alone, capsys):
    assert run([command, "run"]) == 2
    printed = capsys.readouterr().err
    assert printed == (
        f"abstain: the command {command!r} requires the package abstain-bench: "
        "pip install abstain-bench\n"
    )


@pytest.mark.parametrize("catalogue", ["tasks", "studies"])
def test_a_catalogue_of_a_missing_package_names_the_package(catalogue, alone, capsys):
    assert run(["list", catalogue]) == 2
    printed = capsys.readouterr().err
    assert printed == (
        f"abstain: the catalogue {catalogue!r} requires the package abstain-bench: "
        "pip install abstain-bench\n"
    )


def test_without_extensions_the_catalogues_of_this_package_remain(alone):
    assert all_catalogues() == CATALOGUES
