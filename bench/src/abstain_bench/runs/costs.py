"""Compute the durations of the stages of a benchmark from its jobs and its last report."""

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
    """Total duration of one part of a stage, summed over the jobs.

    Attributes
    ----------
    stage : str
        "train", "validate", "test" or "report". "validate" and "test" include ensembles.
    part : str
        Name in `PART_TITLES`, or empty for jobs of versions that did not measure parts.
    score : str
        Name of the confidence score in the part "scores", otherwise empty.
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
    """A row in a table of durations.

    Attributes
    ----------
    labels : tuple of str
        Texts that identify a row of the table: its stage and its title, or the name of a score.
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
    """Return a row with the duration of each part of each stage, where all scores are one part.

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
    labels_and_costs = []
    for cost in costs:
        title = PART_TITLES.get(cost.part, "total")
        labels_and_costs.append(((cost.stage, title), cost))
    return _sum_by_label(labels_and_costs)


def costs_by_score(costs: Iterable[Cost]) -> list[CostRow]:
    """Return a row with the duration of each score, longest first.

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
    """Return a row with the total duration for each label."""
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
    """Adds up the durations of the named parts of a computation.

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
        """Measure the duration of a ``with`` block."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add({part: perf_counter() - start})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add the durations that another stopwatch has measured."""
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
        Receipts of the jobs of the benchmark. The default is to read the jobs from the folder.

    Returns
    -------
    tuple of Cost
        Durations for each stage, part and score. If no report was written, the stage "report" is
        missing.

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
        stage = stage_of_name(receipt.name)
        for (part, score), seconds in _seconds_by_part(receipt).items():
            seconds_by_key.setdefault((stage, part, score), []).append(seconds)
    costs = []
    for (stage, part, score), seconds_of_jobs in seconds_by_key.items():
        if stage in _STAGES:
            n_jobs = len(seconds_of_jobs)
            costs.append(Cost(stage, part, score, n_jobs, sum(seconds_of_jobs)))
    for part, seconds in _report_seconds(folder).items():
        costs.append(Cost(REPORT, part, "", 1, seconds))
    part_order = ("", *PART_TITLES)
    costs.sort(
        key=lambda cost: (_STAGES.index(cost.stage), part_order.index(cost.part), cost.score)
    )
    return tuple(costs)


def _seconds_by_part(receipt: Receipt) -> dict[tuple[str, str], float]:
    """Return the durations of a job by part and score; unmeasured time is the part "other"."""
    measured = receipt.facts.get("took")
    if not isinstance(measured, Mapping):
        return {("", ""): receipt.seconds}
    seconds: dict[tuple[str, str], float] = {}
    for part, duration in measured.items():
        if part not in PART_TITLES:
            continue
        duration_by_score = duration if isinstance(duration, Mapping) else {"": duration}
        for score, score_duration in update_method_names(duration_by_score).items():
            seconds[part, score] = float(score_duration)
    unmeasured = max(0.0, receipt.seconds - sum(seconds.values()))
    return {**seconds, ("other", ""): unmeasured}


def _report_seconds(folder: Path) -> dict[str, float]:
    """Return the durations of the last report by part, or an empty result if there is none."""
    seconds = {}
    with suppress(InputError, OSError, TypeError, ValueError):
        content = read_json_object(folder / _FILE)
        all_seconds = {part: float(content[part]) for part in content if part in PART_TITLES}
        seconds = {
            part: duration
            for part, duration in all_seconds.items()
            if isfinite(duration) and duration >= 0
        }
    return seconds


def write_report_costs(folder: Path, watch: Stopwatch) -> None:
    """Store the durations of a report in the folder of runs if it is writable."""
    with suppress(InputError, OSError):
        write_atomically(folder / _FILE, json.dumps(watch.rounded_seconds).encode())
