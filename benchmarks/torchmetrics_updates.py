"""Time and memory of a million updates of one sample: `python benchmarks/torchmetrics_updates.py`.

Each contender runs in a process of its own, whose peak of resident memory is what counts beyond
that of a process that only made the metric. `--updates N` for a quick look.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from table import machine, markdown, number, versions

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))


def exact():
    from abstain.integrations.torchmetrics import AUGRC

    return AUGRC()


def bounded():
    from abstain.integrations.torchmetrics import AUGRC

    return AUGRC(bins=65536)


def collection():
    from abstain.integrations.torchmetrics import selective_metrics

    return selective_metrics()


def torchmetrics_auroc():
    """The list state of torchmetrics itself, one tensor an update."""
    from torchmetrics.classification import BinaryAUROC

    return BinaryAUROC(thresholds=None, validate_args=False)


CONTENDERS: dict[str, Callable] = {
    "abstain AUGRC, exact": exact,
    "abstain AUGRC, 65536 bins": bounded,
    "abstain, collection of five": collection,
    "torchmetrics BinaryAUROC, exact": torchmetrics_auroc,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=10**6)
    parser.add_argument("--child", choices=list(CONTENDERS))
    options = parser.parse_args()
    if options.child:
        print(*_measured(CONTENDERS[options.child], options.updates))
        return
    print(f"Machine: {machine()}\n\nVersions: {versions()}\n")
    rows = []
    for name in CONTENDERS:
        command = [sys.executable, __file__, "--child", name, "--updates"]
        seconds, compute, peak = _run([*command, str(options.updates)])
        _, _, start = _run([*command, "1"])
        micro = 1e6 * seconds / options.updates
        rows.append([name, number(micro, 1), number(compute, 2), number((peak - start) / 2**20, 0)])
    header = ["contender", "us an update", "compute, s", "extra peak, MiB"]
    print(f"{options.updates} updates of one sample\n\n{markdown(header, rows)}")


def _run(command: list[str]) -> list[float]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(x) for x in done.stdout.split()]


def _measured(make: Callable, updates: int) -> tuple[float, float, int]:
    import torch

    torch.set_num_threads(1)
    metric = make()
    g = torch.Generator().manual_seed(0)
    confidence = torch.rand(updates, generator=g)
    wrong = (torch.rand(updates, generator=g) > confidence).long()
    start = time.perf_counter()
    for k in range(updates):
        metric.update(confidence[k : k + 1], wrong[k : k + 1])
    updated = time.perf_counter()
    metric.compute()
    done = time.perf_counter()
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return updated - start, done - updated, peak


if __name__ == "__main__":
    main()
