"""Optional packages: whether they are there, without importing them."""

from importlib.util import find_spec


def has(module: str) -> bool:
    """Tell whether a top-level module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # Somebody forbade it: a finder refuses it, or None stands among the modules in its place.
        return False
