"""Confidence scores from class probabilities or logits, without saturation.

For NumPy arrays, lists and dataframes, the result is a NumPy array. For PyTorch, JAX, CuPy and
other array-API libraries, it is an array of the library and device of the input. Arrays in host
memory are processed by NumPy. Arrays on a device and arrays with a gradient are validated and
processed by their own library. All computations use float64, or float32 where float64 is not
available: on Apple's devices, and in JAX without x64.

Gradients propagate wherever a score is differentiable. At a tie of the two largest entries, the
gradient is that of one side or between both. A probability of exactly 0 and a score at the cap of
750 have no gradient. Under `jax.jit`, `jax.vmap` and `torch.func.vmap`, shapes are validated and
values are not.
"""

from functools import partial

from abstain._foundation import checks
from abstain.confidence import kernels
from abstain.confidence.entry import as_log_odds, class_score_entry
from abstain.errors import DomainError
from abstain.typing import AnyArray

#: The exponent and the number of classes of `negative_generalized_entropy` that its authors
#: recommend.
DEFAULT_GAMMA = 0.1
DEFAULT_TOP = 100


def max_softmax_response(
    logits: AnyArray | None = None,
    *,
    probabilities: AnyArray | None = None,
    temperature: float = 1.0,
) -> AnyArray:
    """Log-odds of the most probable class.

    How confident is the model in its prediction?

    The order of samples is that of the largest softmax probability, without its ties: in float32,
    the probability is exactly 1 for log-odds above about 17.

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        One of the two.
    temperature : float
        Divides the logits.

    Returns
    -------
    array of shape (n,)
        log p - log(1 - p) of the top class, at least -log(K - 1); higher is more confident.
        `scipy.special.expit` converts it to the probability. 750 if all other classes have
        probability exactly 0.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As for `abstain.Predictions`.

    Notes
    -----
    Computed as z_max - logsumexp(the others) in float64. Probabilities are divided by their
    sum. Linear in the number of entries.

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
    """Negative entropy of the class probabilities.

    How concentrated is the whole softmax?

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        One of the two.
    temperature : float
        Divides the logits.

    Returns
    -------
    array of shape (n,)
        Sum of p log p in nats, from -log K to 0; higher is more confident.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As for `abstain.Predictions`.

    Notes
    -----
    The term of the top class is computed with log1p, so entropies down to 1e-300 keep their order.

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
    """Gap between the two largest probabilities, unsaturated.

    How clear is the choice?

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        One of the two.
    temperature : float
        Divides the logits.

    Returns
    -------
    array of shape (n,)
        log((1 + M) / (1 - M)) with M = p1 - p2, at least 0; higher is more confident.
        ``numpy.tanh(value / 2)`` is M. 750 where all other classes have probability 0.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As for `abstain.Predictions`.

    Notes
    -----
    The order of samples is that of M. With two classes it equals `max_softmax_response`.

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
    """Sum of squared probabilities as log-odds.

    How probable is it that two classes sampled from the softmax agree?

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        One of the two.
    temperature : float
        Divides the logits.

    Returns
    -------
    array of shape (n,)
        log(G / (1 - G)) with G the sum of squared probabilities (1 - Gini impurity), at least
        -log(K - 1); higher is more confident. `scipy.special.expit` turns it into G. 750
        where all other classes have probability 0.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As for `abstain.Predictions`.

    Notes
    -----
    Minus the logarithm of DOCTOR's D_alpha, (1 - G) / G. The order of samples is that of G.

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
    """Negative generalized entropy of the most probable classes (GEN).

    How concentrated is the softmax, if small probabilities are almost as important as large ones?

    Parameters
    ----------
    logits, probabilities : array of shape (n, K)
        One of the two.
    gamma : float
        The exponent, above 0 and at most 1; the smaller, the more the small probabilities
        count.
    top : int
        Number of the largest probabilities in the sum; all of them if there are fewer.
    temperature : float
        Divides the logits.

    Returns
    -------
    array of shape (n,)
        Minus the sum of p^gamma (1 - p)^gamma, at most 0, where one class is certain; higher
        is more confident. With all classes summed, at least -K ((K - 1) / K^2)^gamma, where
        all are equally probable.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As for `abstain.Predictions`; also a `gamma` outside (0, 1], and a `top` that is not
        a whole number of at least 1.

    Notes
    -----
    Computed from the logarithms of p and of 1 - p, so that the order is kept where p rounds
    to 1. With `gamma` 1 and all classes it is G - 1, G as in `negative_gini`. Linear in the
    number of entries; with fewer than K classes each row is sorted.

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
