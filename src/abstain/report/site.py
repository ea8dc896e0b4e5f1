"""A result as several pages that lead to each other."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from abstain.report.document import Document, select


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
    blocks = tuple(select(page.blocks(), {"key", "detail", "interactive"}))
    return replace(page, blocks=lambda: blocks)
