"""Results laid out for a terminal.

Names and messages are printed as they are: no markup is read from them, and control characters are
written out.
"""

from typing import TYPE_CHECKING

from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.evaluation.rules import RuleChecks
from abstain.report.document import Origin
from abstain.report.render.terminal import terminal
from abstain.report.subjects.benchmark.document import benchmark_document
from abstain.report.subjects.comparison.document import comparison_document
from abstain.report.subjects.evaluation.document import evaluation_document
from abstain.report.subjects.rule.document import rule_document
from abstain.report.subjects.study.document import study_document
from abstain.studies import StudyResult

if TYPE_CHECKING:
    from rich.console import RenderableType


def terminal_table(evaluation: Evaluation, *, full: bool = False) -> "RenderableType":
    r"""Lay the results out for a terminal.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    full : bool, default=False
        Every metric with the sentence that says what it means, instead of the headline ones.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console`; it is made for 100 columns;
        on fewer it leaves out the last metrics, and says which.

    Raises
    ------
    InputError
        If `evaluation` is something else.

    Examples
    --------
    >>> import abstain as ab
    >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
    >>> from rich.console import Console
    >>> with (console := Console(width=60)).capture() as printed:
    ...     console.print(terminal_table(ab.evaluate(samples, metrics=["augrc"])))
    >>> print("\n".join(line.rstrip() for line in printed.get().splitlines()[:3]))
    Score        AUGRC ↓
    ────────────────────
    confidence   0.09375
    """
    return terminal(evaluation_document(evaluation, Origin(), full=full))


def comparison_terminal(comparison: Comparison, *, full: bool = False) -> "RenderableType":
    r"""Lay a comparison out for a terminal.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    full : bool, default=False
        A table for every metric and data set, and every finding, however many there are.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console` of at least 60 columns.

    Raises
    ------
    InputError
        If `comparison` is something else.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.evaluation import compare
    >>> samples = ab.Predictions(
    ...     confidence={"msr": [4, 3, 2, 1], "p_e": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
    ... )
    >>> from rich.console import Console
    >>> with (console := Console(width=60)).capture() as printed:
    ...     console.print(comparison_terminal(compare(samples)))
    >>> print(printed.get().splitlines()[0])
    Of 2 methods, “p_e” has the lowest AUGRC (0.03125, 95 %
    """
    return terminal(comparison_document(comparison, Origin(), full=full))


def threshold_terminal(checks: RuleChecks) -> "RenderableType":
    r"""Lay a decision rule and its checks out for a terminal.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.

    Returns
    -------
    rich renderable
        Print it with a `rich.console.Console`; it is made for 100 columns.

    Raises
    ------
    InputError
        If `checks` is something else.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> from rich.console import Console
    >>> with (console := Console(width=80)).capture() as printed:
    ...     console.print(threshold_terminal(check_rule(rule, {"later": later})))
    >>> print(printed.get().splitlines()[0])
    Answer when the confidence is at least 0.5; abstain below.
    """
    return terminal(rule_document(checks, Origin()))


def study_terminal(result: StudyResult) -> "RenderableType":
    r"""Lay what a study found out for a terminal.

    Parameters
    ----------
    result : StudyResult
        What a study returned.

    Returns
    -------
    rich renderable
        The question, the verdict and the short tables; print it with a `rich.console.Console`.

    Raises
    ------
    InputError
        If `result` is something else.

    Examples
    --------
    >>> from rich.console import Console
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> with (console := Console(width=80)).capture() as screen:
    ...     console.print(study_terminal(found))
    >>> screen.get().splitlines()[0]
    'Bias and error of the rank weights'
    """
    return terminal(study_document(result, Origin()))


def benchmark_terminal(results: BenchmarkResults) -> "RenderableType":
    """Lay the main results of a benchmark out for a terminal.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.

    Returns
    -------
    rich renderable
        The verdict, the leaders of each study, and the best methods over all studies; print it
        with a `rich.console.Console` of at least 60 columns.

    Raises
    ------
    InputError
        If `results` is something else.

    Examples
    --------
    >>> from abstain.report import benchmark_terminal
    >>> benchmark_terminal({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    return terminal(benchmark_document(results, Origin()))
