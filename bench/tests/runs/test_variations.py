"""What FD-Shifts does to images to learn from, each by what it must do to made-up images."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from abstain.errors import DomainError, FileFormatError, InputError  # noqa: E402
from abstain_bench.data import Images  # noqa: E402  after the skip
from abstain_bench.networks import MODELS, Resized, SmallConv, StreetConv  # noqa: E402
from abstain_bench.runs.training import Augmentation, Preprocessing  # noqa: E402
from abstain_bench.runs.training.inputs import make_variation  # noqa: E402


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def noise(n=8, side=32, seed=1):
    return torch.rand(n, 3, side, side, generator=draws(seed))


def test_nothing_is_changed_where_nothing_is_requested():
    pictures = noise()
    assert torch.equal(Augmentation()(pictures, draws()), pictures)
    assert torch.equal(Augmentation(cutout=0).augment_normalized(pictures, draws()), pictures)


def test_half_of_the_pictures_lose_a_square_around_a_random_pixel():
    out = Augmentation(cutout=16).augment_normalized(torch.ones(4000, 3, 32, 32), draws())
    gone = (out[:, 0] == 0).sum((1, 2))
    hit = gone > 0
    assert abs(float(hit.float().mean()) - 0.5) < 4 * np.sqrt(0.25 / 4000)
    # The mean area of a square of 16 that the edges of 32 cut: (12 of 16 on average)^2.
    sides = [min(m + 8, 32) - max(m - 8, 0) for m in range(32)]
    assert float(gone[hit].float().mean()) == pytest.approx(np.mean(sides) ** 2, rel=0.04)
    assert int(gone.max()) == 256
    assert torch.equal(out[:, 0], out[:, 2])


def test_what_is_cut_out_is_the_mean_of_the_training_pictures():
    pixels = np.full((6, 3, 8, 8), 200, np.uint8)
    pixels[:3] = 100
    inputs = Preprocessing.from_training_images(
        Images(pixels, np.arange(6) % 2, ("a", "b")), Augmentation(cutout=6)
    )
    out = inputs.augment(torch.from_numpy(pixels), draws(3))
    assert {round(float(x), 4) for x in out.unique()} == {-1.0, 0.0, 1.0}


def test_pictures_are_turned_about_their_center():
    picture = torch.zeros(1, 1, 33, 33)
    picture[..., 16, 16:] = 1
    out = Augmentation(rotation=90.0)(picture.repeat(200, 1, 1, 1), draws())
    assert float(out[:, 0, 16, 16].min()) > 0.9
    mass = out.sum((1, 2, 3))
    assert float((mass - 17).abs().max()) < 2.5
    # Evenly to either side: the end of the hand is above the middle as often as below.
    rows = torch.arange(33.0)
    heights = (out.sum((1, 3)) * rows).sum(1) / mass - 16
    assert abs(float((heights > 0).float().mean()) - 0.5) < 4 * np.sqrt(0.25 / 200)


def test_parts_of_random_size_are_scaled_and_tests_see_the_center():
    ramp = torch.linspace(0, 1, 64).expand(500, 1, 64, 64)
    own = Augmentation(side=48, area=0.08)
    out = own(ramp, draws())
    assert out.shape == (500, 1, 48, 48)
    width = out[:, 0, 24, -1] - out[:, 0, 24, 0]
    assert 0.15 < float(width.min()) < 0.4
    assert float(width.max()) > 0.9
    assert torch.equal(own.prepare_for_evaluation(ramp), ramp[:, :, 8:56, 8:56])
    whole = Preprocessing((0.0,), (1.0,), own)
    images = Images(np.zeros((2, 1, 64, 64), np.uint8), np.array([0, 1]), ("a", "b"))
    assert whole.prepare(images, seed=0).shape == (2, 1, 48, 48)
    with pytest.raises(InputError, match=r"`variation\.side` must be at most"):
        Augmentation(side=48).prepare_for_evaluation(torch.zeros(1, 1, 32, 32))


def test_brightness_contrast_and_saturation_stay_within_their_factors():
    gray = torch.full((3000, 3, 4, 4), 0.5)
    out = Augmentation(jitter=0.1)(gray, draws())
    # Contrast and saturation do nothing to what is one gray.
    assert float(out.min()) == pytest.approx(0.45, abs=0.001)
    assert float(out.max()) == pytest.approx(0.55, abs=0.001)
    assert float(out.mean()) == pytest.approx(0.5, abs=4 * 0.1 / np.sqrt(12 * 3000))
    pictures = noise(100)
    changed = Augmentation(jitter=0.1)(pictures, draws())
    assert 0.01 < float((changed - pictures).abs().mean()) < 0.1
    assert float(changed.min()) >= 0
    assert float(changed.max()) <= 1


def test_a_variation_is_made_of_plain_values_and_refuses_others():
    result = make_variation({"name": "augmentation", "padding": 4, "mirror": True, "cutout": 16})
    assert result == Augmentation(padding=4, mirror=True, cutout=16)
    with pytest.raises(InputError, match="cutout"):
        Augmentation(cutout=-1)
    with pytest.raises(InputError, match="no option 'cut'"):
        make_variation({"name": "augmentation", "cut": 3})


# ------------------------------------------------------------------------------------- its networks
def test_the_network_for_house_numbers_equals_that_of_the_code():
    backbone = StreetConv(dropout=0.3)
    convolutions = [x for x in backbone.modules() if isinstance(x, torch.nn.Conv2d)]
    assert [x.out_channels for x in convolutions] == [32, 32, 64, 64, 128, 128]
    assert {x.padding_mode for x in convolutions} == {"reflect"}
    assert backbone.hidden.in_features == 2048
    kinds = [type(x).__name__ for x in backbone.stages[0]]
    assert kinds == ["Conv2d", "ReLU", "BatchNorm2d"] * 2 + ["MaxPool2x2"]
    backbone.eval()
    pictures = noise(2)
    own = backbone.after_dropout(backbone.before_dropout(pictures))
    assert torch.equal(backbone.features(pictures), own)
    with pytest.raises(DomainError):
        StreetConv(dropout=1.0)


def test_vgg13_has_a_hidden_layer_only_with_dropout():
    make = MODELS["vgg13-fd-shifts"].make
    assert make((3, 32, 32), seed=0).hidden is None
    assert make((3, 32, 32), seed=0, dropout=0.5).hidden.out_features == 512


def test_a_network_sees_pictures_at_another_side():
    model = MODELS["small-conv"].make((3, 32, 32), seed=0, side=48)
    assert isinstance(model, Resized)
    calls = []
    model.inner.stages[0].register_forward_pre_hook(lambda _, given: calls.append(given[0].shape))
    model.eval()
    assert model.features(noise(2)).shape == (2, 64)
    assert model.features(noise(2, side=64)).shape == (2, 64)
    assert calls == [(2, 3, 48, 48)] * 2
    pictures = noise(2)
    torch.testing.assert_close(
        model.after_dropout(model.before_dropout(pictures)), model.features(pictures)
    )
    same = Resized(SmallConv(3), 32).eval()
    assert torch.equal(same.features(pictures), same.inner.features(pictures))
    with pytest.raises(InputError, match="takes images"):
        MODELS["vgg13"].make((3, 32, 32), seed=0, side=64)


def test_weights_are_read_behind_a_scaling_and_wrong_files_raise_an_error(tmp_path):
    own = MODELS["small-conv"].make((3, 32, 32), seed=3)
    torch.save(own.state_dict(), tmp_path / "own.pt")
    read = MODELS["small-conv"].make((3, 32, 32), seed=0, side=40, weights=tmp_path / "own.pt")
    assert torch.equal(read.inner.stages[0][0].weight, own.stages[0][0].weight)
    torch.save({"conv.weight": torch.zeros(2)}, tmp_path / "other.pt")
    with pytest.raises(FileFormatError, match="weights of another model"):
        MODELS["small-conv"].make((3, 32, 32), seed=0, weights=tmp_path / "other.pt")


def test_many_pictures_are_scaled_as_they_are_requested():
    images = Images(
        (np.arange(5 * 3 * 36) % 251).reshape(5, 3, 6, 6).astype(np.uint8),
        np.array([0, 1, 0, 1, 1]),
        ("a", "b"),
    )
    inputs = Preprocessing.from_training_images(images, Augmentation(side=4, area=0.5))
    whole, lazy = inputs.prepare(images, seed=0), inputs.prepare_lazily(images)
    assert (lazy.ndim, len(lazy), tuple(lazy.shape)) == (4, 5, tuple(whole.shape))
    assert torch.equal(lazy[1:3], whole[1:3])
    assert torch.equal(lazy[4], whole[4])
    assert lazy.nbytes == images.pixels.nbytes
