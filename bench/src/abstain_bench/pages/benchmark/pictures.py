"""Create example images of failures with high confidence and successes with low confidence."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abstain.errors import AbstainError
from abstain.report.document import Block, Prose, Thumbnail, Thumbnails
from abstain.report.images import MAX_TOTAL_BYTES, SampleImages, to_data_url
from abstain_bench.data.images import quoted_class
from abstain_bench.pages.benchmark.leaderboard import NEW_CLASS_KINDS, Leaderboard
from abstain_bench.results import BenchmarkResults, Extreme
from abstain_bench.runs.studies import Study

if TYPE_CHECKING:
    from abstain_bench.runs.loaded_task import LoadedTask

#: Maximum number of images of each kind for a method in a study.
_MAX_IMAGES: Final = 6

_KINDS: Final = {
    "overconfident": "most confident failures",
    "underconfident": "least confident successes",
}


def benchmark_pictures(
    results: BenchmarkResults, task: str = "", folder: str | Path | None = None
) -> SampleImages:
    """Create images of the failures with the highest and the successes with the lowest confidence.

    Parameters
    ----------
    results : BenchmarkResults
        Results whose `extremes` list the images. Images are created for the best method of each
        study and for the baseline.
    task : str, optional
        A name in `abstain_bench.runs.tasks.TASKS`. The default is the task on which the networks
        were run.
    folder : str or Path, optional
        Folder of the data set for tasks that need one. The default is the data folder of the run.

    Returns
    -------
    SampleImages
        The images as given to the networks, including variations and corruptions. If torch or the
        data are unavailable, there are no images and `reason` explains why.

    Raises
    ------
    InputError
        If `results` has another type.

    Notes
    -----
    Each required test set is created once, which takes several seconds.

    Examples
    --------
    >>> from abstain_bench.pages import benchmark_pictures
    >>> benchmark_pictures({}, "glyphs")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    required_rows: dict[str, set[int]] = {}
    for extreme in displayed_extremes(Leaderboard(results)):
        required_rows.setdefault(extreme.exposure, set()).add(extreme.row)
    if not required_rows:
        return SampleImages()
    try:
        loaded_task = _load_task(results, task, folder)
        return _create_images(required_rows, loaded_task, results.headline)
    except ModuleNotFoundError as error:
        missing = (error.name or "a package").split(".")[0]
        return SampleImages(reason=f"{missing} is not installed (pip install {missing})")
    except ImportError as error:
        # The package is installed but cannot be imported.
        return SampleImages(reason=str(error))
    except AbstainError as error:
        return SampleImages(reason=f"the data of the task cannot be read: {error}")


def example_image(study: Study) -> tuple[str, int]:
    """Return the exposure and the row index of the example image of a study."""
    if study.kind in NEW_CLASS_KINDS:
        # The first exposure contains the known classes.
        return study.exposures[-1], 0
    middle_severity = study.exposures[len(study.exposures) // 2]
    return middle_severity, 0


def displayed_extremes(board: Leaderboard) -> list[Extreme]:
    """Return the extreme samples of the best method and the baseline in each study."""
    return [
        extreme for study in board.results.headline for extreme in _study_extremes(board, study)
    ]


def _study_extremes(board: Leaderboard, study: Study) -> list[Extreme]:
    """Return the extreme samples of the best method and the baseline in one study."""
    extremes = [extreme for extreme in board.results.extremes if extreme.study == study.name]
    by_method: dict[str, list[Extreme]] = {}
    for extreme in extremes:
        by_method.setdefault(extreme.method, []).append(extreme)
    names = [name for name in board.leaders(study, max_methods=1) if name in by_method]
    return [
        extreme
        for name in names or list(by_method)[:1]
        for extreme in by_method[name]
        if extreme.rank <= _MAX_IMAGES
    ]


def _load_task(results: BenchmarkResults, name: str, folder: str | Path | None) -> "LoadedTask":
    """Load a task with the same image subset and variation as the run."""
    from abstain_bench.runs.loaded_task import load_task
    from abstain_bench.runs.tasks import Sizes

    sizes = results.configured("data")
    return load_task(
        name or results.task,
        str(folder or results.configured("folder")),
        Sizes(**sizes) if sizes else None,
        results.configured("variation") or None,
    )


def _create_images(
    required_rows: Mapping[str, Iterable[int]], task: "LoadedTask", studies: Iterable[Study]
) -> SampleImages:
    """Create the required images and one example image per study, within the size limit."""
    exposures = {exposure.key: exposure for exposure in task.task_images.exposures}
    rows_by_exposure = {key: set(rows) for key, rows in required_rows.items()}
    for key, row in map(example_image, studies):
        if key in exposures:
            rows_by_exposure.setdefault(key, set()).add(row)
    sources: dict[tuple[str, int], str] = {}
    for key, rows in rows_by_exposure.items():
        if key not in exposures:
            continue
        images = task.exposure_images(exposures[key]).images
        for row in sorted(rows):
            if row < len(images) and sum(map(len, sources.values())) < MAX_TOTAL_BYTES:
                sources[key, row] = _encode_image(images[row], task)
    absent = [key for key in required_rows if key not in exposures]
    reason = f"the task has no {', '.join(absent)}" if absent else ""
    return SampleImages(sources, reason)


def _encode_image(pixels: Any, task: "LoadedTask") -> str:
    """Encode a network input as an image in a data URL."""
    from PIL import Image

    from abstain_bench.data.images import to_gray_levels

    levels = to_gray_levels(pixels, task.preprocessing.mean, task.preprocessing.std)
    return to_data_url(Image.fromarray(levels))


def example_image_blocks(
    board: Leaderboard, study: Study, images: SampleImages | None
) -> Iterator[Block]:
    """Yield the example images for the best method of a study and for the baseline."""
    extremes = _study_extremes(board, study)
    if not extremes:
        return
    available = images or SampleImages(reason="they were not requested")
    explanation = (
        "The percentage is the share of samples of the study with a lower confidence: it should be "
        "low for failures and high for successes."
    )
    if not any((extreme.exposure, extreme.row) in available.sources for extreme in extremes):
        reason = available.reason or "they could not be created"
        explanation += f" Images are not available: {reason.rstrip('.')}."
    yield Prose(explanation, "about")
    groups: dict[tuple[str, str], list[Extreme]] = {}
    for extreme in extremes:
        groups.setdefault((extreme.method, extreme.kind), []).append(extreme)
    for method in dict.fromkeys(extreme.method for extreme in extremes):
        for kind, kind_text in _KINDS.items():
            group = groups.get((method, kind))
            if group:
                title = f"“{method}”, seed {group[0].seed}: {kind_text}"
                thumbnails = (_thumbnail(board.results, extreme, available) for extreme in group)
                yield Thumbnails(title, tuple(thumbnails))


def _thumbnail(results: BenchmarkResults, extreme: Extreme, images: SampleImages) -> Thumbnail:
    """Return an image with its label, its prediction and the quantile of its confidence."""
    names = results.facts.get("classes")
    classes = [str(name) for name in names] if isinstance(names, list | tuple) else []
    label = quoted_class(extreme.label, classes)
    outcome = "correct"
    if extreme.label != extreme.prediction:
        outcome = f"predicted as {quoted_class(extreme.prediction, classes)}"
    share = f"{100 * extreme.quantile:.1f}%"
    return Thumbnail(
        images.sources.get((extreme.exposure, extreme.row), ""),
        f"An image of {label}, {outcome}; {share} of the samples have a lower confidence",
        label,
        outcome,
        f"{share} lower; {extreme.exposure}, image {extreme.row}",
    )
