"""Define the available models, whose weights are random or are read from a file."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from abstain._foundation.archives import verify_archive
from abstain._foundation.catalogue import Catalogue
from abstain._foundation.lazy_imports import is_installed
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain_bench._torch import torch
from abstain_bench.networks.backbone import Backbone, Resized, Tensor
from abstain_bench.networks.convolutional import (
    NINETEEN,
    THIRTEEN,
    VGG,
    PreResNet,
    ResNet,
    SmallConv,
    StreetConv,
    WideResNet,
    vgg13_as_run,
)
from abstain_bench.networks.vit import ViT


@dataclass(frozen=True)
class Model:
    """An entry of the catalogue of models.

    Attributes
    ----------
    name : str
        Unique name of the model.
    title : str
        Title in tables.
    source : str
        Papers and code that define the model.
    build : callable
        Function that creates the backbone. The function receives `channels`, `dropout` and, if
        `needs_image_side` is True, `side`.
    side : int
        Required height and width of images, or 0 if any size is valid.
    min_side : int
        Minimum height and width of images.
    needs_image_side : bool
        Whether `build` needs the side of the images, which must be square.
    """

    name: str
    title: str
    source: str
    build: Callable[..., Backbone]
    side: int = 32
    min_side: int = 8
    needs_image_side: bool = False

    def make(
        self,
        shape: tuple[int, int, int],
        *,
        seed: int,
        dropout: float = 0.0,
        weights: str | Path | None = None,
        side: int = 0,
    ) -> Backbone:
        """Create the backbone with random weights, or load the weights from a file.

        If `side` is not 0, the backbone resizes its input images to this height and width.
        """
        input_shape = (shape[0], side, side) if side else shape
        self._check_shape(input_shape)
        options: dict[str, Any] = {"side": input_shape[1]} if self.needs_image_side else {}
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            backbone = self.build(channels=shape[0], dropout=dropout, **options)
        if weights is not None:
            load_weights(backbone, weights)
        return Resized(backbone, side) if side else backbone

    def _check_shape(self, shape: tuple[int, int, int]) -> None:
        """Raise InputError if the model does not support images of this size."""
        _, height, width = shape
        if self.side and (height, width) != (self.side, self.side):
            rule = f"of {self.side} x {self.side}"
        elif min(height, width) < self.min_side:
            rule = f"of at least {self.min_side} x {self.min_side}"
        elif self.needs_image_side and height != width:
            rule = "that are square"
        else:
            return
        raise InputError(
            f"the model {self.name!r} takes images {rule}; got {height} x {width}. "
            "'small-conv' takes any size from 8 x 8 on."
        )


def n_parameters(model: "torch.nn.Module") -> int:
    """Return the number of trainable parameters.

    Examples
    --------
    >>> from abstain_bench.networks import MODELS, n_parameters
    >>> backbone = MODELS["vgg16-bn"].make((3, 32, 32), seed=0)
    >>> n_parameters(backbone) + 10 * (backbone.width + 1)
    14728266
    """
    trainable = (parameter for parameter in model.parameters() if parameter.requires_grad)
    return sum(parameter.numel() for parameter in trainable)


#: All models by name.
MODELS: Catalogue[Model] = Catalogue("model")

_VGG_SOURCE = "Simonyan & Zisserman 2015, for CIFAR"
_RESNET_SOURCE = "He et al. 2015, with a first layer for images of 32 x 32"
_cifar_resnet = partial(ResNet, small_pictures=True)
_MODELS = (
    Model("small-conv", "small conv net", "abstain", SmallConv, side=0),
    Model("tiny-conv", "tiny conv net", "abstain", partial(SmallConv, widths=(8, 16, 24)), side=0),
    Model(
        "vgg13",
        "VGG-13",
        "Simonyan & Zisserman 2015, as in FD-Shifts",
        partial(VGG, maps=THIRTEEN, hidden=512),
    ),
    Model(
        "vgg13-fd-shifts",
        "VGG-13, as FD-Shifts runs it",
        "Simonyan & Zisserman 2015; Jaeger et al. 2023",
        vgg13_as_run,
    ),
    Model(
        "street-conv",
        "small conv net for house numbers",
        "Corbière et al. 2019; Jaeger et al. 2023",
        StreetConv,
    ),
    Model("vgg16-bn", "VGG16-BN", _VGG_SOURCE, VGG),
    Model("vgg13-bn", "VGG13-BN", _VGG_SOURCE, partial(VGG, maps=THIRTEEN)),
    Model("vgg19-bn", "VGG19-BN", _VGG_SOURCE, partial(VGG, maps=NINETEEN)),
    Model(
        "resnet18-cifar",
        "ResNet-18 for CIFAR",
        _RESNET_SOURCE,
        partial(_cifar_resnet, blocks=(2, 2, 2, 2), bottlenecks=False),
    ),
    Model(
        "resnet34-cifar",
        "ResNet-34 for CIFAR",
        _RESNET_SOURCE,
        partial(_cifar_resnet, blocks=(3, 4, 6, 3), bottlenecks=False),
    ),
    Model("resnet50-cifar", "ResNet-50 for CIFAR", _RESNET_SOURCE, _cifar_resnet),
    *(
        Model(f"preresnet-{n}", f"PreResNet-{n}", "He et al. 2016", partial(PreResNet, n))
        for n in (20, 56, 110, 164)
    ),
    Model("wrn-28-10", "WideResNet-28x10", "Zagoruyko & Komodakis 2016", WideResNet),
    Model("resnet50", "ResNet-50", "He et al. 2015", ResNet, side=0, min_side=32),
    Model(
        "vit-b16",
        "ViT-B/16",
        "Dosovitskiy et al. 2021, from timm",
        ViT,
        side=0,
        min_side=16,
        needs_image_side=True,
    ),
)
for _model in _MODELS:
    MODELS.add(_model)

#: Prefixes of the weights of the last layer in published files, which are not loaded.
_LAST_LAYER_PREFIXES = ("fc.", "head.", "classifier.")
#: Keys under which published files store the weights.
_WRAPPER_KEYS = ("state_dict", "model")
#: Suffix of the batch counts of batch normalization, which files of old versions of torch lack.
_BATCH_COUNT_SUFFIX = "num_batches_tracked"


def load_weights(backbone: Backbone, path: str | Path) -> None:
    """Load trained weights, except those of the final layer, into a backbone.

    The file contains named tensors in the safetensors format or in the format of `torch.save`.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file of weights {str(file)!r}")
    read = _read_safetensors if file.suffix == ".safetensors" else _read_torch_file
    file_weights = {
        name: tensor
        for name, tensor in read(file).items()
        if not name.startswith(_LAST_LAYER_PREFIXES)
    }
    initial = backbone.state_dict()
    batch_counts = {
        name: count for name, count in initial.items() if name.endswith(_BATCH_COUNT_SUFFIX)
    }
    weights = batch_counts | backbone.rename_weights(file_weights)
    _check_names_and_shapes(file, initial, weights)
    backbone.load_state_dict(weights)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read a file of safetensors."""
    if not is_installed("safetensors"):
        raise MissingInputError(f"{str(path)!r} is read with safetensors: pip install safetensors")
    safetensors: Any = import_module("safetensors")
    try:
        tensors: dict[str, Tensor] = import_module("safetensors.torch").load_file(path)
    except safetensors.SafetensorError as error:
        raise FileFormatError(
            f"{str(path)!r} is no safetensors file or a damaged one ({error}); get it anew"
        ) from None
    return tensors


def _read_torch_file(path: Path) -> dict[str, Tensor]:
    """Read named tensors from a file that `torch.save` wrote."""
    try:
        # Files of torch from before 2020 are not archives and have no checksums.
        if zipfile.is_zipfile(path):
            verify_archive(path, "a file of torch")
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001  a damaged archive can raise any error
        _raise_invalid_weights(path, f"cannot be read as tensors ({type(error).__name__})")
    tensors = _unwrap_weights(content)
    if not isinstance(tensors, dict) or not tensors:
        _raise_invalid_weights(path, "has no named tensors")
    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor):
            _raise_invalid_weights(path, f"has entries that are no tensors ({name!r})")
    return tensors


def _unwrap_weights(content: Any) -> Any:
    """Return the weights from the content of a file, in which they may be nested."""
    for key in _WRAPPER_KEYS:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    return content


def _raise_invalid_weights(path: Path, problem: str) -> NoReturn:
    raise FileFormatError(
        f"{str(path)!r} {problem}; use the safetensors file of these weights, or a state_dict"
    ) from None


def _check_names_and_shapes(
    path: Path, expected: dict[str, Tensor], weights: dict[str, Tensor]
) -> None:
    """Raise an error if weights are missing or unexpected, or if their shapes do not match."""
    problem = _difference(expected, weights)
    if problem:
        raise FileFormatError(f"{str(path)!r} has the weights of another model: it {problem}")


def _difference(expected: dict[str, Tensor], weights: dict[str, Tensor]) -> str:
    """Describe the first missing name, unexpected name or mismatched shape."""
    missing = sorted(expected.keys() - weights.keys())
    if missing:
        return f"lacks {missing[0]!r}"
    surplus = sorted(weights.keys() - expected.keys())
    if surplus:
        return f"also has {surplus[0]!r}"
    for name, tensor in expected.items():
        shape, expected_shape = tuple(weights[name].shape), tuple(tensor.shape)
        if shape != expected_shape:
            return f"has {name!r} of shape {shape}, not {expected_shape}"
    return ""
