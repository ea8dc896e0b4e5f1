"""Example images of confident failures and unconfident successes, created from the data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from abstain.errors import AbstainError
from abstain.report.document import Block, Prose, Thumbnail, Thumbnails
from abstain.report.images import MAX_TOTAL_BYTES, SampleImages, to_data_url
from abstain_bench.pages.benchmark.leaderboard import NEW, Leaderboard
from abstain_bench.results import BenchmarkResults, Extreme
from abstain_bench.runs.studies import Study

#: Maximum number of images of each kind for a method in a study.
_SHOWN: Final = 6

_KINDS: Final = {
    "overconfident": "most confident failures",
    "underconfident": "least confident successes",
}


def benchmark_pictures(
    results: BenchmarkResults, task: str = "", folder: str | Path | None = None
) -> SampleImages:
    """Create the images of the most confident failures and least confident successes.

    Parameters
    ----------
    results : BenchmarkResults
        Results whose `extremes` list the images: for each study, those of its best method and of
        the baseline.
    task : str, optional
        A name in `abstain_bench.runs.tasks.TASKS`; by default the task of the runs.
    folder : str or Path, optional
        Folder of the data set for tasks that need one; by default the folder of the run.

    Returns
    -------
    SampleImages
        The images as the networks received them, including variations and corruptions. Without
        torch or the data, there are no images, and `reason` explains it.

    Raises
    ------
    InputError
        If `results` has another type.

    Notes
    -----
    Each test set with a required image is created once, which takes seconds.

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
        # The package is installed, but cannot be imported.
        return SampleImages(reason=str(error))
    except AbstainError as error:
        return SampleImages(reason=f"the data of the task cannot be read: {error}")


def pictured(study: Study) -> tuple[str, int]:
    """Return the exposure and the row of the example image of a study."""
    # New classes are the last exposure; of several severities, the middle one is used.
    new = study.kind in NEW
    return study.exposures[-1 if new else len(study.exposures) // 2], 0


def shown_extremes(board: Leaderboard) -> list[Extreme]:
    """Return the displayed extremes: those of the best method and the baseline of each study."""
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

    from abstain_bench.data.images import levels_of
    from abstain_bench.runs.loaded_task import load_task
    from abstain_bench.runs.tasks import Sizes

    # Rows refer to the subset and the variation of the images that the run used.
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
                levels = levels_of(seen[row], own.preprocessing.mean, own.preprocessing.std)
                sources[key, row] = to_data_url(Image.fromarray(levels))
    reason = f"the task has no {', '.join(absent)}" if absent else ""
    return SampleImages(sources, reason)


def shots_of(board: Leaderboard, study: Study, pictures: SampleImages | None) -> Iterator[Block]:
    """Yield the example images of the best method of a study and of the baseline."""
    own = _of_study(board, study)
    if not own:
        return
    made = pictures or SampleImages(reason="they were not requested")
    about = (
        "The percentage is the share of samples of the study with a lower confidence: it should be "
        "low for failures and high for successes."
    )
    if not any((one.exposure, one.row) in made.sources for one in own):
        why = made.reason or "they could not be created"
        about += f" Images are not available: {why.rstrip('.')}."
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
    share = f"{100 * one.quantile:.1f}%"
    said = f"predicted as {taken}" if one.label != one.prediction else "correct"
    return Thumbnail(
        made.sources.get((one.exposure, one.row), ""),
        f"An image of {label}, {said}; {share} of the samples have a lower confidence",
        label,
        said,
        f"{share} lower; {one.exposure}, image {one.row}",
    )


def _class(index: int, classes: Sequence[str]) -> str:
    if index < 0:
        return "a new class"
    return f"“{classes[index]}”" if index < len(classes) else f"class {index}"
