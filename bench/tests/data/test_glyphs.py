"""The embedded images: glyphs of every typeface, textures, and what a classifier is exposed to."""

from importlib import resources

import numpy as np
import pytest

from abstain.errors import AbstainError, DomainError, InputError
from abstain_bench.data import (
    LETTERS,
    LOOK_ALIKES,
    Exposure,
    Images,
    glyph_families,
    glyphs,
    textures,
)
from abstain_bench.data.embedded import _TEXTURES

STYLES = ("mono", "pixel", "script", "blackletter")


def test_the_typefaces():
    families = glyph_families()
    roles = [family.role for family in families]
    assert (roles.count("train"), roles.count("unseen")) == (20, 16)
    assert {f.style for f in families if f.role == "style"} == set(STYLES)
    # Nothing that is learned from looks like a style that is tested.
    assert {f.style for f in families if f.role != "style"} == {"sans", "serif"}
    assert len({family.name for family in families}) == len(families)
    assert all(family.license and family.package.startswith("fonts-") for family in families)
    masters = resources.files("abstain_bench.data") / "glyph_masters.npz"
    assert len(masters.read_bytes()) < 600_000


@pytest.mark.parametrize("role", ["train", "unseen", "style"])
def test_every_typeface_has_every_letter(role):
    data = glyphs(role)
    count = sum(family.role == role for family in glyph_families())
    assert data.n == 26 * count
    assert np.bincount(data.labels).tolist() == [count] * 26
    assert data.classes == tuple(LETTERS)
    # Drawn, not empty, and within the room that distortions need.
    ink = data.pixels[:, 0] > 64
    assert ink.any(axis=(1, 2)).all()
    assert not ink[:, :2].any()
    assert not ink[:, :, :2].any()


def test_letters_differ_and_typefaces_too():
    data = glyphs()
    assert len({picture.tobytes() for picture in data.pixels}) > 0.99 * data.n
    assert len(set(data.source_indices.tolist())) == data.n
    near = glyphs("unseen")
    assert set(near.source_indices.tolist()).isdisjoint(data.source_indices.tolist())


def test_a_style_is_part_of_its_role():
    assert sum(glyphs("style", style=style).n for style in STYLES) == glyphs("style").n
    with pytest.raises(AbstainError, match="style"):
        glyphs("train", style="pixel")


def test_characters_that_are_no_letters_have_no_class():
    data = glyphs("train", characters="A7?", copies=3)
    assert data.n == 20 * 3 * 3
    assert sorted(set(data.labels.tolist())) == [-1, 0]
    # Copies of a master count as one.
    assert len(set(data.source_indices.tolist())) == 60
    assert set(LOOK_ALIKES.values()) <= set(LETTERS)
    assert not set(LOOK_ALIKES) & set(LETTERS)
    # A character that a typeface lacks is left out.
    assert glyphs("unseen", characters="#").n == 15


def test_what_is_not_there_is_said():
    with pytest.raises(InputError, match=r"`characters` must be some of .*; got ß"):
        glyphs(characters="Aß")
    with pytest.raises(InputError, match="got none"):
        glyphs(characters="")
    with pytest.raises(AbstainError, match="role"):
        glyphs("test")


def test_masters_cannot_be_changed_by_accident():
    before = glyphs().pixels.copy()
    glyphs().pixels[:] = 0
    assert np.array_equal(glyphs().pixels, before)


def test_textures():
    data = textures(2 * len(_TEXTURES), rng=4)
    assert np.array_equal(data.pixels, textures(2 * len(_TEXTURES), rng=4).pixels)
    assert not np.array_equal(data.pixels, textures(2 * len(_TEXTURES), rng=5).pixels)
    assert set(data.labels.tolist()) == {-1}
    # None is blank, no two are alike.
    assert data.pixels.std(axis=(1, 2, 3)).min() > 10
    assert len({picture.tobytes() for picture in data.pixels}) == data.n
    color = textures(7, side=32, channels=3, classes=("a", "b"))
    assert (color.shape, color.classes) == ((3, 32, 32), ("a", "b"))


def test_labels_of_no_class():
    pixels = np.zeros((2, 1, 8, 8), np.uint8)
    assert Images(pixels, np.array([-1, 0]), ("a",)).subset([0]).labels.tolist() == [-1]
    with pytest.raises(DomainError, match="or -1"):
        Images(pixels, np.array([-2, 0]), ("a",))


def test_exposures():
    foggy = Exposure("fog", "corruption", glyphs, corruption="fog", severity=3)
    assert foggy.title == "fog 3"
    with pytest.raises(InputError, match="exactly when"):
        Exposure("fog", "corruption", glyphs)
    with pytest.raises(InputError, match="exactly when"):
        Exposure("fog", "iid", glyphs, corruption="fog", severity=1)
    with pytest.raises(InputError, match="exactly when"):
        Exposure("fog", "corruption", glyphs, corruption="fog")
    with pytest.raises(AbstainError, match="kind"):
        Exposure("fog", "weather", glyphs)
