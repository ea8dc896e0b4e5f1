"""Confidence scores from Monte Carlo samples, such as dropout passes or ensemble members.

The input is an array of logits or probabilities of S >= 2 Monte Carlo samples, shape (n, S, K). The
result is a float64 array of confidences, shape (n,). Invalid arrays raise the errors of
`abstain.Predictions`. `abstain.confidence.softmax_scores` describes the supported array libraries
and gradients. The definitions follow Jaeger et al. (2023), A Call to Reflect on Evaluation
Practices for Failure Detection in Image Classification, https://arxiv.org/abs/2211.15259.
"""

from typing import cast

from abstain.confidence import kernels
from abstain.confidence.entry import Score, ScoreNeed, as_log_odds, sample_score_entry
from abstain.predictions import Predictions
from abstain.predictions.outputs import ClassScores, validate_class_scores
from abstain.typing import AnyArray, FloatArray


def mean_softmax_response(
    logit_samples: AnyArray | None = None, *, probability_samples: AnyArray | None = None
) -> AnyArray:
    """Compute the log-odds of the top class of the mean softmax.

    The mean softmax is the average over the Monte Carlo samples.

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        Monte Carlo samples. Pass exactly one of these arguments.

    Returns
    -------
    array of shape (n,)
        log p - log(1 - p) of the largest mean probability p, at least -log(K - 1); higher is
        more confident. `scipy.special.expit` converts the value to p.

    Examples
    --------
    >>> from scipy.special import expit
    >>> p = [[[0.9, 0.1], [0.5, 0.5]]]
    >>> expit(mean_softmax_response(probability_samples=p)).round(6).tolist()
    [0.7]
    """
    kernel = kernels.on_mean_probabilities(kernels.log_odds)
    return kernels.apply_to_sample_arrays(kernel, logit_samples, probability_samples)


def negative_entropy_of_mean(
    logit_samples: AnyArray | None = None, *, probability_samples: AnyArray | None = None
) -> AnyArray:
    """Compute the negative entropy of the mean softmax (negative total uncertainty).

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        Monte Carlo samples. Pass exactly one of these arguments.

    Returns
    -------
    array of shape (n,)
        Sum of p log p in nats, from -log K to 0; higher is more confident. The score is the sum of
        `negative_expected_entropy` and `negative_mutual_information`.

    Examples
    --------
    >>> p = [[[1.0, 0.0], [0.0, 1.0]]]
    >>> negative_entropy_of_mean(probability_samples=p).round(4).tolist()
    [-0.6931]
    """
    kernel = kernels.on_mean_probabilities(kernels.negative_entropy)
    return kernels.apply_to_sample_arrays(kernel, logit_samples, probability_samples)


def negative_expected_entropy(
    logit_samples: AnyArray | None = None, *, probability_samples: AnyArray | None = None
) -> AnyArray:
    """Compute the negative mean entropy of the Monte Carlo samples.

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        Monte Carlo samples. Pass exactly one of these arguments.

    Returns
    -------
    array of shape (n,)
        Negative mean entropies in nats, from -log K to 0; higher is more confident.

    Examples
    --------
    >>> p = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]
    >>> negative_expected_entropy(probability_samples=p).round(4).tolist()
    [0.0, -0.6931]
    """
    return kernels.apply_to_sample_arrays(
        kernels.expected_entropy, logit_samples, probability_samples
    )


def negative_mutual_information(
    logit_samples: AnyArray | None = None, *, probability_samples: AnyArray | None = None
) -> AnyArray:
    """Compute the negative mutual information between class and Monte Carlo sample.

    A high value means that the Monte Carlo samples agree.

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        Monte Carlo samples. Pass exactly one of these arguments.

    Returns
    -------
    array of shape (n,)
        Negative mutual information in nats, from -log min(S, K) to 0; higher is more confident. If
        all Monte Carlo samples are equal, the value is 0.

    References
    ----------
    Houlsby et al. (2011), Bayesian Active Learning, https://arxiv.org/abs/1112.5745, eq. 2.

    Examples
    --------
    >>> p = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]
    >>> negative_mutual_information(probability_samples=p).round(4).tolist()
    [-0.6931, 0.0]
    """
    return kernels.apply_to_sample_arrays(
        kernels.mutual_information, logit_samples, probability_samples
    )


def negative_softmax_deviation(
    logit_samples: AnyArray | None = None, *, probability_samples: AnyArray | None = None
) -> AnyArray:
    """Compute the negative standard deviation of the softmax over the Monte Carlo samples.

    A high value means that the probabilities vary little between Monte Carlo samples.

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        Monte Carlo samples. Pass exactly one of these arguments.

    Returns
    -------
    array of shape (n,)
        Negative standard deviations, averaged over the classes, from -1/2 to 0; higher is more
        confident. The divisor of the variance is S. FD-Shifts calls this score softmax variance,
        although its published numbers use the standard deviation.

    Examples
    --------
    >>> p = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]
    >>> negative_softmax_deviation(probability_samples=p).tolist()
    [-0.5, 0.0]
    """
    return kernels.apply_to_sample_arrays(
        kernels.negative_deviation, logit_samples, probability_samples
    )


def penalized_softmax_response(
    logit_samples: AnyArray | None = None, *, probability_samples: AnyArray | None = None
) -> AnyArray:
    """Compute the mean minus the standard deviation of the top class's probability, minus 1.

    The score is lower if the Monte Carlo samples disagree.

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        Monte Carlo samples. Pass exactly one of these arguments.

    Returns
    -------
    array of shape (n,)
        The value -(mean of 1 - p) - (standard deviation of p), from -3/2 to 0; higher is more
        confident. Here, p is the probability of the top class of the mean softmax in each Monte
        Carlo sample. The divisor of the variance is S.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As in `abstain.Predictions`.

    Notes
    -----
    The value of FD-Shifts is larger by 1. Subtracting 1 avoids rounding errors for probabilities
    near 1. FD-Shifts also uses the standard deviation of the first sample for all samples. The WAIC
    of Choi et al. is the mean of log-likelihoods minus their variance.

    References
    ----------
    Choi et al. (2018), WAIC, but why? Generative ensembles for robust anomaly detection,
    https://arxiv.org/abs/1810.01392; "mcd_waic" in the code of FD-Shifts,
    https://github.com/IML-DKFZ/fd-shifts.

    Examples
    --------
    >>> p = [[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.7, 0.3]]]
    >>> penalized_softmax_response(probability_samples=p).round(4).tolist()
    [-0.5, -0.3]
    """
    return kernels.apply_to_sample_arrays(
        kernels.penalized_mean, logit_samples, probability_samples
    )


def mean_max_logit(logit_samples: AnyArray) -> AnyArray:
    """Compute the largest logit after averaging over the Monte Carlo samples.

    Parameters
    ----------
    logit_samples : array of shape (n, S, K)
        Logits of each Monte Carlo sample.

    Returns
    -------
    array of shape (n,)
        Largest mean logits, any real numbers; higher is more confident.

    Examples
    --------
    >>> mean_max_logit([[[4.0, 0.0], [2.0, 2.0]]]).tolist()
    [3.0]
    """
    samples = validate_class_scores(logit_samples, None, samples=True, keep_library=True)
    return kernels.largest_mean_logit(samples)


def _mean_logit(predictions: Predictions) -> FloatArray:
    samples = cast("ClassScores", predictions.samples)
    return cast("FloatArray", kernels.largest_mean_logit(samples))


_JAEGER = "Jaeger et al. (2023), https://arxiv.org/abs/2211.15259"

ENTRIES = (
    as_log_odds(
        sample_score_entry(
            "mcd_msr",
            "Monte-Carlo maximum softmax response",
            kernels.on_mean_probabilities(kernels.log_odds),
            "log-odds of the top class of the mean softmax",
            _JAEGER,
            function="mean_softmax_response(logit_samples)",
        )
    ),
    Score(
        "mcd_mls",
        "Monte-Carlo maximum logit",
        _mean_logit,
        frozenset({ScoreNeed.LOGIT_SAMPLES}),
        "the largest mean logit",
        _JAEGER,
        function="mean_max_logit(logit_samples)",
    ),
    sample_score_entry(
        "mcd_pe",
        "Monte-Carlo predictive entropy",
        kernels.on_mean_probabilities(kernels.negative_entropy),
        "minus the entropy of the mean softmax, in nats",
        _JAEGER,
        function="negative_entropy_of_mean(logit_samples)",
    ),
    sample_score_entry(
        "mcd_ee",
        "Expected entropy",
        kernels.expected_entropy,
        "minus the mean entropy of the samples, in nats",
        _JAEGER,
        function="negative_expected_entropy(logit_samples)",
    ),
    sample_score_entry(
        "mcd_mi",
        "Mutual information",
        kernels.mutual_information,
        "whether the samples agree: minus their mutual information with the class, in nats",
        _JAEGER,
        function="negative_mutual_information(logit_samples)",
    ),
    sample_score_entry(
        "mcd_sv",
        "Softmax variance",
        kernels.negative_deviation,
        "minus the standard deviation of the softmax over the samples, averaged over classes",
        _JAEGER,
        function="negative_softmax_deviation(logit_samples)",
    ),
    sample_score_entry(
        "mcd_waic",
        "Monte-Carlo WAIC",
        kernels.penalized_mean,
        "the mean probability of the top class minus its standard deviation over the samples, "
        "minus 1",
        "Choi et al. (2018), https://arxiv.org/abs/1810.01392, as in the code of FD-Shifts",
        function="penalized_softmax_response(logit_samples)",
    ),
)
