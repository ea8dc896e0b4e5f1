"""DeepGamblers with rewards above the number of classes: planned with a note, and trained."""

import inspect
from dataclasses import replace

import pytest

from abstain.errors import InputError
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification.arms import Arm, reward_notes

torch = pytest.importorskip("torch")

from abstain.cli.main import run as main  # noqa: E402
from abstain.training import DeepGamblers  # noqa: E402
from abstain_bench.runs.run import run_benchmark  # noqa: E402  after the skip
from abstain_bench.runs.specification import default_config  # noqa: E402


def gamblers(**changes):
    return Arm("dg", "deep-gamblers", Recipe(), **changes)


def test_the_rewards_of_an_arm_equal_those_of_its_objective():
    assert gamblers().rewards == (DeepGamblers().reward,)
    assert gamblers(options={"reward": 6.0}).rewards == (6.0,)
    assert gamblers(option_grid={"reward": (2.2, 15.0)}).rewards == (2.2, 15.0)
    assert Arm("plain", "cross-entropy", Recipe()).rewards == ()
    assert "reward" in inspect.signature(DeepGamblers).parameters


@pytest.mark.parametrize("reward", [1.0, 0.5, -1, float("inf"), float("nan"), "high", True])
def test_a_reward_that_cannot_be_trained_with_is_rejected_before_planning(reward):
    """This must not need torch, as `--dry-run` does not."""
    with pytest.raises(InputError, match="`reward` of the arm 'dg' must be a number above 1"):
        gamblers(option_grid={"reward": (2.2, reward)})
    with pytest.raises(InputError, match="must be a number above 1"):
        gamblers(options={"reward": reward})


def test_notes_name_the_rewards_above_the_number_of_classes():
    arms = [
        Arm("plain", "cross-entropy", Recipe()),
        gamblers(option_grid={"reward": (2.2, 6.0, 15.0)}),
    ]
    assert reward_notes(arms, n_classes=15) == []
    (note,) = reward_notes(arms, n_classes=13)
    assert note.startswith("the reward 15 of the arm dg is above the number of classes, 13: ")
    (note,) = reward_notes(arms, n_classes=2)
    assert note.startswith("the rewards 2.2, 6, 15 of the arm dg are above the number of classes, ")


@pytest.mark.parametrize(
    ("task", "above"),
    [
        ("camelyon17", "the rewards 2.2, 3, 6, 10 of the arm deep-gamblers are above"),
        ("entity13", "the reward 15 of the arm deep-gamblers is above the number of classes, 13"),
        ("cifar100-super", "the reward 20 of the arm deep-gamblers is above"),
        ("svhn-open-1", "the reward 10 of the arm deep-gamblers is above the number of classes, 6"),
        ("cifar10", ""),
    ],
)
@pytest.mark.parametrize("protocol", [[], ["--protocol", "fd-shifts"]])
def test_a_dry_run_names_them(task, above, protocol, capsys):
    assert main(["benchmark", "run", task, *protocol, "--dry-run"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert ("Note: " in printed) == bool(above)
    assert above in printed


def test_a_benchmark_trains_with_a_reward_above_the_number_of_classes(tmp_path):
    """Training with a reward of 15 on ten classes was rejected with a DomainError."""
    config = default_config("digits8", seeds=1, samples=0, arms=["deep-gamblers"], corruptions=[])
    (arm,) = config.arms
    recipe = replace(arm.recipe, epochs=2)
    arm = replace(arm, recipe=recipe, dropout=(0.0,), option_grid={"reward": (2.2, 15.0)})
    store, outcomes = run_benchmark(replace(config, arms=(arm,)), tmp_path)
    assert {outcome.status for outcome in outcomes} == {"done"}
    settings = {kept.run.setting for kept in store.stored_runs}
    assert settings == {"dropout0-reward2.2", "dropout0-reward15"}
    (note,) = [note for note in store.facts["notes"] if "reward" in note]
    assert note.startswith("the reward 15 of the arm deep-gamblers is above")
