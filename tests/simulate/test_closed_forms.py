"""The numbers of single populations, by formulas and by libraries that they were not made with."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad, simpson
from scipy.special import lambertw, xlogy
from scipy.stats import beta, gamma, lognorm, multivariate_normal, norm

import abstain as ab
from abstain import simulate
from abstain.errors import DomainError, InputError, ShapeError
from abstain.simulate.risk_curve import integrate_coverage, integrate_line

TIES = ("averaged", "definition", "trapezoid")


def test_uniform_probabilities():
    population = simulate.beta_scores(1, 1)
    assert population.aurc() == pytest.approx(1 / 4, rel=1e-14)
    assert population.augrc == pytest.approx(1 / 6, rel=1e-14)
    assert population.risk == 0.5
    c = np.linspace(0, 1, 11)
    assert population.selective_risk(c) == pytest.approx(c / 2, abs=1e-12)
    assert population.mean_loss(0.3) == pytest.approx(0.7, rel=1e-12)
    assert population.partial_augrc(0, 0.5) == pytest.approx(1 / 48, rel=1e-12)


@pytest.mark.parametrize(("risk", "separation"), [(0.1, 1.6), (0.3, -1), (0.02, 4)])
def test_two_gaussians_by_their_auroc_and_their_thresholds(risk, separation):
    population = simulate.two_gaussians(risk, separation)
    auroc = norm.cdf(separation / np.sqrt(2))
    assert population.augrc == pytest.approx(
        (1 - auroc) * risk * (1 - risk) + risk**2 / 2, rel=1e-12
    )
    wrong, right = norm(0, 1), norm(separation, 1)

    def accepted(t):
        return risk * wrong.sf(t) + (1 - risk) * right.sf(t)

    def integrand(t):
        density = risk * wrong.pdf(t) + (1 - risk) * right.pdf(t)
        return risk * wrong.sf(t) / accepted(t) * density

    aurc = quad(integrand, -9, 9 + separation, epsabs=1e-12, limit=200, points=[0, separation])[0]
    assert population.aurc() == pytest.approx(aurc, abs=1e-10)
    t = np.array([-1.0, 0.5, 2.0])
    assert population.coverage(t) == pytest.approx(accepted(t), rel=1e-12)
    assert population.generalized_risk(accepted(t)) == pytest.approx(risk * wrong.sf(t), rel=1e-11)
    assert population.threshold(accepted(t)) == pytest.approx(t, abs=1e-11)
    odds = risk * wrong.pdf(t) / ((1 - risk) * right.pdf(t))
    assert population.mean_loss(t) == pytest.approx(odds / (1 + odds), rel=1e-10)


@pytest.mark.parametrize(("risk", "slope"), [(0.1, 1.5), (0.5, 0.7), (0.6, -2)])
def test_probit_scores_are_bivariate_normal(risk, slope):
    population = simulate.gaussian_scores(risk, slope=slope)
    intercept = np.sqrt(1 + slope**2) * norm.ppf(risk)
    s = np.array([-2.0, -0.3, 0.0, 1.1])
    assert population.mean_loss(s) == pytest.approx(norm.cdf(intercept - slope * s), rel=1e-9)
    rho = -slope / np.sqrt(1 + slope**2)
    both = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    result = population.generalized_risk(norm.sf(s))
    exact = [both.cdf([norm.ppf(risk), -x]) for x in s]
    assert result == pytest.approx(exact, abs=1e-7)
    area = quad(
        lambda x: norm.cdf(x) * norm.cdf(intercept - slope * x) * norm.pdf(x), -9, 9, epsabs=1e-13
    )[0]
    assert population.augrc == pytest.approx(area, abs=1e-11)


def test_logistic_scores_have_the_risk_requested():
    for risk, slope in ((0.1, 1.5), (0.5, 3), (0.9, -0.2), (0.001, 20)):
        population = simulate.gaussian_scores(risk, slope=slope, link="logistic")
        assert population.curve.generalized(np.array(1.0)) == pytest.approx(risk, rel=1e-9)
        a, s = population.intercept, 0.4
        assert population.mean_loss(s) == pytest.approx(1 / (1 + np.exp(slope * s - a)), rel=1e-9)


@pytest.mark.parametrize(("a", "b", "power"), [(4, 1, 1), (2, 3, 0.5), (0.5, 0.5, 3), (3, 1, 2)])
def test_beta_scores_are_as_honest_as_requested(a, b, power):
    population = simulate.beta_scores(a, b, power=power)
    law = beta(a, b)
    c = np.array([0.1, 0.5, 0.93])
    assert population.rank(c) == pytest.approx(law.cdf(c), rel=1e-10)
    assert population.mean_loss(c) == pytest.approx(1 - c**power, rel=1e-9)
    accepted = [quad(lambda x: (1 - x**power) * law.pdf(x), t, 1)[0] for t in c]
    assert population.generalized_risk(law.sf(c)) == pytest.approx(accepted, abs=1e-8)


def test_beta_scores_at_the_top_keep_their_digits():
    population = simulate.beta_scores(200, 3)
    low = population.selective_risk(1e-8)
    # Next to confidence 1 the tail of Beta(a, 3) is k y^3, with mean 3 y/4 below y.
    k = np.exp(beta(200, 3).logpdf(0.5) - 201 * np.log(0.5)) / 3
    assert low == pytest.approx(0.75 * (1e-8 / k) ** (1 / 3), rel=0.01)


# ---------------------------------------------------------------------------------------- ties
def test_discrete_scores_by_hand():
    population = simulate.discrete_scores([0.9, 0.1, 0.5], [0.5, 0.2, 0.3], [0.0, 1.0, 0.5])
    curve = np.array([0.0, 0.15 / 0.8, 0.35])  # selective risk at coverages 0.5, 0.8, 1
    widths = np.array([0.5, 0.3, 0.2])
    assert population.aurc(ties="definition") == pytest.approx(widths @ curve)
    assert population.aurc(ties="trapezoid") == pytest.approx(
        0.3 * curve[1] / 2 + 0.2 * (curve[1] + curve[2]) / 2
    )
    # Between 0.5 and 0.8: 0.5 (c - 0.5)/c; between 0.8 and 1: (0.15 + c - 0.8)/c.
    mixed = 0.5 * (0.3 - 0.5 * np.log(0.8 / 0.5)) + 0.2 - 0.65 * np.log(1 / 0.8)
    assert population.aurc() == pytest.approx(mixed)
    assert population.augrc == pytest.approx(0.3 * 0.15 / 2 + 0.2 * (0.15 + 0.35) / 2)
    assert population.rank([0.1, 0.5, 0.9, 0.4]).tolist() == pytest.approx([0.2, 0.5, 1, 0.2])
    assert population.coverage([0.1, 0.5, 0.9, 0.95]).tolist() == pytest.approx([1, 0.8, 0.5, 0])
    assert population.mean_loss([0.1, 0.5, 0.9]).tolist() == [1, 0.5, 0]
    assert population.threshold([0.3, 0.5, 0.6, 1]).tolist() == [0.9, 0.9, 0.5, 0.1]


def test_masses_that_sum_to_one_only_nearly_are_taken_for_it():
    population = simulate.discrete_scores(np.arange(40.0), np.full(40, 1 / 40), np.full(40, 0.5))
    assert population.coverage(-1.0) == population.coverage(0.0) == population.rank(39.0) == 1
    assert population.coverage(np.arange(40.0)).max() <= 1
    assert population.risk == pytest.approx(0.5)
    assert population.generalized_risk(population.coverage(0.0)) == pytest.approx(0.5)


def test_discrete_scores_are_their_own_weighted_sample():
    """The metrics of the levels with their masses as weights: the population itself."""
    population = simulate.discrete_scores()
    data = population.confidence, population.risks
    weight = population.mass * 1e12  # estimators that count see a large sample
    assert ab.aurc(*data, weight=weight) == pytest.approx(population.aurc(ties="trapezoid"))
    assert ab.augrc(*data, weight=weight) == pytest.approx(population.augrc)
    assert ab.aurc(*data, weight=weight, estimator="plugin") == pytest.approx(population.aurc())


def test_cutting_gives_the_discrete_population():
    base = simulate.two_gaussians()
    cuts = np.linspace(-1, 2.5, 8)
    coarse = simulate.cut(base, cuts)
    edges = np.concatenate(([1.0], base.coverage(cuts), [0.0]))
    accepted = base.generalized_risk(edges)
    mass = -np.diff(edges)
    same = simulate.discrete_scores(np.arange(9.0), mass, -np.diff(accepted) / mass)
    for ties in TIES:
        assert coarse.aurc(ties=ties) == pytest.approx(same.aurc(ties=ties), rel=1e-12)
    assert coarse.augrc == pytest.approx(same.augrc, rel=1e-12)
    assert coarse.optimal_aurc == pytest.approx(same.optimal_aurc)
    levels = np.arange(-1.0, 10.0, 0.5)
    assert coarse.rank(levels) == pytest.approx(same.rank(levels))
    assert coarse.coverage(levels) == pytest.approx(same.coverage(levels))
    assert coarse.threshold(np.linspace(0.01, 1, 99)).tolist() == (
        same.threshold(np.linspace(0.01, 1, 99)).tolist()
    )


def test_saturation_by_hand():
    """Uniform probabilities of which all above 0.5 are one: risk 1/4 up to coverage 1/2."""
    tied = simulate.saturate(simulate.beta_scores(1, 1), 0.5)
    # Then the risk is c/2 again, as if nothing were tied.
    assert tied.aurc() == pytest.approx(0.5 * 0.25 + (1 - 0.25) / 4)
    assert tied.selective_risk([0.1, 0.5, 0.8]).tolist() == pytest.approx([0.25, 0.25, 0.4])
    assert (tied.rank(0.5), tied.coverage(0.5), tied.mean_loss(0.5)) == pytest.approx(
        (1, 0.5, 0.25)
    )
    assert tied.coverage(0.6) == 0


# ------------------------------------------------------------------------- losses and the bound
@pytest.mark.parametrize(
    ("options", "law"),
    [
        ({"power": 1}, gamma(1)),
        ({"power": 0.4, "variation": 2}, gamma(0.25, scale=4)),
        ({"power": 2, "noise": "lognormal"}, lognorm(np.sqrt(np.log(2)), scale=2**-0.5)),
    ],
)
def test_optima_of_continuous_losses(options, law):
    """AUGRC of the best order is half the mean of the smaller of two losses."""
    population = simulate.continuous_loss(0.5, **options)
    scale, power = 0.5 * (1 + options["power"]), options["power"]

    def exceeds(x):
        return quad(lambda c: law.sf(x / (scale * c**power)), 0, 1, epsabs=1e-10)[0]

    # In logarithms, since the tails are long.
    area = quad(lambda y: np.exp(y) * exceeds(np.exp(y)) ** 2 / 2, -20, 5, epsabs=1e-9)[0]
    assert population.optimal_augrc == pytest.approx(area, abs=2e-8)
    assert law.mean() == pytest.approx(1)


@pytest.mark.parametrize("noise", ["gamma", "lognormal"])
@pytest.mark.parametrize(("power", "variation"), [(0.5, 0.01), (1.0, 0.02), (2.0, 0.1)])
def test_optima_of_losses_with_little_noise(noise, power, variation):
    """The loss is sharp: an average of its law over a coarse grid of coverages has steps."""
    population = simulate.continuous_loss(0.5, power=power, noise=noise, variation=variation)
    spread = np.sqrt(np.log1p(variation**2))
    law = (
        gamma(variation**-2, scale=variation**2)
        if noise == "gamma"
        else lognorm(spread, scale=np.exp(-(spread**2) / 2))
    )
    # E[P(N > x c^-power)] over noise in place of coverages, by Gauss-Legendre over its quantiles.
    node, weight = np.polynomial.legendre.leggauss(60)
    z = 7 * node
    n = law.isf(norm.sf(z))
    chance = 7 * weight * norm.pdf(z)
    x = np.linspace(0, n.max(), 20_001)
    f = np.minimum(x[:, None] / n, 1) ** (1 / power) @ (chance / chance.sum())
    scale = 0.5 * (power + 1)
    aurc = scale * simpson(1 - f + xlogy(f, f), x=x)
    augrc = scale * simpson((1 - f) ** 2 / 2, x=x)
    assert population.optimal_aurc == pytest.approx(aurc, abs=1e-6)
    assert population.optimal_augrc == pytest.approx(augrc, abs=1e-6)
    assert population.optimal_aurc < population.aurc()


def test_an_exponential_loss_in_closed_form():
    """The smaller of two exponential losses has half their mean."""
    population = simulate.continuous_loss(2.0, power=0)
    assert population.optimal_augrc == pytest.approx(0.5, rel=1e-10)
    # E[-L ln F(L)]: the integral of -ln(1 - e^-x) x e^-x is 2 - pi²/6.
    assert population.optimal_aurc == pytest.approx(2 * (2 - np.pi**2 / 6), rel=1e-10)
    assert population.aurc() == population.risk == 2


def test_the_counterexample_and_its_proof():
    gap = lambda q: q * (q - 1 - np.log(q))  # noqa: E731
    for top, inside, outside in ((0.1, 0.5, 0.0), (0.5, 0.4, 0.1), (0.9, 0.1, 0.6)):
        population = simulate.two_sele_counterexample(top, inside=inside, outside=outside)
        result = population.aurc() - population.two_sele
        assert result == pytest.approx((inside - outside) * gap(top), rel=1e-10)
        assert (result > 0) == (inside > outside)
    u = 1 + lambertw(-2 * np.exp(-2)).real / 2
    assert u == pytest.approx(0.7968, abs=5e-5)
    assert -np.log1p(-u) == pytest.approx(2 * u)
    for rank in (0.5, 0.79, 0.80, 0.99):
        assert (-np.log1p(-rank) > 2 * rank) == (rank > u)


def test_the_counterexample_shows_in_samples():
    c, x = simulate.two_sele_counterexample().sample(20_000, rng=1)
    assert ab.aurc(c, x, estimator="plugin") > 2 * ab.aurc(c, x, estimator="sele")
    c, x = simulate.two_gaussians().sample(20_000, rng=1)
    assert ab.aurc(c, x, estimator="plugin") < 2 * ab.aurc(c, x, estimator="sele")


def test_random_and_perfect_order():
    for r in (0.0, 0.2, 1.0):
        far, near = simulate.random_order(r), simulate.oracle_order(r)
        assert far.aurc() == pytest.approx(r)
        assert far.augrc == pytest.approx(r / 2)
        assert near.aurc() == pytest.approx(r + (1 - r) * np.log(1 - r) if r < 1 else 1)
        assert near.augrc == pytest.approx(r * r / 2)
        assert near.aurc() == pytest.approx(far.optimal_aurc)


def test_ranks_by_function():
    population = simulate.rank_scores(lambda u: 0.5 * (1 - u) ** 3)
    assert population.risk == pytest.approx(1 / 8, rel=1e-12)
    assert population.selective_risk(0.5) == pytest.approx(1 / 64, rel=1e-12)
    assert population.aurc() == pytest.approx(1 / 32, rel=1e-12)
    steps = simulate.rank_scores(lambda u: np.where(u < 0.8, 0.0, 0.5), breaks=[0.8])
    assert steps.aurc() == pytest.approx(simulate.two_sele_counterexample(0.2).aurc(), rel=1e-12)


# ---------------------------------------------------------------------------------- quadrature
def test_integrals_with_singular_ends():
    one = np.ones_like
    assert integrate_coverage(one, lambda c, left: -np.log(left), 0, 1) == pytest.approx(
        1, rel=1e-12
    )
    root = integrate_coverage(one, lambda c, left: 1 / np.sqrt(c), 0.0, 0.25)
    assert root == pytest.approx(1, rel=1e-8)  # what lies below 4e-18 of the range is not seen
    assert integrate_coverage(lambda c: c**2, lambda c, left: left, 0.2, 0.7) == pytest.approx(
        dblquad(lambda y, x: x**2, 0.2, 0.7, lambda x: x, lambda x: 0.7)[0], rel=1e-12
    )
    bell = integrate_line(lambda x: np.exp(-x * x / 2), -12, 12)
    assert bell == pytest.approx(np.sqrt(2 * np.pi), rel=1e-14)


def test_a_jump_that_was_not_named_is_told():
    jumps = simulate.rank_scores(lambda u: np.where(u < 0.3, 0.5, 0.0))
    with pytest.raises(InputError, match=r"could not be integrated to 1e-10: .* pass the ranks"):
        jumps.aurc()


# -------------------------------------------------------------------------------------- options
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: simulate.two_gaussians(0), DomainError, "`risk` must lie between 0 and 1"),
        (lambda: simulate.two_gaussians(1.2), DomainError, r"`risk` must lie in \[0, 1\]"),
        (lambda: simulate.two_gaussians(0.1, np.inf), DomainError, "`separation` must be finite"),
        (lambda: simulate.gaussian_scores(link="cauchy"), InputError, "`link` must be one of"),
        (lambda: simulate.gaussian_scores(slope="steep"), InputError, "`slope` must be a number"),
        (lambda: simulate.beta_scores(0, 1), DomainError, "`a` must be above 0"),
        (lambda: simulate.beta_scores(power=-1), DomainError, "`power` must be above 0"),
        (lambda: simulate.discrete_scores([1, 2], [0.5], [0, 0]), ShapeError, "`mass` must have one"),
        (lambda: simulate.discrete_scores([1, 2], [0.5, 0.6], [0, 0]), DomainError, "must sum to 1"),
        (lambda: simulate.discrete_scores([1, 2], [1, 0], [0, 0]), DomainError, "must be above 0"),
        (lambda: simulate.discrete_scores([1, 1], [0.5] * 2, [0, 0]), DomainError, "each level once"),
        (lambda: simulate.discrete_scores([1, 2], [0.5] * 2, [0, 2]), DomainError, r"in \[0, 1\]"),
        (lambda: simulate.continuous_loss(0), DomainError, "`mean` must be above 0"),
        (lambda: simulate.continuous_loss(power=-1), DomainError, "`power` must be at least 0"),
        (lambda: simulate.continuous_loss(noise="white"), InputError, "`noise` must be one of"),
        (lambda: simulate.random_order(2), DomainError, "`risk` must lie in"),
        (lambda: simulate.two_sele_counterexample(1.0), DomainError, "`top` must lie between"),
        (lambda: simulate.two_class_logits(0), DomainError, "`separation` must be above 0"),
        (lambda: simulate.make("two-gaussians-cut", levels=1), InputError, "`levels` must be an"),
        (lambda: simulate.rank_scores(0.5), InputError, "must be a function of ranks"),
        (lambda: simulate.rank_scores(lambda u: 2 * u), DomainError, r"must lie in \[0, 1\]"),
        (lambda: simulate.rank_scores(lambda u: u[:3]), ShapeError, "one number for each rank"),
        (lambda: simulate.rank_scores(lambda u: u, breaks=[3]), DomainError, "`breaks` must lie"),
        (lambda: simulate.cut(simulate.two_gaussians(), [1, 0]), DomainError, "must ascend"),
        (lambda: simulate.cut(simulate.two_gaussians(), []), ShapeError, "`thresholds` is empty"),
        (lambda: simulate.cut(simulate.discrete_scores(), [1]), InputError, "must have no ties"),
        (lambda: simulate.cut("two-gaussians", [1]), InputError, "must be a population"),
        (lambda: simulate.saturate(simulate.two_gaussians(), 1), DomainError, "`share` must lie"),
        (lambda: simulate.logits(1), InputError, "`classes` must be an integer of at least 2"),
        (lambda: simulate.logits(3, temperature=0), DomainError, "`temperature` must be above 0"),
    ],
)  # fmt: skip
def test_options_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("name", ["discrete-scores", "two-gaussians-cut"])
def test_the_mean_loss_at_the_rank_of_a_tie_is_its_own(name):
    population = simulate.make(name)
    levels = np.unique(population.sample(5000, rng=0).confidence)
    at_rank = population.mean_loss_at(population.rank(levels))
    np.testing.assert_array_equal(at_rank, population.mean_loss(levels))
    assert population.mean_loss_at(1.0) == at_rank[-1]
