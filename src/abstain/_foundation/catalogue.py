"""A catalogue: named entries in the order they were declared, with near-match errors."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from abstain.errors import UnknownNameError, suggest


class Named(Protocol):
    """Anything a catalogue can hold."""

    @property
    def name(self) -> str:
        """The name scripts use."""


EntryT = TypeVar("EntryT", bound=Named)


def match_spelling(name: str, names: Iterable[str]) -> str:
    """Return the one of the names that differs at most in hyphens and underscores, else the name.

    Names of scores have underscores; files of earlier versions have hyphens.

    Examples
    --------
    >>> match_spelling("mcd-msr", ["msr", "mcd_msr"]), match_spelling("mcp", ["msr"])
    ('mcd_msr', 'mcp')
    """
    names = list(names)
    matches = [other for other in names if other.replace("-", "_") == name.replace("-", "_")]
    return matches[0] if name not in names and len(matches) == 1 else name


class Catalogue(Mapping[str, EntryT], Generic[EntryT]):
    """A read-mostly mapping from name to entry.

    Parameters
    ----------
    kind : str
        What an entry is called in error messages ("metric", "score").
    listed : str, optional
        The command that prints them all: what follows `abstain`, where that is not `list` and
        `kind` with an s.

    Notes
    -----
    Hyphens and underscores mean the same when an entry is looked up.
    """

    def __init__(self, kind: str, *, list_command: str = "") -> None:
        self._kind = kind
        self._listed = list_command or f"list {kind}s"
        self._entries: dict[str, EntryT] = {}
        self._elsewhere: list[tuple[Mapping[str, Any], str]] = []

    def add(self, entry: EntryT) -> EntryT:
        """Register an entry; a name can be taken only once."""
        if entry.name in self._entries:
            raise ValueError(f"the {self._kind} {entry.name!r} is registered twice")
        self._entries[entry.name] = entry
        return entry

    def add_redirect(self, other: Mapping[str, Any], words: str) -> None:
        """Say of a name that only another catalogue has what is to be done with it.

        In the words "{0!r}" is the name. So a catalogue can speak of one that is built on it.
        """
        self._elsewhere.append((other, words))

    def __getitem__(self, name: str) -> EntryT:
        """Return the entry of that name, or an error that names the nearest one."""
        try:
            return self._entries[name]
        except KeyError:
            match = match_spelling(str(name), self._entries)
            if match in self._entries:
                return self._entries[match]
            for other, words in self._elsewhere:
                if name in other:
                    raise UnknownNameError(words.format(name)) from None
            raise UnknownNameError(
                f"there is no {self._kind} named {name!r}.{suggest(name, self._entries)} "
                f"`abstain {self._listed}` prints them all."
            ) from None

    def __contains__(self, name: object) -> bool:
        """Tell whether a name is registered, without raising."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Iterate over names in the order of registration."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._entries)
