"""The pictures that mislead most, made again from their data: small, and part of the page."""

import base64
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from abstain.benchmark.results import BenchmarkResults, Extreme
from abstain.errors import AbstainError
from abstain.report.benchmark_facts import folder_of, task_of
from abstain.report.benchmark_grid import checked_results, headline, leaders, ranking_metrics

#: Pixels of the longer side of a picture, at most.
_SIDE: Final = 96

#: Pictures of a kind that a study shows of a method.
_SHOWN: Final = 6

#: Bytes of all pictures of a page, at most.
_MOST: Final = 3_000_000


@dataclass(frozen=True)
class Pictures:
    """Pictures of a benchmark's extremes, ready for a page.

    Attributes
    ----------
    sources : mapping from (str, int) to str
        By exposure and row: a PNG as a ``data:`` address.
    reason : str
        Why there are none, or not all.

    Examples
    --------
    >>> from abstain.report.benchmark_pictures import Pictures
    >>> Pictures(reason="torch is not installed").sources
    {}
    """

    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)
    reason: str = ""


def benchmark_pictures(
    results: BenchmarkResults, task: str = "", folder: str | Path | None = None
) -> Pictures:
    """Make the most confident failures and least confident successes again.

    Parameters
    ----------
    results : BenchmarkResults
        Its `extremes` say which pictures are wanted: of each study those of its leader and of the
        baseline.
    task : str, optional
        In `abstain.benchmark.tasks.TASKS`; by default that of the runs.
    folder : str or Path, optional
        Where the files of the task are, for a task that needs some; by default where they were.

    Returns
    -------
    Pictures
        As the networks saw them, varied and corrupted alike; without torch or the files none,
        and the reason.

    Raises
    ------
    InputError
        If `results` is something else.

    Notes
    -----
    Each exposure that a picture comes from is made once, so this takes seconds.

    Examples
    --------
    >>> from abstain.report.benchmark_pictures import benchmark_pictures
    >>> benchmark_pictures({}, "glyphs")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    known = checked_results(results)
    wanted: dict[str, set[int]] = {}
    for one in shown_extremes(known):
        wanted.setdefault(one.exposure, set()).add(one.row)
    if not wanted:
        return Pictures()
    try:
        return _made(wanted, task or task_of(known), str(folder or folder_of(known)))
    except ModuleNotFoundError as error:
        missing = (error.name or "a package").split(".")[0]
        return Pictures(reason=f"{missing} is not installed (pip install 'abstain[benchmark]')")
    except ImportError as error:
        # It is there and broken.
        return Pictures(reason=str(error))
    except AbstainError as error:
        return Pictures(reason=f"the data of the task cannot be read: {error}")


def shown_extremes(results: BenchmarkResults) -> list[Extreme]:
    """Return the extremes of a page: of each study those of its leader and of the baseline."""
    metric = next(iter(ranking_metrics(results)), "")
    shown: list[Extreme] = []
    for study in headline(results):
        own = [one for one in results.extremes if one.study == study.name]
        known = {one.method for one in own}
        order = [name for name in leaders(results, metric, study, most=1) if name in known]
        names = order or [one.method for one in own[:1]]
        shown += [one for name in names for one in own if one.method == name and one.rank <= _SHOWN]
    return shown


def _made(wanted: Mapping[str, Iterable[int]], task: str, folder: str) -> Pictures:
    from abstain.benchmark.loaded import loaded

    own = loaded(task, folder)
    known = {exposure.key: exposure for exposure in own.parts.exposures}
    sources: dict[tuple[str, int], str] = {}
    absent = [key for key in wanted if key not in known]
    for key, rows in wanted.items():
        if key in absent:
            continue
        seen = own.exposed(known[key]).pictures
        for row in sorted(rows):
            if row < len(seen) and sum(map(len, sources.values())) < _MOST:
                sources[key, row] = _address(_levels(seen[row], own.inputs))
    reason = f"the task has no {', '.join(absent)}" if absent else ""
    return Pictures(sources, reason)


def _levels(seen: Any, inputs: Any) -> Any:
    """Return a picture as bytes, channels last; what a network sees is scaled."""
    import numpy as np

    scaled = np.asarray(seen, dtype=np.float64)
    middle, spread = (np.reshape(v, (-1, 1, 1)) for v in (inputs.mean, inputs.deviation))
    levels = np.round(255 * np.clip(scaled * spread + middle, 0, 1)).astype(np.uint8)
    return levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0)


def _address(levels: Any) -> str:
    """Return a picture as an address that holds all of it."""
    from PIL import Image

    picture = Image.fromarray(levels)
    picture.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
