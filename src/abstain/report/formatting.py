"""Formatting of numbers, names, notes and splits for all output formats."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from abstain._foundation.notes import READING_KINDS, Note
from abstain.errors import UnknownNameError
from abstain.evaluation.records import Result
from abstain.metrics import Metric, metric_named
from abstain.plots.formatting import format_p_value, metric_title
from abstain.predictions import LOSSES
from abstain.report.document import Number, NumberFormat, Remark, Span
from abstain.tables import split_name

#: Text that is printed for a metric without a value.
UNDEFINED = "undefined"

#: Smaller absolute values are rounding errors of sums and are printed as 0.
_ROUNDING_ERROR = 1e-15


def format_number(value: float) -> str:
    """Format a number with four significant digits, or NaN as "undefined".

    Examples
    --------
    >>> format_number(0.5), format_number(0.0123456), format_number(0.0000123)
    ('0.5000', '0.01235', '1.23e-05')
    >>> format_number(float("nan")), format_number(-3e-17), format_number(1234567.0)
    ('undefined', '0', '1,234,567')
    """
    if math.isnan(value):
        return UNDEFINED
    if abs(value) < _ROUNDING_ERROR:
        return "0"
    size = abs(float(f"{value:.4g}"))  # rounded first: 0.99999 has the decimals of 1
    if not math.isfinite(value):
        return f"{value:g}"
    if size < 1e-4:
        return f"{value:.2e}"
    decimals = 3 - math.floor(math.log10(size))
    return f"{value:,.{max(decimals, 0)}f}"


#: Maximum number of characters of `format_narrow_number`.
NARROW_WIDTH: Final = 8


def format_narrow_number(value: float) -> str:
    """Format a number for a narrow column."""
    text = format_number(value)
    if len(text) < NARROW_WIDTH:
        return text
    return f"{value:.5f}" if abs(value) >= 1e-3 else f"{value:.2e}"


def format_count(value: float) -> str:
    """Format a count with commas between thousands."""
    return f"{value:,.0f}"


def format_cases_of_100(probability: float) -> str:
    """Format a probability as a number of cases in 100.

    Positive probabilities are never printed as 0.

    Examples
    --------
    >>> [format_cases_of_100(probability) for probability in (0.714, 0.001, 0.0, 0.9999)]
    ['71', '< 1', '0', '> 99']
    """
    if 0 < probability < 0.005:
        return "< 1"
    if 0.995 <= probability < 1:
        return "> 99"
    return f"{100 * probability:.0f}"


def _format_four_decimals(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.4g}"


def use_minus_sign(text: str) -> str:
    """Replace the hyphen of a negative number by a minus sign, except in an exponent."""
    return f"\u2212{text[1:]}" if text.startswith("-") else text


def decimals_of_intervals(intervals: Iterable[tuple[float, float]]) -> int:
    """Return a suitable number of decimals for estimates with the given intervals.

    One unit of the last decimal is about a third of the standard error.

    Examples
    --------
    >>> decimals_of_intervals([(0.093, 0.112), (0.095, 0.115)]), decimals_of_intervals([(-5, 20)])
    (3, 0)
    """
    widths = sorted(high - low for low, high in intervals if high - low > 0)
    if not widths:
        return 4
    median_width = widths[(len(widths) - 1) // 2]
    return min(max(math.ceil(-math.log10(median_width / 12)), 0), 8)


def format_fixed(value: float, decimals: int, *, is_signed: bool = False) -> str:
    """Format a number with the given number of decimals.

    Examples
    --------
    >>> format_fixed(0.0123, 3), format_fixed(0.0123, 3, is_signed=True), format_fixed(-1e-9, 2)
    ('0.012', '+0.012', '0.00')
    """
    if math.isnan(value):
        return UNDEFINED
    rounded = round(value, decimals) + 0.0
    sign = "+" if is_signed and rounded > 0 else ""
    return f"{sign}{use_minus_sign(f'{rounded:,.{decimals}f}')}"


def format_fixed_interval(
    low: float, high: float, decimals: int, *, is_signed: bool = False
) -> str:
    """Format an interval with the given number of decimals, or return "" if a bound is NaN.

    Examples
    --------
    >>> print(format_fixed_interval(0.0931, 0.112, 3))
    0.093–0.112
    >>> print(format_fixed_interval(-0.01, 0.02, 2, is_signed=True))
    −0.01 to +0.02
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    separator = "\u2013" if low >= 0 and not is_signed else " to "
    bounds = (format_fixed(bound, decimals, is_signed=is_signed) for bound in (low, high))
    return separator.join(bounds)


def format_standard_error(value: float) -> str:
    """Format a standard error or a standard deviation with two significant digits.

    Examples
    --------
    >>> [format_standard_error(value) for value in (166.0, 2.04, 0.0321, 0.0000123)]
    ['170', '2', '0.032', '1.20e-05']
    """
    rounded = float(f"{value:.2g}")
    if rounded < 1e-4:
        return format_number(rounded)
    # The function avoids an exponent because the estimate is printed without an exponent.
    return f"{rounded:.0f}" if rounded >= 10 else f"{rounded:g}"


#: Functions that format a number, by format.
_FORMATTERS: Final[Mapping[NumberFormat, Callable[[float], str]]] = {
    "number": format_number,
    "count": format_count,
    "p_value": format_p_value,
    "cases_of_100": format_cases_of_100,
    "rank": lambda value: f"{value:g}",
    "two_decimals": lambda value: f"{value:.2f}",
    "three_decimals": lambda value: f"{value:.3f}",
    "four_decimals": _format_four_decimals,
    "six_digits": lambda value: f"{value:.6g}",
    "signed": lambda value: ("" if value < 0 else "+") + _format_four_decimals(value),
    "percent": lambda value: f"{100 * value:.1f}%",
}


def format_value(value: float, number_format: NumberFormat = "number", *, scale: int = 1) -> str:
    """Format a number in one of the number formats of a document.

    Examples
    --------
    >>> format_value(0.0123456), format_value(0.0123456, scale=1000), format_value(float("nan"))
    ('0.01235', '12.35', 'undefined')
    >>> format_value(0.0371234, "four_decimals"), format_value(0.0123, "p_value")
    ('0.0371', '0.012')
    >>> print(format_value(-0.3, "signed"))
    −0.3000
    """
    if math.isnan(value):
        return UNDEFINED
    return use_minus_sign(_FORMATTERS[number_format](scale * value))


def format_interval(
    low: float, high: float, number_format: NumberFormat = "number", *, scale: int = 1
) -> str:
    """Format an interval, or return an empty string if a bound is NaN.

    Examples
    --------
    >>> format_interval(0.01, 0.02), format_interval(float("nan"), 0.02)
    ('0.01000 to 0.02000', '')
    >>> format_interval(2, 2, "rank"), format_interval(0.012, 0.2, "percent")
    ('2', '1.2–20.0%')
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    lower = format_value(low, number_format, scale=scale)
    upper = format_value(high, number_format, scale=scale)
    if number_format == "percent":
        return f"{lower.removesuffix('%')}\u2013{upper}"
    # A range of ranks with equal bounds is printed as one rank.
    return lower if number_format == "rank" and lower == upper else f"{lower} to {upper}"


def number_annotations(cell: Number) -> list[str]:
    """Return the text that follows a number: its interval, its standard error and its mark."""
    annotations = []
    interval = format_interval(cell.low, cell.high, cell.number_format, scale=cell.scale)
    if interval:
        annotations.append(f"[{interval.replace(' to ', ', ')}]")
    if not math.isnan(cell.standard_error):
        annotations.append(f"± {format_standard_error(cell.standard_error)}")
    if cell.small_text:
        annotations.append(cell.small_text)
    return annotations


def number_text(cell: Number) -> str:
    """Format the number of a cell, without interval and mark."""
    return cell.display_text or format_value(cell.value, cell.number_format, scale=cell.scale)


class _MeaningNumber(float):
    """A number that can be formatted as part of a sentence.

    By default, it has the same format as in tables.
    """

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        """Format the number. The default format is that of `format_number`."""
        if not spec or math.isnan(self):
            return format_number(float(self))
        return float(self).__format__(spec)


def format_share(fraction: float) -> str:
    """Format a fraction as a percentage with three significant digits.

    Examples
    --------
    >>> format_share(0.01234), format_share(0.25), format_share(0.0), format_share(1.0)
    ('1.23%', '25%', '0%', '100%')
    """
    return f"{100 * fraction:.3g}%"


def is_printed_x1000(metric: str) -> bool:
    """Return whether papers usually report a metric times 1000."""
    entry = find_metric(metric)
    return entry is not None and entry.display.per_thousand


def loss_label(name: str) -> str:
    """Return a text with the name and the definition of a loss.

    Examples
    --------
    >>> loss_label("zero_one")
    '0/1 error: 1 when the predicted class is wrong'
    """
    loss = LOSSES.get(name)
    return f"{loss.title}: {loss.meaning}" if loss else name


def find_metric(name: str) -> Metric | None:
    """Return the metric with a name such as "coverage@1risk", or None if unknown."""
    try:
        return metric_named(name)
    except UnknownNameError:
        return None


def short_title(name: str) -> str:
    """Return a short name of a metric for a column header."""
    metric = find_metric(name)
    return (metric.display.short_title if metric else "") or metric_title(name)


def narrow_title(name: str) -> str:
    """Return a short name of a metric for a column header in a terminal."""
    metric = find_metric(name)
    return (metric.display.narrow_title if metric else "") or short_title(name)


def headline_metrics(names: Iterable[str]) -> list[str]:
    """Return the available headline metrics, starting with the most important metric."""
    position_by_name = {}
    for name in names:
        metric = find_metric(name)
        if metric is not None and metric.display.headline is not None:
            position_by_name[name] = metric.display.headline
    return sorted(position_by_name, key=position_by_name.__getitem__)


def result_meaning(result: Result) -> str:
    """Return a sentence that explains the value of a metric, or why the value is undefined."""
    if result.reason:
        return f"Undefined: {result.reason}."
    return result.metric.identity.meaning.format(value=_MeaningNumber(result.value))


def metric_meaning(metric: Metric) -> str:
    """Return a sentence that explains a metric, with x in place of the value."""
    return metric.identity.meaning.format(value=_Placeholder())


class _Placeholder:
    """Placeholder for a value in the sentence that explains a metric."""

    def __format__(self, spec: str) -> str:
        """Return "x" for every format."""
        del spec
        return "x"


def note_location(note: Note) -> str:
    """Return a text with the score and the split to which a note belongs."""
    split = split_name(note.split) if note.split else ""
    return ", ".join(name for name in (note.score, split) if name)


def unique(values: Iterable[str]) -> list[str]:
    """Return the distinct values in the order in which they first appear."""
    return list(dict.fromkeys(values))


def join_first(names: Sequence[str], limit: int) -> str:
    """Join some names with commas, and append the number of omitted names."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"


#: Maximum number of names in a sentence.
_MAX_NAMES = 4


def join_quoted(names: Sequence[str]) -> str:
    """Join names in quotation marks for a sentence.

    Examples
    --------
    >>> print(join_quoted(["a", "b"]))
    “a” and “b”
    >>> print(join_quoted(["a", "b", "c", "d", "e", "f", "g"]))
    “a”, “b”, “c”, “d” and 3 more
    """
    quoted = [f"“{name}”" for name in names[:_MAX_NAMES]]
    if len(names) > _MAX_NAMES:
        return f"{', '.join(quoted)} and {len(names) - _MAX_NAMES} more"
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def format_duration(seconds: float) -> str:
    """Format a duration.

    Examples
    --------
    >>> [format_duration(seconds) for seconds in (0.031, 12.34, 125.0, 7384.0)]
    ['0.03 s', '12 s', '2 min 5 s', '2 h 3 min']
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 99.5:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, remaining_seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remaining_seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


_LINK: Final = re.compile(r"https://[^\s,;]+")


def split_links(source: str) -> tuple[str | Span, ...]:
    """Split a bibliographic reference into texts and links.

    Examples
    --------
    >>> split_links("eq. 3, https://arxiv.org/abs/2407.01032")[1].link
    'https://arxiv.org/abs/2407.01032'
    """
    pieces: list[str | Span] = []
    end = 0
    for match in _LINK.finditer(source):
        pieces.append(source[end : match.start()])
        pieces.append(Span(match.group().removeprefix("https://"), link=match.group()))
        end = match.end()
    pieces.append(source[end:])
    return tuple(piece for piece in pieces if piece)


def build_remarks(
    findings: Sequence[Note],
    notes: Sequence[str] = (),
    locate: Callable[[Note], str] = note_location,
) -> tuple[Remark, ...]:
    """Convert notes to remarks, with warnings first. Notes of the same kind become one remark.

    The function `locate` returns a text with the location of a note in the data. The texts in
    `notes` come last.
    """
    remarks_by_kind: dict[tuple[str, str, str], list[Remark]] = {}
    for finding in findings:
        is_about_reading = finding.kind in READING_KINDS
        remark = Remark(
            finding.level,
            finding.message,
            locate(finding),
            is_about_reading=is_about_reading,
        )
        # Notes on how a file was read are not grouped, because notes of the same kind differ.
        message = finding.message if is_about_reading else ""
        key = (finding.level, finding.kind, message)
        remarks_by_kind.setdefault(key, []).append(remark)
    warnings = []
    others = []
    for remarks in remarks_by_kind.values():
        remark = replace(remarks[0], similar=tuple(remarks[1:]))
        if remark.level == "warning":
            warnings.append(remark)
        else:
            others.append(remark)
    others += [Remark("note", note) for note in notes]
    return (*warnings, *others)
