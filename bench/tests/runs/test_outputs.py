"""Outputs: what a network said, with dropout off and on, and what several say together."""

import numpy as np
import pytest

from abstain.errors import DomainError, InputError, ShapeError
from abstain_bench.runs.outputs import ensemble_outputs, network_outputs

N, K = 7, 3


def made(seed=0, **changes):
    rng = np.random.default_rng(seed)
    given = {
        "logits": rng.normal(size=(N, K)).astype(np.float32),
        "labels": np.array([0, 1, 2, -1, 0, 1, -1]),
        "source_indices": np.array([5, 5, 6, 7, 8, 8, 9]),
        "features": rng.normal(size=(N, 4)).astype(np.float32),
        "samples": rng.normal(size=(N, 5, K)).astype(np.float32),
        "confidence": rng.normal(size=N),
        "sample_confidence": rng.normal(size=(N, 5)),
    }
    return network_outputs(**{**given, **changes})


# ------------------------------------------------------------------------------------- predictions


def test_outputs_are_predictions_and_unknown_classes_are_always_wrong():
    out = made()
    unknown = out.labels == -1
    assert unknown.sum() == 2
    assert not out.correct[unknown].any()
    is_known = np.argmax(out.logits, axis=1) == out.labels
    np.testing.assert_array_equal(out.correct[~unknown], is_known[~unknown])
    assert out.class_names == (0, 1, 2)
    assert out.ids.tolist() == [5, 5, 6, 7, 8, 8, 9]


def test_pictures_of_unknown_classes_alone_can_be_evaluated():
    out = made(labels=np.full(N, -1), confidence=None, sample_confidence=None)
    assert out.n_classes == K
    assert not out.correct.any()
    assert not out.confidence


def test_learned_confidences_are_summarized_over_the_passes():
    log_odds = np.random.default_rng(1).normal(size=(N, 5))
    out = made(confidence=log_odds[:, 0], sample_confidence=log_odds)
    p = 1 / (1 + np.exp(-log_odds))
    mean = p.mean(axis=1)
    np.testing.assert_array_equal(out.confidence["learned"], log_odds[:, 0])
    np.testing.assert_allclose(out.confidence["mcd_learned"], np.log(mean / (1 - mean)))
    np.testing.assert_allclose(out.confidence["learned_waic"], mean - p.std(axis=1))


@pytest.mark.parametrize(
    ("given", "kept"), [(np.float16, np.float32), (np.float32, np.float32), (float, np.float64)]
)
def test_logits_are_kept_at_float32_or_better(given, kept):
    assert made(logits=np.zeros((N, K), given)).logits.dtype == kept
    assert made(confidence=np.zeros(N, given)).confidence["learned"].dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"logits": np.zeros(N)}, r"`logits` must have shape \(n, K\)"),
        ({"logits": np.zeros((N, 1)), "samples": None}, "at least two classes"),
        ({"labels": np.zeros(3, int)}, "`labels` must have one entry for each of the 7"),
        ({"source_indices": np.zeros(3, int)}, "`ids` must have one entry for each of the 7"),
        ({"features": np.zeros((3, 2))}, "`features` must have one entry for each of the 7"),
        ({"samples": np.zeros((N, 5, 4))}, r"`logit_samples` must have shape \(7, S, 3\)"),
        ({"confidence": np.zeros(3)}, "must have one entry for each of the 7"),
    ],
)
def test_lengths_that_differ_raise_an_error(changes, match):
    with pytest.raises(ShapeError, match=match):
        made(**changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"logits": np.full((N, K), np.nan)}, "`logits` must be finite.*diverge"),
        ({"features": np.full((N, 2), np.inf)}, "`features` must be finite"),
        ({"sample_confidence": np.full((N, 5), np.nan)}, "`sample_confidence` must be finite"),
        ({"labels": np.full(N, 3)}, "labels"),
        ({"labels": np.full(N, -2)}, "labels"),
    ],
)
def test_values_that_make_no_sense_raise_an_error(changes, match):
    with pytest.raises(DomainError, match=match):
        made(**changes)


# --------------------------------------------------------------------------------------- ensembles


def softmax(x):
    e = np.exp(x.astype(np.float64))
    return e / e.sum(-1, keepdims=True)


def test_an_ensemble_averages_probabilities():
    members = [made(seed) for seed in range(3)]
    result = ensemble_outputs(members)
    expected = np.mean([softmax(m.logits) for m in members], axis=0)
    np.testing.assert_allclose(np.exp(result.logits), expected, rtol=1e-6)
    for i, member in enumerate(members):
        np.testing.assert_array_equal(result.logit_samples[:, i], member.logits)
    assert result.features is None
    assert result.confidence is None
    np.testing.assert_array_equal(result.ids, members[0].ids)


def test_an_ensemble_is_exact_where_probabilities_saturate():
    sure = made(logits=np.tile(np.float32([40.0, 0.0, 20.0]), (N, 1)), confidence=None)
    result = ensemble_outputs([sure, sure])
    np.testing.assert_allclose(result.logits[0], [-np.exp(-20.0), -40.0, -20.0], rtol=1e-6)
    assert result.confidence is None


def test_members_of_other_pictures_raise_an_error():
    for changes, match in [
        ({"labels": np.zeros(N, int)}, "`labels` of member 3"),
        ({"source_indices": np.arange(N)}, "`ids` of member 3"),
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
    from abstain_bench.runs.passes import compute_outputs

    n = len(pictures)
    return compute_outputs(network, objective, pictures, np.full(n, -1), np.arange(n), **options)


def test_logits_equal_those_of_training_and_features_go_to_them(torch, pictures):
    from abstain_bench.runs.training import compute_logits

    network, objective = network_of()
    network.train()
    out = asked(network, objective, pictures)
    np.testing.assert_array_equal(out.logits, compute_logits(network, pictures))
    last = network.head.classifier
    again = torch.from_numpy(out.features.copy()) @ last.weight.T + last.bias
    np.testing.assert_allclose(again.detach().numpy(), out.logits, atol=1e-5)
    assert out.logit_samples is None
    assert out.confidence is None  # a function of the logits


def test_samples_are_seeded_and_the_global_generator_is_left_alone(torch, pictures):
    network, objective = network_of()
    few = pictures[:9]
    before = torch.get_rng_state()
    first, second, other = (asked(network, objective, few, samples=4, seed=s) for s in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(first.logit_samples, second.logit_samples)
    assert not np.array_equal(first.logit_samples, other.logit_samples)
    assert not np.array_equal(first.logit_samples[:, 0], first.logit_samples[:, 1])
    np.testing.assert_array_equal(first.logits, asked(network, objective, few).logits)


def test_samples_scatter_about_the_pass_without_dropout(pictures):
    # One layer of dropout before a linear one: the mean over the passes is the pass without.
    network, objective = network_of(dropout=0.0)
    from torch import nn

    network.backbone.dropout = nn.Identity()
    network.head.classifier = nn.Sequential(nn.Dropout(0.5), network.head.classifier)
    out = asked(network, objective, pictures[:5], samples=800)
    spread = out.logit_samples.std(axis=1)
    assert (spread > 1e-3).all()
    error = np.abs(out.logit_samples.mean(axis=1) - out.logits)
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
    calls = []
    hook = network.head.register_forward_pre_hook(lambda _, x: calls.append(len(x[0])))
    monkeypatch.setattr(passes, "_MAX_BLOCK_PIXELS", 64 * 100)
    parts = asked(network, objective, pictures, samples=2)
    hook.remove()
    assert max(calls) == 100
    assert sum(calls) == 3 * len(pictures)
    np.testing.assert_allclose(parts.logits, whole.logits, atol=1e-5)
    np.testing.assert_allclose(parts.confidence["learned"], whole.confidence["learned"], atol=1e-5)
    assert parts.logit_samples.shape == whole.logit_samples.shape == (1203, 2, K)


def test_blocks_are_bounded_by_the_side_at_which_the_layers_see_the_pictures(
    torch, pictures, monkeypatch
):
    """A transformer at 384 sees twelve times the height of an image of CIFAR."""
    from abstain_bench.networks import Resized
    from abstain_bench.runs import passes

    network, objective = network_of("deep-gamblers")
    network.backbone = Resized(network.backbone, 40)
    calls = []
    network.head.register_forward_pre_hook(lambda _, x: calls.append(len(x[0])))
    monkeypatch.setattr(passes, "_MAX_BLOCK_PIXELS", 40 * 40 * 7)
    result = asked(network, objective, pictures[:20])
    assert calls == [7, 7, 6]
    assert result.n == 20


@pytest.mark.parametrize("kind", ["deep-gamblers", "confidnet", "devries", "self-adaptive"])
def test_own_confidence_is_the_objective_s(kind, torch, pictures):
    network, objective = network_of(kind)
    few = pictures[:6]
    out = asked(network, objective, few, samples=3)
    with torch.no_grad():
        told = network(few)
    np.testing.assert_allclose(
        out.confidence["learned"], objective.confidence(told).numpy(), rtol=1e-6
    )
    np.testing.assert_array_equal(out.logits, objective.class_logits(told).numpy())
    mean = 1 / (1 + np.exp(-out.confidence["mcd_learned"]))
    # The passes differ: the standard deviation is above 0.
    assert (out.confidence["learned_waic"] < mean - 1e-9).all()


def test_half_precision_is_widened(torch, pictures):
    network, objective = network_of("deep-gamblers")
    out = asked(network.bfloat16(), objective, pictures[:3].bfloat16(), samples=2)
    kinds = {out.logits.dtype, out.features.dtype, out.logit_samples.dtype}
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
    result = asked(network, objective, few, samples=3, seed=5)
    network.eval()
    with torch.inference_mode(), torch.random.fork_rng():
        torch.manual_seed(5)
        plain = network(few)
        for layer in network.modules():
            if isinstance(layer, torch.nn.Dropout):
                layer.train()
        draws = [network(few) for _ in range(3)]
    np.testing.assert_array_equal(result.logits, plain.logits.numpy())
    np.testing.assert_array_equal(result.confidence["learned"], objective.confidence(plain).numpy())
    for i, one in enumerate(draws):
        np.testing.assert_array_equal(result.logit_samples[:, i], one.logits.numpy())
    # The passes of the logits and of the confidence are the same ones.
    p = 1 / (1 + np.exp(-np.stack([objective.confidence(one).numpy() for one in draws])))
    waic = p.mean(axis=0) - p.std(axis=0)
    np.testing.assert_allclose(result.confidence["learned_waic"], waic, rtol=1e-6, atol=1e-9)


def test_what_cannot_be_asked_is_refused(torch, pictures):
    from abstain_bench.runs import passes

    network, objective = network_of(dropout=0.0)
    with pytest.raises(InputError, match="network has no dropout"):
        asked(network, objective, pictures[:3], samples=2)
    for samples in (1, -1, 2.0, True):
        with pytest.raises(InputError, match="`samples` must be 0"):
            asked(network, objective, pictures[:3], samples=samples)
    with pytest.raises(ShapeError, match="`images` must be a tensor"):
        asked(network, objective, pictures[:3, 0])
    with pytest.raises(ShapeError, match="`labels`"):
        passes.compute_outputs(network, objective, pictures[:3], [0], [0, 1, 2])
    torch.nn.init.constant_(network.head.classifier.bias, float("nan"))
    with pytest.raises(DomainError, match=r"`logits` must be finite.*diverge"):
        asked(network, objective, pictures[:3])
