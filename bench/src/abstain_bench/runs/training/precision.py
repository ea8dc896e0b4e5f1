"""Precision of training: float32, or mixed precision through lightning-fabric."""

from dataclasses import dataclass
from typing import Any, cast

from abstain._foundation import checks
from abstain.errors import InputError, MissingInputError
from abstain_bench._torch import torch
from abstain_bench.runs.jobs.devices import check_devices_available
from abstain_bench.runs.recipe import PRECISIONS


@dataclass(frozen=True)
class Machine:
    """Device and precision of a training.

    Attributes
    ----------
    device : str
        Device by its torch name.
    precision : str
        One of `PRECISIONS`. "bf16-mixed" and "16-mixed" compute the network in 16 bits; weights and
        losses remain in float32. "16-mixed" scales the gradients and needs an accelerator.
    """

    device: str = "cpu"
    precision: str = "32-true"


class FullPrecision:
    """Float32 on one device, without casting and scaling."""

    name = "32-true"

    def __init__(self, device: str) -> None:
        self.device = device

    def setup_network(self, network: Any) -> Any:
        """Move a network to the device; return the callable for the forward pass."""
        return network.to(self.device)

    def setup_optimizer(self, optimizer: Any) -> Any:
        """Return the object that performs the steps of an optimizer."""
        return optimizer

    def backward(self, loss: Any) -> None:
        """Add the gradients of a loss to those of the parameters."""
        loss.backward()

    def clip(self, network: Any, optimizer: Any, max_norm: float) -> None:  # noqa: ARG002
        """Scale the gradients of a step to a norm of at most `max_norm`."""
        torch.nn.utils.clip_grad_norm_(network.parameters(), max_norm)

    def state(self) -> dict[str, Any]:
        """Return the state that an interrupted training must keep."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Load the result of `state`."""


class MixedPrecision(FullPrecision):
    """Mixed precision: a `Fabric` casts tensors and scales small gradients."""

    def __init__(self, fabric: Any) -> None:
        self.fabric, self.mixed_precision = fabric, fabric.strategy.precision
        self.name = self.mixed_precision.precision

    def setup_network(self, network: Any) -> Any:
        """Move a network to the device; return the callable that computes in 16 bits."""
        return self.fabric.setup_module(network)

    def setup_optimizer(self, optimizer: Any) -> Any:
        """Return the object that performs steps and skips those with overflowed gradients."""
        return self.fabric.setup_optimizers(optimizer)

    def backward(self, loss: Any) -> None:
        """Add the gradients of the scaled loss to those of the parameters."""
        self.fabric.backward(loss)

    def clip(self, network: Any, optimizer: Any, max_norm: float) -> None:
        """Scale the gradients, without the scale of the loss, to a norm of at most `max_norm`."""
        self.fabric.clip_gradients(network, optimizer, max_norm=max_norm, error_if_nonfinite=False)

    def state(self) -> dict[str, Any]:
        """Return the scale of the loss."""
        return dict(self.mixed_precision.state_dict())

    def load_state(self, state: dict[str, Any]) -> None:
        """Load a scale of the loss."""
        self.mixed_precision.load_state_dict(state)


def make_precision(machine: Machine) -> FullPrecision:
    """Return the precision of a training.

    Raises InputError if the device or precision does not exist or the two are incompatible.
    """
    device, precision = machine.device, machine.precision
    checks.one_of(precision, "precision", PRECISIONS)
    check_devices_available([device])
    if precision == FullPrecision.name:
        return FullPrecision(device)
    if precision == "16-mixed" and torch.device(device).type == "cpu":
        raise InputError("`precision` '16-mixed' needs an accelerator; on the CPU use 'bf16-mixed'")
    return MixedPrecision(make_fabric(machine))


def make_fabric(machine: Machine) -> Any:
    """Return a `Fabric` for one device that casts and scales without being launched.

    It ignores environment variables.
    """
    device = torch.device(machine.device)
    try:
        # Imported here, because it loads a thousand modules (seconds).
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
    # With names instead of objects, Fabric would print, read the environment, and look for SLURM
    # and MPI.
    return Fabric(
        accelerator=device.type,
        devices=1,
        strategy=SingleDeviceStrategy(device, precision=mixed_precision),
        plugins=[LightningEnvironment()],
    )
