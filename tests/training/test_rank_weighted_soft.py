"""Soft ranks: the right gradient, the right limit, and what it does to the confidences."""

import pytest

torch = pytest.importorskip("torch")

from abstain.training import RANK_WEIGHTS, RankWeightedLoss, rank_weighted_loss  # noqa: E402
from abstain.training import _area as area  # noqa: E402
from abstain.training import _area as soft  # noqa: E402
from abstain.training._area import soft_ranks, standard_deviation  # noqa: E402
from abstain.training._weights import check_weighting  # noqa: E402

NAMES = list(RANK_WEIGHTS)


def options(weights):
    return {"weights": weights} | ({"between": (0.3, 0.85)} if "partial" in weights else {})


def samples(n=30, seed=0):
    g = torch.Generator().manual_seed(seed)
    return (
        torch.randn(n, generator=g, dtype=torch.float64),
        torch.rand(n, generator=g, dtype=torch.float64),
    )


@pytest.mark.parametrize("weights", NAMES)
@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_smooth_weights_at_whole_ranks_equal_those_of_the_kernel(weights, n):
    chosen = check_weighting(**options(weights) | {"between": options(weights).get("between")})
    ranks = torch.arange(1, n + 1, dtype=torch.float64)
    expected = chosen.at_whole_ranks(n, ranks)
    assert torch.allclose(chosen.at_real_ranks(ranks, n), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", NAMES)
def test_smooth_weights_rise_with_the_rank(weights):
    chosen = check_weighting(**options(weights) | {"between": options(weights).get("between")})
    ranks = torch.linspace(1, 20, 1000, dtype=torch.float64)
    assert (chosen.at_real_ranks(ranks, 20).diff() >= 0).all()


def test_soft_ranks_are_counted_by_degrees():
    c = torch.tensor([0.0, 1.0, 1.0, 5.0], dtype=torch.float64)
    tight = soft_ranks(c, None, torch.tensor(1e-3), torch.float64)
    assert tight.tolist() == pytest.approx([1.0, 2.5, 2.5, 4.0])
    among = soft_ranks(c, torch.tensor([-9.0, 9.0]).double(), torch.tensor(1e-3), torch.float64)
    assert among.tolist() == pytest.approx([2.0, 3.5, 3.5, 5.0])
    loose = soft_ranks(c, None, torch.tensor(2.0), torch.float64)
    assert loose.sum().item() == pytest.approx(10.0)
    assert (loose.diff() >= 0).all()


def test_blocks_of_pairs_make_the_whole_table(monkeypatch):
    g = torch.Generator().manual_seed(0)
    c = torch.randn(23, generator=g).double().requires_grad_()
    recent, pull = torch.randn(9, generator=g).double(), torch.randn(23, generator=g).double()
    table = torch.sigmoid((c[:, None] - torch.cat((c, recent))[None, :]) / 0.3).sum(1)
    (expected,) = torch.autograd.grad(table @ pull, c)
    for pairs in (1, 100, 10**6):
        monkeypatch.setattr(soft, "MAX_PAIRS", pairs)
        ranks = soft_ranks(c, recent, torch.tensor(0.3, dtype=torch.float64), torch.float64)
        (found,) = torch.autograd.grad(ranks @ pull, c)
        assert torch.allclose(ranks, 0.5 + table, rtol=0, atol=1e-13)
        assert torch.allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", NAMES)
def test_the_limit_is_the_hard_value(weights):
    c, x = samples()
    hard = rank_weighted_loss(c, x, **options(weights)).item()
    gaps = [
        abs(rank_weighted_loss(c, x, soft=at, **options(weights)).item() - hard)
        for at in (1.0, 0.1, 0.01, 1e-4)
    ]
    assert gaps[-1] < 1e-12
    # The partial AURC is steep at both ends of its interval, and soft ranks may cross them.
    assert gaps == sorted(gaps, reverse=True) or weights == "partial-aurc"


@pytest.mark.parametrize("weights", [*NAMES, "own"])
def test_gradcheck(weights, monkeypatch):
    # The temperature is a constant to the gradient, so it must be one to the differences too.
    monkeypatch.setattr(area, "standard_deviation", lambda _: torch.tensor(1.0))
    c, x = (t.requires_grad_() for t in samples(9))
    recent = samples(5, seed=1)[0]
    given = {"weights": lambda r, n: torch.sin(r / n)} if weights == "own" else options(weights)
    for others in (None, recent):
        assert torch.autograd.gradcheck(
            lambda a, b, o=others: rank_weighted_loss(a, b, soft=0.7, recent=o, **given), (c, x)
        )


def test_gradcheck_from_logits(monkeypatch):
    monkeypatch.setattr(area, "standard_deviation", lambda _: torch.tensor(1.0))
    g = torch.Generator().manual_seed(0)
    z = torch.randn(6, 3, generator=g, dtype=torch.float64).requires_grad_()
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    for score in ("msr", "pe", "margin", "gini", "mls"):
        for base in ("cross-entropy", "brier", "zero-one"):
            loss = RankWeightedLoss(score=score, base=base, soft=0.5)
            assert torch.autograd.gradcheck(lambda x, own=loss: own(x, y), z)


@pytest.mark.parametrize("weights", NAMES)
def test_confidence_of_a_high_loss_is_lowered(weights):
    c = torch.linspace(-1, 1, 20, dtype=torch.float64).requires_grad_()

    def pull(x):
        value = rank_weighted_loss(c, x, soft=0.3, **options(weights))
        return torch.autograd.grad(value, c)[0]

    alike = torch.full((20,), 0.1, dtype=torch.float64)
    for bad in range(20):
        gradient = pull(alike + 0.9 * torch.eye(20, dtype=torch.float64)[bad])
        assert gradient[bad] >= pull(alike)[bad]
        # Outside the coverages of a partial area nothing has to move.
        assert gradient[bad] > 1e-6 or "partial" in weights
        # Only differences count: what one loses the others gain.
        assert gradient.sum().abs() < 1e-12


def test_a_step_down_lowers_the_area_itself():
    c, _ = samples(200)
    wrong = (torch.rand(200, generator=torch.Generator().manual_seed(2)) < 0.2).double()
    before = rank_weighted_loss(c, wrong).item()
    c.requires_grad_()
    for _ in range(50):
        (gradient,) = torch.autograd.grad(rank_weighted_loss(c, wrong, soft=0.1), c)
        c = (c - 2.0 * gradient).detach().requires_grad_()
    assert rank_weighted_loss(c, wrong).item() < 0.8 * before


def test_scale_and_shift_of_the_confidence_do_not_matter():
    c, x = samples()
    value = rank_weighted_loss(c, x, soft=0.2).item()
    assert rank_weighted_loss(1e3 * c - 5e4, x, soft=0.2).item() == pytest.approx(value, abs=1e-9)
    assert rank_weighted_loss(1e-8 * c, x, soft=0.2).item() == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("weights", NAMES)
def test_edges_are_finite(weights):
    for c in (torch.zeros(5), torch.full((5,), 7.3), torch.tensor([1.0])):
        c.requires_grad_()
        value = rank_weighted_loss(c, torch.ones(len(c)), soft=0.1, **options(weights))
        (gradient,) = torch.autograd.grad(value, c)
        assert value.isfinite()
        assert gradient.isfinite().all()
    assert standard_deviation(torch.full((9,), 0.1)).item() == 1.0


def test_all_tied_is_the_mean_rank():
    value = rank_weighted_loss(torch.zeros(9), torch.ones(9), weights="augrc", soft=0.1)
    assert value.item() == pytest.approx(0.5)


def test_single_precision_is_near_double():
    c, x = samples(2000)
    for weights in NAMES:
        wide = rank_weighted_loss(c, x, soft=0.05, **options(weights)).item()
        narrow = rank_weighted_loss(c.float(), x.float(), soft=0.05, **options(weights)).item()
        assert narrow == pytest.approx(wide, rel=2e-6)


def test_ranking_alone_leaves_the_loss_its_value():
    c, x = samples()
    a, b = c.clone().requires_grad_(), x.clone().requires_grad_()
    rank_weighted_loss(a, b.detach(), soft=0.1).backward()
    assert b.grad is None
    assert a.grad.abs().sum() > 0
    hard = rank_weighted_loss(a.detach().requires_grad_(), b)
    hard.backward()
    assert b.grad.abs().sum() > 0
