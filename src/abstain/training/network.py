"""Define `Network`, a backbone with a head, and `Phase`, a part of the training schedule."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.training.heads import Head, Output

#: Trained parts of a network that has only a classifier.
CLASSIFIER = ("backbone", "classifier")


@dataclass(frozen=True)
class Phase:
    """A training phase, in which some parts of the network are trained with one loss.

    Attributes
    ----------
    name : str
        Name of the phase.
    trains : tuple of str
        Names of the parts of the `Network` that are trained: "backbone", "classifier",
        "abstention", "confidence", "auxiliary" or "twin". All other parts are frozen.
    share : float
        Share of all epochs, in (0, 1].
    dropout : bool
        Whether dropout is on, including dropout in frozen parts. If False, the network is in eval
        mode.
    learning_rate : float or None
        Recommended learning rate of Adam, or None for the learning rate of the classifier.
    """

    name: str
    trains: tuple[str, ...]
    share: float = 1.0
    dropout: bool = True
    learning_rate: float | None = None


def plan_epochs(phases: Sequence[Phase], epochs: int) -> tuple[Phase, ...]:
    """Divide the epochs among the phases, and return the phase of each epoch."""
    count = checks.positive_int(epochs, "epochs")
    if count < len(phases):
        names = ", ".join(repr(phase.name) for phase in phases)
        raise InputError(
            f"`epochs` must be at least {len(phases)}, one each for {names}; got {count}"
        )
    plan: list[Phase] = []
    cumulative_share = 0.0
    for i, phase in enumerate(phases):
        n_later = len(phases) - 1 - i
        cumulative_share += phase.share
        end = round(cumulative_share * count) if n_later else count
        # This phase and each later phase have at least one epoch.
        end = min(max(end, len(plan) + 1), count - n_later)
        plan += [phase] * (end - len(plan))
    return tuple(plan)


class Network(nn.Module):
    """A network that consists of a backbone and a head.

    Parameters
    ----------
    backbone : torch.nn.Module
        Module that computes features of shape (n, width).
    head : Head
        Module that maps features to an `Output`. `Objective.head` creates it.

    Attributes
    ----------
    twin : torch.nn.Module or None
        Copy of the backbone for the confidence branch. The copy is trained in the last phase of
        ConfidNet.

    See Also
    --------
    Objective : Defines the loss and the phases.

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
        """Compute the output of the network.

        Parameters
        ----------
        x : torch.Tensor
            Input of the backbone.

        Returns
        -------
        Output
            Output of the head.
        """
        features: Tensor = self.backbone(x)
        twin_features = None if self.twin is None else self.twin(x)
        output: Output = self.head(features, twin_features)
        return output

    def enter(self, phase: Phase) -> None:
        """Start a phase by enabling gradients for its parts and freezing all other parts.

        Call this method at the start of each phase and after loading a state dict. Afterwards,
        create an optimizer for the parameters from `trained`. Apply DistributedDataParallel after
        this call.

        Parameters
        ----------
        phase : Phase
            A phase in `Objective.phases`.

        Raises
        ------
        InputError
            If the network lacks a part that the phase trains.
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
        """Return the parameters that are trained in the current phase, for an optimizer.

        Returns
        -------
        list of torch.nn.Parameter
            Trained parameters. Before the first call of `enter`, all parameters are returned.
        """
        return [p for p in self.parameters() if p.requires_grad]

    def train(self, mode: bool = True) -> "Network":  # noqa: FBT002  the signature of torch
        """Set training mode for the parts of the current phase, and eval mode for other parts.

        Parameters
        ----------
        mode : bool
            Whether to set training mode. If False, all parts are set to eval mode.

        Returns
        -------
        Network
            This network.
        """
        phase = self._phase
        if not mode or phase is None:
            return super().train(mode)
        super().train(mode=False)
        self.training = True
        if not phase.dropout:
            return self
        for part in phase.trains:
            self._part(part).train()
        for module in self.modules():
            if isinstance(module, _DropoutNd):
                module.train()
        return self

    def _part(self, name: str) -> nn.Module:
        """Return a part of the network by name."""
        owner = self if name in {"backbone", "twin"} else self.head
        part = getattr(owner, name, None)
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
