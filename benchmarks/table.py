"""Markdown tables and the lines that say on what machine and with what they were made."""

import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

PACKAGES = (
    "numpy", "numba", "scipy", "scikit-learn", "torch", "torch-uncertainty", "torchmetrics",
)  # fmt: skip


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table; text to the left, numbers to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    rule = ["-" * (width - 1) + ":" for width in widths]
    shown = [lines[0], rule, *lines[1:]]
    return "\n".join(
        "| " + " | ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in shown
    )


def number(x: float | None, digits: int = 2) -> str:
    return "-" if x is None else f"{x:.{digits}f}"


def versions() -> str:
    """List the versions of everything that takes part."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} absent")
    return ", ".join(found)


def machine() -> str:
    """Describe processor, cores, memory and threads in one line."""
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
    torch = sys.modules.get("torch")
    threads = f"; torch threads {torch.get_num_threads()}" if torch else ""
    load = f"; load before {os.getloadavg()[0]:.1f}"
    return (
        f"{cpu}, {os.cpu_count()} cores ({' '.join(features)}), {memory:.0f} GiB, "
        f"{platform.system()}{threads}{load}"
    )
