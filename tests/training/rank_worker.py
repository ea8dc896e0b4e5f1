"""One process of the distributed test: `python rank_worker.py RANK WORLD RENDEZVOUS OUT`.

Each process trains its share of a batch for two steps, with the gradients averaged over the
processes as DistributedDataParallel does. What comes out are the losses and the gradients, which
must be those of one process with the whole batch.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from abstain.training import RankWeightedLoss, rank_weighted_loss

N, FEATURES, CLASSES = 24, 5, 3

CASES = {
    "aurc": {},
    "augrc, ties": {"weights": "augrc", "score": lambda z: z.round()[:, 0]},
    "partial": {"weights": "partial-aurc", "between": (0.2, 0.8)},
    "soft": {"weights": "aurc", "soft": 0.2},
    "soft, ranking alone": {"weights": "augrc", "soft": 0.2, "base": "zero-one"},
    "queue": {"weights": "aurc", "queue": 30},
    "soft and queue": {"weights": "aurc-log", "soft": 0.3, "queue": 16},
    "sample weights": {"weights": "aurc"},
    "last batch empty on one": {"weights": "aurc", "soft": 0.2},
}


def samples():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(2 * N, FEATURES, generator=g, dtype=torch.float64)
    y = torch.randint(0, CLASSES, (2 * N,), generator=g)
    return x, y, torch.randint(0, 3, (2 * N,), generator=g)


def share(step, rank, world, *, empty):
    """Rows of this process in this step: 17 and 7 of 24, or all and none in the second."""
    rows = torch.arange(N) + step * N
    if world == 1:
        return rows
    cut = N if empty and step == 1 else 17
    return rows[:cut] if rank == 0 else rows[cut:]


def trained(name, options, rank, world):
    x, y, counts = samples()
    torch.manual_seed(1)
    model = torch.nn.Linear(FEATURES, CLASSES).double()
    loss = RankWeightedLoss(**options)
    results = []
    for step in range(2):
        rows = share(step, rank, world, empty="empty" in name)
        # One process gives no weights; they then count 1 where the other does.
        weight = None
        if name == "sample weights":
            weight = torch.where(torch.arange(2 * N) % N < 17, counts, 1)[rows]
            weight = None if world > 1 and rank == 1 else weight
        model.zero_grad()
        value = loss(model(x[rows]), y[rows], weight)
        value.backward()
        if world > 1:
            # DistributedDataParallel itself takes a second more to import.
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= world
        results += [value.item(), *model.weight.grad.flatten().tolist(), *model.bias.grad.tolist()]
        with torch.no_grad():
            # By hand: torch.optim takes a second to import.
            for parameter in model.parameters():
                parameter.sub_(0.5 * parameter.grad)
    # A process evaluates total: no other has to take part.
    loss.eval()
    if rank == 0:
        results.append(loss(model(x), y).item())
    return results


def results(rank, world):
    out = {name: trained(name, options, rank, world) for name, options in CASES.items()}
    x, y, _ = samples()
    rows = share(0, rank, world, empty=False)
    c, losses = x[rows, 0], (y[rows] > 0).double()
    out["function"] = [rank_weighted_loss(c, losses, gather=True).item()]
    out["own"] = [RankWeightedLoss(gather=False)(x[rows, :3], y[rows]).item()]
    if world > 1:
        nan = c.clone() if rank == 0 else torch.full_like(c, float("nan"))
        out["nan"] = [rank_weighted_loss(nan, losses, gather=True).isnan().item()]
        try:
            rank_weighted_loss(c[:0], losses[:0], gather=True)
        except ValueError as error:
            out["empty"] = str(error)
    return out


def main():
    rank, world = int(sys.argv[1]), int(sys.argv[2])
    meeting = f"file://{sys.argv[3]}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    Path(sys.argv[4]).write_text(json.dumps(results(rank, world)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
