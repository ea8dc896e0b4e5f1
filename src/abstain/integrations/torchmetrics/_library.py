"""torch and torchmetrics, or one line that says what is missing."""

from typing import Any


def _explained(error: Exception) -> ImportError:
    """Say which of three things went wrong: an absent extra, a broken torchvision, or another."""
    name = getattr(error, "name", None)
    if isinstance(error, ModuleNotFoundError) and name in {"torch", "torchmetrics"}:
        return ImportError(
            f"abstain.integrations.torchmetrics needs {name}: pip install 'abstain[torch]'",
            name=name,
        )
    first = f"{type(error).__name__}: {error}".splitlines()[0]
    if _passed_through(error, "torchvision"):
        return ImportError(
            "torchmetrics imports torchvision where it is installed, and this torchvision does not "
            "fit the installed torch: pip uninstall torchvision, or install the version made for "
            f"this torch ({first})"
        )
    return ImportError(f"torchmetrics cannot be imported ({first})")


def _passed_through(error: BaseException, module: str) -> bool:
    """Tell whether the error, or one that led to it, was raised while `module` ran."""
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
except Exception as error:  # noqa: BLE001  a library that breaks on import raises anything
    raise _explained(error) from None

Metric: Any = torchmetrics.Metric
MetricCollection: Any = torchmetrics.MetricCollection

__all__ = ["Metric", "MetricCollection", "gather_all_tensors", "torch"]
