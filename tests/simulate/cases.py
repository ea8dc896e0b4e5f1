"""Every population of the catalogue, with its defaults and at the edges of its options."""

import numpy as np

from abstain import simulate

OPTIONS = {
    "two-gaussians": ({"separation": 0}, {"risk": 0.4, "separation": -0.7}, {"separation": 6}),
    "two-gaussians-cut": ({"levels": 2}, {"levels": 300, "risk": 0.3}),
    "two-gaussians-saturated": ({"share": 0.02},),
    "gaussian-scores": (
        {"link": "logistic"},
        {"slope": -1, "risk": 0.5},
        {"slope": 0},
        {"risk": 0.5},
        {"link": "logistic", "slope": 9, "risk": 0.02},
    ),
    "beta-scores": ({"a": 0.4, "b": 0.3}, {"a": 30, "b": 2}, {"a": 2, "b": 1, "power": 1}),
    "overconfident": ({"a": 3, "b": 2, "power": 4},),
    "two-class-logits": ({"temperature": 0.8}, {"separation": 0.3, "temperature": 3}),
    "discrete-scores": ({"confidence": [2, -1], "mass": [0.4, 0.6], "risk": [1, 0]},),
    "continuous-loss": (
        {"power": 0, "noise": "lognormal"},
        {"power": 3.5, "mean": 2, "variation": 0.3},
    ),
    "random-order": ({"risk": 0}, {"risk": 1}),
    "oracle-order": ({"risk": 1},),
    "cwsa-calibrated": ({"informed_share": 0.5},),
    "cwsa-overconfident": ({"informed_share": 0.4, "classes": 10},),
    "two-sele-counterexample": ({"top": 0.5, "inside": 0.1, "outside": 0.3},),
}

CASES = [
    (name, options) for name in simulate.POPULATIONS for options in ({}, *OPTIONS.get(name, ()))
]
IDS = [name + "".join(f" {k}={v}" for k, v in options.items()) for name, options in CASES]
POPULATIONS = [
    *(simulate.make(name, **options) for name, options in CASES),
    simulate.rank_scores(lambda u: 0.3 * np.sin(9 * u) ** 2),
    simulate.rank_scores(lambda u: np.where(u > 0.7, 0.2, 0.4 - u / 2), breaks=[0.7]),
    simulate.cut(simulate.rank_scores(lambda u: (1 - u) ** 2 / 2), [0.1, 0.5, 0.9]),
    simulate.block_scores([0, 1, 4], [1, 3, 9], [0.2, 0.3, 0.5], [0.4, 0.9, 0.1]),
    simulate.saturate(simulate.beta_scores(power=2), 0.5),
    simulate.cut(simulate.continuous_loss(), [0.3, 0.6]),
]
ALL_IDS = [*IDS, "waves", "broken", "cut ranks", "blocks", "saturated betas", "cut losses"]
