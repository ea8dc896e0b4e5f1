"""Durations of the stages of a benchmark, which its jobs and its last report measure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Final

from abstain._foundation.files import write_atomically
from abstain._foundation.input_files import read_json_object
from abstain.errors import InputError
from abstain_bench.runs.jobs.record import Receipt, read_receipts
from abstain_bench.runs.methods import update_method_names
from abstain_bench.runs.specification.jobs import stage_of_name
from abstain_bench.runs.store import JOBS

#: Titles of the measured parts of a job or a report, in the order of the table.
PART_TITLES: Final[Mapping[str, str]] = {
    "training": "training",
    "pictures": "images: load, augment, shift and corrupt",
    "passes": "forward passes of the networks",
    "scores": "scores: fit and compute",
    "evaluation": "evaluation: metrics",
    "other": "other: read and write files",
    "reading": "read scores",
    "comparison": "evaluation: metrics, intervals and all pairs",
    "looks": "curves, thresholds and calibration",
    "ranking": "ranking over all studies",
    "page": "page and figures",
    "tables": "tables",
}

#: The stage of reports, which has no jobs.
REPORT: Final = "report"
_STAGES: Final = ("train", "validate", "test", REPORT)
#: File in the folder of runs with the durations of the last report.
_FILE: Final = "report-costs.json"


@dataclass(frozen=True)
class Cost:
    """Total duration of a part of a stage over all jobs of the stage.

    Attributes
    ----------
    stage : str
        "train", "validate", "test" or "report". "validate" and "test" include ensembles.
    part : str
        Name in `PART_TITLES`. It is empty for jobs of versions that did not measure parts.
    score : str
        Name of the score in the part "scores". It is empty in all other parts.
    jobs : int
        Number of measured jobs.
    seconds : float
        Total duration.
    """

    stage: str
    part: str
    score: str
    jobs: int
    seconds: float


@dataclass(frozen=True)
class CostRow:
    """A row of a table of costs.

    Attributes
    ----------
    labels : tuple of str
        The stage and the title of the part, or the name of a score.
    jobs : int
        Number of measured jobs.
    seconds : float
        Total duration.
    share : float
        Share of the total duration of all rows.
    """

    labels: tuple[str, ...]
    jobs: int
    seconds: float
    share: float


def costs_by_stage(costs: Iterable[Cost]) -> list[CostRow]:
    """Return a row with the duration of each part of each stage.

    The row of the part "scores" contains the sum over all scores.

    Examples
    --------
    >>> from abstain_bench.runs.costs import Cost, costs_by_stage
    >>> costs = [Cost("test", "scores", name, 2, 1.0) for name in ("msr", "knn")]
    >>> [
    ...     (row.labels, row.seconds)
    ...     for row in costs_by_stage([Cost("train", "", "", 3, 6.0), *costs])
    ... ]
    [(('train', 'total'), 6.0), (('test', 'scores: fit and compute'), 2.0)]
    """
    return _sum_by_label(
        ((cost.stage, PART_TITLES.get(cost.part, "total")), cost) for cost in costs
    )


def costs_by_score(costs: Iterable[Cost]) -> list[CostRow]:
    """Return a row with the duration of fitting and computing each score, longest first.

    Examples
    --------
    >>> from abstain_bench.runs.costs import Cost, costs_by_score
    >>> costs = [Cost(stage, "scores", "knn", 2, 1.5) for stage in ("validate", "test")]
    >>> costs_by_score([*costs, Cost("test", "scores", "vim", 2, 1.0)])[0]
    CostRow(labels=('knn',), jobs=4, seconds=3.0, share=0.75)
    """
    rows = _sum_by_label(((cost.score,), cost) for cost in costs if cost.score)
    return sorted(rows, key=lambda row: -row.seconds)


def _sum_by_label(labeled_costs: Iterable[tuple[tuple[str, ...], Cost]]) -> list[CostRow]:
    """Return a row with the total of the costs for each label."""
    costs_by_label: dict[tuple[str, ...], list[Cost]] = {}
    for labels, cost in labeled_costs:
        costs_by_label.setdefault(labels, []).append(cost)
    total = sum(cost.seconds for costs in costs_by_label.values() for cost in costs) or 1.0
    rows = []
    for labels, costs in costs_by_label.items():
        # The same jobs measure all scores of a stage, so the jobs of each stage count once.
        n_jobs = sum({cost.stage: cost.jobs for cost in costs}.values())
        seconds = sum(cost.seconds for cost in costs)
        rows.append(CostRow(labels, n_jobs, seconds, seconds / total))
    return rows


class Stopwatch:
    """Sums the durations of named parts of a computation.

    Examples
    --------
    >>> from abstain_bench.runs.costs import Stopwatch
    >>> watch = Stopwatch()
    >>> for _ in range(2):
    ...     with watch.measure("passes"):
    ...         pass
    >>> list(watch.seconds)
    ['passes']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Measure the duration of the ``with`` block."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add({part: perf_counter() - start})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add the durations of parts that another stopwatch measured."""
        for part, duration in seconds.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + duration

    @property
    def rounded_seconds(self) -> dict[str, float]:
        """The durations, rounded for a receipt."""
        return {part: round(duration, 4) for part, duration in self.seconds.items()}


def read_costs(folder: str | Path, receipts: Iterable[Receipt] | None = None) -> tuple[Cost, ...]:
    """Read the durations of the stages of a benchmark.

    Parameters
    ----------
    folder : str or Path
        Folder of runs.
    receipts : iterable of Receipt, optional
        Receipts of the jobs of the benchmark. By default, they are read from the folder.

    Returns
    -------
    tuple of Cost
        Durations by stage, part and score. Jobs of earlier versions have a single part. The stage
        "report" is missing if no report was made.

    Examples
    --------
    >>> from abstain_bench.runs.costs import read_costs
    >>> read_costs("runs")
    ()
    """
    folder = Path(folder)
    if receipts is None:
        receipts = read_receipts(folder / JOBS).values()
    seconds_by_key: dict[tuple[str, str, str], list[float]] = {}
    for receipt in receipts:
        for (part, score), seconds in _seconds_by_part(receipt).items():
            key = (stage_of_name(receipt.name), part, score)
            seconds_by_key.setdefault(key, []).append(seconds)
    costs = [
        Cost(*key, len(seconds), sum(seconds))
        for key, seconds in seconds_by_key.items()
        if key[0] in _STAGES
    ]
    report_seconds = _report_seconds(folder)
    costs += [Cost(REPORT, part, "", 1, seconds) for part, seconds in report_seconds.items()]
    parts = ("", *PART_TITLES)
    costs.sort(key=lambda c: (_STAGES.index(c.stage), parts.index(c.part), c.score))
    return tuple(costs)


def _seconds_by_part(receipt: Receipt) -> dict[tuple[str, str], float]:
    """Return the durations of a job by part and score.

    The part "other" is the duration of the job minus the durations of the measured parts.
    """
    measured = receipt.facts.get("took")
    if not isinstance(measured, Mapping):
        return {("", ""): receipt.seconds}
    seconds: dict[tuple[str, str], float] = {}
    for part, duration in measured.items():
        if part in PART_TITLES:
            by_score = duration if isinstance(duration, Mapping) else {"": duration}
            for score, seconds_of_score in update_method_names(by_score).items():
                seconds[part, score] = float(seconds_of_score)
    return seconds | {("other", ""): max(0.0, receipt.seconds - sum(seconds.values()))}


def _report_seconds(folder: Path) -> dict[str, float]:
    """Return the durations of the last report by part.

    The result is empty if no report was made or the file is damaged.
    """
    with suppress(InputError, OSError, TypeError, ValueError):
        content = read_json_object(folder / _FILE)
        seconds = {part: float(content[part]) for part in content if part in PART_TITLES}
        return {part: x for part, x in seconds.items() if isfinite(x) and x >= 0}
    return {}


def write_report_costs(folder: Path, watch: Stopwatch) -> None:
    """Write the durations of a report into the folder of runs, if it is writable."""
    with suppress(InputError, OSError):
        write_atomically(folder / _FILE, json.dumps(watch.rounded_seconds).encode())
