"""A method and a parameter of one name on a scikit-learn estimator."""

from collections.abc import Callable
from types import MethodType
from typing import Any


class MethodBesideParameter:
    """A method whose name is a parameter's too.

    scikit-learn calls ``estimator.score(X, y)`` and keeps a parameter named `score` in the
    attribute of that name. Here reading the attribute gives the method, and setting it sets the
    parameter, which `get_params` reads where it lies.

    Parameters
    ----------
    method : function
        The method; the parameter has its name.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method, self._name = method, method.__name__
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method, bound where there is an instance."""
        return self._method if instance is None else MethodType(self._method, instance)

    def __set__(self, instance: Any, value: Any) -> None:
        """Set the parameter."""
        vars(instance)[self._name] = value
