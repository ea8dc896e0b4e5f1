"""Imports that wait until something of a module is used."""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until a name of it is asked for.

    For what takes long to load and most calls do without; imports inside functions do the same
    where one function needs it.

    Examples
    --------
    >>> fractions = LazyModule("fractions")
    >>> fractions.Fraction(1, 2) + 1
    Fraction(3, 2)
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """Load the module; the name is found at once the next time."""
        if name.startswith("__"):
            # Python looks for such names on any object: that is no use of the module.
            raise AttributeError(name)
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)
        return found


#: SciPy's special functions, which take longer to load than all of `abstain.metrics`.
special = LazyModule("scipy.special")


def lazy_function(place: str) -> Callable[..., Any]:
    """Return a function, as ``module:name``; its module is loaded when it is called.

    Examples
    --------
    >>> lazy_function("math:hypot")(3, 4)
    5.0
    """
    module, _, name = place.partition(":")

    def call(*given: Any) -> Any:
        return getattr(import_module(module), name)(*given)

    return call


#: Which names are there, what finds one, and what lists them all, as a package holds them.
Waiting = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def lazy_exports(package: str, **homes: Iterable[str]) -> Waiting:
    """Return what makes the names of a package wait in the modules that they are defined in.

    `homes` are its modules, dots as two underscores, each with its public names. In the file of
    the package, where a checker of types finds the same names imported::

        __all__, __getattr__, __dir__ = waiting(__name__, module=("Name", "Other"))
    """
    home = {name: module.replace("__", ".") for module, names in homes.items() for name in names}
    own = sys.modules[package]

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(own, name, found)
        return found

    return sorted(home), find, lambda: sorted({*vars(own), *home})
