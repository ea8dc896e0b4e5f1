"""`logits_of`: what a trained network says, without learning."""

from typing import Any

from abstain.benchmark._library import torch
from abstain.training import Network
from abstain.typing import Array

#: torch may be absent when types are checked.
Tensor = Any

#: Pictures at a time.
_BLOCK = 500


def logits_of(network: Network, pictures: Tensor) -> Array:
    """Return the logits of pictures, computed in blocks without learning.

    Parameters
    ----------
    network : abstain.training.Network
        On the device of the pictures; left in evaluation mode.
    pictures : Tensor of shape (n, channels, height, width)
        What the network sees, as `Inputs.fixed` returns it.

    Returns
    -------
    float32 ndarray of shape (n, classes)
        On the host.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> from abstain.benchmark.models import SmallConv
    >>> from abstain.benchmark.training import logits_of
    >>> head = training.make("cross-entropy", rng=0).head(64, 10)
    >>> logits_of(training.Network(SmallConv(), head), torch.zeros(3, 1, 28, 28)).shape
    (3, 10)
    """
    network.eval()
    with torch.inference_mode():
        blocks = [network(block).logits.float().cpu() for block in pictures.split(_BLOCK)]
    out: Array = torch.cat(blocks).numpy()
    return out
