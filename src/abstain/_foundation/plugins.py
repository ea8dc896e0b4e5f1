"""Find and load extensions of abstain in installed packages.

A package declares its extensions as entry points in its ``pyproject.toml``. The page
docs/plugins.md describes the kinds of extensions.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeVar

from abstain.errors import InputError

T = TypeVar("T")

#: Groups of entry points for commands, catalogues of `abstain list`, kinds of reports, and sections
#: of existing kinds of reports.
COMMANDS: Final = "abstain.commands"
CATALOGUES: Final = "abstain.catalogues"
SUBJECTS: Final = "abstain.subjects"
SECTIONS: Final = "abstain.sections"


@cache
def extensions(group: str) -> tuple[EntryPoint, ...]:
    """Return the extensions in a group, in the order of their names."""
    return tuple(sorted(entry_points(group=group), key=lambda extension: extension.name))


def load_extension(extension: EntryPoint, kind: type[T]) -> T:
    """Load an extension, which must be an instance of `kind`."""
    package = extension.dist.name if extension.dist else extension.module
    description = f"{extension.name!r} of the package {package!r}"
    try:
        loaded = extension.load()
    except Exception as error:  # importing another package can raise any error
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"{description} cannot be loaded ({reason})") from error
    if not isinstance(loaded, kind):
        raise InputError(f"{description} must be a {kind.__name__}; got {type(loaded).__name__}")
    return loaded
