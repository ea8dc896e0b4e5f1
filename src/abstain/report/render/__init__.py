"""Any document in any format: HTML, a terminal, Markdown, LaTeX, the cell of a notebook."""

from typing import Any

from abstain._foundation.lazy_imports import lazy_function
from abstain.errors import UnknownNameError, suggest
from abstain.report.document import FORMATS, Document

# A command writes one or two of them.
_RENDERERS = {name: lazy_function(f"{__name__}.{name}:{name}") for name in FORMATS}


def render(document: Document, format: str) -> Any:
    r"""Write a document in a format.

    Parameters
    ----------
    document : Document
        What to write.
    format : {"html", "terminal", "markdown", "latex", "notebook"}
        The format.

    Returns
    -------
    str or rich renderable
        The text; for a terminal what a `rich.console.Console` prints.

    Raises
    ------
    UnknownNameError
        If there is no such format.

    Examples
    --------
    >>> from abstain.report.document import Document, Prose
    >>> document = Document("A page", "Report", lambda: [Prose("Some <words>.")])
    >>> print(render(document, "markdown"))
    # A page
    <BLANKLINE>
    Some \<words\>.
    <BLANKLINE>
    """
    if format not in FORMATS:
        msg = f"`format` must be one of {', '.join(FORMATS)}; got {format!r}."
        raise UnknownNameError(f"{msg}{suggest(str(format), FORMATS)}")
    return _RENDERERS[format](document)
