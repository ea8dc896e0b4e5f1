"""Renderers of documents as HTML, terminal text, Markdown, LaTeX or notebook HTML."""

from typing import Any

from abstain._foundation.lazy_imports import lazy_function
from abstain.errors import UnknownNameError, suggest
from abstain.report.document import FORMATS, Document

# Renderers are imported when they are needed, because a command uses only one or two renderers.
_RENDERERS = {name: lazy_function(f"{__name__}.{name}:{name}") for name in FORMATS}


def render(document: Document, format: str) -> Any:
    r"""Write a document in a format.

    Parameters
    ----------
    document : Document
        Document to render.
    format : {"html", "terminal", "markdown", "latex", "notebook"}
        Output format.

    Returns
    -------
    str or rich renderable
        Text of the document. The result for a terminal is a renderable that `rich.console.Console`
        prints.

    Raises
    ------
    UnknownNameError
        If the format does not exist.

    Examples
    --------
    >>> from abstain.report.document import Document, Prose
    >>> document = Document("A page", ("Report",), lambda: [Prose("Some <words>.")])
    >>> print("\n".join(render(document, "markdown").splitlines()[:3]))
    # A page
    <BLANKLINE>
    Some \<words>.
    """
    if format not in FORMATS:
        msg = f"`format` must be one of {', '.join(FORMATS)}; got {format!r}."
        raise UnknownNameError(f"{msg}{suggest(str(format), FORMATS)}")
    return _RENDERERS[format](document)
