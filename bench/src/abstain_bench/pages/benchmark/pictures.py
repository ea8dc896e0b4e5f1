"""The pictures that mislead most, made again from their data: small, and part of the page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from abstain.errors import AbstainError
from abstain.report.document import Block, Prose, Thumbnail, Thumbnails
from abstain.report.images import MAX_TOTAL_BYTES, SampleImages, to_data_url
from abstain_bench.pages.benchmark.leaderboard import NEW, Leaderboard
from abstain_bench.results import BenchmarkResults, Extreme
from abstain_bench.runs.studies import Study

#: Pictures of a kind that a study shows of a method.
_SHOWN: Final = 6

_KINDS: Final = {
    "overconfident": "most confident failures",
    "underconfident": "least confident successes",
}


def benchmark_pictures(
    results: BenchmarkResults, task: str = "", folder: str | Path | None = None
) -> SampleImages:
    """Make the most confident failures and least confident successes again.

    Parameters
    ----------
    results : BenchmarkResults
        Its `extremes` say which pictures are wanted: of each study those of its leader and of the
        baseline.
    task : str, optional
        In `abstain_bench.runs.tasks.TASKS`; by default that of the runs.
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
    >>> from abstain_bench.pages import benchmark_pictures
    >>> benchmark_pictures({}, "glyphs")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    wanted: dict[str, set[int]] = {}
    for one in shown_extremes(Leaderboard(results)):
        wanted.setdefault(one.exposure, set()).add(one.row)
    if not wanted:
        return SampleImages()
    try:
        place = str(folder or results.asked("folder"))
        return _made(wanted, (task or results.task, place), results)
    except ModuleNotFoundError as error:
        missing = (error.name or "a package").split(".")[0]
        return SampleImages(reason=f"{missing} is not installed (pip install {missing})")
    except ImportError as error:
        # It is there and broken.
        return SampleImages(reason=str(error))
    except AbstainError as error:
        return SampleImages(reason=f"the data of the task cannot be read: {error}")


def pictured(study: Study) -> tuple[str, int]:
    """Return the exposure and the row of the picture that stands for a study."""
    # That of new classes comes last; of severities the one in the middle.
    new = study.kind in NEW
    return study.exposures[-1 if new else len(study.exposures) // 2], 0


def shown_extremes(board: Leaderboard) -> list[Extreme]:
    """Return the extremes of a page: of each study those of its leader and of the baseline."""
    return [one for study in board.results.headline for one in _of_study(board, study)]


def _of_study(board: Leaderboard, study: Study) -> list[Extreme]:
    own = [one for one in board.results.extremes if one.study == study.name]
    known = {one.method for one in own}
    order = [name for name in board.leaders(study, most=1) if name in known]
    names = order or [one.method for one in own[:1]]
    return [one for name in names for one in own if one.method == name and one.rank <= _SHOWN]


def _made(
    wanted: Mapping[str, Iterable[int]], where: tuple[str, str], results: BenchmarkResults
) -> SampleImages:
    from PIL import Image

    from abstain_bench.data.images import to_gray_levels
    from abstain_bench.runs.loaded_task import load_task
    from abstain_bench.runs.tasks import Sizes

    # The rows are of what was taken of the files, changed as it was.
    data, variation = (results.asked(name) or None for name in ("data", "variation"))
    own = load_task(*where, None if data is None else Sizes(**data), variation)
    known = {exposure.key: exposure for exposure in own.task_images.exposures}
    sources: dict[tuple[str, int], str] = {}
    absent = [key for key in wanted if key not in known]
    rows_of = {key: set(rows) for key, rows in wanted.items()}
    for key, row in map(pictured, results.headline):
        if key in known:
            rows_of.setdefault(key, set()).add(row)
    for key, rows in rows_of.items():
        if key in absent:
            continue
        seen = own.exposure_images(known[key]).images
        for row in sorted(rows):
            if row < len(seen) and sum(map(len, sources.values())) < MAX_TOTAL_BYTES:
                levels = to_gray_levels(seen[row], own.preprocessing.mean, own.preprocessing.std)
                sources[key, row] = to_data_url(Image.fromarray(levels))
    reason = f"the task has no {', '.join(absent)}" if absent else ""
    return SampleImages(sources, reason)


def shots_of(board: Leaderboard, study: Study, pictures: SampleImages | None) -> Iterator[Block]:
    """Return the pictures that the leader of a study and the baseline are most wrong about."""
    own = _of_study(board, study)
    if not own:
        return
    made = pictures or SampleImages(reason="they were not asked for")
    about = (
        "The share is of the samples of the study that the method is less sure of: high for a "
        "failure and low for a success misleads."
    )
    if not any((one.exposure, one.row) in made.sources for one in own):
        why = made.reason or "none could be made"
        about += f" The pictures themselves are not shown: {why.rstrip('.')}."
    yield Prose(about, "about")
    for method in dict.fromkeys(one.method for one in own):
        for kind, said in _KINDS.items():
            found = [one for one in own if (one.method, one.kind) == (method, kind)]
            if found:
                title = f"“{method}”, seed {found[0].seed}: {said}"
                yield Thumbnails(title, tuple(_shot(board.results, one, made) for one in found))


def _shot(results: BenchmarkResults, one: Extreme, made: SampleImages) -> Thumbnail:
    names = results.facts.get("classes")
    classes = [str(name) for name in names] if isinstance(names, list | tuple) else []
    label, taken = _class(one.label, classes), _class(one.prediction, classes)
    share = f"{100 * one.quantile:.1f} %"
    said = f"taken for {taken}" if one.label != one.prediction else "recognized"
    return Thumbnail(
        made.sources.get((one.exposure, one.row), ""),
        f"A picture of {label}, {said}; the method is less sure of {share} of the samples",
        label,
        said,
        f"{share} less sure; {one.exposure}, picture {one.row}",
    )


def _class(index: int, classes: Sequence[str]) -> str:
    if index < 0:
        return "a new class"
    return f"“{classes[index]}”" if index < len(classes) else f"class {index}"
