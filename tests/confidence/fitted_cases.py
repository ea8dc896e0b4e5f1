"""Data on which every entry of the catalogue of fitted scores can be fitted, and its options."""

from functools import cache

import numpy as np

import abstain as ab
from abstain.confidence import FITTED, fit
from abstain.predictions import Predictions

D, K = 6, 3
RNG = np.random.default_rng(7)
WEIGHT, BIAS = RNG.normal(size=(K, D)), RNG.normal(size=K)
MEANS = 2.0 * np.abs(RNG.normal(size=(K, D))) + 1.0
MIXING = RNG.normal(size=(D, D)) / 2

#: Values of the options that have no default, and criteria, for entries registered later too.
OPTIONS = {"last_layer": (WEIGHT, BIAS), "score": "msr", "scores": ("msr", "energy")}
#: What is fitted besides the defaults.
VARIANTS = {
    "mahalanobis": [
        {"shrinkage": "ledoit_wolf"},
        {"shrinkage": 0.2},
        {"covariance": "total", "to": "predicted", "shrinkage": "pinv"},
        {"to": "margin"},
        {"normalize": True},
    ],
    "relative_mahalanobis": [{"shrinkage": "ledoit_wolf"}],
    "knn": [{"k": 1, "normalize": False}],
    "vim": [{"dim": 2}, {"last_layer": (WEIGHT, BIAS)}, {"centered": True}],
    "react": [{"base": "msr", "temperature": 2.0}, {"base": "mls", "percentile": 60}],
    "ash": [{"variant": "binarize", "percentile": 50}, {"variant": "prune", "base": "mls"}],
    "scale": [{"base": "msr", "temperature": 2.0, "percentile": 40}],
    "pnorm": [{"base": "msr", "exponents": [0, 2, 3], "temperatures": [0.3, 1, 2]}],
    "temperature": [{"score": "energy"}, {"temperature": 1.7}],
    "rank": [{"score": "energy"}],
    "combine": [{"how": "product"}, {"how": "learned"}, {"scores": ("msr", "gini")}],
}


def data(n, seed, *, shift=0.0, labels=True):
    """Samples of three Gaussian classes, with the logits of a linear layer."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % K
    features = MEANS[truth] + rng.normal(size=(n, D)) @ MIXING + shift
    logits = features @ WEIGHT.T + BIAS + 6.0 * np.eye(K)[truth]
    own = {"labels": truth} if labels else {"loss": np.zeros(n)}
    # The layer makes the logits exactly: what helps the classifier is added to the features.
    features = features + 6.0 * np.eye(K)[truth] @ np.linalg.pinv(WEIGHT).T
    return Predictions(features=features, logits=logits, **own)


TRAIN = data(240, 1)


def variants():
    """Every entry with its defaults, and with other options."""
    return [(name, {}) for name in FITTED] + [
        (name, options) for name, all_of in VARIANTS.items() for options in all_of
    ]


def options_of(name, options):
    entry = FITTED[name]
    own = {o: OPTIONS[o] for o in entry.required}
    if entry.searches and options.get("temperature") is None:
        own["criterion"] = ab.augrc
    return {**own, **options}


def fitted(name, options, on=TRAIN):
    return fit(name, on, **options_of(name, options))


IDS = [f"{name}-{'-'.join(map(str, options))}" for name, options in variants()]


@cache
def states():
    return [fitted(name, options) for name, options in variants()]
