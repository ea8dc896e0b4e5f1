"""Arrays of any library in, the caller's kind out.

The only module that imports the array-API layer. Arrays on a CPU (NumPy, PyTorch, JAX, lists,
series) are viewed as NumPy without a copy where their library allows it. Arrays on a device, and
those a gradient flows through, stay with their library; see `abstain._foundation.gradients`.
"""

import sys
from typing import Any

import numpy as np

from abstain.errors import InputError
from abstain.typing import AnyArray, Array

_HELD_BY_HOST = (np.ndarray, list, tuple)
_JAX = ("jax", "jaxlib")


def is_torch(x: object) -> bool:
    """Tell whether `x` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_numpy(x: object) -> bool:
    """Tell whether `x` is an array of NumPy."""
    return isinstance(x, np.ndarray)


def library_of(x: object) -> str:
    """Return the name of the package that the type of `x` comes from."""
    return type(x).__module__.split(".")[0]


def is_on_device(x: Any) -> bool:
    """Tell whether `x` is an array that lives outside the host's memory.

    Apple's GPU knows no double precision, so its arrays are copied to the host like those of a
    CPU.
    """
    if isinstance(x, _HELD_BY_HOST):
        return False
    if is_torch(x):
        return x.device.type not in {"cpu", "mps"}
    library = library_of(x)
    if library in _JAX:
        return not is_traced(x) and any(d.platform != "cpu" for d in x.devices())
    if library == "array_api_strict":
        # Its second device is in the host's memory too, but behaves as if it were not.
        return bool(x.device != namespace(x).Device("CPU_DEVICE"))
    return library == "cupy"


def is_traced(x: object) -> bool:
    """Tell whether `x` stands for an array inside a transformation of JAX, such as `jax.grad`."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


def to_numpy(x: AnyArray, name: str) -> Array:
    """View or copy `x` as a NumPy array on the host; 16-bit brain floats widen exactly."""
    if isinstance(x, np.ndarray):
        # A masked array or a matrix would smuggle in its own arithmetic.
        if type(x) is not np.ndarray:
            _refuse_masked(x, name)
            return np.asarray(x)
        return x
    if is_torch(x):
        return _from_torch(x, name)
    x = _held_by_host(x, name)
    try:
        out = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}` must be an array; got {type(x).__name__}, which NumPy refuses: {error}"
        ) from error
    return _widen_extension(out)


def _held_by_host(x: Any, name: str) -> Any:
    """Return what NumPy can read: values behind a gradient, a copy of what is on a device."""
    library = library_of(x)
    if library == "cupy":
        return x.get()
    if is_traced(x):
        return primal(x, name)
    if library == "array_api_strict" and is_on_device(x):
        return x.to_device(namespace(x).Device("CPU_DEVICE"))
    return x.to_numpy() if hasattr(x, "to_numpy") else x


def primal(x: Any, name: str) -> Any:
    """Return the values of an array inside a transformation of JAX, if it has any there."""
    x = sys.modules["jax"].lax.stop_gradient(x)
    if is_traced(x):
        raise InputError(
            f"`{name}` has no values inside jax.jit or jax.vmap, and ties decide the shapes here; "
            "call this outside of them (jax.grad and jax.value_and_grad work)"
        )
    return x


def _refuse_masked(x: Array, name: str) -> None:
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InputError(f"`{name}` is a masked array with masked entries; drop or fill them first")


def _from_torch(x: Any, name: str) -> Array:
    x = x.detach().cpu()
    torch = sys.modules["torch"]
    if x.dtype == torch.bfloat16:
        x = x.to(torch.float32)
    try:
        out: Array = x.numpy()
    except RuntimeError as error:
        raise InputError(
            f"`{name}` has no values that NumPy can read, as inside torch.func.vmap: {error}"
        ) from error
    return out


def _widen_extension(x: Array) -> Array:
    """Widen dtypes that NumPy knows only through ml_dtypes (JAX's bfloat16) to float32."""
    if x.dtype.kind == "V" and x.dtype.name in {"bfloat16", "float8_e4m3fn", "float8_e5m2"}:
        return x.astype(np.float32)
    return x


def read_only(x: AnyArray) -> Any:
    """View an array read-only, so that no later step can write to the caller's data.

    Other libraries have no such view; nothing here writes to their arrays.
    """
    if not isinstance(x, np.ndarray):
        return x
    out = x.view()
    out.flags.writeable = False
    return out


def inner(x: Array, y: Array) -> float:
    """Sum the products of two vectors of the host on this thread alone.

    A product by BLAS wakes a thread for each core, which then waits for more on its core, and what
    it rounds to depends on how many there are.
    """
    return float(np.einsum("i,i->", x, y))


def as_array_like(result: AnyArray, reference: AnyArray) -> AnyArray:
    """Return `result` as an array of the library and device of `reference`.

    What was computed by another library than NumPy stays as it is.
    """
    if not isinstance(result, np.ndarray):
        return result
    if is_torch(reference):
        torch = sys.modules["torch"]
        # A tensor of its own: torch cannot guard memory that is read-only here.
        own = torch.from_numpy(np.array(result))
        if reference.device.type == "mps" and own.dtype == torch.float64:
            own = own.to(torch.float32)
        return own.to(reference.device)
    library = library_of(reference)
    if library in {"cupy", *_JAX} or hasattr(reference, "__array_namespace__"):
        return _through_namespace(result, reference)
    return result


def _through_namespace(result: Array, reference: AnyArray) -> AnyArray:
    from array_api_compat import array_namespace, device

    if isinstance(reference, np.ndarray):
        return result
    xp = array_namespace(reference)
    # Inside a transformation an array has no device of its own to name.
    return xp.asarray(result, device=None if is_traced(reference) else device(reference))


def namespace(x: AnyArray) -> Any:
    """Return the array-API namespace of an array of any library."""
    if isinstance(x, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(x)


def move_to_library_of(x: AnyArray, name: str, reference: AnyArray) -> AnyArray:
    """Return `x` as an array of the library and on the device of `reference`."""
    from array_api_compat import device, is_array_api_obj, to_device

    xp = namespace(reference)
    # Inside a transformation an array has no device of its own to name.
    place = None if is_traced(reference) else device(reference)
    if is_array_api_obj(x) and namespace(x) is xp:
        return x if place is None or is_traced(x) else to_device(x, place)
    # An array of its own: not every library takes one that is read-only or runs backwards.
    return xp.asarray(np.array(to_numpy(x, name), order="C"), device=place)


def bfloat16_bits(x: AnyArray) -> Array | None:
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
