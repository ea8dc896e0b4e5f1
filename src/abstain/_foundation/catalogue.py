"""`Catalogue`: a mapping from names to entries, in the order of registration."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from abstain.errors import UnknownNameError, suggest


class Named(Protocol):
    """An entry of a catalogue."""

    @property
    def name(self) -> str:
        """The name of the entry in function calls and on the command line."""


EntryT = TypeVar("EntryT", bound=Named)


def match_spelling(name: str, names: Iterable[str]) -> str:
    """Replace hyphens and underscores of a name so that it is one of the existing names.

    Names of scores have underscores, and those in files of earlier versions have hyphens. A name
    without a match is returned unchanged.

    Examples
    --------
    >>> match_spelling("mcd-msr", ["msr", "mcd_msr"]), match_spelling("mcp", ["msr"])
    ('mcd_msr', 'mcp')
    """
    names = list(names)
    matches = [name_ for name_ in names if name_.replace("-", "_") == name.replace("-", "_")]
    return matches[0] if name not in names and len(matches) == 1 else name


class Catalogue(Mapping[str, EntryT], Generic[EntryT]):
    """A mapping from names to entries; new entries can be added.

    Parameters
    ----------
    kind : str
        Noun for an entry in error messages, such as "metric".
    listed : str, optional
        The arguments of `abstain` that print all entries. By default, `list` and the plural of
        `kind`.

    Notes
    -----
    Hyphens and underscores are equivalent when an entry is looked up.
    """

    def __init__(self, kind: str, *, list_command: str = "") -> None:
        self._kind = kind
        self._list_command = list_command or f"list {kind}s"
        self._entries: dict[str, EntryT] = {}
        self._redirects: list[tuple[Mapping[str, Any], str]] = []

    def add(self, entry: EntryT) -> EntryT:
        """Register an entry; raise ValueError if its name exists already."""
        if entry.name in self._entries:
            raise ValueError(f"the {self._kind} {entry.name!r} is registered twice")
        self._entries[entry.name] = entry
        return entry

    def add_redirect(self, other: Mapping[str, Any], message: str) -> None:
        """Set the error message for names that only the other catalogue contains.

        "{0!r}" in the message stands for the name. The other catalogue may belong to a package that
        imports this one.
        """
        self._redirects.append((other, message))

    def __getitem__(self, name: str) -> EntryT:
        """Return the entry of this name; an UnknownNameError suggests a similar name."""
        try:
            return self._entries[name]
        except KeyError:
            match = match_spelling(str(name), self._entries)
            if match in self._entries:
                return self._entries[match]
            for other, message in self._redirects:
                if name in other:
                    raise UnknownNameError(message.format(name)) from None
            raise UnknownNameError(
                f"there is no {self._kind} named {name!r}.{suggest(name, self._entries)} "
                f"`abstain {self._list_command}` prints them all."
            ) from None

    def __contains__(self, name: object) -> bool:
        """Return whether a name is registered."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Iterate over names in the order of registration."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._entries)
