"""Cases for calls on tensors of an accelerator, relative to `torch.sort` on the same device."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.cases.entry import (
    AbsentError,
    BenchmarkCase,
    Call,
    Section,
    Sizes,
    Target,
    Variant,
    format_size,
)
from benchmarks.cases.peers import tensors
from benchmarks.cases.ranking import RANK_METRICS

import abstain as ab
from abstain._foundation.scored import validate_samples

SECTION = Section(
    "accelerator",
    "On an accelerator",
    "The table contains times divided by the time of `torch.sort` on the same device. "
    "`tests/properties` checks that the values equal those on the CPU.",
)
KINDS = ("float32", "float64", "float16", "bfloat16")
#: Environment variable with a device that replaces an accelerator in tests; see `--device`.
DEVICE = "ABSTAIN_BENCH_DEVICE"


def device() -> str:
    """Return the selected device, by default the accelerator."""
    if os.environ.get(DEVICE):
        return os.environ[DEVICE]
    if not tensors().cuda.is_available():
        raise AbsentError("this machine has no accelerator")
    return "cuda"


def _samples(kind: str, n: int) -> Callable[[Path, float], Any]:
    """Return a setup that draws confidences and losses on the device; None without a device."""

    def setup(_: Path, share: float) -> Any:
        try:
            torch, name = tensors(), device()
        except AbsentError:
            return None
        g = torch.Generator(device=name).manual_seed(0)
        count = max(1000, round(n * share))
        confidence = torch.rand(count, generator=g, device=name)
        wrong = torch.rand(count, generator=g, device=name) < 0.05
        return confidence.to(getattr(torch, kind)), wrong

    return setup


def _synchronized(call: Callable[[Any, Any], object]) -> Callable[[Any], Call]:
    """Return a function that prepares a call and waits for the end of its work on the device."""

    def prepare(arrays: Any) -> Call:
        torch = tensors()
        wait = torch.cuda.synchronize if device().startswith("cuda") else lambda: None

        def call_and_wait() -> None:
            call(*arrays)
            wait()

        return call_and_wait

    return prepare


def _sort(confidence: Any, _: Any) -> object:
    return confidence.sort()


def _gradient(confidence: Any, loss: Any) -> object:
    graded = loss.to(tensors().float64).requires_grad_()
    return ab.augrc(confidence, graded).backward()


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of this section."""
    n = sizes.accelerator
    metrics = {
        metric.name: lambda *arrays, metric=metric: metric.compute(validate_samples(*arrays))
        for metric in RANK_METRICS
    }
    for kind in KINDS:
        calls = {"ab.risk_coverage_areas": ab.risk_coverage_areas}
        calls |= metrics if kind == KINDS[0] else {}
        targets = (Target(1.3),)
        # threads=2 selects wall time, because the CPU only waits for the device.
        variants = [
            Variant(name, _synchronized(f), targets=targets, threads=2) for name, f in calls.items()
        ]
        variants.append(Variant("ab.augrc, with its gradient", _synchronized(_gradient), threads=2))
        yield BenchmarkCase(
            f"accelerator, {format_size(n)} {kind}",
            SECTION.name,
            _samples(kind, n),
            Variant("torch.sort", _synchronized(_sort), threads=2),
            tuple(variants),
            n=n,
            seconds=3.0,
            rounds=3,
            column=f"{format_size(n)} {kind}",
        )
