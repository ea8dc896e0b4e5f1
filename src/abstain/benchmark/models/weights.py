"""Trained weights from a file that the user has: read as tensors, never unpickled."""

from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from abstain._foundation.extras import has
from abstain.benchmark._library import torch
from abstain.benchmark.models.backbone import Backbone, Tensor
from abstain.errors import FileFormatError, InputError, MissingInputError

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
        msg = f"there is no file of weights {str(path)!r}"
        raise InputError(msg)
    read = _safetensors if path.suffix == ".safetensors" else _torch
    found = {name: x for name, x in read(path).items() if not name.startswith(_LAST)}
    own = backbone.state_dict()
    found = {**{k: v for k, v in own.items() if k.endswith(_COUNT)}, **backbone.renamed(found)}
    _refuse_other(path, own, found)
    backbone.load_state_dict(found)


def _safetensors(path: Path) -> dict[str, Tensor]:
    if not has("safetensors"):
        msg = f"{str(path)!r} is read with safetensors: pip install safetensors"
        raise MissingInputError(msg)
    safetensors: Any = import_module("safetensors")
    try:
        out: dict[str, Tensor] = import_module("safetensors.torch").load_file(path)
    except safetensors.SafetensorError as error:
        msg = f"{str(path)!r} is no safetensors file or a damaged one ({error}); get it anew"
        raise FileFormatError(msg) from None
    return out


def _torch(path: Path) -> dict[str, Tensor]:
    try:
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
    msg = f"{str(path)!r} {what}; give the safetensors file of these weights, or a state_dict"
    raise FileFormatError(msg) from None


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
    msg = f"{str(path)!r} holds the weights of another model: it {what}"
    raise FileFormatError(msg)
