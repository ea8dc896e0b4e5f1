"""Each loss against a plain reading of its formula in NumPy, its gradients, and its limits."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.training.objective_cases import NAMES, last_phase, made, output  # noqa: E402

import abstain as ab  # noqa: E402
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError  # noqa: E402
from abstain.training import Output, _area  # noqa: E402


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def joint(parts, y, strength, soft=0.1):
    """Cross-entropy and the mean of failure x (soft rank - 1/2)/n, ranked by log-odds."""
    p, wrong = softmax(parts[0]), parts[0].argmax(axis=1) != y
    c = np.log(p.max(axis=1) / (1 - p.max(axis=1)))
    n, spread = len(y), c.std() or 1.0
    ranks = [0.5 + sum(sigmoid((own - other) / (soft * spread)) for other in c) for own in c]
    area = np.mean([wrong[i] * (ranks[i] - 0.5) / n for i in range(n)])
    return cross_entropy(parts, y) + strength * area


def arrays(out, labels):
    return [None if t is None else t.detach().numpy() for t in out], labels.numpy()


def with_abstain(z, a):
    return softmax(np.concatenate([z, a[:, None]], axis=1))


# Each takes (logits, features, abstention, confidence, auxiliary), labels: one loop a formula.


def cross_entropy(parts, y):
    p = softmax(parts[0])
    return np.mean([-np.log(p[i, y[i]]) for i in range(len(y))])


def gamblers(parts, y, o):
    p = with_abstain(parts[0], parts[2])
    return np.mean([-np.log(p[i, y[i]] + p[i, -1] / o) for i in range(len(y))])


def confidnet(parts, y, weight=1.0):
    p, c = softmax(parts[0]), sigmoid(parts[3])
    terms = []
    for i in range(len(y)):
        factor = 1.0 if p[i].argmax() == y[i] else weight
        terms.append(factor * (c[i] - p[i, y[i]]) ** 2)
    return np.mean(terms)


def devries(parts, y, price, hinted):
    p, c = softmax(parts[0]), sigmoid(parts[3])
    k = p.shape[1]
    loss = 0.0
    for i in range(len(y)):
        ci = c[i] if hinted[i] else 1.0
        moved = ci * p[i] + (1 - ci) * np.eye(k)[y[i]]
        loss += -np.log(moved[y[i]]) / len(y)
    return loss + price * np.mean(-np.log(c))


def selective_net(parts, y, coverage, penalty, alpha):
    p, g, h = softmax(parts[0]), sigmoid(parts[3]), softmax(parts[4])
    losses = np.array([-np.log(p[i, y[i]]) for i in range(len(y))])
    auxiliary = np.mean([-np.log(h[i, y[i]]) for i in range(len(y))])
    risk = np.mean(losses * g) / np.mean(g)
    missing = max(0.0, coverage - np.mean(g))
    return alpha * (risk + penalty * missing**2) + (1 - alpha) * auxiliary


def self_adaptive(parts, y, target):
    p = with_abstain(parts[0], parts[2])
    return np.mean(
        [
            -target[i] * np.log(p[i, y[i]]) - (1 - target[i]) * np.log(p[i, -1])
            for i in range(len(y))
        ]
    )


def weighted(parts, y, threshold, keep):
    """One minus the mean of signs x ramps, and cross-entropy."""
    p, earned = softmax(parts[0]), 0.0
    for i in range(len(y)):
        c = p[i].max()
        ramp = (c - threshold) / (1 - threshold) if c >= threshold else 0.0
        earned += (1 if p[i].argmax() == y[i] else -1) * ramp
    return 1 - earned / len(y) + keep * cross_entropy(parts, y)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [1, 7])
def test_values(n, seed):
    out, labels = output(n, seed=seed)
    parts, y = arrays(out, labels)

    def loss(name, **options):
        return last_phase(made(name, **options)).eval()(out, labels).item()

    assert loss("cross-entropy") == pytest.approx(cross_entropy(parts, y), rel=1e-12)
    for strength in (0.5, 10.0):
        result = loss("joint", strength=strength)
        assert result == pytest.approx(joint(parts, y, strength), rel=1e-10)
    for reward in (1.0001, 2.2, 4.0):
        result = loss("deep-gamblers", reward=reward)
        assert result == pytest.approx(gamblers(parts, y, reward), rel=1e-12)
    for weight in (1.0, 3.0):
        result = loss("confidnet", failure_weight=weight)
        assert result == pytest.approx(confidnet(parts, y, weight), rel=1e-12)
    everyone = np.ones(n, dtype=bool)
    # The price is kept in float32.
    expected = devries(parts, y, float(np.float32(0.7)), everyone)
    assert loss("devries", price=0.7) == pytest.approx(expected, rel=1e-12)
    for coverage, penalty, alpha in [(0.8, 32.0, 0.5), (1.0, 3.0, 1.0), (0.1, 0.0, 0.2)]:
        result = loss("selectivenet", coverage=coverage, penalty=penalty, alpha=alpha)
        expected = selective_net(parts, y, coverage, penalty, alpha)
        assert result == pytest.approx(expected, rel=1e-12)
    for threshold, keep in [(0.5, 1.0), (0.0, 0.0), (0.9, 0.3)]:
        result = loss("cwsa", threshold=threshold, keep=keep)
        assert result == pytest.approx(weighted(parts, y, threshold, keep), rel=1e-12)
    result = loss("self-adaptive")
    assert result == pytest.approx(self_adaptive(parts, y, np.ones(n)), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name, monkeypatch):
    # The temperature of soft ranks is a constant to the gradient: here to the differences too.
    monkeypatch.setattr(_area, "standard_deviation", lambda _: torch.tensor(1.0))
    fields = [i for i in range(5) if i != 1]
    out, labels = output(5, grad=True)
    objective = last_phase(made(name)).eval()
    if name == "confidnet":  # its target lets no gradient through
        fields = [3]

    def loss(*values):
        changed = dict(zip(fields, values, strict=True))
        return objective(Output(*(changed.get(i, x) for i, x in enumerate(out))), labels)

    assert torch.autograd.gradcheck(loss, [out[i] for i in fields])


def test_confidnet_lets_no_gradient_into_the_classifier():
    out, labels = output(grad=True)
    last_phase(made("confidnet"))(out, labels).backward()
    assert out.logits.grad is None
    assert out.confidence.grad.abs().sum() > 0


# ---------------------------------------------------------------------------- DeepGamblers


def test_gamblers_confident_and_right_loses_nothing():
    out = Output(
        torch.tensor([[60.0, 0.0, 0.0]]), torch.zeros(1, 1), abstention=torch.tensor([0.0])
    )
    loss = last_phase(made("deep-gamblers", reward=2.2))(out, torch.tensor([0]))
    assert loss.item() == pytest.approx(0.0, abs=1e-7)


def test_gamblers_that_only_abstain_lose_the_logarithm_of_the_reward():
    out = Output(torch.zeros(1, 3), torch.zeros(1, 1), abstention=torch.tensor([90.0]))
    loss = last_phase(made("deep-gamblers", reward=2.2))(out, torch.tensor([1]))
    assert loss.item() == pytest.approx(np.log(2.2), rel=1e-6)


def test_gamblers_with_the_largest_reward_gain_nothing_by_abstaining():
    # At o = K moving the abstained mass evenly onto the classes changes no expected payoff.
    out = Output(
        torch.zeros(1, 4).double(), torch.zeros(1, 1), abstention=torch.tensor([1.3]).double()
    )
    loss = last_phase(made("deep-gamblers", reward=4.0))(out, torch.tensor([2]))
    assert loss.item() == pytest.approx(np.log(4.0), rel=1e-12)


@pytest.mark.parametrize(("reward", "abstains"), [(1.5, 1.0), (2.5, 0.0), (15.0, 0.0)])
def test_gamblers_on_two_classes_abstain_only_below_their_number(reward, abstains):
    """The loss of FD-Shifts, minimized for a label that is either class with probability 1/2."""
    parameters = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([parameters], lr=0.1)
    objective = last_phase(made("deep-gamblers", reward=reward))
    labels = torch.tensor([0, 1])
    for _ in range(300):
        logits = parameters[:2].expand(2, 2)
        out = Output(logits, torch.zeros(2, 1), abstention=parameters[2].expand(2))
        loss = objective(out, labels)
        p = torch.softmax(parameters, dim=0)
        written = -(p[:2] + p[2] / reward).log().mean()
        assert loss.item() == pytest.approx(written.item(), rel=1e-12)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    p = torch.softmax(parameters.detach(), dim=0)
    assert p[2].item() == pytest.approx(abstains, abs=0.01)
    best = np.log(reward) if abstains else np.log(2)
    assert loss.item() == pytest.approx(best, abs=0.01)


def test_gamblers_class_logits_leave_abstention_out():
    out, _ = output()
    objective = made("deep-gamblers")
    p = with_abstain(out.logits.numpy(), out.abstention.numpy())
    renormalized = p[:, :-1] / p[:, :-1].sum(axis=1, keepdims=True)
    assert np.allclose(objective.class_logits(out).softmax(1).numpy(), renormalized, rtol=1e-12)
    assert np.allclose(objective.confidence(out).sigmoid().numpy(), 1 - p[:, -1], rtol=1e-12)


@pytest.mark.parametrize("name", ["deep-gamblers", "self-adaptive", "rank-weighted"])
def test_warm_up_is_cross_entropy(name):
    out, labels = output(grad=True)
    objective = made(name, warm_up=0.5)
    assert [p.name for p in objective.plan(4)][:2] == ["warm-up"] * 2
    loss = objective(out, labels)
    assert loss.item() == made("cross-entropy")(out, labels).item()
    loss.backward()
    assert out.abstention.grad is None


# ---------------------------------------------------------------------------- DeVries & Taylor


def hints_drawn(objective, n):
    generator = torch.Generator()
    generator.set_state(objective.get_extra_state()["generator"])
    return (torch.rand(n, generator=generator) < objective.hinted).numpy()


def test_devries_hints_and_price_step_by_step():
    objective = made("devries", budget=0.8, price=0.1)
    price, calls = np.float32(0.1), []
    for step in range(40):
        out, labels = output(16, seed=step)
        hinted = hints_drawn(objective, 16)
        parts, y = arrays(out, labels)
        result = objective(out, labels).item()
        assert result == pytest.approx(devries(parts, y, float(price), hinted), rel=1e-6)
        asked = np.mean(np.log1p(np.exp(-parts[3])))
        price = price / 0.99 if asked >= 0.8 else price / 1.01
        assert objective.multiplier.item() == pytest.approx(price, rel=1e-5)
        calls.append((hinted.mean(), asked >= 0.8))
    shares, over = zip(*calls, strict=True)
    assert 0.4 < np.mean(shares) < 0.6
    assert 0 < np.mean(over) < 1  # both directions were taken


def test_devries_without_hints_and_price_is_cross_entropy():
    out, labels = output()
    loss = made("devries", hinted=0.0, price=0.0)(out, labels).item()
    assert loss == pytest.approx(made("cross-entropy")(out, labels).item(), rel=1e-12)


def test_devries_sure_of_everything_is_cross_entropy():
    out, labels = output()
    sure = out._replace(confidence=torch.full((6,), 800.0).double())
    loss = made("devries", hinted=1.0)(sure, labels).item()
    assert loss == pytest.approx(made("cross-entropy")(out, labels).item(), rel=1e-12)


def test_devries_asking_for_everything_pays_only_the_price():
    out, labels = output()
    unsure = out._replace(confidence=torch.full((6,), -50.0).double())
    loss = made("devries", hinted=1.0, price=0.5)(unsure, labels).item()
    assert loss == pytest.approx(0.5 * 50.0, rel=1e-12)


def test_devries_price_holds_the_budget():
    # A free confidence for each sample: the price must find the level that was asked for.
    logits = torch.zeros(64, 3)
    labels = torch.arange(64) % 3
    confidence = torch.zeros(64, requires_grad=True)
    objective = made("devries", budget=0.4)
    optimizer = torch.optim.Adam([confidence], lr=0.02)
    calls = []
    for _ in range(800):
        loss = objective(Output(logits, torch.zeros(64, 1), confidence=confidence), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        calls.append(torch.nn.functional.softplus(-confidence).mean().item())
    assert np.mean(calls[400:]) == pytest.approx(0.4, abs=0.05)


# ---------------------------------------------------------------------------- SelectiveNet


def test_selective_net_pays_nothing_for_a_coverage_that_is_met():
    out, labels = output()
    covered = out.confidence.sigmoid().mean().item()
    at = {"alpha": 1.0, "coverage": covered - 1e-3}
    free = made("selectivenet", penalty=0.0, **at)(out, labels).item()
    assert made("selectivenet", penalty=1e6, **at)(out, labels).item() == free
    at["coverage"] = covered + 0.1
    assert made("selectivenet", penalty=1.0, **at)(out, labels).item() == pytest.approx(free + 0.01)


def test_selective_net_that_accepts_all_is_cross_entropy_with_two_heads():
    out, labels = output()
    everything = out._replace(confidence=torch.full((6,), 40.0).double())
    first = made("cross-entropy")(out, labels).item()
    second = made("cross-entropy")(Output(out.auxiliary, out.features), labels).item()
    loss = made("selectivenet", coverage=1.0, alpha=0.3)(everything, labels).item()
    assert loss == pytest.approx(0.3 * first + 0.7 * second, rel=1e-12)


def test_selective_net_that_accepts_nothing_has_a_risk_and_a_way_back():
    out, labels = output(grad=True)
    nothing = out._replace(confidence=torch.full((6,), -900.0).double().requires_grad_())
    loss = made("selectivenet")(nothing, labels)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(nothing.confidence.grad).all()


# ---------------------------------------------------------------------------- self-adaptive


def test_self_adaptive_targets_step_by_step():
    objective = made("self-adaptive", momentum=0.9)
    target = np.ones(12)
    rng = np.random.default_rng(5)
    for step in range(30):
        out, labels = output(4, seed=step)
        rows = rng.choice(12, size=4, replace=False)
        parts, y = arrays(out, labels)
        q = softmax(parts[0])
        for i, row in enumerate(rows):
            target[row] = 0.9 * target[row] + 0.1 * q[i, y[i]]
        result = objective(out, labels, index=torch.tensor(rows)).item()
        assert result == pytest.approx(self_adaptive(parts, y, target[rows]), rel=1e-5)
    assert np.allclose(objective.target.numpy(), target[: len(objective.target)], atol=1e-6)


def test_self_adaptive_that_keeps_its_labels_never_pays_for_abstaining():
    out, labels = output()
    keeping = made("self-adaptive", momentum=1.0)
    moving = made("self-adaptive").eval()
    index = torch.arange(6)
    assert keeping(out, labels, index=index).item() == moving(out, labels).item()


def test_self_adaptive_with_a_sample_twice_does_not_depend_on_the_order():
    out, labels = output(4)
    index = torch.tensor([0, 1, 0, 2])
    there, back = made("self-adaptive"), made("self-adaptive")
    there(out, labels, index=index)
    reverse = torch.tensor([3, 2, 1, 0])
    flipped = Output(*(x[reverse] for x in out))
    back(flipped, labels[reverse], index=index[reverse])
    assert torch.equal(there.target, back.target)
    q = out.logits.softmax(1).gather(1, labels[:, None])[:, 0]
    assert there.target[0].item() == pytest.approx(0.9 + 0.1 * q[[0, 2]].mean().item())


def test_self_adaptive_gradients_with_targets_that_moved():
    out, labels = output(5, grad=True)
    objective = made("self-adaptive", momentum=1.0)
    objective.target = torch.tensor([0.2, 0.4, 1.0, 0.0, 0.7])

    def loss(logits, abstention):
        changed = out._replace(logits=logits, abstention=abstention)
        return objective(changed, labels, index=torch.arange(5))

    assert torch.autograd.gradcheck(loss, (out.logits, out.abstention))


def test_self_adaptive_asks_for_the_index():
    out, labels = output()
    with pytest.raises(MissingInputError, match="`index` must contain the indices"):
        made("self-adaptive")(out, labels)


# ---------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_half_precision_and_extreme_logits(name, dtype, scale):
    out, labels = output(8, scale=scale, dtype=dtype, grad=True)
    objective = last_phase(made(name))
    loss = objective(out, labels, index=torch.arange(8))
    assert loss.dtype == torch.float32
    loss.backward()
    grads = [x.grad for x in out if x.grad is not None]
    assert grads
    assert torch.isfinite(loss)
    assert all(torch.isfinite(g).all() for g in grads)
    # The half-precision numbers are those of the same numbers in full precision.
    full = Output(*(x.detach().double() for x in out))
    again = last_phase(made(name))(full, labels, index=torch.arange(8)).item()
    assert loss.item() == pytest.approx(again, rel=2e-5, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_confidence_does_not_saturate(name):
    out, _ = output(3, dtype=torch.float32)
    far = torch.tensor([[40.0, 0.0, 0.0, 0.0], [41.0, 0.0, 0.0, 0.0], [90.0, 0.0, 0.0, 0.0]])
    line = torch.tensor([40.0, 41.0, 90.0])
    surer = out._replace(logits=far, abstention=torch.zeros(3), confidence=line)
    confidence = made(name).confidence(surer)
    assert confidence.shape == (3,)
    assert (confidence.diff() > 0.5).all()


@pytest.mark.parametrize("name", NAMES)
def test_wrong_batches_raise_an_error_in_plain_words(name):
    out, labels = output()
    objective = made(name)
    with pytest.raises(ShapeError, match=r"`labels` must have one entry for each of the 6 samples"):
        objective(out, labels[:-1])
    with pytest.raises(DomainError, match=r"`labels` must be integers; got torch.float64"):
        objective(out, labels.double())
    with pytest.raises(
        DomainError, match=r"`labels` must be below the number of classes, 4; got 4"
    ):
        objective(out, torch.full((6,), 4))
    with pytest.raises(DomainError, match=r"`labels` must not be negative; got -1"):
        objective(out, torch.full((6,), -1))
    with pytest.raises(InputError, match=r"`labels` must be a torch.Tensor; got list"):
        objective(out, [0] * 6)
    with pytest.raises(ShapeError, match=r"`index` must have one entry"):
        objective(out, labels, index=torch.arange(5))
    with pytest.raises(ShapeError, match=r"`labels` must not be empty"):
        objective(Output(*(x[:0] for x in out)), labels[:0])


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("deep-gamblers", "abstention"),
        ("confidnet", "confidence"),
        ("devries", "confidence"),
        ("selectivenet", "confidence"),
        ("selectivenet", "auxiliary"),
        ("self-adaptive", "abstention"),
    ],
)
def test_an_output_of_another_head_raises_an_error(name, field):
    out, labels = output()
    with pytest.raises(MissingInputError, match=f"`output` must have `{field}`"):
        last_phase(made(name))(out._replace(**{field: None}), labels, index=torch.arange(6))


def test_a_step_that_overflowed_leaves_no_trace_in_targets_and_price():
    out, labels = output()
    broken = out._replace(
        logits=out.logits * float("nan"), confidence=out.confidence * float("inf")
    )
    adaptive, devries = made("self-adaptive"), made("devries")
    assert torch.isnan(adaptive(broken, labels, index=torch.arange(6)))
    assert torch.equal(adaptive.target, torch.ones(6))
    devries(broken, labels)
    assert torch.isfinite(devries.multiplier)


# ------------------------------------------------------------------------------------- CWSA
def alone(threshold):
    return made("cwsa", threshold=threshold, keep=0.0)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.8])
def test_the_objective_is_the_metric(threshold):
    out, labels = output(200, seed=3)
    p = torch.softmax(out.logits, 1)
    wrong = (p.argmax(1) != labels).numpy()
    metric = ab.cwsa(p.max(1).values.numpy(), wrong, threshold=threshold)
    assert alone(threshold)(out, labels).item() == pytest.approx(1 - metric, abs=1e-12)


def test_the_gradient_equals_that_of_the_chain_rule():
    threshold = 0.5
    out, labels = output(40, seed=4, grad=True)
    alone(threshold)(out, labels).backward()
    with torch.no_grad():
        p = torch.softmax(out.logits, 1)
        c, answer = p.max(1)
        sign = torch.where(answer == labels, 1.0, -1.0) * (c > threshold)
        moved = torch.nn.functional.one_hot(answer, p.shape[1]) - p
        expected = -(sign * c)[:, None] * moved / (len(labels) * (1 - threshold))
    torch.testing.assert_close(out.logits.grad, expected)
    below = c <= threshold
    assert below.any()
    assert (out.logits.grad[below] == 0).all()


@pytest.mark.parametrize("threshold", [0.3, 0.6])
@pytest.mark.parametrize("keep", [0.0, 2.0])
def test_gradients_of_cwsa(threshold, keep):
    out, labels = output(8, seed=6, grad=True)
    objective = made("cwsa", threshold=threshold, keep=keep)
    assert torch.autograd.gradcheck(lambda z: objective(out._replace(logits=z), labels), out.logits)


def test_cwsa_is_continuous_at_the_threshold():
    # Where a sample is accepted it weighs nothing: the value does not jump.
    labels, objective = torch.tensor([0]), alone(0.7)
    values = []
    for c in (0.7 - 1e-9, 0.7 + 1e-9):
        logits = torch.log(torch.tensor([[c, 1 - c]], dtype=torch.float64))
        values.append(objective(Output(logits, torch.zeros(1, 2)), labels).item())
    assert values[0] == 1.0
    assert values[1] == pytest.approx(1.0, abs=1e-8)


def test_a_step_makes_the_right_surer_and_the_wrong_less_sure():
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.1, 0.0]], requires_grad=True)
    labels = torch.tensor([0, 1, 0])
    alone(0.6)(Output(logits, torch.zeros(3, 2)), labels).backward()
    assert logits.grad[0, 0] < 0 < logits.grad[1, 0]
    assert (logits.grad[2] == 0).all()
