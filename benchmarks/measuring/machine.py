"""Describe the machine, the versions and the commit of a measurement."""

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PACKAGES = (
    "abstain", "numpy", "scipy", "numba", "polars", "scikit-learn", "torch", "torchmetrics",
    "torch-uncertainty", "fd-shifts", "duckdb",
)  # fmt: skip


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python and the compared packages, or "absent"."""
    result = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            result[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            result[name] = "absent"
    return result


#: Files that a measurement writes.
OUTPUT_FILES = ("benchmarks/cases.json", "docs/performance.md", "docs/_static/performance.svg")


@cache
def commit() -> str:
    """Return the commit of the checkout, with a + if files were changed since the commit."""
    differs = _git(
        "status", "--porcelain", "--", ":/", *(f":(top,exclude){p}" for p in OUTPUT_FILES)
    )
    return _git("describe", "--always", "--exclude=*") + ("+" if differs else "")


def _git(*words: str) -> str:
    process = subprocess.run(
        ["git", *words], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return process.stdout.strip()


@cache
def machine() -> str:
    """Describe processor, cores and memory in one line."""
    cpu, features = platform.processor() or platform.machine(), []
    info = Path("/proc/cpuinfo")
    if info.exists():
        fields = dict(
            (part.strip() for part in line.split(":", 1))
            for line in info.read_text().splitlines()
            if ":" in line
        )
        cpu = fields.get("model name", cpu)
        flags = set(fields.get("flags", "").split())
        features = [name for name in ("avx2", "avx512f", "avx512_vbmi2") if name in flags]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = f"{os.cpu_count()} cores"
    with_features = f"{cores} ({' '.join(features)})" if features else cores
    return f"{cpu}, {with_features}, {memory:.0f} GiB, {platform.system()}{_accelerator()}"


def _accelerator() -> str:
    try:
        import torch
    except ImportError:
        return ""
    return f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
