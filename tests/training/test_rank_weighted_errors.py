"""Each mistake is told in plain words, with the rule, the argument and what to do."""

import re

import pytest

from abstain.errors import InputError

torch = pytest.importorskip("torch")

from abstain.training import RankWeightedLoss, rank_weighted_loss  # noqa: E402

Z, Y = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])
C, X = torch.arange(4.0), torch.ones(4)


@pytest.mark.parametrize(("options", "message"), [
    ({"weights": "arc"}, "`weights` must be one of 'aurc', .*Did you mean 'aurc'?"),
    ({"weights": 3}, "`weights` must be a name or a function"),
    ({"weights": "partial-augrc"}, "'partial-augrc' needs a coverage interval"),
    ({"weights": "partial-augrc", "between": 0.5}, "two coverages (low, high); got 0.5"),
    ({"weights": "partial-augrc", "between": (0.5, 1.5)}, "`between[1]` must lie in"),
    ({"weights": "partial-augrc", "between": (0.8, 0.5)}, "from a lower to a higher coverage"),
    ({"between": (0.5, 1.0)}, "`between` is only supported with 'partial-aurc'"),
    ({"weights": lambda r, _: r, "between": (0.5, 1.0)}, "not with a function"),
    ({"score": "msrr"}, "no score named 'msrr'. Did you mean 'msr'?"),
    ({"score": "mcd_msr"}, "'mcd_msr' needs Monte-Carlo samples"),
    ({"score": "mahalanobis"}, "must be fitted first"),
    ({"score": "mls@T=2"}, "has no temperature"),
    ({"score": 1.0}, "`score` must be the name of a score or a function"),
    ({"base": "cross_entropy"}, "Did you mean 'cross-entropy'?"),
    ({"base": None}, "`base` must be the name of a loss or a function"),
    ({"soft": 0.0}, "`soft` must be above 0; got 0.0"),
    ({"soft": "warm"}, "`soft` must be a number; got 'warm'"),
    ({"queue": -1}, "`queue` must be an integer of at least 1; got -1"),
    ({"queue": 2.5}, "`queue` must be an integer"),
    ({"queue": False}, "`queue` must be an integer"),
    ({"gather": True}, "`gather` must be 'auto' or False; got True"),
])  # fmt: skip
def test_options(options, message):
    with pytest.raises(InputError, match=re.escape(message).replace(r"\.\*", ".*")):
        RankWeightedLoss(**options)


@pytest.mark.parametrize(("logits", "labels", "message"), [
    (Z[:0], Y[:0], "the batch is empty; at least one sample is needed"),
    (Z.numpy(), Y, "`logits` must be a torch.Tensor; got ndarray"),
    (Z[:, 0], Y, "`logits` must have shape (n, K)"),
    (Z[:, :1], Y, "at least two classes; got (4, 1)"),
    (Z.long(), Y, "floating-point class scores; got torch.int64"),
    (Z, Y[:3], "`labels` must have one entry for each of the 4 rows of `logits`; got shape (3,)"),
    (Z, Z, "For class probabilities as targets"),
    (Z, Y.float(), "integer class codes from 0 to 2; got torch.float32"),
    (Z, torch.tensor([0, 1, 3, 0]), "class codes from 0 to 2; got 3 at index 2"),
    (Z, torch.tensor([0, -100, 2, 0]), "got -100 at index 1. Leave out rows to ignore first"),
])  # fmt: skip
def test_batches(logits, labels, message):
    with pytest.raises(InputError, match=re.escape(message)):
        RankWeightedLoss()(logits, labels)


@pytest.mark.parametrize(("confidence", "loss", "options", "message"), [
    (C[:0], X[:0], {}, "the batch is empty"),
    (C, X[:3], {}, "`loss` must have one entry for each of the 4 samples; got shape (3,)"),
    (C, X[:, None], {}, "`loss` must have one number for each sample, shape (n,); got (4, 1)"),
    (C.numpy(), X, {}, "`confidence` must be a torch.Tensor"),
    (C, 1.0, {}, "`loss` must be a torch.Tensor; got float"),
    (C, X.to("meta"), {}, "must be on one device"),
    (C, X, {"recent": Z}, "`recent` must be a tensor of earlier confidences"),
    (C, X, {"recent": [1.0]}, "got list"),
    (C, X, {"weight": X[:2]}, "`weight` must have one entry for each of the 4 samples"),
    (C, X, {"weight": -X}, "`weight` must not be negative; got -1.0 at index 0"),
    (C, X, {"weight": 0 * X}, "`weight` must not be zero everywhere"),
    (C, X, {"weight": X, "soft": 0.1}, "`weight` is not supported with soft ranks; multiply the loss"),
    (C, X, {"weight": X, "recent": C}, "`weight` is not supported with ranks among recent"),
    (C, X, {"weight": X, "weights": lambda r, _: r}, "is not supported with a function as `weights`"),
    (C, X, {"weights": lambda r, _: r[:2]}, "one weight for each rank, a tensor of shape (4,)"),
    (C, X, {"weights": lambda _, n: n}, "got int"),
])  # fmt: skip
def test_vectors(confidence, loss, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        rank_weighted_loss(confidence, loss, **options)


def test_a_weight_and_a_queue():
    with pytest.raises(InputError, match="`weight` is not supported with ranks among recent"):
        RankWeightedLoss(queue=4)(Z, Y, X)


def test_an_own_loss_of_the_wrong_shape():
    with pytest.raises(InputError, match=r"`loss` must have one number for each sample"):
        RankWeightedLoss(base=torch.nn.functional.cross_entropy)(Z, Y)


def test_a_loss_without_gradient_evaluates_and_says_what_training_needs():
    logits = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]], requires_grad=True)
    labels = torch.tensor([0, 0, 1])
    hard = RankWeightedLoss("augrc", base="zero-one")
    expected = hard(logits.detach(), labels)
    value = hard(logits, labels)
    assert value.item() == expected.item()
    assert not expected.requires_grad
    with torch.no_grad():
        assert not hard(logits, labels).requires_grad
    with pytest.raises(InputError, match=r"the loss has no gradient: .* pass `soft`"):
        value.backward()
    alone = rank_weighted_loss(logits[:, 0], torch.tensor([0.0, 1.0, 1.0]))
    with pytest.raises(InputError, match="the loss has no gradient"):
        alone.backward()
    RankWeightedLoss("augrc", base="zero-one", soft=0.1)(logits, labels).backward()
    assert logits.grad.abs().sum() > 0


@pytest.mark.parametrize("soft", [True, False])
def test_soft_is_a_temperature_and_no_switch(soft):
    with pytest.raises(InputError, match=r"must be a temperature, such as 0\.1"):
        RankWeightedLoss("aurc", soft=soft)
