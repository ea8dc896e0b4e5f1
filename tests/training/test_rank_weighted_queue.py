"""Ranks among recent confidences: what is kept, when, and what it buys."""

import copy
import io

import pytest

from abstain.metrics import weight_bias

torch = pytest.importorskip("torch")

from abstain.training import RankWeightedLoss, rank_weighted_loss  # noqa: E402


def passed_on(z):
    """Confidence and loss straight from two columns."""
    return z[:, 0]


def second(z, _):
    return z[:, 1]


def made(queue, **options):
    return RankWeightedLoss(score=passed_on, base=second, queue=queue, **options)


def batch(confidence, loss=None):
    c = torch.as_tensor(confidence, dtype=torch.float64)
    return torch.stack((c, torch.ones_like(c) if loss is None else loss), dim=1), None


def test_first_in_first_out():
    loss = made(5)
    loss(*batch([1.0, 2.0]))
    loss(*batch([3.0, 4.0]))
    assert loss.recent.stored(torch.zeros(1)).tolist() == [1, 2, 3, 4]
    loss(*batch([5.0, 6.0]))
    assert loss.recent.stored(torch.zeros(1)).tolist() == [2, 3, 4, 5, 6]
    loss(*batch([7.0, 8.0, 9.0, 10.0, 11.0, 12.0]))
    assert loss.recent.stored(torch.zeros(1)).tolist() == [8, 9, 10, 11, 12]


@pytest.mark.parametrize("options", [
    {"weights": "aurc"}, {"weights": "augrc"}, {"weights": "partial-aurc", "between": (0.2, 0.7)},
    {"weights": lambda r, n: r * r / n}, {"weights": "aurc", "soft": 0.2},
])  # fmt: skip
def test_ranks_are_among_queue_and_batch(options):
    g = torch.Generator().manual_seed(0)
    first, c = (torch.rand(k, generator=g).double().round(decimals=1) for k in (40, 8))
    x = torch.rand(8, generator=g).double()
    loss = made(100, **options)
    loss(*batch(first))
    value = loss(*batch(c, x)).item()
    # The same as all 48 samples, of which those of the queue cost nothing.
    whole = rank_weighted_loss(
        torch.cat((c, first)), torch.cat((x, torch.zeros(40))).double(), **options
    )
    assert value == pytest.approx(6 * whole.item(), abs=1e-12)
    assert rank_weighted_loss(c, x, recent=first, **options).item() == pytest.approx(value)


def test_evaluation_reads_the_queue_and_leaves_it():
    loss = made(10)
    loss(*batch([1.0, 2.0, 3.0]))
    ranked = loss.eval()(*batch([2.5])).item()
    assert ranked == pytest.approx(rank_weighted_loss(
        torch.tensor([2.5]), torch.ones(1), recent=torch.tensor([1.0, 2.0, 3.0])
    ).item())  # fmt: skip
    assert loss.recent.stored(torch.zeros(1)).tolist() == [1, 2, 3]


def test_a_checkpoint_goes_on_with_the_same_numbers():
    g = torch.Generator().manual_seed(0)
    steps = [torch.rand(6, 2, generator=g) for _ in range(8)]
    loss = made(16)
    values = [loss(z, None).item() for z in steps]
    again = made(16)
    for z in steps[:2]:
        again(z, None)
    for at in range(2, 8):
        file = io.BytesIO()
        torch.save(again.state_dict(), file)
        file.seek(0)
        again = made(16)
        again.load_state_dict(torch.load(file, weights_only=True))
        assert again(steps[at], None).item() == values[at]
    copied = copy.deepcopy(loss)
    assert copied(steps[0], None).item() == loss(steps[0], None).item()


def test_half_precision_of_the_model_spares_the_queue():
    loss = made(4)
    loss(*batch([1.0 + 2**-40, 1.0]))
    torch.nn.Sequential(loss).half()
    loss.to(torch.bfloat16)
    assert loss.recent.stored(torch.zeros(1, dtype=torch.float64)).tolist() == [1.0 + 2**-40, 1.0]


def test_what_is_not_a_number_stays_out():
    loss = made(4)
    nan = torch.tensor([float("nan"), 1.0])
    assert loss(*batch(nan)).isnan()
    assert loss.recent.stored(nan) is None
    loss(*batch([1.0, 2.0, 3.0, 4.0]))
    assert loss(*batch(nan)).isnan()
    assert loss(*batch([float("inf"), 1.0])).isnan()
    assert loss.recent.stored(nan).tolist() == [1, 2, 3, 4]


def test_no_gradient_flows_to_the_queue():
    loss = made(8, soft=0.3)
    g = torch.Generator().manual_seed(0)
    old, new = (torch.rand(4, 2, generator=g).requires_grad_() for _ in range(2))
    loss(old, None)
    loss(new, None).backward()
    assert old.grad is None
    assert new.grad.abs().sum() > 0


def test_a_small_batch_sees_the_weights_of_the_population():
    g = torch.Generator().manual_seed(0)
    n, draws, u = 8, 400, torch.tensor([0.1, 0.5, 0.9, 0.97], dtype=torch.float64)
    bias = {}
    for size in (0, 1000):
        loss, result = made(size), torch.empty(draws, 4, dtype=torch.float64)
        for draw in range(draws):
            if size:
                loss.train()(*batch(torch.rand(size, generator=g)))
            others = torch.rand(n - 1, generator=g)
            for at, own in enumerate(u):
                # Only the loss of the one sample counts, so the value is its weight over n.
                x = torch.zeros(n, dtype=torch.float64)
                x[0] = n
                result[draw, at] = loss.eval()(*batch([own, *others], x))
        bias[size] = result.mean(0) + torch.log1p(-u)
        error = result.std(0) / draws**0.5
        expected = torch.as_tensor(weight_bias(u.numpy(), n + size))
        assert ((bias[size] - expected).abs() < 4 * error).all()
        assert (error < 0.06).all()
    # Without a queue the surest samples weigh far too little, with one as they should.
    assert (bias[0][2:] < -0.1).all()
    assert (bias[1000].abs() < 0.05).all()
