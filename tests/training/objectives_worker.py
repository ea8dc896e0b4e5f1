"""One process of the distributed test: `python objectives_worker.py RANK WORLD RENDEZVOUS OUT`."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from abstain import training
from abstain.training import Output

STEPS, N = 6, 10


def step(number):
    """An output for a whole batch of ten, its labels and which samples these are."""
    g = torch.Generator().manual_seed(number)
    logits = torch.randn(N, 3, generator=g)
    one = torch.randn(N, generator=g)
    labels = torch.randint(0, 3, (N,), generator=g)
    return Output(logits, logits, one, one), labels, torch.randperm(40, generator=g)[:N]


def results(rank, world):
    """Train on the share of this process, the first one's larger; what is left in the state."""
    devries = training.make("devries", budget=0.7, rng=0)
    adaptive = training.make("self-adaptive", momentum=0.5, rng=0)
    # The mean over processes is that of all samples only if the shares are equal.
    own = {1: [slice(None)], 2: [slice(0, 7), slice(7, N)]}[world][rank]
    half = {1: [slice(None)], 2: [slice(0, 5), slice(5, N)]}[world][rank]
    prices = []
    for number in range(STEPS):
        out, labels, index = step(number)
        adaptive(Output(*(x if x is None else x[own] for x in out)), labels[own], index=index[own])
        devries(Output(*(x if x is None else x[half] for x in out)), labels[half])
        prices.append(devries.multiplier.item())
    return {"prices": prices, "targets": adaptive.target.tolist()}


def main():
    rank, world, meeting, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    result = results(rank, world)
    dist.destroy_process_group()
    Path(out).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
