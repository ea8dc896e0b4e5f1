"""Half precision, what is not a number, and the machinery around a loss."""

import copy

import pytest

torch = pytest.importorskip("torch")

from abstain.training import RANK_WEIGHTS, RankWeightedLoss, rank_weighted_loss  # noqa: E402

NAN, INFINITY = float("nan"), float("inf")


def options(weights):
    return {"weights": weights} | ({"between": (0.3, 0.85)} if "partial" in weights else {})


def batch(n=64, classes=5, scale=8.0):
    g = torch.Generator().manual_seed(0)
    return scale * torch.randn(n, classes, generator=g), torch.randint(
        0, classes, (n,), generator=g
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("weights", RANK_WEIGHTS)
def test_half_precision_is_what_its_logits_are_in_double(dtype, weights):
    z, y = batch()
    z = z.to(dtype)
    for given in ({}, {"soft": 0.1}, {"base": "brier"}, {"base": "zero-one"}):
        loss = RankWeightedLoss(**options(weights) | given)
        value = loss(z, y)
        assert value.dtype == torch.float32
        assert value.item() == pytest.approx(loss(z.double(), y).item(), rel=3e-6)


def test_saturated_confidences_keep_their_order():
    # In float16 both softmaxes are exactly 1; the surer one must rank higher.
    z = torch.tensor([[30.0, 0.0], [40.0, 0.0], [60000.0, -60000.0]], dtype=torch.float16)
    for wrong in range(3):
        y = torch.zeros(3, dtype=torch.long)
        y[wrong] = 1
        value = RankWeightedLoss("sele", base="zero-one")(z, y).item()
        assert value == pytest.approx((wrong + 1) / 9)


@pytest.mark.parametrize("soft", [None, 0.1])
def test_autocast_and_gradient_scaling(soft):
    z, y = batch()
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    loss = RankWeightedLoss("aurc", soft=soft, queue=128)
    values = []
    for step in range(6):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(z)
            assert logits.dtype == torch.bfloat16
            # An overflow of the logits in the third step: the scaler skips it and goes on.
            value = loss(logits * (INFINITY if step == 2 else 1.0), y)
        before = model.weight.detach().clone()
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(before, model.weight) == (step == 2)
        values.append(value.item())
    assert scaler.get_scale() == 2.0**15
    assert values[2] != values[2]
    assert values[5] < values[0]
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("weights", RANK_WEIGHTS)
@pytest.mark.parametrize("bad", [NAN, INFINITY, -INFINITY])
def test_what_is_not_a_number_comes_back_as_nan(weights, bad):
    z, y = batch(8)
    z[3] = bad
    for given in ({}, {"soft": 0.1}, {"base": "zero-one"}, {"queue": 8}):
        loss = RankWeightedLoss(**options(weights) | given)
        assert loss(z, y).isnan()
    weighted = RankWeightedLoss(**options(weights))
    assert weighted(z, y, torch.ones(8)).isnan()
    c = torch.tensor([0.1, bad, 0.3])
    assert rank_weighted_loss(c, torch.ones(3), **options(weights)).isnan()
    assert rank_weighted_loss(c.clone().fill_(NAN), torch.ones(3), **options(weights)).isnan()


def test_a_masked_class_is_no_trouble():
    z, y = batch(20)
    z[:, 4] = -INFINITY
    y = y.clamp(max=3)
    z.requires_grad_()
    for soft in (None, 0.1):
        value = RankWeightedLoss(soft=soft)(z, y)
        (gradient,) = torch.autograd.grad(value, z)
        assert value.isfinite()
        assert gradient.isfinite().all()
        assert value.item() == pytest.approx(RankWeightedLoss(soft=soft)(z[:, :4], y).item())


def test_a_module_can_be_copied_and_shown():
    loss = RankWeightedLoss("partial-augrc", between=(0.5, 1.0), queue=4, gather=False)
    shown = repr(copy.deepcopy(loss))
    assert "'partial-augrc'" in shown
    assert "between=(0.5, 1.0), gather=False" in shown
    assert "size=4, filled=0" in shown
    assert not list(loss.parameters())
    assert list(loss.state_dict()) == ["recent.values"]
    assert not RankWeightedLoss().state_dict()


# torch's compiler hides this warning of its own, but not from a filter that raises.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_a_compiled_step():
    z, y = batch()
    torch.manual_seed(0)
    model, loss = torch.nn.Linear(5, 5), RankWeightedLoss(soft=0.1, queue=32)
    other = copy.deepcopy(loss)
    step = torch.compile(lambda x, own: loss(model(x), own), backend="eager")
    for rows in (64, 64, 17):
        (found,) = torch.autograd.grad(step(z[:rows], y[:rows]), model.weight)
        (expected,) = torch.autograd.grad(other(model(z[:rows]), y[:rows]), model.weight)
        assert torch.allclose(found, expected, rtol=1e-5, atol=1e-8)
    assert torch.equal(loss.recent.values, other.recent.values)
    area = torch.compile(rank_weighted_loss, backend="eager")
    assert area(z[:, 0], z[:, 1].abs()) == rank_weighted_loss(z[:, 0], z[:, 1].abs())
