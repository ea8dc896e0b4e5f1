"""Import single files of a package that cannot be imported as a whole."""

import importlib
import importlib.util
import sys
import warnings
from types import ModuleType


def import_files(names, namespace=None):
    """Import modules without running the `__init__` files of their packages.

    All modules belong to one package. `namespace` contains names that a skipped `__init__` file would have defined.
    `sys.modules` keeps no module of the package, so that other tests find the package as it is installed.
    """
    package = names[0].partition(".")[0]
    _forget(package)
    try:
        for name in names:
            for parent in _parents(name):
                if parent not in sys.modules:
                    sys.modules[parent] = _empty_package(parent, namespace or {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [importlib.import_module(name) for name in names]
    finally:
        _forget(package)


def _forget(package):
    for name in list(sys.modules):
        if name.partition(".")[0] == package:
            del sys.modules[name]


def _parents(name):
    parts = name.split(".")[:-1]
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _empty_package(name, namespace):
    module = ModuleType(name)
    spec = importlib.util.find_spec(name)
    module.__path__ = list(spec.submodule_search_locations)
    module.__dict__.update(namespace)
    return module
