"""First screen of a comparison, with the test of each method against the reference."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from abstain.evaluation.comparison import SummaryRow
from abstain.plots.formatting import format_percent
from abstain.report.document import (
    METHOD_COLUMN,
    Axis,
    Block,
    Cell,
    Collapsible,
    Column,
    IntervalMark,
    KeyNumber,
    Number,
    Prose,
    Row,
    Span,
    Table,
    TableRows,
    Text,
    number_column,
)
from abstain.report.formatting import (
    UNDEFINED,
    decimals_of_intervals,
    format_count,
    format_fixed,
    format_fixed_interval,
)
from abstain.report.subjects.comparison.metric_result import MetricResult

#: Maximum number of methods whose rows are all visible. With more methods, only the rows around
#: the reference are visible.
_MAX_ROWS: Final = 15

#: Number of visible rows for many methods, and number of rows above the reference.
_N_VISIBLE_ROWS, _N_ROWS_ABOVE = 12, 5

#: Maximum number of names in a sentence. For more methods, the sentence states their number.
_MAX_NAMES: Final = 3

#: Maximum number of ticks on the axis.
_MAX_TICKS: Final = 5

_MARK_BY_CONCLUSION: Final[dict[str, Literal["better", "worse"]]] = {
    "significantly better": "better",
    "significantly worse": "worse",
}

#: Conclusions in the order of values, and short texts for a terminal.
_SHORT_CONCLUSIONS: Final = {
    "reference": "reference",
    "significantly better": "better",
    "not significantly different": "not different",
    "significantly worse": "worse",
    "not tested": "not tested",
}


@dataclass(frozen=True, eq=False)
class Overview:
    """Texts and tables on the tests of one metric on one data set or over all data sets."""

    result: MetricResult

    @cached_property
    def rows(self) -> list[SummaryRow]:
        """Results of the methods, starting with the best method."""
        return self.result.comparison.summary_of(self.result.metric, self.result.data)

    @property
    def reference(self) -> SummaryRow:
        """Results of the reference method, with which all other methods are compared."""
        return next(row for row in self.rows if row.method == row.reference)

    @property
    def is_specified(self) -> bool:
        """Whether the caller specified the reference."""
        return bool(self.result.comparison.reference)

    def methods_with(self, conclusion: str) -> list[str]:
        """Return the methods whose test has the given conclusion, such as "significantly worse"."""
        return [row.method for row in self.rows if row.conclusion == conclusion]

    # ------------------------------------------------------------------------------- numbers
    @cached_property
    def _value_decimals(self) -> int:
        return decimals_of_intervals((row.low, row.high) for row in self.rows)

    @cached_property
    def _difference_decimals(self) -> int:
        if all(math.isnan(row.difference_low) for row in self.rows):
            return self._value_decimals + 1
        rows = self.rows[self._visible_rows()]
        return decimals_of_intervals((r.difference_low, r.difference_high) for r in rows)

    def value_text(self, row: SummaryRow) -> str:
        """Format the value of a method."""
        return format_fixed(row.value, self._value_decimals)

    def interval_text(self, row: SummaryRow) -> str:
        """Format the interval of a method, or return an empty string if there is none."""
        return format_fixed_interval(row.low, row.high, self._value_decimals)

    def _difference_text(self, difference: float) -> str:
        return format_fixed(difference, self._difference_decimals, is_signed=True)

    def _difference_interval_text(self, row: SummaryRow) -> str:
        return format_fixed_interval(
            row.difference_low, row.difference_high, self._difference_decimals, is_signed=True
        )

    def difference_texts(self, row: SummaryRow) -> tuple[str, str]:
        """Format the difference between a method and the reference, with its p-value."""
        if row.conclusion == "reference":
            return "reference", ""
        p_value = "" if math.isnan(row.adjusted) else self._p_text(row)
        return self._difference_text(row.difference), p_value

    def _p_text(self, row: SummaryRow) -> str:
        return format_adjusted(row.adjusted, 1 - self.result.comparison.level)

    def rank_text(self, row: SummaryRow) -> str:
        """Format the rank interval of a method, or return an empty string if there is none."""
        if math.isnan(row.rank_low):
            return ""
        low, high = int(row.rank_low), int(row.rank_high)
        return str(low) if low == high else f"{low} to {high}"

    # -------------------------------------------------------------------------------- answer
    def answer(self) -> tuple[str, ...]:
        """Return the main result of the comparison, or nothing if there are no tests."""
        n_others = len(self.rows) - 1
        worse = self.methods_with("significantly worse")
        better = self.methods_with("significantly better")
        similar = self.methods_with("not significantly different")
        if not (worse or better or similar):
            return ()
        conclusions = []
        if worse:
            conclusions.append(f"significantly better than {_count_text(worse, n_others)}")
        if better:
            conclusions.append(f"significantly worse than {_count_text(better, n_others)}")
        if not conclusions:
            others = _count_text(similar, n_others) if n_others == 1 else "any other method"
            conclusions.append(f"not significantly different from {others}")
        claim = f"{self._answer_subject()} is {' and '.join(conclusions)}"
        details = self._p_value_details(worse, better, similar)
        if similar and (worse or better):
            verb = "is" if len(similar) == 1 else "are"
            names = join_names(similar) if len(similar) <= _MAX_NAMES else f"{len(similar)} methods"
            remainder = f"{names} {verb} not significantly different."
            return (claim, f"{details}; {remainder}") if details else (f"{claim};", remainder)
        return (claim, f"{details}.") if details else (f"{claim}.",)

    def _answer_subject(self) -> str:
        """Return the name of the reference. If the reference is the best method, add its value."""
        name = quote(self.reference.method)
        if self.is_specified:
            return f"By {self.result.title}, {name}"
        verb = "has" if self._is_single_best else "shares"
        value = self.value_text(self.reference)
        return f"{name} {verb} the {self._extreme} {self.result.title} ({value}) and"

    @property
    def _extreme(self) -> str:
        return "lowest" if self.reference.lower_is_better else "highest"

    @property
    def _is_single_best(self) -> bool:
        return len(self.result.best_methods) < 2 or self.result.data is None

    def _p_value_details(
        self, worse: Sequence[str], better: Sequence[str], similar: Sequence[str]
    ) -> str:
        """Return the difference and its p-value if there is exactly one such method."""
        names = better or worse or similar
        if len(names) != 1:
            return ""
        row = next(row for row in self.rows if row.method == names[0])
        size = format_fixed(abs(row.difference), self._difference_decimals)
        direction = "lower" if row.difference < 0 else "higher"
        p_value = p_equation(self._p_text(row), self.result.comparison.p_value_label)
        return f"({self.result.title} {size} {direction}, {p_value})"

    # --------------------------------------------------------------------------- key numbers
    def key_numbers(self) -> Iterator[KeyNumber]:
        """Yield the value and rank of the reference, and how many methods are better or worse."""
        if not self.rows:
            return
        reference = self.reference
        name = quote(reference.method)
        direction = "lower" if reference.lower_is_better else "higher"
        interval = self.interval_text(reference)
        detail = f"{interval}, {direction} is better" if interval else f"{direction} is better"
        yield KeyNumber(f"{self.result.title} of {name}", self.value_text(reference), detail)
        rank = self.rank_text(reference)
        if rank:
            level = format_percent(reference.level)
            adjustment = "" if self.result.comparison.is_adjusted else ", not adjusted"
            rank_detail = f"of {len(self.rows)}, {level} interval{adjustment}"
            yield KeyNumber(f"Rank of {name}", rank, rank_detail)
        has_other_methods = any(row.conclusion != "reference" for row in self.rows)
        if not has_other_methods:
            return
        if self.is_specified:
            yield self._count_of_methods("significantly better", f"than {name}")
        yield self._count_of_methods("not significantly different", f"from {name}")
        yield self._count_of_methods("significantly worse", f"than {name}")

    def _count_of_methods(self, conclusion: str, relation: str) -> KeyNumber:
        """Return a key number that counts the methods with a conclusion and names some of them."""
        names = self.methods_with(conclusion)
        detail = relation
        if 0 < len(names) <= _MAX_NAMES:
            detail += f": {join_names(names)}"
        return KeyNumber(conclusion.capitalize(), str(len(names)), detail)

    # -------------------------------------------------------------------------------- tables
    def blocks(self, *, is_complete: bool = False) -> Iterator[Block]:
        """Yield a table of the methods near the reference, and a collapsed table of the others."""
        visible = slice(0, len(self.rows)) if is_complete else self._visible_rows()
        above = self.rows[: visible.start]
        below = self.rows[visible.stop :]
        if above:
            yield self._collapsed(above)
        yield self._forest_table(self.rows[visible], self._caption())
        if below:
            yield self._collapsed(below)
        yield Prose(self.test_note(), "notes")

    def _visible_rows(self) -> slice:
        n_rows = len(self.rows)
        if n_rows <= _MAX_ROWS:
            return slice(0, n_rows)
        index = self.rows.index(self.reference)
        start = min(max(index - _N_ROWS_ABOVE, 0), n_rows - _N_VISIBLE_ROWS)
        return slice(start, start + _N_VISIBLE_ROWS)

    def _caption(self) -> Text:
        result, reference = self.result, self.reference
        data = f", {result.data_name}" if result.data_name else ""
        title = f"{result.title} of each method and difference from {quote(reference.method)}{data}"
        return Span(title, "strong"), " ", Span(self._family_text(), "plain")

    def _family_text(self) -> str:
        """Describe the reference, the adjustment of p-values and the number of tests."""
        n_tests = self.reference.n_tests
        if not n_tests:
            return "no tests"
        if not self.result.comparison.is_adjusted:
            return "p-values are not adjusted"
        plural = "s" if n_tests != 1 else ""
        reference = "reference" if self.is_specified else "best"
        return (
            f"{reference} {quote(self.reference.method)}; {self.adjustment}, "
            f"{format_count(n_tests)} comparison{plural}"
        )

    @property
    def adjustment(self) -> str:
        """Name of the method that adjusts p-values for multiple comparisons."""
        pairs = self.result.pairs
        if pairs and pairs[0].adjustment == "bonferroni":
            return "Bonferroni's method"
        return "Holm's method"

    def _forest_table(self, rows: Sequence[SummaryRow], caption: Text) -> Table:
        """Return a table with a forest plot in its rows."""
        level = format_percent(self.reference.level)
        p_name = "Adjusted p-value" if self.result.comparison.is_adjusted else "p-value"
        interval_column = Column(
            "Interval of the difference", is_sortable=False, axis=self._axis(rows)
        )
        columns = (
            METHOD_COLUMN,
            number_column(self.result.label_with_direction),
            number_column(f"{level} interval"),
            number_column("Difference"),
            interval_column,
            number_column(p_name),
            number_column("Rank interval"),
            Column(f"Compared with {quote(self.reference.method)}"),
        )
        group = TableRows(tuple(self._forest_row(row) for row in rows))
        title = f"Comparison with {self.reference.method}: {self.result.label}"
        return Table(columns, (group,), title=title, caption=caption, layout="forest")

    def _forest_row(self, row: SummaryRow) -> Row:
        """Return the row of a method, in which a line shows the interval of its difference."""
        is_reference = row.conclusion == "reference"
        mark = IntervalMark(
            math.nan if is_reference else row.difference,
            row.difference_low,
            row.difference_high,
            self._difference_interval_text(row),
            _MARK_BY_CONCLUSION.get(row.conclusion, ""),
        )
        difference: Cell = "reference" if is_reference else self._difference_text(row.difference)
        if math.isnan(row.difference):
            difference = UNDEFINED
        cells: tuple[Cell, ...] = (
            row.method,
            Number(row.value, display_text=self.value_text(row), reason=row.note),
            self.interval_text(row) or None,
            difference,
            mark,
            self._p_cell(row),
            self.rank_text(row),
            "" if is_reference else row.conclusion,
        )
        return Row(cells, "marked" if is_reference else "")

    def _p_cell(self, row: SummaryRow) -> Cell:
        if math.isnan(row.adjusted):
            return ""
        return Number(row.adjusted, display_text=self._p_text(row))

    def _axis(self, rows: Sequence[SummaryRow]) -> Axis:
        """Return the axis of the intervals of some methods, which contains 0."""
        low = high = 0.0
        for row in rows:
            for number in (row.difference, row.difference_low, row.difference_high):
                if not math.isnan(number):
                    low = min(low, number)
                    high = max(high, number)
        margin = 0.04 * (high - low or 1.0)
        low -= margin
        high += margin
        ticks = tuple((tick, text) for tick, text in _ticks(low, high) if low <= tick <= high)
        if self.reference.lower_is_better:
            return Axis(low, high, ticks, "better", "worse")
        return Axis(low, high, ticks, "worse", "better")

    def _collapsed(self, rows: Sequence[SummaryRow]) -> Collapsible:
        summary = self.describe(rows)
        return Collapsible(summary, (self._forest_table(rows, summary),), role="detail")

    def describe(self, rows: Sequence[SummaryRow]) -> str:
        """Return a text on several methods with their conclusions, differences and p-values."""
        noun = "other" if len(rows) == 1 else "others"
        text = f"{len(rows)} {noun}: {_count_conclusions(rows)}"
        differences = [row.difference for row in rows if not math.isnan(row.difference)]
        if differences:
            smallest = self._difference_text(min(differences))
            largest = self._difference_text(max(differences))
            text += f", difference {smallest}"
            text += f" to {largest}" if largest != smallest else ""
        tested = [row for row in rows if not math.isnan(row.adjusted)]
        if tested:
            smallest = self._p_text(min(tested, key=_adjusted_p_value))
            largest = self._p_text(max(tested, key=_adjusted_p_value))
            name = self.result.comparison.p_value_label
            if smallest == largest:
                text += f", {p_equation(smallest, name)}"
            else:
                text += f", {name} {smallest} to {largest}"
        return text

    def test_note(self, *, has_lines: bool = True) -> str:
        """Explain the intervals, p-values and ranks of the table."""
        comparison, reference = self.result.comparison, quote(self.reference.method)
        if not self.reference.n_tests:
            return "The differences were not tested."
        sentences = []
        n_pairs = comparison.n_pairs
        if has_lines and any(not math.isnan(row.difference_low) for row in self.rows):
            sentences.append(
                "Lines are intervals of the difference at the level of the test of the row. A line "
                "excludes 0 exactly if the difference is significant."
            )
        sentences.append(f"Test: {self.reference.test}.")
        if not comparison.is_adjusted:
            sentences.append("Neither p-values nor ranks are adjusted for multiple comparisons.")
        elif self.is_specified:
            both = format_percent(comparison.joint_level)
            sentences.append(
                f"The reference must be selected before seeing the values; then {self.adjustment} "
                f"adjusts for {format_count(self.reference.n_tests)} comparisons. The rank "
                f"interval of {reference} follows from these tests. Those of other methods also "
                f"use the tests of all {format_count(n_pairs)} pairs; with a probability of at "
                f"least {both}, all conclusions and rank intervals are correct."
            )
        else:
            sentences.append(
                f"{reference} was selected because it has the {self._extreme} value. Therefore, "
                f"the p-values are adjusted for all {format_count(n_pairs)} pairs, from which the "
                "rank intervals follow."
            )
        return " ".join(sentences)

    def test_note_of_tables(self) -> str:
        """Explain the p-values and ranks of several tables with different best methods."""
        if not self.reference.n_tests:
            return "The differences were not tested."
        sentences = [f"Test: {self.reference.test}."]
        if not self.result.comparison.is_adjusted:
            sentences.append("Neither p-values nor ranks are adjusted for multiple comparisons.")
        else:
            sentences.append(
                "The reference of a table is its best method. Therefore, the p-values are adjusted "
                f"for all {format_count(self.result.comparison.n_pairs)} pairs of the table, from "
                "which the rank intervals follow."
            )
        return " ".join(sentences)

    def summary_table(self, *, is_complete: bool) -> Iterator[Block]:
        """Yield a table for a terminal or a notebook, and the number of omitted methods."""
        visible = slice(0, len(self.rows)) if is_complete else self._visible_rows()
        level = format_percent(self.reference.level)
        p_name = "Adj. p" if self.result.comparison.is_adjusted else "p"
        columns = (
            METHOD_COLUMN,
            *map(number_column, ("Value", f"{level} interval", p_name, "Rank")),
            Column("Conclusion"),
        )
        rows = tuple(self._summary_table_row(row) for row in self.rows[visible])
        title = self.result.title_with_arrow
        if self.result.data_name:
            title += f", {self.result.data_name}"
        yield Table(columns, (TableRows(rows),), title=f"{title}; {self._family_text()}")
        for omitted in (self.rows[: visible.start], self.rows[visible.stop :]):
            if omitted:
                yield Prose(f"{self.describe(omitted)}.")

    def _summary_table_row(self, row: SummaryRow) -> Row:
        """Return the table row of a method for a terminal or a notebook."""
        cells: tuple[Cell, ...] = (
            row.method,
            Number(row.value, display_text=self.value_text(row), reason=row.note),
            self.interval_text(row) or None,
            self._p_cell(row),
            self.rank_text(row),
            _SHORT_CONCLUSIONS[row.conclusion],
        )
        return Row(cells)


def _adjusted_p_value(row: SummaryRow) -> float:
    return row.adjusted


def _count_conclusions(rows: Sequence[SummaryRow]) -> str:
    """Return a text with the number of methods for each conclusion."""
    counts = Counter(row.conclusion for row in rows)
    if len(counts) > 1:
        return ", ".join(f"{count} {conclusion}" for conclusion, count in counts.items())
    conclusion = rows[0].conclusion
    return f"all {conclusion}" if len(rows) > 1 else conclusion


def quote(name: str) -> str:
    """Return a name, in quotation marks if the name is empty or contains a space."""
    return f"\u201c{name}\u201d" if " " in name or not name else name


def join_names(names: Sequence[str]) -> str:
    """Join names with commas and "and"."""
    *first, last = map(quote, names)
    return f"{', '.join(first)} and {last}" if first else last


def _count_text(names: Sequence[str], n_others: int) -> str:
    """Return the names of one or two methods, or the number of more methods."""
    if len(names) == 1:
        return quote(names[0]) if n_others <= 2 else f"one, {quote(names[0])}"
    if len(names) == n_others:
        return f"all {n_others} other methods" if n_others > 2 else join_names(names)
    if len(names) <= 2:
        return join_names(names)
    return f"{len(names)} of {n_others} methods"


def format_adjusted(p_value: float, alpha: float) -> str:
    """Format a p-value with three decimals, or as "< alpha" if it would be rounded up to alpha.

    Examples
    --------
    >>> [format_adjusted(p, 0.05) for p in (0.0123, 0.0498, 0.05, 0.00001, 1.0)]
    ['0.012', '< 0.05', '0.050', '< 0.001', '1.000']
    """
    if p_value < 0.001:
        return "< 0.001"
    text = f"{p_value:.3f}"
    is_rounded_up = p_value < alpha <= float(text)
    return f"< {round(alpha, 10):g}" if is_rounded_up else text


def p_equation(text: str, name: str) -> str:
    """Return a formatted p-value with its name, such as "p = 0.012" or "p < 0.001"."""
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def _ticks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """Yield axis ticks at multiples of 1, 2 or 5 times a power of 10."""
    rough_step = (high - low) / _MAX_TICKS
    power = 10.0 ** math.floor(math.log10(rough_step))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough_step)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    for i in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield i * step, format_fixed(i * step, decimals, is_signed=True) if i else "0"
