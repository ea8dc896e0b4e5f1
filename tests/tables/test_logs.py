"""Logs of evaluations of language models, as Inspect and lm-evaluation-harness wrote them."""

import contextlib
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import abstain as ab
from abstain.errors import (
    AbstainError,
    DomainError,
    FileFormatError,
    MissingInputError,
    UnknownNameError,
)
from abstain.tables import read_predictions
from abstain.tables.logs.answers import choice_confidences, token_confidences
from abstain.tables.logs.inspect_ai import decompress_text, max_decompressed_bytes

LOGS = Path(__file__).parent / "logs"
EVAL, JSON = LOGS / "arithmetic.eval", LOGS / "arithmetic.json"
REASONS = LOGS / "reasons.json"
CHOICE, TEXTS = LOGS / "samples_tiny_mc.jsonl", LOGS / "samples_tiny_gen.jsonl"


def edited(tmp_path, change):
    """Write the JSON log with one thing changed."""
    log = json.loads(JSON.read_text())
    change(log)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    return path


# ------------------------------------------------------------------------------------ Inspect
def test_the_grades_of_a_scorer_and_what_the_model_stated():
    reading = read_predictions(EVAL, correct="judged", missing="reject")
    result = reading.only()
    np.testing.assert_array_equal(result.loss, [0, 0, 1, 1, 0])
    # The fourth is a refusal, however sure its tokens are.
    np.testing.assert_array_equal(result.confidence["judged.confidence"], [0.9, 0.9, 0.8, 0.8, 0.9])
    assert "1 of 5 answers are refusals, which have no confidence" in list(map(str, reading.notes))


def test_log_probabilities_of_the_tokens():
    names = ["mean_logprob", "sum_logprob", "least_logprob"]
    result = read_predictions(EVAL, correct="match", confidence=names, missing="drop").only()
    tokens = [[-0.01], [-0.1, -0.05], [-0.9, -0.7, -0.1], [-0.3, -0.2]]
    for name, of in zip(names, (np.mean, np.sum, np.min), strict=True):
        np.testing.assert_allclose(result.confidence[name], [of(x) for x in tokens])


def test_a_scorer_of_several_values_and_grades_between():
    reading = read_predictions(EVAL, correct="detailed.grade", missing="drop")
    np.testing.assert_array_equal(reading.only().loss, [0.5, 0.5, 0.5, 0.5])
    by = read_predictions(EVAL, correct="match", by="metadata.subject", missing="drop")
    assert list(by) == [(("metadata.subject", "arithmetic"),)]


def test_what_must_be_named_is_said():
    with pytest.raises(MissingInputError, match=r"\(judged, match, detailed\.right, detailed\.gr"):
        read_predictions(EVAL)
    with pytest.raises(UnknownNameError, match=r"no column 'judge'.*Did you mean 'judged'"):
        read_predictions(EVAL, correct="judge")
    with pytest.raises(DomainError, match=r"no confidence in 'judged.confidence'.*'reject'"):
        read_predictions(EVAL, correct="judged")


def test_a_log_in_one_json_object_needs_no_options():
    reading = read_predictions(JSON)
    np.testing.assert_array_equal(reading.only().loss, [0, 0])
    assert "read correct from 'judged', confidence from 'judged.confidence'" in str(
        reading.notes[-1]
    )


def test_epochs_are_rows_of_one_question(tmp_path):
    path = edited(
        tmp_path, lambda log: log["samples"].extend({**x, "epoch": 2} for x in log["samples"][:])
    )
    reading = read_predictions(path, group="id")
    assert np.unique(reading.only().group, return_counts=True)[1].tolist() == [2, 2]
    assert any("up to 2 times" in str(note) for note in reading.notes)


@pytest.mark.parametrize(
    ("value", "loss"), [("P", 0.5), ("C", 0), ("no", 1), ("0.25", 0.75), (True, 0), (0.5, 0.5)]
)
def test_values_read_as_inspect_reads_them(tmp_path, value, loss):
    def change(log):
        log["samples"][0]["scores"]["judged"]["value"] = value

    assert read_predictions(edited(tmp_path, change)).only().loss[0] == loss


def test_unfinished_samples_have_no_grade(tmp_path):
    path = edited(tmp_path, lambda log: log["samples"][1].update(scores=None, error={}))
    with pytest.raises(DomainError, match=r"1 of 2 rows .* no correct in 'judged'"):
        read_predictions(path)
    for missing in ("drop", "reject"):
        reading = read_predictions(path, missing=missing)
        assert reading.only().n == 1
        assert not any("count as abstentions" in str(note) for note in reading.notes)
        assert "1 of 2 samples have no score: not finished" in list(map(str, reading.notes))


def test_reasons_of_inspect_separate_refusals_from_grader_failures():
    reading = read_predictions(REASONS, missing="reject")
    answers = reading.only()
    # Samples 3 and 4 have no grade; 1, 2 and 6 are refusals, however confident they are.
    assert answers.ids.tolist() == [0, 1, 2, 5, 6, 7]
    np.testing.assert_array_equal(answers.loss, [0, 1, 1, 1, 1, 1])
    stated = [0.9, 0.55, 0.55, 0.65, 0.55, 0.55]
    np.testing.assert_allclose(answers.confidence["judged.confidence"], stated)
    assert "3 of 8 answers are refusals, which have no confidence" in list(map(str, reading.notes))
    assert any("2 of 8 answers have no grade in 'judged'" in str(note) for note in reading.notes)
    by_reason = read_predictions(REASONS, missing="reject", group="judged.reason").only()
    assert by_reason.group[1] == "refusal"


def test_a_refusal_without_a_grade_has_the_grade_0(tmp_path):
    def refuse(log):
        log["samples"][1]["scores"]["judged"] |= {"value": float("nan"), "reason": "refusal"}

    reading = read_predictions(edited(tmp_path, refuse), missing="reject")
    np.testing.assert_array_equal(reading.only().loss, [0, 1])


def test_reasons_of_older_logs_are_in_the_metadata(tmp_path):
    def fail(log):
        score = log["samples"][1]["scores"]["judged"]
        score["metadata"]["unscored_reason"] = "grader_failed"

    reading = read_predictions(edited(tmp_path, fail), missing="drop")
    assert reading.only().n == 1


def test_logs_without_confidences_or_samples(tmp_path):
    def silence(log):
        for sample in log["samples"]:
            sample["scores"]["judged"].pop("metadata")
            sample["output"]["choices"][0].pop("logprobs")

    with pytest.raises(MissingInputError, match="the log has no confidence: log the model's"):
        read_predictions(edited(tmp_path, silence))
    with pytest.raises(FileFormatError, match="contains only a header"):
        read_predictions(edited(tmp_path, lambda log: log.update(samples=None)))
    with pytest.raises(FileFormatError, match="contains no answers"):
        read_predictions(edited(tmp_path, lambda log: log.update(samples=[])))


@pytest.mark.parametrize(
    "field", ["id", "epoch", "scores", "output", "metadata", "scores.judged", "output.choices"]
)
@pytest.mark.parametrize("value", [None, [], [7], 10**400, "x", {"x": [1]}])
def test_nothing_a_sample_may_hold_surprises(tmp_path, field, value):
    def change(log):
        place = log["samples"][0]
        *path, last = field.split(".")
        for name in path:
            place = place[name]
        place[last] = value

    with contextlib.suppress(AbstainError):
        read_predictions(edited(tmp_path, change), missing="reject")


def test_damaged_archives(tmp_path):
    path = tmp_path / "a.eval"
    content = EVAL.read_bytes()
    with zipfile.ZipFile(EVAL) as archive:
        place = archive.getinfo("samples/q1_epoch_1.json").header_offset + 900
    changed = bytes([content[place] ^ 255])
    for cut in (content[:4000], content[:place] + changed + content[place + 1 :]):
        path.write_bytes(cut)
        with pytest.raises(FileFormatError, match=r"a\.eval"):
            read_predictions(path, correct="judged", missing="drop")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", "{}")
    with pytest.raises(FileFormatError, match="is not a log of Inspect, because it has no header"):
        read_predictions(path)


def packed_members():
    """Yield what Inspect packed, and how many bytes it was."""
    content = EVAL.read_bytes()
    with zipfile.ZipFile(EVAL) as archive:
        for m in archive.infolist():
            start = m.header_offset + 30 + len(m.filename)
            yield content[start : start + m.compress_size], m.file_size


def test_what_is_packed_is_bounded_before_it_is_unpacked():
    for packed, size in packed_members():
        assert size <= max_decompressed_bytes(packed) <= size + (1 << 17)
        assert max_decompressed_bytes(packed + packed) == 2 * max_decompressed_bytes(packed)
        assert len(decompress_text(packed + packed)) == 2 * size
        with pytest.raises(ValueError, match="truncated"):
            max_decompressed_bytes(packed[:40])
    # A block of four bytes that stands for 128 kB, a thousand times.
    block = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b" "
    bomb = b"\x28\xb5\x2f\xfd\x00\x58" + 999 * block + bytes([block[0] | 1]) + block[1:]
    assert max_decompressed_bytes(bomb) == 1000 << 17


def test_archives_of_other_methods_are_read_too(tmp_path):
    path = tmp_path / "a.eval"
    samples = json.loads(JSON.read_text())["samples"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for i, sample in enumerate(samples):
            archive.writestr(f"samples/{i}_epoch_1.json", json.dumps(sample))
    np.testing.assert_array_equal(
        read_predictions(path).only().loss, read_predictions(JSON).only().loss
    )


@pytest.mark.parametrize(("path", "grade"), [(EVAL, "match"), (CHOICE, "acc")])
def test_in_batches_a_log_is_one_batch(path, grade):
    options = {"correct": grade, "missing": "drop"}
    scan = ab.evaluate(ab.scan_predictions(path, **options), metrics=["augrc"])
    evaluation = ab.evaluate(read_predictions(path, **options), metrics=["augrc"])
    assert [r.value for r in scan.results] == [r.value for r in evaluation.results]


# ------------------------------------------------------------------------------------ harness
def test_choices_give_their_probability_and_margin():
    names = ["choice_probability", "choice_margin"]
    result = read_predictions(CHOICE, correct="acc", confidence=names).only()
    rows = [json.loads(line) for line in CHOICE.read_text().splitlines()]
    np.testing.assert_array_equal(result.loss, [1 - row["acc"] for row in rows])
    for i, row in enumerate(rows):
        x = np.array([float(r[0][0]) for r in row["resps"]])
        assert result.confidence["choice_probability"][i] == pytest.approx(
            np.exp(x).max() / np.exp(x).sum()
        )
        assert result.confidence["choice_margin"][i] == pytest.approx(x.max() - np.sort(x)[-2])


def test_filters_are_grades_of_one_answer(tmp_path):
    with pytest.raises(MissingInputError, match="exact_match,strict-match, exact_match,flexible-e"):
        read_predictions(TEXTS)
    with pytest.raises(MissingInputError, match="the log has no confidence"):
        read_predictions(TEXTS, correct="exact_match,strict-match")
    rows = [json.loads(line) for line in TEXTS.read_text().splitlines()]
    for row in rows:
        row["metrics"].append("confidence")
        row["confidence"] = row["doc_id"] / 10
    path = shutil.copy(TEXTS, tmp_path / "b.jsonl")
    path.write_text("\n".join(map(json.dumps, rows)))
    reading = read_predictions(path, correct="exact_match,flexible-extract", missing="reject")
    refused = {r["doc_id"] for r in rows if r["filtered_resps"] == ["[invalid]"]}
    assert reading.only().n == 4
    assert f"{len(refused)} of 4 answers are refusals, which have no confidence" in list(
        map(str, reading.notes)
    )


def test_older_versions_and_other_lines(tmp_path):
    rows = [json.loads(line) for line in CHOICE.read_text().splitlines()]
    for row in rows:
        for name in ("metrics", "filter", "acc_norm"):
            row.pop(name)
        row["resps"] = [[[float(r[0][0]), False]] for r in row["resps"]]
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    old, new = read_predictions(path).only(), read_predictions(CHOICE, correct="acc").only()
    np.testing.assert_array_equal(old.loss, new.loss)
    np.testing.assert_allclose(
        old.confidence["choice_probability"], new.confidence["choice_probability"]
    )
    path.write_text(json.dumps(rows[0]) + '\n{"doc_id": 1}\n')
    with pytest.raises(FileFormatError, match="line 2 is not a sample of lm-evaluation-harness"):
        read_predictions(path)


def test_the_likelihood_of_the_target_alone_is_no_confidence(tmp_path):
    rows = [json.loads(line) for line in CHOICE.read_text().splitlines()]
    for row in rows:
        row["resps"] = row["resps"][:1]
    path = tmp_path / "lambada.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(MissingInputError, match="the log has no confidence"):
        read_predictions(path, correct="acc")


def test_confidences_of_nothing():
    assert token_confidences([]) == {}
    assert (
        choice_confidences([])
        == choice_confidences([-1.0])
        == choice_confidences([-np.inf, -np.inf])
        == {}
    )
    assert choice_confidences([-np.inf, -2.0])["choice_probability"] == 1
    assert choice_confidences([-5000.0, -5000.0])["choice_probability"] == 0.5
