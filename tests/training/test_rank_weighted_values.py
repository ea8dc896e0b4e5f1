"""The objective is the metric of the same batch, whatever its size and its ties."""

import numpy as np
import pytest

import abstain as ab
from abstain.confidence import SCORES, ScoreNeed
from abstain.confidence import score as confidence_of
from abstain.metrics import partial_augrc, partial_aurc
from abstain.predictions import per_sample_loss

torch = pytest.importorskip("torch")

from abstain.training import (  # noqa: E402
    RANK_WEIGHTS,
    RankWeightedLoss,
    _area,
    _weights,
    rank_weighted_loss,
)

BETWEEN = (0.3, 0.85)
METRICS = {
    "aurc": lambda c, x, w=None: ab.aurc(c, x, estimator="plugin", weight=w),
    "aurc-log": lambda c, x, w=None: ab.aurc(c, x, estimator="log", weight=w),
    "sele": lambda c, x, w=None: ab.aurc(c, x, estimator="sele", weight=w),
    "augrc": lambda c, x, w=None: ab.augrc(c, x, weight=w),
    "partial-aurc": lambda c, x, w=None: partial_aurc(c, x, low=0.3, high=0.85, weight=w),
    "partial-augrc": lambda c, x, w=None: partial_augrc(c, x, low=0.3, high=0.85, weight=w),
}
BASES = {"cross-entropy": "cross_entropy", "zero-one": "zero_one", "brier": "brier"}


def options(weights):
    return {"weights": weights} | ({"between": BETWEEN} if weights.startswith("partial") else {})


def logits_and_labels(n, *, tied, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed + n)
    logits = 3.0 * torch.randn(n, 4, generator=g, dtype=torch.float64)
    if tied:
        # Whole rows come back, so that confidences are tied and losses are not.
        logits = logits[torch.randint(0, max(1, n // 3), (n,), generator=g)]
    return logits.to(dtype), torch.randint(0, 4, (n,), generator=g)


def by_metric(logits, labels, weights, base, score="msr"):
    p = ab.Predictions(logits=logits.numpy(), labels=labels.numpy())
    loss = per_sample_loss(p, BASES[base])
    return METRICS[weights](confidence_of(score, p).values, loss)


def test_every_named_weighting_is_held_against_its_metric():
    assert list(METRICS) == list(RANK_WEIGHTS)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("weights", METRICS)
def test_value_is_the_metric_of_the_batch(weights, base):
    loss = RankWeightedLoss(base=base, **options(weights))
    # One object for batches of any size: the last short batch of an epoch is like the others.
    for n in (64, 33, 8, 3, 2, 1):
        for tied in (False, True):
            z, y = logits_and_labels(n, tied=tied)
            assert loss(z, y).item() == pytest.approx(by_metric(z, y, weights, base), abs=1e-12)
            single = z.float()
            expected = by_metric(single, y, weights, base)
            value = loss(single, y)
            assert value.dtype == torch.float32
            assert value.item() == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("weights", METRICS)
def test_gradient_is_weight_times_the_gradient_of_the_loss(weights):
    z, y = logits_and_labels(40, tied=True)
    z.requires_grad_()
    RankWeightedLoss(**options(weights))(z, y).backward()
    # The metric itself differentiates with respect to the losses.
    detached = z.detach().requires_grad_()
    losses = torch.nn.functional.cross_entropy(detached, y, reduction="none")
    METRICS[weights](ab.confidence.max_softmax_response(z.detach()), losses).backward()
    assert torch.allclose(z.grad, detached.grad, rtol=0, atol=1e-14)


@pytest.mark.parametrize("weights", METRICS)
def test_hard_ranks_pass_gradcheck_in_the_loss(weights):
    z, y = logits_and_labels(6, tied=False)
    loss = RankWeightedLoss(**options(weights))
    # Away from a change of order the weights are constant, so the plain derivative is right.
    constant = RankWeightedLoss(score=lambda _: z.sum(dim=1), **options(weights))
    assert torch.autograd.gradcheck(lambda x: constant(x, y), z.clone().requires_grad_())
    assert loss(z, y).isfinite()


LOGIT_SCORES = [
    name
    for name, entry in SCORES.items()
    if entry.needs <= {ScoreNeed.LOGITS, ScoreNeed.CLASS_SCORES}
]


@pytest.mark.parametrize("score", [*LOGIT_SCORES, "msr@T=2.5", "energy@T=3"])
def test_every_score_of_logits_ranks_as_in_evaluation(score):
    z, y = logits_and_labels(50, tied=False)
    for soft in (None, 0.1):
        loss = RankWeightedLoss(score=score, soft=soft)
        asked = loss._score(z if soft is None else z.requires_grad_()).detach().numpy()
        p = ab.Predictions(logits=z.detach().numpy(), labels=y.numpy())
        assert asked == pytest.approx(confidence_of(score, p).values, abs=1e-12)
    value = RankWeightedLoss(score=score)(z, y).item()
    expected = by_metric(z.detach(), y, "aurc", "cross-entropy", score)
    assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weights", METRICS)
def test_edges_are_finite(weights):
    loss = RankWeightedLoss(**options(weights))
    tied, right = torch.zeros(9, 3, requires_grad=True), torch.zeros(9, 3, requires_grad=True)
    with torch.no_grad():
        right[:, 1] = torch.linspace(1, 30, 9)
    alone = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True)
    for z, y in (
        (tied, torch.arange(9) % 3), (right, torch.ones(9).long()), (alone, torch.tensor([1])),
    ):  # fmt: skip
        value = loss(z, y)
        value.backward()
        assert value.isfinite()
        assert z.grad.isfinite().all()
    evaluated = RankWeightedLoss(base="zero-one", **options(weights))
    assert evaluated(right, torch.ones(9).long()).item() == 0.0


def test_rows_in_any_order_give_the_same():
    z, y = logits_and_labels(60, tied=True)
    for weights in METRICS:
        loss = RankWeightedLoss(**options(weights))
        order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
        assert loss(z[order], y[order]).item() == pytest.approx(loss(z, y).item(), abs=1e-14)


@pytest.mark.parametrize("weights", METRICS)
def test_sample_weights_count_samples(weights):
    z, y = logits_and_labels(30, tied=True)
    g = torch.Generator().manual_seed(3)
    counts = torch.randint(0, 4, (30,), generator=g)
    z.requires_grad_()
    loss = RankWeightedLoss(**options(weights))
    value = loss(z, y, counts)
    (found,) = torch.autograd.grad(value, z)
    c = ab.confidence.max_softmax_response(z.detach())
    x = torch.nn.functional.cross_entropy(z, y, reduction="none")
    expected = METRICS[weights](c, x, counts)
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)
    assert torch.allclose(found, torch.autograd.grad(expected, z)[0], rtol=0, atol=1e-13)
    if weights != "partial-aurc":
        rows = torch.repeat_interleave(torch.arange(30), counts)
        assert value.item() == pytest.approx(loss(z[rows], y[rows]).item(), abs=1e-12)


def test_weights_of_your_own_are_averaged_over_ties():
    z, y = logits_and_labels(24, tied=True)
    own = RankWeightedLoss(lambda r, n: (r / n) ** 2, base="zero-one")
    ranks = np.arange(1, 25)
    c = ab.confidence.max_softmax_response(z).numpy()
    wrong = (z.argmax(1) != y).numpy()
    share = [((ranks[np.sort(c) == v] / 24) ** 2).mean() for v in c]
    assert own(z, y).item() == pytest.approx((np.array(share) * wrong).mean(), abs=1e-14)
    same = RankWeightedLoss(lambda r, n: (r - 0.5) / n)
    assert same(z, y).item() == pytest.approx(RankWeightedLoss("augrc")(z, y).item(), abs=1e-14)


def test_own_score_and_own_loss():
    z, y = logits_and_labels(20, tied=False)
    loss = RankWeightedLoss(
        score=lambda logits: logits[:, 0],
        base=lambda logits, labels: torch.nn.functional.cross_entropy(
            logits, labels, reduction="none", label_smoothing=0.1
        ),
    )
    smooth = torch.nn.functional.cross_entropy(z, y, reduction="none", label_smoothing=0.1)
    assert loss(z, y).item() == pytest.approx(METRICS["aurc"](z[:, 0], smooth), abs=1e-12)
    shares = torch.nn.functional.one_hot(y, 4).double()
    assert loss(z, shares).item() == pytest.approx(loss(z, y).item(), abs=1e-12)


def test_the_function_takes_what_has_no_gradient():
    c, wrong = torch.tensor([0.9, 0.8, 0.7]), torch.tensor([True, False, True])
    value = rank_weighted_loss(c, wrong)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(METRICS["aurc"](c, wrong), rel=1e-6)


def test_a_first_batch_without_gradients_leaves_the_next_alone():
    z, y = logits_and_labels(77, tied=False)
    loss = RankWeightedLoss()
    with torch.inference_mode():
        loss(z, y)
    z.requires_grad_()
    loss(z, y).backward()
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("weights", METRICS)
@pytest.mark.parametrize("given", [{}, {"queue": 40}])
def test_the_host_takes_the_gradients_of_a_device(weights, given, monkeypatch):
    # On the host NumPy ranks the samples; a device does it by other steps, to the last digit.
    results = []
    for way in ("host", "device"):
        if way == "device":
            for module in (_area, _weights):
                monkeypatch.setattr(module, "as_host_array", lambda _: None)
        loss = RankWeightedLoss(**options(weights), **given)
        for n in (1, 2, 7, 64):
            for tied in (False, True):
                z, y = logits_and_labels(n, tied=tied, dtype=torch.float32)
                z.requires_grad_()
                value = loss(z, y)
                value.backward()
                results.append((way, value.detach(), z.grad))
    half = len(results) // 2
    for (_, value, gradient), (_, other, its) in zip(results[:half], results[half:], strict=True):
        assert torch.allclose(value, other, rtol=2e-7, atol=0)
        assert torch.allclose(gradient, its, rtol=2e-6, atol=1e-9)


def test_a_step_on_the_host_is_not_ranked_by_torch(monkeypatch):
    def refused(*_, **__):
        raise AssertionError

    for name in ("sort", "argsort", "searchsorted", "cumsum"):
        monkeypatch.setattr(torch, name, refused)
    z, y = logits_and_labels(32, tied=True)
    for weights in METRICS:
        RankWeightedLoss(**options(weights))(z.clone().requires_grad_(), y).backward()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("weights", METRICS)
def test_a_device_gives_the_numbers_of_the_host(weights):
    z, y = logits_and_labels(50, tied=True)
    for given in ({}, {"soft": 0.2}, {"queue": 16}):
        own = options(weights) | given
        values, gradients = [], []
        for device in ("cpu", "cuda"):
            x = z.to(device).requires_grad_()
            value = RankWeightedLoss(**own)(x, y.to(device))
            value.backward()
            assert value.device.type == device
            values.append(value.item())
            gradients.append(x.grad.cpu())
        assert values[0] == pytest.approx(values[1], abs=1e-12)
        assert torch.allclose(*gradients, rtol=0, atol=1e-12)
