"""HTML representation of results in notebooks, for `_repr_html_`."""

from typing import Any

from abstain.report.output import build_document
from abstain.report.render import render
from abstain.thresholds import Cascade, DecisionRule


def notebook_html(result: object) -> str:
    """Return a result as one HTML element with a table and a curve."""
    return str(render(build_document(with_empty_checks(result)), "notebook"))


def with_empty_checks(result: object) -> Any:
    """Wrap a decision rule or a cascade in check results without data sets; return other results.

    Reports describe check results, so a rule alone is reported as a rule without checks.
    """
    if isinstance(result, DecisionRule):
        from abstain.evaluation import check_rule

        return check_rule(result, {})
    if isinstance(result, Cascade):
        from abstain.evaluation import check_cascade

        return check_cascade(result, {})
    return result
