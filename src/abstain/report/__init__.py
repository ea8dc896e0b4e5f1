"""Results as something to read: an HTML page, a terminal table, Markdown, LaTeX.

Nothing here computes: numbers come from an `Evaluation`, a `Comparison`, `RuleChecks` or a
`StudyResult` and are formatted.
"""

from abstain.report.files.figures import write_figures as write_figures
from abstain.report.files.figures import write_rule_figures as write_rule_figures
from abstain.report.files.figures import write_study_figures as write_study_figures
from abstain.report.files.pages import write_benchmark as write_benchmark
from abstain.report.files.pages import write_comparison as write_comparison
from abstain.report.files.pages import write_html as write_html
from abstain.report.files.pages import write_study as write_study
from abstain.report.files.pages import write_threshold as write_threshold
from abstain.report.files.tables import write_tables as write_tables
from abstain.report.pages import benchmark_html as benchmark_html
from abstain.report.pages import comparison_html as comparison_html
from abstain.report.pages import html_report as html_report
from abstain.report.pages import study_html as study_html
from abstain.report.pages import threshold_html as threshold_html
from abstain.report.papers import benchmark_latex as benchmark_latex
from abstain.report.papers import benchmark_markdown as benchmark_markdown
from abstain.report.papers import comparison_latex as comparison_latex
from abstain.report.papers import comparison_markdown as comparison_markdown
from abstain.report.papers import latex_table as latex_table
from abstain.report.papers import markdown_table as markdown_table
from abstain.report.render import render as render
from abstain.report.screens import benchmark_terminal as benchmark_terminal
from abstain.report.screens import comparison_terminal as comparison_terminal
from abstain.report.screens import study_terminal as study_terminal
from abstain.report.screens import terminal_table as terminal_table
from abstain.report.screens import threshold_terminal as threshold_terminal
from abstain.report.subjects import document_of as document_of
from abstain.report.subjects.benchmark.pictures import Pictures as Pictures
from abstain.report.subjects.benchmark.pictures import benchmark_pictures as benchmark_pictures

__all__ = [
    "Pictures",
    "benchmark_html",
    "benchmark_latex",
    "benchmark_markdown",
    "benchmark_pictures",
    "benchmark_terminal",
    "comparison_html",
    "comparison_latex",
    "comparison_markdown",
    "comparison_terminal",
    "document_of",
    "html_report",
    "latex_table",
    "markdown_table",
    "render",
    "study_html",
    "study_terminal",
    "terminal_table",
    "threshold_html",
    "threshold_terminal",
    "write_benchmark",
    "write_comparison",
    "write_figures",
    "write_html",
    "write_rule_figures",
    "write_study",
    "write_study_figures",
    "write_tables",
    "write_threshold",
]
