"""`LoadedTask` loads the images of a task once per process and preprocesses them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from abstain.typing import IntArray
from abstain_bench.data import Exposure, Images
from abstain_bench.runs.tasks import TASKS, Sizes, TaskImages
from abstain_bench.runs.training import Preprocessing
from abstain_bench.runs.training.inputs import make_variation

#: torch may be absent when types are checked.
Tensor = Any

#: Seed of the variations and corruptions of exposures. All networks use this seed.
EXPOSURE_SEED: Final = 0
#: Seeds of the variations of validation images, and of the training images for fitting scores.
_VALIDATION_SEED: Final = 1
_TRAIN_SEED: Final = 2

#: Maximum number of bytes of preprocessed images that a process caches for the next network.
_CACHE_BYTES: Final = 1 << 30
#: Size in bytes of the float32 value that replaces each byte of an image.
_BYTES_PER_FLOAT: Final = 4
#: Number of images per block of a hash.
_N_IMAGES_PER_BLOCK: Final = 5000


@dataclass(frozen=True)
class InputImages:
    """Preprocessed images in the memory of the CPU, with their labels and source indices."""

    images: Tensor
    labels: IntArray
    source_indices: IntArray


@dataclass(frozen=True, eq=False)
class LoadedTask:
    """The images of a task and their preprocessing."""

    task_images: TaskImages
    preprocessing: Preprocessing
    _cache: dict[str, InputImages] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of channels, height and width of the preprocessed images."""
        channels, height, width = self.validation.images.shape[1:]
        return channels, height, width

    @property
    def train(self) -> InputImages:
        """The preprocessed training images on which scores are fitted."""
        return self._cached("train", lambda: self._prepare(self.task_images.train, _TRAIN_SEED))

    @property
    def validation(self) -> InputImages:
        """The preprocessed validation images."""
        return self._cached(
            "validation", lambda: self._prepare(self.task_images.validation, _VALIDATION_SEED)
        )

    def exposure_images(self, exposure: Exposure) -> InputImages:
        """Return the preprocessed images of an exposure."""

        def prepare() -> InputImages:
            images = exposure.load()
            if exposure.is_corrupted or not exposure.corruption:
                return self._prepare(images, EXPOSURE_SEED)
            prepared = self.preprocessing.prepare_exposure(
                exposure, seed=EXPOSURE_SEED, images=images
            )
            return InputImages(prepared, images.labels, images.source_indices)

        return self._cached(f"exposure {exposure.key}", prepare)

    def digest(self) -> str:
        """Return a hash of the training and validation images."""
        return hash_images([self.task_images.train, self.task_images.validation])

    def _prepare(self, images: Images, seed: int) -> InputImages:
        """Preprocess images now, or on access if they are large and are not varied."""
        exceeds_cache = images.pixels.nbytes * _BYTES_PER_FLOAT > _CACHE_BYTES
        prepared = self.preprocessing.prepare_lazily(images) if exceeds_cache else None
        if prepared is None:
            prepared = self.preprocessing.prepare(images, seed=seed)
        return InputImages(prepared, images.labels, images.source_indices)

    def _cached(self, name: str, make: Callable[[], InputImages]) -> InputImages:
        """Return images from the cache, or create them and cache them if the cache has space."""
        if name in self._cache:
            return self._cache[name]
        inputs = make()
        n_cached_bytes = sum(cached.images.nbytes for cached in self._cache.values())
        if n_cached_bytes + inputs.images.nbytes <= _CACHE_BYTES:
            self._cache[name] = inputs
        return inputs


def hash_images(image_sets: Iterable[Images]) -> str:
    """Return a hash of the pixels and labels of several sets of images."""
    digest = hashlib.sha256()
    for images in image_sets:
        for start in range(0, images.n, _N_IMAGES_PER_BLOCK):
            digest.update(images.pixels[start : start + _N_IMAGES_PER_BLOCK].tobytes())
        digest.update(images.labels.tobytes())
    return digest.hexdigest()


def load_task(
    task: str,
    folder: str,
    data: Sizes | None = None,
    variation: Mapping[str, Any] | None = None,
) -> LoadedTask:
    """Load a task, or return it from the cache if this process has loaded it before.

    `data` and `variation` replace the sizes and the variation of the task.
    """
    if variation is None:
        variation = TASKS[task].variation
    sizes = None if data is None else data.to_dict()
    return _load_task(json.dumps([task, folder, sizes, dict(variation)]))


@lru_cache(maxsize=1)
def _load_task(arguments: str) -> LoadedTask:
    """Load a task. Arguments are passed as JSON, because the cache requires hashable arguments."""
    task, folder, data, variation = json.loads(arguments)
    sizes = None if data is None else Sizes(**data)
    task_images = TASKS[task].load_images(Path(folder).expanduser() if folder else None, sizes)
    preprocessing = Preprocessing.from_training_images(task_images.train, make_variation(variation))
    return LoadedTask(task_images, preprocessing)


def select_exposures(
    images: TaskImages, corruptions: Sequence[str], severities: Sequence[int]
) -> tuple[Exposure, ...]:
    """Return the exposures of a task, restricted to the given corruptions and severities."""
    return tuple(
        exposure
        for exposure in images.exposures
        if not exposure.corruption
        or (exposure.corruption in corruptions and exposure.severity in severities)
    )
