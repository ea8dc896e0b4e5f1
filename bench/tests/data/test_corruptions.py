"""Corruptions: each grows with its severity, is drawn from its seed alone, and refuses nonsense."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import uniform_filter

from abstain._foundation.lazy_imports import is_installed
from abstain.errors import DomainError, InputError, ShapeError, UnknownNameError
from abstain_bench.data import glyphs
from abstain_bench.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt

PAGE = Path(__file__).resolve().parents[3] / "docs" / "corruptions.md"

THE_FIFTEEN = {
    "noise": ["gaussian-noise", "shot-noise", "impulse-noise"],
    "blur": ["defocus-blur", "glass-blur", "motion-blur", "zoom-blur"],
    "weather": ["snow", "frost", "fog"],
    "digital": ["brightness", "contrast", "elastic-transform", "pixelate", "jpeg"],
}
#: These draw nothing.
FIXED = {"defocus-blur", "zoom-blur", "brightness", "contrast", "pixelate", "jpeg"}

needs_pillow = pytest.mark.skipif(not is_installed("PIL"), reason="needs Pillow")
every = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs_pillow if name == "jpeg" else ()) for name in CORRUPTIONS],
)


@pytest.fixture(scope="module")
def letters():
    """Letters in all typefaces to learn from, white on black, 32 x 32: a mean of the masters."""
    finer = glyphs().pixels[::3].repeat(2, axis=2).repeat(2, axis=3) / 255
    small = finer.reshape(-1, 1, 32, 3, 32, 3).mean(axis=(3, 5))
    return read_only(small)


@pytest.fixture(scope="module")
def photographs():
    """Parts of the photographs of scikit-learn, 32 x 32, in color."""
    pytest.importorskip("PIL")
    from sklearn.datasets import load_sample_images

    parts = [
        picture[i : i + 64, j : j + 64].reshape(32, 2, 32, 2, 3).mean(axis=(1, 3))
        for picture in load_sample_images().images
        for i in range(0, 360, 64)
        for j in range(0, 570, 64)
    ]
    return read_only(np.stack(parts).transpose(0, 3, 1, 2) / 255)


def read_only(pictures):
    out = pictures.astype(np.float32)
    out.flags.writeable = False
    return out


def some(n=5, channels=3, height=32, width=32):
    """Smooth random images between nearly black and nearly white."""
    draws = np.random.default_rng(7)
    waves = np.cumsum(draws.normal(size=(n, channels, height, width)), axis=3)
    return read_only(0.02 + 0.96 / (1 + np.exp(-waves / 3)))


def dissimilarity(one, other):
    """1 - SSIM of the gray images, with windows of 7 x 7: the mean over all places."""
    a, b = (x.mean(axis=1, dtype=np.float64) for x in (one, other))

    def mean(x):
        return uniform_filter(x, (0, 7, 7))

    ma, mb = mean(a), mean(b)
    va, vb, both = mean(a * a) - ma**2, mean(b * b) - mb**2, mean(a * b) - ma * mb
    light = (2 * ma * mb + 1e-4) / (ma**2 + mb**2 + 1e-4)
    return 1 - float(np.mean(light * (2 * both + 9e-4) / (va + vb + 9e-4)))


def test_the_catalogue_has_the_fifteen_in_their_groups():
    groups = {group: [] for group in THE_FIFTEEN}
    for entry in CORRUPTIONS.values():
        groups[entry.group].append(entry.name)
        assert entry.constants
        assert {len(values) for values in entry.constants.values()} == {SEVERITIES}
        assert entry.meaning.endswith(".")
    assert groups == THE_FIFTEEN


@every
@pytest.mark.parametrize("kind", ["letters", "photographs"])
def test_each_severity_changes_pictures_more(name, kind, request):
    clean = request.getfixturevalue(kind)
    spoiled = [corrupt(clean, name, severity) for severity in range(1, SEVERITIES + 1)]
    change = [float(np.abs(x - clean).mean()) for x in spoiled]
    structure = [dissimilarity(x, clean) for x in spoiled]
    assert all(np.diff([0, *change]) > 0), change
    assert all(np.diff([0, *structure]) > 0), structure
    # From a little to a lot.
    assert change[0] < 0.05
    assert change[-1] > 0.02
    assert structure[-1] > max(0.15, 1.3 * structure[0])


@every
def test_letters_change_on_black_and_on_white(name, letters):
    for clean in (letters[::6], 1 - letters[::6]):
        weak, strong = (np.abs(corrupt(clean, name, s) - clean) for s in (1, 5))
        # By more than the rounding to bytes hides.
        assert weak.max(axis=(1, 2, 3)).min() > 1 / 255
        assert strong.max(axis=(1, 2, 3)).min() > 0.15


@every
@pytest.mark.parametrize(
    ("channels", "height", "width"), [(1, 8, 8), (3, 8, 8), (3, 33, 47), (1, 28, 9)]
)
def test_any_size_in_one_or_three_channels(name, channels, height, width):
    clean = some(3, channels, height, width)
    before = clean.copy()
    for severity in (1, 5):
        out = corrupt(clean, name, severity)
        assert out.shape == clean.shape
        assert out.dtype == np.float32
        assert 0 <= out.min() <= out.max() <= 1
        assert (out != clean).any()
    assert (out != clean).any(axis=(1, 2, 3)).all()
    assert (clean == before).all()


@every
def test_any_float_gives_the_same_kind_of_picture(name):
    clean = some(2)
    expected = corrupt(clean, name, 3)
    assert (corrupt(clean.astype(np.float64), name, 3) == expected).all()
    turned = np.ascontiguousarray(clean.transpose(2, 3, 1, 0)).transpose(3, 2, 0, 1)
    assert (corrupt(turned, name, 3) == expected).all()


@every
def test_a_seed_draws_the_same_and_another_seed_does_not(name):
    clean = some(4)
    first, second, other = (corrupt(clean, name, 3, rng=seed) for seed in (5, 5, 6))
    assert (first == second).all()
    assert (first == other).all() == (name in FIXED)
    # Equal images of a batch get draws of their own.
    twins = corrupt(clean[[0, 0]], name, 3)
    assert (twins[0] == twins[1]).all() == (name in FIXED)


@every
def test_what_a_picture_gets_depends_on_its_position_only(name):
    clean = some(150)
    whole = corrupt(clean, name, 4)
    for count in (1, 3, 70, 149):
        assert (corrupt(clean[:count], name, 4) == whole[:count]).all()
    # Batches one after the other from one generator are as one batch.
    draws = np.random.default_rng(0)
    parts = [corrupt(part, name, 4, rng=draws) for part in (clean[:7], clean[7:80], clean[80:])]
    assert (np.concatenate(parts) == whole).all()


def middle(side=32, channels=1):
    out = np.zeros((1, channels, side, side), np.float32)
    out[..., side // 2, side // 2] = 1
    return out


def test_noise_has_the_deviation_it_says():
    gray = np.full((60, 1, 32, 32), 0.5, np.float32)
    for severity, deviation in enumerate(CORRUPTIONS["gaussian-noise"].constants["deviation"], 1):
        if deviation < 0.2:  # else values are clipped
            result = corrupt(gray, "gaussian-noise", severity) - gray
            assert abs(result.std() / deviation - 1) < 0.02
    photons = CORRUPTIONS["shot-noise"].constants["photons"][0]
    result = corrupt(gray, "shot-noise", 1)
    # Counts of (0.5 + 0.1) times the photons, whose variance is their mean.
    assert abs(result.std() / np.sqrt(0.6 / photons) - 1) < 0.02
    assert abs(result.mean() - 0.5) < 0.005
    share = CORRUPTIONS["impulse-noise"].constants["share"][4]
    result = corrupt(gray, "impulse-noise", 5)
    assert abs((result == 0).mean() - share / 2) < 0.005
    assert abs((result == 1).mean() - share / 2) < 0.005


@pytest.mark.parametrize("name", ["defocus-blur", "motion-blur", "glass-blur", "zoom-blur"])
def test_blurs_keep_even_pictures_and_light(name):
    even = np.full((2, 3, 32, 32), 0.3, np.float32)
    assert np.allclose(corrupt(even, name, 5), 0.3, atol=1e-5)
    if name in {"defocus-blur", "motion-blur"}:
        assert abs(corrupt(middle(), name, 5).sum() - 1) < 1e-4


def test_defocus_is_a_disk_and_motion_a_line():
    rows, columns = np.indices((32, 32)) - 16
    disk = corrupt(middle(), "defocus-blur", 5)[0, 0]
    radius = CORRUPTIONS["defocus-blur"].constants["radius"][4]
    # A disk has half its radius squared as its second moment; reading between pixels adds a little.
    assert abs(((rows**2 + columns**2) * disk).sum() - radius**2 / 2) < 0.5
    assert np.allclose(disk[1:, 1:], disk[1:, 1:].T, atol=1e-6)
    length = CORRUPTIONS["motion-blur"].constants["length"][4]
    for line in corrupt(np.repeat(middle(), 8, axis=0), "motion-blur", 5)[:, 0]:
        cross = (rows * columns * line).sum()
        own = [[(rows**2 * line).sum(), cross], [cross, (columns**2 * line).sum()]]
        thin, long = np.linalg.eigvalsh(own)
        assert thin < 0.35
        assert abs(long - length**2 / 12) < 1.0


def test_lengths_grow_with_the_side():
    small, large = some(4, 1, 16, 16), some(4, 1, 16, 16).repeat(4, axis=2).repeat(4, axis=3)
    for name in ("defocus-blur", "zoom-blur"):
        again = corrupt(large, name, 5).reshape(4, 1, 16, 4, 16, 4).mean(axis=(3, 5))
        assert np.abs(again - corrupt(small, name, 5)).mean() < 0.03


def test_brightness_keeps_hue_and_contrast_the_mean():
    clean = some()
    lit = corrupt(clean, "brightness", 2)
    added = CORRUPTIONS["brightness"].constants["added"][1]
    assert np.allclose(lit.max(axis=1), np.minimum(clean.max(axis=1) + added, 1), atol=1e-6)
    share = [x / x.max(axis=1, keepdims=True) for x in (clean, lit)]
    assert np.allclose(*share, atol=1e-5)
    flat = corrupt(clean, "contrast", 5)
    factor = CORRUPTIONS["contrast"].constants["factor"][4]
    assert np.allclose(flat.mean(axis=(2, 3)), clean.mean(axis=(2, 3)), atol=1e-5)
    assert np.allclose(flat.std(axis=(2, 3)), factor * clean.std(axis=(2, 3)), atol=1e-5)


def test_pixelate_has_few_levels_a_side():
    for severity, own in enumerate(CORRUPTIONS["pixelate"].constants["share"], 1):
        out = corrupt(some(1, 1), "pixelate", severity)[0, 0]
        for axis in (0, 1):
            steps = np.abs(np.diff(out, axis=axis)).max(axis=1 - axis)
            assert (steps > 1e-4).sum() == round(32 * own) - 1
    assert abs(out.mean() - some(1, 1).mean()) < 0.01


def test_the_same_seed_hits_the_same_pixels_at_every_severity():
    gray = np.full((2, 1, 32, 32), 0.5, np.float32)
    weak, strong = (corrupt(gray, "impulse-noise", s) for s in (2, 4))
    assert (strong[weak != 0.5] == weak[weak != 0.5]).all()


def test_the_sheet_of_crystals_goes_round_and_cannot_be_written_to():
    from abstain_bench.data.corruptions.catalogue import SIDE, frost_texture

    ice = frost_texture()
    assert ice.shape == (SIDE, SIDE)
    assert 0 <= ice.min() < 0.1
    assert 0.7 < ice.max() <= 1
    inside = np.abs(np.diff(ice, axis=0)).mean()
    assert np.abs(ice[0] - ice[-1]).mean() < 1.3 * inside
    with pytest.raises(ValueError, match="read-only"):
        ice[0, 0] = 1


def test_names_and_severities_raise_an_error_in_plain_words():
    with pytest.raises(UnknownNameError, match=r"'gausian-noise'\. Did you mean 'gaussian-noise'"):
        corrupt(some(), "gausian-noise", 1)
    for severity in (0, 6, 2.0, True, "3"):
        with pytest.raises(InputError, match=r"`severity` must be an integer"):
            corrupt(some(), "fog", severity)


@pytest.mark.parametrize(
    ("pictures", "error", "said"),
    [
        (np.zeros((32, 32), np.float32), ShapeError, r"axes \(n, channels, height, width\)"),
        (np.zeros((0, 1, 32, 32), np.float32), ShapeError, r"got shape \(0, 1, 32, 32\)"),
        (np.zeros((4, 32, 32, 3), np.float32), ShapeError, "1 or 3 channels, on the second axis"),
        (np.zeros((4, 1, 7, 32), np.float32), ShapeError, "at least 8 pixels"),
        (np.zeros((4, 1, 8, 8), np.uint8), DomainError, "uint8. Divide bytes by 255"),
        (np.full((4, 1, 8, 8), 1.5), DomainError, r"lie in \[0, 1\]; got 1.5 at index \(0, 0"),
        (np.full((4, 1, 8, 8), np.nan), DomainError, "must be finite"),
    ],
)
def test_pictures_that_cannot_be_raise_an_error(pictures, error, said):
    with pytest.raises(error, match=said):
        corrupt(pictures, "fog", 1)


def test_without_pillow_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"'jpeg' needs Pillow: pip install Pillow"):
        corrupt(some(), "jpeg", 1)


def test_the_page_has_the_constants_of_the_catalogue():
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", text, re.MULTILINE))
    assert list(rows) == list(CORRUPTIONS)
    for entry in CORRUPTIONS.values():
        for values in entry.constants.values():
            assert ", ".join(f"{value:g}" for value in values) in rows[entry.name]
