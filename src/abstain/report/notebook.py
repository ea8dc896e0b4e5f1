"""What a notebook shows of a result, which asks for it by `_repr_html_`."""

from abstain.report.output import document_of
from abstain.report.render import render
from abstain.thresholds import Cascade, DecisionRule, RuleSet


def notebook_html(result: object) -> str:
    """Return what a notebook shows of a result: a table and a curve, in one element."""
    # A rule alone is one that nothing was checked on yet.
    if isinstance(result, DecisionRule | RuleSet):
        from abstain.evaluation import check_rule

        result = check_rule(result, {})
    if isinstance(result, Cascade):
        from abstain.evaluation import check_cascade

        result = check_cascade(result, {})
    return str(render(document_of(result), "notebook"))
