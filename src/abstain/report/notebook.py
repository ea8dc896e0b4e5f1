"""What a notebook shows of a result, which asks for it by `_repr_html_`."""

from typing import Any

from abstain.report.output import document_of
from abstain.report.render import render
from abstain.thresholds import Cascade, DecisionRule


def notebook_html(result: object) -> str:
    """Return what a notebook shows of a result: a table and a curve, in one element."""
    return str(render(document_of(as_said(result)), "notebook"))


def as_said(result: object) -> Any:
    """Return what a document is made of: a rule alone is one that nothing was checked on yet."""
    if isinstance(result, DecisionRule):
        from abstain.evaluation import check_rule

        return check_rule(result, {})
    if isinstance(result, Cascade):
        from abstain.evaluation import check_cascade

        return check_cascade(result, {})
    return result
