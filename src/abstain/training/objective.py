"""The interface between a training loop and an objective.

A training loop uses five parts of an objective, whatever its method:

1. a **head**: ``objective.head(width, classes)`` maps the features (n, width) of any backbone to
   an `Output`: class logits, features, and the logit of each branch of the objective;
2. a **loss**: ``objective(output, labels, index=index)`` is the scalar to minimize. `index`
   contains the indices of the training samples; only objectives with ``needs_index`` use it;
3. a **confidence**: ``objective.confidence(output)``, (n,), higher is more trusted. If the score
   of the paper lies in (0, 1), this is its log-odds, which do not saturate: ``torch.sigmoid``
   computes the score. ``objective.class_logits(output)`` is for all other scores of
   `abstain.confidence`;
4. a **schedule**: ``objective.plan(epochs)`` returns a `Phase` for each epoch, with the parts of
   the network that are trained. Examples are a warm-up with cross-entropy, and the training of a
   confidence branch on a frozen backbone. ``objective.enter(phase)`` and
   ``network.enter(phase)`` start a phase;
5. a **state**: ``state_dict()`` contains the state of an objective (targets, multipliers, its
   random generator, its phase), so that training can be resumed exactly.

A loop therefore needs no special case for any method::

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

Losses are computed from logits in log space, at least in float32, so half precision under autocast
is safe. After ``objective.eval()``, the loss is a deterministic function of its arguments, for
validation: nothing is sampled and no state changes.
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

#: Phase in which a classifier is trained with cross-entropy before the method starts.
WARM_UP = "warm-up"


class Objective(nn.Module, ABC):
    """Base class of objectives: a loss with its head, its phases and its confidence.

    Subclasses define the loss, the confidence, the branches of the head and, if there are several,
    the phases.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        Seed of the initial weights of the head and of random numbers in the loss. None uses fresh
        entropy. The global generators of torch and NumPy are not changed.

    Attributes
    ----------
    needs_index : bool
        Whether the loss requires the indices of the training samples of a batch.
    phase : Phase
        The current phase, initially the first one.

    See Also
    --------
    make : Objectives by name.
    Network : A backbone and a head.

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
        # NumPy takes seeds of any size, torch of 64 bits.
        self._seed = as_seed(rng) % 2**64
        self._current = 0

    # ------------------------------------------------------------------ defined by subclasses

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The stages of training, in order; their shares add up to 1."""
        return (Phase("train", CLASSIFIER),)

    @abstractmethod
    def confidence(self, output: Output) -> Tensor:
        """Compute the confidence of each prediction.

        Parameters
        ----------
        output : Output
            Of a head that this objective made.

        Returns
        -------
        torch.Tensor of shape (n,)
            Higher is more trusted.
        """

    @abstractmethod
    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        """Return the loss of a checked batch, a tensor without axes."""

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        """Return the branches of the head in addition to its classifier, by option of `Head`."""
        return {}

    # ------------------------------------------------------------------ used by training loops

    def head(self, width: int, classes: int) -> Head:
        """Make the head that this objective needs.

        Parameters
        ----------
        width : int
            Number of features that the backbone gives.
        classes : int
            Number of classes, at least 2.

        Returns
        -------
        Head
            On the CPU, with weights drawn by the objective's seed: the same each time.

        Raises
        ------
        InputError
            If a size is not a whole number or too small, or if an option of the objective does not
            allow the number of classes.
        """
        width, classes = check_sizes(width, classes)
        return with_seed(partial(self._make, width, classes), self._seed)

    def forward(self, output: Output, labels: Tensor, *, index: Tensor | None = None) -> Tensor:
        """Compute the loss of a batch in the current phase.

        Parameters
        ----------
        output : Output
            Of the head, for n samples.
        labels : torch.Tensor of shape (n,)
            Classes, integers from 0 to K - 1. Their range is checked on the CPU only, because a
            check on a device would wait for it at each step.
        index : torch.Tensor of shape (n,), optional
            Index of the training sample of each row, from 0.

        Returns
        -------
        torch.Tensor
            Without axes; the mean over the batch.

        Raises
        ------
        ShapeError, DomainError, InputError
            If there is no `Output`, or if labels or index have a wrong shape, type, range or
            device.
        MissingInputError
            If the output has no required branch, or `index` is required and missing.
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
        """Return the logits of the classes, for scores computed from them.

        Parameters
        ----------
        output : Output
            Of the head, for n samples.

        Returns
        -------
        torch.Tensor of shape (n, K)
            Without the class "abstain", so their softmax is renormalized.
        """
        return check_output(output).logits

    @property
    def phase(self) -> Phase:
        """The current phase."""
        return self.phases[self._current]

    def plan(self, epochs: int) -> tuple[Phase, ...]:
        """Divide a number of epochs among the phases.

        Parameters
        ----------
        epochs : int
            At least one for each phase.

        Returns
        -------
        tuple of Phase
            One for each epoch. The result depends only on the number, so a resumed training finds
            the phase of its epoch here.

        Raises
        ------
        InputError
            Fewer epochs than phases.
        """
        return plan_epochs(self.phases, epochs)

    def enter(self, phase: Phase | str) -> None:
        """Start a phase.

        Parameters
        ----------
        phase : Phase or str
            One of `phases`, or its name.

        Raises
        ------
        UnknownNameError
            There is no such phase.
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
        """Return the part of the state that is not a tensor of the module.

        Returns
        -------
        dict
            The name of the phase; plain values that ``weights_only`` loading takes.
        """
        return {"phase": self.phase.name}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state that `get_extra_state` returned.

        Parameters
        ----------
        state : dict
            As returned there.

        Raises
        ------
        InputError
            The state is that of another objective, or of none.
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
    """Return the mean cross-entropy over the classes, without abstention."""
    return functional.cross_entropy(at_least_float32(output.logits), labels)


class ObjectiveWithWarmUp(Objective):
    """An objective with an optional warm-up: a share of the epochs with cross-entropy.

    Subclasses define the loss after the warm-up, and the parts of the network that are trained.

    Parameters
    ----------
    warm_up : float
        The share, in [0, 1).
    rng : int, numpy.random.Generator or None
        As in `Objective`.
    """

    #: Name of the phase after the warm-up, and the trained parts.
    main_phase: ClassVar[tuple[str, tuple[str, ...]]]

    def __init__(self, *, warm_up: float, rng: Rng) -> None:
        super().__init__(rng=rng)
        # 0.999 and not 1, because the next phase must have a share.
        self.warm_up = checks.fraction(warm_up, "warm_up", high=0.999)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """An optional warm-up with cross-entropy, then the phase of the objective."""
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
    """Validate one non-negative integer a sample; the values are looked at on the CPU only."""
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
    out: Tensor = x.long()
    return out
