"""`LoadedTask`: the images of a task in one process, as its networks see them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from abstain.typing import IntArray
from abstain_bench.data import Exposure, Images
from abstain_bench.runs.tasks import TASKS, Parts, Sizes
from abstain_bench.runs.training import Inputs
from abstain_bench.runs.training.variations import variation_of

__all__ = ["EXPOSED_SEED", "InputPictures", "LoadedTask", "exposures_of", "loaded"]

#: torch may be absent when types are checked.
Tensor = Any

#: Of the variations and corruptions of what is tested, the same for all networks.
EXPOSED_SEED: Final = 0
#: Of the validation images, and of the training images when scores are fitted on them.
_VALIDATION_SEED: Final = 1
_TRAIN_SEED: Final = 2

#: Bytes of images that a process keeps for the next network.
_KEPT: Final = 1 << 30
#: Bytes of a number that a network sees, for each byte of an image.
_FLOAT: Final = 4
#: Images at a time that a hash is taken of.
_BLOCK: Final = 5000


@dataclass(frozen=True)
class InputPictures:
    """Pictures as a network sees them, on the host, with class and place in the source of each."""

    pictures: Tensor
    labels: IntArray
    places: IntArray


@dataclass(frozen=True, eq=False)
class LoadedTask:
    """The images of a task, loaded once a process, and how a network sees them."""

    parts: Parts
    inputs: Inputs
    _kept: dict[str, InputPictures] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of what a network sees."""
        channels, height, width = self.validation.pictures.shape[1:]
        return channels, height, width

    @property
    def train(self) -> InputPictures:
        """The training images, as scores are fitted on them: varied once."""
        return self._once("train", lambda: self._fixed(self.parts.train, _TRAIN_SEED))

    @property
    def validation(self) -> InputPictures:
        """The validation images."""
        return self._once(
            "validation", lambda: self._fixed(self.parts.validation, _VALIDATION_SEED)
        )

    def exposed(self, exposure: Exposure) -> InputPictures:
        """Return what is tested of one exposure."""

        def read() -> InputPictures:
            images = exposure.load()
            if exposure.ready or not exposure.corruption:
                return self._fixed(images, EXPOSED_SEED)
            # They may come from a large file, and are read once.
            pictures = self.inputs.exposed(exposure, seed=EXPOSED_SEED, images=images)
            return InputPictures(pictures, images.labels, images.places)

        return self._once(f"exposure {exposure.key}", read)

    def digest(self) -> str:
        """Return a hash of the images that are learned from and chosen on."""
        return digest_of([self.parts.train, self.parts.validation])

    def _fixed(self, images: Images, seed: int) -> InputPictures:
        large = images.pixels.nbytes * _FLOAT > _KEPT
        pictures = self.inputs.lazily(images) if large else None
        if pictures is None:
            pictures = self.inputs.fixed(images, seed=seed)
        return InputPictures(pictures, images.labels, images.places)

    def _once(self, name: str, make: Callable[[], InputPictures]) -> InputPictures:
        """Keep images for the next network, unless they are too many."""
        if name in self._kept:
            return self._kept[name]
        found = make()
        held = sum(seen.pictures.nbytes for seen in self._kept.values())
        if held + found.pictures.nbytes <= _KEPT:
            self._kept[name] = found
        return found


def digest_of(parts: Iterable[Images]) -> str:
    """Return a hash of images and their labels."""
    told = hashlib.sha256()
    for part in parts:
        for start in range(0, part.n, _BLOCK):
            told.update(part.pixels[start : start + _BLOCK].tobytes())
        told.update(part.labels.tobytes())
    return told.hexdigest()


def loaded(
    task: str,
    folder: str,
    data: Sizes | None = None,
    variation: Mapping[str, Any] | None = None,
) -> LoadedTask:
    """Load a task, once a process: as its entry says, or with other sizes or another variation."""
    changed = TASKS[task].variation if variation is None else variation
    said = None if data is None else data.to_dict()
    return _loaded(json.dumps([task, folder, said, dict(changed)]))


@lru_cache(maxsize=1)
def _loaded(asked: str) -> LoadedTask:
    task, folder, said, changed = json.loads(asked)
    sizes = None if said is None else Sizes(**said)
    parts = TASKS[task].parts(Path(folder).expanduser() if folder else None, sizes)
    return LoadedTask(parts, Inputs.of(parts.train, variation_of(changed)))


def exposures_of(
    parts: Parts, corruptions: Sequence[str], severities: Sequence[int]
) -> tuple[Exposure, ...]:
    """Return the exposures of a task, of the corruption shift only those asked for."""
    return tuple(
        exposure
        for exposure in parts.exposures
        if not exposure.corruption
        or (exposure.corruption in corruptions and exposure.severity in severities)
    )
