"""`abstain list`: print the entries of catalogues, such as metrics and scores."""

import textwrap
from collections.abc import Iterator
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from abstain._foundation.lazy_imports import is_installed
from abstain.cli.catalogues import ListedCatalogue, all_catalogues
from abstain.cli.console import console
from abstain.errors import InputError, MissingInputError

if TYPE_CHECKING:
    CatalogueName = str
else:
    # The names include those of installed extensions. Help and shell completion list them.
    CatalogueName = Literal[tuple(all_catalogues())]


def listing(
    catalogue: Annotated[
        CatalogueName | None,
        Parameter(help="Catalogue to print (default: a line about each catalogue)"),
    ] = None,
    /,
) -> None:
    """List metrics, scores, rules and other names."""
    out = console()
    width = min(out.width, 80)
    lines = _overview() if catalogue is None else _sections(catalogue, width)
    for line in lines:
        # The lines are already wrapped. rich would split an address that is longer than the
        # terminal.
        out.print(line, soft_wrap=True)


def _overview() -> Iterator[Text]:
    catalogues = all_catalogues()
    width = max(map(len, catalogues))
    for name, sections in catalogues.items():
        yield Text(f"{name:{width}}  ", style="bold").append(sections[0].title, style="not bold")
    yield Text("`abstain list metrics` prints the metrics, and so on.", style="dim")


def _sections(name: str, width: int) -> Iterator[Text]:
    for section in all_catalogues()[name]:
        yield from _section(section, width)


def _section(section: ListedCatalogue, width: int) -> Iterator[Text]:
    """Yield the lines of a section, or raise an error if its module cannot be imported."""
    if section.error:
        raise InputError(section.error)
    if section.needs_torch and not is_installed("torch"):
        raise MissingInputError(f"{section.title}: they need torch: pip install torch")
    try:
        entries = resolve_name(section.entries)
    except ImportError as error:
        # The message names the missing package and the pip command.
        raise MissingInputError(str(error)) from error
    entries = entries() if callable(entries) else entries
    head = f"{section.title}. {section.usage}{section.usage_suffix()}."
    yield from _wrapped(head, width, "", "dim")
    for entry in (*entries.values(), *section.extra_entries):
        yield Text("")
        yield from _heading(entry, width)
        for sentence in filter(None, section.describe(entry)):
            yield from _wrapped(sentence, width, "    ", "")
    yield Text("")


def _heading(entry: Any, width: int) -> Iterator[Text]:
    """Yield the name of an entry in bold and its title."""
    lines = _wrapped(f"{entry.name}  {entry.title}", width - 4, "", "")
    for i, line in enumerate(lines):
        line.pad_left(4 if i else 0)
        if i == 0:
            line.stylize("bold", 0, len(entry.name))
        yield line


def _wrapped(sentence: str, width: int, indent: str, style: str) -> Iterator[Text]:
    """Wrap a sentence only at spaces, so that names and URLs are not split."""
    lines = textwrap.wrap(
        sentence,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (Text(line, style=style) for line in lines)
