"""Optional packages: whether they are there, without importing them."""

from importlib.util import find_spec


def has(module: str) -> bool:
    """Tell whether a top-level module can be imported, without importing it."""
    return find_spec(module) is not None
