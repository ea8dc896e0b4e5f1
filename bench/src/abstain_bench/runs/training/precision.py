"""Numbers of which precision a training computes in: mixed ones through lightning-fabric."""

from dataclasses import dataclass
from typing import Any, cast

from abstain._foundation import checks
from abstain.errors import InputError, MissingInputError
from abstain_bench._torch import torch
from abstain_bench.runs.jobs.devices import check_devices_available
from abstain_bench.runs.recipe import PRECISIONS


@dataclass(frozen=True)
class Machine:
    """Where a training computes, and in which precision.

    Attributes
    ----------
    device : str
        As torch names it.
    precision : str
        One of `PRECISIONS`. "bf16-mixed" and "16-mixed" compute the network in 16 bits; weights
        and losses stay in float32. "16-mixed", whose gradients are scaled, needs an accelerator.
    """

    device: str = "cpu"
    precision: str = "32-true"


class FullPrecision:
    """Float32 on one device: there is nothing to cast or to scale."""

    name = "32-true"

    def __init__(self, device: str) -> None:
        self.device = device

    def network(self, network: Any) -> Any:
        """Move a network to the device; return what is to be called."""
        return network.to(self.device)

    def optimizer(self, optimizer: Any) -> Any:
        """Return what makes the steps of an optimizer."""
        return optimizer

    def backward(self, loss: Any) -> None:
        """Add the gradients of a loss to those of the weights."""
        loss.backward()

    def clip(self, network: Any, optimizer: Any, largest: float) -> None:  # noqa: ARG002
        """Scale the gradients of a step down to a norm, where theirs is larger."""
        torch.nn.utils.clip_grad_norm_(network.parameters(), largest)

    def state(self) -> dict[str, Any]:
        """Return what goes on from one epoch to the next."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Take up what `state` returned."""


class MixedPrecision(FullPrecision):
    """What a `Fabric` casts, and scales where gradients would vanish."""

    def __init__(self, fabric: Any) -> None:
        self.fabric, self.casting = fabric, fabric.strategy.precision
        self.name = self.casting.precision

    def network(self, network: Any) -> Any:
        """Move a network to the device; called through it, it computes in fewer bits."""
        return self.fabric.setup_module(network)

    def optimizer(self, optimizer: Any) -> Any:
        """Return what leaves a step out whose gradients overflowed."""
        return self.fabric.setup_optimizers(optimizer)

    def backward(self, loss: Any) -> None:
        """Add the gradients of a loss, scaled, to those of the weights."""
        self.fabric.backward(loss)

    def clip(self, network: Any, optimizer: Any, largest: float) -> None:
        """Scale the gradients down to a norm, as they are without the scale of the loss."""
        self.fabric.clip_gradients(network, optimizer, max_norm=largest, error_if_nonfinite=False)

    def state(self) -> dict[str, Any]:
        """Return the scale of the gradients."""
        return dict(self.casting.state_dict())

    def resume(self, state: dict[str, Any]) -> None:
        """Take up a scale."""
        self.casting.load_state_dict(state)


def precision_of(machine: Machine) -> FullPrecision:
    """Return how a training computes on one device.

    Refused where there is no such device or precision, or the two do not go together.
    """
    device, precision = machine.device, machine.precision
    checks.one_of(precision, "precision", PRECISIONS)
    check_devices_available([device])
    if precision == FullPrecision.name:
        return FullPrecision(device)
    if precision == "16-mixed" and torch.device(device).type == "cpu":
        raise InputError(
            "`precision` '16-mixed' needs an accelerator; on the CPU take 'bf16-mixed'"
        )
    return MixedPrecision(fabric_of(machine))


def fabric_of(machine: Machine) -> Any:
    """Return the `Fabric` of one device, which needs no launch: it wraps, casts and scales.

    It computes nowhere else and in no other precision, whatever the environment says.
    """
    where = torch.device(machine.device)
    try:
        # It loads a thousand modules: seconds that a short training would not take.
        from lightning_fabric import Fabric
        from lightning_fabric.plugins import MixedPrecision as Casting
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment
        from lightning_fabric.strategies.single_device import SingleDeviceStrategy
    except ModuleNotFoundError as error:
        if error.name != "lightning_fabric":
            raise
        raise MissingInputError(
            f"`precision` {machine.precision!r} needs lightning-fabric: "
            "pip install lightning-fabric"
        ) from None
    casting = Casting(cast("Any", machine.precision), where.type)
    # Objects and no names: by name Fabric prints, reads the environment, and looks for SLURM or
    # MPI to take part in.
    return Fabric(
        accelerator=where.type,
        devices=1,
        strategy=SingleDeviceStrategy(where, precision=casting),
        plugins=[LightningEnvironment()],
    )
