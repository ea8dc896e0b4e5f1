"""Tables of evaluations and comparisons for papers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.report.document import Block
from abstain.report.render import latex, markdown
from abstain.report.subjects.comparison.tables import paper_table as comparison_table
from abstain.report.subjects.evaluation.tables import paper_table as evaluation_table

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class PaperTable(Generic[ResultT]):
    """Functions that create the table of one type of result for papers.

    The function `blocks` builds the table and its footnote.
    """

    blocks: Callable[..., Iterable[Block]]

    def markdown(
        self,
        result: ResultT,
        *,
        metrics: Sequence[str] | None = None,
        times_1000: bool = False,
        intervals: bool = False,
    ) -> str:
        r"""Return a Markdown table for a paper, with the best values in bold.

        Parameters
        ----------
        result : Evaluation or Comparison
            Result to print. For an evaluation, there is a table for each split, with a row per
            metric and a column per score. For a comparison, there is one table with a row per
            method and a column per metric and data set. A mark means that a value does not differ
            significantly from the best value.
        metrics : sequence of str, optional
            Names of the metrics. The default is all metrics of the result.
        times_1000 : bool, default=False
            Whether AURC and AUGRC are printed times 1000, as in the literature.
        intervals : bool, default=False
            Whether each value is followed by its confidence interval in brackets.

        Returns
        -------
        str
            Table with an explanatory footnote and with escaped names.

        Raises
        ------
        InputError
            If `result` has another type.
        UnknownNameError
            If the result does not contain one of the metrics.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.evaluation import compare
        >>> from abstain.report import comparison_markdown, markdown_table
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> table = markdown_table(ab.evaluate(samples), metrics=["augrc"], intervals=True)
        >>> print(table.split("\n\n")[0])
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
        | p_e | **0.03125** |
        """
        blocks = self.blocks(result, metrics, times_1000=times_1000, intervals=intervals)
        return markdown.markdown_blocks(blocks)

    def latex(
        self,
        result: ResultT,
        *,
        metrics: Sequence[str] | None = None,
        times_1000: bool = False,
        intervals: bool = False,
    ) -> str:
        r"""Return a LaTeX table for a paper, as a ``tabular`` of booktabs with a footnote.

        Parameters
        ----------
        result : Evaluation or Comparison
            As for `markdown_table`.
        metrics, times_1000, intervals
            As for `markdown_table`.

        Returns
        -------
        str
            LaTeX code of the table and the footnote, with escaped names.

        Raises
        ------
        InputError
            If `result` has another type.
        UnknownNameError
            If the result does not contain one of the metrics.

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
        blocks = self.blocks(result, metrics, times_1000=times_1000, intervals=intervals)
        return latex.latex_blocks(blocks)


_EVALUATION, _COMPARISON = (
    PaperTable[Evaluation](evaluation_table),
    PaperTable[Comparison](comparison_table),
)
markdown_table, latex_table = _EVALUATION.markdown, _EVALUATION.latex
comparison_markdown, comparison_latex = _COMPARISON.markdown, _COMPARISON.latex
