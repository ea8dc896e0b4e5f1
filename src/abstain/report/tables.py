"""The tables of evaluations and comparisons for papers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.report.document import Block
from abstain.report.render import latex, markdown
from abstain.report.subjects.comparison.tables import matrix
from abstain.report.subjects.evaluation.tables import paper

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class PaperTable(Generic[ResultT]):
    """The table of a kind of result; `blocks` builds it, and refuses any other kind."""

    blocks: Callable[..., Iterable[Block]]

    def markdown(
        self,
        result: ResultT,
        *,
        metrics: Sequence[str] | None = None,
        thousand: bool = False,
        intervals: bool = False,
    ) -> str:
        r"""Write the table of a paper in Markdown, the best in bold.

        Parameters
        ----------
        result : Evaluation or Comparison
            Metrics x scores of an evaluation, one table a split; methods x (metric, data set) of a
            comparison, ties within uncertainty marked.
        metrics : sequence of str, optional
            By name; by default every metric that was computed.
        thousand : bool, default=False
            AURC and AUGRC times 1000, as the literature prints them; the table says so.
        intervals : bool, default=False
            Behind each value its interval in brackets, which the footnote explains.

        Returns
        -------
        str
            A table with a trailing line that explains it. Names are escaped.

        Raises
        ------
        InputError
            If `result` is something else.
        UnknownNameError
            If it has no such metric.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.evaluation import compare
        >>> from abstain.report import comparison_markdown, markdown_table
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> told = markdown_table(ab.evaluate(samples), metrics=["augrc"], intervals=True)
        >>> print(told.split("\n\n")[0])
        | Metric | confidence |
        | --- | ---: |
        | AUGRC ↓ | 0.09375 [0.0007761, 0.4858] |
        >>> samples = ab.Predictions(
        ...     confidence={"msr": [4, 3, 2, 1], "p_e": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
        ... )
        >>> print(comparison_markdown(compare(samples)).split("\n\n")[0])
        | Method | AUGRC ↓ |
        | --- | ---: |
        | msr | 0.09375† |
        | p\_e | **0.03125** |
        """
        blocks = self.blocks(result, metrics, thousand=thousand, intervals=intervals)
        return markdown.written(blocks)

    def latex(
        self,
        result: ResultT,
        *,
        metrics: Sequence[str] | None = None,
        thousand: bool = False,
        intervals: bool = False,
    ) -> str:
        r"""Write the table of a paper in LaTeX: a ``tabular`` (booktabs) with a footnote.

        Parameters
        ----------
        result : Evaluation or Comparison
            As for `markdown_table`.
        metrics, thousand, intervals
            As for `markdown_table`.

        Returns
        -------
        str
            As of `markdown_table`.

        Raises
        ------
        InputError
            If `result` is something else.
        UnknownNameError
            If it has no such metric.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.report import latex_table
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> table = latex_table(ab.evaluate(samples), metrics=["augrc"])
        >>> print(table.split("\n\n")[1])
        \begin{tabular}{lr}
        \toprule
        Metric & confidence \\
        \midrule
        AUGRC $\downarrow$ & 0.09375 \\
        \bottomrule
        \end{tabular}
        """
        blocks = self.blocks(result, metrics, thousand=thousand, intervals=intervals)
        return latex.written(blocks)


_EVALUATION, _COMPARISON = PaperTable[Evaluation](paper), PaperTable[Comparison](matrix)
markdown_table, latex_table = _EVALUATION.markdown, _EVALUATION.latex
comparison_markdown, comparison_latex = _COMPARISON.markdown, _COMPARISON.latex
