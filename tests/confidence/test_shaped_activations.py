"""ASH, SCALE and SHE written out sample by sample, and what other programs compute."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from tests.confidence.fitted_cases import BIAS, TRAIN, WEIGHT, D, K, data

from abstain.confidence import fit, score
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions

#: As after a ReLU.
X = np.maximum(data(60, 3).features, 0.0)
NEW = Predictions(features=X, prediction=np.arange(60) % K, classes=range(K), loss=np.zeros(60))
LAYER = {"last_layer": (WEIGHT, BIAS)}
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
#: What `ash_s`, `ash_b`, `ash_p` and `scale` of pytorch-ood 0.4.0 make of these eight features at a
#: percentile of 0.65.
FEATURES = np.array([0.0, 3.0, 1.0, 0.5, 4.0, 0.25, 0.0, 2.0])
THEIRS = {
    "sharpen": [0, 9.905168911029218, 0, 0, 13.20689188137229, 0, 0, 6.603445940686145],
    "binarize": [0, 43 / 12, 0, 0, 43 / 12, 0, 0, 43 / 12],
    "prune": [0, 3.0, 0, 0, 4.0, 0, 0, 2.0],
    "scale": [
        0.0,
        9.905168911029218,
        3.3017229703430724,
        1.6508614851715362,
        13.20689188137229,
        0.8254307425857681,
        0.0,
        6.603445940686145,
    ],
}


def by_hand(x, percentile, variant):
    """One sample: the largest k of d, and the sums before and after."""
    kept = sorted(range(len(x)), key=lambda i: -x[i])[: len(x) - round(len(x) * percentile / 100)]
    pruned = np.array([x[i] if i in kept else 0.0 for i in range(len(x))])
    if variant == "prune":
        return pruned
    if variant == "binarize":
        return np.array([sum(x) / len(kept) if i in kept else 0.0 for i in range(len(x))])
    factor = np.exp(sum(x) / sum(pruned))
    return x * factor if variant == "scale" else pruned * factor


@pytest.mark.parametrize("variant", THEIRS)
def test_one_sample_is_what_pytorch_ood_makes_of_it(variant):
    np.testing.assert_allclose(by_hand(FEATURES, 65, variant), THEIRS[variant], rtol=1e-12)
    layer = np.eye(8), np.zeros(8)
    two = np.stack([FEATURES, FEATURES + 1])
    p = Predictions(features=two, labels=[0, 1], prediction=[0, 1], classes=range(8))
    options = {} if variant == "scale" else {"variant": variant}
    kind = "scale" if variant == "scale" else "ash"
    state = fit(kind, p, last_layer=layer, percentile=65, **options)
    np.testing.assert_allclose(state.reshape(FEATURES[None])[0], THEIRS[variant], rtol=1e-12)


@pytest.mark.parametrize("percentile", [0, 35, 65, 80])
@pytest.mark.parametrize("variant", THEIRS)
def test_scores_are_the_energy_of_the_new_logits(variant, percentile):
    shaped = np.stack([by_hand(x, percentile, variant) for x in X])
    logits = shaped @ WEIGHT.T + BIAS
    options = LAYER | {"percentile": percentile}
    kind = "scale" if variant == "scale" else "ash"
    if kind == "ash":
        options["variant"] = variant
    energy = score(fit(kind, TRAIN, **options, temperature=2.0), NEW).values
    np.testing.assert_allclose(energy, 2 * logsumexp(logits / 2, axis=1), **CLOSE)
    largest = score(fit(kind, TRAIN, **options, base="mls"), NEW).values
    np.testing.assert_allclose(largest, logits.max(axis=1), **CLOSE)
    odds = score(fit(kind, TRAIN, **options, base="msr"), NEW)
    p = softmax(logits, axis=1).max(axis=1)
    np.testing.assert_allclose(1 / (1 + np.exp(-odds.values)), p, rtol=1e-9)
    assert odds.probability is None


def test_names_carry_what_was_changed():
    assert fit("ash", TRAIN, **LAYER).name == "ash"
    state = fit("ash", TRAIN, **LAYER, variant="binarize", percentile=65)
    assert state.name == "ash@variant=binarize,percentile=65"
    assert fit("scale", TRAIN, **LAYER, percentile=65).name == "scale@percentile=65"


def test_features_without_anything_positive_are_left():
    dark = Predictions(
        features=np.vstack([np.zeros(D), -np.ones(D)]),
        prediction=[0, 1],
        classes=range(K),
        loss=[0, 0],
    )
    values = score(fit("scale", TRAIN, **LAYER), dark).values
    plain = logsumexp(dark.features @ WEIGHT.T + BIAS, axis=1)
    np.testing.assert_allclose(values, plain, **CLOSE)
    assert score(fit("ash", TRAIN, **LAYER), dark).values[0] == pytest.approx(logsumexp(BIAS))


def test_wrong_options_are_refused():
    with pytest.raises(InputError, match="must keep at least one of the 6 features"):
        fit("ash", TRAIN, **LAYER, percentile=100)
    with pytest.raises(InputError, match="must keep at least one of the 6 features"):
        fit("scale", TRAIN, **LAYER, percentile=95)
    with pytest.raises(InputError, match="`variant` must be"):
        fit("ash", TRAIN, **LAYER, variant="s")
    with pytest.raises(InputError, match="drop `temperature`"):
        fit("scale", TRAIN, **LAYER, base="mls", temperature=2)


# ------------------------------------------------------------------------------------------ SHE
def test_she_is_the_inner_product_with_the_mean_of_what_was_right():
    guess = np.where(np.arange(TRAIN.n) % 7 == 0, (TRAIN.labels + 1) % K, TRAIN.labels)
    train = Predictions(features=TRAIN.features, labels=TRAIN.labels, prediction=guess)
    means = [TRAIN.features[(guess == c) & (TRAIN.labels == c)].mean(axis=0) for c in range(K)]
    values = score(fit("she", train), NEW).values
    expected = [np.dot(x, means[c]) for x, c in zip(X, np.arange(60) % K, strict=True)]
    np.testing.assert_allclose(values, expected, **CLOSE)


def test_she_finds_its_classes_where_some_are_absent():
    state = fit("she", TRAIN)
    part = Predictions(features=X[:5], prediction=[2, 1, 1, 2, 2], loss=np.zeros(5))
    expected = [np.dot(x, state.patterns[c]) for x, c in zip(X, (2, 1, 1, 2, 2), strict=False)]
    np.testing.assert_allclose(score(state, part).values, expected, **CLOSE)


def test_she_takes_all_of_a_class_of_which_nothing_is_right_and_needs_predictions():
    never = np.where(TRAIN.labels == 2, 0, TRAIN.labels)
    wrong = Predictions(
        features=TRAIN.features, labels=TRAIN.labels, prediction=never, classes=range(K)
    )
    expected = TRAIN.features[TRAIN.labels == 2].mean(axis=0)
    np.testing.assert_allclose(fit("she", wrong).patterns[2], expected, **CLOSE)
    blind = Predictions(features=X, loss=np.zeros(60), confidence={"own": np.ones(60)})
    with pytest.raises(MissingInputError):
        score(fit("she", TRAIN), blind)
