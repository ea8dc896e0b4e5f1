"""The same job by others: torch-uncertainty, FD-Shifts, scikit-learn, polars, DuckDB.

What a peer needs in its own form (tensors, class labels, a data frame) is prepared outside the
clock. An absent one says why.
"""

import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cases.entry import AbsentError, Call, Contender, Race, Section, Sizes, told
from benchmarks.cases.kernels import NUMBA, NUMPY
from benchmarks.cases.ranking import of_case, sort, started
from benchmarks.inputs import KINDS, Case

import abstain as ab

SECTION = Section(
    "peers",
    "Beside others",
    "Nanoseconds a sample, of the wall clock; the contenders take turns in one run. "
    "torch-uncertainty: a new metric, `update`, "
    "`compute`, from class probabilities of shape (n, 1) or (n, 2); it depends on the order of "
    "the rows where scores tie. FD-Shifts: `RiskCoverageStats`, on a share of the rows and "
    "scaled up (its time is proportional to them: a loop over the samples). polars and DuckDB: "
    "the AUGRC by a sort and running sums, exact with ties, written as a user of theirs would. "
    "scikit-learn: `roc_auc_score` of the failures, another number from the same order, and "
    "`average_precision_score`.",
    cell="ns",
)

#: Where a checkout of FD-Shifts lies, where no package of it is installed.
FD_SHIFTS = "ABSTAIN_BENCH_FD_SHIFTS"
#: The kinds of data where there are too many samples, or too few, for all of them.
SOME = ("float32", "float64, 55 % tied")
#: FD-Shifts steps through the samples one by one in Python.
STEPPED = 0.02


def torch_uncertainty(columns: int) -> Callable[[Case], Call]:
    """Return the AUGRC of torch-uncertainty, from probabilities of shape (n, columns)."""

    def start(one: Case) -> Call:
        torch, metric = tensors(), _augrc()
        confidence = torch.from_numpy(one.confidence)
        if one.format == "bfloat16":
            confidence = confidence.to(torch.bfloat16)
        wrong = torch.from_numpy(one.loss.astype(np.int64))
        if columns == 1:
            given = (confidence[:, None].contiguous(), wrong)
        else:
            given = (torch.stack([1 - confidence, confidence], dim=1), 1 - wrong)
        return lambda: _updated(metric, *given)

    return start


def _updated(metric: Callable[[], Any], probabilities: object, target: object) -> float:
    state = metric()
    state.update(probabilities, target)
    return float(state.compute())


def tensors() -> Any:
    """Return torch, or say that it is absent."""
    try:
        import torch
    except ImportError as error:
        raise AbsentError(str(error)) from error
    return torch


def _augrc() -> Any:
    """Return the metric class of torch-uncertainty.

    The package imports lightning and torchvision; where those are missing, the one file with
    the metric is loaded by itself.
    """
    spec = importlib.util.find_spec("torch_uncertainty")
    if spec is None:
        raise AbsentError("torch-uncertainty is not installed")
    name = "torch_uncertainty_risk_coverage"
    folder = Path(next(iter(spec.submodule_search_locations or ())))
    path = folder / "metrics" / "classification" / "risk_coverage.py"
    return _loaded(name, path).AUGRC


def _loaded(name: str, path: Path) -> Any:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.exists():
            raise AbsentError(f"{path} is not there")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except ImportError as error:
            del sys.modules[name]
            raise AbsentError(str(error)) from error
    return sys.modules[name]


def fd_shifts_class() -> Any:
    """Return `RiskCoverageStats`: of the installed package, or of a checkout.

    Of a checkout only the two files are loaded that compute it.
    """
    if importlib.util.find_spec("fd_shifts") is not None:
        try:
            from fd_shifts.analysis.rc_stats import RiskCoverageStats
        except ImportError as error:
            raise AbsentError(f"fd-shifts is installed, but: {error}") from error
        return RiskCoverageStats
    if not os.environ.get(FD_SHIFTS):
        raise AbsentError("no package of it is installed, and no --fd-shifts FOLDER was given")
    folder = Path(os.environ[FD_SHIFTS]) / "fd_shifts" / "analysis"
    package = types.ModuleType("fd_shifts_analysis")
    package.__path__ = [str(folder)]
    sys.modules.setdefault("fd_shifts_analysis", package)
    return _loaded("fd_shifts_analysis.rc_stats", folder / "rc_stats.py").RiskCoverageStats


class OldNumPy:
    """NumPy with the name of the trapezoidal rule that FD-Shifts calls it by."""

    trapz = staticmethod(np.trapezoid)

    def __getattr__(self, name: str) -> Any:
        """Return what NumPy has."""
        return getattr(np, name)


def fd_shifts(one: Case) -> Call:
    """Compute AURC and AUGRC of a share of the rows."""
    stats = fd_shifts_class()
    if not hasattr(np, "trapz"):
        sys.modules[stats.__module__].np = OldNumPy()
    n = max(1, round(one.n * STEPPED))
    confids, residuals = one.confidence[:n], one.loss[:n].astype(np.float64)

    def call() -> tuple[float, float]:
        found = stats(confids=confids, residuals=residuals)
        return found.aurc, found.augrc

    return call


def scikit_learn(name: str) -> Callable[[Case], Call]:
    """Return a metric of scikit-learn that needs the same order."""

    def start(one: Case) -> Call:
        try:
            from sklearn import metrics
        except ImportError as error:
            raise AbsentError(str(error)) from error
        function, right = getattr(metrics, name), ~one.loss
        confidence = np.asarray(one.confidence, dtype=np.result_type(one.confidence, np.float32))
        return lambda: float(function(right, confidence))

    return start


def with_polars(one: Case) -> Call:
    """Compute the AUGRC in polars, exact with ties."""
    try:
        import polars as pl
    except ImportError as error:
        raise AbsentError(str(error)) from error
    frame = pl.DataFrame({"confidence": one.confidence, "loss": one.loss}).lazy()
    failed = pl.col("failed").cum_sum()
    area = (pl.col("size") * (2 * failed - pl.col("failed"))).sum()
    query = (
        frame.group_by("confidence")
        .agg(failed=pl.col("loss").sum().cast(pl.Float64), size=pl.len())
        .sort("confidence", descending=True)
        .select(area / (2 * pl.col("size").sum().cast(pl.Float64) ** 2))
    )
    return lambda: float(query.collect().item())


def with_duckdb(one: Case) -> Call:
    """Compute the AUGRC in DuckDB, exact with ties."""
    try:
        import duckdb
    except ImportError as error:
        raise AbsentError(str(error)) from error
    there = duckdb.connect()
    there.register("given", {"confidence": one.confidence, "loss": one.loss})
    there.execute("CREATE TABLE samples AS SELECT * FROM given")
    query = """
        WITH tied AS (SELECT confidence, count(*) AS size, sum(loss::INT) AS failed
                      FROM samples GROUP BY confidence),
             run AS (SELECT size, failed, sum(failed) OVER (ORDER BY confidence DESC) AS up_to
                     FROM tied)
        SELECT sum(size * (2 * up_to - failed)) / (2 * sum(size)::DOUBLE ** 2) FROM run
    """
    return lambda: float(there.execute(query).fetchone()[0])


def ours(one: Case) -> ab.RiskCoverageAreas:
    """Compute AURC and AUGRC, validation included."""
    if one.format == "bfloat16":
        torch = tensors()
        return ab.risk_coverage_areas(torch.from_numpy(one.confidence).bfloat16(), one.loss)
    return ab.risk_coverage_areas(one.confidence, one.loss)


def contenders(n: int, *, memory: bool) -> tuple[Contender, ...]:
    """Return ours and theirs."""
    pair = "abstain, AURC and AUGRC"
    theirs = {
        "torch-uncertainty, AUGRC, (n, 1)": torch_uncertainty(1),
        "torch-uncertainty, AUGRC, (n, 2)": torch_uncertainty(2),
        "scikit-learn, failure AUROC": scikit_learn("roc_auc_score"),
        "scikit-learn, average precision": scikit_learn("average_precision_score"),
    }
    contenders = [
        Contender(pair, started(ours, kernels), kernels, memory=memory)
        for kernels in (NUMBA, NUMPY)
    ]
    contenders += [
        Contender(name, start, peer=True, memory=memory) for name, start in theirs.items()
    ]
    contenders.append(
        Contender("FD-Shifts, AURC and AUGRC", fd_shifts, peer=True, part=_stepped(n), rounds=2)
    )
    return (
        *contenders,
        Contender("polars, AUGRC", with_polars, peer=True, memory=memory, threads=2),
        Contender("DuckDB, AUGRC", with_duckdb, peer=True, memory=memory, threads=2),
    )


def _stepped(n: int) -> float:
    return max(1, round(n * STEPPED)) / n


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of this section."""
    for n in (1000, sizes.million, sizes.ten_million):
        large = n == sizes.ten_million
        for kind in KINDS if n == sizes.million else SOME:
            yield Race(
                f"peers, {told(n)} {kind}",
                SECTION.name,
                of_case(kind, n),
                sort(),
                contenders(n, memory=large and kind == SOME[0]),
                n=n,
                seconds=2.0,
                rounds=2,
                quick=n == sizes.million and kind == "float32",
                column=f"{told(n)} {kind}",
            )
