"""What every rank metric costs, in sorts: `np.sort` of distinct values of the same size and type.

`python benchmarks/rank_metrics.py [SIZE ...]` takes the public way from arrays to the number,
validation included, for each metric by itself and for all of them of one score, with numba's
kernels and with NumPy's. The contenders take turns; the best round counts.
"""

import os
import sys
import time
from collections.abc import Callable

import numpy as np
from cases import KINDS, Case, case
from table import machine, markdown, versions

from abstain._foundation import packed
from abstain._foundation.scored import scored
from abstain.metrics import METRICS

ROUNDS = 5
SIZES = (10**6, 10**7)
WITHOUT_CLASSES = [
    metric
    for metric in METRICS.values()
    if metric.rank_based and not metric.missing(scored([0.9, 0.1], [0, 1]))
]


def alone(one: Case) -> dict[str, Callable[[], object]]:
    """The calls: each metric from its arrays, and all metrics of one score."""
    calls: dict[str, Callable[[], object]] = {
        metric.name: lambda metric=metric: metric.compute(scored(one.confidence, one.loss))
        for metric in WITHOUT_CLASSES
    }
    return calls | {"all of them": lambda: together(one)}


def together(one: Case) -> None:
    s = scored(one.confidence, one.loss)
    for metric in WITHOUT_CLASSES:
        metric.compute(s)


def best(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measured(one: Case) -> list[list[str]]:
    """Return a row for each metric: its name, sorts with numba, sorts with NumPy."""
    distinct = np.random.default_rng(0).permutation(one.n).astype(one.confidence.dtype)
    times: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        times["sort", ""] = min(times.get(("sort", ""), np.inf), best(lambda: np.sort(distinct)))
        for off in ("0", "1"):
            os.environ["ABSTAIN_NO_NUMBA"] = off
            for name, call in alone(one).items():
                times[name, off] = min(times.get((name, off), np.inf), best(call))
    sort = times["sort", ""]
    names = [*(metric.name for metric in WITHOUT_CLASSES), "all of them"]
    return [[name, *(f"{times[name, off] / sort:.1f}" for off in ("0", "1"))] for name in names]


def main() -> None:
    # Loaded at once here, as after much work elsewhere.
    packed.kernels()
    print(f"Machine: {machine()}\n\nVersions: {versions()}\n")
    for n in [int(float(size)) for size in sys.argv[1:]] or SIZES:
        for kind in list(KINDS)[:4]:
            rows = measured(case(kind, n))
            print(f"## {n:,} samples, {kind}\n")
            print(markdown(("metric", "numba", "NumPy"), rows), end="\n\n")


if __name__ == "__main__":
    main()
