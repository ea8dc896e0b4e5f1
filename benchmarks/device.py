"""AURC and AUGRC where the samples lie, against one `torch.sort` of the confidences there.

    python benchmarks/device.py [--device cuda] [--largest 7] [--seconds 2]

Runs on CUDA where there is one and on the CPU otherwise. The table has, for each number of samples
and each dtype: a sort of the confidences alone (`torch.sort`), the areas by the code for devices
(validated, sorted, grouped, integrated), and their gradient. What `risk_coverage_areas` takes for
the same data on the host, with its packed keys, stands beside it. Every number is compared with the
host's; the script fails if one differs by more than 1e-10.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import abstain as ab
from abstain._foundation.device import areas_on_device
from abstain.metrics import risk_coverage_areas

DTYPES = ("float64", "float32", "float16", "bfloat16")
NAMES = ("aurc", "augrc", "risk", "n", "failures", "tied")


def best(call: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Return the milliseconds of the fastest call, the device's queue empty before and after."""
    fastest, deadline = float("inf"), time.perf_counter() + seconds
    calls = 0
    while calls < 3 or time.perf_counter() < deadline:
        _wait(device)
        start = time.perf_counter()
        call()
        _wait(device)
        fastest = min(fastest, time.perf_counter() - start)
        calls += 1
    return fastest * 1e3


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def compare(confidence: torch.Tensor, loss: torch.Tensor) -> float:
    """Return the largest difference between the areas there and on the host."""
    there = areas_on_device(confidence, loss)
    here = risk_coverage_areas(confidence.cpu(), loss.cpu())
    return max(abs(getattr(there, name) - getattr(here, name)) for name in NAMES)


def gradient(confidence: torch.Tensor, loss: torch.Tensor) -> torch.Tensor | None:
    """Compute the AUGRC and its gradient."""
    graded = loss.to(torch.float64).requires_grad_()
    ab.augrc(confidence, graded).backward()
    return graded.grad


def row(n: int, dtype: str, device: torch.device, seconds: float) -> tuple[str, float]:
    """Measure one case; return its line of the table and its largest difference."""
    rng = np.random.default_rng(0)
    confidence = torch.from_numpy(rng.random(n)).to(getattr(torch, dtype)).to(device)
    loss = torch.from_numpy(rng.random(n) < 0.05).to(device)
    host = confidence.cpu(), loss.cpu()
    times = [
        best(call, device, seconds)
        for call in (
            lambda: torch.sort(confidence),
            lambda: areas_on_device(confidence, loss),
            lambda: gradient(confidence, loss),
        )
    ]
    times.append(best(lambda: risk_coverage_areas(*host), torch.device("cpu"), seconds))
    off = compare(confidence, loss)
    ratio = times[1] / times[0]
    cells = [f"{n:.0e}".replace("e+0", "e"), dtype, *(f"{t:.2f}" for t in times), f"{ratio:.1f}"]
    return f"| {' | '.join(cells)} | {off:.0e} |", off


def main() -> int:
    """Print the table; return 1 if a number is not the host's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=usual)
    parser.add_argument("--largest", type=int, default=7, help="power of ten")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each number")
    given = parser.parse_args()
    device = torch.device(given.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}; torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    heads = "n", "dtype", "torch.sort, ms", "areas there, ms", "AUGRC and gradient, ms"
    print(f"| {' | '.join(heads)} | areas on the host, ms | areas / sort | largest difference |")
    print(f"| --: | --- |{' --: |' * 6}")
    worst = 0.0
    for power in range(4, given.largest + 1):
        for dtype in DTYPES:
            line, off = row(10**power, dtype, device, given.seconds)
            print(line, flush=True)
            worst = max(worst, off)
    return int(worst > 1e-10)


if __name__ == "__main__":
    sys.exit(main())
