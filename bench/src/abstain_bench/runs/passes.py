"""Passes of a trained network over images: one as it is, and some with dropout on."""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch.nn.modules.dropout import _DropoutNd

from abstain.errors import InputError, ShapeError
from abstain.predictions import Predictions
from abstain.training import Network, Objective
from abstain.training.heads import Output, at_least_float32
from abstain.typing import AnyArray, Array
from abstain_bench._torch import accelerators, torch
from abstain_bench.networks.backbone import Backbone
from abstain_bench.runs.outputs import check_n_passes, network_outputs

__all__ = ["outputs_of"]

#: torch may be absent when types are checked.
Tensor = Any

#: Images at a time, and points of them at a time where the images are large.
_BLOCK = 500
_POINTS = 1 << 21

#: Told which share of the images is done.
OnShare = Callable[[float], None]

#: What is told in a sampled pass, and its name in `network_outputs`.
_SAMPLED = {"logits": "samples", "confidence": "sample_confidence"}


def outputs_of(
    network: Network,
    objective: Objective,
    pictures: Tensor,
    labels: AnyArray,
    places: AnyArray,
    *,
    samples: int = 0,
    seed: int = 0,
    on_share: OnShare | None = None,
) -> Predictions:
    """Ask a trained network about images, once and with dropout as often as wanted.

    Notes
    -----
    In the passes only dropout layers are in training mode; batch norm keeps its running means.
    A block holds at most 500 images, fewer when they are large: memory on the device is bounded.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> from abstain_bench.networks import SmallConv
    >>> from abstain_bench.runs.passes import outputs_of
    >>> objective = training.make("deep-gamblers", rng=0)
    >>> network = training.Network(SmallConv(dropout=0.3), objective.head(64, 10))
    >>> pictures = torch.zeros(2, 1, 28, 28)
    >>> out = outputs_of(network, objective, pictures, [3, -1], [0, 1], samples=4)
    >>> out.features.shape, out.logit_samples.shape, list(out.confidence)
    ((2, 64), (2, 4, 10), ['learned', 'mcd_learned', 'learned_waic'])
    """
    check_n_passes(samples)
    found = _passes(network, objective, pictures, samples=samples, seed=seed, on_share=on_share)
    return network_outputs(labels=np.asarray(labels), places=np.asarray(places), **found)


def _passes(
    network: Network,
    objective: Objective,
    pictures: Tensor,
    *,
    samples: int,
    seed: int,
    on_share: OnShare | None,
) -> dict[str, Array]:
    """Return the arguments of `network_outputs` that come from a network, by their names."""
    if getattr(pictures, "ndim", 0) != 4 or not len(pictures):
        raise ShapeError(
            "`pictures` must be a tensor (n, channels, height, width); "
            f"got {tuple(getattr(pictures, 'shape', ()))}"
        )
    network.eval()
    dropout = _dropout(network, samples)
    where = next(network.parameters()).device
    out: dict[str, Array] = {}
    with torch.inference_mode(), torch.random.fork_rng(devices=accelerators(where)):
        _seed(where, seed)
        n, step = len(pictures), _block(network, pictures)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            begun = _begun(network, pictures[rows].to(where))
            told = _told(objective, _ended(network, begun), always=True)
            _write(out, rows, (n,), told)
            for layer in dropout:
                layer.train()
            for i in range(samples):
                told = _told(objective, _ended(network, begun), always=False)
                _write(out, (rows, i), (n, samples), {_SAMPLED[k]: x for k, x in told.items()})
            for layer in dropout:
                layer.eval()
            if on_share is not None:
                on_share(rows.stop / n)
    return out


def _block(network: Network, pictures: Tensor) -> int:
    """Return how many images go at a time, by the size at which the layers see them."""
    _, _, height, width = pictures.shape
    side = getattr(network.backbone, "side", 0)
    return max(1, min(_BLOCK, _POINTS // (side**2 or height * width)))


def _begun(network: Network, block: Tensor) -> list[Tensor]:
    """Return what no dropout changes, of the backbone and of its twin where there is one."""
    parts = [network.backbone, network.twin]
    return [
        part.before_dropout(block) if isinstance(part, Backbone) else block
        for part in parts
        if part is not None
    ]


def _ended(network: Network, begun: list[Tensor]) -> Output:
    """Go on as `Network.forward` does."""
    parts = [part for part in (network.backbone, network.twin) if part is not None]
    features = [
        part.after_dropout(maps) if isinstance(part, Backbone) else part(maps)
        for part, maps in zip(parts, begun, strict=True)
    ]
    found: Output = network.head(*features)
    return found


def _dropout(network: Network, samples: int) -> list[Any]:
    """Return the layers that are on in the sampled passes."""
    if not samples:
        return []
    found = [x for x in network.modules() if isinstance(x, _DropoutNd) and x.p > 0]
    if not found:
        raise InputError(
            "the network has no dropout, so that all samples would be alike; make the model with "
            "`dropout` above 0, or ask for `samples=0`"
        )
    return found


def _seed(where: Any, seed: int) -> None:
    """Seed the generators that dropout draws from, and no other: torch.manual_seed takes all."""
    torch.default_generator.manual_seed(seed)
    if where.type == "cuda":
        with torch.cuda.device(where):
            torch.cuda.manual_seed(seed)


def _told(objective: Objective, output: Output, *, always: bool) -> dict[str, Array]:
    """Bring what a pass gave to the host; the features of a sampled pass are not kept."""
    told = {"logits": at_least_float32(objective.class_logits(output))}
    if always:
        told["features"] = at_least_float32(output.features)
    # Without a branch of its own, the confidence is a function of the logits.
    if output.confidence is not None or output.abstention is not None:
        told["confidence"] = at_least_float32(objective.confidence(output))
    return {name: tensor.cpu().numpy() for name, tensor in told.items()}


def _write(out: dict[str, Array], at: Any, size: tuple[int, ...], told: dict[str, Array]) -> None:
    for name, array in told.items():
        if name not in out:
            out[name] = np.empty((*size, *array.shape[1:]), dtype=array.dtype)
        out[name][at] = array
