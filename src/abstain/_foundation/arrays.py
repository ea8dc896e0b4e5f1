"""Arrays of any library in, NumPy inside, the caller's kind out.

The only module that imports the array-API layer. Arrays on a CPU (NumPy, PyTorch, JAX, lists,
series) are viewed as NumPy without a copy where their library allows it. Arrays on a device
stay there for the one expensive step, sorting; see `abstain._foundation.device`.
"""

import sys
from typing import Any

import numpy as np

from abstain.errors import InputError
from abstain.typing import AnyArray, Array


def is_torch(x: object) -> bool:
    """Tell whether `x` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_on_device(x: object) -> bool:
    """Tell whether `x` is an array that lives outside the host's memory."""
    if isinstance(x, np.ndarray | list | tuple):
        return False
    if is_torch(x):
        return bool(x.device.type != "cpu")  # type: ignore[attr-defined]
    return type(x).__module__.split(".")[0] == "cupy"


def to_numpy(x: AnyArray, name: str) -> Array:
    """View or copy `x` as a NumPy array on the host; 16-bit brain floats widen exactly."""
    if isinstance(x, np.ndarray):
        # A masked array or a matrix would smuggle in its own arithmetic.
        if type(x) is not np.ndarray:
            _refuse_masked(x, name)
            return np.asarray(x)
        return x
    if is_torch(x):
        return _from_torch(x)
    if hasattr(x, "get") and type(x).__module__.split(".")[0] == "cupy":
        return np.asarray(x.get())
    if hasattr(x, "to_numpy"):
        x = x.to_numpy()
    try:
        out = np.asarray(x)
    except (TypeError, ValueError) as error:
        msg = f"`{name}` must be an array; got {type(x).__name__}, which NumPy refuses: {error}"
        raise InputError(msg) from error
    return _widen_extension(out)


def _refuse_masked(x: Array, name: str) -> None:
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        msg = f"`{name}` is a masked array with masked entries; drop or fill them first"
        raise InputError(msg)


def _from_torch(x: Any) -> Array:
    x = x.detach().cpu()
    torch = sys.modules["torch"]
    if x.dtype == torch.bfloat16:
        x = x.to(torch.float32)
    out: Array = x.numpy()
    return out


def _widen_extension(x: Array) -> Array:
    """Widen dtypes that NumPy knows only through ml_dtypes (JAX's bfloat16) to float32."""
    if x.dtype.kind == "V" and x.dtype.name in {"bfloat16", "float8_e4m3fn", "float8_e5m2"}:
        return x.astype(np.float32)
    return x


def sealed(x: Array) -> Array:
    """View an array read-only, so that no later step can write to the caller's data."""
    out = x.view()
    out.flags.writeable = False
    return out


def like(result: Array, reference: AnyArray) -> AnyArray:
    """Return `result` as an array of the library and device of `reference`."""
    if is_torch(reference):
        torch = sys.modules["torch"]
        # A tensor of its own: torch cannot guard memory that is read-only here.
        return torch.from_numpy(np.array(result)).to(reference.device)
    library = type(reference).__module__.split(".")[0]
    if library in {"cupy", "jax", "jaxlib"} or hasattr(reference, "__array_namespace__"):
        return _through_namespace(result, reference)
    return result


def _through_namespace(result: Array, reference: AnyArray) -> AnyArray:
    from array_api_compat import array_namespace, device

    if isinstance(reference, np.ndarray):
        return result
    xp = array_namespace(reference)
    return xp.asarray(result, device=device(reference))


def namespace(x: AnyArray) -> Any:
    """Return the array-API namespace of an array of any library."""
    from array_api_compat import array_namespace

    return array_namespace(x)


def beside(x: AnyArray, name: str, reference: AnyArray) -> AnyArray:
    """Return `x` as an array of the library and on the device of `reference`."""
    from array_api_compat import device, is_array_api_obj, to_device

    xp = namespace(reference)
    if is_array_api_obj(x) and namespace(x) is xp:
        return to_device(x, device(reference))
    return xp.asarray(to_numpy(x, name), device=device(reference))


def brain_bits(x: AnyArray) -> Array | None:
    """Return the patterns of a bfloat16 vector on the host as uint16; None for any other dtype."""
    if isinstance(x, np.ndarray):
        known = x.dtype.kind == "V" and x.dtype.name == "bfloat16"
        return x.view(np.uint16) if known else None
    if not is_torch(x):
        return None
    torch = sys.modules["torch"]
    if x.dtype != torch.bfloat16:
        return None
    out: Array = x.detach().cpu().view(torch.int16).numpy().view(np.uint16)
    return out
