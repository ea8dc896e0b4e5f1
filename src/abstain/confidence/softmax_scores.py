"""Confidence scores that are functions of class probabilities.

Results have the array library (such as PyTorch, JAX or CuPy) and the device of the input. Lists and
dataframes are converted to NumPy arrays. Computations use float64, except on Apple's devices and in
JAX without x64, where they use float32.

The scores are differentiable with PyTorch and JAX. The gradient is 0 for a probability of exactly 0
and for a score at the maximum of 750. Under `jax.jit`, `jax.vmap` and `torch.func.vmap`, only
shapes are validated, not values.
"""

from functools import partial

from abstain._foundation import checks
from abstain.confidence import kernels
from abstain.confidence.entry import as_log_odds, class_score_entry
from abstain.errors import DomainError
from abstain.typing import AnyArray

#: Exponent and number of classes of `negative_generalized_entropy` that its authors recommend.
DEFAULT_GAMMA = 0.1
DEFAULT_TOP = 100


def max_softmax_response(
    logits: AnyArray | None = None,
    *,
    probabilities: AnyArray | None = None,
    temperature: float = 1.0,
) -> AnyArray:
    """Compute the log-odds of the most probable class.

    The ranking equals that of the largest softmax probability. In float32, probabilities are
    rounded to 1 for log-odds above about 17, but log-odds are not.

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        Class scores. Pass exactly one of these arguments.
    temperature : float
        Number that divides the logits.

    Returns
    -------
    array of shape (n,)
        log p - log(1 - p) of the top class, at least -log(K - 1); higher is more confident.
        `scipy.special.expit` converts the value to the probability. If all other classes have
        probability exactly 0, the value is 750.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As in `abstain.Predictions`.

    Notes
    -----
    The value is computed as z_max - logsumexp(other logits). Probabilities are divided by their
    sum. The cost is linear in the number of entries.

    References
    ----------
    Hendrycks & Gimpel (2017), A Baseline for Detecting Misclassified and Out-of-Distribution
    Examples in Neural Networks, https://arxiv.org/abs/1610.02136, section 2.

    Examples
    --------
    >>> max_softmax_response([[40.0, 0.0], [39.0, 0.0]]).tolist()
    [40.0, 39.0]
    """
    return kernels.apply_to_arrays(kernels.log_odds, logits, probabilities, temperature=temperature)


def negative_predictive_entropy(
    logits: AnyArray | None = None,
    *,
    probabilities: AnyArray | None = None,
    temperature: float = 1.0,
) -> AnyArray:
    """Compute the negative entropy of the class probabilities.

    A high value means that the softmax is concentrated on few classes.

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        Class scores. Pass exactly one of these arguments.
    temperature : float
        Number that divides the logits.

    Returns
    -------
    array of shape (n,)
        Sum of p log p in nats, from -log K to 0; higher is more confident.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As in `abstain.Predictions`.

    Notes
    -----
    Even entropies of about 1e-300 are computed accurately.

    References
    ----------
    Jaeger et al. (2023), A Call to Reflect on Evaluation Practices for Failure Detection in
    Image Classification, https://arxiv.org/abs/2211.15259 (PE).

    Examples
    --------
    >>> negative_predictive_entropy(probabilities=[[0.5, 0.5], [1.0, 0.0]]).round(4).tolist()
    [-0.6931, 0.0]
    """
    return kernels.apply_to_arrays(
        kernels.negative_entropy, logits, probabilities, temperature=temperature
    )


def probability_margin(
    logits: AnyArray | None = None,
    *,
    probabilities: AnyArray | None = None,
    temperature: float = 1.0,
) -> AnyArray:
    """Compute the gap between the two largest probabilities, on an unbounded scale.

    Answers: how much more probable is the top class than the second class?

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        Class scores. Pass exactly one of these arguments.
    temperature : float
        Number that divides the logits.

    Returns
    -------
    array of shape (n,)
        log((1 + M) / (1 - M)) with M = p1 - p2, at least 0; higher is more confident.
        ``numpy.tanh(value / 2)`` is M. If all other classes have probability 0, the value is 750.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As in `abstain.Predictions`.

    Notes
    -----
    The ranking equals that of M. With two classes, the score equals `max_softmax_response`.

    References
    ----------
    Scheffer et al. (2001), Active Hidden Markov Models for Information Extraction,
    https://doi.org/10.1007/3-540-44816-0_31.

    Examples
    --------
    >>> import numpy as np
    >>> np.tanh(probability_margin(probabilities=[[0.7, 0.2, 0.1]]) / 2).round(6).tolist()
    [0.5]
    """
    return kernels.apply_to_arrays(kernels.margin, logits, probabilities, temperature=temperature)


def negative_gini(
    logits: AnyArray | None = None,
    *,
    probabilities: AnyArray | None = None,
    temperature: float = 1.0,
) -> AnyArray:
    """Compute the log-odds of the sum of squared probabilities (DOCTOR).

    The sum is the probability that two independent samples from the softmax are the same class.

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        Class scores. Pass exactly one of these arguments.
    temperature : float
        Number that divides the logits.

    Returns
    -------
    array of shape (n,)
        log(G / (1 - G)), at least -log(K - 1); higher is more confident. G is the sum of squared
        probabilities, 1 minus the Gini impurity. `scipy.special.expit` converts the value to G. If
        all other classes have probability 0, the value is 750.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As in `abstain.Predictions`.

    Notes
    -----
    The score equals -log(D_alpha), where D_alpha = (1 - G) / G is the statistic of DOCTOR.

    References
    ----------
    Granese et al. (2021), DOCTOR: A Simple Method for Detecting Misclassification Errors,
    https://arxiv.org/abs/2106.02395 (D_alpha).

    Examples
    --------
    >>> from scipy.special import expit
    >>> expit(negative_gini(probabilities=[[0.5, 0.5], [0.8, 0.2]])).round(6).tolist()
    [0.5, 0.68]
    """
    return kernels.apply_to_arrays(kernels.gini, logits, probabilities, temperature=temperature)


def negative_generalized_entropy(
    logits: AnyArray | None = None,
    *,
    probabilities: AnyArray | None = None,
    gamma: float = DEFAULT_GAMMA,
    top: int = DEFAULT_TOP,
    temperature: float = 1.0,
) -> AnyArray:
    """Compute the negative generalized entropy of the most probable classes (GEN).

    A high value means that the softmax is concentrated on few classes. Compared with the entropy,
    small probabilities have more influence.

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        Class scores. Pass exactly one of these arguments.
    gamma : float
        Exponent, above 0 and at most 1. A smaller exponent increases the influence of small
        probabilities.
    top : int
        Number of largest probabilities in the sum. A number above K selects all classes.
    temperature : float
        Number that divides the logits.

    Returns
    -------
    array of shape (n,)
        Minus the sum of p^gamma (1 - p)^gamma; higher is more confident. The maximum is 0 if one
        class has probability 1. If all classes are selected, the minimum is -K ((K - 1) /
        K^2)^gamma, for equal probabilities.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As in `abstain.Predictions`. A DomainError is also raised if `gamma` is outside (0, 1] or
        `top` is not a positive integer.

    Notes
    -----
    If `gamma` is 1 and all classes are selected, the value is G - 1 with G as in `negative_gini`.
    The cost is linear in the number of entries. If `top` is less than K, the probabilities of each
    sample must also be sorted.

    References
    ----------
    Liu et al. (2023), GEN: Pushing the Limits of Softmax-Based Out-of-Distribution Detection,
    https://openaccess.thecvf.com/content/CVPR2023/html/Liu_GEN_Pushing_the_Limits_of_Softmax-Based_Out-of-Distribution_Detection_CVPR_2023_paper.html.

    Examples
    --------
    >>> p = [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]
    >>> negative_generalized_entropy(probabilities=p).round(4).tolist()
    [-1.7411, -1.572, 0.0]
    """
    exponent = checks.number(gamma, "gamma")
    if not 0 < exponent <= 1:
        raise DomainError(f"`gamma` must be above 0 and at most 1; got {exponent!r}")
    count = checks.positive_int(top, "top")
    kernel = partial(kernels.generalized_entropy, gamma=exponent, top=count)
    return kernels.apply_to_arrays(kernel, logits, probabilities, temperature=temperature)


_GENERALIZED_ENTROPY = partial(kernels.generalized_entropy, gamma=DEFAULT_GAMMA, top=DEFAULT_TOP)

MSR = as_log_odds(
    class_score_entry(
        "msr",
        "Maximum softmax response",
        kernels.log_odds,
        "how confident the model is in its prediction: log-odds of the most probable class",
        "Hendrycks & Gimpel (2017), https://arxiv.org/abs/1610.02136, section 2",
        function="max_softmax_response(logits)",
    )
)

PE = class_score_entry(
    "pe",
    "Predictive entropy",
    kernels.negative_entropy,
    "how concentrated the whole softmax is: minus its entropy in nats",
    "Jaeger et al. (2023), https://arxiv.org/abs/2211.15259",
    function="negative_predictive_entropy(logits)",
)

MARGIN = class_score_entry(
    "margin",
    "Probability margin",
    kernels.margin,
    "how clear the choice is: log((1 + M) / (1 - M)) with M = p1 - p2",
    "Scheffer et al. (2001), https://doi.org/10.1007/3-540-44816-0_31",
    function="probability_margin(logits)",
)

GINI = class_score_entry(
    "gini",
    "Gini (DOCTOR)",
    kernels.gini,
    "whether two draws from the softmax would agree: log(G / (1 - G)), G = sum of p^2",
    "Granese et al. (2021), https://arxiv.org/abs/2106.02395 (D_alpha)",
    function="negative_gini(logits)",
)

GEN = class_score_entry(
    "gen",
    "Generalized entropy (GEN)",
    _GENERALIZED_ENTROPY,
    "how concentrated the softmax is down to its tail: minus its generalized entropy",
    "Liu et al. (2023), https://openaccess.thecvf.com/content/CVPR2023/html/Liu_GEN_Pushing_the_"
    "Limits_of_Softmax-Based_Out-of-Distribution_Detection_CVPR_2023_paper.html",
    function="negative_generalized_entropy(logits)",
)
