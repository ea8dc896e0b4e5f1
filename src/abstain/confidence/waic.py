"""The Watanabe-Akaike criterion of Monte Carlo samples: the mean minus the standard deviation.

Arrays, gradients and tracing as in `abstain.confidence.monte_carlo`.
"""

from functools import partial

from abstain.confidence import kernels
from abstain.confidence.entry import Score, ScoreNeed, compute_from_samples
from abstain.predictions.outputs import validate_class_scores
from abstain.typing import AnyArray


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
    samples = validate_class_scores(
        logit_samples, probability_samples, samples=True, keep_library=True
    )
    return kernels.apply_to_samples_by_rows(kernels.penalized_mean, samples)


WAIC = Score(
    "mcd_waic",
    "Monte-Carlo WAIC",
    partial(compute_from_samples, kernels.penalized_mean),
    frozenset({ScoreNeed.SAMPLES}),
    "the mean probability of the top class minus its standard deviation over the samples, minus 1",
    "Choi et al. (2018), https://arxiv.org/abs/1810.01392, as in the code of FD-Shifts",
    function="penalized_softmax_response(logit_samples)",
)
