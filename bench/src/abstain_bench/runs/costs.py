"""What each stage of a benchmark costs: the seconds that its jobs and its last report measured."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from abstain._foundation.files import write_atomically
from abstain._foundation.input_files import read_json_object
from abstain.errors import InputError
from abstain_bench.runs.jobs.record import Receipt, read_receipts
from abstain_bench.runs.methods import update_method_names
from abstain_bench.runs.specification.jobs import stage_of_name
from abstain_bench.runs.store import JOBS

__all__ = [
    "PARTS",
    "REPORT",
    "Cost",
    "CostRow",
    "Stopwatch",
    "by_score",
    "by_stage",
    "costs_of",
    "write_report_costs",
]

#: What is measured, in the order of the table, with the words for people.
PARTS: Final[Mapping[str, str]] = {
    "training": "training",
    "pictures": "pictures: loaded, varied, shifted and corrupted",
    "passes": "passes of the networks",
    "scores": "scores: fitted and computed",
    "evaluation": "evaluation: metrics",
    "other": "the rest: reading and writing of files",
    "reading": "scores read",
    "comparison": "evaluation: metrics, intervals and all pairs",
    "looks": "curves, thresholds and calibration",
    "ranking": "ranking over all studies",
    "page": "page and images",
    "tables": "tables",
}

#: The stage that is no job.
REPORT: Final = "report"
_STAGES: Final = ("train", "validate", "test", REPORT)
#: In the folder of the runs: what the last report took.
_FILE: Final = "report-costs.json"


@dataclass(frozen=True)
class Cost:
    """What a part of a stage costs, over all of its jobs.

    Attributes
    ----------
    stage : str
        "train", "validate" or "test", of one network or of those of all seeds; "report".
    part : str
        In `PARTS`; empty for jobs of versions that measured no parts.
    score : str
        The name of the score in the part "scores"; empty elsewhere.
    jobs : int
        How many jobs it was measured in.
    seconds : float
        Of all of them together.
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
    words : tuple of str
        Its stage and what was done, or the name of a score.
    jobs : int
        How many jobs it was measured in.
    seconds : float
        Of all of them together.
    share : float
        Of the seconds of all rows.
    """

    words: tuple[str, ...]
    jobs: int
    seconds: float
    share: float


def by_stage(costs: Iterable[Cost]) -> list[CostRow]:
    """Return what each part of each stage took, all scores together.

    Examples
    --------
    >>> from abstain_bench.runs.costs import Cost, by_stage
    >>> costs = [Cost("test", "scores", name, 2, 1.0) for name in ("msr", "knn")]
    >>> [(row.words, row.seconds) for row in by_stage([Cost("train", "", "", 3, 6.0), *costs])]
    [(('train', 'all of it'), 6.0), (('test', 'scores: fitted and computed'), 2.0)]
    """
    return _rows(((c.stage, PARTS.get(c.part, "all of it")), c) for c in costs)


def by_score(costs: Iterable[Cost]) -> list[CostRow]:
    """Return what fitting and computing each score took, in all stages, the longest first.

    Examples
    --------
    >>> from abstain_bench.runs.costs import Cost, by_score
    >>> costs = [Cost(stage, "scores", "knn", 2, 1.5) for stage in ("validate", "test")]
    >>> by_score([*costs, Cost("test", "scores", "vim", 2, 1.0)])[0]
    CostRow(words=('knn',), jobs=4, seconds=3.0, share=0.75)
    """
    rows = _rows(((c.score,), c) for c in costs if c.score)
    return sorted(rows, key=lambda row: -row.seconds)


def _rows(named: Iterable[tuple[tuple[str, ...], Cost]]) -> list[CostRow]:
    """Add up what has one name."""
    own: dict[tuple[str, ...], list[Cost]] = {}
    for words, cost in named:
        own.setdefault(words, []).append(cost)
    # The scores of a stage were measured in the same jobs, those of two stages were not.
    jobs = {w: sum({c.stage: c.jobs for c in costs}.values()) for w, costs in own.items()}
    seconds = {words: sum(c.seconds for c in costs) for words, costs in own.items()}
    whole = sum(seconds.values()) or 1.0
    return [CostRow(w, jobs[w], seconds[w], seconds[w] / whole) for w in own]


class Stopwatch:
    """Adds up the seconds of the parts of a piece of work, by name.

    Examples
    --------
    >>> from abstain_bench.runs.costs import Stopwatch
    >>> watch = Stopwatch()
    >>> for _ in range(2):
    ...     with watch.of("passes"):
    ...         pass
    >>> list(watch.seconds)
    ['passes']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Measure what is done inside."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add({part: perf_counter() - start})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add what was measured elsewhere."""
        for part, own in seconds.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + own

    @property
    def told(self) -> dict[str, float]:
        """The seconds as a receipt keeps them."""
        return {part: round(own, 4) for part, own in self.seconds.items()}


def costs_of(folder: str | Path, receipts: Iterable[Receipt] | None = None) -> tuple[Cost, ...]:
    """Say what each stage of a benchmark costs.

    Answers: which part of a run would be worth making faster, or asking for less of?

    Parameters
    ----------
    folder : str or Path
        Of the runs.
    receipts : iterable of Receipt, optional
        Of its jobs, where they were read already.

    Returns
    -------
    tuple of Cost
        By stage and part; the scores one by one. What the jobs of an older version measured is
        one part, and a folder of which no report was made says nothing of one.

    Examples
    --------
    >>> from abstain_bench.runs.costs import costs_of
    >>> costs_of("runs")
    ()
    """
    place = Path(folder)
    known = read_receipts(place / JOBS).values() if receipts is None else receipts
    found: dict[tuple[str, str, str], list[float]] = {}
    for one in known:
        for (part, score), seconds in _parts(one).items():
            found.setdefault((stage_of_name(one.name), part, score), []).append(seconds)
    costs = [Cost(*key, len(own), sum(own)) for key, own in found.items() if key[0] in _STAGES]
    costs += [Cost(REPORT, part, "", 1, own) for part, own in _of_report(place).items()]
    costs.sort(key=lambda c: (_STAGES.index(c.stage), ("", *PARTS).index(c.part), c.score))
    return tuple(costs)


def _parts(receipt: Receipt) -> dict[tuple[str, str], float]:
    """Return the seconds of a job by part and score; what is left of them is another part."""
    took = receipt.facts.get("took")
    if not isinstance(took, Mapping):
        return {("", ""): receipt.seconds}
    found: dict[tuple[str, str], float] = {}
    for part, own in took.items():
        if part in PARTS:
            each = update_method_names(own) if isinstance(own, Mapping) else {"": own}
            found |= {(part, name): float(seconds) for name, seconds in each.items()}
    return found | {("other", ""): max(0.0, receipt.seconds - sum(found.values()))}


def _of_report(folder: Path) -> dict[str, float]:
    """Return what the last report took; nothing where there was none, or the file is damaged."""
    with suppress(InputError, OSError, TypeError, ValueError):
        found = {
            part: float(own)
            for part, own in read_json_object(folder / _FILE).items()
            if part in PARTS
        }
        return {part: own for part, own in found.items() if isfinite(own) and own >= 0}
    return {}


def write_report_costs(folder: Path, watch: Stopwatch) -> None:
    """Keep what a report took beside the runs, where one may write there."""
    said: dict[str, Any] = watch.told
    with suppress(InputError, OSError):
        write_atomically(folder / _FILE, json.dumps(said).encode())
