"""Scores of features against scikit-learn and against their definitions written out."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.covariance import EmpiricalCovariance, LedoitWolf, ledoit_wolf, shrunk_covariance
from sklearn.neighbors import NearestNeighbors
from tests.confidence.fitted_cases import BIAS, TRAIN, WEIGHT, D, K, data

from abstain.confidence import fit, score
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions

NEW = data(80, 3)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
X, Y = np.asarray(TRAIN.features), np.asarray(TRAIN.labels)
CENTERED = X - np.stack([X[c == Y].mean(axis=0) for c in range(K)])[Y]
FEATURED = ["mahalanobis", "relative_mahalanobis", "knn", "vim"]


def of_features(features, labels=None, **more):
    labels = np.zeros(len(features), int) if labels is None else labels
    return Predictions(features=features, labels=labels, prediction=labels, **more)


# --------------------------------------------------------------------------------- Gaussians
def test_mahalanobis_equals_that_of_scikit_learn():
    shared = EmpiricalCovariance(assume_centered=True).fit(CENTERED)
    distances = []
    for c in range(K):
        shared.location_ = X[c == Y].mean(axis=0)
        distances.append(shared.mahalanobis(NEW.features))
    values = score(fit("mahalanobis", TRAIN), NEW).values
    np.testing.assert_allclose(values, -np.min(distances, axis=0), **CLOSE)


def test_relative_mahalanobis_subtracts_the_background():
    background = EmpiricalCovariance().fit(X).mahalanobis(NEW.features)
    plain = score(fit("mahalanobis", TRAIN), NEW).values
    relative = score(fit("relative_mahalanobis", TRAIN), NEW).values
    np.testing.assert_allclose(relative, plain + background, **CLOSE)


@pytest.mark.parametrize("shrinkage", ["ledoit_wolf", 0.0, 0.3, 1.0, None])
def test_shrinkage_equals_that_of_scikit_learn(shrinkage):
    if shrinkage == "ledoit_wolf":
        expected = LedoitWolf(assume_centered=True).fit(CENTERED).covariance_
        assert ledoit_wolf(CENTERED, assume_centered=True)[1] > 0
    else:
        expected = shrunk_covariance(CENTERED.T @ CENTERED / len(X), shrinkage or 0.0)
    state = fit("mahalanobis", TRAIN, shrinkage=shrinkage)
    inverse = state.whitener @ state.whitener.T
    np.testing.assert_allclose(inverse @ expected, np.eye(D), atol=1e-10)


def test_affine_maps_of_the_features_change_nothing():
    """Mahalanobis distances do not know the units, even units 1e12 apart."""
    turn = np.random.default_rng(0).normal(size=(D, D)) * 10.0 ** np.arange(-6, 6, 2)

    def mapped(p):
        return of_features(p.features @ turn + 5.0, p.labels)

    for name in ("mahalanobis", "relative_mahalanobis"):
        plain = score(fit(name, TRAIN), NEW).values
        turned = score(fit(name, mapped(TRAIN)), mapped(NEW)).values
        np.testing.assert_allclose(turned, plain, rtol=1e-6)


def test_singular_covariances_raise_an_error_with_the_way_out():
    rng = np.random.default_rng(1)
    labels = np.arange(12) % 3
    few = of_features(rng.normal(size=(12, 10)), labels)
    with pytest.raises(InputError, match=r"singular \(9 free samples for 10 features\)"):
        fit("mahalanobis", few)
    assert np.isfinite(score(fit("mahalanobis", few, shrinkage="ledoit_wolf"), few).values).all()
    x = rng.normal(size=(60, 3))
    twice = of_features(np.column_stack([x, x[:, 0] + x[:, 1]]), np.arange(60) % 3)
    with pytest.raises(InputError, match=r"singular \(features depend linearly\).*shrinkage"):
        fit("relative_mahalanobis", twice)
    still = of_features(np.column_stack([x, np.full(60, 0.1)]), np.arange(60) % 3)
    with pytest.raises(InputError, match=r"column 3 does not vary\. Pass `shrinkage"):
        fit("mahalanobis", still)
    fit("mahalanobis", still, shrinkage=0.1)
    with pytest.raises(InputError, match="does not vary"):
        fit("mahalanobis", of_features(np.ones((6, 2)), [0, 0, 0, 1, 1, 1]), shrinkage=0.1)


def test_too_few_samples_of_a_class_raise_an_error():
    one = of_features(np.eye(3), [0, 0, 1], classes=[0, 1])
    with pytest.raises(InputError, match=r"at least 2 samples of each class .* class 1 has 1"):
        fit("mahalanobis", one)
    absent = Predictions(features=np.eye(3), logits=np.zeros((3, 4)), labels=[0, 0, 0])
    with pytest.raises(InputError, match=r"class 1 has 0 \(3 such classes\)"):
        fit("mahalanobis", absent)
    unknown = of_features(np.eye(3), [0, 0, 0], classes=[0, 1])
    odd = Predictions(
        features=np.eye(3), prediction=[0] * 3, labels=[0, 0, -1], classes=[0], unknown_label=-1
    )
    with pytest.raises(InputError, match="1 samples have no known class: leave them out"):
        fit("mahalanobis", odd)
    assert unknown.n_classes == 2


def test_shrinkage_is_checked():
    for wrong in ("ledoit", 1.5, -0.1):
        with pytest.raises(InputError, match="`shrinkage` must"):
            fit("mahalanobis", TRAIN, shrinkage=wrong)


def test_classes_that_do_not_occur_where_it_scores_are_no_matter():
    state = fit("mahalanobis", of_features(X, Y))
    part = of_features(X[Y == 1], Y[Y == 1])
    assert part.class_names == (1,)
    whole = score(state, of_features(X, Y)).values
    np.testing.assert_allclose(score(state, part).values, whole[Y == 1], **CLOSE)


# --------------------------------------------------------------------------------- neighbors
@pytest.mark.parametrize("k", [1, 10, 240])
@pytest.mark.parametrize("normalize", [True, False])
def test_neighbors_equal_those_of_scikit_learn(k, normalize):
    def placed(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True) if normalize else np.asarray(x)

    search = NearestNeighbors(n_neighbors=k).fit(placed(X))
    expected = search.kneighbors(placed(NEW.features))[0][:, -1]
    state = fit("knn", TRAIN, k=k, normalize=normalize)
    np.testing.assert_allclose(score(state, NEW).values, -expected, **CLOSE)
    brute = np.sort(np.linalg.norm(placed(NEW.features)[:, None] - placed(X), axis=2), axis=1)
    np.testing.assert_allclose(score(state, NEW).values, -brute[:, k - 1], **CLOSE)


@pytest.mark.parametrize("width", [3, 40])
def test_a_point_is_at_distance_zero_of_itself(width):
    """Products of float64 would put it at up to 1e-8, in another order each time."""
    x = np.random.default_rng(2).normal(size=(300, width)) * 100
    same = of_features(x)
    assert not score(fit("knn", same, k=1), same).values.any()


def test_neighbors_in_single_precision_and_of_zeros():
    wide = of_features(X)
    narrow = of_features(X.astype(np.float32))
    state = fit("knn", narrow, k=5)
    assert state.points.dtype == np.float32
    expected = score(fit("knn", wide, k=5), NEW).values
    np.testing.assert_allclose(score(state, NEW).values, expected, atol=1e-6)
    half = of_features(X.astype(np.float16))
    assert fit("knn", half, k=5).points.dtype == np.float32
    zeros = of_features(np.vstack([np.zeros(D), X]))
    assert score(fit("knn", zeros, k=1), zeros).values[0] == 0
    huge = of_features(np.full((2, D), 1e200))
    far = fit("knn", of_features(X.astype(np.float32)), k=1, normalize=False)
    with pytest.raises(InputError, match="exceed float32"):
        score(far, huge)


def test_the_neighbor_must_exist():
    for wrong in (0, 241, 2.5, True):
        with pytest.raises(InputError, match="`k` must be"):
            fit("knn", TRAIN, k=wrong)
    with pytest.raises(InputError, match="`normalize` must be"):
        fit("knn", TRAIN, normalize="l2")


# --------------------------------------------------------------------------------- ViM and ReAct
@pytest.mark.parametrize("dim", [1, 3, 5])
@pytest.mark.parametrize("layered", [True, False])
def test_vim_is_its_definition(dim, layered):
    origin = -np.linalg.pinv(WEIGHT) @ BIAS if layered else X.mean(axis=0)
    moment = EmpiricalCovariance(assume_centered=True).fit(X - origin).covariance_
    values, vectors = np.linalg.eigh(moment)
    rest = vectors[:, np.argsort(-values)[dim:]]
    logits = X @ WEIGHT.T + BIAS
    alpha = logits.max(axis=1).mean() / np.linalg.norm((X - origin) @ rest, axis=1).mean()
    virtual = alpha * np.linalg.norm((NEW.features - origin) @ rest, axis=1)
    expected = logsumexp(NEW.features @ WEIGHT.T + BIAS, axis=1) - virtual
    state = fit("vim", TRAIN, dim=dim, **({"last_layer": (WEIGHT, BIAS)} if layered else {}))
    assert state.complement.shape == (D, D - dim)
    np.testing.assert_allclose(score(state, NEW).values, expected, **CLOSE)


def test_vim_ranks_as_the_probability_of_the_virtual_class():
    state = fit("vim", TRAIN)
    z = np.asarray(NEW.logits)
    virtual = state.alpha * np.linalg.norm((NEW.features - state.origin) @ state.complement, axis=1)
    p = softmax(np.column_stack([z, virtual]), axis=1)[:, -1]
    assert (np.argsort(-p) == np.argsort(score(state, NEW).values)).all()


def test_vim_takes_the_authors_dimensions():
    from abstain.confidence.energies import _subspace_dimension

    assert [_subspace_dimension(None, d) for d in (2, 9, 512, 768, 2047, 2048)] == [
        1,
        4,
        256,
        512,
        512,
        1000,
    ]


def test_vim_refuses_what_it_cannot_use():
    with pytest.raises(InputError, match="`dim` must be below the 6 columns"):
        fit("vim", TRAIN, dim=6)
    with pytest.raises(MissingInputError, match="'vim' needs logits, or the last layer"):
        fit("vim", of_features(X, Y))
    with pytest.raises(InputError, match="at least 2 columns"):
        fit("vim", Predictions(features=X[:, :1], logits=TRAIN.logits, labels=Y))
    flat = Predictions(features=X @ np.diag([1, 1, 0, 0, 0, 0]), logits=TRAIN.logits, labels=Y)
    with pytest.raises(InputError, match="lie in their principal subspace of 3 dimensions"):
        fit("vim", flat)
    logs = Predictions(features=X, logits=np.log(softmax(TRAIN.logits, axis=1)), labels=Y)
    with pytest.raises(InputError, match="Pass raw logits"):
        fit("vim", logs)
    with pytest.raises(MissingInputError, match="fitted without a last layer"):
        score(fit("vim", TRAIN), of_features(X, Y))


def test_vim_has_no_scale_where_no_logit_stands_out():
    untrained = Predictions(features=X, logits=np.zeros((len(X), 3)), labels=Y)
    with pytest.raises(InputError, match="largest logit must be above 0"):
        fit("vim", untrained)


def test_vim_with_a_last_layer_needs_features_alone():
    state = fit("vim", TRAIN, last_layer=(WEIGHT, BIAS))
    alone = of_features(NEW.features, NEW.labels)
    np.testing.assert_array_equal(score(state, alone).values, score(state, NEW).values)


@pytest.mark.parametrize("percentile", [0, 75, 90.0, 100])
def test_react_is_its_definition(percentile):
    cut = np.minimum(NEW.features, np.percentile(X, percentile))
    logits = cut @ WEIGHT.T + BIAS
    layer = {"last_layer": (WEIGHT, BIAS), "percentile": percentile}
    energy = score(fit("react", TRAIN, **layer, temperature=2.0), NEW).values
    np.testing.assert_allclose(energy, 2 * logsumexp(logits / 2, axis=1), **CLOSE)
    largest = score(fit("react", TRAIN, **layer, base="mls"), NEW).values
    np.testing.assert_allclose(largest, logits.max(axis=1), **CLOSE)
    p = softmax(logits, axis=1).max(axis=1)
    odds = score(fit("react", TRAIN, **layer, base="msr"), NEW)
    np.testing.assert_allclose(1 / (1 + np.exp(-odds.values)), p, rtol=1e-10)
    assert odds.probability is None


def test_react_above_all_features_is_the_plain_score():
    low = data(80, 3, shift=-50.0)
    state = fit("react", TRAIN, last_layer=(WEIGHT, BIAS), percentile=100)
    np.testing.assert_allclose(score(state, low).values, score("energy", low).values, **CLOSE)


def test_last_layers_are_checked():
    wrong = [
        ((WEIGHT,), "a pair"),
        ((WEIGHT.T, BIAS), "Transpose the weight"),
        ((WEIGHT, BIAS[:2]), "got shapes"),
        ((WEIGHT * np.nan, BIAS), "must be finite"),
        ((WEIGHT.astype(str), BIAS), "array of numbers"),
        ((-WEIGHT, BIAS), "does not compute the logits of these predictions"),
        ((np.vstack([WEIGHT, WEIGHT]), np.tile(BIAS, 2)), "has 6 classes, the predictions 3"),
    ]
    for layer, message in wrong:
        with pytest.raises(InputError, match=message):
            fit("react", TRAIN, last_layer=layer)
    rounded = Predictions(
        features=X.astype(np.float16), logits=TRAIN.logits.astype(np.float16), labels=Y
    )
    fit("react", rounded, last_layer=(WEIGHT, BIAS))
    with pytest.raises(InputError, match="drop `temperature`"):
        fit("react", TRAIN, last_layer=(WEIGHT, BIAS), base="mls", temperature=2)
    with pytest.raises(InputError, match=r"`percentile` must lie in \[0, 100\]"):
        fit("react", TRAIN, last_layer=(WEIGHT, BIAS), percentile=101)


# --------------------------------------------------------------------------------- what they are for
@pytest.mark.parametrize("name", FEATURED)
def test_far_samples_are_less_trusted(name):
    """Samples of the training classes, and samples moved away in a direction of no class."""
    own, away = data(90, 4), np.linalg.svd(WEIGHT)[2][-1]
    values = [
        score(
            fit(name, TRAIN, **({"k": 5, "normalize": False} if name == "knn" else {})),
            Predictions(features=own.features + d * away, logits=own.logits, labels=own.labels),
        ).values
        for d in (0.0, 10.0, 100.0)
    ]
    if name == "relative_mahalanobis":
        # The background moves away too, at another pace: only classes are told apart.
        assert np.median(values[2]) < np.median(values[0])
        return
    assert (values[1] < values[0]).mean() > 0.95
    assert (values[2] < values[1]).all()


def test_features_of_any_kind_and_read_only():
    torch = pytest.importorskip("torch")
    state = fit("mahalanobis", of_features(torch.tensor(X), torch.tensor(Y)))
    np.testing.assert_array_equal(state.means, fit("mahalanobis", of_features(X, Y)).means)
    whole = np.random.default_rng(0).integers(-5, 5, size=(60, 2))
    fit("mahalanobis", of_features(whole, np.arange(60) % 3))
