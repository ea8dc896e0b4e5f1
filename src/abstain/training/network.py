"""`Network`: a backbone with a head, of which each training phase trains some parts."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.training.heads import Head, Output

#: Parts of a network that has only a classifier.
CLASSIFIER = ("backbone", "classifier")


@dataclass(frozen=True)
class Phase:
    """A stage of training in which one loss is minimized over some parts of the network.

    Attributes
    ----------
    name : str
        Name of the phase.
    trains : tuple of str
        Trained parts of the `Network`: "backbone", "classifier", "abstention", "confidence",
        "auxiliary", "twin". All other parts are frozen, with their batch norm.
    share : float
        Share of all epochs, in (0, 1].
    dropout : bool
        Whether dropout is on, also in frozen parts. Without dropout the network is in eval mode.
    learning_rate : float or None
        Learning rate of Adam that the authors of the method use in this phase; None for the
        recipe of the classifier. It is a recommendation for the training loop.
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
    plan: list[Phase] = []
    cumulative_share = 0.0
    for n_later, phase in zip(range(len(phases) - 1, -1, -1), phases, strict=True):
        cumulative_share += phase.share
        end = round(cumulative_share * count) if n_later else count
        # At least one epoch for this phase and for each later one.
        end = min(max(end, len(plan) + 1), count - n_later)
        plan += [phase] * (end - len(plan))
    return tuple(plan)


class Network(nn.Module):
    """A backbone and a head, of which each training phase trains some parts.

    The backbone is any module that maps inputs to features (n, width).

    Parameters
    ----------
    backbone : torch.nn.Module
        From inputs to features of shape (n, width).
    head : Head
        From features to an `Output`; `Objective.head` makes it.

    Attributes
    ----------
    twin : torch.nn.Module or None
        A copy of the backbone for the confidence branch alone. It is created in the first phase
        that trains it, or when a state that contains it is loaded.

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
        twin_features = None if self.twin is None else self.twin(x)
        out: Output = self.head(features, twin_features)
        return out

    def enter(self, phase: Phase) -> None:
        """Train the parts of a phase, and freeze the others.

        Call it at the start of a phase and after loading a state, then make an optimizer of
        `trained`; under DistributedDataParallel wrap the network after it.

        Parameters
        ----------
        phase : Phase
            One of `Objective.phases`.

        Raises
        ------
        InputError
            If the network has no part that the phase trains.
        """
        if "twin" in phase.trains and self.twin is None:
            self.twin = deepcopy(self.backbone)
        trained_parts = [self._part(name) for name in phase.trains]
        self.requires_grad_(requires_grad=False)
        for part in trained_parts:
            part.requires_grad_(requires_grad=True)
        self._phase = phase
        self.train(self.training)

    def trained(self) -> list[nn.Parameter]:
        """Return the trained parameters of the current phase, for an optimizer.

        Returns
        -------
        list of torch.nn.Parameter
            All parameters, if no phase was entered.
        """
        return [p for p in self.parameters() if p.requires_grad]

    def train(self, mode: bool = True) -> "Network":  # noqa: FBT002  torch's own signature
        """Set training mode for the parts of the current phase, and eval mode for others.

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

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        if self.twin is None and any(key.startswith(f"{prefix}twin.") for key in state_dict):
            self.twin = deepcopy(self.backbone)
        super()._load_from_state_dict(state_dict, prefix, *args)
