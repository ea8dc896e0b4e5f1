"""The Watanabe-Akaike criterion of Monte-Carlo samples: the mean less what they disagree by.

Arrays, gradients and tracing as in `abstain.confidence.monte_carlo`.
"""

from functools import partial

from abstain.confidence import kernels
from abstain.confidence.entry import Score, ScoreNeed, of_samples
from abstain.predictions.outputs import class_scores
from abstain.typing import AnyArray


def penalized_softmax_response(
    logit_samples: AnyArray | None = None, *, probability_samples: AnyArray | None = None
) -> AnyArray:
    """Mean probability of the top class less its standard deviation over the samples, less 1.

    How sure is the average sample, if what the samples disagree by counts against it?

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
    One less than FD-Shifts defines it, so that probabilities near 1 keep their digits. Its code
    reads the deviations of the first row for every row, so its numbers are others in all rows but
    that. Choi et al. subtract the variance of the log-likelihoods from their mean, for models of
    the density.

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
    samples = class_scores(logit_samples, probability_samples, samples=True, keep_library=True)
    return kernels.by_rows_of_samples(kernels.penalized_mean, samples)


WAIC = Score(
    "mcd_waic",
    "Monte-Carlo WAIC",
    partial(of_samples, kernels.penalized_mean),
    frozenset({ScoreNeed.SAMPLES}),
    "the mean probability of the top class less its standard deviation over the samples, less 1",
    "Choi et al. (2018), https://arxiv.org/abs/1810.01392, as in the code of FD-Shifts",
    function="penalized_softmax_response(logit_samples)",
)
