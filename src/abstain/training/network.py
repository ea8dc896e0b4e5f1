"""`Network`: a backbone with a head, of which a phase of training lets some parts learn."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.training.heads import Head, Output

#: The whole network, when it has no more than a classifier.
CLASSIFIER = ("backbone", "classifier")


@dataclass(frozen=True)
class Phase:
    """A stage of training in which one loss is minimized over some parts of the network.

    Attributes
    ----------
    name : str
        What the objective calls it.
    trains : tuple of str
        Parts of the `Network` that learn: "backbone", "classifier", "abstention", "confidence",
        "auxiliary", "twin". All others are frozen, their batch norm included.
    share : float
        Its share of all epochs, in (0, 1].
    dropout : bool
        Whether dropout is on, also in frozen parts. Without it the whole network is in eval mode.
    learning_rate : float or None
        The rate of the Adam optimizer with which the method's authors train this phase; None
        where they go on with the recipe of the classifier. Advice: the loop may do otherwise.
    """

    name: str
    trains: tuple[str, ...]
    share: float = 1.0
    dropout: bool = True
    learning_rate: float | None = None


def plan_epochs(phases: Sequence[Phase], epochs: int) -> tuple[Phase, ...]:
    """Return the phase of each epoch; every phase gets at least one."""
    count = checks.positive_int(epochs, "epochs")
    if count < len(phases):
        names = ", ".join(repr(phase.name) for phase in phases)
        raise InputError(
            f"`epochs` must be at least {len(phases)}, one each for {names}; got {count}"
        )
    out: list[Phase] = []
    passed = 0.0
    for left, phase in zip(range(len(phases) - 1, -1, -1), phases, strict=True):
        passed += phase.share
        end = round(passed * count) if left else count
        end = min(max(end, len(out) + 1), count - left)
        out += [phase] * (end - len(out))
    return tuple(out)


class Network(nn.Module):
    """A backbone and a head, of which a phase of training lets some parts learn.

    Any backbone will do that maps inputs to features (n, width).

    Parameters
    ----------
    backbone : torch.nn.Module
        From inputs to features of shape (n, width).
    head : Head
        From features to an `Output`; `Objective.head` makes it.

    Attributes
    ----------
    twin : torch.nn.Module or None
        A copy of the backbone for the confidence branch alone. It comes into being in the first
        phase that trains it, or when a state that has one is loaded.

    See Also
    --------
    Objective : What is minimized, and its phases.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> objective = training.make("confidnet", rng=0)
    >>> network = training.Network(torch.nn.Linear(2, 8), objective.head(8, 3))
    >>> network.enter(objective.plan(10)[-1])
    >>> [name for name, p in network.named_parameters() if p.requires_grad][0]
    'head.confidence.0.weight'
    """

    def __init__(self, backbone: nn.Module, head: Head) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.twin: nn.Module | None = None
        self._phase: Phase | None = None

    def forward(self, x: Any) -> Output:
        """Map inputs to what the objective needs.

        Parameters
        ----------
        x : torch.Tensor
            What the backbone takes.

        Returns
        -------
        Output
            Of the head.
        """
        features: Tensor = self.backbone(x)
        own = None if self.twin is None else self.twin(x)
        out: Output = self.head(features, own)
        return out

    def enter(self, phase: Phase) -> None:
        """Let the parts that a phase trains learn, and freeze the others.

        Call it at the start of a phase and after loading a state, then make an optimizer of
        `trained`; under DistributedDataParallel wrap the network after it.

        Parameters
        ----------
        phase : Phase
            One of `Objective.phases`.

        Raises
        ------
        InputError
            The network lacks a part that the phase trains.
        """
        if "twin" in phase.trains and self.twin is None:
            self.twin = deepcopy(self.backbone)
        learning = [self._part(name) for name in phase.trains]
        self.requires_grad_(requires_grad=False)
        for part in learning:
            part.requires_grad_(requires_grad=True)
        self._phase = phase
        self.train(self.training)

    def trained(self) -> list[nn.Parameter]:
        """Return the parameters that learn in the present phase, for an optimizer.

        Returns
        -------
        list of torch.nn.Parameter
            All parameters, if no phase was entered.
        """
        return [p for p in self.parameters() if p.requires_grad]

    def train(self, mode: bool = True) -> "Network":  # noqa: FBT002  torch's own signature
        """Set training mode where the present phase trains, eval mode elsewhere.

        Parameters
        ----------
        mode : bool
            False sets eval mode everywhere.

        Returns
        -------
        Network
            Itself.
        """
        phase = self._phase
        if not mode or phase is None:
            return super().train(mode)
        super().train(mode=False)
        self.training = True
        if phase.dropout:
            for part in phase.trains:
                self._part(part).train()
            for module in self.modules():
                if isinstance(module, _DropoutNd):
                    module.train()
        return self

    def _part(self, name: str) -> nn.Module:
        of_network = name in {"backbone", "twin"}
        part = getattr(self if of_network else self.head, name, None)
        if not isinstance(part, nn.Module):
            raise InputError(
                f"the network has no part {name!r}, which this phase trains. "
                "Make the head with the objective's own `head(width, classes)`."
            )
        return part

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        if self.twin is None and any(key.startswith(f"{prefix}twin.") for key in state_dict):
            self.twin = deepcopy(self.backbone)
        super()._load_from_state_dict(state_dict, prefix, *rest)
