"""The command line. Each command parses its arguments, calls the library and prints the results."""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

# `main` is imported now, because the function has the name of its module.
from abstain.cli.main import main as main

if TYPE_CHECKING:
    from abstain.cli.app import Command as Command
    from abstain.cli.catalogues import ListedCatalogue as ListedCatalogue
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__, app=("Command",), catalogues=("ListedCatalogue",), main=("main",)
    )
