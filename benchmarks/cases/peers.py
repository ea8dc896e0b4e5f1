"""Cases for the same metrics in torch-uncertainty, FD-Shifts, scikit-learn, polars and DuckDB.

The conversion of the data to tensors, class labels or data frames is not timed. If a library is
absent, the page contains the reason.
"""

import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cases.entry import (
    AbsentError,
    BenchmarkCase,
    Call,
    Section,
    Sizes,
    Variant,
    format_size,
)
from benchmarks.cases.kernels import NUMBA, NUMPY
from benchmarks.cases.ranking import prepare_call, setup_samples, sort
from benchmarks.inputs import KINDS, Samples

import abstain as ab

SECTION = Section(
    "peers",
    "Comparison with other libraries",
    "The table contains wall time in nanoseconds per sample. All variants are timed in the same "
    "rounds. The call of torch-uncertainty creates a metric and runs `update` and `compute` on "
    "class probabilities of shape (n, 1) or (n, 2). With tied scores, its result depends on the "
    "order of rows. `RiskCoverageStats` of FD-Shifts runs on a share of the rows. Its time is "
    "scaled up, because it is proportional to the number of samples. polars and DuckDB compute "
    "the AUGRC by a query with a sort and cumulative sums, which is exact with ties. scikit-learn "
    "computes `roc_auc_score` of the failures and `average_precision_score`, which need the same "
    "sort.",
    cell="ns",
)

#: Environment variable with the folder of a checkout of FD-Shifts, which `--fd-shifts` sets.
FD_SHIFTS = "ABSTAIN_BENCH_FD_SHIFTS"
#: Kinds of samples for the smallest and the largest size.
SELECTED_KINDS = ("float32", "float64, 55% tied")
#: Share of the samples for FD-Shifts, whose loop is in Python.
FD_SHIFTS_SHARE = 0.02


def torch_uncertainty(columns: int) -> Callable[[Samples], Call]:
    """Return the AUGRC of torch-uncertainty from probabilities of shape (n, columns)."""

    def start(samples: Samples) -> Call:
        torch, metric = tensors(), _augrc()
        confidence = torch.from_numpy(samples.confidence)
        if samples.format == "bfloat16":
            confidence = confidence.to(torch.bfloat16)
        wrong = torch.from_numpy(samples.loss.astype(np.int64))
        if columns == 1:
            arguments = (confidence[:, None].contiguous(), wrong)
        else:
            arguments = (torch.stack([1 - confidence, confidence], dim=1), 1 - wrong)
        return lambda: _compute(metric, *arguments)

    return start


def _compute(metric: Callable[[], Any], probabilities: object, target: object) -> float:
    state = metric()
    state.update(probabilities, target)
    return float(state.compute())


def tensors() -> Any:
    """Return the module torch, or raise an `AbsentError` if it is absent."""
    try:
        import torch
    except ImportError as error:
        raise AbsentError(str(error)) from error
    return torch


def _augrc() -> Any:
    """Return the metric class of torch-uncertainty.

    The package imports lightning and torchvision. To run without them, only the file with the
    metric is loaded.
    """
    spec = importlib.util.find_spec("torch_uncertainty")
    if spec is None:
        raise AbsentError("torch-uncertainty is not installed")
    name = "torch_uncertainty_risk_coverage"
    folder = Path(next(iter(spec.submodule_search_locations or ())))
    path = folder / "metrics" / "classification" / "risk_coverage.py"
    return _load_module(name, path).AUGRC


def _load_module(name: str, path: Path) -> Any:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.exists():
            raise AbsentError(f"{path} does not exist")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except ImportError as error:
            del sys.modules[name]
            raise AbsentError(str(error)) from error
    return sys.modules[name]


def fd_shifts_class() -> Any:
    """Return `RiskCoverageStats` of the installed package or of a checkout.

    From a checkout, only the two required files are loaded.
    """
    if importlib.util.find_spec("fd_shifts") is not None:
        try:
            from fd_shifts.analysis.rc_stats import RiskCoverageStats
        except ImportError as error:
            raise AbsentError(f"fd-shifts cannot be imported: {error}") from error
        return RiskCoverageStats
    if not os.environ.get(FD_SHIFTS):
        raise AbsentError("fd-shifts is not installed, and --fd-shifts FOLDER is missing")
    folder = Path(os.environ[FD_SHIFTS]) / "fd_shifts" / "analysis"
    package = types.ModuleType("fd_shifts_analysis")
    package.__path__ = [str(folder)]
    sys.modules.setdefault("fd_shifts_analysis", package)
    return _load_module("fd_shifts_analysis.rc_stats", folder / "rc_stats.py").RiskCoverageStats


class NumPyWithTrapz:
    """NumPy with `trapz`, the former name of `trapezoid`, which FD-Shifts calls."""

    trapz = staticmethod(np.trapezoid)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of NumPy."""
        return getattr(np, name)


def fd_shifts(samples: Samples) -> Call:
    """Compute AURC and AUGRC on a share of the rows."""
    stats = fd_shifts_class()
    if not hasattr(np, "trapz"):
        sys.modules[stats.__module__].np = NumPyWithTrapz()
    n = max(1, round(samples.n * FD_SHIFTS_SHARE))
    confids, residuals = samples.confidence[:n], samples.loss[:n].astype(np.float64)

    def call() -> tuple[float, float]:
        curve = stats(confids=confids, residuals=residuals)
        return curve.aurc, curve.augrc

    return call


def scikit_learn(name: str) -> Callable[[Samples], Call]:
    """Return a metric of scikit-learn that needs the same sort."""

    def start(samples: Samples) -> Call:
        try:
            from sklearn import metrics
        except ImportError as error:
            raise AbsentError(str(error)) from error
        function, is_correct = getattr(metrics, name), ~samples.loss
        confidence = np.asarray(
            samples.confidence, dtype=np.result_type(samples.confidence, np.float32)
        )
        return lambda: float(function(is_correct, confidence))

    return start


def with_polars(samples: Samples) -> Call:
    """Compute the AUGRC in polars, exact with ties."""
    try:
        import polars as pl
    except ImportError as error:
        raise AbsentError(str(error)) from error
    frame = pl.DataFrame({"confidence": samples.confidence, "loss": samples.loss}).lazy()
    failed = pl.col("failed").cum_sum()
    area = (pl.col("size") * (2 * failed - pl.col("failed"))).sum()
    query = (
        frame.group_by("confidence")
        .agg(failed=pl.col("loss").sum().cast(pl.Float64), size=pl.len())
        .sort("confidence", descending=True)
        .select(area / (2 * pl.col("size").sum().cast(pl.Float64) ** 2))
    )
    return lambda: float(query.collect().item())


def with_duckdb(samples: Samples) -> Call:
    """Compute the AUGRC in DuckDB, exact with ties."""
    try:
        import duckdb
    except ImportError as error:
        raise AbsentError(str(error)) from error
    connection = duckdb.connect()
    connection.register("source", {"confidence": samples.confidence, "loss": samples.loss})
    connection.execute("CREATE TABLE samples AS SELECT * FROM source")
    query = """
        WITH tied AS (SELECT confidence, count(*) AS size, sum(loss::INT) AS failed
                      FROM samples GROUP BY confidence),
             run AS (SELECT size, failed, sum(failed) OVER (ORDER BY confidence DESC) AS up_to
                     FROM tied)
        SELECT sum(size * (2 * up_to - failed)) / (2 * sum(size)::DOUBLE ** 2) FROM run
    """
    return lambda: float(connection.execute(query).fetchone()[0])


def with_abstain(samples: Samples) -> ab.RiskCoverageAreas:
    """Compute AURC and AUGRC, including validation."""
    if samples.format == "bfloat16":
        torch = tensors()
        return ab.risk_coverage_areas(torch.from_numpy(samples.confidence).bfloat16(), samples.loss)
    return ab.risk_coverage_areas(samples.confidence, samples.loss)


def variants(n: int, *, memory: bool) -> tuple[Variant, ...]:
    """Return the variants of this package and of other libraries."""
    name_of_abstain = "abstain, AURC and AUGRC"
    peers = {
        "torch-uncertainty, AUGRC, (n, 1)": torch_uncertainty(1),
        "torch-uncertainty, AUGRC, (n, 2)": torch_uncertainty(2),
        "scikit-learn, failure AUROC": scikit_learn("roc_auc_score"),
        "scikit-learn, average precision": scikit_learn("average_precision_score"),
    }
    variants = [
        Variant(name_of_abstain, prepare_call(with_abstain, kernels), kernels, memory=memory)
        for kernels in (NUMBA, NUMPY)
    ]
    variants += [
        Variant(name, prepare, is_peer=True, memory=memory) for name, prepare in peers.items()
    ]
    variants.append(
        Variant(
            "FD-Shifts, AURC and AUGRC",
            fd_shifts,
            is_peer=True,
            work_share=_fd_shifts_share(n),
            rounds=2,
        )
    )
    return (
        *variants,
        Variant("polars, AUGRC", with_polars, is_peer=True, memory=memory, threads=2),
        Variant("DuckDB, AUGRC", with_duckdb, is_peer=True, memory=memory, threads=2),
    )


def _fd_shifts_share(n: int) -> float:
    return max(1, round(n * FD_SHIFTS_SHARE)) / n


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of this section."""
    for n in (1000, sizes.million, sizes.ten_million):
        large = n == sizes.ten_million
        for kind in KINDS if n == sizes.million else SELECTED_KINDS:
            yield BenchmarkCase(
                f"peers, {format_size(n)} {kind}",
                SECTION.name,
                setup_samples(kind, n),
                sort(),
                variants(n, memory=large and kind == SELECTED_KINDS[0]),
                n=n,
                seconds=2.0,
                rounds=2,
                is_quick=n == sizes.million and kind == "float32",
                column=f"{format_size(n)} {kind}",
            )
