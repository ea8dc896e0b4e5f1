"""Property tests of every registered fitted score."""

import dataclasses
from contextlib import nullcontext

import numpy as np
import pytest
from tests.confidence.fitted_cases import (
    IDS,
    OPTIONS,
    TRAIN,
    D,
    data,
    fitted,
    options_of,
    states,
    variants,
)

from abstain.confidence import (
    FITTED,
    SCORES,
    FitNeed,
    FittedScore,
    ShapedActivations,
    StoredPatterns,
    fit,
    from_arrays,
    score,
)
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions, softmax

NEW = data(50, 2)
CASES = [pytest.param(i, name, options, id=IDS[i]) for i, (name, options) in enumerate(variants())]
every = pytest.mark.parametrize(("i", "name", "options"), CASES)


def test_the_catalogue_says_everything():
    for entry in FITTED.values():
        assert entry.title
        assert entry.meaning
        assert entry.source
        assert entry.state.kind == entry.name
        assert issubclass(entry.state, FittedScore)
        assert FitNeed.LABELS not in entry.to_score
        assert FitNeed.OUTCOMES not in entry.to_score
        assert set(entry.required) <= set(OPTIONS)
        assert not set(entry.required) & set(entry.options)


@every
def test_scores_are_finite_float64_of_their_name(i, name, options):
    state = states()[i]
    result = score(state, NEW)
    assert result.name == state.name
    assert result.values.shape == (50,)
    assert result.values.dtype == np.float64
    assert np.isfinite(result.values).all()
    assert len(np.unique(result.values)) > 25
    if result.probability is not None:
        assert ((result.probability >= 0) & (result.probability <= 1)).all()


@every
def test_no_label_is_looked_at(i, name, options):
    state = states()[i]
    blind = Predictions(features=NEW.features, logits=NEW.logits, loss=np.zeros(50))
    turned = Predictions(features=NEW.features, logits=NEW.logits, labels=(NEW.labels + 1) % 3)
    for other in (blind, turned):
        np.testing.assert_array_equal(score(state, other).values, score(state, NEW).values)


@every
def test_the_order_of_the_training_samples_is_nothing(i, name, options):
    order = np.random.default_rng(3).permutation(TRAIN.n)
    again = fitted(name, options, TRAIN.subset(order))
    assert again.name == states()[i].name
    np.testing.assert_allclose(
        score(again, NEW).values, score(states()[i], NEW).values, rtol=1e-9, atol=1e-9
    )


@every
def test_a_part_of_the_samples_scores_the_same(i, name, options):
    rows = [3, 41, 7, 7]
    part = score(states()[i], NEW.subset(rows)).values
    np.testing.assert_allclose(part, score(states()[i], NEW).values[rows], rtol=1e-10, atol=1e-10)


@every
def test_blocks_change_nothing(i, name, options, monkeypatch):
    whole = score(states()[i], NEW).values
    monkeypatch.setattr(softmax, "BLOCK_ENTRIES", 40)
    np.testing.assert_allclose(score(states()[i], NEW).values, whole, rtol=1e-10, atol=1e-10)


@every
def test_a_state_is_frozen_and_does_not_hold_the_callers_arrays(i, name, options):
    state = states()[i]
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.name = "other"
    for value in state.to_arrays()[1].values():
        assert not value.flags.writeable
        assert not np.shares_memory(value, TRAIN.features)
        assert not np.shares_memory(value, TRAIN.logits)


@every
def test_taking_apart_and_putting_together(i, name, options):
    state = states()[i]
    again = from_arrays(*state.to_arrays())
    assert type(again) is type(state)
    assert again.name == state.name
    np.testing.assert_array_equal(score(again, NEW).values, score(state, NEW).values)


def added_later(state):
    """Fields that files of earlier versions lack: what they say without them is their default."""
    fields = dataclasses.fields(state)
    return {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}


@every
def test_files_of_earlier_versions_are_read(i, name, options):
    state = states()[i]
    plain, arrays = state.to_arrays()
    earlier = {field: value for field, value in plain.items() if field not in added_later(state)}
    again = from_arrays(earlier, arrays)
    usual = added_later(state).items()
    assert all(getattr(again, field) == value for field, value in usual)


@every
def test_every_field_is_checked(i, name, options):
    state = states()[i]
    plain, arrays = state.to_arrays()
    for field in (*plain, *arrays):
        if "parts." in field or field in added_later(state):
            continue
        without = ({k: v for k, v in held.items() if k != field} for held in (plain, arrays))
        with pytest.raises(InputError, match=f"`{field}`"):
            from_arrays(*without)
    for field in plain:
        with pytest.raises(InputError, match=f"`{field}`"):
            from_arrays({**plain, field: {"no": "thing"}}, arrays)
    for field, value in arrays.items():
        bare = field.rpartition(".")[2]
        for wrong in (value[:0], np.full_like(value, np.nan), value.astype(str)):
            with pytest.raises(InputError, match=f"`{bare}`"):
                from_arrays(plain, {**arrays, field: wrong})
    with pytest.raises(InputError, match="`new` is not a field"):
        from_arrays({**plain, "new": 1}, arrays)
    with pytest.raises(InputError, match=r"`parts\.9\.x` (is not a field|belongs to no part)"):
        from_arrays(plain, {**arrays, "parts.9.x": np.ones(2)})


@every
def test_renaming(i, name, options):
    renamed = states()[i].renamed("mine")
    assert score(renamed, NEW).name == "mine"
    np.testing.assert_array_equal(score(renamed, NEW).values, score(states()[i], NEW).values)
    with pytest.raises(InputError, match="`name` must be a text"):
        renamed.renamed("")


@every
def test_a_temperature_beside_a_state_raises_an_error(i, name, options):
    with pytest.raises(InputError, match="has no option `temperature`; drop it"):
        score(states()[i], NEW, temperature=2.0)


@every
def test_what_is_missing_is_said(i, name, options):
    entry, bare = FITTED[name], Predictions(prediction=[0, 1], labels=[0, 1])
    if entry.to_fit:
        with pytest.raises(MissingInputError, match="needs"):
            fit(name, bare, **options_of(name, options))
    with pytest.raises(MissingInputError, match="needs"):
        score(states()[i], bare)


@pytest.mark.parametrize("name", [n for n, k in FITTED.items() if FitNeed.FEATURES in k.to_score])
def test_other_features_and_classes_raise_an_error(name):
    state = fitted(name, {})
    narrow = Predictions(features=NEW.features[:, :2], logits=NEW.logits, labels=NEW.labels)
    with pytest.raises(InputError, match=f"must have the {D} columns that '{name}' was fitted on"):
        score(state, narrow)
    # Only neighbors know nothing of classes.
    if name == "knn":
        return
    named = Predictions(
        features=NEW.features, logits=NEW.logits, labels=["a"] * 50, classes=["a", "b", "c"]
    )
    with pytest.raises(InputError, match=r"fitted on other classes .*'a' is new"):
        score(state, named)
    turned = Predictions(
        features=NEW.features, logits=NEW.logits, labels=NEW.labels, classes=[2, 1, 0]
    )
    with pytest.raises(InputError, match="another order"):
        score(state, turned)


@every
def test_features_beyond_all_numbers_raise_a_readable_error(i, name, options):
    if FitNeed.FEATURES not in FITTED[name].to_score:
        return
    far = Predictions(features=np.full((2, D), 1e300), logits=NEW.logits[:2], labels=[0, 1])
    state = states()[i]
    with pytest.raises(InputError, match="rescale") if _overflows(state) else nullcontext():
        assert np.isfinite(score(state, far).values).all()


def _overflows(state):
    """Only what squares features overflows, or what does not divide them by their length."""
    linear = isinstance(state, ShapedActivations | StoredPatterns)
    return not (linear or getattr(state, "normalize", False))


def test_weights_are_used_or_refused():
    def weighted(weight):
        return Predictions(
            features=TRAIN.features, logits=TRAIN.logits, labels=TRAIN.labels, weight=weight
        )

    weight = np.random.default_rng(5).integers(1, 4, TRAIN.n).astype(float)
    for name, entry in FITTED.items():
        equal = fitted(name, {}, weighted(np.full(TRAIN.n, 1.0)))
        np.testing.assert_allclose(score(equal, NEW).values, score(fitted(name, {}), NEW).values)
        if entry.weighted:
            fitted(name, {}, weighted(weight))
        else:
            with pytest.raises(InputError, match="with unequal weights"):
                fitted(name, {}, weighted(weight))


def test_names_without_a_state_raise_an_error_with_the_way_out():
    with pytest.raises(
        InputError, match=r"'knn' must be fitted first: `state = abstain\.confidence\.fit"
    ):
        score("knn", NEW)
    with pytest.raises(InputError, match="'msr' needs no fitting: use `score"):
        fit("msr", TRAIN)
    with pytest.raises(InputError, match=r"no fitted score named 'vmi'\. Did you mean 'vim'"):
        fit("vmi", TRAIN)
    with pytest.raises(InputError, match=r"'knn' has no option 'n'; it has k, normalize"):
        fit("knn", TRAIN, n=3)
    with pytest.raises(MissingInputError, match="'react' needs the option `last_layer`"):
        fit("react", TRAIN)
    with pytest.raises(InputError, match="'knn' searches nothing; drop `criterion`"):
        fit("knn", TRAIN, criterion=max)
    with pytest.raises(InputError, match="a name or a fitted score; got 3"):
        score(3, NEW)
    # What the catalogues share is told apart by whether it was fitted.
    assert {"pnorm"} == set(FITTED) & set(SCORES)
    np.testing.assert_array_equal(score("pnorm", NEW).values, SCORES["pnorm"].compute(NEW))


def test_an_own_column_still_wins_over_a_name():
    own = Predictions(labels=[0, 1], prediction=[0, 1], confidence={"knn": [0.3, 0.1]})
    assert score("knn", own).values.tolist() == [0.3, 0.1]
