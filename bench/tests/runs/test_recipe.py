"""Recipes: how long, how fast, and what changes the rate of a step."""

import math

import pytest

torch = pytest.importorskip("torch")

from abstain import training  # noqa: E402  after the skip
from abstain.errors import InputError  # noqa: E402
from abstain.training import Phase  # noqa: E402
from abstain_bench.data import digits8  # noqa: E402
from abstain_bench.networks import MODELS  # noqa: E402
from abstain_bench.runs.training import Checkpointing, Recipe, train  # noqa: E402
from abstain_bench.runs.training.loop import LearningRates  # noqa: E402

PLAIN = Phase("train", ("backbone", "classifier"))


def rates(recipe, phases, batches):
    own = LearningRates(phases, recipe, batches)
    return [own.rate_at(epoch, batch) for epoch in range(len(phases)) for batch in range(batches)]


def test_the_rate_rises_in_equal_parts_and_falls_as_a_cosine_of_what_is_left():
    recipe = Recipe(steps=20, learning_rate=0.4, schedule="cosine", warm_up_steps=4)
    result = rates(recipe.with_epochs_for(24 * 128), [PLAIN], 24)
    assert result[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    cosine = [0.2 * (1 + math.cos(math.pi * i / 16)) for i in range(16)]
    assert result[4:20] == pytest.approx(cosine)


def test_a_stage_with_a_rate_of_its_own_keeps_it_where_that_is_requested():
    branch = Phase("confidence", ("confidence",), learning_rate=1e-4)
    last = Phase("fine-tune", ("confidence",), learning_rate=1e-6)
    plan = [PLAIN, PLAIN, branch, branch, last]
    constant = Recipe(epochs=5, learning_rate=0.1, schedule="cosine", stage_schedule="constant")
    result = rates(constant, plan, 3)
    assert result[6:12] == [1e-4] * 6
    assert result[12:] == [1e-6] * 3
    # The classifier has the whole of its cosine in its own two epochs.
    assert result[:6] == pytest.approx([0.05 * (1 + math.cos(math.pi * i / 6)) for i in range(6)])
    falling = rates(Recipe(epochs=5, learning_rate=0.1, schedule="cosine"), plan, 3)
    assert falling[6:12] == pytest.approx(
        [5e-5 * (1 + math.cos(math.pi * i / 6)) for i in range(6)]
    )


def test_steps_make_as_many_epochs_as_they_take():
    recipe = Recipe(steps=40_000, batch_size=128)
    assert recipe.with_epochs_for(50_000).epochs == math.ceil(40_000 / 391)
    assert (recipe.length, recipe.with_length(7).steps, Recipe(epochs=9).length) == (40_000, 7, 9)
    assert Recipe(epochs=3).with_epochs_for(10).epochs == 3
    assert "clip" not in Recipe().to_dict()
    assert Recipe(**Recipe(clip=1.0, steps=3).to_dict()) == Recipe(clip=1.0, steps=3)
    with pytest.raises(InputError, match="stage_schedule"):
        Recipe(stage_schedule="sometimes")


def trained(recipe, **options):
    objective = training.make("cross-entropy", rng=0)
    network = training.Network(MODELS["small-conv"].make((1, 8, 8), seed=0), objective.head(64, 10))
    reports = []
    losses = train(network, digits8(), objective, recipe, on_step=reports.append, **options)
    return network, losses, reports


def test_the_last_epoch_is_cut_short_and_a_killed_training_of_steps_goes_on(tmp_path):
    recipe = Recipe(steps=20, learning_rate=0.1, warm_up_steps=3)
    whole, losses, told = trained(recipe)
    # 1,797 digits are 15 batches: one epoch, and five steps of the next.
    assert (len(told), len(losses)) == (20, 2)

    class KilledError(Exception):
        """What ends a training."""

    def stop(epoch, loss):
        if epoch == 2:
            raise KilledError

    checkpointing = Checkpointing(tmp_path / "own.part", 0.0)
    with pytest.raises(KilledError):
        trained(recipe, checkpointing=checkpointing, on_epoch=stop)
    again, after, _ = trained(recipe, checkpointing=checkpointing)
    assert after == losses
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name


def test_gradients_are_scaled_to_the_norm_that_is_requested():
    """One step without momentum moves the weights by the rate times the clipped gradient."""
    base = Recipe(steps=1, learning_rate=1.0, momentum=0.0, weight_decay=0.0, batch_size=64)
    before = trained(Recipe(steps=1, learning_rate=1e-30, momentum=0.0, weight_decay=0.0))[0]

    def moved(recipe):
        after = trained(recipe)[0].state_dict()
        apart = [after[n] - p.detach() for n, p in before.named_parameters()]
        return math.sqrt(sum(float((one**2).sum()) for one in apart))

    free = moved(base)
    assert free > 0.1
    clipped = moved(Recipe(**{**base.to_dict(), "clip": 0.1}))
    assert clipped == pytest.approx(0.1, rel=1e-3)
    assert moved(Recipe(**{**base.to_dict(), "clip": 1e6})) == pytest.approx(free, rel=1e-6)
