"""What a metric keeps: memory, sharing, moving, saving, forgetting."""

import copy
import io
import pickle

import numpy as np
import pytest

import abstain as ab
from abstain import streaming

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from abstain.integrations import torchmetrics as tm  # noqa: E402
from abstain.integrations.torchmetrics._state import MAX_BLOCKS  # noqa: E402

BOTH = pytest.mark.parametrize("bins", [None, 4096])
ARRAYS = ("count", "weight", "loss", "min_confidence", "max_confidence")


def data(n=200, seed=0, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    c = torch.rand(n, generator=g).to(dtype)
    return c, torch.rand(n, generator=g) > c.float()


def held(metric):
    """Tensors and bytes in the lists of an exact state."""
    tensors = [x for part in metric.metric_state.values() for x in part]
    return len(tensors), sum(x.untyped_storage().nbytes() for x in tensors)


def test_many_small_updates_stay_compact():
    c, x = data(20_000)
    metric = tm.AUGRC()
    most = 0
    for one, wrong in zip(c.split(1), x.split(1), strict=True):
        metric.update(one, wrong)
        most = max(most, len(metric.samples_confidence))
    assert most <= MAX_BLOCKS
    tensors, size = held(metric)
    assert tensors <= 3 * MAX_BLOCKS
    # float32 confidence, a byte for a 0/1 loss, a byte for "no weights".
    assert size == 6 * 20_000
    assert metric.compute().item() == ab.augrc(c, x)


@pytest.mark.parametrize("sizes", [[1, 1000], [1000, 1], [3, 70, 1, 1, 500]])
def test_batches_of_all_sizes_stay_compact(sizes):
    c, x = data(64)
    metric = tm.AUGRC()
    for k in range(2000):
        rows = torch.arange(sizes[k % len(sizes)]) % 64
        metric.update(c[rows], x[rows])
        assert len(metric.samples_confidence) <= MAX_BLOCKS
    assert len(metric.samples_loss) == len(metric.samples_confidence)


def test_nothing_but_the_samples_is_kept_alive():
    big = torch.rand(10, 1000)
    metric = tm.AUGRC()
    metric.update(big[:, 0], torch.zeros(10))
    assert held(metric)[1] == 10 * (4 + 4 + 1)
    kept = big[:, 0].clone()
    big.zero_()
    assert torch.equal(metric.samples_confidence[0], kept)
    learned = torch.rand(10, requires_grad=True)
    metric.update(learned * 1, torch.zeros(10))
    assert not metric.samples_confidence[1].requires_grad


@BOTH
def test_all_metrics_of_a_collection_share_one_state(bins):
    c, x = data()
    metrics = torchmetrics.MetricCollection([
        tm.AUGRC(bins=bins), tm.AURC(bins=bins), tm.FailureAUROC(bins=bins),
        tm.SelectiveRiskAtCoverage(0.8, bins=bins), tm.CoverageAtRisk(0.1, bins=bins),
        tm.CWSA(0.5, bins=bins), tm.CWSAPlus(0.5, bins=bins),
    ])  # fmt: skip
    for part in torch.arange(200).split(40):
        metrics.update(c[part], x[part])
    assert len(metrics.compute_groups) == 1
    first = metrics.compute()
    for m in metrics.values(copy_state=False):
        for name, state in metrics.AUGRC.metric_state.items():
            assert getattr(m, name) is state
    assert metrics["AUGRC"].update_count == 5
    alone = tm.AURC(bins=bins)
    alone.update(c, x)
    assert first["AURC"] == alone.compute()
    # Each metric's forward is called while the state is shared; a batch counts once all the same.
    metrics.update(c[50:60], x[50:60])
    values = metrics(c[:50], x[:50])
    assert values["AUGRC"].item() == ab.augrc(c[:50], x[:50])
    alone.update(c[:60], x[:60])
    assert metrics.compute()["AURC"] == alone.compute()
    assert metrics["AUGRC"].compute_bounds().low <= ab.augrc(
        torch.cat([c, c[:60]]), torch.cat([x, x[:60]])
    )
    metrics.reset()
    metrics.update(c, x)
    assert metrics.compute() == first


def test_different_options_never_share_a_state():
    logits = torch.zeros(1, 3)
    options = [
        {"inputs": "logits"}, {"inputs": "logits", "score": "pe"},
        {"inputs": "logits", "score": "msr@T=1.5"}, {"inputs": "logits", "score": "msr@T=15"},
        {"inputs": "logits", "bins": 256}, {"inputs": "logits", "bins": 512},
        {"inputs": "logits", "bins": 256, "scale": "real"},
    ]  # fmt: skip
    metrics = torchmetrics.MetricCollection(
        {str(k): tm.AUGRC(**option) for k, option in enumerate(options)}
    )
    # Alike in every number that the first batch leaves.
    metrics.update(logits, torch.tensor([1]))
    assert len(metrics.compute_groups) == len(options)


def test_selective_metrics():
    c, x = data()
    metrics = tm.selective_metrics(["augrc", "ece", "cwsa@0.5"], prefix="val/")
    metrics.update(c, x)
    assert len(metrics.compute_groups) == 1
    results = {name: value.item() for name, value in metrics.compute().items()}
    assert results == {
        "val/augrc": ab.augrc(c, x),
        "val/ece": ab.ece(c, x),
        "val/cwsa@0,5": ab.cwsa(c, x, threshold=0.5),
    }
    assert set(tm.selective_metrics(bins=256)) == {
        "augrc", "aurc", "failure_auroc", "selective_risk@80cov", "coverage@5risk",
    }  # fmt: skip


@BOTH
@pytest.mark.parametrize("cast", [
    lambda m: m.half(), lambda m: m.to(torch.float16), lambda m: m.bfloat16(),
    lambda m: m.set_dtype(torch.float16), lambda m: m.to("cpu"),
])  # fmt: skip
def test_casting_a_model_leaves_its_metrics_exact(bins, cast):
    model = torch.nn.Linear(2, 2)
    model.metric = tm.AUGRC(bins=bins)
    c, x = data()
    model.metric.update(c, x)
    before = model.metric.compute_bounds()
    cast(model.metric)
    cast_model = model.half()
    assert model.metric.compute_bounds() == before
    cast_model.metric.reset()
    cast_model.metric.update(c, x)
    assert cast_model.metric.compute_bounds() == before


@BOTH
def test_half_precision_is_kept(bins):
    c, x = data(dtype=torch.float16)
    metric = tm.AUGRC(bins=bins)
    for part in torch.arange(200).split(7):
        metric.update(c[part], x[part])
    if bins is None:
        assert metric.samples_confidence[0].dtype == torch.float16
        # A wider batch widens the rest, exactly.
        metric.update(c.to(torch.float32), x)
        assert metric.compute().item() == ab.augrc(torch.cat([c, c]), torch.cat([x, x]))


def test_a_threshold_is_compared_in_the_precision_of_the_confidences():
    c, x = torch.tensor([0.9, 0.9, 0.95]), torch.tensor([0, 1, 0])
    for bins in (None, 65536):
        metric = tm.CWSAPlus(0.9, bins=bins)
        metric.update(c, x)
        # A float32 0.9 is a hair below the number 0.9, and accepted all the same.
        assert metric.compute().item() == pytest.approx(ab.cwsa_plus(c, x, threshold=0.9))


@BOTH
def test_pickling_copying_and_resetting(bins):
    c, x = data()
    metric = tm.SelectiveRiskAtCoverage(0.9, bins=bins)
    metric.update(c, x)
    expected = metric.compute()
    for twin in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric), metric.clone()):
        assert twin.compute() == expected
        twin.update(c[:50], 1 - x[:50].long())
        assert twin.compute() != expected
    assert metric.compute() == expected
    metric.reset()
    assert metric.update_count == 0
    metric.update(c, x)
    assert metric.compute() == expected


@BOTH
def test_a_state_can_be_saved_and_loaded(bins):
    c, x = data()
    metric = tm.AUGRC(bins=bins)
    metric.persistent(True)
    metric.update(c[:100], x[:100])
    file = io.BytesIO()
    torch.save(metric.state_dict(), file)
    file.seek(0)
    other = tm.AUGRC(bins=bins)
    other.load_state_dict(torch.load(file, weights_only=True))
    other.update(c[100:], x[100:])
    metric.update(c[100:], x[100:])
    assert other.compute() == metric.compute()
    # As Lightning saves it: while it is synced, when a list is one tensor.
    synced = {
        name: torch.cat(state) if isinstance(state, list) else state
        for name, state in metric.metric_state.items()
    }
    other = tm.AUGRC(bins=bins)
    other.load_state_dict(synced)
    other.update(c[:10], x[:10])
    metric.update(c[:10], x[:10])
    assert other.compute() == metric.compute()
    other = tm.AUGRC(bins=bins)
    other.load_state_dict(synced)
    other.reset()
    other.update(c, x)
    assert other.compute_bounds().low <= ab.augrc(c, x) <= other.compute_bounds().high


@BOTH
def test_merging(bins):
    c, x = data()
    first, second, whole = (tm.AUGRC(bins=bins) for _ in range(3))
    weights = torch.randint(1, 4, (100,), generator=torch.Generator().manual_seed(0))
    first.update(c[:100], x[:100])
    second.update(c[100:], x[100:], weights)
    whole.update(c, x, torch.cat([torch.ones(100, dtype=torch.int64), weights]))
    first.merge_state(second)
    assert first.compute() == whole.compute()


@BOTH
def test_inference_mode_may_come_and_go(bins):
    c, x = data()
    metric = tm.AUGRC(bins=bins)
    with torch.inference_mode():
        metric.reset()
        metric.update(c[:50], x[:50])
    metric.update(c[50:100], x[50:100])
    with torch.inference_mode():
        metric(c[100:], x[100:])
    result = metric.compute_bounds()
    assert result.low <= ab.augrc(c, x) <= result.high


def test_states_may_live_on_the_host():
    c, x = data()
    metric = tm.AUGRC(compute_on_cpu=True)
    for k in range(600):
        metric.update(c[k % 200 : k % 200 + 1], x[k % 200 : k % 200 + 1])
    assert metric.compute().item() == ab.augrc(c, x)


@pytest.mark.parametrize("scale", ["probability", "log-odds", "real"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_bounded_state_equals_that_of_streaming(scale, dtype):
    rng = np.random.default_rng(0)
    c = rng.random(3000) ** 3 if scale == "probability" else rng.normal(0, 30, 3000)
    c[:20] = 0
    c[20:40] = 1
    c = torch.tensor(c).to(dtype)
    x, w = torch.tensor(rng.random(3000)), torch.tensor(rng.integers(0, 3, 3000))
    metric = tm.AUGRC(bins=1024, scale=scale)
    for part in torch.arange(3000).split(1000):
        metric.update(c[part], x[part], w[part])
    mine = streaming.update(streaming.init(bins=1024, scale=scale), c, x, w)
    from abstain.integrations.torchmetrics._state import histogram

    theirs = histogram(metric._states(), scale)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(theirs, name), getattr(mine, name), rtol=1e-13)
    for name in ("largest_loss", "binary", "precision", "scale", "n"):
        assert getattr(theirs, name) == getattr(mine, name)
    assert metric.error_bound == pytest.approx(streaming.compute(mine, "augrc").error_bound)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@BOTH
def test_on_a_device(bins):
    c, x = data(20_000)
    metric = tm.AUGRC(bins=bins).to("cuda")
    for part in torch.arange(20_000).split(1000):
        metric.update(c[part].cuda(), x[part].cuda())
    value = metric.compute()
    assert value.device.type == "cuda"
    host = tm.AUGRC(bins=bins)
    host.update(c, x)
    assert value.item() == pytest.approx(host.compute().item(), abs=1e-14)
    assert metric.to("cpu").compute_bounds().low <= ab.augrc(c, x)


def test_an_update_on_the_host_is_short(monkeypatch):
    # Few steps of torch, none of them a look at values, and no attribute set the slow way.
    metric, set_ = tm.AUGRC(), []
    monkeypatch.setattr(torch, "isfinite", None)
    monkeypatch.setattr(
        torch.nn.Module,
        "__setattr__",
        lambda self, name, x: set_.append(name) or own(self, name, x),
    )
    own = object.__setattr__
    metric.update(torch.tensor([0.5]), torch.tensor([1]))
    assert not [name for name in set_ if name.startswith("samples")]
    with pytest.raises(ab.errors.DomainError, match="confidence"):
        metric.update(torch.tensor([float("nan")]), torch.tensor([1]))
