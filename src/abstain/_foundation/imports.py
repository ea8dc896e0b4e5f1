"""Imports that wait until something of a module is used."""

from importlib import import_module
from typing import Any


class Deferred:
    """Stands for a module until a name of it is asked for.

    For what takes long to load and most calls do without; imports inside functions do the same
    where one function needs it.

    Examples
    --------
    >>> fractions = Deferred("fractions")
    >>> fractions.Fraction(1, 2) + 1
    Fraction(3, 2)
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """Load the module; the name is found at once the next time."""
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)
        return found


#: SciPy's special functions, which take longer to load than all of `abstain.metrics`.
special = Deferred("scipy.special")
