"""What a file may hold, found by names and values, and the command that evaluates it so."""

import hashlib
import io
import json
import shlex

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.cli.main import run

N = 60
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, N)
LOGITS = RNG.normal(size=(N, 3)).astype(np.float32) + 2 * np.eye(3, dtype=np.float32)[LABELS]
EXP = np.exp(LOGITS)
PROBABILITIES = EXP / EXP.sum(1, keepdims=True)
ANSWERS = LOGITS.argmax(1)
#: Higher for wrong answers, by no name that says so.
GUESSES = np.where(np.arange(N) % 3 == 0, (LABELS + 1) % 3, LABELS)
DOUBT = (GUESSES != LABELS) + 0.3 + 0.1 * RNG.random(N)


def arrays(columns):
    return lambda path: np.savez(path.with_suffix(".npz"), **columns) or path.with_suffix(".npz")


def csv(columns):
    def write(path):
        pl.DataFrame(columns).write_csv(path.with_suffix(".csv"))
        return path.with_suffix(".csv")

    return write


def text(content, suffix=".csv"):
    def write(path):
        path.with_suffix(suffix).write_text(content)
        return path.with_suffix(suffix)

    return write


def lines(rows):
    return text("\n".join(map(json.dumps, rows)), ".jsonl")


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
    "rows without an answer and labels without a class": (
        csv(
            {
                "label": ["none", *map(str, LABELS[1:])],
                **{f"p_{i}": [*PROBABILITIES[:-1, i], 0.0] for i in range(3)},
            }
        ),
        ["--probabilities", "p_*", "--missing", "reject", "--unknown-label", "none"],
    ),
    "gaps in class scores and in a confidence": (
        csv(
            {
                "label": LABELS,
                **{f"p_{i}": [*PROBABILITIES[:-1, i], None] for i in range(3)},
                "confidence": [None, *PROBABILITIES[1:].max(1)],
            }
        ),
        ["--probabilities", "p_*", "--missing", "reject"],
    ),
    "classes written as decimals": (
        csv(
            {
                "label": [-1.0, *map(float, LABELS[1:])],
                **{f"p_{i}": PROBABILITIES[:, i] for i in range(3)},
            }
        ),
        ["--probabilities", "p_*", "--unknown-label=-1"],
    ),
    "columns named as the labels": (
        csv(
            {
                "y_test": [f"c{i}" for i in LABELS],
                **{f"c{i}": PROBABILITIES[:, i] for i in range(3)},
            }
        ),
        ["--label", "y_test", "--probabilities", "c*"],
    ),
    "a row for each class": (
        csv(
            {
                "image": np.repeat(np.arange(N), 3),
                "class": np.tile(np.arange(3), N),
                "p": PROBABILITIES.ravel(),
                "label": np.repeat(LABELS, 3),
            }
        ),
        ["--id", "image", "--long", "class", "--probabilities", "p"],
    ),
    "a target class beside logits": (
        csv({"target_class": LABELS, **{f"logit_{i}": LOGITS[:, i] for i in range(3)}}),
        ["--label", "target_class", "--logits", "logit_*"],
    ),
    "a decimal comma": (
        text("label;prediction;confidence\na;a;0,9\nb;a;0,4\na;a;0,7\n"),
        ["--decimal", ","],
    ),
    "percent signs": (
        csv({"label": LABELS, "pred": GUESSES, "confidence": [f"{i}%" for i in range(N)]}),
        [],
    ),
    "a grade in words inside an object": (
        lines([{"answer": f"answer {i}", "judge": {"verdict": ["CORRECT", "INCORRECT"][i % 2]},
                "stated": 50 + i % 51} for i in range(N)]),
        ["--correct", "judge.verdict", "--confidence", "stated", "--percent", "stated"],
    ),
    "a graded answer with its reference": (
        lines([{"answer": f"answer {i}", "response": f"It is {i}", "graded_correct": i % 2,
                "grade": (i % 5) / 4, "sure": i / N} for i in range(N)]),
        ["--confidence", "sure"],
    ),
    "a grade beside texts of usual names": (
        lines([{"label": f"answer {i}", "prediction": f"It is {i}", "verdict": "CI"[i % 2],
                "confidence": i / N} for i in range(N)]),
        ["--correct", "verdict"],
    ),
    "a direction that the values tell": (
        csv({"gt": LABELS, "pred": GUESSES, "a": DOUBT, "b": -DOUBT, "c": [*DOUBT[:-1], None]}),
        ["--label", "gt", "--confidence=-a", "--confidence", "b", "--confidence=-c",
         "--missing", "reject"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_command_says_what_was_found(case, tmp_path, capsys):
    write, options = CASES[case]
    path = write(tmp_path / "some file")
    assert run(["inspect", str(path)]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert shlex.split(last) == ["abstain", "evaluate", *options, str(path)]
    # And the command works.
    assert run([*shlex.split(last)[1:], "--interval", "none"]) == 0


@pytest.mark.parametrize("form", ["arrays", "columns"])
def test_logits_of_other_models_are_named(form, tmp_path, capsys):
    models = {f"{name}_logits": LOGITS + i for i, name in enumerate("abc")}
    if form == "columns":
        models = {f"{m}_{i}": x[:, i] for m, x in models.items() for i in range(3)}
    write = arrays if form == "arrays" else csv
    path = write({"label": LABELS, **models})(tmp_path / "p")
    assert run(["inspect", str(path)]) == 0
    unused = [line for line in capsys.readouterr().out.splitlines() if "unused: " in line]
    assert ["b_logits" in line for line in unused] == [True, False]
    assert ["c_logits" in line for line in unused] == [False, True]


def test_whole_numbers_beside_class_scores_are_labels(tmp_path, capsys):
    arrays = {"softmax_out": PROBABILITIES, "cifar_classes": LABELS, "image_id": np.arange(N)}
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    files = [str(tmp_path / f"{name}.npy") for name in arrays]
    assert run(["inspect", *files]) == 0
    options = ["--label", "cifar_classes", "--probabilities", "softmax_out"]
    *_, last = capsys.readouterr().out.splitlines()
    assert shlex.split(last) == ["abstain", "evaluate", *options, *files]
    # Of two such arrays neither is taken.
    np.save(tmp_path / "others.npy", ANSWERS)
    assert run(["inspect", *files, str(tmp_path / "others.npy")]) == 2


def test_lists_of_words_or_of_any_length_are_no_class_scores(tmp_path, capsys):
    path = tmp_path / "answers.jsonl"
    rows = [{"label": 0, "pred": i % 2, "confidence": i / 9, "tags": ["a"] * i, "n": [1] * i}
            for i in range(9)]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    assert run(["inspect", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"abstain evaluate {path}"


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
        ({"a": [0.5, 0.6], "confidence": [0.1, 0.2]}, "no column seems to define correctness"),
        ({"label": [0, 1], "pred": [0, 1]}, "no column seems to be a confidence"),
    ],
)
def test_what_is_lacking_is_named(tmp_path, capsys, columns, said):
    path = csv(columns)(tmp_path / "p")
    assert run(["inspect", str(path)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert f"The columns are: {', '.join(columns)}" in captured.err


def test_a_folder_and_no_file_raise_an_error(tmp_path, capsys):
    assert run(["inspect", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert run(["inspect", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err


# ------------------------------------------------------------------------------- several files
def test_arrays_in_files_of_their_own(tmp_path, capsys):
    np.save(tmp_path / "y_test.npy", LABELS)
    np.save(tmp_path / "test_probs.npy", PROBABILITIES)
    files = [str(tmp_path / name) for name in ("y_test.npy", "test_probs.npy")]
    assert run([*files, "--out", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    command = next(line for line in lines if line.startswith("abstain evaluate"))
    options = ["--label", "y_test", "--probabilities", "test_probs"]
    out = ["--out", str(tmp_path / "out")]
    assert shlex.split(command) == ["abstain", "evaluate", *options, *out, *files]
    receipt = json.loads((tmp_path / "out" / "receipt.json").read_text())
    assert [one["name"] for one in receipt["inputs"]] == files


def test_files_of_the_same_columns_are_parts(tmp_path, capsys):
    write, options = CASES["columns of probabilities"]
    files = [str(write(tmp_path / name)) for name in ("a", "b")]
    pattern = str(tmp_path / "*.csv")
    for given in (files, [pattern]):
        assert run(["inspect", *given]) == 0
        *_, last = capsys.readouterr().out.splitlines()
        assert shlex.split(last) == ["abstain", "evaluate", *options, *given]
    other = CASES["splits"][0](tmp_path / "other")
    assert run(["inspect", files[0], str(other)]) == 2
    assert "other.csv has no column 'p_0', but a.csv has" in capsys.readouterr().err


def test_what_is_no_file_is_said(capsys):
    assert run(["none.csv"]) == 2
    assert "there is no file 'none.csv'" in capsys.readouterr().err
    assert run(["evaluat"]) != 0
    assert 'Did you mean "evaluate"' in " ".join(capsys.readouterr().err.split())


# ------------------------------------------------------------------------------ standard input
def piped(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


FRAME = pl.DataFrame({"label": LABELS, "prediction": ANSWERS, "confidence": PROBABILITIES.max(1)})
ROWS = FRAME.to_dicts()
PIPED = {
    "csv": lambda: FRAME.write_csv().encode(),
    "tsv": lambda: FRAME.write_csv(separator="\t").encode(),
    "parquet": lambda: held(FRAME.write_parquet),
    "arrow": lambda: held(FRAME.write_ipc),
    "lines": lambda: FRAME.write_ndjson().encode(),
    "rows": lambda: json.dumps(ROWS, indent=1).encode(),
    "arrays": lambda: json.dumps(FRAME.to_dict(as_series=False)).encode(),
    "npz": lambda: held(lambda file: np.savez(file, **FRAME.to_dict())),
}


def held(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


@pytest.mark.parametrize("kind", PIPED)
def test_standard_input_of_any_format(kind, tmp_path, capsys, monkeypatch):
    piped(monkeypatch, PIPED[kind]())
    out = tmp_path / "out"
    assert run(["evaluate", "-", "--metric", "augrc", "--out", str(out)]) == 0
    value = pl.read_parquet(out / "results.parquet")["value"].item()
    assert value == ab.evaluate(FRAME, metrics=["augrc"]).value("augrc")
    receipt = json.loads((out / "receipt.json").read_text())
    key = hashlib.sha256(PIPED[kind]()).hexdigest()
    assert receipt["inputs"] == [{"name": "-", "sha256": key}]
    assert " - " in receipt["command"]


def test_it_is_inspected_and_run_once(capsys, monkeypatch):
    piped(monkeypatch, PIPED["csv"]())
    assert run(["-"]) == 0
    out = capsys.readouterr().out
    assert "abstain evaluate -\n" in out
    assert "AUGRC" in out


def test_nothing_piped_in_is_said(capsys, monkeypatch):
    piped(monkeypatch, b"")
    assert run(["evaluate", "-"]) == 2
    assert "standard input, which the argument `-` reads, is empty" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", None)
    assert run(["evaluate", "-"]) == 2
    assert "nothing is piped in" in capsys.readouterr().err
