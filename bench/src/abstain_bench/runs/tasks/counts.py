"""How many images the parts of a published task have, known without its files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from abstain_bench.runs.tasks._entry import OFFICIAL, TASKS, Sizes

__all__ = ["ImageCounts", "counts_of", "published_counts"]


@dataclass(frozen=True)
class ImageCounts:
    """Pictures of a task.

    Attributes
    ----------
    learned, chosen : int
        To learn from, and to choose on.
    exposures : mapping from str to int
        Of each exposure.
    side : int
        Height and width at which they are kept.
    classes : int
        That are learned.
    """

    train: int
    validation: int
    exposures: Mapping[str, int]
    side: int
    classes: int


@dataclass(frozen=True)
class _Official:
    """What the authors of a data set say of it: test images with those to choose on."""

    learned: int
    tested: int
    classes: int
    side: int = 0
    shifted: Mapping[str, int] = field(default_factory=dict)
    new: Mapping[str, int] = field(default_factory=dict)
    #: Images of each corruption and severity: official ones, or our own; 0 for none.
    corrupted: int = 0
    #: Images to choose on that are a part of their own.
    chosen: int = 0
    official: bool = False


_NEW: Final = {"cifar10": 10_000, "cifar100": 10_000, "svhn": 26_032, "tiny-imagenet": 10_000}
_FEW: Final = 1000


def _without(name: str) -> dict[str, int]:
    return {other: count for other, count in _NEW.items() if other != name}


#: Of ten digits six are kept, of 182 animals 109: about that share of the images.
_KEPT: Final = 0.6
_SVHN: Final = _Official(73_257, 26_032, 10, 32, new=_without("svhn"))
_IWILDCAM: Final = _Official(129_809, 8_154, 182, shifted={"other-locations": 42_791}, chosen=7_314)


def _open(whole: _Official) -> _Official:
    kept = round(_KEPT * whole.tested)
    return _Official(
        round(_KEPT * whole.learned),
        kept,
        round(_KEPT * whole.classes),
        whole.side,
        new={"held-out-classes": whole.tested - kept},
        chosen=round(_KEPT * whole.chosen),
    )


#: By task; those of files have no side of their own.
_COUNTS: Final[Mapping[str, _Official]] = MappingProxyType(
    {
        "cifar10": _Official(
            50_000, 10_000, 10, 32, new=_without("cifar10"), corrupted=10_000, official=True
        ),
        "cifar100": _Official(
            50_000, 10_000, 100, 32, new=_without("cifar100"), corrupted=10_000, official=True
        ),
        "cifar100-super": _Official(38_000, 7_600, 19, 32, {"unseen-sub-classes": 11_400}),
        "svhn": _SVHN,
        **{f"svhn-open-{i}": _open(_SVHN) for i in range(1, 6)},
        "tiny-imagenet": _Official(100_000, 10_000, 200, 32, new={"svhn": 26_032}, corrupted=_FEW),
        "mnist": _Official(
            60_000,
            10_000,
            10,
            28,
            new={"emnist": 20_800, "fashion-mnist": 10_000},
            corrupted=_FEW,
        ),
        "fashion-mnist": _Official(
            60_000, 10_000, 10, 28, new={"mnist": 10_000, "emnist": 20_800}, corrupted=_FEW
        ),
        "entity13": _Official(157_120, 10_000, 13, shifted={"unseen-sub-classes": 167_592}),
        "iwildcam": _IWILDCAM,
        **{f"iwildcam-open-{i}": _open(_IWILDCAM) for i in range(1, 6)},
        "camelyon17": _Official(
            302_436, 30_204, 2, shifted={"other-hospital": 85_054}, chosen=3_356
        ),
    }
)


def published_counts(
    task: str, data: Sizes | None, corruptions: Sequence[str], severities: Sequence[int]
) -> ImageCounts | None:
    """Return the images of a task whose files are the official ones.

    Answers: how much is there to learn from and to be tested on, before anything is fetched?

    Examples
    --------
    >>> from abstain_bench.runs.tasks.counts import published_counts
    >>> found = published_counts("cifar10", None, ["fog"], [1, 2])
    >>> found.learned, found.exposures["iid"], found.exposures["corruption-fog-2"]
    (50000, 9000, 9000)
    """
    if task not in _COUNTS:
        return None
    own, sizes = _COUNTS[task], data or OFFICIAL
    files = not own.side
    chosen, tested = _parts(own, sizes)
    exposures = {"iid": min(tested, sizes.tested or tested) if files else tested}
    if own.corrupted:
        each = own.corrupted
        if own.official:
            each = {"tested": tested, "all": own.tested, "tenth": own.tested // 10}[sizes.corrupted]
        exposures |= {f"corruption-{c}-{s}": each for c in corruptions for s in severities}
    for name, count in {**own.shifted, **own.new}.items():
        exposures[name] = min(count, sizes.tested or count) if files else count
    learned = min(own.learned, sizes.learned or own.learned) if files else own.learned
    return ImageCounts(learned, chosen, exposures, own.side or sizes.side, own.classes)


def counts_of(
    task: str,
    folder: Path | None,
    data: Sizes | None,
    corruptions: Sequence[str],
    severities: Sequence[int],
) -> ImageCounts:
    """Count the images of a task whose numbers nobody published, by reading them.

    Examples
    --------
    >>> from abstain_bench.runs.tasks.counts import counts_of
    >>> counts_of("digits8", None, None, ["fog"], [1]).exposures["iid"]
    597
    """
    parts = TASKS[task].parts(folder, data)
    exposures, read = {}, dict[Any, int]()
    for one in parts.exposures:
        if one.corruption and not (one.corruption in corruptions and one.severity in severities):
            continue
        # Corruptions of the same images are read once.
        if one.load not in read:
            read[one.load] = one.load().n
        exposures[one.key] = read[one.load]
    side = int(TASKS[task].variation.get("side", 0)) or parts.train.shape[1]
    return ImageCounts(parts.train.n, parts.validation.n, exposures, side, len(parts.train.classes))


def _parts(own: _Official, sizes: Sizes) -> tuple[int, int]:
    """Return how many are there to choose on, and how many are tested."""
    wanted = sizes.validation
    if own.chosen and sizes.chosen == "official":
        return min(own.chosen, wanted), own.tested
    # Those of Camelyon17 are of one part, in which the test images are a share.
    joined = own.tested + (own.chosen if own.classes == 2 else 0)
    return wanted, joined - wanted
