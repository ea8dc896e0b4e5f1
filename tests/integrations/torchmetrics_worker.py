"""One process of the distributed test: `python torchmetrics_worker.py RANK WORLD RENDEZVOUS OUT`."""

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist

from abstain.integrations import torchmetrics as tm

N = 300


def samples():
    """The whole stream: rows of confidence, 0/1 loss, any loss and an integer weight."""
    g = torch.Generator().manual_seed(0)
    c = (torch.rand(N, generator=g) * 50).round() / 50
    wrong = torch.rand(N, generator=g) > c
    return c, wrong, torch.rand(N, generator=g), torch.randint(0, 4, (N,), generator=g)


def shares(world, *, empty=False):
    """Rows of each process, in unequal batches: 7 of them and 3 of them, or all and none."""
    first = torch.arange(N if empty else 230)
    return [first.tensor_split(7), torch.arange(len(first), N).split(30)][:world]


def fed(metric, rank, world, **options):
    """Update with this process's share; each case is one reason why processes may differ."""
    c, wrong, loss, weight = samples()
    empty = options.pop("empty", False)
    parts = shares(world, empty=empty) if world > 1 else [torch.arange(N).split(300)]
    for rows in parts[rank]:
        if not len(rows):
            continue
        late = rows >= 230
        confidence = c[rows]
        if options.get("mixed"):
            # The second process is in half precision and has weights and another type of loss.
            confidence = confidence.to(torch.bfloat16).to(torch.float32)
            if bool(late.all()):
                confidence = confidence.to(torch.bfloat16)
        x = loss[rows] if options.get("graded") else wrong[rows]
        x = x.double() if options.get("mixed") and rank == 0 else x
        w = torch.where(rows >= 230, weight[rows], 1) if options.get("weighted") else None
        if options.get("weighted") and not bool(late.any()):
            w = None
        metric.update(confidence, x, w)
    return metric


CASES = {
    "exact": (tm.AURC, {}),
    "bounded": (lambda: tm.AURC(bins=256), {}),
    "one process without samples": (tm.AUGRC, {"empty": True}),
    "bounded, one without samples": (lambda: tm.AUGRC(bins=256), {"empty": True}),
    "threshold": (lambda: tm.CWSAPlus(0.9), {"empty": True}),
    "mixed types": (tm.AUGRC, {"mixed": True, "weighted": True}),
    "mixed types, bounded": (lambda: tm.AUGRC(bins=256), {"mixed": True, "weighted": True}),
    "graded": (tm.AUGRC, {"graded": True}),
}


def results(rank, world):
    out = {}
    for name, (make, options) in CASES.items():
        metric = fed(make(), rank, world, **options)
        once = metric.compute().item()
        bounds = metric.compute_bounds()
        # Each process goes on with its own samples afterwards.
        if world == 1 or rank == 1:
            metric.update(torch.tensor([0.99]), torch.tensor([1]))
        else:
            metric.update(torch.empty(0), torch.empty(0))
        out[name] = [once, bounds.low, bounds.high, metric.compute().item()]
    metrics = fed(tm.selective_metrics(), rank, world)
    out["collection"] = [value.item() for value in metrics.compute().values()]
    c, wrong, *_ = samples()
    rows = torch.arange(100)[rank::world]
    out["forward"] = [tm.AUGRC(dist_sync_on_step=True)(c[rows], wrong[rows]).item()]
    metric = fed(tm.AUGRC(), rank, world)
    metric.sync()
    out["synced by hand"] = [metric.compute_bounds().value, metric.compute_bounds().value]
    if world > 1:
        metric.unsync()
    out["synced by hand"].append(metric.compute().item())
    alone = fed(tm.AUGRC(sync_on_compute=False), rank, world)
    out["own"] = [alone.compute().item()]
    return out


def main():
    rank, world = int(sys.argv[1]), int(sys.argv[2])
    meeting = f"file://{sys.argv[3]}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    # A process without samples is told by torchmetrics that it has none.
    warnings.filterwarnings("ignore", message=".*was called before the ``update``")
    Path(sys.argv[4]).write_text(json.dumps(results(rank, world)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
