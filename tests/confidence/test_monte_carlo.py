"""Monte-Carlo scores against explicit loops, and where the plain formulas lose their digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from tests.confidence import exact

from abstain import confidence
from abstain.errors import InputError, MissingInputError, ShapeError

Z = np.random.default_rng(11).normal(size=(20, 5, 4)) * 2


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def entropy(p):
    return -sum(v * np.log(v) for v in p if v > 0)


P = softmax(Z)


def loop(function):
    return np.array([function(sample) for sample in P])


def test_scores_equal_explicit_loops():
    mean = [sum(sample) / len(sample) for sample in P]
    of_mean = np.array([entropy(m) for m in mean])
    expected = np.array([np.mean([entropy(p) for p in sample]) for sample in P])
    deviation = np.array([np.mean([np.std(sample[:, k]) for k in range(4)]) for sample in P])
    for given_ in ({"logit_samples": Z}, {"probability_samples": P}):
        np.testing.assert_allclose(
            expit(confidence.mean_softmax_response(**given_)), [max(m) for m in mean], rtol=1e-12
        )
        np.testing.assert_allclose(
            confidence.negative_entropy_of_mean(**given_), -of_mean, rtol=1e-12
        )
        np.testing.assert_allclose(
            confidence.negative_expected_entropy(**given_), -expected, rtol=1e-12
        )
        np.testing.assert_allclose(
            confidence.negative_mutual_information(**given_), expected - of_mean, rtol=1e-11
        )
        np.testing.assert_allclose(
            confidence.negative_softmax_deviation(**given_), -deviation, rtol=1e-12
        )
    top = [int(np.argmax(m)) for m in mean]
    waic = [
        m[k] - np.sqrt(np.mean([(p[k] - m[k]) ** 2 for p in sample]))
        for sample, m, k in zip(P, mean, top, strict=True)
    ]
    for given_ in ({"logit_samples": Z}, {"probability_samples": P}):
        result = confidence.penalized_softmax_response(**given_)
        np.testing.assert_allclose(result + 1, waic, rtol=1e-12)
    logits = [max(sum(sample[:, k]) / 5 for k in range(4)) for sample in Z]
    np.testing.assert_allclose(confidence.mean_max_logit(Z), logits, rtol=1e-12)


@given(arrays(np.float64, (3, 4, 3), elements=st.floats(-300, 300)))
def test_mutual_information_is_never_negative(z):
    values = confidence.negative_mutual_information(z)
    assert (values <= 0).all()
    assert (values >= -np.log(3) - 1e-12).all()


def test_agreeing_samples_share_no_information():
    same = np.repeat(Z[:, :1], 5, axis=1)
    np.testing.assert_allclose(confidence.negative_mutual_information(same), 0, atol=1e-30)
    np.testing.assert_allclose(confidence.negative_softmax_deviation(same), 0, atol=1e-15)


def test_mutual_information_keeps_its_digits_when_samples_nearly_agree():
    z = np.array([[[1.0, 0.0], [1.0 + 1e-7, 0.0]]])
    p = [exact.softmax(row) for row in z[0]]
    mean = [(a + b) / 2 for a, b in zip(*p, strict=True)]
    information = sum(exact.pe(row) for row in p) / 2 - exact.pe(mean)
    assert confidence.negative_mutual_information(z)[0] == pytest.approx(
        -float(information), rel=1e-7
    )


def test_scores_do_not_saturate():
    z = np.array([[[50.0, 0.0], [45.0, 0.0]], [[50.0, 0.0], [44.0, 0.0]]])
    for name in (
        "mean_softmax_response",
        "negative_entropy_of_mean",
        "negative_expected_entropy",
        "negative_mutual_information",
        "negative_softmax_deviation",
        "penalized_softmax_response",
    ):
        values = getattr(confidence, name)(z)
        assert values[0] > values[1], name
    p = [exact.softmax(row) for row in z[0]]
    top = (p[0][0] + p[1][0]) / 2
    assert confidence.mean_softmax_response(z)[0] == pytest.approx(
        float(exact.log_odds(top)), rel=1e-14
    )


def test_impossible_classes():
    p = np.array([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    assert confidence.mean_softmax_response(probability_samples=p).tolist() == [750.0, 0.0]
    mutual = confidence.negative_mutual_information(probability_samples=p)
    assert mutual.tolist() == pytest.approx([0.0, -np.log(2)])
    assert confidence.negative_expected_entropy(probability_samples=p).tolist() == [0, 0]


def test_refusals():
    with pytest.raises(
        InputError, match="either `logit_samples` or `probability_samples`, not both"
    ):
        confidence.mean_softmax_response(Z, probability_samples=P)
    with pytest.raises(MissingInputError, match="one of `logit_samples` and `probability_samples`"):
        confidence.mean_softmax_response()
    with pytest.raises(ShapeError, match="at least two samples"):
        confidence.mean_max_logit(Z[:, :1])
