"""Cases for training objectives, and for torchmetrics metrics that are updated by one sample."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.cases.entry import BenchmarkCase, Call, Section, Sizes, Variant
from benchmarks.cases.peers import tensors

SECTION = Section(
    "training",
    "In training",
    "The table contains the time of the forward and backward pass from logits on one CPU thread, "
    'divided by the time of `cross_entropy` on the same batch. "Python lists" is a new '
    "implementation of the algorithm of the published code, which uses a list of digamma values "
    "for a fixed batch size, and ranks from a double argsort.",
)
UPDATES = Section(
    "updates",
    "Metrics of torchmetrics, one sample per update",
    "Each variant creates a metric, runs all updates and computes the result once. The reference "
    "is a metric of torchmetrics with a list state.",
)
BATCHES = ((128, 10), (1024, 1000), (4096, 10))


@dataclass(frozen=True)
class Batch:
    """Logits and labels of one training step."""

    n: int
    classes: int

    @cached_property
    def tensors(self) -> tuple[Any, Any]:
        """The logits, with gradients, and the labels."""
        torch = tensors()
        g = torch.Generator().manual_seed(0)
        logits = (4.0 * torch.randn(self.n, self.classes, generator=g)).requires_grad_()
        return logits, torch.randint(0, self.classes, (self.n,), generator=g)


def step(make_loss: Callable[[int], Callable[[Any, Any], Any]]) -> Callable[[Batch], Call]:
    """Return a function that prepares the forward and backward pass of a loss."""

    def start(batch: Batch) -> Call:
        tensors().set_num_threads(1)
        logits, labels = batch.tensors
        loss = make_loss(batch.n)

        def call() -> None:
            logits.grad = None
            loss(logits, labels).backward()

        return call

    return start


def _cross_entropy(_: int) -> Any:
    from torch.nn import functional

    return functional.cross_entropy


def _rank_weighted(name: str, **options: Any) -> Callable[[int], Any]:
    def make(_: int) -> Any:
        from abstain.training import RankWeightedLoss

        return RankWeightedLoss(name, **options)

    return make


def python_lists(n: int) -> Any:
    """Return a loss with weights from a Python list, in which batch order breaks ties."""
    import torch
    from scipy.special import digamma
    from torch.nn import functional

    def loss(logits: Any, labels: Any) -> Any:
        alphas = [float(digamma(n + 1) - digamma(n - k)) for k in range(n)]
        confidence = functional.softmax(logits.detach(), dim=1).max(dim=1).values
        ranks = confidence.argsort().argsort().tolist()
        weight = torch.tensor([alphas[rank] for rank in ranks])
        return (functional.cross_entropy(logits, labels, reduction="none") * weight).mean()

    return loss


LOSSES: dict[str, Callable[[int], Any]] = {
    "aurc": _rank_weighted("aurc"),
    "augrc": _rank_weighted("augrc"),
    "partial-aurc": _rank_weighted("partial-aurc", between=(0.5, 1.0)),
    "aurc, queue 4096": _rank_weighted("aurc", queue=4096),
    "aurc, score pe": _rank_weighted("aurc", score="pe"),
    "aurc, soft 0.1": _rank_weighted("aurc", soft=0.1),
}


def _augrc() -> Any:
    from abstain.integrations.torchmetrics import AUGRC

    return AUGRC()


def _augrc_in_bins() -> Any:
    from abstain.integrations.torchmetrics import AUGRC

    return AUGRC(bins=65536)


def _collection() -> Any:
    from abstain.integrations.torchmetrics import selective_metrics

    return selective_metrics()


def _list_state() -> Any:
    from torchmetrics.classification import BinaryAUROC

    return BinaryAUROC(thresholds=None, validate_args=False)


def update_samples(make_metric: Callable[[], Any], updates: int) -> Callable[[Any], Call]:
    """Return a function that prepares the updates of a metric by one sample each."""

    def start(share: float) -> Call:
        torch = tensors()
        torch.set_num_threads(1)
        # The share is small in the warm-up call of a memory measurement.
        count = max(10, round(updates * share))
        g = torch.Generator().manual_seed(0)
        confidence = torch.rand(count, generator=g)
        is_failure = (torch.rand(count, generator=g) > confidence).long()

        def call() -> object:
            metric = make_metric()
            for k in range(count):
                metric.update(confidence[k : k + 1], is_failure[k : k + 1])
            return metric.compute()

        return call

    return start


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of these sections."""
    for n, classes in BATCHES:
        yield BenchmarkCase(
            f"losses, {n} x {classes}",
            SECTION.name,
            lambda _, __, n=n, classes=classes: Batch(n, classes),
            Variant("cross-entropy", step(_cross_entropy)),
            (
                *(Variant(name, step(make)) for name, make in LOSSES.items()),
                Variant("Python lists", step(python_lists), is_peer=True),
            ),
            seconds=3.0,
            rounds=4,
            is_quick=(n, classes) == BATCHES[0],
            column=f"{n} x {classes}",
        )
    count = sizes.updates
    metrics = {
        "AUGRC()": _augrc,
        "AUGRC(bins=65536)": _augrc_in_bins,
        "selective_metrics()": _collection,
    }
    yield BenchmarkCase(
        f"{count:,} updates of one sample",
        UPDATES.name,
        lambda _, share: share,
        Variant("BinaryAUROC(thresholds=None)", update_samples(_list_state, count), memory=True),
        tuple(
            Variant(name, update_samples(make, count), memory=True)
            for name, make in metrics.items()
        ),
        n=count,
        seconds=1.0,
        rounds=1,
    )
