"""The built-in scores, as the catalogue holds them."""

from functools import partial
from typing import cast

import numpy as np
from scipy.special import expit

from abstain.confidence import _kernels
from abstain.confidence import _sample_kernels as _samples
from abstain.confidence._entry import Need, Score
from abstain.confidence.logit_scores import DEFAULT_P
from abstain.confidence.softmax_scores import DEFAULT_GAMMA, DEFAULT_TOP
from abstain.predictions import Predictions
from abstain.predictions.outputs import ClassScores
from abstain.typing import FloatArray

# Predictions hold NumPy arrays, so every kernel gives NumPy arrays here.


def _deterministic(
    kernel: _kernels.Kernel, predictions: Predictions, temperature: float = 1.0
) -> FloatArray:
    scores = cast("ClassScores", predictions.class_scores)
    return cast("FloatArray", _kernels.by_rows(kernel, scores, temperature=temperature))


def _energy(predictions: Predictions, temperature: float = 1.0) -> FloatArray:
    return temperature * _deterministic(_kernels.log_sum_exp, predictions, temperature)


def _sampled(kernel: _samples.SampleKernel, predictions: Predictions) -> FloatArray:
    samples = cast("ClassScores", predictions.samples)
    return cast("FloatArray", _samples.by_rows(kernel, samples))


def _mean_logit(predictions: Predictions) -> FloatArray:
    samples = cast("ClassScores", predictions.samples)
    return cast("FloatArray", _samples.largest_mean_logit(samples))


def _probability(log_odds: FloatArray) -> FloatArray:
    return np.asarray(expit(log_odds), dtype=np.float64)


def _of_softmax(name: str, title: str, kernel: _kernels.Kernel, text: tuple[str, str]) -> Score:
    compute = partial(_deterministic, kernel)
    needs = frozenset({Need.CLASS_SCORES})
    return Score(name, title, compute, needs, *text, tempered=compute)


def _of_logits(name: str, title: str, kernel: _kernels.Kernel, text: tuple[str, str]) -> Score:
    return Score(name, title, partial(_deterministic, kernel), frozenset({Need.LOGITS}), *text)


def _of_samples(name: str, title: str, kernel: _samples.SampleKernel, meaning: str) -> Score:
    return Score(
        name, title, partial(_sampled, kernel), frozenset({Need.SAMPLES}), meaning, _JAEGER
    )


_GEN = (
    "Liu et al. (2023), https://openaccess.thecvf.com/content/CVPR2023/html/Liu_GEN_Pushing_the_"
    "Limits_of_Softmax-Based_Out-of-Distribution_Detection_CVPR_2023_paper.html"
)
_JAEGER = "Jaeger et al. (2023), https://arxiv.org/abs/2211.15259"

BUILT_IN: tuple[Score, ...] = (
    Score(
        "msr",
        "Maximum softmax response",
        partial(_deterministic, _kernels.log_odds),
        frozenset({Need.CLASS_SCORES}),
        "how sure the model is of its prediction: log-odds of the most probable class",
        "Hendrycks & Gimpel (2017), https://arxiv.org/abs/1610.02136, section 2",
        "log-odds",
        _probability,
        partial(_deterministic, _kernels.log_odds),
    ),
    _of_logits(
        "mls",
        "Maximum logit",
        _kernels.largest,
        (
            "how strong the evidence for the prediction is: the largest logit",
            "Hendrycks et al. (2022), https://arxiv.org/abs/1911.11132, section 3",
        ),
    ),
    _of_softmax(
        "pe",
        "Predictive entropy",
        _kernels.negative_entropy,
        ("how concentrated the whole softmax is: minus its entropy in nats", _JAEGER),
    ),
    _of_softmax(
        "margin",
        "Probability margin",
        _kernels.margin,
        (
            "how clear the choice is: log((1 + M) / (1 - M)) with M = p1 - p2",
            "Scheffer et al. (2001), https://doi.org/10.1007/3-540-44816-0_31",
        ),
    ),
    Score(
        "logit_margin",
        "Logit margin",
        partial(_deterministic, _kernels.log_gap),
        frozenset({Need.CLASS_SCORES}),
        "how far the prediction is from changing: largest minus second largest logit",
        "Streeter (2018), https://arxiv.org/abs/1802.07697; Cattelan & Silva (2024), "
        "https://arxiv.org/abs/2305.15508 (LogitsMargin)",
    ),
    _of_softmax(
        "gini",
        "Gini (DOCTOR)",
        _kernels.gini,
        (
            "whether two draws from the softmax would agree: log(G / (1 - G)), G = sum of p^2",
            "Granese et al. (2021), https://arxiv.org/abs/2106.02395 (D_alpha)",
        ),
    ),
    _of_softmax(
        "gen",
        "Generalized entropy (GEN)",
        partial(_kernels.generalized_entropy, gamma=DEFAULT_GAMMA, top=DEFAULT_TOP),
        (
            "how concentrated the softmax is down to its tail: minus its generalized entropy",
            _GEN,
        ),
    ),
    Score(
        "energy",
        "Energy",
        _energy,
        frozenset({Need.LOGITS}),
        "how much evidence there is for any class: logsumexp of the logits",
        "Liu et al. (2020), https://arxiv.org/abs/2010.03759, eq. 4",
        tempered=_energy,
    ),
    _of_logits(
        "pnorm",
        "MaxLogit-pNorm",
        partial(_kernels.normalized_largest, p=DEFAULT_P),
        (
            f"the largest centered logit over the {DEFAULT_P:g}-norm of the centered logits",
            "Cattelan & Silva (2024), https://arxiv.org/abs/2305.15508 (MaxLogit-pNorm)",
        ),
    ),
    Score(
        "mcd_msr",
        "Monte-Carlo maximum softmax response",
        partial(_sampled, _samples.of_mean(_kernels.log_odds)),
        frozenset({Need.SAMPLES}),
        "log-odds of the top class of the mean softmax",
        _JAEGER,
        "log-odds",
        _probability,
    ),
    Score(
        "mcd_mls",
        "Monte-Carlo maximum logit",
        _mean_logit,
        frozenset({Need.LOGIT_SAMPLES}),
        "the largest mean logit",
        _JAEGER,
    ),
    _of_samples(
        "mcd_pe",
        "Monte-Carlo predictive entropy",
        _samples.of_mean(_kernels.negative_entropy),
        "minus the entropy of the mean softmax, in nats",
    ),
    _of_samples(
        "mcd_ee",
        "Expected entropy",
        _samples.expected_entropy,
        "minus the mean entropy of the samples, in nats",
    ),
    _of_samples(
        "mcd_mi",
        "Mutual information",
        _samples.mutual_information,
        "whether the samples agree: minus their mutual information with the class, in nats",
    ),
    _of_samples(
        "mcd_sv",
        "Softmax variance",
        _samples.deviation,
        "minus the standard deviation of the softmax over the samples, averaged over classes",
    ),
)
