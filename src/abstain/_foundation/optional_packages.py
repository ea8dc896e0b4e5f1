"""Optional packages: whether they are there, without importing them."""

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def is_installed(module: str) -> bool:
    """Tell whether a top-level module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # Somebody forbade it: a finder refuses it, or None stands among the modules in its place.
        return False


def load_kernels(module: str) -> Any:
    """Return a module of numba kernels; None without numba or if ABSTAIN_NO_NUMBA is 1."""
    return None if os.environ.get("ABSTAIN_NO_NUMBA") == "1" else _loaded(module)


@cache
def _loaded(module: str) -> Any:
    if not is_installed("numba"):
        return None
    try:
        # Not an import statement: numba takes 0.3 s, which only the first use should pay.
        return import_module(module)
    except ImportError:
        # Installed but unusable, say beside a NumPy it does not know: NumPy does the work.
        return None
