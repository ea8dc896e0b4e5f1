"""What ranking costs in training: objectives beside cross-entropy, and metrics updated in loops."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.cases.entry import Call, Contender, Race, Section, Sizes
from benchmarks.cases.peers import tensors

SECTION = Section(
    "training",
    "In training",
    "Forward and backward pass from logits on one thread of the CPU, beside `cross_entropy` on "
    "the same batch. One contender is the way of the published code, written anew here: a "
    "Python list of digamma values for a fixed batch size, and the rank of each sample from a "
    "double argsort.",
)
UPDATES = Section(
    "updates",
    "Metrics of torchmetrics, one sample an update",
    "A new metric, all updates, one `compute`; torchmetrics' own list state is the reference.",
)
BATCHES = ((128, 10), (1024, 1000), (4096, 10))


@dataclass(frozen=True)
class Batch:
    """Logits and labels of one step."""

    n: int
    classes: int

    @cached_property
    def tensors(self) -> tuple[Any, Any]:
        """The logits, which take a gradient, and the labels."""
        torch = tensors()
        g = torch.Generator().manual_seed(0)
        logits = (4.0 * torch.randn(self.n, self.classes, generator=g)).requires_grad_()
        return logits, torch.randint(0, self.classes, (self.n,), generator=g)


def step(make: Callable[[int], Callable[[Any, Any], Any]]) -> Callable[[Batch], Call]:
    """Return what starts forward and backward passes of a loss."""

    def start(batch: Batch) -> Call:
        tensors().set_num_threads(1)
        logits, labels = batch.tensors
        loss = make(batch.n)

        def call() -> None:
            logits.grad = None
            loss(logits, labels).backward()

        return call

    return start


def _plain(_: int) -> Any:
    from torch.nn import functional

    return functional.cross_entropy


def _ranked(name: str, **options: Any) -> Callable[[int], Any]:
    def make(_: int) -> Any:
        from abstain.training import RankWeightedLoss

        return RankWeightedLoss(name, **options)

    return make


def by_list(n: int) -> Any:
    """Take weights from a list made for the batch, ties as they fall."""
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
    "aurc": _ranked("aurc"),
    "augrc": _ranked("augrc"),
    "partial-aurc": _ranked("partial-aurc", between=(0.5, 1.0)),
    "aurc, queue 4096": _ranked("aurc", queue=4096),
    "aurc, score pe": _ranked("aurc", score="pe"),
    "aurc, soft 0.1": _ranked("aurc", soft=0.1),
}


def _exact() -> Any:
    from abstain.integrations.torchmetrics import AUGRC

    return AUGRC()


def _bounded() -> Any:
    from abstain.integrations.torchmetrics import AUGRC

    return AUGRC(bins=65536)


def _collection() -> Any:
    from abstain.integrations.torchmetrics import selective_metrics

    return selective_metrics()


def _list_state() -> Any:
    from torchmetrics.classification import BinaryAUROC

    return BinaryAUROC(thresholds=None, validate_args=False)


def updated(make: Callable[[], Any], updates: int) -> Callable[[Any], Call]:
    """Return what starts a metric that sees one sample after the other."""

    def start(share: float) -> Call:
        torch = tensors()
        torch.set_num_threads(1)
        # What is measured for memory is imported by a smaller call before.
        count = max(10, round(updates * share))
        g = torch.Generator().manual_seed(0)
        confidence = torch.rand(count, generator=g)
        wrong = (torch.rand(count, generator=g) > confidence).long()

        def call() -> object:
            metric = make()
            for k in range(count):
                metric.update(confidence[k : k + 1], wrong[k : k + 1])
            return metric.compute()

        return call

    return start


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of these sections."""
    for n, classes in BATCHES:
        yield Race(
            f"losses, {n} x {classes}",
            SECTION.name,
            lambda _, __, n=n, classes=classes: Batch(n, classes),
            Contender("cross-entropy", step(_plain)),
            (
                *(Contender(name, step(make)) for name, make in LOSSES.items()),
                Contender("lists of Python", step(by_list), peer=True),
            ),
            seconds=3.0,
            rounds=4,
            quick=(n, classes) == BATCHES[0],
            column=f"{n} x {classes}",
        )
    count = sizes.updates
    made = {"AUGRC()": _exact, "AUGRC(bins=65536)": _bounded, "selective_metrics()": _collection}
    yield Race(
        f"{count:,} updates of one sample",
        UPDATES.name,
        lambda _, share: share,
        Contender("BinaryAUROC(thresholds=None)", updated(_list_state, count), memory=True),
        tuple(Contender(name, updated(make, count), memory=True) for name, make in made.items()),
        n=count,
        seconds=1.0,
        rounds=1,
    )
