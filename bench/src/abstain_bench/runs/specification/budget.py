"""`Budget` estimates the cost of a benchmark without running it and without its data."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from abstain_bench.runs.jobs import Job
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification.arms import ENSEMBLE
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.specification.jobs import Specification, stage_of
from abstain_bench.runs.tasks.counts import ImageCounts


@dataclass(frozen=True)
class NetworkSize:
    """Cost of one forward pass of a backbone on one image.

    Attributes
    ----------
    side : int
        Height and width of the images for which `products` was counted.
    products : int
        Number of multiply-add operations.
    parameters : int
        Number of weights and biases.
    """

    side: int
    products: int
    parameters: int

    def products_at(self, side: int) -> float:
        """Return the number of products for another image side, proportional to the area."""
        return self.products * (side / self.side) ** 2


#: Size of each model. The products include attention. `bench/tests/runs/test_budget.py` counts the
#: products and parameters of the layers.
NETWORK_SIZES: Final[Mapping[str, NetworkSize]] = MappingProxyType(
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
        # The model has 12 blocks. An image of 384 x 384 pixels has 577 tokens of width 768.
        "vit-b16": NetworkSize(384, 55_483_582_464, 86_090_496),
    }
)

#: Default throughput of a GPU, in 10^12 operations per second.
TERAFLOPS: Final = 10.0
#: Cost of an optimizer step as a number of forward passes. A step consists of a forward pass and a
#: backward pass, which costs as much as two forward passes.
_PASSES_PER_STEP: Final = 3.0
#: Number of operations per multiply-add.
_OPERATIONS_PER_PRODUCT: Final = 2
#: Size in bytes of a weight or a logit.
_WEIGHT_BYTES: Final = 4
#: Size in bytes of a confidence.
_SCORE_BYTES: Final = 8
#: Number of columns of a score file that are not confidences. These columns contain the label, the
#: source index and two predictions.
_N_OTHER_COLUMNS: Final = 4


@dataclass(frozen=True)
class BudgetRow:
    """Estimated cost of the jobs of one arm in one stage.

    Attributes
    ----------
    stage : str
        "train", "validate" or "test".
    arm : str
        Arm of the networks.
    jobs : int
        Maximum number of jobs.
    passes : float
        Number of forward passes of one image. An optimizer step is counted as three forward passes
        per image.
    hours : float or None
        Number of hours on one GPU, or None if the size of the model is unknown.
    size : float
        Size in bytes of the files that the jobs write.
    """

    stage: str
    arm: str
    jobs: int
    passes: float
    hours: float | None
    size: float


@dataclass(frozen=True)
class Budget:
    """The estimated cost of a benchmark.

    Attributes
    ----------
    rows : tuple of BudgetRow
        Estimated cost of each arm in each stage. The estimate includes test jobs for all settings,
        because the selected settings are not known in advance.
    counts : ImageCounts
        Numbers of images that the estimate assumes.
    teraflops : float
        Assumed throughput of the GPU, in 10^12 operations per second.
    memory : float
        Size in bytes of the training images and the largest exposure, which each process loads.
    """

    rows: tuple[BudgetRow, ...]
    counts: ImageCounts
    teraflops: float
    memory: float

    @property
    def jobs(self) -> int:
        """Total number of jobs."""
        return sum(row.jobs for row in self.rows)

    @property
    def hours(self) -> float | None:
        """Total number of GPU hours, or None if the GPU hours of a row are unknown."""
        hours = [row.hours for row in self.rows if row.hours is not None]
        return sum(hours) if len(hours) == len(self.rows) else None

    @property
    def size(self) -> float:
        """Total size of the files in bytes."""
        return sum(row.size for row in self.rows)


def budget_of(config: Config, counts: ImageCounts, *, teraflops: float = TERAFLOPS) -> Budget:
    """Estimate the number of jobs, the GPU hours and the size of the files.

    Examples
    --------
    >>> from abstain_bench.runs.specification import default_config
    >>> from abstain_bench.runs.specification.budget import budget_of
    >>> from abstain_bench.runs.tasks.counts import published_counts
    >>> config = default_config("cifar10", protocol="fd-shifts")
    >>> counts = published_counts("cifar10", config.data, config.corruptions, config.severities)
    >>> budget = budget_of(config, counts)
    >>> sum(row.jobs for row in budget.rows if row.stage == "train")
    70
    """
    spec = Specification(config, tuple(counts.exposures))
    # Validation data have not selected settings yet, so all settings have test jobs.
    settings = {(planned.run.arm, planned.run.setting) for planned in spec.all_runs}
    jobs = [*spec.jobs_before_selection(), *spec.test_jobs(settings)]
    unique_jobs = {job.stem: job for job in jobs}.values()
    costs = _JobCosts(config, counts, teraflops)
    costs_by_row: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for job in unique_jobs:
        stage_and_arm = _stage_and_arm(job)
        costs_by_row.setdefault(stage_and_arm, []).append(costs.passes_and_size(job))
    rows = []
    for (stage, arm), passes_and_sizes in costs_by_row.items():
        n_passes = sum(passes for passes, _ in passes_and_sizes)
        n_bytes = sum(size for _, size in passes_and_sizes)
        hours = costs.hours(n_passes)
        rows.append(BudgetRow(stage, arm, len(passes_and_sizes), n_passes, hours, n_bytes))
    order = ("train", "validate", "test")
    rows.sort(key=lambda row: order.index(row.stage))
    largest_exposure = max(counts.exposures.values(), default=0)
    memory = 3 * counts.side**2 * (counts.train + largest_exposure)
    return Budget(tuple(rows), counts, teraflops, float(memory))


def _stage_and_arm(job: Job) -> tuple[str, str]:
    """Return the stage and the arm of a job."""
    stage = stage_of(job)
    if job.name.startswith(ENSEMBLE):
        return stage, ENSEMBLE
    training = job if stage == "train" else job.needs[0]
    return stage, str(training.spec["objective"])


class _JobCosts:
    """Counts the passes and the file sizes of jobs.

    If several jobs share a warm-up, it is counted once.
    """

    def __init__(self, config: Config, counts: ImageCounts, teraflops: float) -> None:
        self.config = config
        self.counts = counts
        self.teraflops = teraflops
        self.network = NETWORK_SIZES.get(config.model)
        self.counted_warm_ups: set[str] = set()

    def passes_and_size(self, job: Job) -> tuple[float, float]:
        """Return the number of passes of a job and the size of its files in bytes."""
        if stage_of(job) == "train":
            return self._training_passes_and_size(job)
        is_test = "exposures" in job.spec
        n_images = sum(self.counts.exposures.values()) if is_test else self.counts.validation
        size = n_images * self._bytes_per_image(len(job.spec["methods"]))
        if job.name.startswith(ENSEMBLE):
            # An ensemble needs no passes, because the outputs of its networks are stored.
            return 0.0, size
        passes = n_images * (1 + job.spec["samples"])
        methods = [METHODS[name] for name in job.spec["methods"]]
        if any("train" in method.fitted_splits for method in methods):
            passes += self.counts.train
        if is_test and any("validation" in method.fitted_splits for method in methods):
            passes += self.counts.validation
        return passes * self._n_backbones(job.needs[0]), size

    def hours(self, passes: float) -> float | None:
        """Return the number of GPU hours, or None if the cost of the model is unknown."""
        if self.network is None:
            return None
        variation = self.config.variation or {}
        side = self.config.side or variation.get("side") or self.counts.side
        operations = passes * _OPERATIONS_PER_PRODUCT * self.network.products_at(side)
        return operations / (self.teraflops * 1e12) / 3600

    def _training_passes_and_size(self, job: Job) -> tuple[float, float]:
        """Return the number of passes of a training job and the size of its file in bytes."""
        recipe = Recipe(**job.spec["recipe"])
        stage_lengths = job.spec.get("stages", {})
        # Lengths are numbers of steps if the recipe defines steps, else numbers of epochs.
        images_per_unit = recipe.batch_size if recipe.steps else self.counts.train
        if job.needs:
            # Another job trains the classifier. The confidence stage does not train the backbone.
            passes_by_stage = {"confidence": 1.0, "fine-tune": 1.0 + _PASSES_PER_STEP}
            passes = 0.0
            for stage, length in stage_lengths.items():
                passes += passes_by_stage[stage] * length * images_per_unit
        else:
            passes = _PASSES_PER_STEP * images_per_unit * recipe.length
            if job.warm_up_file not in self.counted_warm_ups:
                passes += _PASSES_PER_STEP * images_per_unit * sum(stage_lengths.values())
            if job.warm_up_file:
                self.counted_warm_ups.add(job.warm_up_file)
        n_parameters = 0 if self.network is None else self.network.parameters
        return passes, float(_WEIGHT_BYTES * n_parameters * self._n_backbones(job))

    def _n_backbones(self, training: Job) -> int:
        """Return the number of backbones, which is 2 if the confidence has a separate backbone."""
        return 2 if "fine-tune" in training.spec.get("stages", {}) else 1

    def _bytes_per_image(self, n_methods: int) -> float:
        """Return the size in bytes that one image occupies in a score file."""
        n_columns = _N_OTHER_COLUMNS + n_methods
        return _SCORE_BYTES * n_columns + _WEIGHT_BYTES * self.counts.classes
