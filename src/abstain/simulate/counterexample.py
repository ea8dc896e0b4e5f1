"""Failures among the most confident: where AURC exceeds 2 x SELE."""

from abstain._foundation import checks
from abstain.simulate.population import Population
from abstain.simulate.step_scores import StepScores
from abstain.simulate.two_gaussians import inner


def two_sele_counterexample(
    top: float = 0.1, *, inside: float = 0.5, outside: float = 0.0
) -> Population:
    r"""Make a population whose AURC exceeds 2 x SELE.

    Answers: is 2 x SELE an upper bound of the AURC? Not of every score.

    Parameters
    ----------
    top : float, default=0.1
        The most confident share q of the samples, between 0 and 1, both excluded.
    inside, outside : float, default=0.5, 0.0
        Failure probabilities within that share and outside of it, in [0, 1]. With inside below
        outside the sign of the gap turns.

    Returns
    -------
    Population
        0/1 loss, confidence uniform on [0, 1].
        AURC - 2 SELE = (inside - outside) q (q - 1 - ln q), which is above 0 for inside > outside.

    Raises
    ------
    DomainError
        If `top` is not between 0 and 1 or a probability is not in [0, 1].

    Notes
    -----
    Proof. In the population AURC = E[loss x -ln(1-u)] and SELE = E[loss x u], so that with
    c = 1 - u the gap is the integral of w(c) m(c), w(c) = -ln c - 2 (1 - c), m the mean loss.
    W(q), the integral of w from 0 to q, is q (q - 1 - ln q): above 0 on (0, 1), since
    ln q < q - 1, and 0 at 1. The constant `outside` thus adds nothing, and the gap is
    (inside - outside) W(q). Pointwise, w > 0 exactly for u above 0.7968 (= 1 + W_0(-2/e²)/2, W_0
    Lambert's function): a failure trusted more than 79.68 % of all samples adds more to AURC than
    to 2 SELE. By parts, the gap is minus the integral of W dm: at most 0 if the risk never rises
    with confidence, at least 0 if it never falls, 0 for a random order. So 2 x SELE bounds
    the AURC of every score whose risk falls with confidence, and of no other in general.

    This is a construction of our own, proven above, for populations. For a finite sample [1]_ has
    one: of five samples only the most confident has a loss, and its plug-in weight is H_5 = 2.28,
    above the 2 of 2 x SELE. Four samples do already.

    References
    ----------
    .. [1] Zhou et al. (2025), A novel characterization of the population area under the risk
       coverage curve, eq. 34-36, https://arxiv.org/abs/2410.15361
    .. [2] Franc et al. (2023), Optimal strategies for reject option classifiers (SELE),
       https://jmlr.org/papers/v24/21-0048.html

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.two_sele_counterexample(top=0.1, inside=0.5)
    >>> round(population.aurc(), 6), round(population.two_sele, 6)
    (0.165129, 0.095)
    """
    q = inner(top, "top")
    risks = (checks.fraction(inside, "inside"), checks.fraction(outside, "outside"))
    return StepScores((q, 1.0), risks, "two-sele-counterexample")
