"""`train` trains one network with a seed and resumes after an interruption.

Networks are trained in float32 or, with lightning-fabric, in mixed precision.
"""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn, cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.archives import verify_archive
from abstain._foundation.files import write_atomically
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.training import Network, Objective, Phase
from abstain.typing import Array
from abstain_bench._torch import accelerators, torch
from abstain_bench.data import Images
from abstain_bench.runs.jobs.engine import check_devices_available
from abstain_bench.runs.recipe import PRECISIONS, Recipe
from abstain_bench.runs.training.inputs import Preprocessing


@dataclass(frozen=True)
class Machine:
    """Device and precision of a training.

    Attributes
    ----------
    device : str
        Name of the device in torch.
    precision : str
        Name in `PRECISIONS`. "bf16-mixed" and "16-mixed" run the network in 16 bits. Weights and
        losses remain in float32. "16-mixed" scales the gradients and requires an accelerator.
    """

    device: str = "cpu"
    precision: str = "32-true"


class FullPrecision:
    """Training in float32 on one device."""

    name = "32-true"

    def __init__(self, device: str) -> None:
        self.device = device

    def setup_network(self, network: Any) -> Any:
        """Move a network to the device, and return the function that computes its outputs."""
        return network.to(self.device)

    def setup_optimizer(self, optimizer: Any) -> Any:
        """Return the object that performs optimizer steps."""
        return optimizer

    def backward(self, loss: Any) -> None:
        """Compute the gradients of a loss, and add them to the stored gradients."""
        loss.backward()

    def clip(self, network: Any, optimizer: Any, max_norm: float) -> None:  # noqa: ARG002
        """Scale the gradients such that their norm is at most `max_norm`."""
        torch.nn.utils.clip_grad_norm_(network.parameters(), max_norm)

    def state(self) -> dict[str, Any]:
        """Return the state that a checkpoint must contain to resume with this precision."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the values from a checkpoint."""


class MixedPrecision(FullPrecision):
    """Training in mixed precision, in which `Fabric` casts tensors and scales gradients."""

    def __init__(self, fabric: Any) -> None:
        self.fabric = fabric
        self.mixed_precision = fabric.strategy.precision
        self.name = self.mixed_precision.precision

    def setup_network(self, network: Any) -> Any:
        """Move a network to the device, and return the function that computes in 16 bits."""
        return self.fabric.setup_module(network)

    def setup_optimizer(self, optimizer: Any) -> Any:
        """Return an object that performs optimizer steps, except if gradients overflow."""
        return self.fabric.setup_optimizers(optimizer)

    def backward(self, loss: Any) -> None:
        """Compute the gradients of the scaled loss, and add them to the stored gradients."""
        self.fabric.backward(loss)

    def clip(self, network: Any, optimizer: Any, max_norm: float) -> None:
        """Undo the scaling of the gradients, and limit their norm to `max_norm`."""
        self.fabric.clip_gradients(network, optimizer, max_norm=max_norm, error_if_nonfinite=False)

    def state(self) -> dict[str, Any]:
        """Return the scale of the loss."""
        return dict(self.mixed_precision.state_dict())

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the scale of the loss."""
        self.mixed_precision.load_state_dict(state)


def make_precision(machine: Machine) -> FullPrecision:
    """Return the precision of a training.

    Raises InputError if the device or the precision does not exist, or if the device does not
    support the precision.
    """
    device = machine.device
    precision = machine.precision
    checks.one_of(precision, "precision", PRECISIONS)
    check_devices_available([device])
    if precision == FullPrecision.name:
        return FullPrecision(device)
    if precision == "16-mixed" and torch.device(device).type == "cpu":
        raise InputError("`precision` '16-mixed' needs an accelerator; on the CPU use 'bf16-mixed'")
    return MixedPrecision(make_fabric(machine))


def make_fabric(machine: Machine) -> Any:
    """Return a `Fabric` that casts tensors and scales gradients on one device."""
    device = torch.device(machine.device)
    try:
        # This import takes seconds, because it loads a thousand modules.
        from lightning_fabric import Fabric
        from lightning_fabric.plugins import MixedPrecision as FabricMixedPrecision
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment
        from lightning_fabric.strategies.single_device import SingleDeviceStrategy
    except ModuleNotFoundError as error:
        if error.name != "lightning_fabric":
            raise
        raise MissingInputError(
            f"`precision` {machine.precision!r} needs lightning-fabric: "
            "pip install lightning-fabric"
        ) from None
    mixed_precision = FabricMixedPrecision(cast("Any", machine.precision), device.type)
    # With names instead of objects as arguments, `Fabric` would print messages, read environment
    # variables, and look for SLURM and MPI.
    return Fabric(
        accelerator=device.type,
        devices=1,
        strategy=SingleDeviceStrategy(device, precision=mixed_precision),
        plugins=[LightningEnvironment()],
    )


@dataclass(frozen=True)
class LearningRates:
    """Learning rate of each optimizer step.

    Consecutive phases with equal `learning_rate` form one schedule. A phase without `learning_rate`
    uses the schedule of the recipe; other phases use `Recipe.stage_schedule`.

    Attributes
    ----------
    plan : sequence of Phase
        Phase of each epoch.
    recipe : Recipe
        Recipe of the training.
    steps_per_epoch : int
        Number of steps per epoch.

    Examples
    --------
    >>> from abstain_bench.runs.recipe import Recipe
    >>> from abstain_bench.runs.training.loop import LearningRates
    >>> from abstain.training import Phase
    >>> recipe = Recipe(epochs=2, learning_rate=0.1, schedule="constant", warm_up_steps=4)
    >>> rates = LearningRates([Phase("train", ("backbone",))] * 2, recipe, steps_per_epoch=3)
    >>> [round(rates.rate_at(0, step), 3) for step in range(3)]
    [0.025, 0.05, 0.075]
    """

    plan: Sequence[Phase]
    recipe: Recipe
    steps_per_epoch: int

    def rate_at(self, epoch: int, step: int) -> float:
        """Return the learning rate of a step in an epoch, both counted from 0."""
        phase_rate = self.plan[epoch].learning_rate
        first_epoch, end_epoch = self._schedule_bounds(epoch)
        n_epochs = end_epoch - first_epoch
        first_step = first_epoch * self.steps_per_epoch
        end_step = end_epoch * self.steps_per_epoch
        if self.recipe.steps:
            end_step = min(end_step, self.recipe.steps)
        n_steps = end_step - first_step
        n_done = epoch * self.steps_per_epoch + step - first_step
        if phase_rate is not None:
            # Phases with a separate learning rate have no warm-up.
            schedule = self.recipe.stage_schedule
            recipe = self.recipe if schedule == "same" else replace(self.recipe, schedule=schedule)
            rate = recipe.learning_rate_at(n_done / max(n_steps, 1), n_epochs)
            return phase_rate * rate / self.recipe.learning_rate
        n_warm_up = min(self.recipe.warm_up_steps, n_steps)
        if n_done < n_warm_up:
            return self.recipe.learning_rate * (n_done + 1) / n_warm_up
        progress = (n_done - n_warm_up) / max(n_steps - n_warm_up, 1)
        return self.recipe.learning_rate_at(progress, n_epochs)

    def _schedule_bounds(self, epoch: int) -> tuple[int, int]:
        """Return the first and the end epoch of the schedule to which `epoch` belongs."""
        phase_rate = self.plan[epoch].learning_rate
        first_epoch = epoch
        while first_epoch > 0 and self.plan[first_epoch - 1].learning_rate == phase_rate:
            first_epoch -= 1
        end_epoch = epoch + 1
        while end_epoch < len(self.plan) and self.plan[end_epoch].learning_rate == phase_rate:
            end_epoch += 1
        return first_epoch, end_epoch


def save_state(state: dict[str, Any], path: Path) -> None:
    """Write tensors, numbers and strings to a file atomically."""
    content = io.BytesIO()
    torch.save(state, content)
    write_atomically(path, content.getvalue())


def load_state(path: Path, device: str = "cpu") -> dict[str, Any]:
    """Read a file that `save_state` wrote, without executing any code in it."""
    try:
        verify_archive(path, "a file of torch")
        state = torch.load(path, map_location=device, weights_only=True)
    except (OSError, InputError):
        raise
    except Exception as error:  # a damaged archive can raise any error
        raise FileFormatError(
            f"{str(path)!r} is no checkpoint or a damaged one; delete it to train again"
        ) from error
    if not isinstance(state, dict):
        raise FileFormatError(f"{str(path)!r} holds no checkpoint; delete it to train again")
    return state


#: torch may be absent when types are checked.
Tensor = Any

#: Number of images per block.
_BLOCK = 500


def compute_logits(network: Network, images: Tensor) -> Array:
    """Compute the logits of images in blocks, without gradients.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> from abstain_bench.networks import SmallConv
    >>> from abstain_bench.runs.training import compute_logits
    >>> head = training.make("cross-entropy", rng=0).head(64, 10)
    >>> compute_logits(training.Network(SmallConv(), head), torch.zeros(3, 1, 28, 28)).shape
    (3, 10)
    """
    network.eval()
    with torch.inference_mode():
        blocks = [network(block).logits.float().cpu() for block in images.split(_BLOCK)]
    logits: Array = torch.cat(blocks).numpy()
    return logits


#: Default device and precision.
_CPU = Machine()

#: Callback that is called after each epoch. Its arguments are the number of the epoch, counted from
#: 1, and the mean loss.
OnEpoch = Callable[[int, float], None]
#: Callback that is called after each step. Its argument is the number of finished epochs, such as
#: 2.25.
OnStep = Callable[[float], None]


@dataclass(frozen=True)
class Checkpointing:
    """Files from which a training resumes.

    Attributes
    ----------
    path : Path
        Path of the checkpoint, which is deleted when the training is complete.
    seconds : float
        Minimum number of seconds between two checkpoints.
    warm_up_path : Path, optional
        Path of a file with the state at the end of the first phase, which several trainings share.
        The file is written by the first training that needs it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from abstain_bench.runs.training import Checkpointing
    >>> Checkpointing(Path("run.part")).seconds
    30.0
    """

    path: Path
    seconds: float = 30.0
    warm_up_path: Path | None = None


def train(
    network: Network,
    images: Images,
    objective: Objective,
    recipe: Recipe,
    *,
    preprocessing: Preprocessing | None = None,
    seed: int = 0,
    machine: Machine = _CPU,
    checkpointing: Checkpointing | None = None,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    n_epochs_done: int = 0,
) -> list[float]:
    """Train a network on images, and return the mean loss of every epoch.

    Notes
    -----
    The random numbers of each epoch depend only on `seed` and the index of the epoch. Checkpoints
    therefore contain no random state. Checkpoints contain the weights and the states of the
    optimizer and the objective.

    A new optimizer is created for each phase of the objective. If a phase has a `learning_rate`, it
    uses Adam with a separate schedule. All other phases use stochastic gradient descent with a
    common schedule. The last batch of an epoch may be smaller than the others.

    `n_epochs_done` is the number of epochs that another job has already trained the network.

    Examples
    --------
    >>> from abstain import training
    >>> from abstain_bench.data import digits8
    >>> from abstain_bench.networks import SmallConv
    >>> from abstain_bench.runs.training import Recipe, train
    >>> objective = training.make("cross-entropy", rng=0)
    >>> network = training.Network(SmallConv(), objective.head(64, 10))
    >>> losses = train(network, digits8(), objective, Recipe(epochs=2, learning_rate=0.1))
    >>> losses[1] < losses[0]
    True
    """
    precision = make_precision(machine)
    full_recipe = recipe.with_epochs_for(images.n)
    if preprocessing is None:
        preprocessing = Preprocessing.from_training_images(images)
    data = _TrainingImages(images, preprocessing, machine.device)
    _check_n_epochs_done(n_epochs_done, full_recipe)
    run = _TrainingRun(
        network, objective, data, full_recipe, precision, seed=seed, n_epochs_done=n_epochs_done
    )
    losses = [] if checkpointing is None else run.resume_or_load_warm_up(checkpointing)
    last_save_time = monotonic()
    with torch.random.fork_rng(devices=accelerators(machine.device)):
        for epoch in range(n_epochs_done + len(losses), full_recipe.epochs):
            losses.append(run.train_epoch(epoch, on_step))
            if on_epoch is not None:
                on_epoch(epoch + 1, losses[-1])
            if checkpointing is None or epoch + 1 == full_recipe.epochs:
                continue
            if checkpointing.warm_up_path and run.starts_second_phase(epoch + 1):
                save_state(run.state(losses), checkpointing.warm_up_path)
            if monotonic() - last_save_time >= checkpointing.seconds:
                save_state(run.state(losses), checkpointing.path)
                last_save_time = monotonic()
    if checkpointing is not None:
        checkpointing.path.unlink(missing_ok=True)
    network.eval()
    objective.eval()
    return losses


def _check_n_epochs_done(n_epochs: Any, recipe: Recipe) -> None:
    is_int = isinstance(n_epochs, int) and not isinstance(n_epochs, bool)
    if not is_int or not 0 <= n_epochs < recipe.epochs:
        raise InputError(
            "`n_epochs_done` must be a whole number from 0 to "
            f"{recipe.epochs - 1}; got {n_epochs!r}"
        )


#: Maximum number of bytes of images that are moved to the device together.
_MAX_DEVICE_BYTES = 1 << 33


class _TrainingImages:
    """The training images on the device, or in CPU memory if they are too large."""

    def __init__(self, images: Images, preprocessing: Preprocessing, device: str) -> None:
        self.preprocessing = preprocessing
        self.device = device
        self.pixels = torch.from_numpy(images.pixels)
        if images.pixels.nbytes <= _MAX_DEVICE_BYTES:
            self.pixels = self.pixels.to(device)
        self.labels = torch.from_numpy(images.labels).to(device)

    def batch(self, indices: Tensor) -> Tensor:
        """Return the images with the given indices as uint8 tensors on the device."""
        return self.pixels[indices.to(self.pixels.device)].to(self.device)


class _TrainingRun:
    """A running training and its state."""

    def __init__(
        self,
        network: Network,
        objective: Objective,
        data: _TrainingImages,
        recipe: Recipe,
        precision: FullPrecision,
        *,
        seed: int,
        n_epochs_done: int,
    ) -> None:
        self.precision = precision
        # `forward` runs the network in the requested precision.
        self.forward = precision.setup_network(network)
        # With this memory format, convolutions are twice as fast on a CPU. The type stubs of torch
        # do not contain the argument.
        cast("Any", network).to(memory_format=torch.channels_last)
        self.network = network
        self.objective = objective.to(data.device)
        self.data = data
        self.recipe = recipe
        self.seed = seed
        self.n_epochs_done = n_epochs_done
        self.plan = objective.plan(recipe.epochs)
        n_steps = recipe.steps_per_epoch(len(data.labels))
        self.learning_rates = LearningRates(self.plan, recipe, n_steps)
        self.optimizer: Any = None

    def train_epoch(self, epoch: int, on_step: OnStep | None = None) -> float:
        """Train for one epoch, and return the mean loss."""
        if self.optimizer is None or self.plan[epoch] != self.plan[epoch - 1]:
            self._start_phase(epoch)
        seed = _epoch_seed(self.seed, epoch)
        device = self.data.device
        # Dropout uses the global generator, which the caller restores.
        torch.manual_seed(seed)
        generator = torch.Generator(device=device).manual_seed(seed)
        batches = self._random_batches(epoch, generator)
        self.network.train()
        self.objective.train()
        total_loss = torch.zeros((), dtype=torch.float64, device=device)
        for i, batch in enumerate(batches):
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rates.rate_at(epoch, i)
            batch_loss = self._step(batch, generator)
            total_loss += batch_loss.double() * len(batch)
            if on_step is not None:
                on_step(epoch + (i + 1) / len(batches))
        mean_loss = float(total_loss) / sum(map(len, batches))
        if not math.isfinite(mean_loss):
            raise InputError(
                f"the loss became {mean_loss} in epoch {epoch + 1} of {self.recipe.epochs}; lower "
                f"`learning_rate` (it is {self.recipe.learning_rate:g})"
            )
        return mean_loss

    def _random_batches(self, epoch: int, generator: Any) -> Sequence[Tensor]:
        """Return the image indices of each batch of an epoch, in random order."""
        n_images = len(self.data.labels)
        order: Any = torch.randperm(n_images, generator=generator, device=self.data.device)
        batches: Sequence[Tensor] = order.split(self.recipe.batch_size)
        if not self.recipe.steps:
            return batches
        # The last epoch may be incomplete.
        n_remaining_steps = self.recipe.steps - epoch * len(batches)
        return batches[:n_remaining_steps]

    def _start_phase(self, epoch: int) -> None:
        """Prepare the phase to which an epoch belongs: trainable parameters and a new optimizer."""
        phase = self.plan[epoch]
        self.objective.enter(phase)
        self.network.enter(phase)
        parameters = self.network.trained()
        optimizer: Any
        if phase.learning_rate is None:
            optimizer = torch.optim.SGD(
                parameters,
                lr=self.recipe.learning_rate,
                momentum=self.recipe.momentum,
                weight_decay=self.recipe.weight_decay,
                nesterov=self.recipe.nesterov,
            )
        else:
            # Phases with a separate learning rate use Adam, as in the papers.
            optimizer = torch.optim.Adam(parameters, lr=phase.learning_rate)
        self.optimizer = self.precision.setup_optimizer(optimizer)

    def _step(self, batch: Tensor, generator: Any) -> Tensor:
        """Perform one optimizer step on a batch, and return its mean loss."""
        self.optimizer.zero_grad(set_to_none=True)
        images = self.data.preprocessing.augment(self.data.batch(batch), generator)
        loss = self.objective(self.forward(images), self.data.labels[batch], index=batch)
        if not loss.requires_grad:
            raise InputError(
                "the loss has no gradient: with hard ranks the 0/1 loss has none; set `soft`"
            )
        self.precision.backward(loss)
        if self.recipe.clip:
            self.precision.clip(self.network, self.optimizer, self.recipe.clip)
        self.optimizer.step()
        return loss.detach()

    def state(self, losses: list[float]) -> dict[str, Any]:
        """Return the state that a checkpoint stores and that `resume` loads."""
        return {
            "seed": self.seed,
            "losses": losses,
            "network": self.network.state_dict(),
            "descent": self.optimizer.state_dict(),
            "objective": self.objective.state_dict(),
            "precision": self.precision.name,
            "scaling": self.precision.state(),
        }

    def starts_second_phase(self, epoch: int) -> bool:
        """Return whether an epoch is the first of the second phase."""
        return epoch == self.plan.count(self.plan[0])

    def resume_or_load_warm_up(self, checkpointing: Checkpointing) -> list[float]:
        """Load a checkpoint or the shared warm-up, and return the mean losses of its epochs."""
        losses = self.resume(checkpointing.path)
        if not losses and checkpointing.warm_up_path is not None:
            losses = self.resume(checkpointing.warm_up_path)
        return losses

    def resume(self, path: Path) -> list[float]:
        """Load a checkpoint if it exists, and return the mean losses of its epochs."""
        if not path.is_file():
            return []
        try:
            state = load_state(path, self.data.device)
        except FileNotFoundError:
            # Another process has just finished the training and deleted its file.
            return []
        try:
            losses = [float(loss) for loss in state["losses"]]
            next_epoch = self.n_epochs_done + len(losses)
            is_valid_epoch = self.n_epochs_done < next_epoch < self.recipe.epochs
            # Checkpoints of the first version do not contain the precision.
            precision = state.get("precision", FullPrecision.name)
            if state["seed"] != self.seed or not is_valid_epoch or precision != self.precision.name:
                _raise_wrong_checkpoint(path)
            self.network.load_state_dict(state["network"])
            self._start_phase(next_epoch - 1)
            self.optimizer.load_state_dict(state["descent"])
            self.objective.load_state_dict(state["objective"])
            self.precision.load_state(state.get("scaling", {}))
        except (KeyError, RuntimeError, ValueError):
            _raise_wrong_checkpoint(path)
        return losses


def _raise_wrong_checkpoint(path: Path) -> NoReturn:
    raise FileFormatError(
        f"{str(path)!r} is a checkpoint of another training; delete it to train again"
    ) from None


def _epoch_seed(seed: int, epoch: int) -> int:
    """Derive the seed of an epoch from the training seed."""
    return int(np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0] >> 1)
