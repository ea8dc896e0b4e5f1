"""Interactive controls of a page: choices, switches, search fields and jump menus."""

from dataclasses import dataclass

from abstain.plots.style import css_variable, dash_pattern


@dataclass(frozen=True)
class Option:
    """An option of a `Choice`; `color` and `dash` are the style of its line in the figures."""

    key: str
    label: str
    color: str = ""
    dash: str = ""
    is_selected: bool = True


def line_option(index: int, name: str, *, is_selected: bool = True) -> Option:
    """Return the option for a score or a method, with the line style of the figures."""
    pattern = " ".join(map(str, dash_pattern(index)))
    return Option(str(index), name, css_variable(index), pattern, is_selected=is_selected)


@dataclass(frozen=True)
class Choice:
    """A control that selects which tagged parts of a page are visible.

    A part with the tag ``{name: key}`` is visible if the option `key` is selected. A tag can
    contain several keys, separated by spaces, and the option "" shows all parts. If `is_multiple`,
    each option is a button that shows and hides its parts, including the parts of figures with the
    class ``name-key``; otherwise the control is a menu, and `selected` is its initial option.
    """

    name: str
    label: str
    options: tuple[Option, ...]
    is_multiple: bool = False
    selected: str = ""


@dataclass(frozen=True)
class Switch:
    """A checkbox that sets the class `name` on the page."""

    name: str
    label: str
    is_on: bool = False


@dataclass(frozen=True)
class SearchField:
    """A field that searches the rows of the table at `anchor` and shows the number of matches.

    `row_noun` is the plural noun for its rows, such as "numbers".
    """

    anchor: str
    row_noun: str


@dataclass(frozen=True)
class JumpMenu:
    """A menu of links to anchors: groups of a title and pairs of anchor and text."""

    label: str
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
