"""A result as several pages that lead to each other."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from abstain.report.document import Document, Origin

if TYPE_CHECKING:
    from abstain.benchmark.results import BenchmarkResults
    from abstain.report.pictures import Pictures


def linked(pages: Mapping[str, Document]) -> dict[str, Document]:
    """Return pages, by their addresses, of which each knows on which other one a place is.

    Of a place that several have, the first page's is meant.
    """
    from abstain.report.render.html import anchors

    made = {address: _once(page) for address, page in pages.items()}
    own = {address: set(anchors(page)) for address, page in made.items()}
    homes: dict[str, str] = {}
    for address, places in own.items():
        homes = dict.fromkeys(places, address) | homes
    return {
        address: replace(
            page,
            elsewhere={
                place: posixpath.relpath(home, posixpath.dirname(address) or ".")
                for place, home in homes.items()
                if place not in own[address]
            },
        )
        for address, page in made.items()
    }


def _once(page: Document) -> Document:
    """Return a page whose blocks have been built."""
    blocks = tuple(page.sections())
    return replace(page, sections=lambda: blocks)


def benchmark_site(
    results: "BenchmarkResults",
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
    pictures: "Pictures | None" = None,
    beside: "Sequence[BenchmarkResults]" = (),
) -> dict[str, str]:
    """Write a benchmark as several HTML pages: a first one for everybody, and those behind it.

    Parameters
    ----------
    results : BenchmarkResults
        What `abstain.benchmark.results_of` returned.
    title, source, notes, command, pictures, beside
        As for `document_of`.

    Returns
    -------
    dict of str to str
        The text of each page by its address: "benchmark.html" is the first, with the task and its
        shifts, one curve and the best five methods; "pages/methods.html" has all methods by every
        metric, "pages/study-1.html" and so on each study. They lead to each other as files of one
        folder, and load nothing from the network.

    Raises
    ------
    InputError
        If `results` is something else.

    See Also
    --------
    benchmark_html : The same as one page.

    Examples
    --------
    >>> from abstain.report import benchmark_site
    >>> benchmark_site({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    from abstain.report.render.html import html
    from abstain.report.subjects.benchmark.pages import benchmark_pages

    origin = Origin(title, source, notes, command, pictures=pictures, beside=beside)
    pages = linked(benchmark_pages(results, origin))
    return {address: html(page) for address, page in pages.items()}
