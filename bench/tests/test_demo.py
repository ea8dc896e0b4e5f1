"""The demo runs the right commands. Its training is not run here, but by CI (`make demo`)."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from examples import demo

pytest.importorskip("torch", reason="a benchmark trains networks")


@pytest.fixture
def recorder(monkeypatch):
    """Record the commands instead of running them. `status` is the exit status of the commands."""
    recorder = SimpleNamespace(commands=[], status=0)

    def run(command, check):
        recorder.commands.append(command[3:])
        return SimpleNamespace(returncode=recorder.status)

    monkeypatch.setattr(subprocess, "run", run)
    return recorder


def test_the_demo_runs_a_benchmark_and_writes_a_report(recorder, capsys):
    demo.main(["--out", "there"])
    config = os.path.relpath(demo.CONFIG)
    assert recorder.commands == [
        ["benchmark", "run", config, "--out", "there/runs"],
        ["benchmark", "report", "there/runs", "--out", "there"],
    ]
    lines = capsys.readouterr().out.splitlines()
    assert "$ abstain benchmark report there/runs --out there" in lines
    assert "Open there/benchmark.html" in lines[-1]


def test_the_study_runs_the_same_commands_with_another_configuration(recorder):
    demo.main(["--study"])
    config = os.path.relpath(demo.STUDY)
    assert recorder.commands == [
        ["benchmark", "run", config, "--out", "study-report/runs"],
        ["benchmark", "report", "study-report/runs", "--out", "study-report"],
    ]
    demo.main([])
    assert recorder.commands[-1][-1] == "demo-report"


def test_the_demo_stops_if_a_command_fails(recorder):
    recorder.status = 3
    with pytest.raises(SystemExit, match="3"):
        demo.main([])
    assert len(recorder.commands) == 1


def test_a_demo_that_is_interrupted_shows_no_traceback(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", stop)
    with pytest.raises(SystemExit, match="130"):
        demo.main([])


@pytest.mark.parametrize("path", [demo.CONFIG, demo.STUDY])
def test_contents_of_the_configurations(path):
    from abstain_bench.data.corruptions import CORRUPTIONS
    from abstain_bench.runs.methods import METHODS
    from abstain_bench.runs.specification import read_config

    config = read_config(path)
    assert {"cross-entropy", "deep-gamblers", "devries", "confidnet"} == {
        arm.objective for arm in config.arms
    }
    assert config.task == "glyphs"
    assert len(config.seeds) >= 2
    # All default methods except aliases.
    assert config.methods == tuple(
        name for name, method in METHODS.items() if method.is_default and not method.same_as
    )
    # One corruption of each group, and more than one severity.
    groups = {entry.group for entry in CORRUPTIONS.values()}
    assert {CORRUPTIONS[name].group for name in config.corruptions} == groups
    assert len(config.severities) > 1
    # At least one setting is selected on validation data.
    assert any(len(arm.settings) > 1 for arm in config.arms)
    assert all(rate > 0 for arm in config.arms for rate in arm.dropout)


def test_the_demo_trains_for_fewer_epochs_than_the_study():
    from abstain_bench.runs.specification import read_config

    small, large = map(read_config, (demo.CONFIG, demo.STUDY))
    assert [arm.name for arm in small.arms] == [arm.name for arm in large.arms]
    epochs = [
        [arm.recipe.epochs + sum(arm.stage_lengths.values()) for arm in c.arms]
        for c in (small, large)
    ]
    assert all(
        3 * demo_epochs <= study_epochs for demo_epochs, study_epochs in zip(*epochs, strict=True)
    )


def test_small_reduces_corruptions_and_epochs(monkeypatch):
    import abstain_bench.runs.run as runner
    from abstain.cli.main import run

    configs = []

    def stop(config, out, **options):
        configs.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_benchmark", stop)
    (command, _) = demo.commands(demo.Path("none"), small=True)
    assert run(command) == 130
    (config,) = configs
    assert len(config.corruptions) == 1
    assert {arm.recipe.epochs for arm in config.arms} == {2}
