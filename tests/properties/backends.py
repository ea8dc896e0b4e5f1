"""The array libraries that every curve and metric must serve, and data to try them on."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from abstain._foundation import arrays
from abstain._foundation.arrays import namespace, to_numpy
from abstain._foundation.scored import ClassView, Scored


@dataclass(frozen=True)
class Backend:
    """How NumPy arrays become those of a library; `grads` says through which inputs to flow."""

    name: str
    make: Callable[[np.ndarray], Any]
    flows: Callable[[np.ndarray], Any] | None = None

    @property
    def grads(self) -> bool:
        return self.flows is not None

    def differentiable(self, x: np.ndarray) -> Any:
        return (self.flows or self.make)(x)


def _numpy() -> Backend:
    def read_only(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x.setflags(write=False)
        return x

    return Backend("numpy", read_only)


def _torch() -> Backend:
    torch = pytest.importorskip("torch")
    return Backend("torch", torch.tensor)


def _torch_grad() -> Backend:
    torch = pytest.importorskip("torch")
    return Backend("torch_grad", torch.tensor, partial(torch.tensor, requires_grad=True))


def _torch_cuda() -> Backend:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return Backend("torch_cuda", partial(torch.tensor, device="cuda"))


def _strict() -> Backend:
    xp = pytest.importorskip("array_api_strict")
    return Backend("strict", xp.asarray)


def _strict_device() -> Backend:
    """Arrays of this device refuse to become NumPy, so nothing can be brought home unseen."""
    xp = pytest.importorskip("array_api_strict")
    return Backend("strict_device", partial(xp.asarray, device=xp.Device("device1")))


def _jax() -> Backend:
    jax = pytest.importorskip("jax")
    return Backend("jax", jax.numpy.asarray)


BACKENDS = {
    "numpy": _numpy,
    "torch": _torch,
    "torch_grad": _torch_grad,
    "torch_cuda": _torch_cuda,
    "strict": _strict,
    "strict_device": _strict_device,
    "jax": _jax,
}


@dataclass(frozen=True)
class Data:
    """A two-class problem with ties, weights (some zero) and unknown order."""

    confidence: Any
    loss: Any
    errors: Any
    weight: Any
    labels: Any
    prediction: Any
    probabilities: Any
    score: Any


def drawn(n: int = 60, *, seed: int = 0, ties: bool = True) -> Data:
    rng = np.random.default_rng(seed)
    sure, second = rng.random(n), 0.05 + 0.9 * rng.random(n)

    def apart() -> np.ndarray:
        return (rng.permutation(n) + 0.2 + 0.6 * rng.random(n)) / n

    c = np.round(sure, 1) if ties else apart()
    loss = np.round(rng.random(n), 1) if ties else apart()
    labels = rng.integers(0, 2, n)
    return Data(
        confidence=c,
        loss=loss,
        errors=(rng.random(n) < 0.3).astype(float),
        weight=rng.integers(0, 4, n) * 0.75,
        labels=labels,
        prediction=np.where(rng.random(n) < 0.7, labels, 1 - labels),
        probabilities=np.stack([1 - second, second], axis=1),
        score=np.round(second, 1),
    )


def made(backend: Backend, data: Data) -> Data:
    flowing = {"confidence", "loss", "errors", "probabilities"}
    return Data(
        **{
            f.name: (backend.differentiable if f.name in flowing else backend.make)(
                getattr(data, f.name)
            )
            for f in fields(data)
        }
    )


def with_view(s: Scored, data: Data) -> ClassView:
    """Return the class view of the data in the library that computes on `s`."""

    def own(x: Any) -> Any:
        return s.select_samples(to_numpy(x, "x") if s.xp is np else x)

    p = own(data.probabilities)
    log_p = namespace(p).log(p)
    return ClassView(own(data.labels), own(data.prediction), (0, 1), p, log_p)


def numbers(result: Any) -> list[np.ndarray]:
    """Return every number of a result, whatever holds it, as NumPy arrays."""
    if is_dataclass(result):
        return [x for f in fields(result) for x in numbers(getattr(result, f.name))]
    if isinstance(result, tuple):
        return [x for part in result for x in numbers(part)]
    if isinstance(result, dict):
        return [x for part in result.values() for x in numbers(part)]
    if isinstance(result, str) or result is None:
        return []
    x = to_numpy(result, "result")
    return [x.astype(float)] if x.dtype.kind in "biuf" else []


def refuse_to_come_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every copy of a device's array to the host fail."""

    def refuse(x: Any, name: str) -> Any:
        if arrays.is_on_device(x):
            msg = f"`{name}` left its device"
            raise AssertionError(msg)
        return x

    monkeypatch.setattr(arrays, "_copy_to_host", refuse)
