"""Small data, and rules short to write."""

import numpy as np
from sklearn.datasets import make_classification

SGR = {"rule": "sgr", "rule_params": {"max_risk": 0.2, "delta": 0.1}}


def coverage(share):
    return {"rule": "coverage", "rule_params": {"coverage": share}}


def blobs(n=400, classes=2, seed=0, **more):
    options = {"n_features": 6, "n_informative": 4, "flip_y": 0.1, "class_sep": 1.5, **more}
    return make_classification(n, n_classes=classes, random_state=seed, **options)


def words(codes, names=("cat", "dog", "owl")):
    return np.array(names)[codes]
