"""The demo without its training, which CI runs as `make demo`."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from examples import demo

pytest.importorskip("torch", reason="a benchmark trains networks")


@pytest.fixture
def ran(monkeypatch):
    """The commands that were run, and how they end."""
    result = SimpleNamespace(commands=[], status=0)

    def run(command, check):
        result.commands.append(command[3:])
        return SimpleNamespace(returncode=result.status)

    monkeypatch.setattr(subprocess, "run", run)
    return result


def test_it_runs_and_reports(ran, capsys):
    demo.main(["--out", "there"])
    config = os.path.relpath(demo.CONFIG)
    assert ran.commands == [
        ["benchmark", "run", config, "--out", "there/runs"],
        ["benchmark", "report", "there/runs", "--out", "there"],
    ]
    printed = capsys.readouterr().out.splitlines()
    assert "$ abstain benchmark report there/runs --out there" in printed
    assert "Open there/benchmark.html" in printed[-1]


def test_the_study_is_the_same_with_another_configuration(ran):
    demo.main(["--study"])
    config = os.path.relpath(demo.STUDY)
    assert ran.commands == [
        ["benchmark", "run", config, "--out", "study-report/runs"],
        ["benchmark", "report", "study-report/runs", "--out", "study-report"],
    ]
    demo.main([])
    assert ran.commands[-1][-1] == "demo-report"


def test_it_stops_where_a_command_fails(ran):
    ran.status = 3
    with pytest.raises(SystemExit, match="3"):
        demo.main([])
    assert len(ran.commands) == 1


def test_a_demo_that_is_interrupted_shows_no_traceback(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", stop)
    with pytest.raises(SystemExit, match="130"):
        demo.main([])


@pytest.mark.parametrize("path", [demo.CONFIG, demo.STUDY])
def test_what_it_trains_and_shows(path):
    from abstain_bench.data.corruptions import CORRUPTIONS
    from abstain_bench.runs.methods import METHODS
    from abstain_bench.runs.specification import read_config

    config = read_config(path)
    assert {"cross-entropy", "deep-gamblers", "devries", "confidnet"} == {
        arm.objective for arm in config.arms
    }
    assert config.task == "glyphs"
    assert len(config.seeds) >= 2
    # Every method but second names, those of several passes and of ensembles too.
    assert config.methods == tuple(
        name for name, method in METHODS.items() if method.is_default and not method.same_as
    )
    # Of each group of corruptions one, and severities that something grows over.
    groups = {entry.group for entry in CORRUPTIONS.values()}
    assert {CORRUPTIONS[name].group for name in config.corruptions} == groups
    assert len(config.severities) > 1
    # Something is chosen on validation data.
    assert any(len(arm.settings) > 1 for arm in config.arms)
    assert all(rate > 0 for arm in config.arms for rate in arm.dropout)


def test_the_demo_learns_less_than_the_study():
    from abstain_bench.runs.specification import read_config

    small, large = map(read_config, (demo.CONFIG, demo.STUDY))
    assert [arm.name for arm in small.arms] == [arm.name for arm in large.arms]
    epochs = [
        [arm.recipe.epochs + sum(arm.stage_lengths.values()) for arm in c.arms]
        for c in (small, large)
    ]
    assert all(3 * few <= many for few, many in zip(*epochs, strict=True))


def test_the_small_one_is_smaller(monkeypatch):
    """Its command is understood, and asks for less."""
    import abstain_bench.runs.run as runner
    from abstain.cli.main import run

    asked = {}

    def stop(config, out, **options):
        asked["config"] = config
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_benchmark", stop)
    (command, _) = demo.commands(demo.Path("none"), small=True)
    assert run(command) == 130
    assert len(asked["config"].corruptions) == 1
    assert {arm.recipe.epochs for arm in asked["config"].arms} == {2}
