"""Optional packages: imported where they are used, with one plain line when absent."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from abstain.errors import MissingExtraError


def has(module: str) -> bool:
    """Tell whether a top-level module can be imported, without importing it."""
    return find_spec(module) is not None


def require(module: str, *, extra: str, needed_by: str) -> ModuleType:
    """Import an optional module, or say what needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        msg = (
            f"{needed_by} needs the package {module!r}, which cannot be imported ({error}). "
            f"Install it with: pip install 'abstain[{extra}]'"
        )
        raise MissingExtraError(msg) from error
