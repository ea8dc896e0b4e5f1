"""Confidence scores that are functions of the logits.

`abstain.confidence.softmax_scores` describes the supported array libraries and gradients.
"""

from functools import partial

from abstain._foundation import checks
from abstain.confidence import kernels
from abstain.confidence.entry import (
    Score,
    ScoreNeed,
    check_temperature,
    class_score_entry,
    compute_from_class_scores,
)
from abstain.errors import DomainError
from abstain.predictions import Predictions
from abstain.typing import AnyArray, FloatArray

#: Default exponent of `normalized_max_logit`. Its authors select the exponent on held-out data.
DEFAULT_P = 4.0


def max_logit(logits: AnyArray) -> AnyArray:
    """Compute the largest logit.

    Answers: how large is the logit of the predicted class?

    Parameters
    ----------
    logits : array of shape (n, K)
        Unnormalized log-scores.

    Returns
    -------
    array of shape (n,)
        Largest logits, any real numbers; higher is more confident.

    Raises
    ------
    ShapeError, DomainError
        As in `abstain.Predictions`.

    References
    ----------
    Hendrycks et al. (2022), Scaling Out-of-Distribution Detection for Real-World Settings,
    https://arxiv.org/abs/1911.11132, section 3.

    Examples
    --------
    >>> max_logit([[2.0, 5.0], [1.0, 0.0]]).tolist()
    [5.0, 1.0]
    """
    return kernels.apply_to_arrays(kernels.max_log_score, logits)


def logit_margin(
    logits: AnyArray | None = None, *, probabilities: AnyArray | None = None
) -> AnyArray:
    """Compute the gap between the two largest logits.

    Answers: how much larger is the top logit than the second largest logit?

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        Class scores. Pass exactly one of these arguments.

    Returns
    -------
    array of shape (n,)
        z1 - z2 = log(p1 / p2), at least 0; higher is more confident. If all other classes have
        probability 0, the value is 750.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As in `abstain.Predictions`.

    Notes
    -----
    The ranking does not depend on a temperature. With two classes, the score equals
    `max_softmax_response`.

    References
    ----------
    Streeter (2018), Approximation Algorithms for Cascading Prediction Models,
    https://arxiv.org/abs/1802.07697; LogitsMargin in Cattelan & Silva (2024), How to Fix a
    Broken Confidence Estimator, https://arxiv.org/abs/2305.15508.

    Examples
    --------
    >>> logit_margin([[3.0, 1.0, 0.0], [2.0, 1.5, -5.0]]).tolist()
    [2.0, 0.5]
    """
    return kernels.apply_to_arrays(kernels.log_gap, logits, probabilities)


def negative_energy(logits: AnyArray, *, temperature: float = 1.0) -> AnyArray:
    """Compute the negative free energy of the logits.

    Answers: how large is the smooth maximum (logsumexp) of the logits?

    Parameters
    ----------
    logits : array of shape (n, K)
        Unnormalized log-scores.
    temperature : float
        Number that divides the logits and multiplies the result.

    Returns
    -------
    array of shape (n,)
        T logsumexp(z / T), any real number; higher is more confident.

    Raises
    ------
    ShapeError, DomainError
        As in `abstain.Predictions`.

    References
    ----------
    Liu et al. (2020), Energy-based Out-of-distribution Detection,
    https://arxiv.org/abs/2010.03759, eq. 4.

    Examples
    --------
    >>> negative_energy([[0.0, 0.0]]).round(4).tolist()
    [0.6931]
    """
    temperature = check_temperature(temperature)
    return temperature * kernels.apply_to_arrays(
        kernels.log_sum_exp, logits, temperature=temperature
    )


def normalized_max_logit(logits: AnyArray, *, p: float = DEFAULT_P) -> AnyArray:
    """Compute the largest centered logit after division by the p-norm (MaxLogit-pNorm).

    Answers: how large is the top logit relative to the norm of all logits?

    Parameters
    ----------
    logits : array of shape (n, K)
        Unnormalized log-scores.
    p : float
        Exponent, at least 1. In the paper, the exponent is selected on held-out data.

    Returns
    -------
    array of shape (n,)
        max(z - mean z) / ||z - mean z||_p, in [0, 1]; higher is more confident. If all logits are
        equal, the value is 0.

    Raises
    ------
    ShapeError, DomainError
        As in `abstain.Predictions`, and if `p` is below 1.

    References
    ----------
    Cattelan & Silva (2024), How to Fix a Broken Confidence Estimator,
    https://arxiv.org/abs/2305.15508 (MaxLogit-pNorm).

    Examples
    --------
    >>> normalized_max_logit([[3.0, 0.0, 0.0]], p=2).round(4).tolist()
    [0.8165]
    """
    exponent = checks.number(p, "p")
    if exponent < 1:
        raise DomainError(f"`p` must be at least 1; got {exponent!r}")
    return kernels.apply_to_arrays(partial(kernels.normalized_max, p=exponent), logits)


def _energy(predictions: Predictions, temperature: float = 1.0) -> FloatArray:
    return temperature * compute_from_class_scores(kernels.log_sum_exp, predictions, temperature)


MLS = class_score_entry(
    "mls",
    "Maximum logit",
    kernels.max_log_score,
    "how strong the evidence for the prediction is: the largest logit",
    "Hendrycks et al. (2022), https://arxiv.org/abs/1911.11132, section 3",
    function="max_logit(logits)",
    needs_logits=True,
    has_temperature=False,
)

LOGIT_MARGIN = class_score_entry(
    "logit_margin",
    "Logit margin",
    kernels.log_gap,
    "how far the prediction is from changing: largest minus second largest logit",
    "Streeter (2018), https://arxiv.org/abs/1802.07697; Cattelan & Silva (2024), "
    "https://arxiv.org/abs/2305.15508 (LogitsMargin)",
    function="logit_margin(logits)",
    has_temperature=False,
)

ENERGY = Score(
    "energy",
    "Energy",
    _energy,
    frozenset({ScoreNeed.LOGITS}),
    "how much evidence there is for any class: logsumexp of the logits",
    "Liu et al. (2020), https://arxiv.org/abs/2010.03759, eq. 4",
    compute_at_temperature=_energy,
    function="negative_energy(logits)",
    kernel=kernels.log_sum_exp,
    is_multiplied_by_temperature=True,
)

PNORM = class_score_entry(
    "pnorm",
    "MaxLogit-pNorm",
    partial(kernels.normalized_max, p=DEFAULT_P),
    f"the largest centered logit over the {DEFAULT_P:g}-norm of the centered logits",
    "Cattelan & Silva (2024), https://arxiv.org/abs/2305.15508 (MaxLogit-pNorm)",
    function="normalized_max_logit(logits)",
    needs_logits=True,
    has_temperature=False,
)
