"""The fine-tuning experiment in miniature: from pictures to a report, resumed, failing in parts."""

import tomllib

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bench.tests.data.cifar_files import write_cifar10  # noqa: E402

import abstain as ab  # noqa: E402
from abstain._foundation.notes import Note  # noqa: E402
from abstain.cli.main import run as run_command  # noqa: E402
from abstain.errors import AbstainError, FileFormatError, InputError, UnknownNameError  # noqa: E402
from abstain.tables import read_predictions  # noqa: E402
from abstain_bench import published  # noqa: E402
from abstain_bench.studies import STUDIES  # noqa: E402
from abstain_bench.studies.finetuning import conclusions  # noqa: E402
from abstain_bench.studies.finetuning.experiment import (  # noqa: E402
    PACKAGED_CONFIGURATIONS,
    override_experiment,
    packaged_configuration,
    parse_experiment,
    read_experiment,
)
from abstain_bench.studies.finetuning.results import ReferenceDifference, new_seeds_interval  # noqa: E402

MINI = """
[data]
name = "digits8"
train = 300
validation = 100
test = 300
test_copies = 2
[data.variation]
name = "distortion"
noise = 0.1
[model]
name = "tiny-conv"
[seeds]
final = [1, 2]
tuning = [1]
[pretrain]
epochs = 6
learning_rate = 0.1
schedule = "cosine"
[finetune]
epochs = 1
[objectives.ce]
kind = "cross-entropy"
[objectives.ce.try]
learning_rate = [0.01, 0.05]
[objectives.aurc]
weights = "aurc"
title = "AURC-weights"
[objectives.aurc.try]
learning_rate = [0.01, 0.05]
[objectives.joint]
kind = "joint"
queue = 200
[objectives.joint.try]
strength = [1.0, 1e30]
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The miniature, run once: its result, folder and outcomes."""
    folder = tmp_path_factory.mktemp("finetune")
    (folder / "mini.toml").write_text(MINI)
    told = []
    found = STUDIES["finetune"].run(
        folder / "mini.toml", out=folder / "out", on_outcome=lambda *seen: told.append(seen)
    )
    return found, folder, told


def test_every_job_is_told_and_counted(ran):
    _, _, told = ran
    begun = [outcome.job.name for outcome, *_ in told if outcome.status == "begun"]
    assert begun[0] == "pretrain-seed1"
    assert len(begun) == 16
    told = [seen for seen in told if seen[0].status != "begun"]
    # Two seeds pretrained; three objectives with two settings; two seeds of four final ones.
    assert [over for _, over, _ in told] == list(range(1, 17))
    assert {total for *_, total in told} == {16}


def test_a_setting_that_fails_is_not_chosen_and_stops_nothing(ran):
    found, folder, told = ran
    failed = [outcome for outcome, *_ in told if outcome.status == "failed"]
    assert [outcome.job.name for outcome in failed] == ["tune-joint-2-seed1"]
    assert "lower `learning_rate`" in failed[0].error
    (warning,) = (note for note in found.notes if isinstance(note, Note))
    assert warning.level == "warning"
    assert warning.message.startswith("joint: 1 of 4 jobs failed (tune-joint-2-seed1: ")
    tuning = found.frame("tuning")
    assert tuning.filter(objective="joint")["selected"].to_list() == [True, False]
    assert len(list((folder / "out" / "jobs").glob("*.log"))) == 1


def test_the_setting_of_the_best_validation_value_is_chosen(ran):
    for name in ("ce", "AURC-weights"):
        tuning = ran[0].frame("tuning").filter(objective=name)
        best = tuning["aurc_plugin"].arg_min()
        assert tuning["selected"].to_list() == [i == best for i in range(2)]


def test_the_numbers_are_those_of_the_stored_predictions(ran):
    found, folder, _ = ran
    parts = read_predictions(folder / "out" / "predictions.npz", by=("objective", "seed"))
    assert len(parts) == 8
    results = found.frame("results")
    for split, part in parts.items():
        assert part.logits.dtype == np.float32
        assert part.n == 600
        where = {"objective": split[0][1], "seed": int(split[1][1]), "loss": "zero_one"}
        own = {r["metric"]: r["value"] for r in results.filter(**where).to_dicts()}
        assert own["accuracy"] == pytest.approx(part.correct.mean())
        confidence = ab.confidence.SCORES["msr"].compute(part)
        assert own["augrc"] == pytest.approx(ab.augrc(confidence, ~part.correct), abs=1e-12)


def test_each_copy_of_a_picture_has_a_name_of_its_own_and_belongs_to_it(ran):
    parts = read_predictions(ran[1] / "out" / "predictions.npz", by=("objective", "seed"))
    for part in parts.values():
        pictures, copies = zip(*(str(name).split(".") for name in part.ids), strict=True)
        assert len(set(part.ids)) == part.n
        assert list(pictures) == [str(picture) for picture in part.group]
        assert set(copies) == {"0", "1"}


def test_differences_are_paired_and_treat_copies_as_clusters(ran):
    found, folder, _ = ran
    data = read_predictions(folder / "out" / "predictions.npz", by=("objective", "seed"))
    told = ab.compare(
        data, scores=["msr"], metrics=["augrc"], methods="objective", runs="seed", clustered=True
    )
    pair = next(p for p in told.pairs if {p.first, p.second} == {"ce", "aurc"} and p.data == ())
    sign = 1 if pair.second == "ce" else -1
    row = found.frame("differences").filter(objective="aurc", loss="zero_one", metric="augrc")
    assert row["difference"].item() == pytest.approx(sign * pair.difference, abs=1e-12)
    ends = sorted((sign * pair.low, sign * pair.high))
    assert [row["difference_low"].item(), row["difference_high"].item()] == pytest.approx(ends)
    every = found.frame("differences")
    assert (every["new_seeds_low"] <= every["difference_low"]).all()
    assert (every["new_seeds_high"] >= every["difference_high"]).all()
    values = found.frame("results").filter(loss="zero_one", metric="augrc")
    means = {o: values.filter(objective=o)["value"].mean() for o in ("ce", "aurc")}
    assert row["difference"].item() == pytest.approx(means["aurc"] - means["ce"], abs=1e-12)


def test_test_pictures_are_none_that_were_learned_from(ran):
    _, folder, _ = ran
    from abstain_bench.data import DATASETS

    parts = DATASETS["digits8"].splits(train=300, validation=100, test=300)
    with np.load(folder / "out" / "predictions.npz") as stored:
        tested = set(stored["group"].astype(int).tolist())
    assert tested == set(parts.test.rows.tolist())
    assert not tested & {*parts.train.rows.tolist(), *parts.validation.rows.tolist()}


def test_the_verdict_says_what_the_intervals_say(ran):
    found, _, _ = ran
    rows = found.frame("differences").filter(loss="zero_one", metric="aurc_plugin")
    for row in rows.filter(rows["objective"] != "before").to_dicts():
        said = [
            s for s in found.verdict if row["title"] in s and "AURC" in s.split(row["title"])[0]
        ]
        start = {
            "better": "Significantly lower AURC",
            "worse": "Significantly higher AURC",
            "inconclusive": "AURC not significantly different",
        }[row["verdict"]]  # fmt: skip
        assert any(s.startswith(start) for s in said)


def test_a_winner_of_one_seed_is_one_of_these_models_only():
    def against(seeds):
        return ReferenceDifference(
            "mine", "zero_one", "aurc_plugin", 0.01, 0.012, -0.002, -0.003, -0.001,
            *((-0.0025, -0.0015) if seeds > 1 else (np.nan, np.nan)), 0.01, 0.01, seeds, seeds, True,
        )  # fmt: skip

    said = {
        n: conclusions._conclude_measure([against(n)], {"mine": "Mine"}, "cross-entropy")[0]
        for n in (1, 5)
    }
    assert "With one seed, this compares trained models, not objectives" in said[1]
    assert said[5].startswith("Significantly lower AURC than cross-entropy")
    rows = {n: conclusions._display_row(against(n), {"mine": "Mine"}) for n in (1, 5)}
    assert rows[1]["result"] == "better (of one seed only)"
    assert rows[5]["result"] == "better"


def test_a_second_run_does_only_what_is_missing_and_finds_the_same(ran):
    found, folder, _ = ran
    jobs = folder / "out" / "jobs"
    for path in (*jobs.glob("final-aurc-seed2-*.json"), *jobs.glob("pretrain-seed1-*.json")):
        path.unlink()
    again = STUDIES["finetune"].run(folder / "mini.toml", out=folder / "out")
    done = again.frame("jobs").filter(status="done")["job"].to_list()
    assert done == ["pretrain-seed1", "final-aurc-seed2"]
    assert again.frame().equals(found.frame())
    assert again.verdict == found.verdict


def test_the_command_leaves_tables_figures_and_a_page(ran, capsys):
    _, folder, _ = ran
    out = folder / "out"
    config = str(folder / "mini.toml")
    # One setting failed.
    assert run_command(["study", "finetune", config, "--out", str(out)]) == 1
    seen = capsys.readouterr()
    assert "Warning: joint: 1 of 4 jobs failed" in " ".join(seen.out.split())
    assert "AURC-weights" in seen.out
    assert "16/16 final-joint-seed2: kept" in seen.err
    left = {path.name for path in out.iterdir()}
    assert {"results.csv", "objectives.csv", "report.html", "predictions.npz", "jobs"} <= left
    assert (out / "figures" / "aurc.svg").is_file()
    assert (out / "figures" / "aurc.csv").is_file()
    named = ["--methods-from", "objective", "--runs-from", "seed", "--score", "msr"]
    assert run_command(["compare", str(out / "predictions.npz"), *named]) == 0
    one, two = (str(next((out / "jobs").glob(f"final-{x}-seed1-*.npz"))) for x in ("ce", "aurc"))
    assert run_command(["compare", one, two, "--methods-from", "filename", "--score", "msr"]) == 0


def test_cifar_runs_from_the_same_command(tmp_path, capsys):
    write_cifar10(tmp_path / "data", records=20)
    text = packaged_configuration("cifar10").read_text()
    for old, new in (
        ('name = "cifar10" ', 'name = "cifar10"\nrecords = 20 '),
        ("epochs = 200", "epochs = 1"),
        ("epochs = 30\n", "epochs = 1\n"),
        ("batch_size = 128", "batch_size = 60"),
        ("[5, 10, 21, 42, 84]", "[5]"),
        ('"vgg16-bn"', '"tiny-conv"'),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "c.toml").write_text(text)
    folder = ["--folder", str(tmp_path / "data")]
    assert run_command(["study", "finetune", str(tmp_path / "c.toml"), *folder]) == 0
    assert "11/11" in capsys.readouterr().err
    assert run_command(["study", "finetune", "--data", "cifar10", *folder]) == 2
    assert "30,730,000 bytes" in capsys.readouterr().err
    assert run_command(["study", "finetune", "--data", "cifar100"]) == 2
    assert "--folder" in capsys.readouterr().err


@pytest.mark.parametrize("data", PACKAGED_CONFIGURATIONS)
def test_shipped_configurations_are_sound(data):
    experiment = override_experiment(read_experiment(packaged_configuration(data)), data=data)
    assert experiment.data.name == data
    assert experiment.seeds == (5, 10, 21, 42, 84)
    weights = {c.settings[0].options.get("weights") for c in experiment.objectives}
    assert {"aurc", "aurc-log", "sele", "augrc"} <= weights


#: Section 4 of Zhou et al. (2025): "Training a selective classifier", and table 1.
THEIRS = {"epochs": 30, "learning_rate": 1e-3, "batch_size": 128}


@pytest.mark.parametrize("data", ["cifar10", "cifar100"])
def test_the_recipe_called_the_papers_is_the_papers(data):
    experiment = override_experiment(read_experiment(packaged_configuration(data)), data=data)
    assert not experiment.is_tuned
    assert len(experiment.seeds) == 5
    for contender in experiment.objectives:
        (setting,) = contender.settings
        assert {name: getattr(setting.recipe, name) for name in THEIRS} == THEIRS
        # The paper names no schedule, so the rate stays what it says.
        assert (
            setting.recipe.learning_rate_at(0.0)
            == setting.recipe.learning_rate_at(0.99)
            == THEIRS["learning_rate"]
        )


def test_the_recipe_is_that_of_the_published_settings():
    rows = published.table("settings")
    said = {row["setting"]: row["value"] for row in rows if row["paper"] == "population_aurc"}
    assert {
        "epochs": int(said["fine-tuning epochs"]),
        "learning_rate": float(said["fine-tuning learning rate"]),
        "batch_size": int(said["fine-tuning batch size"]),
    } == THEIRS
    assert said["fine-tuning seeds"] == "5"
    assert said["loss inside the estimators"] == "cross-entropy"


def mini(**replaced):
    found = tomllib.loads(MINI)
    for path, value in replaced.items():
        *above, last = path.split("__")
        place = found
        for name in above:
            place = place[name]
        place[last] = value
    return found


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"data__nam": "x"}, "Did you mean 'name'"),
        ({"data__name": "x"}, "no data set named 'x'"),
        ({"model__name": "x"}, "no model named 'x'"),
        ({"finetune__epoch": 3}, "Did you mean 'epochs'"),
        ({"finetune__epochs": 0}, "at least 1"),
        ({"seeds__final": []}, "must be a list that is not empty"),
        ({"seeds__final": [1, 1]}, "must hold each value once"),
        ({"seeds__tuning": []}, "must not be empty"),
        ({"data__validation": 0}, "must not be empty"),
        ({"objectives__ce__try": {"learning_rate": [0.1]}}, "the same number of settings"),
        ({"objectives__aurc__weights": "x"}, "x"),
        ({"objectives__aurc__sofft": 1}, "Did you mean 'soft'"),
        ({"objectives__aurc__try": {"soft": 0.1}}, "list of values to try"),
        ({"study": {"reference": "x"}}, "must be one of the objectives"),
        ({"data__variation": {}}, "are identical unless"),
        ({"objectives__ce__kind": "cross"}, "no objective named"),
    ],
)
def test_wrong_configurations_are_refused_by_field(replaced, said):
    with pytest.raises(InputError, match=said):
        parse_experiment(mini(**replaced))


def test_configurations_that_are_no_toml(tmp_path):
    (tmp_path / "x.toml").write_text("[data")
    with pytest.raises(FileFormatError, match="no TOML"):
        read_experiment(tmp_path / "x.toml")
    with pytest.raises(InputError, match="there is no configuration"):
        read_experiment(tmp_path / "y.toml")
    with pytest.raises(UnknownNameError):
        packaged_configuration("mnist")


def test_as_many_seeds_as_asked_for():
    experiment = parse_experiment(mini(seeds__final=[5, 10, 21], seeds__tuning=[5, 21]))
    assert override_experiment(experiment, seeds=5).seeds == (5, 10, 21, 22, 23)
    fewer = override_experiment(experiment, seeds=2)
    assert (fewer.seeds, fewer.tuning_seeds) == ((5, 10), (5,))


def test_when_nothing_is_left_to_compare_it_says_why(tmp_path):
    text = MINI.replace("learning_rate = 0.1\n", "learning_rate = 1e20\n").replace("[1, 2]", "[1]")
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(AbstainError, match=r"too many jobs failed .*pretrain-seed1: the loss"):
        STUDIES["finetune"].run(tmp_path / "x.toml")


def test_a_device_that_is_not_there(tmp_path):
    (tmp_path / "x.toml").write_text(MINI)
    with pytest.raises(InputError, match="cannot be used"):
        STUDIES["finetune"].run(tmp_path / "x.toml", device="cuda:77")


def test_the_interval_for_new_seeds_covers():
    # Crossed normal effects of samples and seeds, whose variances are known here.
    rng = np.random.default_rng(0)
    n, seeds, hits, draws = 400, 5, 0, 600
    for _ in range(draws):
        effect = rng.normal(size=n)[:, None] + 0.05 * rng.normal(size=seeds) * np.ones((n, 1))
        effect = effect + 0.3 * rng.normal(size=(n, seeds))
        by_sample = effect.mean(1)
        error = by_sample.std(ddof=1) / np.sqrt(n)
        low, high = new_seeds_interval(by_sample.mean(), error, effect.mean(0).tolist())
        hits += low <= 0 <= high
    assert 0.93 <= hits / draws <= 0.985
    assert np.isnan(new_seeds_interval(0.1, 0.1, [0.1])).all()
