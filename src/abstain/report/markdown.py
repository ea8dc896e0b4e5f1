"""What the Markdown of pages that are no documents yet needs."""

from abstain.report.render.markdown import escape

__all__ = ["escape"]
