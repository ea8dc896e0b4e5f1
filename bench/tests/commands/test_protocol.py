"""`abstain benchmark run --protocol` and `--dry-run`: what is told before anything is done."""

import pytest

pytest.importorskip("torch")

from abstain.cli.main import run


def test_a_dry_run_says_jobs_hours_and_disk_and_does_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["benchmark", "run", "cifar10", "--protocol", "fd-shifts", "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "cifar10, vgg13-fd-shifts, 5 seeds: at most 214 jobs" in output
    assert "805,032 in 79 test sets" in output
    assert "an assumed 10 TFLOP/s" in output
    arguments = ["--protocol", "fd-shifts-2024", "--seeds", "1", "--teraflops", "20"]
    assert run(["benchmark", "run", "cifar100", *arguments, "--dry-run"]) == 0
    output = capsys.readouterr().out
    # 75,000 corrupted ones, 9,000, and three sets of new classes.
    assert "130,032 in 79 test sets" in output
    assert "20 TFLOP/s" in output
    assert run(["benchmark", "run", "digits8", "--dry-run"]) == 0
    assert "900 for training" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_printed_configuration_of_a_protocol_is_the_protocol(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["--protocol", "fd-shifts", "--print-config"]
    assert run(["benchmark", "run", "svhn", *arguments]) == 0
    text = capsys.readouterr().out
    (tmp_path / "its.toml").write_text(text)
    assert run(["benchmark", "run", "its.toml", "--print-config"]) == 0
    assert capsys.readouterr().out == text
    assert run(["benchmark", "run", "its.toml", *arguments]) == 2
    assert "start with a file that --print-config writes" in capsys.readouterr().err
    assert run(["benchmark", "run", "glyphs", *arguments]) == 2
    assert "has no task 'glyphs'" in capsys.readouterr().err
