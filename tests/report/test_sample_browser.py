"""The samples of a page: their pictures, and what they and the thresholds are chosen by."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

import abstain as ab
from abstain.errors import InputError
from abstain.report import SampleImages, html_report, images, sample_images

N = 60
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, N)
ANSWERS = np.where(RNG.random(N) < 0.4, (LABELS + 1) % 3, LABELS)
CONFIDENCE = RNG.permutation(N) / N
GROUP = np.array(["<b>north</b>", "south", "west"])[np.arange(N) % 3]


def evaluated(names, **more):
    return ab.evaluate(
        ab.Predictions(prediction=ANSWERS, labels=LABELS, confidence=CONFIDENCE, ids=names, **more),
        metrics=["augrc"],
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with a picture for each sample, of its own gray."""
    home = tmp_path / "data"
    (home / "img").mkdir(parents=True)
    for i in range(N):
        Image.new("L", (40, 30), 4 * i).save(home / "img" / f"{i}.png")
    return home


def pixels(source):
    kind, _, data = source.partition(",")
    assert kind == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


NAMES = [f"img/{i}.png" for i in range(N)]


# ------------------------------------------------------------------------------------ pictures
def test_failures_are_seen(folder):
    found = evaluated(NAMES)
    made = sample_images(found, folder)
    assert made.reason == ""
    case = found.curves[0]
    wanted = {sample.id for sample in (*case.overconfident, *case.underconfident)}
    assert set(made.sources) == wanted
    for name, source in made.sources.items():
        assert pixels(source).convert("L").getpixel((3, 3)) == 4 * NAMES.index(name)
    page = html_report(found, images=made)
    alts = re.findall(
        r'<img src="data:image/png;base64,[^"]+" alt="Image of sample ([^"]+)">', page
    )
    assert set(alts) == wanted


def test_pictures_are_small_upright_and_without_what_else_their_files_say(tmp_path):
    big = Image.new("RGB", (600, 300), "white")
    big.paste("black", (0, 0, 300, 300))
    about = Image.Exif()
    about[0x0112], about[0x010E] = 6, "at home"  # turned by 90 degrees; a description
    big.save(tmp_path / "a.jpg", exif=about)
    found = ab.evaluate(ab.Predictions(confidence=[0.9, 0.1], loss=[1, 0], ids=["a.jpg", "b"]))
    (source,) = sample_images(found, tmp_path).sources.values()
    seen = pixels(source)
    assert seen.size == (48, 96)
    assert seen.convert("L").getpixel((24, 5)) < 40 < 200 < seen.convert("L").getpixel((24, 90))
    assert b"at home" not in base64.b64decode(source.partition(",")[2])


def outside(home):
    Image.new("L", (4, 4)).save(home.parent / "secret.png")
    return "../secret.png"


def linked(home):
    outside(home)
    (home / "link.png").symlink_to(home.parent / "secret.png")
    return "link.png"


def absolute(home):
    outside(home)
    return str(home.parent / "secret.png")


def text(home):
    (home / "text.png").write_text("<script>")
    return "text.png"


def cut(home):
    half = (home / "img" / "1.png").read_bytes()[:40]
    (home / "cut.png").write_bytes(half)
    return "cut.png"


def vector(home):
    (home / "x.png").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    return "x.png"


REFUSED = {
    outside: "is not in",
    linked: "is not in",
    absolute: "is not in",
    text: "cannot be read as an image",
    cut: "cannot be read as an image",
    vector: "cannot be read as an image",
    lambda home: "none.png": "is not in",
    lambda home: "nul\0.png": "is not in",
    lambda home: "img/": "",
}


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_other_files_are_left_out_and_the_page_says_so(make, folder):
    name = make(folder)
    found = ab.evaluate(ab.Predictions(confidence=[0.9, 0.1], loss=[1, 0], ids=[name, "b"]))
    made = sample_images(found, folder)
    assert made.sources == {}
    assert REFUSED[make] in made.reason
    if made.reason:
        assert "1 of 1 samples have no image" in html_report(found, images=made)


def test_a_picture_of_too_many_pixels_is_left_out(folder, monkeypatch):
    monkeypatch.setattr(images, "_MAX_PIXELS", 1000)
    made = sample_images(evaluated(NAMES), folder)
    assert made.sources == {}
    assert "has more than 0 megapixels" in made.reason


def test_a_picture_of_88_megapixels_is_not_decoded(tmp_path):
    # Two such pictures took 1.1 GB; this one takes 11 kB as a file.
    Image.new("1", (9380, 9380)).save(tmp_path / "large.png")
    found = ab.evaluate(ab.Predictions(confidence=[0.9, 0.1], loss=[1, 0], ids=["large.png", "b"]))
    made = sample_images(found, tmp_path)
    assert made.sources == {}
    assert "'large.png' has more than 25 megapixels" in made.reason


def test_all_together_fit_a_page(folder, monkeypatch):
    whole = sample_images(evaluated(NAMES), folder).sources
    monkeypatch.setattr(images, "MAX_TOTAL_BYTES", 1000)
    made = sample_images(evaluated(NAMES), folder)
    assert 0 < sum(map(len, made.sources.values())) <= 1000
    assert f"{len(whole) - len(made.sources)} of {len(whole)} samples have no" in made.reason


def test_names_that_are_no_pictures_say_nothing(folder):
    assert sample_images(evaluated([f"row {i}" for i in range(N)]), folder) == SampleImages()
    with pytest.raises(InputError, match="`evaluation` must be what `evaluate` returned"):
        sample_images({}, folder)


# ------------------------------------------------------------------------------------ choices
def test_samples_are_chosen_by_class():
    page = html_report(evaluated(NAMES))
    for role, names in (("label", "012"), ("prediction", "012")):
        (options,) = re.findall(rf'<select data-choice="{role}">(.*?)</select>', page, re.DOTALL)
        shown = re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)</option>', options)
        assert shown[0] == ("", "all")
        assert sorted(name for _, name in shown[1:]) == list(names)
        keys = {name: key for key, name in shown}
        rows = re.findall(rf'<tr[^>]*data-in-{role}="(\d+)"[^>]*>(.*?)</tr>', page, re.DOTALL)
        column = 0 if role == "label" else 1
        for key, row in rows:
            cells = re.findall(r"<td>([^<]*)</td>", row)
            assert keys[cells[column]] == key


def test_without_classes_there_is_nothing_to_choose():
    found = ab.evaluate(ab.Predictions(confidence=CONFIDENCE, loss=ANSWERS != LABELS))
    assert 'data-choice="label"' not in html_report(found)


# ------------------------------------------------------------------------------------ groups
def test_groups_add_up_at_every_threshold():
    found = evaluated(NAMES, group=GROUP)
    page = html_report(found)
    assert 'class="groups-at-threshold"' in page
    assert "<b>north</b>" not in page
    (text,) = re.findall(
        r'<script type="application/json" id="abstain-data">(.*?)</script>', page, re.DOTALL
    )
    (case,) = json.loads(text)["cases"]
    assert [group["name"] for group in case["groups"]] == sorted({*GROUP})
    for count in ("accepted", "failures"):
        total = np.sum([group[count] for group in case["groups"]], axis=0)
        np.testing.assert_allclose(total, case["curve"][count])
    for i, threshold in enumerate(case["curve"]["threshold"]):
        for group in case["groups"]:
            kept = (group["name"] == GROUP) & (threshold - 1e-8 <= CONFIDENCE)
            assert group["accepted"][i] == kept.sum()
            assert group["failures"][i] == (ANSWERS != LABELS)[kept].sum()


def test_many_groups_are_the_largest():
    sizes = np.repeat(np.arange(30), np.arange(1, 31))
    right = RNG.random(sizes.size) < 0.7
    found = ab.evaluate(ab.Predictions(confidence=RNG.random(sizes.size), loss=~right, group=sizes))
    assert list(found.curves[0].group_curves) == [str(i) for i in range(18, 30)]


def test_without_groups_there_is_no_table_of_them():
    assert 'class="groups-at-threshold"' not in html_report(evaluated(NAMES))
