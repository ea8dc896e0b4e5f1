"""The loop: seeded, resumed to the same bits, and told apart from what cannot be resumed."""

import io
import sys
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from abstain import training  # noqa: E402
from abstain.errors import AbstainError, DomainError, FileFormatError, InputError  # noqa: E402
from abstain.training import OBJECTIVES  # noqa: E402
from abstain_bench.data import Exposure, Images  # noqa: E402
from abstain_bench.data.corruptions import corrupt  # noqa: E402
from abstain_bench.networks import MODELS  # noqa: E402
from abstain_bench.runs.training import (  # noqa: E402
    Checkpointing,
    CropFlip,
    Distortion,
    Machine,
    Preprocessing,
    Recipe,
    compute_logits,
    train,
)
from abstain_bench.runs.training.inputs import make_variation  # noqa: E402
from abstain_bench.runs.training.loop import MixedPrecision, load_state  # noqa: E402


def pictures(n=50, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    pixels = rng.integers(0, 100, (n, 1, 8, 8)) + 120 * labels[:, None, None, None]
    return Images(pixels.astype(np.uint8), labels, ("dark", "light"))


def fresh(name="cross-entropy", seed=0, **options):
    objective = training.make(name, rng=seed, **options)
    backbone = MODELS["tiny-conv"].make((1, 8, 8), seed=seed)
    return training.Network(backbone, objective.head(backbone.width, 2)), objective


def state(network):
    return torch.cat([v.double().ravel() for v in network.state_dict().values()])


def trained(
    epochs=4, seed=0, checkpointing=None, name="rank-weighted", on_epoch=None, precision="32-true",
    device="cpu", **options,
):  # fmt: skip
    network, objective = fresh(name, **({"queue": 30} if name == "rank-weighted" else {}))
    data = pictures()
    recipe = Recipe(epochs=epochs, batch_size=16, schedule="cosine", **options)
    inputs = Preprocessing.from_training_images(data, Distortion())
    losses = train(
        network, data, objective, recipe,
        preprocessing=inputs, seed=seed, checkpointing=checkpointing, on_epoch=on_epoch, machine=Machine(device, precision),
    )  # fmt: skip
    return network, losses


def test_training_equals_that_of_its_seed_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, second, other = trained(), trained(), trained(seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert first[1] == second[1] != other[1]
    assert torch.equal(state(first[0]), state(second[0]))


class KilledError(Exception):
    pass


@pytest.fixture
def half_on_the_cpu(monkeypatch):
    """Compute in float16 on the CPU, slowly, for the state of what scales gradients."""
    from lightning_fabric.plugins import MixedPrecision as Casting

    def casting():
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=3)
        return Casting("16-mixed", "cpu", scaler)

    through_fabric(monkeypatch, casting)


def through_fabric(monkeypatch, casting):
    """Let every training go through lightning-fabric, whatever precision it asks for."""
    from lightning_fabric import Fabric

    def made(_):
        return MixedPrecision(Fabric(accelerator="cpu", plugins=[casting()]))

    monkeypatch.setattr("abstain_bench.runs.training.loop.make_precision", made)


def test_in_full_precision_nothing_is_cast_as_lightning_fabric_would(monkeypatch):
    from lightning_fabric.plugins import Precision

    own, losses = trained(epochs=2)
    through_fabric(monkeypatch, Precision)
    theirs, same = trained(epochs=2)
    assert losses == same
    assert torch.equal(state(own), state(theirs))


def resumes(tmp_path, **options):
    whole, losses = trained(epochs=5, **options)
    path = tmp_path / "run.part"

    for stop in (2, 4):

        def kill(epoch, _loss, stop=stop):
            if epoch == stop:
                raise KilledError

        with pytest.raises(KilledError):
            trained(epochs=5, checkpointing=Checkpointing(path, 0.0), on_epoch=kill, **options)
        assert path.is_file()
    kept = load_state(path)["scaling"]
    calls = []
    again, resumed = trained(
        epochs=5,
        checkpointing=Checkpointing(path, 0.0),
        on_epoch=lambda e, _: calls.append(e),
        **options,
    )
    assert calls == [4, 5]
    assert resumed == losses
    assert torch.equal(state(again), state(whole))
    assert not path.exists()
    return kept


@pytest.mark.parametrize("name", ["rank-weighted", "devries", "confidnet"])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_training_resumes_to_the_same_bits(tmp_path, name, precision):
    assert resumes(tmp_path, name=name, precision=precision) == {}


@pytest.mark.parametrize("killed", [False, True])
def test_a_warm_up_that_two_trainings_share_gives_the_bits_of_two(tmp_path, killed):
    start, calls = tmp_path / "both.start", []

    def gambled(reward, checkpointing=None, on_epoch=None):
        # The images have two classes: a larger reward would warn.
        network, objective = fresh("deep-gamblers", reward=reward)
        data = pictures()
        recipe = Recipe(epochs=6, batch_size=16, schedule="cosine")
        options = {"seed": 3, "checkpointing": checkpointing, "on_epoch": on_epoch}
        losses = train(network, data, objective, recipe, **options)
        return state(network), losses

    def told(epoch, _loss):
        calls.append(epoch)
        if killed and epoch == 4:
            raise KilledError

    first, second = (Checkpointing(tmp_path / f"{i}.part", 0.0, start) for i in range(2))
    one = gambled(1.5, first)
    assert len(load_state(start)["losses"]) == 2
    if killed:
        with pytest.raises(KilledError):
            gambled(2.0, second, told)
        killed = False
    two = gambled(2.0, second, told)
    assert calls == [3, 4, 5, 6] or calls == [3, 4, 4, 5, 6]
    for (bits, losses), (alone, own) in ((one, gambled(1.5)), (two, gambled(2.0))):
        assert torch.equal(bits, alone)
        assert losses == own
    assert one[1][2:] != two[1][2:]
    assert start.is_file()


def test_a_branch_on_a_trained_classifier_learns_to_the_bits_of_one_training(tmp_path):
    """Classifier, then branch and fine-tuning in a job of their own, also after a kill."""
    data, recipe = pictures(), Recipe(epochs=3, batch_size=16, schedule="cosine")
    plain, objective = fresh()
    train(plain, data, objective, recipe, seed=4)
    shares, epochs = OBJECTIVES["confidnet"].shares_of_stages(3, {"confidence": 2, "fine-tune": 1})
    longer = replace(recipe, epochs=epochs)

    def begun(first):
        network, objective = fresh("confidnet", seed=1, **shares)
        network.backbone.load_state_dict(first.backbone.state_dict())
        network.head.classifier.load_state_dict(first.head.classifier.state_dict())
        return network, objective

    untrained, _ = fresh()
    whole, objective = begun(untrained)
    losses = train(whole, data, objective, longer, seed=4)
    network, objective = begun(plain)
    calls = []
    options = {
        "seed": 4,
        "n_epochs_done": 3,
        "checkpointing": Checkpointing(tmp_path / "run.part", 0.0),
    }

    def kill(epoch, _loss):
        calls.append(epoch)
        if epoch == 5:
            raise KilledError

    with pytest.raises(KilledError):
        train(network, data, objective, longer, on_epoch=kill, **options)
    network, objective = begun(plain)
    result = train(
        network, data, objective, longer, on_epoch=lambda e, _: calls.append(e), **options
    )
    assert calls == [4, 5, 6] or calls == [4, 5, 5, 6]
    assert result == losses[3:]
    assert torch.equal(state(network), state(whole))
    with pytest.raises(
        InputError, match="`n_epochs_done` must be a whole number from 0 to 5; got 6"
    ):
        train(network, data, objective, longer, n_epochs_done=6)


def test_the_scale_of_gradients_is_resumed_too(tmp_path, half_on_the_cpu):
    kept = resumes(tmp_path, name="cross-entropy")
    # It began far too high, so that first steps were skipped: the state is not the first one.
    assert 0 < kept["scale"] < 2.0**40


@pytest.mark.skipif(not torch.cuda.is_available(), reason="16-mixed needs a CUDA device")
def test_training_in_half_precision_resumes_to_the_same_bits(tmp_path):
    kept = resumes(tmp_path, name="cross-entropy", precision="16-mixed", device="cuda")
    assert kept["scale"] > 0


def test_mixed_precision_computes_the_network_in_16_bits_and_the_loss_in_32():
    calls = []

    class Watch(training.CrossEntropy):
        def _loss(self, output, labels, index):
            calls.append({output.logits.dtype, output.features.dtype})
            return super()._loss(output, labels, index)

    weights = {}
    for precision in ("32-true", "bf16-mixed"):
        network, _ = fresh()
        inside = []
        network.backbone.register_forward_hook(lambda *a, inside=inside: inside.append(a[2].dtype))
        objective = Watch(rng=0)
        train(
            network,
            pictures(),
            objective,
            Recipe(epochs=2, batch_size=16),
            machine=Machine(precision=precision),
        )
        assert set(inside) == {torch.float32 if precision == "32-true" else torch.bfloat16}
        assert {p.dtype for p in network.parameters()} == {torch.float32}
        weights[precision] = state(network)
    assert all(dtypes == {torch.float32} for dtypes in calls)
    gap = (weights["32-true"] - weights["bf16-mixed"]).abs().max()
    assert 0 < gap < 0.05


def test_precisions_that_cannot_be_raise_an_error(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="`precision` must be one of '32-true'"):
        trained(precision="16")
    with pytest.raises(InputError, match="on the CPU use 'bf16-mixed'"):
        trained(precision="16-mixed")
    with pytest.raises(InputError, match="`device` 'meta' cannot be used"):
        trained(device="meta")
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    with pytest.raises(InputError, match=r"pip install lightning-fabric"):
        trained(precision="bf16-mixed")
    assert trained(epochs=1)[1]


def test_nothing_about_a_training_is_read_from_the_environment(monkeypatch, capfd):
    plain = trained(epochs=1)[1]
    for name, value in {
        "LT_PRECISION": "64-true",
        "SLURM_NTASKS": "4",
        "SLURM_JOB_ID": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert trained(epochs=1)[1] == plain
    trained(epochs=1, precision="bf16-mixed")
    assert capfd.readouterr() == ("", "")


def test_the_state_of_another_training_raises_an_error(tmp_path):
    path = tmp_path / "run.part"

    def kill(epoch, _loss):
        if epoch == 3:
            raise KilledError

    with pytest.raises(KilledError):
        trained(checkpointing=Checkpointing(path, 0.0), on_epoch=kill)
    for other in ({"seed": 1}, {"precision": "bf16-mixed"}):
        with pytest.raises(FileFormatError, match="another training"):
            trained(checkpointing=Checkpointing(path, 0.0), **other)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(FileFormatError, match="damaged"):
        trained(checkpointing=Checkpointing(path, 0.0))


class Evil:
    def __reduce__(self):
        return (print, ("run",))


def test_checkpoints_are_never_unpickled(tmp_path, capsys):
    content = io.BytesIO()
    torch.save({"seed": Evil()}, content)
    (tmp_path / "x.pt").write_bytes(content.getvalue())
    with pytest.raises(FileFormatError, match="delete it to train again"):
        load_state(tmp_path / "x.pt")
    assert capsys.readouterr().out == ""


def test_a_loss_that_is_not_finite_stops_the_training():
    with pytest.raises(InputError, match=r"in epoch \d of 4; lower `learning_rate`"):
        trained(learning_rate=1e20)


def test_every_picture_is_learned_from_once_an_epoch():
    calls = []

    class Watch(training.CrossEntropy):
        def _loss(self, output, labels, index):
            calls.append(index.tolist())
            return super()._loss(output, labels, index)

    objective = Watch(rng=0)
    network, _ = fresh()
    train(network, pictures(), objective, Recipe(epochs=2, batch_size=16))
    assert [len(rows) for rows in calls] == [16, 16, 16, 2] * 2
    first, second = (list(chain(*own)) for own in (calls[:4], calls[4:]))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


def test_it_learns():
    network, losses = trained(epochs=15, name="cross-entropy", learning_rate=0.1)
    data = pictures(seed=9)
    shown = Preprocessing.from_training_images(pictures()).prepare(data, seed=0)
    assert losses[-1] < losses[0] / 2
    assert (compute_logits(network, shown).argmax(1) == data.labels).mean() > 0.9


def test_schedules():
    step = Recipe(epochs=90)
    assert [step.learning_rate_at(epoch / 90) for epoch in (0, 29, 30, 60)] == pytest.approx(
        [5e-3, 5e-3, 1e-3, 2e-4]
    )
    cosine = Recipe(schedule="cosine", learning_rate=1.0)
    assert [cosine.learning_rate_at(x) for x in (0, 0.5, 1)] == pytest.approx([1, 0.5, 0])
    assert Recipe(schedule="constant").learning_rate_at(0.9) == 5e-3


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"learning_rate": -1}, {"schedule": "x"}, {"momentum": 2}, {"batch_size": 1.5}],
)
def test_recipes_refuse_invalid_input_raises_an_error(wrong):
    with pytest.raises((InputError, DomainError)):
        Recipe(**wrong)


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_distortion_of_nothing_changes_nothing():
    x = torch.rand(3, 1, 28, 28)
    still = Distortion(rotation=0, scale=0, shear=0, shift=0, contrast=1, noise=0)
    assert torch.allclose(still(x, draws()), x, atol=1e-5)
    assert not torch.allclose(Distortion()(x, draws()), x, atol=0.1)


def test_a_shift_moves_by_that_share_of_the_side():
    x = torch.zeros(500, 1, 21, 21)
    x[:, :, 10, 10] = 1
    moved = Distortion(rotation=0, scale=0, shear=0, shift=0.2, contrast=1, noise=0)(x, draws())
    rows = torch.arange(21.0)
    mass = moved.sum((1, 3))
    center = (mass * rows).sum(1) / mass.sum(1)
    assert 3.9 < (center - 10).abs().max() <= 4.2 + 1e-4


def test_crop_and_flip_only_move_and_mirror():
    x = torch.arange(1.0, 1 + 36).reshape(1, 1, 6, 6).repeat(200, 1, 1, 1)
    out = CropFlip(padding=1)(x, draws())
    padded = torch.nn.functional.pad(x[0, 0], (1,) * 4)
    views = [padded[i : i + 6, j : j + 6] for i in range(3) for j in range(3)]
    views += [view.flip(1) for view in views]
    which = [next(i for i, view in enumerate(views) if torch.equal(one[0], view)) for one in out]
    assert set(which) == set(range(18))


def test_tests_are_varied_once_where_that_is_the_task():
    data = pictures()
    first, second, other = (
        Preprocessing.from_training_images(data, Distortion()).prepare(data, seed=s)
        for s in (0, 0, 1)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    plain = Preprocessing.from_training_images(data, CropFlip()).prepare(data, seed=0)
    assert torch.equal(plain, Preprocessing.from_training_images(data).prepare(data, seed=1))
    assert abs(float(plain.mean())) < 1e-5
    assert float(plain.std()) == pytest.approx(1, abs=1e-3)
    copies = Preprocessing.from_training_images(data, Distortion()).prepare(data, seed=0, copies=2)
    assert torch.equal(copies[: data.n], first)
    assert not torch.equal(copies[data.n :], first)


def test_variations_by_name():
    assert make_variation({}) is None
    assert make_variation({"name": "crop-flip", "padding": 2}) == CropFlip(2)
    with pytest.raises(InputError, match="must be one of 'crop-flip', 'distortion'"):
        make_variation({"name": "x"})
    with pytest.raises(InputError, match="no option 'nose'"):
        make_variation({"name": "distortion", "nose": 1})


def test_a_distortion_of_another_size_samples_the_picture_once():
    x = torch.zeros(1, 1, 48, 48)
    x[..., 12:36, 12:36] = 1
    still = Distortion(rotation=0, scale=0, shear=0, shift=0, contrast=1, noise=0, side=32)
    small = still(x, draws())
    assert small.shape == (1, 1, 32, 32)
    assert small[0, 0, 9:23, 9:23].min() == 1
    assert small.mean() == pytest.approx(x.mean().item(), abs=0.01)


def test_a_background_lifts_black_and_leaves_white():
    options = {"rotation": 0, "scale": 0, "shear": 0, "shift": 0, "contrast": 1, "noise": 0}
    x = torch.zeros(200, 1, 8, 8)
    x[:, :, :4] = 1
    lifted = Distortion(**options, background=0.4)(x, draws())
    levels = lifted[:, 0, 7, 0]
    assert 0 <= levels.min() < 0.05 < 0.35 < levels.max() <= 0.4
    assert torch.all(lifted[:, 0, 0, 0] == 1)
    with pytest.raises(AbstainError, match="`background`"):
        Distortion(background=1.5)


def test_an_exposure_is_spoiled_after_the_variation_of_the_task():
    data = pictures(20)
    inputs = Preprocessing.from_training_images(data, Distortion())
    clean = inputs.prepare_exposure(Exposure("iid", "iid", lambda: data), seed=3)
    assert torch.equal(clean, inputs.prepare(data, seed=3))
    fog = [
        inputs.prepare_exposure(Exposure("fog", "corruption", lambda: data, "fog", s), seed=3)
        for s in (1, 1, 5)
    ]
    assert torch.equal(fog[0], fog[1])
    # The noise of the task is the same under both, so the stronger fog lies farther away.
    near, far = ((f - clean).abs().mean() for f in fog[1:])
    assert 0 < near < far
    pictures_of_task = inputs.variation(
        torch.from_numpy(data.pixels).float() / 255, torch.Generator().manual_seed(3)
    )
    spoiled = corrupt(pictures_of_task.clamp(0, 1).numpy(), "fog", 5, rng=3)
    mean, deviation = inputs.mean[0], inputs.std[0]
    assert torch.allclose(fog[2], (torch.from_numpy(spoiled) - mean) / deviation)


def test_each_step_is_told_with_the_epochs_that_are_done():
    network, objective = fresh()
    calls = []
    train(network, pictures(), objective, Recipe(epochs=2, batch_size=16), on_step=calls.append)
    # Fifty images are four batches.
    assert calls == [(i + 1) / 4 for i in range(8)]
