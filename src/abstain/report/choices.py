"""What a page lets its reader choose: which parts are shown, which rows, where to go."""

from dataclasses import dataclass

from abstain.plots.style import dash, variable


@dataclass(frozen=True)
class Option:
    """One of a choice; `color` and `dash` draw its line beside it."""

    key: str
    label: str
    color: str = ""
    dash: str = ""
    on: bool = True


def line_option(index: int, name: str, *, on: bool = True) -> Option:
    """Return a score or a method to choose, with the line that the figures draw it by."""
    pattern = " ".join(map(str, dash(index)))
    return Option(str(index), name, variable(index), pattern, on=on)


@dataclass(frozen=True)
class Choice:
    """What a page shows of its tagged parts.

    A part tagged ``{name: key}`` is seen where the key is chosen; several keys are parted by
    blanks, and the option "" shows all. ``some`` makes buttons that hide and show each option,
    also the parts of figures of class ``name-key``.
    """

    name: str
    label: str
    options: tuple[Option, ...]
    some: bool = False
    chosen: str = ""


@dataclass(frozen=True)
class Switch:
    """A box to tick: sets the class `name` on the page."""

    name: str
    label: str
    on: bool = False


@dataclass(frozen=True)
class Find:
    """A field to search the rows of the table at `anchor`; says how many `what` are shown."""

    anchor: str
    what: str


@dataclass(frozen=True)
class Jump:
    """Places to go to, in groups with titles."""

    label: str
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
