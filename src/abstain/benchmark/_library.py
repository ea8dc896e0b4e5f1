"""torch, or one line that says what is missing."""

try:
    import torch
except Exception as error:  # noqa: BLE001  a library that breaks on import raises anything
    if not isinstance(error, ModuleNotFoundError) or error.name != "torch":
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        msg = f"torch cannot be imported ({first})"
        raise ImportError(msg) from None
    msg = "abstain.benchmark needs torch: pip install 'abstain[benchmark]'"
    raise ModuleNotFoundError(msg, name="torch") from None

__all__ = ["torch"]
