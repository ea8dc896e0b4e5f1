"""The stages of a training, as data: what learns in which, and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass

from abstain._foundation import checks
from abstain.errors import InputError

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


def planned(phases: Sequence[Phase], epochs: int) -> tuple[Phase, ...]:
    """Return the phase of each epoch; every phase gets at least one."""
    count = checks.positive_int(epochs, "epochs")
    if count < len(phases):
        names = ", ".join(repr(phase.name) for phase in phases)
        msg = f"`epochs` must be at least {len(phases)}, one each for {names}; got {count}"
        raise InputError(msg)
    out: list[Phase] = []
    passed = 0.0
    for left, phase in zip(range(len(phases) - 1, -1, -1), phases, strict=True):
        passed += phase.share
        end = round(passed * count) if left else count
        end = min(max(end, len(out) + 1), count - left)
        out += [phase] * (end - len(out))
    return tuple(out)
