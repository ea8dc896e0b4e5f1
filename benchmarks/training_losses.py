"""What ranking costs in training: `python benchmarks/training_losses.py`.

Forward and backward pass of each loss from logits on the CPU, one thread, the contenders in turns,
as a ratio to plain cross-entropy on the same batch. One contender is the way of the published
code, written anew here: a Python list of digamma values for a fixed batch size, and the rank of
each sample from a double argsort. `--seconds N` for a quick look.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from scipy.special import digamma
from table import machine, markdown, number, versions
from torch.nn import functional

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))

from abstain.training import RankWeightedLoss

SIZES = [(128, 10), (128, 1000), (1024, 10), (1024, 1000), (4096, 10), (4096, 1000)]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def by_list(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Weights from a list made for the batch, by the softmax probability, ties as they fall."""
    n = len(labels)
    alphas = [float(digamma(n + 1) - digamma(n - k)) for k in range(n)]
    confidence = functional.softmax(logits.detach(), dim=1).max(dim=1).values
    ranks = confidence.argsort().argsort().tolist()
    weight = torch.tensor([alphas[rank] for rank in ranks])
    return (functional.cross_entropy(logits, labels, reduction="none") * weight).mean()


def contenders() -> dict[str, Loss]:
    return {
        "cross-entropy": functional.cross_entropy,
        "aurc": RankWeightedLoss("aurc"),
        "augrc": RankWeightedLoss("augrc"),
        "partial-aurc": RankWeightedLoss("partial-aurc", between=(0.5, 1.0)),
        "aurc, queue 4096": RankWeightedLoss("aurc", queue=4096),
        "aurc, score pe": RankWeightedLoss("aurc", score="pe"),
        "aurc, soft 0.1": RankWeightedLoss("aurc", soft=0.1),
        "lists of Python": by_list,
    }


def best_times(n: int, classes: int, seconds: float) -> dict[str, float]:
    """Return the shortest time of each contender, in seconds."""
    g = torch.Generator().manual_seed(0)
    logits = (4.0 * torch.randn(n, classes, generator=g)).requires_grad_()
    labels = torch.randint(0, classes, (n,), generator=g)
    losses = contenders()
    best = dict.fromkeys(losses, float("inf"))
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 4:
        rounds += 1
        for name, loss in losses.items():
            logits.grad = None
            start = time.perf_counter()
            loss(logits, labels).backward()
            # The first round fills the queue and what is looked up.
            if rounds > 1:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    print(f"Machine: {machine()}\n\nVersions: {versions()}\n")
    rows = []
    for n, classes in SIZES:
        best = best_times(n, classes, seconds)
        base = best.pop("cross-entropy")
        ratios = [number(x / base, 1) for x in best.values()]
        rows.append([f"{n} x {classes}", number(1e3 * base, 3), *ratios])
    names = [name for name in contenders() if name != "cross-entropy"]
    print(markdown(["batch", "cross-entropy, ms", *names], rows))


if __name__ == "__main__":
    main()
