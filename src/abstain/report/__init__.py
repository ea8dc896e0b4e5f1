"""Reports of results as HTML pages, terminal tables, Markdown or LaTeX.

The reports contain the numbers of a result such as an `Evaluation`, a `Comparison` or `RuleChecks`.
"""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

# Imported eagerly because the package `report.render` has the same name.
from abstain.report.render import render as render

if TYPE_CHECKING:
    from abstain.report.images import SampleImages as SampleImages
    from abstain.report.images import sample_images as sample_images
    from abstain.report.output import PageSection as PageSection
    from abstain.report.output import Subject as Subject
    from abstain.report.output import build_document as build_document
    from abstain.report.output import comparison_html as comparison_html
    from abstain.report.output import comparison_terminal as comparison_terminal
    from abstain.report.output import html_report as html_report
    from abstain.report.output import terminal_table as terminal_table
    from abstain.report.output import threshold_html as threshold_html
    from abstain.report.output import threshold_terminal as threshold_terminal
    from abstain.report.output import write as write
    from abstain.report.output import write_comparison as write_comparison
    from abstain.report.output import write_figures as write_figures
    from abstain.report.output import write_html as write_html
    from abstain.report.output import write_rule_figures as write_rule_figures
    from abstain.report.output import write_threshold as write_threshold
    from abstain.report.tables import comparison_latex as comparison_latex
    from abstain.report.tables import comparison_markdown as comparison_markdown
    from abstain.report.tables import latex_table as latex_table
    from abstain.report.tables import markdown_table as markdown_table
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        output=(
            "PageSection",
            "Subject",
            "build_document",
            "comparison_html",
            "comparison_terminal",
            "html_report",
            "terminal_table",
            "threshold_html",
            "threshold_terminal",
            "write",
            "write_comparison",
            "write_figures",
            "write_html",
            "write_rule_figures",
            "write_threshold",
        ),
        images=("SampleImages", "sample_images"),
        render=("render",),
        tables=(
            "comparison_latex",
            "comparison_markdown",
            "latex_table",
            "markdown_table",
        ),
    )
