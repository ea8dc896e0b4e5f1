"""torch, or one line that says how to get it."""

from collections.abc import Callable
from typing import Any

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    _MSG = "abstain.training needs torch: pip install 'abstain[torch]'"
    raise ImportError(_MSG, name="torch") from None


def uncompiled(function: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Call a function outside of what `torch.compile` traces.

    Ranks are looked up in tables of the host, where a compiler has to stop anyway. The means to
    say so takes a second to import, so it is fetched only where something is being compiled.
    """
    if torch.compiler.is_compiling():
        return torch.compiler.disable(function)(*given, **options)  # type: ignore[no-untyped-call]
    return function(*given, **options)


__all__ = ["torch", "uncompiled"]
