"""Compute forward passes of a trained network with and without dropout."""

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

#: torch may be absent when types are checked.
Tensor = Any

#: Maximum number of images per block.
_MAX_BLOCK_SIZE = 500
#: Maximum number of pixels per channel in a block of images.
_MAX_BLOCK_PIXELS = 1 << 21

#: Callback whose argument is the finished share of the images.
OnShare = Callable[[float], None]

#: Argument of `network_outputs` for each output of a pass with dropout.
_SAMPLED_NAMES = {"logits": "samples", "confidence": "sample_confidence"}


def compute_outputs(
    network: Network,
    objective: Objective,
    images: Tensor,
    labels: AnyArray,
    source_indices: AnyArray,
    *,
    samples: int = 0,
    seed: int = 0,
    on_share: OnShare | None = None,
) -> Predictions:
    """Compute the outputs of a network without dropout, and in `samples` passes with dropout.

    Notes
    -----
    In dropout passes, only the dropout layers are in training mode. Batch normalization uses its
    running statistics. Images are processed in blocks, which are smaller for large images to limit
    the device memory.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> from abstain_bench.networks import SmallConv
    >>> from abstain_bench.runs.passes import compute_outputs
    >>> objective = training.make("deep-gamblers", rng=0)
    >>> network = training.Network(SmallConv(dropout=0.3), objective.head(64, 10))
    >>> images = torch.zeros(2, 1, 28, 28)
    >>> out = compute_outputs(network, objective, images, [3, -1], [0, 1], samples=4)
    >>> out.features.shape, out.logit_samples.shape, list(out.confidence)
    ((2, 64), (2, 4, 10), ['learned', 'mcd_learned', 'learned_waic'])
    """
    check_n_passes(samples)
    if getattr(images, "ndim", 0) != 4 or not len(images):
        raise ShapeError(
            "`images` must be a tensor (n, channels, height, width); "
            f"got {tuple(getattr(images, 'shape', ()))}"
        )
    network.eval()
    dropout_layers = _dropout_layers(network, samples)
    device = next(network.parameters()).device
    # The arguments of `network_outputs` that the network computes.
    arrays: dict[str, Array] = {}
    with torch.inference_mode(), torch.random.fork_rng(devices=accelerators(device)):
        _seed_dropout(device, seed)
        n_images = len(images)
        block_size = _block_size(network, images)
        for start in range(0, n_images, block_size):
            block = slice(start, min(start + block_size, n_images))
            feature_maps = _before_dropout(network, images[block].to(device))
            output = _after_dropout(network, feature_maps)
            outputs = _pass_outputs(objective, output, with_features=True)
            _store_block(arrays, block, (n_images,), outputs)
            for layer in dropout_layers:
                layer.train()
            for i in range(samples):
                output = _after_dropout(network, feature_maps)
                outputs = _pass_outputs(objective, output, with_features=False)
                sampled = {_SAMPLED_NAMES[name]: array for name, array in outputs.items()}
                _store_block(arrays, (block, i), (n_images, samples), sampled)
            for layer in dropout_layers:
                layer.eval()
            if on_share is not None:
                on_share(block.stop / n_images)
    return network_outputs(
        labels=np.asarray(labels), source_indices=np.asarray(source_indices), **arrays
    )


def _block_size(network: Network, images: Tensor) -> int:
    """Return the number of images per block, which is smaller for large images."""
    _, _, height, width = images.shape
    # Some backbones resize the images to this height and width.
    side = getattr(network.backbone, "side", 0)
    n_pixels = side**2 or height * width
    return max(1, min(_MAX_BLOCK_SIZE, _MAX_BLOCK_PIXELS // n_pixels))


def _backbones(network: Network) -> list[Any]:
    """Return the backbones of a network, of which there are one or two."""
    return [backbone for backbone in (network.backbone, network.twin) if backbone is not None]


def _before_dropout(network: Network, block: Tensor) -> list[Tensor]:
    """Run the layers before the first dropout layer, whose output is deterministic."""
    return [
        backbone.before_dropout(block) if isinstance(backbone, Backbone) else block
        for backbone in _backbones(network)
    ]


def _after_dropout(network: Network, feature_maps: list[Tensor]) -> Output:
    """Run the remaining layers on the output of `_before_dropout`."""
    features = [
        backbone.after_dropout(maps) if isinstance(backbone, Backbone) else backbone(maps)
        for backbone, maps in zip(_backbones(network), feature_maps, strict=True)
    ]
    output: Output = network.head(*features)
    return output


def _dropout_layers(network: Network, samples: int) -> list[Any]:
    """Return the dropout layers with positive probability, or an empty list if `samples` is 0."""
    if not samples:
        return []
    layers = [
        module for module in network.modules() if isinstance(module, _DropoutNd) and module.p > 0
    ]
    if not layers:
        raise InputError(
            "the network has no dropout, so that all samples would be equal; make the model with "
            "`dropout` above 0, or set `samples=0`"
        )
    return layers


def _seed_dropout(device: Any, seed: int) -> None:
    """Seed the random number generators of the CPU and one other device."""
    # `torch.manual_seed` would seed all devices.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _pass_outputs(objective: Objective, output: Output, *, with_features: bool) -> dict[str, Array]:
    """Compute the outputs of one pass, and copy them to NumPy arrays."""
    tensors = {"logits": at_least_float32(objective.class_logits(output))}
    if with_features:
        tensors["features"] = at_least_float32(output.features)
    # Without a confidence branch, the confidence is a function of the logits and is not stored.
    if output.confidence is not None or output.abstention is not None:
        tensors["confidence"] = at_least_float32(objective.confidence(output))
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


def _store_block(
    arrays: dict[str, Array], index: Any, shape: tuple[int, ...], outputs: dict[str, Array]
) -> None:
    """Write the outputs of a block to `arrays`, and create the arrays for the first block."""
    for name, array in outputs.items():
        if name not in arrays:
            arrays[name] = np.empty((*shape, *array.shape[1:]), dtype=array.dtype)
        arrays[name][index] = array
