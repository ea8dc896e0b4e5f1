"""`LoadedTask`: the images of a task in one process, preprocessed for its networks."""

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

#: Seed of the variations and corruptions of exposures, the same for all networks.
EXPOSURE_SEED: Final = 0
#: Seeds of the variations of validation images, and of training images that scores are fitted on.
_VALIDATION_SEED: Final = 1
_TRAIN_SEED: Final = 2

#: Maximum bytes of preprocessed images that a process caches for the next network.
_CACHE_BYTES: Final = 1 << 30
#: Bytes of a preprocessed value, for each byte of an image.
_BYTES_PER_FLOAT: Final = 4
#: Number of images per block of a hash.
_N_IMAGES_PER_BLOCK: Final = 5000


@dataclass(frozen=True)
class InputImages:
    """Preprocessed images on the host, with their labels and their indices in the source."""

    images: Tensor
    labels: IntArray
    source_indices: IntArray


@dataclass(frozen=True, eq=False)
class LoadedTask:
    """The images of a task, loaded once per process, and their preprocessing."""

    task_images: TaskImages
    preprocessing: Preprocessing
    _cache: dict[str, InputImages] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of preprocessed images."""
        channels, height, width = self.validation.images.shape[1:]
        return channels, height, width

    @property
    def train(self) -> InputImages:
        """The training images for fitting scores, augmented once."""
        return self._cached("train", lambda: self._prepare(self.task_images.train, _TRAIN_SEED))

    @property
    def validation(self) -> InputImages:
        """The validation images."""
        return self._cached(
            "validation", lambda: self._prepare(self.task_images.validation, _VALIDATION_SEED)
        )

    def exposure_images(self, exposure: Exposure) -> InputImages:
        """Return the preprocessed images of one test set."""

        def prepare() -> InputImages:
            images = exposure.load()
            if exposure.is_corrupted or not exposure.corruption:
                return self._prepare(images, EXPOSURE_SEED)
            # Pass the loaded images, because their file may be large.
            prepared = self.preprocessing.prepare_exposure(
                exposure, seed=EXPOSURE_SEED, images=images
            )
            return InputImages(prepared, images.labels, images.source_indices)

        return self._cached(f"exposure {exposure.key}", prepare)

    def digest(self) -> str:
        """Return a hash of the training and validation images."""
        return hash_images([self.task_images.train, self.task_images.validation])

    def _prepare(self, images: Images, seed: int) -> InputImages:
        exceeds_cache = images.pixels.nbytes * _BYTES_PER_FLOAT > _CACHE_BYTES
        prepared = self.preprocessing.prepare_lazily(images) if exceeds_cache else None
        if prepared is None:
            prepared = self.preprocessing.prepare(images, seed=seed)
        return InputImages(prepared, images.labels, images.source_indices)

    def _cached(self, name: str, make: Callable[[], InputImages]) -> InputImages:
        """Return images from the cache, or make them and cache them if there is space."""
        if name in self._cache:
            return self._cache[name]
        made = make()
        cached_bytes = sum(cached.images.nbytes for cached in self._cache.values())
        if cached_bytes + made.images.nbytes <= _CACHE_BYTES:
            self._cache[name] = made
        return made


def hash_images(parts: Iterable[Images]) -> str:
    """Return a hash of images and their labels."""
    digest = hashlib.sha256()
    for images in parts:
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
    """Load a task once per process, optionally with other sizes or another variation."""
    if variation is None:
        variation = TASKS[task].variation
    sizes = None if data is None else data.to_dict()
    return _load_task(json.dumps([task, folder, sizes, dict(variation)]))


@lru_cache(maxsize=1)
def _load_task(arguments: str) -> LoadedTask:
    """Load a task; the arguments are JSON, because the cache requires hashable ones."""
    task, folder, data, variation = json.loads(arguments)
    sizes = None if data is None else Sizes(**data)
    task_images = TASKS[task].load_images(Path(folder).expanduser() if folder else None, sizes)
    preprocessing = Preprocessing.from_training_images(task_images.train, make_variation(variation))
    return LoadedTask(task_images, preprocessing)


def select_exposures(
    parts: TaskImages, corruptions: Sequence[str], severities: Sequence[int]
) -> tuple[Exposure, ...]:
    """Return the exposures of a task, with the given corruptions and severities only."""
    return tuple(
        exposure
        for exposure in parts.exposures
        if not exposure.corruption
        or (exposure.corruption in corruptions and exposure.severity in severities)
    )
