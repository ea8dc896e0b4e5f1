"""Define the interface between a training loop and an objective.

An objective provides five parts to a training loop:

1. A head: ``objective.head(width, classes)`` maps features (n, width) of a backbone to an `Output`.
2. A loss: ``objective(output, labels, index=index)`` is minimized. The argument `index` contains
   the indices of the training samples. The index is used only if ``needs_index`` is True.
3. A confidence: ``objective.confidence(output)`` has shape (n,); higher is more confident. Scores
   in (0, 1) are converted to log-odds.
4. A schedule: ``objective.plan(epochs)`` returns a `Phase` for each epoch, with the parts of the
   network to train. ``objective.enter(phase)`` and ``network.enter(phase)`` start a phase.
5. A state: ``objective.state_dict()`` contains everything needed to resume training.

The same loop trains with any objective::

    objective = training.make(name, rng=0)
    network = training.Network(backbone, objective.head(width, classes))
    current = None
    for phase in objective.plan(epochs):
        if phase != current:
            current = phase
            objective.enter(phase)
            network.enter(phase)
            optimizer = torch.optim.SGD(network.trained(), lr=0.1, momentum=0.9)
        network.train()
        for x, labels, index in batches:
            loss = objective(network(x), labels, index=index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

Losses are computed in float32 or float64, so autocast to half precision is safe. In eval mode, the
loss uses no random numbers and does not change the state.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from abstain._foundation import checks
from abstain._foundation.random import as_seed
from abstain.errors import DomainError, InputError, ShapeError, UnknownNameError, suggest
from abstain.training.heads import (
    Head,
    Output,
    at_least_float32,
    check_output,
    check_sizes,
    with_seed,
)
from abstain.training.network import CLASSIFIER, Phase, plan_epochs
from abstain.typing import Rng

#: Name of the phase that trains a classifier with cross-entropy before the method starts.
WARM_UP = "warm-up"


class Objective(nn.Module, ABC):
    """Base class of objectives, with a loss, a head, training phases and a confidence.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        Seed or generator for the initial weights of the head and random numbers in the loss. The
        states of the global generators of torch and NumPy do not change.

    Attributes
    ----------
    needs_index : bool
        Whether the loss requires the indices of the training samples in a batch.
    phase : Phase
        Current phase, initially the first phase.

    See Also
    --------
    make : Create an objective by name.
    Network : A network that consists of a backbone and a head.

    Examples
    --------
    A custom objective needs a loss and a confidence:

    >>> import torch
    >>> from abstain import training
    >>> class LabelSmoothing(training.Objective):
    ...     def _loss(self, output, labels, index):
    ...         return torch.nn.functional.cross_entropy(output.logits, labels, label_smoothing=0.1)
    ...
    ...     def confidence(self, output):
    ...         return output.logits.max(1).values
    >>> objective = LabelSmoothing(rng=0)
    >>> output = objective.head(2, 3)(torch.ones(4, 2))
    >>> objective(output, torch.tensor([0, 1, 2, 0])).ndim
    0
    """

    needs_index: ClassVar[bool] = False

    def __init__(self, *, rng: Rng = None) -> None:
        super().__init__()
        # NumPy accepts seeds of any size, but torch accepts seeds of at most 64 bits.
        self._seed = as_seed(rng) % 2**64
        self._current = 0

    # ------------------------------------------------------------------ defined by subclasses

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Training phases in order. Their shares sum to 1."""
        return (Phase("train", CLASSIFIER),)

    @abstractmethod
    def confidence(self, output: Output) -> Tensor:
        """Compute the confidence of each prediction.

        Parameters
        ----------
        output : Output
            Output of a head created by this objective.

        Returns
        -------
        torch.Tensor of shape (n,)
            Confidences; higher is more confident.
        """

    @abstractmethod
    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        """Return the loss of a validated batch as a scalar tensor."""

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        """Return the branches of the head, by the parameter names of `Head`."""
        return {}

    # ------------------------------------------------------------------ used by training loops

    def head(self, width: int, classes: int) -> Head:
        """Create the head for this objective.

        Parameters
        ----------
        width : int
            Number of features of the backbone.
        classes : int
            Number of classes, at least 2.

        Returns
        -------
        Head
            A head on the CPU. All calls return the same initial weights.

        Raises
        ------
        InputError
            If a size is not an integer or too small, or if an option is incompatible with the
            number of classes.
        """
        width, classes = check_sizes(width, classes)
        return with_seed(partial(self._make, width, classes), self._seed)

    def forward(self, output: Output, labels: Tensor, *, index: Tensor | None = None) -> Tensor:
        """Compute the loss of a batch in the current phase.

        Parameters
        ----------
        output : Output
            Output of the head for n samples.
        labels : torch.Tensor of shape (n,)
            Classes, as integers from 0 to K - 1. The range is checked only for labels on the CPU.
        index : torch.Tensor of shape (n,), optional
            Index of each sample in the training set.

        Returns
        -------
        torch.Tensor
            The mean loss of the batch, a scalar tensor.

        Raises
        ------
        ShapeError, DomainError, InputError
            If `output` is not an `Output`, or if labels or index have a wrong shape, type, range or
            device.
        MissingInputError
            If a required branch or index is missing.
        """
        n, classes = check_output(output).logits.shape
        labels = check_integers(labels, "labels", n, output.logits.device)
        if labels.device.type == "cpu" and int(labels.amax()) >= classes:
            raise DomainError(
                f"`labels` must be below the number of classes, {classes}; got {labels.amax()}"
            )
        if index is not None:
            index = check_integers(index, "index", n, None)
        return self._loss(output, labels, index)

    def class_logits(self, output: Output) -> Tensor:
        """Return the class logits, for computing other confidence scores.

        Parameters
        ----------
        output : Output
            Output of the head for n samples.

        Returns
        -------
        torch.Tensor of shape (n, K)
            Logits without the class "abstain".
        """
        return check_output(output).logits

    @property
    def phase(self) -> Phase:
        """Current phase."""
        return self.phases[self._current]

    def plan(self, epochs: int) -> tuple[Phase, ...]:
        """Divide a number of epochs among the phases.

        Parameters
        ----------
        epochs : int
            Number of epochs, at least one for each phase.

        Returns
        -------
        tuple of Phase
            The phase of each epoch.

        Raises
        ------
        InputError
            If there are fewer epochs than phases.
        """
        return plan_epochs(self.phases, epochs)

    def enter(self, phase: Phase | str) -> None:
        """Start a phase.

        Parameters
        ----------
        phase : Phase or str
            A phase in `phases`, or its name.

        Raises
        ------
        UnknownNameError
            If no phase has this name.
        """
        name = phase if isinstance(phase, str) else phase.name
        names = [existing.name for existing in self.phases]
        if name not in names:
            listed = ", ".join(map(repr, names))
            raise UnknownNameError(
                f"`phase` must be one of {listed}; got {name!r}.{suggest(name, names)}"
            )
        self._current = names.index(name)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state that is not part of the module's tensors.

        Returns
        -------
        dict
            The name of the phase.
        """
        return {"phase": self.phase.name}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state that `get_extra_state` returned.

        Parameters
        ----------
        state : dict
            The result of `get_extra_state`.

        Raises
        ------
        InputError
            If the state is invalid or belongs to another objective.
        """
        state_object: object = state
        name = state_object.get("phase") if isinstance(state_object, dict) else None
        if not isinstance(name, str):
            raise InputError(
                "the state of an objective must contain the name of its phase; got "
                f"{state_object!r}"
            )
        names = [phase.name for phase in self.phases]
        if name not in names:
            raise InputError(
                f"this is the state of another objective: its phase is {name!r}, and "
                f"{type(self).__name__} has {', '.join(map(repr, names))}"
            )
        self.enter(name)

    def _make(self, width: int, classes: int) -> Head:
        return Head(width, classes, **self._branches(width, classes))


def cross_entropy(output: Output, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy, without the class "abstain"."""
    return functional.cross_entropy(at_least_float32(output.logits), labels)


class ObjectiveWithWarmUp(Objective):
    """Base class of objectives with an optional warm-up phase (cross-entropy).

    Parameters
    ----------
    warm_up : float
        Share of the epochs in the warm-up phase, in [0, 1).
    rng : int, numpy.random.Generator or None
        As in `Objective`.
    """

    #: Name of the phase after the warm-up, and the parts that it trains.
    main_phase: ClassVar[tuple[str, tuple[str, ...]]]

    def __init__(self, *, warm_up: float, rng: Rng) -> None:
        super().__init__(rng=rng)
        # The upper limit is 0.999 instead of 1, because the next phase must have a share.
        self.warm_up = checks.fraction(warm_up, "warm_up", high=0.999)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The warm-up phase (if its share is positive) and the main phase."""
        main = Phase(*self.main_phase, share=1.0 - self.warm_up)
        if self.warm_up == 0.0:
            return (main,)
        return (Phase(WARM_UP, CLASSIFIER, share=self.warm_up), main)

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        if self.phase.name == WARM_UP:
            return cross_entropy(output, labels)
        return self._loss_after_warm_up(output, labels, index)

    @abstractmethod
    def _loss_after_warm_up(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        """Return the loss after the warm-up."""


def check_integers(x: Any, name: str, n: int, device: torch.device | None) -> Tensor:
    """Validate one integer per sample. On a device, negative integers are not detected."""
    if not isinstance(x, Tensor):
        raise InputError(f"`{name}` must be a torch.Tensor; got {type(x).__name__}")
    if x.shape != (n,) or n == 0:
        rule = f"must have one entry for each of the {n} samples" if n else "must not be empty"
        raise ShapeError(f"`{name}` {rule}; got shape {tuple(x.shape)}")
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise DomainError(f"`{name}` must be integers; got {x.dtype}")
    if device is not None and x.device != device:
        raise InputError(f"`{name}` must be on the device of the output, {device}; got {x.device}")
    if x.device.type == "cpu" and int(x.amin()) < 0:
        raise DomainError(f"`{name}` must not be negative; got {int(x.amin())}")
    integers: Tensor = x.long()
    return integers
