"""How numbers, names, findings and parts of the data are written: alike in every format."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from abstain._foundation.notes import READING_KINDS, Note
from abstain.errors import UnknownNameError
from abstain.evaluation.records import Result
from abstain.metrics import Metric, metric_named
from abstain.plots.words import metric_title, p_value
from abstain.predictions import LOSSES
from abstain.report.document import Form, Number, Remark, Span
from abstain.tables import split_name

#: What is printed for a metric that has no value on these data.
UNDEFINED = "undefined"

#: Below, a number that is a sum of fractions is 0 but for rounding.
_NOTHING = 1e-15


def number(value: float) -> str:
    """Write a number with four significant digits, or the word for NaN.

    Examples
    --------
    >>> number(0.5), number(0.0123456), number(0.0000123), number(float("nan")), number(-3e-17)
    ('0.5000', '0.01235', '1.23e-05', 'undefined', '0')
    """
    if math.isnan(value):
        return UNDEFINED
    if abs(value) < _NOTHING:
        return "0"
    size = abs(float(f"{value:.4g}"))  # rounded first: 0.99999 has the decimals of 1
    if not math.isfinite(value):
        return f"{value:g}"
    if size < 1e-4:
        return f"{value:.2e}"
    decimals = 3 - math.floor(math.log10(size))
    return f"{value:.{max(decimals, 0)}f}"


def count(value: float) -> str:
    """Write a count with a thin space between thousands."""
    return f"{value:,.0f}".replace(",", "\u202f")


def of_hundred(chance: float) -> str:
    """Write a chance as cases of 100; what is rare is not written as never.

    Examples
    --------
    >>> of_hundred(0.714), of_hundred(0.001), of_hundred(0.0), of_hundred(0.9999)
    ('71', '< 1', '0', '> 99')
    """
    if 0 < chance < 0.005:
        return "< 1"
    if 0.995 <= chance < 1:
        return "> 99"
    return f"{100 * chance:.0f}"


def _four(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.4g}"


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")


def spread(value: float) -> str:
    """Write a standard error or deviation with two digits.

    Examples
    --------
    >>> spread(166.0), spread(2.04), spread(0.0321), spread(0.0000123)
    ('170', '2', '0.032', '1.20e-05')
    """
    rounded = float(f"{value:.2g}")
    if rounded < 1e-4:
        return number(rounded)
    # Without an exponent, which nobody expects beside a number that has none.
    return f"{rounded:.0f}" if rounded >= 10 else f"{rounded:g}"


#: How each form of number is spelled.
_FORMS: Final[Mapping[Form, Callable[[float], str]]] = {
    "number": number,
    "count": count,
    "p": p_value,
    "hundred": of_hundred,
    "rank": lambda value: f"{value:g}",
    "two": lambda value: f"{value:.2f}",
    "four": lambda value: _minus(_four(value)),
    "six": lambda value: f"{value:.6g}",
    "signed": lambda value: ("" if value < 0 else "+") + _minus(_four(value)),
    "minus": lambda value: _minus(number(value)),
}


def spelled(value: float, form: Form = "number", *, scale: int = 1) -> str:
    """Write a number in one of the forms of a document; every format spells it so.

    Examples
    --------
    >>> spelled(0.0123456), spelled(0.0123456, scale=1000), spelled(float("nan"), "p")
    ('0.01235', '12.35', 'undefined')
    >>> spelled(0.0371234, "four"), spelled(-0.3, "signed"), spelled(0.0123, "p")
    ('0.0371', '\u22120.3000', '0.012')
    """
    return UNDEFINED if math.isnan(value) else _FORMS[form](scale * value)


def between(low: float, high: float, form: Form = "number", *, scale: int = 1) -> str:
    """Write an interval, or nothing when there is none.

    Examples
    --------
    >>> between(0.01, 0.02), between(float("nan"), 0.02), between(2, 2, "rank")
    ('0.01000 to 0.02000', '', '2')
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    first, last = (spelled(end, form, scale=scale) for end in (low, high))
    # Ranks are counted: from the second to the second is the second.
    return first if form == "rank" and first == last else f"{first} to {last}"


def behind(cell: Number) -> list[str]:
    """Return the small words behind a number in a line, its interval in brackets."""
    error = "" if math.isnan(cell.spread) else f"± {spread(cell.spread)}"
    ends = between(cell.low, cell.high, cell.form, scale=cell.scale).replace(" to ", ", ")
    return [words for words in (f"[{ends}]" if ends else "", error, cell.beside) if words]


def numeral(cell: Number) -> str:
    """Write a number itself, with the word for an undefined one."""
    return cell.said or spelled(cell.value, cell.form, scale=cell.scale)


class _Shown(float):
    """A number that a meaning sentence writes as the tables do unless it asks for a format."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        """Format with `number` when the sentence gives no format of its own."""
        if not spec or math.isnan(self):
            return number(float(self))
        return float(self).__format__(spec)


def of_thousand(value: float) -> str:
    """Write a fraction as a count of 1000, which needs no idea of percent.

    Examples
    --------
    >>> of_thousand(0.0123), of_thousand(0.25), of_thousand(0.0)
    ('12.3', '250', '0')
    """
    return f"{1000 * value:.3g}" if value < 0.9995 else "1000"


def printed_x1000(metric: str) -> bool:
    """Tell whether the literature prints a metric times 1000."""
    known = metric_of(metric)
    return known is not None and known.display.per_thousand


def loss_label(name: str) -> str:
    """Say what counts as wrong.

    Examples
    --------
    >>> loss_label("zero_one")
    '0/1 error: 1 when the predicted class is wrong'
    """
    loss = LOSSES.get(name)
    return f"{loss.title}: {loss.meaning}" if loss else name


def metric_of(name: str) -> Metric | None:
    """Look a metric up, also one with a number of the user's; None for an unknown name."""
    try:
        return metric_named(name)
    except UnknownNameError:
        return None


def short_title(name: str) -> str:
    """Return a name that fits a column head."""
    metric = metric_of(name)
    return (metric.display.short_title if metric else "") or metric_title(name)


def narrow_title(name: str) -> str:
    """Return a name that fits a column head of a terminal."""
    metric = metric_of(name)
    return (metric.display.narrow_title if metric else "") or short_title(name)


def headline(names: Iterable[str]) -> list[str]:
    """Return those of some metrics that a reader should see first, in that order."""
    places = {
        name: metric.display.headline
        for name in names
        if (metric := metric_of(name)) and metric.display.headline is not None
    }
    return sorted(places, key=places.__getitem__)


def meaning(result: Result) -> str:
    """Say what a number means, or why there is none."""
    if result.reason:
        return f"Undefined here: {result.reason}."
    return result.metric.identity.meaning.format(value=_Shown(result.value))


def place(finding: Note) -> str:
    """Say which score and which part of the data a finding is about."""
    where = split_name(finding.split) if finding.split else ""
    return ", ".join(part for part in (finding.score, where) if part)


def unique(values: Iterable[str]) -> list[str]:
    """Return the distinct values in the order in which they first appear."""
    return list(dict.fromkeys(values))


def first_of(names: Sequence[str], most: int) -> str:
    """Write the first names, parted by commas, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


#: Names in a sentence before the rest is only counted.
_NAMED = 4


def listed(names: Sequence[str]) -> str:
    """Write names as in a sentence.

    Examples
    --------
    >>> print(listed(["a"]), listed(["a", "b"]), listed(list("abcdefg")), sep="; ")
    “a”; “a” and “b”; “a”, “b”, “c”, “d” and 3 more
    """
    quoted = [f"“{name}”" for name in names[:_NAMED]]
    if len(names) > _NAMED:
        return f"{', '.join(quoted)} and {len(names) - _NAMED} more"
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def seconds_said(seconds: float) -> str:
    """Write how long something took.

    Examples
    --------
    >>> seconds_said(0.031), seconds_said(12.34), seconds_said(125.0), seconds_said(7384.0)
    ('0.03 s', '12 s', '2 min 5 s', '2 h 3 min')
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 99.5:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


_LINK: Final = re.compile(r"https://[^\s,;]+")


def linked(source: str) -> tuple[str | Span, ...]:
    """Cut a source into text and links.

    Examples
    --------
    >>> linked("eq. 3, https://arxiv.org/abs/2407.01032")[1].link
    'https://arxiv.org/abs/2407.01032'
    """
    parts: list[str | Span] = []
    end = 0
    for match in _LINK.finditer(source):
        parts.append(source[end : match.start()])
        parts.append(Span(match.group().removeprefix("https://"), link=match.group()))
        end = match.end()
    return tuple(part for part in [*parts, source[end:]] if part)


def remarks(
    findings: Sequence[Note],
    notes: Sequence[str] = (),
    where: Callable[[Note], str] = place,
) -> tuple[Remark, ...]:
    """Return the findings grouped by level and kind, warnings first, and then the notes."""
    kinds: dict[tuple[str, str, str], list[Remark]] = {}
    for finding in findings:
        # The notes on a file have nothing in common but their kind, so each stands alone.
        apart = finding.message if finding.kind in READING_KINDS else ""
        one = Remark(finding.level, finding.message, where(finding))
        kinds.setdefault((one.level, finding.kind, apart), []).append(one)
    said = [replace(first, more=tuple(more)) for first, *more in kinds.values()]
    said.sort(key=lambda remark: remark.level != "warning")
    return (*said, *(Remark("note", note) for note in notes))
