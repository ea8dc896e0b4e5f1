"""Where the samples lie on an accelerator: beside one `torch.sort` of the confidences there."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.cases.entry import AbsentError, Call, Contender, Race, Section, Sizes, Target, told
from benchmarks.cases.peers import tensors
from benchmarks.cases.ranking import RANKED

import abstain as ab
from abstain._foundation.scored import validate_samples

SECTION = Section(
    "accelerator",
    "On an accelerator",
    "In `torch.sort` of the confidences where they lie. Every number is that of the host "
    "(`tests/properties`).",
)
KINDS = ("float32", "float64", "float16", "bfloat16")
#: A device that stands in for an accelerator, to try the races without one; see `--device`.
DEVICE = "ABSTAIN_BENCH_DEVICE"


def device() -> str:
    """Return the device that is asked for, or the one that there is."""
    if os.environ.get(DEVICE):
        return os.environ[DEVICE]
    if not tensors().cuda.is_available():
        raise AbsentError("there is no accelerator here")
    return "cuda"


def _samples(kind: str, n: int) -> Callable[[Path, float], Any]:
    """Return the set-up: confidences and losses there, or nothing where there is no device."""

    def setup(_: Path, share: float) -> Any:
        try:
            torch, there = tensors(), device()
        except AbsentError:
            return None
        g = torch.Generator(device=there).manual_seed(0)
        count = max(1000, round(n * share))
        confidence = torch.rand(count, generator=g, device=there)
        wrong = torch.rand(count, generator=g, device=there) < 0.05
        return confidence.to(getattr(torch, kind)), wrong

    return setup


def _there(call: Callable[[Any, Any], object]) -> Callable[[Any], Call]:
    """Return what starts a call whose work is waited for."""

    def start(given: Any) -> Call:
        torch, there = tensors(), device()
        wait = torch.cuda.synchronize if there.startswith("cuda") else lambda: None

        def waited() -> None:
            call(*given)
            wait()

        return waited

    return start


def _sorted(confidence: Any, _: Any) -> object:
    return confidence.sort()


def _gradient(confidence: Any, loss: Any) -> object:
    graded = loss.to(tensors().float64).requires_grad_()
    return ab.augrc(confidence, graded).backward()


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of this section."""
    n = sizes.accelerator
    alone = {
        metric.name: lambda *given, metric=metric: metric.compute(validate_samples(*given))
        for metric in RANKED
    }
    for kind in KINDS:
        calls = {"ab.risk_coverage_areas": ab.risk_coverage_areas}
        calls |= alone if kind == KINDS[0] else {}
        most = (Target(1.3),)
        # The processor only waits: what passes on the wall counts.
        contenders = [
            Contender(name, _there(f), targets=most, threads=2) for name, f in calls.items()
        ]
        contenders.append(Contender("ab.augrc, with its gradient", _there(_gradient), threads=2))
        yield Race(
            f"accelerator, {told(n)} {kind}",
            SECTION.name,
            _samples(kind, n),
            Contender("torch.sort", _there(_sorted), threads=2),
            tuple(contenders),
            n=n,
            seconds=3.0,
            rounds=3,
            column=f"{told(n)} {kind}",
        )
