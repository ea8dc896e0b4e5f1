"""Controls of a page, such as menus, buttons and search fields."""

from dataclasses import dataclass

from abstain.plots.style import css_variable, dash_pattern


@dataclass(frozen=True)
class Option:
    """An option of a `Choice`, with the `color` and `dash` of its line in the figures."""

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
    contain several keys, separated by spaces. The option "" shows all parts.

    If `is_multiple` is true, each option is a button that shows and hides its parts. The parts of a
    figure have the class ``name-key``. If `is_multiple` is false, the control is a menu with the
    initial option `selected`.
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
    """A field that searches the rows of a table and shows the number of matches.

    The table has the id `anchor`. The plural noun `row_noun`, such as "numbers", describes its
    rows.
    """

    anchor: str
    row_noun: str


@dataclass(frozen=True)
class JumpMenu:
    """A menu of links to parts of a page.

    Each group of links has a title and pairs of an anchor and a text.
    """

    label: str
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
