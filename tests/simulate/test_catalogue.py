"""Property tests of every registered population."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest
from tests.simulate.cases import ALL_IDS, CASES, IDS, OPTIONS, POPULATIONS

from abstain import simulate
from abstain._foundation.scored import validate_samples
from abstain.errors import DomainError, InputError, UnknownNameError
from abstain.metrics import metric_named

N = 200_000
BLOCKS, SIZE = 20, 2000
TIES = ("averaged", "definition", "trapezoid")
C = np.array([0.0, 1e-9, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-6, 1.0])

every = pytest.mark.parametrize("population", POPULATIONS, ids=ALL_IDS)
untied = pytest.mark.parametrize(
    "population",
    [p for p in POPULATIONS if not p.curve.ties],
    ids=[i for i, p in zip(ALL_IDS, POPULATIONS, strict=True) if not p.curve.ties],
)

_samples = {}


def sample(population):
    """One large sample of each population, shared by the tests."""
    if id(population) not in _samples:
        _samples[id(population)] = population.sample(N, rng=20)
    return _samples[id(population)]


def areas(confidence, loss):
    """Every area of a sample, from one sort, in the order of `truths`."""
    s = validate_samples(confidence, loss)
    results = [metric_named(name).compute(s).value for name in METRICS]
    own_threshold = (
        s.groups.weight @ (s.groups.cumulative_loss / s.groups.cumulative_weight) / s.n_rows
    )
    return np.array([*results, own_threshold])


METRICS = (
    "augrc", "sele", "aurc_plugin", "aurc", "partial_aurc@50-80cov", "partial_augrc@50-80cov"
)  # fmt: skip


def truths(population):
    return np.array(
        [
            population.augrc,
            population.sele,
            population.aurc(),
            population.aurc(ties="trapezoid"),
            population.partial_aurc(0.5, 0.8, ties="trapezoid") / 0.3,
            population.partial_augrc(0.5, 0.8) / 0.3,
            population.aurc(ties="definition"),
        ]
    )


def agree(truth, confidence, loss, measures):
    """The measures of the sample lie within 5 standard errors of the truth."""
    blocks = [slice(i * SIZE, (i + 1) * SIZE) for i in range(BLOCKS)]
    parts = [measures(confidence[block], loss[block]) for block in blocks]
    error = np.std(parts, axis=0, ddof=1) * np.sqrt(SIZE / N)
    # The estimators are biased by up to about 1/n; what is rarer than one in N is not seen.
    slack = 2 * np.asarray(truth) / N + 1e-7
    assert (np.abs(measures(confidence, loss) - truth) <= 5 * error + slack).all()


# ------------------------------------------------------------------- the truth against samples
@every
def test_areas_equal_those_of_a_large_sample(population):
    c, x = sample(population)
    assert abs(x.mean() - population.risk) <= 5 * x.std() / np.sqrt(N)
    agree(truths(population), c, x, areas)


@every
def test_optima_equal_those_of_a_large_sample(population):
    _, x = sample(population)
    truth = [population.optimal_aurc, population.optimal_augrc]

    def best(_, x):
        s = validate_samples(-x, x)
        return np.array([metric_named(name).compute(s).value for name in ("aurc_plugin", "augrc")])

    agree(truth, x, x, best)


@every
def test_losses_by_rank_equal_those_of_a_large_sample(population):
    c, x = sample(population)
    for threshold in np.unique(population.threshold([0.1, 0.3, 0.5, 0.7, 0.9])):
        inside = c >= threshold
        share = population.coverage(threshold)
        assert abs(inside.mean() - share) <= 5 * np.sqrt(share * (1 - share) / N) + 1e-12
        accepted = population.generalized_risk(share)
        error = max((x * inside).std(), np.sqrt(accepted)) / np.sqrt(N)
        assert abs((x * inside).mean() - accepted) <= 5 * error


@untied
def test_ranks_are_uniform(population):
    assert kstest(population.rank(sample(population).confidence[:20_000]), "uniform").pvalue > 1e-3


# -------------------------------------------------------------------- the truth against itself
@every
def test_areas_are_the_integrals_of_the_curves(population):
    """By another route: SciPy's adaptive rule over the closed curves, not over the mean loss."""
    edges = {0.0, 1.0, *population.curve.breaks, *np.ravel(population.curve.ties).tolist()}
    edges = sorted(edge for edge in edges if 0 <= edge <= 1)
    if len(edges) > 40:
        pytest.skip("hundreds of ties: the same code as a few")
    augrc = aurc = 0.0
    for p, q in pairwise(edges):
        augrc += quad(population.generalized_risk, p, q, epsabs=1e-11)[0]
        aurc += quad(population.selective_risk, p, q, epsabs=1e-11, limit=200)[0]
    assert augrc == pytest.approx(population.augrc, abs=1e-9)
    assert aurc == pytest.approx(population.aurc(), abs=2e-8)


@every
def test_closed_areas_equal_those_of_the_quadrature(population):
    for ties in TIES:
        general = population.curve.selective_area(0.0, 1.0, ties)
        assert population.aurc(ties=ties) == pytest.approx(general, rel=1e-10, abs=1e-13)
    general = population.curve.generalized_area(0.0, 1.0)
    assert population.augrc == pytest.approx(general, rel=1e-10, abs=1e-13)


@every
def test_without_ties_the_three_meanings_are_one(population):
    results = [population.aurc(ties=ties) for ties in TIES]
    if population.curve.ties:
        assert results[1] != pytest.approx(results[0], rel=1e-6) or len(population.curve.ties) == 1
    else:
        assert results[0] == results[1] == results[2]


@every
def test_the_curves(population):
    selective, generalized = population.selective_risk(C), population.generalized_risk(C)
    assert generalized == pytest.approx(C * selective, rel=1e-9, abs=1e-15)
    assert (np.diff(generalized) >= -1e-15).all()
    assert generalized[0] == pytest.approx(0, abs=1e-100)
    assert selective[-1] == pytest.approx(population.risk, rel=1e-12)
    assert (selective >= 0).all()
    if population.binary:
        assert (selective <= 1).all()


@every
def test_mean_loss_is_the_slope_of_the_generalized_risk(population):
    u = np.array([0.013, 0.21, 0.377, 0.613, 0.891, 0.9713])
    h = 1e-5
    slope = (population.generalized_risk(1 - u + h) - population.generalized_risk(1 - u - h)) / (
        2 * h
    )
    assert population.mean_loss_at(u) == pytest.approx(slope, rel=1e-4, abs=1e-7)
    if not population.curve.ties:
        c = population.threshold(1 - u)
        assert population.mean_loss(c) == pytest.approx(slope, rel=1e-4, abs=1e-7)


@every
def test_partial_areas_add_up(population):
    for low, high in ((0.0, 0.2), (0.2, 0.55), (0.55, 1.0)):
        assert population.partial_augrc(low, high) <= population.risk * (high - low) + 1e-15
    cuts = (0.0, 1e-5, 0.2, 0.55, 1.0)
    pairs = list(pairwise(cuts))
    for ties in TIES:
        parts = [population.partial_aurc(*pair, ties=ties) for pair in pairs]
        assert sum(parts) == pytest.approx(population.aurc(ties=ties), rel=1e-11)
    parts = [population.partial_augrc(*pair) for pair in pairs]
    assert sum(parts) == pytest.approx(population.augrc, rel=1e-11)
    assert population.partial_aurc(0.3, 0.3) == population.partial_augrc(1, 1) == 0


@every
def test_no_order_is_better_than_that_of_the_losses(population):
    slack = 1e-12
    assert population.optimal_aurc <= population.aurc() + slack
    assert population.optimal_augrc <= population.augrc + slack
    falls = np.diff(population.mean_loss_at(np.linspace(0, 1, 2001))).max() <= 1e-12
    if falls:
        assert population.aurc() <= population.risk + slack
        # 2 SELE bounds the AURC of what ranks well, and of nothing else.
        assert population.aurc() <= population.two_sele + slack


# ------------------------------------------------------------------------------ ranks and draws
@every
def test_ranks_and_thresholds_are_inverse(population):
    c = np.linspace(0.01, 1, 100)
    threshold = population.threshold(c)
    assert (np.diff(threshold) <= 0).all()
    assert (population.coverage(threshold) >= c - 1e-12).all()
    grid = np.unique(threshold)
    rank = population.rank(grid)
    assert (np.diff(rank) >= 0).all()
    assert (rank >= 0).all()
    assert (rank <= 1).all()
    # P(g <= x) + P(g >= x) is 1 plus the mass at x.
    mass = rank + population.coverage(grid) - 1
    assert (mass >= -1e-12).all()
    if not population.curve.ties:
        assert mass == pytest.approx(0, abs=1e-12)
        assert population.rank(threshold) == pytest.approx(1 - c, abs=1e-9)
    assert population.coverage([-np.inf, np.inf]).tolist() == [1, 0]
    assert population.rank([-np.inf, np.inf]).tolist() == [0, 1]


@every
def test_samples_are_reproducible_and_well_formed(population):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one = population.sample(50, rng=3)
    again = population.sample(50, rng=np.random.default_rng(3))
    other = population.sample(50, rng=4)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert (one.confidence == again.confidence).all()
    assert (one.loss == again.loss).all()
    assert (one.confidence != other.confidence).any()
    assert one.confidence.shape == one.loss.shape == (50,)
    assert one.confidence.dtype == one.loss.dtype == np.float64
    c, x = sample(population)
    assert np.isfinite(c).all()
    if population.binary:
        assert set(np.unique(x)) <= {0.0, 1.0}
    if population.probability:
        assert c.min() >= 0
        assert c.max() <= 1
    for n in (0, -1, 2.0, True):
        with pytest.raises(InputError, match="`n` must be an integer of at least 1"):
            population.sample(n, rng=0)
    with pytest.raises(InputError, match="`rng` must be a seed"):
        population.sample(3, rng=-1)


@every
def test_numbers_in_numbers_out(population):
    c = float(population.threshold(0.5))
    for f, x in (
        (population.selective_risk, 0.5),
        (population.generalized_risk, 0.5),
        (population.threshold, 0.5),
        (population.mean_loss_at, 0.5),
        (population.rank, c),
        (population.coverage, c),
        (population.mean_loss, c),
    ):
        assert type(f(x)) is float
        assert f([x, x]).tolist() == [f(x)] * 2
        assert f(np.full((2, 3), x)).shape == (2, 3)
        with pytest.raises(DomainError, match=r"must (be finite|not be NaN); got nan at index 1"):
            f([x, np.nan])


@every
def test_what_is_outside_raises_an_error(population):
    for f in (population.selective_risk, population.generalized_risk, population.threshold):
        with pytest.raises(DomainError, match=r"`coverage` must lie in \[0, 1\]; got 50"):
            f([0.5, 50.0])
    with pytest.raises(DomainError, match=r"`rank` must lie in \[0, 1\]"):
        population.mean_loss_at(-0.1)
    with pytest.raises(InputError, match="`ties` must be one of 'averaged', 'definition'"):
        population.aurc(ties="mean")
    with pytest.raises(DomainError, match=r"`low` must lie in \[0, 0.3\]"):
        population.partial_aurc(0.5, 0.3)


# ------------------------------------------------------------------------------- the catalogue
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_made_by_name(name, options):
    entry = simulate.POPULATIONS[name]
    population = entry.make(**options)
    assert population.name == name
    assert set(options) <= set(entry.options)
    for option, value in options.items():
        if option in population.parameters:
            result = population.parameters[option]
            assert np.array_equal(np.sort(result, axis=None), np.sort(value, axis=None))
    assert type(population).__name__ in repr(population)


@pytest.mark.parametrize("name", simulate.POPULATIONS)
def test_entries_are_complete(name):
    entry = simulate.POPULATIONS[name]
    assert entry.title
    assert entry.meaning.endswith(".")
    assert set().union(*OPTIONS.get(name, ({},))) <= set(entry.options)
    with pytest.raises(InputError, match=f"the population '{name}' has no option `sharpness`"):
        simulate.make(name, sharpness=1)


def test_a_wrong_name_suggests_the_right_one():
    with pytest.raises(UnknownNameError, match="Did you mean 'two-gaussians'"):
        simulate.make("two-gausians")
    with pytest.raises(InputError, match=r"no option `seperation`. Did you mean 'separation'"):
        simulate.make("two-gaussians", seperation=1)


def test_every_population_is_on_its_page(root):
    page = (root / "docs" / "simulation.md").read_text(encoding="utf-8")
    assert [name for name in simulate.POPULATIONS if f"`{name}`" not in page] == []
