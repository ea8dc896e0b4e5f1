"""Import torch and torchmetrics. If the import fails, the error message states the cause."""

from typing import Any


def _explained(error: Exception) -> ImportError:
    """Return an error that states the cause, such as a missing extra or a broken torchvision."""
    name = getattr(error, "name", None)
    if isinstance(error, ModuleNotFoundError) and name in {"torch", "torchmetrics"}:
        return ImportError(
            f"abstain.integrations.torchmetrics needs {name}: pip install 'abstain[torch]'",
            name=name,
        )
    first = f"{type(error).__name__}: {error}".splitlines()[0]
    if _passed_through(error, "torchvision"):
        return ImportError(
            "torchmetrics imports torchvision if it is installed, and the installed torchvision is "
            "incompatible with the installed torch: pip uninstall torchvision, or install a "
            f"compatible version ({first})"
        )
    return ImportError(f"torchmetrics cannot be imported ({first})")


def _passed_through(error: BaseException, module: str) -> bool:
    """Return whether the error, or one of its causes, was raised in the given module."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").split(".")[0] == module:
            return True
        trace = trace.tb_next
    cause = error.__cause__ or error.__context__
    return cause is not None and _passed_through(cause, module)


try:
    import torch
    import torchmetrics
    from torchmetrics.utilities.distributed import gather_all_tensors
except Exception as error:  # noqa: BLE001  a broken library can raise any error on import
    raise _explained(error) from None

Metric: Any = torchmetrics.Metric
MetricCollection: Any = torchmetrics.MetricCollection

__all__ = ["Metric", "MetricCollection", "gather_all_tensors", "torch"]
