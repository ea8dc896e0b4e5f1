"""`Budget`: what a benchmark would take, told before it is begun and without its data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from abstain_bench.runs.jobs import Job
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.specification.jobs import Specification
from abstain_bench.runs.tasks.counts import PictureCounts

__all__ = ["Budget", "BudgetRow", "NetworkSize", "budget_of"]


@dataclass(frozen=True)
class NetworkSize:
    """What a pass of a backbone over one image costs.

    Attributes
    ----------
    side : int
        Height and width of the image that was counted.
    products : int
        Multiplications with a weight, each with its addition.
    parameters : int
        Weights and biases.
    """

    side: int
    products: int
    parameters: int

    def at(self, side: int) -> float:
        """Return the products at another side: convolutions go with the area."""
        return self.products * (side / self.side) ** 2


#: By model, counted on the layers (`bench/tests/runs/test_budget.py`); attention included.
NETWORKS: Final[Mapping[str, NetworkSize]] = MappingProxyType(
    {
        "small-conv": NetworkSize(32, 2_506_752, 23_408),
        "tiny-conv": NetworkSize(32, 589_824, 4_776),
        "vgg13": NetworkSize(32, 228_524_032, 9_673_536),
        "vgg13-fd-shifts": NetworkSize(32, 228_261_888, 9_410_880),
        "street-conv": NetworkSize(32, 39_682_048, 1_336_992),
        "vgg16-bn": NetworkSize(32, 313_196_544, 14_723_136),
        "preresnet-20": NetworkSize(32, 40_812_544, 271_632),
        "preresnet-56": NetworkSize(32, 125_747_200, 854_928),
        "preresnet-110": NetworkSize(32, 253_149_184, 1_729_872),
        "preresnet-164": NetworkSize(32, 247_644_160, 1_700_688),
        "wrn-28-10": NetworkSize(32, 5_243_322_368, 36_472_784),
        "resnet50": NetworkSize(224, 4_087_136_256, 23_508_032),
        # 12 blocks of 577 tokens of 768 at 384 x 384.
        "vit-b16": NetworkSize(384, 55_483_582_464, 86_090_496),
    }
)

#: What a GPU keeps up, in 10^12 operations a second, unless it is said.
TERAFLOPS: Final = 10.0
#: Passes that a step of a descent costs: one forward, and twice as much back.
_STEP: Final = 3.0
#: A product and its addition; bytes of a weight, of an entry of a score, and of a class score.
_OPERATIONS: Final = 2
_WEIGHT: Final = 4
_ENTRY: Final = 8
#: Of each image beside the methods: label, place, two predictions.
_ALWAYS: Final = 4


@dataclass(frozen=True)
class BudgetRow:
    """What the jobs of one stage, and of one arm, would take.

    Attributes
    ----------
    stage : str
        "train", "validate" or "test".
    arm : str
        Of the networks.
    jobs : int
        How many, at most.
    passes : float
        Passes over a image; a step of a descent counts three for each of its images.
    hours : float or None
        On one GPU; None where it is not known what a pass costs.
    size : float
        Bytes of the files that they leave.
    """

    stage: str
    arm: str
    jobs: int
    passes: float
    hours: float | None
    size: float


@dataclass(frozen=True)
class Budget:
    """What a benchmark would take.

    Attributes
    ----------
    rows : tuple of BudgetRow
        By stage and arm. Tests are those of all settings: only what is chosen is tested, which is
        not known before.
    counts : PictureCounts
        The images it was worked out for.
    teraflops : float
        What the GPU is taken to keep up.
    memory : float
        Bytes that the images take in each process: those to learn from, and the largest
        exposure.
    """

    rows: tuple[BudgetRow, ...]
    counts: PictureCounts
    teraflops: float
    memory: float

    @property
    def jobs(self) -> int:
        """All jobs."""
        return sum(row.jobs for row in self.rows)

    @property
    def hours(self) -> float | None:
        """All hours; None where some are not known."""
        known = [row.hours for row in self.rows if row.hours is not None]
        return sum(known) if len(known) == len(self.rows) else None

    @property
    def size(self) -> float:
        """Bytes of all files."""
        return sum(row.size for row in self.rows)


def budget_of(config: Config, counts: PictureCounts, *, teraflops: float = TERAFLOPS) -> Budget:
    """Work out the jobs of a configuration, the hours on one GPU, and the files they leave.

    Answers: can I afford this benchmark?

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config
    >>> from abstain_bench.runs.specification.budget import budget_of
    >>> from abstain_bench.runs.tasks.counts import published_counts
    >>> config = default_config("cifar10", protocol="fd-shifts")
    >>> counts = published_counts("cifar10", config.data, config.corruptions, config.severities)
    >>> found = budget_of(config, counts)
    >>> sum(row.jobs for row in found.rows if row.stage == "train")
    70
    """
    spec = Specification(config, tuple(counts.exposures))
    # Only what is chosen is tested; nobody knows yet what that is.
    every = {(one.run.arm, one.run.setting) for one in (*spec.networks, *spec.ensembles)}
    both = (*spec.before_choice(), *spec.after_choice(every))
    jobs = {job.stem: job for job in both}.values()
    asked = _Costs(config, counts, teraflops)
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for job in jobs:
        rows.setdefault(_place(job), []).append(asked.of(job))
    listed = []
    for (stage, arm), own in rows.items():
        passes, size = (sum(column) for column in zip(*own, strict=True))
        listed.append(BudgetRow(stage, arm, len(own), passes, asked.hours(passes), size))
    order = ("train", "validate", "test")
    listed.sort(key=lambda row: order.index(row.stage))
    largest = max(counts.exposures.values(), default=0)
    memory = 3 * counts.side**2 * (counts.learned + largest)
    return Budget(tuple(listed), counts, teraflops, float(memory))


def _place(job: Job) -> tuple[str, str]:
    """Return the stage and the arm of a job."""
    name = job.name.removeprefix("ensemble-")
    stage = name.partition("-")[0]
    first = job if stage == "train" else job.needs[0]
    while first.needs and "objective" not in first.spec:
        first = first.needs[0]
    if name != job.name:
        return stage, "ensemble"
    return stage, str(first.spec["objective"])


class _Costs:
    """Works out passes and bytes, job by job; a warm-up that several share counts once."""

    def __init__(self, config: Config, counts: PictureCounts, teraflops: float) -> None:
        self.config, self.counts, self.teraflops = config, counts, teraflops
        self.network = NETWORKS.get(config.model)
        self.starts: set[str] = set()

    def of(self, job: Job) -> tuple[float, float]:
        """Return the passes of a job, and the bytes of its files."""
        if "objective" in job.spec:
            return self._trained(job)
        keys = job.spec.get("exposures")
        own = self.counts.chosen if keys is None else sum(self.counts.exposures.values())
        size = own * self._bytes(job.spec["methods"])
        if "samples" not in job.spec:
            # Networks together: nothing is passed through any of them again.
            return 0.0, size
        passes = own * (1 + job.spec["samples"])
        methods = [METHODS[name] for name in job.spec["methods"]]
        if any("train" in method.fitted_splits for method in methods):
            passes += self.counts.learned
        if keys is not None and any("validation" in method.fitted_splits for method in methods):
            passes += self.counts.chosen
        return passes * (2 if self._twin(job.needs[0].spec) else 1), size

    def hours(self, passes: float) -> float | None:
        """Return the hours that passes take on one GPU."""
        if self.network is None:
            return None
        own = dict(self.config.variation or {})
        side = self.config.side or own.get("side") or self.counts.side
        return passes * _OPERATIONS * self.network.at(side) / (self.teraflops * 1e12) / 3600

    def _trained(self, job: Job) -> tuple[float, float]:
        recipe, stages = Recipe(**job.spec["recipe"]), dict(job.spec.get("stages", {}))
        # Images of an epoch, or of a step where these are counted.
        each = recipe.batch_size if recipe.steps else self.counts.learned
        after = {"confidence": 1.0, "fine-tune": 1.0 + _STEP}
        if job.needs:
            passes = sum(after[name] * length * each for name, length in stages.items())
        else:
            passes = _STEP * each * recipe.length
            warm_up = _STEP * each * sum(stages.values())
            passes += 0.0 if job.start in self.starts else warm_up
            self.starts |= {job.start} - {""}
        parameters = 0 if self.network is None else self.network.parameters
        return passes, float(_WEIGHT * parameters * (2 if self._twin(job.spec) else 1))

    def _twin(self, spec: Mapping[str, Any]) -> bool:
        """Tell whether a network has a second backbone for its confidence."""
        return "fine-tune" in spec.get("stages", {})

    def _bytes(self, methods: Iterable[str]) -> float:
        """Return the bytes that the scores of one image take."""
        return _ENTRY * (_ALWAYS + len(list(methods))) + _WEIGHT * self.counts.classes
