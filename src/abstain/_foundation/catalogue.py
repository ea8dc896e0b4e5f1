"""`Catalogue`, a mapping from names to entries in the order of registration."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from abstain.errors import UnknownNameError, suggest


class Named(Protocol):
    """An object with a name, such as a catalogue entry."""

    @property
    def name(self) -> str:
        """Name of the entry in function calls and on the command line."""


EntryT = TypeVar("EntryT", bound=Named)


def match_spelling(name: str, names: Iterable[str]) -> str:
    """Return the registered name that equals `name` except for hyphens and underscores.

    Score names contain underscores, but files of earlier versions use hyphens. Without a unique
    match, `name` is returned unchanged.

    Examples
    --------
    >>> match_spelling("mcd-msr", ["msr", "mcd_msr"]), match_spelling("mcp", ["msr"])
    ('mcd_msr', 'mcp')
    """
    existing_names = list(names)
    if name in existing_names:
        return name
    normalized_name = name.replace("-", "_")
    matches = [
        existing for existing in existing_names if existing.replace("-", "_") == normalized_name
    ]
    return matches[0] if len(matches) == 1 else name


class Catalogue(Mapping[str, EntryT], Generic[EntryT]):
    """An extensible mapping from names to entries.

    Parameters
    ----------
    kind : str
        Noun for an entry in error messages, such as "metric".
    list_command : str, optional
        Arguments of `abstain` that print all entries. The default is the command `list` with the
        plural of `kind`.

    Notes
    -----
    Look-ups treat hyphens and underscores as equal.
    """

    def __init__(self, kind: str, *, list_command: str = "") -> None:
        self._kind = kind
        self._list_command = list_command or f"list {kind}s"
        self._entries: dict[str, EntryT] = {}
        self._redirects: list[tuple[Mapping[str, Any], str]] = []

    def add(self, entry: EntryT) -> EntryT:
        """Register an entry. If the name already exists, a ValueError is raised."""
        if entry.name in self._entries:
            raise ValueError(f"the {self._kind} {entry.name!r} is registered twice")
        self._entries[entry.name] = entry
        return entry

    def add_redirect(self, other: Mapping[str, Any], message: str) -> None:
        """Set the error message for names that belong to another catalogue.

        In the message, "{0!r}" stands for the name.
        """
        self._redirects.append((other, message))

    def __getitem__(self, name: str) -> EntryT:
        """Return the entry called `name`. An unknown name raises an UnknownNameError."""
        if name in self._entries:
            return self._entries[name]
        match = match_spelling(str(name), self._entries)
        if match in self._entries:
            return self._entries[match]
        for other_catalogue, message in self._redirects:
            if name in other_catalogue:
                raise UnknownNameError(message.format(name))
        raise UnknownNameError(
            f"there is no {self._kind} named {name!r}.{suggest(name, self._entries)} "
            f"`abstain {self._list_command}` prints them all."
        )

    def __contains__(self, name: object) -> bool:
        """Return whether a name is registered."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of registration."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._entries)
