"""What the LaTeX of pages that are no documents yet needs."""

from abstain.report.render.latex import escape

__all__ = ["escape"]
