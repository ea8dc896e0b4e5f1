"""Confidence scores from Monte-Carlo samples: dropout passes, ensemble members, posteriors.

Each takes `logit_samples` or, by name, `probability_samples` of shape (n, S, K), S >= 2, and
returns (n,) float64 values, higher is more confident. They raise what `abstain.Predictions`
raises on such arrays. Arrays, gradients and tracing as in `abstain.confidence.softmax_scores`;
no gradient flows from a deviation that is exactly 0. Definitions follow Jaeger et al. (2023), A
Call to Reflect on Evaluation Practices for Failure Detection in Image Classification,
https://arxiv.org/abs/2211.15259.
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
    """Log-odds of the top class of the mean softmax.

    How confident is the average sample?

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        One of the two.

    Returns
    -------
    array of shape (n,)
        log p - log(1 - p) of the largest mean probability p, at least -log(K - 1); higher is
        more confident. `scipy.special.expit` turns it into p.

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
    """Negative entropy of the mean softmax: the total uncertainty, negated.

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        One of the two.

    Returns
    -------
    array of shape (n,)
        From -log K to 0, in nats; higher is more confident. The sum of
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
    """Negative mean of the samples' entropies: the uncertainty within the samples, negated.

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        One of the two.

    Returns
    -------
    array of shape (n,)
        From -log K to 0, in nats; higher is more confident.

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
    """Negative mutual information of class and sample.

    Do the samples agree?

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        One of the two.

    Returns
    -------
    array of shape (n,)
        From -log min(S, K) to 0, in nats; higher is more confident; 0 when all samples are
        equal.

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
    """Negative spread of the softmax over the samples.

    How much do the probabilities vary over the samples?

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        One of the two.

    Returns
    -------
    array of shape (n,)
        Minus the mean over classes of the standard deviation over samples (divided by S, not
        S - 1), from -1/2 to 0; higher is more confident. Called softmax variance in FD-Shifts,
        whose published numbers use the standard deviation.

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
    """Mean probability of the top class minus its standard deviation over the samples, minus 1.

    How confident is the average sample, with a penalty for disagreement of the samples?

    Parameters
    ----------
    logit_samples, probability_samples : array of shape (n, S, K)
        One of the two.

    Returns
    -------
    array of shape (n,)
        Minus the mean of 1 - p and minus the standard deviation of p (divided by S, not S - 1), p
        the probabilities of the top class of the mean softmax, from -3/2 to 0; higher is more
        confident.

    Raises
    ------
    ShapeError, DomainError, InputError, MissingInputError
        As for `abstain.Predictions`.

    Notes
    -----
    The value is 1 less than in FD-Shifts, so that probabilities near 1 are exact. The code of
    FD-Shifts uses the standard deviations of the first row for all rows, so its numbers differ in
    all other rows. Choi et al. subtract the variance of the log-likelihoods from their mean, for
    models of the density.

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
    """Largest mean logit.

    How strong is the average evidence for the predicted class?

    Parameters
    ----------
    logit_samples : array of shape (n, S, K)
        Logits of each sample.

    Returns
    -------
    array of shape (n,)
        Any real number; higher is more confident.

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
