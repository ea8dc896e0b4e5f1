"""Links between the pages of a report that consists of several pages."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from abstain.report.document import Document, select_blocks


def link_pages(page_by_address: Mapping[str, Document]) -> dict[str, Document]:
    """Make links to anchors on other pages lead to these pages.

    If several pages have the same anchor, links lead to the first of them.
    """
    from abstain.report.render.html import anchors

    pages = {address: _build_blocks(page) for address, page in page_by_address.items()}
    anchors_by_address = {address: set(anchors(page)) for address, page in pages.items()}
    address_by_anchor: dict[str, str] = {}
    for address, page_anchors in anchors_by_address.items():
        for anchor in page_anchors:
            address_by_anchor.setdefault(anchor, address)
    linked = {}
    for address, page in pages.items():
        folder = posixpath.dirname(address) or "."
        page_by_anchor = {
            anchor: posixpath.relpath(target, folder)
            for anchor, target in address_by_anchor.items()
            if anchor not in anchors_by_address[address]
        }
        linked[address] = replace(page, page_by_anchor=page_by_anchor)
    return linked


def _build_blocks(page: Document) -> Document:
    """Return a page whose blocks are built only once."""
    blocks = tuple(select_blocks(page.blocks(), {"key", "detail", "interactive"}))
    return replace(page, blocks=lambda: blocks)
