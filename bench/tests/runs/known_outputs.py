"""What networks say of a toy problem: two classes overlap, one lies apart, and one is unknown."""

from dataclasses import replace

import numpy as np

import abstain as ab
from abstain_bench.runs.methods import METHODS, FitData
from abstain_bench.runs.outputs import ensemble_outputs, network_outputs

WIDTH, PASSES, NETWORKS = 24, 8, 3
#: Of the three classes, and of a fourth that no network has met. All have some activity in common.
MEANS = np.zeros((4, WIDTH))
MEANS[:, :4] = 4.0
MEANS[1, 4:10] = 0.7
MEANS[2, 10:16] = 2.2
MEANS[3, 16:] = 5.0
WEIGHT = (MEANS[:3] - MEANS[:3].mean(axis=0)).astype(np.float32)
BIAS = (-0.5 * (MEANS[:3] ** 2 - MEANS[:3].mean(axis=0) ** 2).sum(axis=1)).astype(np.float32)


def features_of(labels, seed):
    noise = np.random.default_rng(seed).normal(size=(len(labels), WIDTH))
    return (MEANS[labels] + noise).astype(np.float32)


def passes(features, seed):
    """Logits of passes in which a tenth of the features is left out."""
    rng = np.random.default_rng(seed)
    masks = rng.random((len(features), PASSES, WIDTH)) < 0.9
    return (masks * features[:, None] / 0.9) @ WEIGHT.T + BIAS


def log_odds(logits):
    """The confidence that the toy networks have learned: the margin of the logits, minus 1."""
    return np.diff(np.sort(logits, axis=-1)[..., -2:], axis=-1)[..., 0] - 1.0


def said(features, labels, seed):
    """Outputs of one network, with passes."""
    samples = passes(features, seed)
    logits = features @ WEIGHT.T + BIAS
    return network_outputs(
        logits.astype(np.float32),
        labels,
        np.arange(len(labels)),
        features=features,
        samples=samples.astype(np.float32),
        confidence=log_odds(logits),
        sample_confidence=log_odds(samples),
    )


def drawn(n, seed, *, unknown=False):
    """Outputs for n images, and those of an ensemble for the same images."""
    rng = np.random.default_rng(seed)
    labels = np.full(n, 3) if unknown else rng.integers(3, size=n)
    features = features_of(labels, seed)
    labels = np.where(labels == 3, -1, labels)
    members = []
    for network in range(NETWORKS):
        off = np.random.default_rng(network).normal(scale=0.3, size=WEIGHT.shape)
        logits = features @ (WEIGHT + off).T + BIAS
        members.append(network_outputs(logits.astype(np.float32), labels, np.arange(n)))
    return said(features, labels, seed), ensemble_outputs(members)


def known(train=1, validation=2):
    return FitData(drawn(600, train)[0], drawn(300, validation)[0], WEIGHT, BIAS)


KNOWN = known()
NETWORK, ENSEMBLE = drawn(500, 3)
#: The learned confidence of each pass of `NETWORK`.
PASS_CONFIDENCE = log_odds(passes(NETWORK.features, 3)).astype(np.float64)
FAR, FAR_ENSEMBLE = drawn(200, 4, unknown=True)


def right(name, outputs):
    """Whether the prediction that the method belongs to is right."""
    if METHODS[name].uses_mean_prediction:
        mean = ab.Predictions(logit_samples=outputs.logit_samples, unlabeled=True)
        return mean.prediction_codes == outputs.labels
    return outputs.prediction_codes == outputs.labels


def without(outputs, *names):
    """Outputs without some fields; "learned" stands for all learned confidences."""
    fields = {"features": "features", "samples": "logit_samples", "learned": "confidence"}
    return replace(outputs, **{fields[name]: None for name in names})
