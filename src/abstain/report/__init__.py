"""Results as something to read: an HTML page, a terminal table, Markdown, LaTeX.

Nothing here computes: numbers come from an `Evaluation` and are formatted.
"""

from abstain.report.html import html_report as html_report
from abstain.report.html import write_html as write_html
from abstain.report.latex import latex_table as latex_table
from abstain.report.markdown import markdown_table as markdown_table
from abstain.report.terminal import terminal_table as terminal_table

__all__ = ["html_report", "latex_table", "markdown_table", "terminal_table", "write_html"]
