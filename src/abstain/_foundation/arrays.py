"""Convert arrays of any library to NumPy arrays, and convert results back to the input library.

Arrays in host memory are converted to NumPy arrays, without a copy if possible. Arrays on a device
or with a gradient are not converted.
"""

import sys
from typing import Any

import numpy as np

from abstain.errors import InputError
from abstain.typing import AnyArray, Array, Scalar

_HOST_TYPES = (np.ndarray, np.generic, float, int, list, tuple)
_JAX = ("jax", "jaxlib")


def is_torch(x: object) -> bool:
    """Return whether `x` is a PyTorch tensor. This does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_numpy(x: object) -> bool:
    """Return whether `x` is a NumPy array."""
    return isinstance(x, np.ndarray)


def library_of(x: object) -> str:
    """Return the name of the package that defines the type of `x`."""
    return type(x).__module__.split(".")[0]


def is_on_device(x: Any) -> bool:
    """Return whether `x` is an array in the memory of a device such as a GPU.

    For arrays on Apple's GPUs, which do not support double precision, the result is False.
    """
    if isinstance(x, _HOST_TYPES):
        return False
    if is_torch(x):
        return x.device.type not in {"cpu", "mps"}
    library = library_of(x)
    if library in _JAX:
        return not is_traced(x) and any(d.platform != "cpu" for d in x.devices())
    if library == "array_api_strict":
        # The second device of this library simulates a device, but is in host memory.
        return bool(x.device != namespace(x).Device("CPU_DEVICE"))
    return library == "cupy"


def is_traced(x: object) -> bool:
    """Return whether `x` is a tracer of a JAX transformation, such as `jax.grad`."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


def to_numpy(x: AnyArray, name: str) -> Array:
    """Return `x` as a NumPy array, without a copy if possible. Convert bfloat16 to float32."""
    if isinstance(x, np.ndarray):
        # Subclasses such as masked arrays and matrices define other arithmetic operations.
        if type(x) is not np.ndarray:
            _reject_masked(x, name)
            return np.asarray(x)
        return x
    if is_torch(x):
        return _from_torch(x, name)
    x = _copy_to_host(x, name)
    try:
        out = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}` must be an array; got {type(x).__name__}, which NumPy refuses: {error}"
        ) from error
    return _widen_extension(out)


def _copy_to_host(x: Any, name: str) -> Any:
    """Copy an array to host memory without its gradient."""
    library = library_of(x)
    if library == "cupy":
        return x.get()
    if is_traced(x):
        return primal(x, name)
    if library == "array_api_strict" and is_on_device(x):
        return x.to_device(namespace(x).Device("CPU_DEVICE"))
    return x.to_numpy() if hasattr(x, "to_numpy") else x


def primal(x: Any, name: str) -> Any:
    """Return the values of a JAX tracer without gradient, or raise an InputError in `jax.jit`."""
    x = sys.modules["jax"].lax.stop_gradient(x)
    if is_traced(x):
        raise InputError(
            f"`{name}` has no values inside jax.jit or jax.vmap, and ties decide the shapes here; "
            "call this outside of them (jax.grad and jax.value_and_grad work)"
        )
    return x


def _reject_masked(x: Array, name: str) -> None:
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InputError(f"`{name}` is a masked array with masked entries; drop or fill them first")


def _from_torch(x: Any, name: str) -> Array:
    """Convert a PyTorch tensor to a NumPy array, and convert bfloat16 to float32."""
    x = x.detach().cpu()
    torch = sys.modules["torch"]
    if x.dtype == torch.bfloat16:
        x = x.to(torch.float32)
    try:
        values: Array = x.numpy()
    except RuntimeError as error:
        raise InputError(
            f"`{name}` has no values that NumPy can read, as inside torch.func.vmap: {error}"
        ) from error
    return values


def _widen_extension(x: Array) -> Array:
    """Convert dtypes of the package ml_dtypes, such as bfloat16, to float32."""
    if x.dtype.kind == "V" and x.dtype.name in {"bfloat16", "float8_e4m3fn", "float8_e5m2"}:
        return x.astype(np.float32)
    return x


def read_only(x: AnyArray) -> Any:
    """Return a read-only view of a NumPy array. Arrays of other libraries are unchanged."""
    if not isinstance(x, np.ndarray):
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def inner(x: Array, y: Array) -> float:
    """Compute the inner product of two NumPy vectors without BLAS.

    The result of BLAS depends on the number of threads because of rounding errors.
    """
    return float(np.einsum("i,i->", x, y))


def as_array_like(result: AnyArray, reference: AnyArray) -> AnyArray:
    """Convert a NumPy result to the library and device of `reference`.

    Results that are not NumPy arrays are returned unchanged.
    """
    if not isinstance(result, np.ndarray):
        return result
    if is_torch(reference):
        torch = sys.modules["torch"]
        # The result is copied, because PyTorch has no read-only tensors.
        tensor = torch.from_numpy(np.array(result))
        if reference.device.type == "mps" and tensor.dtype == torch.float64:
            tensor = tensor.to(torch.float32)
        return tensor.to(reference.device)
    library = library_of(reference)
    if library in {"cupy", *_JAX} or hasattr(reference, "__array_namespace__"):
        return _through_namespace(result, reference)
    return result


def _through_namespace(result: Array, reference: AnyArray) -> AnyArray:
    from array_api_compat import array_namespace, device

    if isinstance(reference, np.ndarray):
        return result
    xp = array_namespace(reference)
    # A tracer has no device.
    return xp.asarray(result, device=None if is_traced(reference) else device(reference))


def namespace(x: AnyArray) -> Any:
    """Return the array-API namespace of an array."""
    if isinstance(x, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(x)


def move_to_library_of(x: AnyArray, name: str, reference: AnyArray) -> AnyArray:
    """Convert `x` to an array of the library and device of `reference`."""
    from array_api_compat import device, is_array_api_obj, to_device

    xp = namespace(reference)
    # A tracer has no device.
    target_device = None if is_traced(reference) else device(reference)
    if is_array_api_obj(x) and namespace(x) is xp:
        return x if target_device is None or is_traced(x) else to_device(x, target_device)
    # The array is copied, because some libraries reject read-only arrays and negative strides.
    return xp.asarray(np.array(to_numpy(x, name), order="C"), device=target_device)


def bfloat16_bits(x: AnyArray) -> Array | None:
    """Return the bit patterns of a bfloat16 vector as uint16, or None for other dtypes."""
    if isinstance(x, np.ndarray):
        is_bfloat16 = x.dtype.kind == "V" and x.dtype.name == "bfloat16"
        return x.view(np.uint16) if is_bfloat16 else None
    if not is_torch(x):
        return None
    torch = sys.modules["torch"]
    if x.dtype != torch.bfloat16:
        return None
    patterns: Array = x.detach().cpu().view(torch.int16).numpy().view(np.uint16)
    return patterns


# ------------------------------------------------------------------------------------ gradients
def carries_gradient(x: Any) -> bool:
    """Return whether the array library tracks the gradient of `x`."""
    if isinstance(x, _HOST_TYPES):
        return False
    if is_torch(x):
        return bool(x.requires_grad) and bool(sys.modules["torch"].is_grad_enabled())
    return is_traced(x)


def is_computed_by_own_library(x: Any) -> bool:
    """Return whether `x` is on a device or has a gradient, so it must stay in its library."""
    return not isinstance(x, np.ndarray) and (is_on_device(x) or carries_gradient(x))


def without_gradient(x: Any) -> Any:
    """Return `x` detached from its gradient, or None if `x` is None."""
    if is_torch(x):
        return x.detach()
    return sys.modules["jax"].lax.stop_gradient(x) if is_traced(x) else x


def as_scalar(x: Any) -> Scalar:
    """Return `x` as a float, or as a zero-dimensional array if it has a gradient."""
    if isinstance(x, float):
        return float(x)
    result: Scalar = x if carries_gradient(x) else float(x)
    return result


def value_with_gradient(x: Any, value: Any) -> Any:
    """Return an array with the values of `value` and the gradient of `x`."""
    return x + without_gradient(value - x) if carries_gradient(x) else value


def as_double(x: AnyArray) -> AnyArray:
    """Return `x` in double precision, or in the highest precision of its library."""
    xp = namespace(x)
    return xp.astype(x, double_dtype(xp))


def double_dtype(xp: Any) -> Any:
    """Return float64, or float32 in JAX without x64."""
    if xp.__name__.startswith("jax"):
        return sys.modules["jax"].dtypes.canonicalize_dtype(np.float64)
    return xp.float64


def as_double_like(values: AnyArray, reference: AnyArray) -> AnyArray:
    """Convert NumPy values to double precision, in the library and on the device of `reference`."""
    host = np.asarray(values, dtype=np.float64)
    if isinstance(reference, np.ndarray):
        return host
    if is_traced(reference) or library_of(reference) in {"jax", "jaxlib"}:
        xp = sys.modules["jax"].numpy
        return xp.asarray(host.astype(double_dtype(xp)))
    return as_double(move_to_library_of(host, "values", reference))


def stack_scalars(values: list[Any]) -> AnyArray:
    """Stack floats and zero-dimensional arrays into one array, and keep their gradients."""
    with_gradient = [value for value in values if carries_gradient(value)]
    if not with_gradient:
        return np.array(values, dtype=np.float64)
    # Adding a zero of the library converts floats to arrays of the library.
    zero = without_gradient(with_gradient[0]) * 0.0
    return namespace(zero).stack([zero + value for value in values])
