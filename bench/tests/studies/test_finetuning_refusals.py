"""Configurations of the fine-tuning experiment that cannot be, and results that are degenerate."""

import dataclasses
import tomllib

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bench.tests.data.cifar_files import write_cifar10  # noqa: E402
from bench.tests.studies.test_finetuning import mini  # noqa: E402
from tests.docs.blocks import ROOT, blocks  # noqa: E402

from abstain.errors import AbstainError, FileFormatError, InputError  # noqa: E402
from abstain.predictions import Predictions  # noqa: E402
from abstain.report.document import ReportOptions  # noqa: E402
from abstain_bench.pages.study import study_document, study_html  # noqa: E402
from abstain_bench.runs.jobs import Job, Outcome  # noqa: E402
from abstain_bench.runs.training import Recipe  # noqa: E402
from abstain_bench.studies import STUDIES  # noqa: E402
from abstain_bench.studies.finetuning.conclusions import (  # noqa: E402
    failure_warnings,
    summarize_experiment,
)
from abstain_bench.studies.finetuning.experiment import (  # noqa: E402
    ComparedObjective,
    DataChoice,
    Experiment,
    FinetuningSetting,
    override_experiment,
    parse_experiment,
    read_experiment,
)
from abstain_bench.studies.finetuning.jobs import FinetuningJobs, FinetuningWorker  # noqa: E402
from abstain_bench.studies.finetuning.results import _adjust_together  # noqa: E402

TWO = {"learning_rate": [0.1, 0.2]}


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"data__name": ["x"]}, "`data.name` must be a text"),
        ({"data__folder": 5}, "`data.folder` must be a text"),
        ({"data__variation": 5}, r"\[data.variation\]"),
        ({"data__variation": {"name": ["x"]}}, "must be one of 'crop-flip'"),
        ({"data__variation": {"name": "crop-flip", "mirror": "no"}}, "true or false"),
        ({"data__validation": ""}, "`data.validation`"),
        ({"data__test_copies": 10**12}, "at most 10,000"),
        ({"data__seed": 2**63}, "`data.seed` must be at most"),
        ({"model__name": 5}, "`model.name` must be a text"),
        ({"seeds__final": [[1]]}, "`seeds.final` must hold whole numbers"),
        ({"seeds__tuning": [7]}, "must be among `seeds.final`.*got 7"),
        ({"pretrain__learning_rate": "0.1"}, r"\[pretrain\]: `learning_rate` must be a number"),
        ({"pretrain__learning_rate": True}, "must be a number"),
        ({"pretrain__learning_rate": float("nan")}, "must be finite"),
        ({"pretrain__nesterov": "no"}, "true or false"),
        ({"pretrain__epochs": 10**40}, "at most 1,000,000"),
        ({"objectives": {}}, "at least two objectives"),
        ({"objectives__ce__kind": ["x"]}, "`objectives.ce.kind` must be a text"),
        ({"objectives__ce__try": 5}, r"\[objectives.ce.try\]"),
        ({"objectives__ce__try": {"learning_rate": [0.1, 0.1]}}, "each once"),
        ({"objectives__ce__title": 5}, "`objectives.ce.title` must be a text"),
        ({"objectives__ce__title": "AURC-weights"}, "two objectives have the title"),
        ({"objectives__aurc__queue": 10**15}, "`queue` must lie in"),
        ({"objectives__aurc__warm_up": 0.5}, r"\[objectives.aurc\]: `epochs` must be at least 2"),
        (
            {"objectives__x": {"kind": "deep-gamblers", "try": TWO}},
            "trains 'abstention' in addition",
        ),
        ({"objectives__before": {"try": TWO}}, "and not 'before'"),
        ({"objectives__../../x": {"try": TWO}}, "must be named with"),
        ({"objectives__a\nb": {"try": TWO}}, "must be named with"),
        ({"objectives__" + "x" * 61: {"try": TWO}}, "up to 60"),
        ({"study": {"choose_by": ["x"]}}, "`study.choose_by` must be a text"),
    ],
)
def test_what_cannot_be_is_refused_by_field(replaced, said):
    with pytest.raises(InputError, match=said):
        parse_experiment(mini(**replaced))


def test_more_seeds_than_anybody_has_are_refused():
    with pytest.raises(InputError, match="at most 1,000"):
        override_experiment(parse_experiment(mini()), seeds=10**8)


@pytest.mark.parametrize(
    ("content", "said"),
    [("x = " + "[" * 5000, "nested too deeply"), ("x = " + "9" * 5000, "no TOML")],
)
def test_files_that_break_the_reader(tmp_path, content, said):
    (tmp_path / "x.toml").write_text(content)
    with pytest.raises(FileFormatError, match=said):
        read_experiment(tmp_path / "x.toml")


def test_a_folder_is_no_configuration(tmp_path):
    with pytest.raises(InputError, match="it is a folder, not a file"):
        read_experiment(tmp_path)


TINY = """
[data]
name = "digits8"
train = 60
test = 60
[model]
name = "tiny-conv"
[pretrain]
epochs = 1
[finetune]
epochs = 1
[objectives.ce]
kind = "cross-entropy"
[objectives.same]
kind = "cross-entropy"
"""


def test_objectives_that_ask_for_the_same_are_both_there(tmp_path):
    (tmp_path / "x.toml").write_text(TINY)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    found = STUDIES["finetune"].run(tmp_path / "x.toml", device="cpu:0", out=tmp_path / "out")
    assert torch.get_num_threads() == threads + 1
    torch.set_num_threads(threads)
    assert found.frame("objectives")["objective"].to_list() == ["before fine-tuning", "ce", "same"]
    assert "same +0.0% (times 1000: +0.00" in found.verdict[0]
    again = STUDIES["finetune"].run(tmp_path / "x.toml", device="cpu:0", out=tmp_path / "out")
    # A rebuilt report says what the jobs took, not only what the rebuilding did.
    said = dict(study_document(again, ReportOptions()).facts)
    assert (said["Jobs"], said["Jobs of earlier runs"]) == ("4", "4")
    assert (
        said["Time of all jobs"]
        == dict(study_document(found, ReportOptions()).facts)["Time of all jobs"]
    )
    assert "Time of this run" in said


def test_a_loss_without_gradient_says_what_to_do(tmp_path):
    lone = TINY.replace(
        '[objectives.same]\nkind = "cross-entropy"', '[objectives.x]\nbase = "zero-one"'
    )
    (tmp_path / "x.toml").write_text(lone)
    with pytest.raises(Exception, match=r"the loss has no gradient: .* pass `soft`"):
        STUDIES["finetune"].run(tmp_path / "x.toml")


def test_a_device_without_numbers_is_refused(tmp_path):
    (tmp_path / "x.toml").write_text(TINY)
    with pytest.raises(InputError, match="'meta' cannot be used"):
        STUDIES["finetune"].run(tmp_path / "x.toml", device="meta")


def test_models_without_a_failure_have_no_share_and_no_nan():
    labels = np.arange(40) % 4
    logits = (3 * np.eye(4)[labels] + np.random.default_rng(0).random((40, 4))).astype(np.float32)
    perfect = Predictions(logits=logits, labels=labels, ids=np.arange(40), group=np.arange(40))
    setting = (FinetuningSetting({}, Recipe(epochs=1), {}),)
    named = (("ce", "<script>x</script>"), ("b", "[bold]"))
    contenders = tuple(
        ComparedObjective(name, title, "cross-entropy", setting) for name, title in named
    )
    data = DataChoice(name="digits8", train=50, test=50)
    experiment = Experiment(
        data, "tiny-conv", Recipe(epochs=1), contenders, (1, 2), (), "ce", "augrc"
    )
    finals = {(name, seed): perfect for name in ("before", "ce", "b") for seed in (1, 2)}
    parts = summarize_experiment(experiment, finals, {"ce": 0, "b": 0}, [], [])
    assert (
        "[bold] (the reference is 0) (times 1000: +0.00, 95% interval undefined"
        in parts["verdict"][0]
    )
    assert "nan" not in " ".join(parts["verdict"])
    page = study_html(STUDIES["finetune"].result(parameters={}, seconds=1.0, **parts))
    assert "<script>" not in page


def test_other_pictures_in_the_folder_are_other_jobs(tmp_path):
    keys = set()
    for seed in (0, 1):
        place = write_cifar10(tmp_path / str(seed), records=20, seed=seed)
        for folder in (place, place.parent):
            data = {"name": "cifar10", "records": 20, "folder": str(folder), "validation": 20}
            experiment = parse_experiment(mini(data=data))
            pictures = FinetuningWorker(str(folder)).images_digest(experiment)
            keys.add(FinetuningJobs(experiment, "cpu", pictures).pretraining[1].key)
    assert len(keys) == 2
    assert not FinetuningWorker().images_digest(parse_experiment(mini()))


def test_the_configuration_of_the_page_is_whole_and_its_fields_are_explained():
    page = (ROOT / "docs" / "studies" / "finetune.md").read_text(encoding="utf-8")
    (code,) = (b.code for b in blocks(page) if b.language == "toml")
    experiment = parse_experiment(tomllib.loads(code))
    assert [c.name for c in experiment.objectives] == ["ce", "mine"]
    assert experiment.is_tuned
    for record in (DataChoice, Recipe):
        for field in dataclasses.fields(record):
            # The table names [data.variation] by its brackets.
            assert f"`{field.name}`" in page or f"[data.{field.name}]" in page, field.name


def outcome(name, status, error=""):
    return Outcome(Job(name, {}), status, error=error)


def test_there_is_one_warning_an_objective():
    experiment = parse_experiment(mini(objectives__aurc__title="AURC"))
    outcomes = [
        outcome("pretrain-seed1", "done"),
        outcome("pretrain-seed2", "failed", "no memory"),
        outcome("tune-ce-1-seed1", "done"),
        *(outcome(f"tune-aurc-{i}-seed1", "failed", "nan") for i in (1, 2)),
        outcome("final-aurc-seed1", "left out", "it needs a setting"),
        outcome("final-ce-seed2", "left out", "it needs pretrain-seed2, which failed"),
        outcome("tune-joint-1-seed1", "failed", "nan"),
    ]
    said = failure_warnings(experiment, {"ce", "joint"}, outcomes)
    assert [note.message for note in said] == [
        "pretrained models: 1 of 2 jobs failed (pretrain-seed2: no memory). 2 jobs are skipped.",
        "AURC is not compared: 2 of 3 jobs failed (tune-aurc-1-seed1: nan).",
        "joint: 1 of 1 jobs failed (tune-joint-1-seed1: nan). It is compared without them.",
    ]
    assert all(note.level == "warning" for note in said)
    assert failure_warnings(experiment, {"ce", "aurc", "joint"}, outcomes[:1]) == []


def test_jobs_that_can_never_begin_are_counted_and_told(tmp_path):
    lone = TINY.replace("epochs = 1\n[finetune]", "epochs = 3\nlearning_rate = 1e20\n[finetune]")
    lone = lone.replace("[pretrain]", "[seeds]\nfinal = [1]\n[pretrain]")
    (tmp_path / "x.toml").write_text(lone)
    told = []
    with pytest.raises(AbstainError, match="too many jobs failed"):
        STUDIES["finetune"].run(tmp_path / "x.toml", on_outcome=lambda *seen: told.append(seen))
    over = [seen for seen in told if seen[0].status != "begun"]
    assert [(at, total) for _, at, total in over] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert over[-1][0].error == "it needs pretrain-seed1, which failed"


def test_the_interval_that_counts_seeds_is_never_narrower():
    own = {"ce": [0.1, 0.1], "b": [0.1999, 0.2001]}
    # The interval for new samples may be wider than its standard error says: few failures.
    pair = {"objective": "b", "reference": "ce", "metric": "augrc", "difference": 0.1}
    pair |= {"low": 0.01, "high": 0.5, "error": 0.02, "p_value": 0.1}
    (found,) = _adjust_together([pair], "zero_one", own)
    assert (found.new_seeds_low, found.new_seeds_high) == (0.01, 0.5)
    assert found.verdict == "worse"
    assert not found.is_zero_in_new_seeds_interval
