"""The catalogue of models: what each is, and how one is made, with fresh weights or from a file."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from abstain._foundation.archives import verify_archive
from abstain._foundation.catalogue import Catalogue
from abstain._foundation.optional_packages import is_installed
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain_bench._torch import torch
from abstain_bench.networks.backbone import Backbone, Tensor
from abstain_bench.networks.fd_shifts import StreetConv, vgg13_as_run
from abstain_bench.networks.plain import NINETEEN, THIRTEEN, VGG, SmallConv
from abstain_bench.networks.residual import PreResNet, ResNet, WideResNet
from abstain_bench.networks.vit import ViT
from abstain_bench.networks.zoom import Resized


@dataclass(frozen=True)
class Model:
    """What the catalogue knows of a model.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    source : str
        Where it is defined.
    build : callable
        Makes it; takes `channels` and `dropout`, and `side` where it is made for one size.
    side : int
        Height and width that the images must have; 0 where others will do.
    least : int
        The smallest height and width.
    made_for_size : bool
        Whether `build` must be told the size of the images, which must be square.
    """

    name: str
    title: str
    source: str
    build: Callable[..., Backbone]
    side: int = 32
    least: int = 8
    made_for_size: bool = False

    def make(
        self,
        shape: tuple[int, int, int],
        *,
        seed: int,
        dropout: float = 0.0,
        weights: str | Path | None = None,
        side: int = 0,
    ) -> Backbone:
        """Make a model with fresh weights, or with trained ones from a file."""
        seen = (shape[0], side, side) if side else shape
        self._check(seen)
        options: dict[str, Any] = {"side": seen[1]} if self.made_for_size else {}
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            out = self.build(channels=shape[0], dropout=dropout, **options)
        if weights is not None:
            load_weights(out, weights)
        return Resized(out, side) if side else out

    def _check(self, shape: tuple[int, int, int]) -> None:
        """Refuse images of a size that the model does not take."""
        _, height, width = shape
        if self.side and (height, width) != (self.side, self.side):
            rule = f"of {self.side} x {self.side}"
        elif min(height, width) < self.least:
            rule = f"of at least {self.least} x {self.least}"
        elif self.made_for_size and height != width:
            rule = "that are square"
        else:
            return
        raise InputError(
            f"the model {self.name!r} takes images {rule}; got {height} x {width}. "
            "'small-conv' takes any size from 8 x 8 on."
        )


def parameters(model: "torch.nn.Module") -> int:
    """Count the numbers that training changes.

    Examples
    --------
    >>> from abstain_bench.networks import MODELS, parameters
    >>> backbone = MODELS["vgg16-bn"].make((3, 32, 32), seed=0)
    >>> parameters(backbone) + 10 * (backbone.width + 1)
    14728266
    """
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


#: Every model by name.
MODELS: Catalogue[Model] = Catalogue("model")

MODELS.add(Model("small-conv", "small conv net", "abstain", SmallConv, side=0))
MODELS.add(
    Model("tiny-conv", "tiny conv net", "abstain", partial(SmallConv, widths=(8, 16, 24)), side=0)
)
MODELS.add(
    Model(
        "vgg13",
        "VGG-13",
        "Simonyan & Zisserman 2015, as in FD-Shifts",
        partial(VGG, maps=THIRTEEN, hidden=512),
    )
)
MODELS.add(
    Model(
        "vgg13-fd-shifts",
        "VGG-13, as FD-Shifts runs it",
        "Simonyan & Zisserman 2015; Jaeger et al. 2023",
        vgg13_as_run,
    )
)
MODELS.add(
    Model(
        "street-conv",
        "small conv net for house numbers",
        "Corbière et al. 2019; Jaeger et al. 2023",
        StreetConv,
    )
)
MODELS.add(Model("vgg16-bn", "VGG16-BN", "Simonyan & Zisserman 2015, for CIFAR", VGG))
for _layers, _of_vgg in ((13, THIRTEEN), (19, NINETEEN)):
    MODELS.add(
        Model(
            f"vgg{_layers}-bn",
            f"VGG{_layers}-BN",
            "Simonyan & Zisserman 2015, for CIFAR",
            partial(VGG, maps=_of_vgg),
        )
    )
for _layers, _blocks in ((18, (2, 2, 2, 2)), (34, (3, 4, 6, 3)), (50, (3, 4, 6, 3))):
    MODELS.add(
        Model(
            f"resnet{_layers}-cifar",
            f"ResNet-{_layers} for CIFAR",
            "He et al. 2015, with a first layer for images of 32 x 32",
            partial(ResNet, blocks=_blocks, bottlenecks=_layers == 50, small_pictures=True),
        )
    )
for _depth in (20, 56, 110, 164):
    MODELS.add(
        Model(
            f"preresnet-{_depth}",
            f"PreResNet-{_depth}",
            "He et al. 2016",
            partial(PreResNet, _depth),
        )
    )
MODELS.add(Model("wrn-28-10", "WideResNet-28x10", "Zagoruyko & Komodakis 2016", WideResNet))
MODELS.add(Model("resnet50", "ResNet-50", "He et al. 2015", ResNet, side=0, least=32))
MODELS.add(
    Model(
        "vit-b16",
        "ViT-B/16",
        "Dosovitskiy et al. 2021, from timm",
        ViT,
        side=0,
        least=16,
        made_for_size=True,
    )
)


#: What the last layer is called in published files; an objective makes its own.
_LAST = ("fc.", "head.", "classifier.")
#: Where published files keep the weights beside other things.
_WITHIN = ("state_dict", "model")
#: Of batch norm; files of old versions of torch lack it.
_COUNT = "num_batches_tracked"


def load_weights(backbone: Backbone, path: str | Path) -> None:
    """Put trained weights into a backbone; the last layer of the file is left out.

    The file holds tensors by name: safetensors, or what `torch.save` wrote.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file of weights {str(path)!r}")
    read = _safetensors if path.suffix == ".safetensors" else _torch
    found = {name: x for name, x in read(path).items() if not name.startswith(_LAST)}
    own = backbone.state_dict()
    found = {**{k: v for k, v in own.items() if k.endswith(_COUNT)}, **backbone.renamed(found)}
    _refuse_other(path, own, found)
    backbone.load_state_dict(found)


def _safetensors(path: Path) -> dict[str, Tensor]:
    if not is_installed("safetensors"):
        raise MissingInputError(f"{str(path)!r} is read with safetensors: pip install safetensors")
    safetensors: Any = import_module("safetensors")
    try:
        out: dict[str, Tensor] = import_module("safetensors.torch").load_file(path)
    except safetensors.SafetensorError as error:
        raise FileFormatError(
            f"{str(path)!r} is no safetensors file or a damaged one ({error}); get it anew"
        ) from None
    return out


def _torch(path: Path) -> dict[str, Tensor]:
    try:
        # Files of torch from before 2020 are no archives and hold no checksums.
        if zipfile.is_zipfile(path):
            verify_archive(path, "a file of torch")
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001  a damaged archive raises anything
        _refuse(path, f"cannot be read as tensors alone ({type(error).__name__})")
    for name in _WITHIN:
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found = found[name]
    if not isinstance(found, dict) or not found:
        _refuse(path, "holds no tensors by name")
    odd = [name for name, x in found.items() if not isinstance(x, torch.Tensor)]
    if odd:
        _refuse(path, f"holds other things than tensors ({odd[0]!r})")
    return found


def _refuse(path: Path, what: str) -> NoReturn:
    raise FileFormatError(
        f"{str(path)!r} {what}; give the safetensors file of these weights, or a state_dict"
    ) from None


def _refuse_other(path: Path, own: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    """Refuse weights that are missing, too many or of another shape, and name the first."""
    missing, more = [sorted(a.keys() - b.keys()) for a, b in ((own, found), (found, own))]
    shapes = [k for k in own if k in found and own[k].shape != found[k].shape]
    if not missing and not more and not shapes:
        return
    if missing:
        what = f"lacks {missing[0]!r}"
    elif more:
        what = f"has {more[0]!r} besides"
    else:
        name = shapes[0]
        what = f"has {name!r} of shape {tuple(found[name].shape)}, not {tuple(own[name].shape)}"
    raise FileFormatError(f"{str(path)!r} holds the weights of another model: it {what}")
