"""One builder a subject: from a result to the document that says it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from abstain.benchmark.results import BenchmarkResults
from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.evaluation.rules import RuleChecks
from abstain.report.document import Document, Origin
from abstain.report.subjects.benchmark.document import benchmark_document
from abstain.report.subjects.comparison.document import comparison_document
from abstain.report.subjects.evaluation.document import evaluation_document
from abstain.report.subjects.rule.document import rule_document
from abstain.report.subjects.study.document import study_document
from abstain.studies import StudyResult

_BUILDERS: Mapping[type, Callable[[Any, Origin], Document]] = {
    BenchmarkResults: benchmark_document,
    Comparison: comparison_document,
    Evaluation: evaluation_document,
    RuleChecks: rule_document,
    StudyResult: study_document,
}


def document_of(
    result: object,
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Document:
    """Say a result as a document, which `render` writes in any format.

    Parameters
    ----------
    result : BenchmarkResults, Comparison, Evaluation, RuleChecks or StudyResult
        What was found.
    title : str, optional
        The heading; by default that of the subject.
    source : str
        Where the data come from: a file name, a description.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the document.

    Returns
    -------
    Document
        The blocks, before any format.

    Raises
    ------
    InputError
        If `result` is something else.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> from abstain.report import document_of, render
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> said = render(document_of(check_rule(rule, {}), title="A rule"), "markdown")
    >>> print(said.splitlines()[0])
    # A rule
    """
    for kind, builder in _BUILDERS.items():
        if isinstance(result, kind):
            return builder(result, Origin(title, source, notes, command))
    known = ", ".join(sorted(kind.__name__ for kind in _BUILDERS))
    msg = f"`result` must be one of {known}; got {type(result).__name__}"
    raise InputError(msg)
