"""Property tests of every training objective in the catalogue."""

import io
import re

import numpy as np
import pytest

import abstain as ab
from abstain.errors import AbstainError, InputError, UnknownNameError

torch = pytest.importorskip("torch")

from tests.training.objective_cases import (  # noqa: E402
    CLASSES,
    NAMES,
    WIDTH,
    last_phase,
    made,
    network,
    output,
    toy,
    train,
)

from abstain import training  # noqa: E402
from abstain.training import OBJECTIVES, Objective  # noqa: E402


def state(module):
    return {name: x.clone() for name, x in module.state_dict().items() if torch.is_tensor(x)}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_and_knows_its_failures(name):
    x, y = toy()
    objective = made(name)
    net = network(objective)
    # A faster selection saturates: it sorts well near its coverage and badly elsewhere.
    rate = 0.005 if name == "selectivenet" else 0.02
    means = train(objective, net, x, y, epochs=24, rate=rate)
    plan = objective.plan(24)
    for phase in objective.phases:
        own = [loss for loss, p in zip(means, plan, strict=True) if p == phase]
        assert np.isfinite(own).all()
        assert own[-1] < own[0], phase
    net.eval()
    fresh_x, fresh_y = toy(2000, seed=1)
    with torch.no_grad():
        out = net(fresh_x)
    failed = objective.class_logits(out).argmax(1) != fresh_y
    assert 0.1 < failed.float().mean() < 0.3
    confidence = objective.confidence(out)
    assert confidence.shape == (2000,)
    assert confidence.dtype == torch.float64
    floor = 0.6 if name == "selectivenet" else 0.7
    assert ab.failure_auroc(confidence.numpy(), failed.numpy()) > floor
    if name == "selectivenet":
        accepted = confidence > 0
        assert accepted.float().mean().item() == pytest.approx(objective.coverage, abs=0.05)
        assert failed[accepted].float().mean() < 0.85 * failed.float().mean()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_every_batch_size_gives_finite_gradients(name, batch):
    x, y = toy(10)
    objective = made(name)
    net = network(objective)
    for phase in objective.phases:
        objective.enter(phase)
        net.enter(phase)
        net.train()
        for rows in torch.arange(10).split(batch):
            net.zero_grad()
            loss = objective(net(x[rows]), y[rows], index=rows)
            loss.backward()
            assert loss.ndim == 0
            assert torch.isfinite(loss)
            # Every part that a phase trains is reached, and nothing else: DDP needs that.
            reached = [n for n, p in net.named_parameters() if p.grad is not None]
            assert reached == [n for n, p in net.named_parameters() if p.requires_grad]
            assert all(torch.isfinite(p.grad).all() for p in net.trained())


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_autocast_on_the_cpu(name):
    x, y = toy(64)
    objective = last_phase(made(name))
    net = network(objective)
    net.enter(objective.phase)
    rows = torch.arange(64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
        loss = objective(out, y, index=rows)
    assert out.logits.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in net.trained())
    again = last_phase(made(name))
    assert loss.item() == pytest.approx(again(network(again)(x), y, index=rows).item(), rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_training_is_the_training_that_never_stopped(name):
    x, y = toy(200)
    options = {"fine_tune": 0.2} if name == "confidnet" else {}
    if "warm_up" in OBJECTIVES[name].options:
        options = {"warm_up": 0.3}
    objective = made(name, **options)
    net = network(objective)
    train(objective, net, x, y, epochs=6)
    for stop in (1, 3, 5):
        first = made(name, **options)
        half = network(first)
        plan = first.plan(6)
        run_until(first, half, x, y, stop)
        saved = io.BytesIO()
        torch.save({"objective": first.state_dict(), "network": half.state_dict()}, saved)
        saved.seek(0)
        loaded = torch.load(saved, weights_only=True)
        # Another seed: all that matters must come from the state.
        second = made(name, rng=99, **options)
        rest = network(second, seed=99)
        second.load_state_dict(loaded["objective"])
        rest.load_state_dict(loaded["network"])
        assert second.phase == plan[stop - 1]
        train(second, rest, x, y, epochs=6, start=stop)
        assert same(state(rest), state(net))
        assert same(state(second), state(objective))
        assert second.get_extra_state().keys() == objective.get_extra_state().keys()


def run_until(objective, net, x, y, stop):
    """The first epochs of a training of six."""

    class Stop(Exception):  # noqa: N818
        pass

    class Counting:
        epoch = 0

        def __getattr__(self, key):
            return getattr(objective, key)

        def __call__(self, *args, **kwargs):
            return objective(*args, **kwargs)

        def enter(self, phase):
            if self.epoch == stop:
                raise Stop
            self.epoch += 1
            objective.enter(phase)

    with pytest.raises(Stop):
        train(Counting(), net, x, y, epochs=6)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_and_global_generators_are_left_alone(name):
    x, y = toy(100)
    torch.manual_seed(3)
    before, before_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    runs = []
    for rng in (0, 0, 1):
        objective = made(name, rng=rng)
        net = network(objective)
        means = train(objective, net, x, y, epochs=3)
        runs.append((means, state(net), state(objective)))
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], before_numpy)  # noqa: NPY002
    assert runs[0][0] == runs[1][0]
    assert same(runs[0][1], runs[1][1])
    assert same(runs[0][2], runs[1][2])
    assert not same(runs[0][1], runs[2][1])


@pytest.mark.parametrize("name", NAMES)
def test_eval_mode_changes_nothing_and_draws_nothing(name):
    out, labels = output()
    objective = last_phase(made(name)).eval()
    before = (state(objective), objective.get_extra_state())
    values = {objective(out, labels, index=torch.arange(6)).item() for _ in range(3)}
    assert len(values) == 1
    assert same(state(objective), before[0])
    after = objective.get_extra_state()
    assert repr(after) == repr(before[1])


def test_the_area_equals_that_of_the_metric():
    out, labels = output(40, classes=3)
    objective = made("rank-weighted").eval()
    losses = torch.nn.functional.cross_entropy(out.logits, labels, reduction="none")
    confidence = objective.confidence(out)
    expected = ab.aurc(confidence.numpy(), losses.numpy(), estimator="plugin")
    assert objective(out, labels).item() == pytest.approx(expected, rel=1e-12)
    score = ab.confidence.score(
        "msr", ab.Predictions(logits=out.logits.numpy(), labels=labels.numpy())
    )
    assert np.allclose(confidence.numpy(), score.values, rtol=1e-12)


# ---------------------------------------------------------------------------- heads


@pytest.mark.parametrize("name", NAMES)
def test_heads_have_a_classifier_and_come_from_the_seed(name):
    objective = made(name)
    head = objective.head(WIDTH, CLASSES)
    assert isinstance(head.classifier, torch.nn.Linear)
    assert head.classifier.weight.shape == (CLASSES, WIDTH)
    assert same(state(head), state(objective.head(WIDTH, CLASSES)))
    features = torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(0))
    out = head.eval()(features)
    assert torch.equal(out.logits, head.classifier(features))
    assert torch.equal(out.features, features)


def test_a_head_refuses_other_features_and_sizes():
    head = made("cross-entropy").head(8, 3)
    with pytest.raises(InputError, match=r"`features` must have shape \(n, 8\); got \(2, 4, 4\)"):
        head(torch.zeros(2, 4, 4))
    with pytest.raises(InputError, match=r"`classes` must lie|`classes` must be at least 2"):
        made("cross-entropy").head(8, 1)
    with pytest.raises(InputError, match=r"`width` must be an integer of at least 1; got 0"):
        made("cross-entropy").head(0, 3)


def test_selection_starts_near_a_half_and_takes_a_lone_sample():
    head = made("selectivenet").head(WIDTH, CLASSES)
    features = torch.randn(256, WIDTH, generator=torch.Generator().manual_seed(0))
    chosen = head(features).confidence.sigmoid()
    assert (chosen - 0.5).abs().max() < 0.1
    alone = head(features[:1]).confidence
    head.eval()
    assert torch.equal(alone, head(features[:1]).confidence)


# ---------------------------------------------------------------------------- phases


@pytest.mark.parametrize("name", NAMES)
def test_plans_give_every_phase_its_share(name):
    objective = OBJECTIVES[name].make()
    shares = [phase.share for phase in objective.phases]
    assert sum(shares) == pytest.approx(1.0)
    for epochs in (len(shares), 7, 100):
        plan = objective.plan(epochs)
        assert len(plan) == epochs
        assert list(dict.fromkeys(plan)) == list(objective.phases)
        for phase in objective.phases:
            assert abs(plan.count(phase) - phase.share * epochs) <= max(1.0, len(shares) - 1)
    with pytest.raises(InputError, match="`epochs` must be"):
        objective.plan(len(shares) - 1)


def test_the_plan_of_the_papers():
    names = [p.name for p in made("deep-gamblers", reward=2.2).plan(300)]
    assert names.count("warm-up") == 100
    fine = made("confidnet", confidence_share=200 / 470, fine_tune=20 / 470).plan(470)
    assert [[p.name for p in fine].count(n) for n in ("classifier", "confidence", "fine-tune")] == [
        250,
        200,
        20,
    ]
    assert [fine[0].learning_rate, fine[300].learning_rate, fine[-1].learning_rate] == [
        None,
        1e-4,
        1e-6,
    ]


def test_the_shortest_plan_has_an_epoch_of_each_phase():
    late = made("confidnet", confidence_share=0.02, fine_tune=0.02)
    assert late.plan(3) == late.phases
    early = made("confidnet", confidence_share=0.5, fine_tune=0.48)
    assert early.plan(3) == early.phases
    assert made("self-adaptive", warm_up=0.01).plan(2)[0].name == "warm-up"


def test_confidnet_freezes_what_does_not_learn():
    objective = made("confidnet", fine_tune=0.3)
    backbone = torch.nn.Sequential(
        torch.nn.Linear(2, WIDTH), torch.nn.BatchNorm1d(WIDTH), torch.nn.Dropout(0.5)
    )
    net = training.Network(backbone, objective.head(WIDTH, CLASSES))
    x, y = toy(64)
    snapshots, modes = [], []
    for phase in objective.phases:
        objective.enter(phase)
        net.enter(phase)
        net.train()
        modes.append((backbone[1].training, backbone[2].training))
        optimizer = torch.optim.SGD(net.trained(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            objective(net(x), y).backward()
            optimizer.step()
        snapshots.append(state(net))
    assert modes == [(True, True), (False, True), (False, False)]
    first, second, third = snapshots

    def changed(a, b):
        return {n.split(".")[0] + "." + n.split(".")[1] for n in a if not torch.equal(a[n], b[n])}

    assert changed(first, second) == {"head.confidence"}
    assert changed(second, third) == {"head.confidence"}
    assert any(not torch.equal(third[f"twin.{n}"], x) for n, x in backbone.state_dict().items())
    # The classes are still those of the frozen backbone; the confidence is that of the twin.
    net.eval()
    assert torch.equal(net(x).logits, net.head.classifier(backbone(x)))
    assert torch.equal(net(x).confidence, net.head.confidence(net.twin(x))[:, 0])


def test_train_keeps_frozen_parts_in_eval_mode_and_eval_is_eval():
    objective = made("confidnet")
    net = training.Network(torch.nn.BatchNorm1d(WIDTH), objective.head(WIDTH, CLASSES))
    net.train()
    assert net.backbone.training  # no phase was entered: all of it trains
    net.enter(objective.phases[-1])
    assert not net.backbone.training
    assert net.head.confidence.training
    net.eval()
    net.enter(objective.phases[0])
    assert not any(module.training for module in net.modules())


def test_a_phase_needs_its_parts():
    net = training.Network(torch.nn.Identity(), made("cross-entropy").head(2, 2))
    with pytest.raises(InputError, match="the network has no part 'abstention'"):
        net.enter(last_phase(made("deep-gamblers")).phase)


def test_an_unknown_phase_raises_an_error():
    with pytest.raises(UnknownNameError, match="Did you mean 'gamble'"):
        made("deep-gamblers").enter("gambel")


# ---------------------------------------------------------------------------- the catalogue


def test_the_catalogue():
    assert NAMES == [
        "cross-entropy",
        "rank-weighted",
        "joint",
        "deep-gamblers",
        "confidnet",
        "devries",
        "selectivenet",
        "self-adaptive",
        "cwsa",
    ]
    for kind in OBJECTIVES.values():
        assert issubclass(kind.build, Objective)
        assert kind.needs_index is (kind.name == "self-adaptive")
        for option, values in kind.grid.items():
            assert option in kind.options
            for value in values:
                made_of = kind.make(**{option: value})
                assert getattr(made_of, option, value) == value
        # The defaults of the record are those that the class takes.
        assert isinstance(kind.make(**kind.options), kind.build)


def test_names_and_options_have_near_matches():
    with pytest.raises(UnknownNameError, match="Did you mean 'deep-gamblers'"):
        training.make("deepgamblers")
    with pytest.raises(UnknownNameError, match=r"has no option `budgett`. Did you mean 'budget'"):
        training.make("devries", budgett=0.2)
    with pytest.raises(UnknownNameError, match="It has none but `rng`"):
        training.make("cross-entropy", reward=2.0)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("deep-gamblers", "reward", 1.0),
        ("deep-gamblers", "reward", "high"),
        ("deep-gamblers", "warm_up", 1.0),
        ("confidnet", "confidence_share", 0.0),
        ("confidnet", "confidence_share", 1.0),
        ("confidnet", "fine_tune", 0.7),
        ("confidnet", "hidden", 0),
        ("confidnet", "failure_weight", -1.0),
        ("devries", "budget", 0.0),
        ("devries", "price", -0.1),
        ("devries", "hinted", 1.1),
        ("selectivenet", "coverage", 0.0),
        ("selectivenet", "penalty", -1.0),
        ("selectivenet", "alpha", 2.0),
        ("self-adaptive", "momentum", 1.5),
        ("self-adaptive", "warm_up", -0.1),
        ("rank-weighted", "weights", "aurcc"),
        ("joint", "strength", 0.0),
        ("joint", "soft", -1.0),
        ("cwsa", "threshold", 1.0),
        ("cwsa", "keep", -0.5),
        ("cwsa", "warm_up", 1.0),
        ("cross-entropy", "rng", -1),
    ],
)
def test_wrong_options_are_refused(name, option, value):
    with pytest.raises(AbstainError, match=f"`{option}`|{option}"):
        training.make(name, **{option: value})


def test_the_page_names_every_objective_with_its_options(root):
    rows = (root / "docs" / "training.md").read_text(encoding="utf-8").splitlines()
    for kind in OBJECTIVES.values():
        (row,) = [row for row in rows if row.startswith(f"| `{kind.name}` |")]
        shown = dict(re.findall(r"`(\w+)=([\d./]+)`", row))
        for option, text in shown.items():
            top, _, bottom = text.partition("/")
            assert kind.options[option] == pytest.approx(float(top) / float(bottom or 1))
        if kind.name not in {
            "rank-weighted",
            "joint",
        }:  # whose other options are those of the loss above
            assert shown.keys() == kind.options.keys()


@pytest.mark.parametrize("name", NAMES)
def test_seeds_of_any_size(name):
    first, second = (training.make(name, rng=2**70 + 3).head(WIDTH, 3) for _ in range(2))
    assert same(state(first), state(second))


def test_a_reward_above_the_number_of_classes_warns_and_is_trained_with():
    with pytest.warns(UserWarning, match=r"`reward` 2.2 is above the number of classes, 2"):
        head = training.make("deep-gamblers").head(4, 2)
    assert head.abstention is not None
    # Any other warning is an error in this test suite.
    assert training.make("deep-gamblers", reward=2.0).head(4, 2).abstention is not None


def test_an_index_that_is_a_name_and_no_row_raises_an_error():
    objective = training.make("self-adaptive", rng=0)
    out = objective.head(WIDTH, 3)(torch.zeros(1, WIDTH))
    with pytest.raises(InputError, match=r"`index` must count .* got 1,000,000,000,000"):
        objective(out, torch.tensor([0]), index=torch.tensor([10**12]))


@pytest.mark.parametrize("name", ["cross-entropy", "joint", "rank-weighted", "deep-gamblers"])
def test_logits_alone_are_no_output(name):
    objective = training.make(name, rng=0)
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    for call in (
        lambda: objective(logits, torch.tensor([0, 1, 2, 0])),
        lambda: objective.class_logits(logits),
        lambda: objective.confidence(logits),
    ):
        with pytest.raises(
            InputError, match=r"`training\.Network` or the head returns; got Tensor"
        ):
            call()


def test_the_state_of_another_objective_raises_an_error_as_such():
    adaptive = training.make("self-adaptive", rng=0)
    with pytest.raises(InputError, match="another objective: its phase is 'rank', and Self"):
        adaptive.load_state_dict(training.make("joint", rng=0).state_dict())
    for state in ({}, {"phase": 3}, None):
        with pytest.raises(InputError, match="must contain the name of its phase"):
            adaptive.set_extra_state(state)
