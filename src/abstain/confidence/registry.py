"""The catalogue of confidence scores, and how predictions are scored by name."""

from functools import partial
from typing import Any, cast

import numpy as np
from scipy.special import expit

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain.confidence import kernels
from abstain.confidence.entry import ConfidenceScore, Need, Score
from abstain.confidence.fitted import Scorer
from abstain.confidence.logit_scores import DEFAULT_P
from abstain.confidence.softmax_scores import DEFAULT_GAMMA, DEFAULT_TOP
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.predictions.outputs import ClassScores
from abstain.typing import Array, FloatArray

_MARK = "@T="


# Predictions hold NumPy arrays, so every kernel gives NumPy arrays here.


def _deterministic(
    kernel: kernels.Kernel, predictions: Predictions, temperature: float = 1.0
) -> FloatArray:
    scores = cast("ClassScores", predictions.class_scores)
    return cast("FloatArray", kernels.by_rows(kernel, scores, temperature=temperature))


def _energy(predictions: Predictions, temperature: float = 1.0) -> FloatArray:
    return temperature * _deterministic(kernels.log_sum_exp, predictions, temperature)


def _sampled(kernel: kernels.SampleKernel, predictions: Predictions) -> FloatArray:
    samples = cast("ClassScores", predictions.samples)
    return cast("FloatArray", kernels.by_rows_of_samples(kernel, samples))


def _mean_logit(predictions: Predictions) -> FloatArray:
    samples = cast("ClassScores", predictions.samples)
    return cast("FloatArray", kernels.largest_mean_logit(samples))


def _probability(log_odds: FloatArray) -> FloatArray:
    return np.asarray(expit(log_odds), dtype=np.float64)


def _of_softmax(name: str, title: str, kernel: kernels.Kernel, text: tuple[str, str]) -> Score:
    compute = partial(_deterministic, kernel)
    needs = frozenset({Need.CLASS_SCORES})
    return Score(name, title, compute, needs, *text, tempered=compute)


def _of_logits(name: str, title: str, kernel: kernels.Kernel, text: tuple[str, str]) -> Score:
    return Score(name, title, partial(_deterministic, kernel), frozenset({Need.LOGITS}), *text)


def _of_samples(name: str, title: str, kernel: kernels.SampleKernel, meaning: str) -> Score:
    return Score(
        name, title, partial(_sampled, kernel), frozenset({Need.SAMPLES}), meaning, _JAEGER
    )


_GEN = (
    "Liu et al. (2023), https://openaccess.thecvf.com/content/CVPR2023/html/Liu_GEN_Pushing_the_"
    "Limits_of_Softmax-Based_Out-of-Distribution_Detection_CVPR_2023_paper.html"
)
_JAEGER = "Jaeger et al. (2023), https://arxiv.org/abs/2211.15259"

_BUILT_IN: tuple[Score, ...] = (
    Score(
        "msr",
        "Maximum softmax response",
        partial(_deterministic, kernels.log_odds),
        frozenset({Need.CLASS_SCORES}),
        "how sure the model is of its prediction: log-odds of the most probable class",
        "Hendrycks & Gimpel (2017), https://arxiv.org/abs/1610.02136, section 2",
        "log-odds",
        _probability,
        partial(_deterministic, kernels.log_odds),
    ),
    _of_logits(
        "mls",
        "Maximum logit",
        kernels.largest,
        (
            "how strong the evidence for the prediction is: the largest logit",
            "Hendrycks et al. (2022), https://arxiv.org/abs/1911.11132, section 3",
        ),
    ),
    _of_softmax(
        "pe",
        "Predictive entropy",
        kernels.negative_entropy,
        ("how concentrated the whole softmax is: minus its entropy in nats", _JAEGER),
    ),
    _of_softmax(
        "margin",
        "Probability margin",
        kernels.margin,
        (
            "how clear the choice is: log((1 + M) / (1 - M)) with M = p1 - p2",
            "Scheffer et al. (2001), https://doi.org/10.1007/3-540-44816-0_31",
        ),
    ),
    Score(
        "logit_margin",
        "Logit margin",
        partial(_deterministic, kernels.log_gap),
        frozenset({Need.CLASS_SCORES}),
        "how far the prediction is from changing: largest minus second largest logit",
        "Streeter (2018), https://arxiv.org/abs/1802.07697; Cattelan & Silva (2024), "
        "https://arxiv.org/abs/2305.15508 (LogitsMargin)",
    ),
    _of_softmax(
        "gini",
        "Gini (DOCTOR)",
        kernels.gini,
        (
            "whether two draws from the softmax would agree: log(G / (1 - G)), G = sum of p^2",
            "Granese et al. (2021), https://arxiv.org/abs/2106.02395 (D_alpha)",
        ),
    ),
    _of_softmax(
        "gen",
        "Generalized entropy (GEN)",
        partial(kernels.generalized_entropy, gamma=DEFAULT_GAMMA, top=DEFAULT_TOP),
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
        partial(kernels.normalized_largest, p=DEFAULT_P),
        (
            f"the largest centered logit over the {DEFAULT_P:g}-norm of the centered logits",
            "Cattelan & Silva (2024), https://arxiv.org/abs/2305.15508 (MaxLogit-pNorm)",
        ),
    ),
    Score(
        "mcd_msr",
        "Monte-Carlo maximum softmax response",
        partial(_sampled, kernels.of_mean(kernels.log_odds)),
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
        kernels.of_mean(kernels.negative_entropy),
        "minus the entropy of the mean softmax, in nats",
    ),
    _of_samples(
        "mcd_ee",
        "Expected entropy",
        kernels.expected_entropy,
        "minus the mean entropy of the samples, in nats",
    ),
    _of_samples(
        "mcd_mi",
        "Mutual information",
        kernels.mutual_information,
        "whether the samples agree: minus their mutual information with the class, in nats",
    ),
    _of_samples(
        "mcd_sv",
        "Softmax variance",
        kernels.deviation,
        "minus the standard deviation of the softmax over the samples, averaged over classes",
    ),
)

#: Every built-in confidence score, in the order reports show them.
SCORES: Catalogue[Score] = Catalogue("score")
for _entry in _BUILT_IN:
    SCORES.add(_entry)


def find(name: str) -> Score:
    """Return the score of a name, with or without a temperature: "msr", "msr@T=1.5".

    Parameters
    ----------
    name : str
        A name in `SCORES`, or "NAME@T=TEMPERATURE".

    Returns
    -------
    Score
        Computed at that temperature.

    Raises
    ------
    UnknownNameError
        No score of that name.
    InputError
        A temperature that is no number above 0, or a score that has none.

    Examples
    --------
    >>> find("msr@T=2").name
    'msr@T=2'
    """
    base, mark, temperature = name.partition(_MARK)
    if not mark:
        return SCORES[name]
    # A text that is no number is refused there, by name and value.
    return SCORES[base].at(cast("float", temperature))


def score(
    name: str | Scorer, predictions: Predictions, *, temperature: float | None = None
) -> ConfidenceScore:
    """Return the confidences of the samples under one score.

    Parameters
    ----------
    name : str or Scorer
        One of the predictions' own confidence columns, a name in `SCORES`, or
        "NAME@T=TEMPERATURE". An own column comes before a built-in score of the same name. Or
        what `fit` returned, or anything else with a `name` and a method `score`.
    predictions : Predictions
        What the model said; labels are not looked at.
    temperature : float, optional
        Divides the logits, for scores that have a temperature.

    Returns
    -------
    ConfidenceScore
        Name, values (n,) with higher more confident, and probabilities where the score means
        one. An own column within [0, 1] is its own probability.

    Raises
    ------
    UnknownNameError
        No column and no score of that name.
    MissingInputError
        The predictions lack what the score needs.
    InputError
        A temperature for a score that has none, for a fitted one, or one given twice.

    Examples
    --------
    >>> p = Predictions(logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 0])
    >>> score("msr", p).values.tolist()
    [2.0, 1.0]
    >>> score("msr", p).probability.round(4).tolist()
    [0.8808, 0.7311]
    """
    if not isinstance(name, str):
        return _fitted(name, predictions, temperature)
    if name in (predictions.confidence or {}):
        return _own_column(name, predictions.confidence[name], temperature)
    entry = find(name)
    if temperature is not None:
        if _MARK in name:
            msg = f"`temperature` is given twice: by the name {name!r} and as {temperature!r}"
            raise InputError(msg)
        entry = entry.at(temperature)
    missing = entry.missing(predictions)
    if missing:
        usable = ", ".join(map(repr, applicable(predictions))) or "none"
        msg = f"the score {name!r} {missing}; these predictions allow {usable}"
        raise MissingInputError(msg)
    values = entry.compute(predictions)
    to_probability = entry.to_probability
    return ConfidenceScore(
        entry.name, values, None if to_probability is None else to_probability(values)
    )


def applicable(predictions: Predictions) -> tuple[str, ...]:
    """Return the names of the scores these predictions allow: own columns, then built-in ones.

    Parameters
    ----------
    predictions : Predictions
        What the model said.

    Returns
    -------
    tuple of str
        Names that `score` accepts, none twice.

    Examples
    --------
    >>> applicable(Predictions(prediction=[0, 1], labels=[0, 0], confidence=[0.9, 0.6]))
    ('confidence',)
    """
    own = tuple(predictions.confidence or {})
    return own + tuple(
        name for name, entry in SCORES.items() if name not in own and not entry.missing(predictions)
    )


def _fitted(state: Any, predictions: Predictions, temperature: float | None) -> ConfidenceScore:
    if not isinstance(state, Scorer) or isinstance(state, type):
        msg = f"a score must be given by name or as a fitted state; got {state!r}"
        raise InputError(msg)
    if temperature is not None:
        msg = f"the fitted score {state.name!r} has its own parameters; drop `temperature`"
        raise InputError(msg)
    found = state.score(predictions)
    checks.confidence(found.values, f"the score {found.name!r}", length=predictions.n)
    return found


def _own_column(name: str, values: Array, temperature: float | None) -> ConfidenceScore:
    if temperature is not None:
        msg = f"the confidence column {name!r} has no temperature; drop `temperature`"
        raise InputError(msg)
    inside = bool(values.min() >= 0 and values.max() <= 1)
    return ConfidenceScore(name, values, values if inside else None, own=True)
