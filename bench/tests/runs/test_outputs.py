"""Outputs: what a network said, with dropout off and on, and what several say together."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import DomainError, InputError, ShapeError
from abstain_bench.runs.outputs import Outputs, ensemble_outputs

N, K = 7, 3


def made(seed=0, **changes):
    rng = np.random.default_rng(seed)
    given = {
        "logits": rng.normal(size=(N, K)).astype(np.float32),
        "labels": np.array([0, 1, 2, -1, 0, 1, -1]),
        "places": np.array([5, 5, 6, 7, 8, 8, 9]),
        "features": rng.normal(size=(N, 4)).astype(np.float32),
        "samples": rng.normal(size=(N, 5, K)).astype(np.float32),
        "confidence": rng.normal(size=N),
        "sample_confidence": rng.normal(size=(N, 5)),
    }
    return Outputs(**{**given, **changes})


# -------------------------------------------------------------------------------------- the record


def test_predictions_hold_all_and_unknown_classes_are_always_wrong():
    out = made()
    found = out.predictions()
    assert isinstance(found, ab.Predictions)
    unknown = out.labels == -1
    assert not found.correct[unknown].any()
    known = np.argmax(out.logits, axis=1) == out.labels
    np.testing.assert_array_equal(found.correct[~unknown], known[~unknown])
    np.testing.assert_array_equal(found.logit_samples, out.samples)
    np.testing.assert_array_equal(found.features, out.features)
    np.testing.assert_array_equal(found.confidence["own"], out.confidence)
    assert found.class_names == (0, 1, 2)


def test_pictures_of_unknown_classes_alone_can_be_evaluated():
    found = made(labels=np.full(N, -1), confidence=None).predictions()
    assert found.n_classes == K
    assert not found.correct.any()
    assert not found.confidence


@pytest.mark.parametrize("rows", [[6, 0, 0], np.arange(N) < 2, [-1]])
def test_subsets_take_all_arrays(rows):
    out = made()
    part = out.subset(rows)
    for name in Outputs.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(part, name), getattr(out, name)[np.asarray(rows)])
    assert made(samples=None, sample_confidence=None).subset(rows).samples is None


def test_arrays_are_read_only_and_the_caller_s_stay_writable():
    given = np.zeros((N, K), np.float32)
    out = made(logits=given)
    for name in Outputs.__dataclass_fields__:
        with pytest.raises(ValueError, match="read-only"):
            getattr(out, name)[...] = 0
    given[0] = 1


@pytest.mark.parametrize(
    ("given", "kept"), [(np.float16, np.float32), (np.float32, np.float32), (float, np.float64)]
)
def test_logits_are_kept_at_float32_or_better(given, kept):
    assert made(logits=np.zeros((N, K), given)).logits.dtype == kept
    assert made(confidence=np.zeros(N, given)).confidence.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"logits": np.zeros(N)}, r"`logits` must have shape \(n, K\)"),
        ({"logits": np.zeros((0, K))}, "no empty axis"),
        ({"logits": np.zeros((N, 1))}, "at least two classes"),
        ({"labels": np.zeros(3, int)}, "`labels` must have one entry for each of the 7"),
        ({"places": np.zeros(3, int)}, "`places` must have one entry for each of the 7"),
        ({"features": np.zeros((3, 2))}, "`features` must have one row for each of the 7"),
        ({"samples": np.zeros((N, K))}, r"`samples` must have shape \(n, S, K\)"),
        ({"samples": np.zeros((N, 5, 4))}, r"`samples` must have shape \(n, S, 3\)"),
        ({"samples": np.zeros((N, 1, K))}, "S at least 2"),
        ({"confidence": np.zeros((N, 1))}, r"`confidence` must have shape \(n,\)"),
        ({"sample_confidence": np.zeros((N, 4))}, "must go with `samples`"),
        ({"samples": None}, "must go with `samples`; got none"),
    ],
)
def test_lengths_that_differ_are_refused(changes, match):
    with pytest.raises(ShapeError, match=match):
        made(**changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"logits": np.full((N, K), np.nan)}, "`logits` must be finite"),
        ({"features": np.full((N, 2), np.inf)}, "`features` must be finite"),
        ({"confidence": np.array(["a"] * N)}, "`confidence` must hold numbers"),
        ({"labels": np.full(N, 3)}, "`labels` must lie in 0 to 2, or be -1"),
        ({"labels": np.full(N, -2)}, "or be -1"),
        ({"labels": np.zeros(N)}, "`labels` must hold whole numbers"),
        ({"places": np.zeros(N)}, "`places` must hold whole numbers"),
    ],
)
def test_values_that_make_no_sense_are_refused(changes, match):
    with pytest.raises(DomainError, match=match):
        made(**changes)


@pytest.mark.parametrize("rows", [[], [7], [-8], [0.5], np.ones(3, bool), np.zeros(N, bool), 2])
def test_rows_that_are_not_there_are_refused(rows):
    with pytest.raises((ShapeError, DomainError), match="`rows`"):
        made().subset(rows)


# --------------------------------------------------------------------------------------- ensembles


def softmax(x):
    e = np.exp(x.astype(np.float64))
    return e / e.sum(-1, keepdims=True)


def test_an_ensemble_averages_probabilities():
    members = [made(seed) for seed in range(3)]
    found = ensemble_outputs(members)
    expected = np.mean([softmax(m.logits) for m in members], axis=0)
    np.testing.assert_allclose(np.exp(found.logits), expected, rtol=1e-6)
    for i, member in enumerate(members):
        np.testing.assert_array_equal(found.samples[:, i], member.logits)
        np.testing.assert_array_equal(found.sample_confidence[:, i], member.confidence)
    assert found.features is None
    assert found.confidence is None
    np.testing.assert_array_equal(found.places, members[0].places)


def test_an_ensemble_is_exact_where_probabilities_saturate():
    sure = made(logits=np.tile(np.float32([40.0, 0.0, 20.0]), (N, 1)), confidence=None)
    found = ensemble_outputs([sure, sure])
    np.testing.assert_allclose(found.logits[0], [-np.exp(-20.0), -40.0, -20.0], rtol=1e-6)
    assert found.sample_confidence is None


def test_members_of_other_pictures_are_refused():
    for changes, match in [
        ({"labels": np.zeros(N, int)}, "`labels` of member 3"),
        ({"places": np.arange(N)}, "`places` of member 3"),
        ({"logits": np.zeros((N, 4))}, "shape of the logits of member 3"),
    ]:
        other = made(samples=None, sample_confidence=None, **changes)
        with pytest.raises(InputError, match=match):
            ensemble_outputs([made(0), made(1), other])
    with pytest.raises(InputError, match="at least two outputs; got 1"):
        ensemble_outputs([made()])


# ------------------------------------------------------------------------------------ from networks


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def network_of(kind="cross-entropy", dropout=0.3):
    from abstain import training
    from abstain_bench.networks import MODELS

    backbone = MODELS["tiny-conv"].make((1, 8, 8), seed=0, dropout=dropout)
    objective = training.make(kind, rng=0)
    return training.Network(backbone, objective.head(backbone.width, K)), objective


@pytest.fixture(scope="module")
def pictures(torch):
    return torch.randn(1203, 1, 8, 8, generator=torch.Generator().manual_seed(3))


def asked(network, objective, pictures, **options):
    from abstain_bench.runs.passes import outputs_of

    n = len(pictures)
    return outputs_of(network, objective, pictures, np.full(n, -1), np.arange(n), **options)


def test_logits_are_those_of_training_and_features_go_to_them(torch, pictures):
    from abstain_bench.runs.training import logits_of

    network, objective = network_of()
    network.train()
    out = asked(network, objective, pictures)
    np.testing.assert_array_equal(out.logits, logits_of(network, pictures))
    last = network.head.classifier
    again = torch.from_numpy(out.features.copy()) @ last.weight.T + last.bias
    np.testing.assert_allclose(again.detach().numpy(), out.logits, atol=1e-5)
    assert out.samples is None
    assert out.confidence is None  # a function of the logits


def test_samples_are_seeded_and_the_global_generator_is_left_alone(torch, pictures):
    network, objective = network_of()
    few = pictures[:9]
    before = torch.get_rng_state()
    one, two, other = (asked(network, objective, few, samples=4, seed=s) for s in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(one.samples, two.samples)
    assert not np.array_equal(one.samples, other.samples)
    assert not np.array_equal(one.samples[:, 0], one.samples[:, 1])
    np.testing.assert_array_equal(one.logits, asked(network, objective, few).logits)


def test_samples_scatter_about_the_pass_without_dropout(pictures):
    # One layer of dropout before a linear one: the mean over the passes is the pass without.
    network, objective = network_of(dropout=0.0)
    from torch import nn

    network.backbone.dropout = nn.Identity()
    network.head.classifier = nn.Sequential(nn.Dropout(0.5), network.head.classifier)
    out = asked(network, objective, pictures[:5], samples=800)
    spread = out.samples.std(axis=1)
    assert (spread > 1e-3).all()
    error = np.abs(out.samples.mean(axis=1) - out.logits)
    assert (error < 5 * spread / np.sqrt(800)).all()


def test_only_dropout_is_on_and_it_is_off_afterwards(torch, pictures):
    network, objective = network_of()
    before = {name: x.clone() for name, x in network.state_dict().items()}
    asked(network, objective, pictures[:9], samples=2)
    assert all(torch.equal(before[name], x) for name, x in network.state_dict().items())
    assert not any(module.training for module in network.modules())


def test_blocks_change_nothing_without_dropout_and_are_bounded(torch, pictures, monkeypatch):
    from abstain_bench.runs import passes

    network, objective = network_of("deep-gamblers")
    whole = asked(network, objective, pictures, samples=2)
    seen = []
    hook = network.head.register_forward_pre_hook(lambda _, x: seen.append(len(x[0])))
    monkeypatch.setattr(passes, "_POINTS", 64 * 100)
    parts = asked(network, objective, pictures, samples=2)
    hook.remove()
    assert max(seen) == 100
    assert sum(seen) == 3 * len(pictures)
    np.testing.assert_allclose(parts.logits, whole.logits, atol=1e-5)
    np.testing.assert_allclose(parts.confidence, whole.confidence, atol=1e-5)
    assert parts.samples.shape == whole.samples.shape == (1203, 2, K)


def test_blocks_are_bounded_by_the_side_at_which_the_layers_see_the_pictures(
    torch, pictures, monkeypatch
):
    """A transformer at 384 sees twelve times the height of a picture of CIFAR."""
    from abstain_bench.networks import Resized
    from abstain_bench.runs import passes

    network, objective = network_of("deep-gamblers")
    network.backbone = Resized(network.backbone, 40)
    seen = []
    network.head.register_forward_pre_hook(lambda _, x: seen.append(len(x[0])))
    monkeypatch.setattr(passes, "_POINTS", 40 * 40 * 7)
    found = asked(network, objective, pictures[:20])
    assert seen == [7, 7, 6]
    assert found.n == 20


@pytest.mark.parametrize("kind", ["deep-gamblers", "confidnet", "devries", "self-adaptive"])
def test_own_confidence_is_the_objective_s(kind, torch, pictures):
    network, objective = network_of(kind)
    few = pictures[:6]
    out = asked(network, objective, few, samples=3)
    with torch.no_grad():
        told = network(few)
    np.testing.assert_allclose(out.confidence, objective.confidence(told).numpy(), rtol=1e-6)
    np.testing.assert_array_equal(out.logits, objective.class_logits(told).numpy())
    assert out.sample_confidence.shape == (6, 3)
    # The passes of the logits and of the confidence are the same ones.
    assert (out.sample_confidence.std(axis=1) > 0).all()
    np.testing.assert_array_equal(out.predictions().confidence["own"], out.confidence)


def test_half_precision_is_widened(torch, pictures):
    network, objective = network_of("deep-gamblers")
    out = asked(network.bfloat16(), objective, pictures[:3].bfloat16(), samples=2)
    kinds = {out.logits.dtype, out.features.dtype, out.samples.dtype}
    assert kinds == {np.dtype(np.float32)}


@pytest.mark.parametrize("model", ["small-conv", "tiny-conv"])
def test_what_is_done_once_for_all_passes_changes_no_pass(torch, pictures, model):
    from abstain import training
    from abstain_bench.networks import MODELS

    objective = training.make("confidnet", rng=0, fine_tune=0.25)
    backbone = MODELS[model].make((1, 8, 8), seed=0, dropout=0.4)
    network = training.Network(backbone, objective.head(backbone.width, K))
    network.enter(objective.plan(4)[-1])  # the twin comes into being
    for layer in network.twin.modules():
        if isinstance(layer, torch.nn.Conv2d):
            torch.nn.init.normal_(layer.weight)
    few = pictures[:20]
    found = asked(network, objective, few, samples=3, seed=5)
    network.eval()
    with torch.inference_mode(), torch.random.fork_rng():
        torch.manual_seed(5)
        plain = network(few)
        for layer in network.modules():
            if isinstance(layer, torch.nn.Dropout):
                layer.train()
        drawn = [network(few) for _ in range(3)]
    np.testing.assert_array_equal(found.logits, plain.logits.numpy())
    np.testing.assert_array_equal(found.confidence, objective.confidence(plain).numpy())
    for i, one in enumerate(drawn):
        np.testing.assert_array_equal(found.samples[:, i], one.logits.numpy())
        np.testing.assert_array_equal(
            found.sample_confidence[:, i], objective.confidence(one).numpy()
        )


def test_what_cannot_be_asked_is_refused(torch, pictures):
    from abstain_bench.runs import passes

    network, objective = network_of(dropout=0.0)
    with pytest.raises(InputError, match="network has no dropout"):
        asked(network, objective, pictures[:3], samples=2)
    for samples in (1, -1, 2.0, True):
        with pytest.raises(InputError, match="`samples` must be 0"):
            asked(network, objective, pictures[:3], samples=samples)
    with pytest.raises(ShapeError, match="`pictures` must be a tensor"):
        asked(network, objective, pictures[:3, 0])
    with pytest.raises(ShapeError, match="`labels`"):
        passes.outputs_of(network, objective, pictures[:3], [0], [0, 1, 2])
    torch.nn.init.constant_(network.head.classifier.bias, float("nan"))
    with pytest.raises(DomainError, match=r"`logits` must be finite.*diverge"):
        asked(network, objective, pictures[:3])
