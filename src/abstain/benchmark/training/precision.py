"""Numbers of which precision a training computes in, through lightning-fabric."""

from dataclasses import dataclass
from typing import Any, cast

from abstain._foundation import checks
from abstain.benchmark._library import torch
from abstain.benchmark.jobs.devices import refuse_absent
from abstain.benchmark.recipe import PRECISIONS
from abstain.errors import InputError, MissingInputError


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


def fabric_of(machine: Machine) -> Any:
    """Return the `Fabric` of one device, which needs no launch: it wraps, casts and scales.

    It computes nowhere else and in no other precision, whatever the environment says. Refused where
    there is no such device or precision, or the two do not go together.
    """
    device, precision = machine.device, machine.precision
    checks.one_of(precision, "precision", PRECISIONS)
    refuse_absent([device])
    where = torch.device(device)
    if precision == "16-mixed" and where.type == "cpu":
        msg = "`precision` '16-mixed' needs an accelerator; on the CPU take 'bf16-mixed'"
        raise InputError(msg)
    try:
        # Slow to load, and only training needs it.
        from lightning_fabric import Fabric
        from lightning_fabric.plugins import MixedPrecision, Precision
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment
        from lightning_fabric.strategies.single_device import SingleDeviceStrategy
    except ModuleNotFoundError as error:
        if error.name != "lightning_fabric":
            raise
        msg = "training needs lightning-fabric: pip install 'abstain[benchmark]'"
        raise MissingInputError(msg) from None
    name = cast("Any", precision)
    casting = Precision() if name == "32-true" else MixedPrecision(name, where.type)
    # Objects and no names: by name Fabric prints, reads the environment, and looks for SLURM or
    # MPI to take part in.
    return Fabric(
        accelerator=where.type,
        devices=1,
        strategy=SingleDeviceStrategy(where, precision=casting),
        plugins=[LightningEnvironment()],
    )
