"""Confidence scores from logits: their size, which the softmax does not contain, and their gap.

Arrays, gradients and tracing as in `abstain.confidence.softmax_scores`.
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

#: Default exponent of `normalized_max_logit`. The authors select it on held-out data, and a value
#: selected for the model is better.
DEFAULT_P = 4.0


def max_logit(logits: AnyArray) -> AnyArray:
    """Largest logit.

    How strong is the evidence for the predicted class?

    Parameters
    ----------
    logits : array of shape (n, K)
        Unnormalized log-scores.

    Returns
    -------
    array of shape (n,)
        Any real number; higher is more confident.

    Raises
    ------
    ShapeError, DomainError
        As for `abstain.Predictions`.

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
    """Gap between the two largest logits.

    How far is the prediction from changing?

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        One of the two.

    Returns
    -------
    array of shape (n,)
        z1 - z2 = log(p1 / p2), at least 0; higher is more confident. 750 where all other
        classes have probability 0.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As for `abstain.Predictions`.

    Notes
    -----
    Unlike `probability_margin`, it depends on two classes only, so a temperature changes its scale
    and not its order. With two classes it equals `max_softmax_response`.

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
    """Negative free energy of the logits.

    How much evidence is there for any class?

    Parameters
    ----------
    logits : array of shape (n, K)
        Unnormalized log-scores.
    temperature : float
        Divides the logits; the result is multiplied by it.

    Returns
    -------
    array of shape (n,)
        T logsumexp(z / T), any real number; higher is more confident.

    Raises
    ------
    ShapeError, DomainError
        As for `abstain.Predictions`.

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
    """Largest centered logit over the p-norm of the centered logits (MaxLogit-pNorm).

    How strong is the top logit for logits of this overall size?

    Parameters
    ----------
    logits : array of shape (n, K)
        Unnormalized log-scores.
    p : float
        The exponent, at least 1. The authors tune it on held-out data.

    Returns
    -------
    array of shape (n,)
        max(z - mean z) / ||z - mean z||_p, in [0, 1]; higher is more confident; 0 for equal
        logits.

    Raises
    ------
    ShapeError, DomainError
        As for `abstain.Predictions`; also an exponent below 1.

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
