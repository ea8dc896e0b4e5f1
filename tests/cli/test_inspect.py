"""What a file may hold, found by names and values, and the command that evaluates it so."""

import shlex

import numpy as np
import polars as pl
import pytest

from abstain.cli.main import run

N = 60
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, N)
LOGITS = RNG.normal(size=(N, 3)).astype(np.float32) + 2 * np.eye(3, dtype=np.float32)[LABELS]
EXP = np.exp(LOGITS)
PROBABILITIES = EXP / EXP.sum(1, keepdims=True)
ANSWERS = LOGITS.argmax(1)


def arrays(columns):
    return lambda path: np.savez(path.with_suffix(".npz"), **columns) or path.with_suffix(".npz")


def csv(columns):
    def write(path):
        pl.DataFrame(columns).write_csv(path.with_suffix(".csv"))
        return path.with_suffix(".csv")

    return write


CASES = {
    "an array of any name": (
        arrays({"y_true": LABELS, "softmax_out": PROBABILITIES}),
        ["--probabilities", "softmax_out"],
    ),
    "logits of any name": (
        arrays({"gt": LABELS, "head": LOGITS}),
        ["--label", "gt", "--logits", "head"],
    ),
    "columns of probabilities": (
        csv({"label": LABELS, **{f"p_{i}": PROBABILITIES[:, i] for i in range(3)}}),
        ["--probabilities", "p_*"],
    ),
    "several confidences": (
        csv(
            {
                "gt": LABELS,
                "pred": ANSWERS,
                "id": np.arange(N),
                "margin": PROBABILITIES.max(1),
                "entropy": -PROBABILITIES.max(1),
            }
        ),
        ["--label", "gt", "--confidence", "margin", "--confidence=-entropy"],
    ),
    "splits": (
        csv(
            {
                "label": LABELS,
                "prediction": ANSWERS,
                "confidence": PROBABILITIES.max(1),
                "model": ["a", "b"] * (N // 2),
            }
        ),
        ["--by", "model"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_command_says_what_was_found(case, tmp_path, capsys):
    write, options = CASES[case]
    path = write(tmp_path / "some file")
    assert run(["inspect", str(path)]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert shlex.split(last) == ["abstain", "evaluate", *options, str(path)]
    # And the command works.
    assert run([*shlex.split(last)[1:], "--interval", "none"]) == 0


def test_a_file_alone_is_evaluated(tmp_path, capsys):
    path = CASES["several confidences"][0](tmp_path / "p")
    assert run([str(path), "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "abstain evaluate --label gt" in out
    assert "AUGRC" in out
    assert (tmp_path / "out" / "report.html").is_file()


def test_nobody_is_asked_without_a_terminal(tmp_path, capsys):
    path = CASES["splits"][0](tmp_path / "p")
    assert run(["inspect", str(path)]) == 0
    assert "AUGRC" not in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "runs"), [("", True), ("y", True), ("n", False)])
def test_a_terminal_is_asked(tmp_path, capsys, monkeypatch, answer, runs):
    from abstain.cli import inspect

    path = CASES["splits"][0](tmp_path / "p")
    monkeypatch.setattr(inspect, "_on_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: answer)
    assert run(["inspect", str(path)]) == 0
    assert ("AUGRC" in capsys.readouterr().out) == runs


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [0.5, 0.6], "confidence": [0.1, 0.2]}, "nothing says which rows are right"),
        ({"label": [0, 1], "pred": [0, 1]}, "nothing looks like a confidence"),
    ],
)
def test_what_is_lacking_is_named(tmp_path, capsys, columns, said):
    path = csv(columns)(tmp_path / "p")
    assert run(["inspect", str(path)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert f"There are: {', '.join(columns)}" in captured.err


def test_a_folder_and_no_file_are_refused(tmp_path, capsys):
    assert run(["inspect", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert run(["inspect", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err
