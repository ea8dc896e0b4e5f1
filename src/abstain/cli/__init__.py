"""The command line: parse, call, print; one file per command."""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

# At once, since its module has the same name.
from abstain.cli.main import main as main

if TYPE_CHECKING:
    from abstain.cli.app import Command as Command
    from abstain.cli.catalogues import ListedCatalogue as ListedCatalogue
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__, app=("Command",), catalogues=("ListedCatalogue",), main=("main",)
    )
