"""Import the packages that tests compare abstain with; `make test-peers` installs them."""

import importlib
import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

#: If this environment variable is set, a missing package is an error and not a skipped test.
REQUIRE_PEERS = "ABSTAIN_REQUIRE_PEERS"


def import_peer(name: str) -> ModuleType:
    """Import a peer package, or skip the test if the package is missing and not required."""
    if os.environ.get(REQUIRE_PEERS):
        return importlib.import_module(name)
    return pytest.importorskip(name)


def folder_of_peer(name: str) -> Path:
    """Return the folder of a package whose `import` fails, or skip the test if it is missing."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        if os.environ.get(REQUIRE_PEERS):
            raise ModuleNotFoundError(name)
        pytest.skip(f"{name} is not installed")
    return Path(spec.submodule_search_locations[0])
