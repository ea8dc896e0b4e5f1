"""`train`: one network, one objective, one recipe; seeded, and resumed where it was stopped."""

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn, cast

import numpy as np

from abstain._foundation.archives import verify_archive
from abstain._foundation.files import write_atomically
from abstain.errors import FileFormatError, InputError
from abstain.training import Network, Objective
from abstain.typing import Array
from abstain_bench._torch import accelerators, torch
from abstain_bench.data import Images
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.training.inputs import Inputs
from abstain_bench.runs.training.precision import FullPrecision, Machine, precision_of
from abstain_bench.runs.training.rates import Rates


def save_state(state: dict[str, Any], path: Path) -> None:
    """Write tensors, numbers and texts to a file."""
    content = io.BytesIO()
    torch.save(state, content)
    write_atomically(path, content.getvalue())


def load_state(path: Path, device: str = "cpu") -> dict[str, Any]:
    """Read what `save_state` wrote; refuse everything else without running any of it."""
    try:
        verify_archive(path, "a file of torch")
        found = torch.load(path, map_location=device, weights_only=True)
    except (OSError, InputError):
        raise
    except Exception as error:  # a damaged archive raises anything
        raise FileFormatError(
            f"{str(path)!r} is no checkpoint or a damaged one; delete it to train anew"
        ) from error
    if not isinstance(found, dict):
        raise FileFormatError(f"{str(path)!r} holds no checkpoint; delete it to train anew")
    return found


#: torch may be absent when types are checked.
Tensor = Any

#: Images at a time.
_BLOCK = 500


def logits_of(network: Network, pictures: Tensor) -> Array:
    """Return the logits of images, computed in blocks without learning.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> from abstain_bench.networks import SmallConv
    >>> from abstain_bench.runs.training import logits_of
    >>> head = training.make("cross-entropy", rng=0).head(64, 10)
    >>> logits_of(training.Network(SmallConv(), head), torch.zeros(3, 1, 28, 28)).shape
    (3, 10)
    """
    network.eval()
    with torch.inference_mode():
        blocks = [network(block).logits.float().cpu() for block in pictures.split(_BLOCK)]
    out: Array = torch.cat(blocks).numpy()
    return out


#: Where training computes unless it is told.
_CPU = Machine()

#: Called after each epoch with its number, from 1, and the mean loss.
OnEpoch = Callable[[int, float], None]
#: Called after each step of the descent with the epochs that are done, such as 2.25.
OnStep = Callable[[float], None]


@dataclass(frozen=True)
class Saving:
    """Where the state of training is kept while it lasts.

    Attributes
    ----------
    path : Path
        The file; it is taken away when training is done.
    seconds : float
        At least that long between two savings.
    start : Path, optional
        The state at the end of the first phase, of a training that is the same as far as that.
        Who finds none leaves it there.

    Examples
    --------
    >>> from pathlib import Path
    >>> from abstain_bench.runs.training import Saving
    >>> Saving(Path("run.part")).seconds
    30.0
    """

    path: Path
    seconds: float = 30.0
    start: Path | None = None


def train(
    network: Network,
    images: Images,
    objective: Objective,
    recipe: Recipe,
    *,
    inputs: Inputs | None = None,
    seed: int = 0,
    machine: Machine = _CPU,
    saving: Saving | None = None,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    done: int = 0,
) -> list[float]:
    """Train a network on images.

    Notes
    -----
    Every epoch has its own seed, made of `seed` and its number, so that nothing but weights,
    momenta and the state of the objective need be kept. Each phase of the objective begins with
    fresh momenta. A phase with a `learning_rate` of its own is trained by Adam at that rate, and
    the schedule of the learning rate begins anew with it; the other phases share one schedule. The
    last batch of an epoch may be shorter than the others; none is left out.

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
    precision, recipe = precision_of(machine), recipe.with_epochs_for(images.n)
    data = _Data(images, inputs or Inputs.of(images), machine.device)
    run = _Run(network, objective, data, recipe, (seed, _before(done, recipe)), precision)
    losses = [] if saving is None else run.begun(saving)
    saved = monotonic()
    with torch.random.fork_rng(devices=accelerators(machine.device)):
        for epoch in range(done + len(losses), recipe.epochs):
            losses.append(run.epoch(epoch, on_step))
            if on_epoch is not None:
                on_epoch(epoch + 1, losses[-1])
            unfinished = epoch + 1 < recipe.epochs
            if saving and saving.start and unfinished and run.enters_second(epoch + 1):
                save_state(run.state(losses), saving.start)
            if saving and unfinished and monotonic() - saved >= saving.seconds:
                save_state(run.state(losses), saving.path)
                saved = monotonic()
    if saving is not None:
        saving.path.unlink(missing_ok=True)
    network.eval()
    objective.eval()
    return losses


def _before(done: Any, recipe: Recipe) -> int:
    """Validate the number of epochs that are done already."""
    if isinstance(done, bool) or not isinstance(done, int) or not 0 <= done < recipe.epochs:
        raise InputError(
            f"`done` must be a whole number from 0 to {recipe.epochs - 1}; got {done!r}"
        )
    return done


#: Bytes of images that are brought to the device whole.
_MOST = 1 << 33


class _Data:
    """The training images on their device, or on the host where they are too many."""

    def __init__(self, images: Images, inputs: Inputs, device: str) -> None:
        self.inputs, self.device = inputs, device
        self.pixels = torch.from_numpy(images.pixels)
        if images.pixels.nbytes <= _MOST:
            self.pixels = self.pixels.to(device)
        self.labels = torch.from_numpy(images.labels).to(device)

    def pictures(self, rows: Tensor) -> Tensor:
        """Return some as bytes on the device."""
        return self.pixels[rows.to(self.pixels.device)].to(self.device)


class _Run:
    """A training in progress."""

    def __init__(  # noqa: PLR0917  what `train` was given
        self,
        network: Network,
        objective: Objective,
        data: _Data,
        recipe: Recipe,
        start: tuple[int, int],
        precision: FullPrecision,
    ) -> None:
        # Moved to the device; called through it, the network computes in the precision asked for.
        self.precision, self.called = precision, precision.network(network)
        # Twice as fast on a CPU; the types of torch do not know it.
        cast("Any", network).to(memory_format=torch.channels_last)
        self.network = network
        self.objective = objective.to(data.device)
        self.data, self.recipe, (self.seed, self.done) = data, recipe, start
        self.plan = objective.plan(recipe.epochs)
        self.rates = Rates(self.plan, recipe, recipe.steps_per_epoch(len(data.labels)))
        self.descent: Any = None

    def epoch(self, number: int, on_step: OnStep | None = None) -> float:
        """Learn from every image once; return the mean loss."""
        if self.descent is None or self.plan[number] != self.plan[number - 1]:
            self._enter(number)
        seed, where = _mixed(self.seed, number), self.data.device
        torch.manual_seed(seed)  # for dropout; the caller restores the generator
        draws = torch.Generator(device=where).manual_seed(seed)
        order: Any = torch.randperm(len(self.data.labels), generator=draws, device=where)
        batches = order.split(self.recipe.batch_size)
        self.network.train()
        self.objective.train()
        if self.recipe.steps:
            # The last epoch may be cut short.
            batches = batches[: self.recipe.steps - number * len(batches)]
        total = torch.zeros((), dtype=torch.float64, device=where)
        for i, rows in enumerate(batches):
            for group in self.descent.param_groups:
                group["lr"] = self.rates.at(number, i)
            total += self._step(rows, draws).double() * len(rows)
            if on_step is not None:
                on_step(number + (i + 1) / len(batches))
        return self._finite(float(total) / sum(map(len, batches)), number)

    def _enter(self, number: int) -> None:
        """Start the phase of an epoch: what learns in it, with fresh momenta."""
        self.objective.enter(self.plan[number])
        self.network.enter(self.plan[number])
        learning, own = self.network.trained(), self.plan[number].learning_rate
        descent = torch.optim.SGD(
            learning,
            lr=self.recipe.learning_rate,
            momentum=self.recipe.momentum,
            weight_decay=self.recipe.weight_decay,
            nesterov=self.recipe.nesterov,
        )
        # A phase with a rate of its own has that of its authors, who use Adam for it.
        adapted = descent if own is None else torch.optim.Adam(learning, lr=own)
        self.descent = self.precision.optimizer(adapted)

    def _step(self, rows: Tensor, draws: Any) -> Tensor:
        self.descent.zero_grad(set_to_none=True)
        pictures = self.data.inputs.varied(self.data.pictures(rows), draws)
        loss = self.objective(self.called(pictures), self.data.labels[rows], index=rows)
        if not loss.requires_grad:
            raise InputError(
                "the loss has no gradient: with hard ranks the 0/1 loss has none; give `soft`"
            )
        self.precision.backward(loss)
        if self.recipe.clip:
            self.precision.clip(self.network, self.descent, self.recipe.clip)
        self.descent.step()
        return loss.detach()

    def _finite(self, mean: float, number: int) -> float:
        if math.isfinite(mean):
            return mean
        raise InputError(
            f"the loss became {mean} in epoch {number + 1} of {self.recipe.epochs}; lower "
            f"`learning_rate` (it is {self.recipe.learning_rate:g})"
        )

    def state(self, losses: list[float]) -> dict[str, Any]:
        """Return what `resumed` needs."""
        return {
            "seed": self.seed,
            "losses": losses,
            "network": self.network.state_dict(),
            "descent": self.descent.state_dict(),
            "objective": self.objective.state_dict(),
            "precision": self.precision.name,
            "scaling": self.precision.state(),
        }

    def enters_second(self, number: int) -> bool:
        """Tell whether the second phase begins with an epoch."""
        return number == self.plan.count(self.plan[0])

    def begun(self, saving: Saving) -> list[float]:
        """Take up what is saved of this training, or else where it begins like another."""
        losses = self.resumed(saving.path)
        return losses or ([] if saving.start is None else self.resumed(saving.start))

    def resumed(self, path: Path) -> list[float]:
        """Take up a saved state, if there is one; return the losses of its epochs."""
        if not path.is_file():
            return []
        try:
            found = load_state(path, self.data.device)
        except FileNotFoundError:
            # Another run in the same folder has just finished this training.
            return []
        try:
            losses = [float(loss) for loss in found["losses"]]
            if (
                found["seed"] != self.seed
                or not self.recipe.epochs > self.done + len(losses) > self.done
            ):
                _refuse_other(path)
            if found.get("precision", FullPrecision.name) != self.precision.name:
                _refuse_other(path)
            self.network.load_state_dict(found["network"])
            self._enter(self.done + len(losses) - 1)
            self.descent.load_state_dict(found["descent"])
            self.objective.load_state_dict(found["objective"])
            self.precision.resume(found.get("scaling", {}))
        except (KeyError, RuntimeError, ValueError):
            _refuse_other(path)
        return losses


def _refuse_other(path: Path) -> NoReturn:
    raise FileFormatError(
        f"{str(path)!r} is the state of another training; delete it to train anew"
    ) from None


def _mixed(seed: int, epoch: int) -> int:
    """Mix the seed with the number of the epoch, so that neighbors have nothing in common."""
    return int(np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0] >> 1)
