"""Optional packages: whether they are installed, and the compiled kernels."""

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def is_installed(module: str) -> bool:
    """Return whether a top-level module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # The import is disabled by a finder, or by None in `sys.modules`.
        return False


def load_kernels(module: str) -> Any:
    """Return a module of numba kernels; None without numba or if ABSTAIN_NO_NUMBA is 1."""
    return None if os.environ.get("ABSTAIN_NO_NUMBA") == "1" else _import_kernels(module)


@cache
def _import_kernels(module: str) -> Any:
    if not is_installed("numba"):
        return None
    try:
        # Not an import statement, because numba takes 0.3 s to load.
        return import_module(module)
    except ImportError:
        # Installed but unusable, for example with an incompatible NumPy: use the NumPy kernels.
        return None
