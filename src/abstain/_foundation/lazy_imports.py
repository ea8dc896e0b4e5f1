"""Import modules on first use, and load optional packages."""

import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class LazyModule:
    """A module that is imported when an attribute is first accessed.

    Examples
    --------
    >>> fractions = LazyModule("fractions")
    >>> fractions.Fraction(1, 2) + 1
    Fraction(3, 2)
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """Import the module and return the attribute, which is stored for later access."""
        if name.startswith("__"):
            # Python looks up special attributes on any object, which must not import the module.
            raise AttributeError(name)
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)
        return value


#: The special functions of SciPy, whose import takes longer than that of `abstain.metrics`.
special = LazyModule("scipy.special")


def lazy_function(path: str) -> Callable[..., Any]:
    """Return a function that imports and calls ``module:name``.

    Examples
    --------
    >>> lazy_function("math:hypot")(3, 4)
    5.0
    """
    module, _, name = path.partition(":")

    def call(*args: Any) -> Any:
        return getattr(import_module(module), name)(*args)

    return call


#: The attributes `__all__`, `__getattr__` and `__dir__` of a package.
LazyExports = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def lazy_exports(package: str, **names_by_module: Iterable[str]) -> LazyExports:
    """Return `__all__`, `__getattr__` and `__dir__` for lazy imports in a package.

    `names_by_module` contains the public names of each module of the package. In module names, two
    underscores stand for a dot. The package contains the following line::

        __all__, __getattr__, __dir__ = lazy_exports(__name__, module=("Name", "Other"))
    """
    module_by_name = {
        name: module.replace("__", ".")
        for module, names in names_by_module.items()
        for name in names
    }
    package_module = sys.modules[package]

    def get_attribute(name: str) -> Any:
        if name not in module_by_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_by_name[name]}"), name)
        setattr(package_module, name, value)
        return value

    def list_attributes() -> list[str]:
        return sorted({*vars(package_module), *module_by_name})

    return sorted(module_by_name), get_attribute, list_attributes


# ------------------------------------------------------------------------ optional packages
def is_installed(module: str) -> bool:
    """Return whether a top-level module can be imported. The module is not imported."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # An import hook, or None in `sys.modules`, disables the import.
        return False


def load_kernels(module: str) -> Any:
    """Return a module of numba kernels, or None if numba is missing or ABSTAIN_NO_NUMBA is 1."""
    return None if os.environ.get("ABSTAIN_NO_NUMBA") == "1" else _import_kernels(module)


@cache
def _import_kernels(module: str) -> Any:
    """Return a module of numba kernels, or None if numba is missing or does not work."""
    if not is_installed("numba"):
        return None
    try:
        # Loading numba takes 0.3 s, so it is imported only when this function is called.
        return import_module(module)
    except ImportError:
        # Numba is installed but does not work, for example with an incompatible NumPy.
        return None
