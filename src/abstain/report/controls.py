"""Controls of a page, such as menus, buttons and search fields."""

from dataclasses import dataclass

from abstain.plots.style import css_variable, dash_pattern


@dataclass(frozen=True)
class Option:
    """An option of a menu, with the color and the dash pattern of its line in the figures."""

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
    """A menu or a group of buttons that shows and hides parts of an HTML page.

    A part with the tag ``{name: key}`` is visible if the option `key` is selected. A tag can
    contain several options, separated by spaces. The option "" shows all parts.

    If `is_multiple` is true, each option is a button that shows and hides its parts. In figures,
    these parts have the CSS class ``name-key``. If `is_multiple` is false, the control is a menu
    with the initial option `selected`.
    """

    name: str
    label: str
    options: tuple[Option, ...]
    is_multiple: bool = False
    selected: str = ""


@dataclass(frozen=True)
class Switch:
    """A checkbox that adds the CSS class `name` to the page."""

    name: str
    label: str
    is_on: bool = False


@dataclass(frozen=True)
class SearchField:
    """A search field for the rows of a table, which shows the number of matching rows.

    The table has the id `anchor`. The plural noun `row_noun`, such as "methods", describes its
    rows.
    """

    anchor: str
    row_noun: str


@dataclass(frozen=True)
class JumpMenu:
    """A menu of links to parts of a page.

    Each group consists of a title and of links, which are pairs of an anchor and a text.
    """

    label: str
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
