"""How the records of a comparison are written: values, intervals, names, lists of names."""

import math
from collections.abc import Iterable, Sequence

from abstain.evaluation.comparison import Estimate
from abstain.report.words import number, printed_x1000, thousandfold
from abstain.tables import split_name
from abstain.typing import Split

_TOGETHER = "all data sets together"

#: Names in a sentence before the rest is only counted.
_NAMED = 4


def written(value: float, *, kilo: bool = False) -> str:
    """Write a value, times 1000 where asked."""
    return thousandfold(value) if kilo and not math.isnan(value) else number(value)


def between(low: float, high: float, *, kilo: bool = False) -> str:
    """Write an interval, or nothing when there is none.

    Examples
    --------
    >>> between(0.01, 0.02), between(float("nan"), 0.02)
    ('0.01000 to 0.02000', '')
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{written(low, kilo=kilo)} to {written(high, kilo=kilo)}"


def ranks_between(low: float, high: float) -> str:
    """Write a range of ranks: "1 to 3", or "2" when it holds one."""
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def of_hundred(chance: float) -> str:
    """Write a chance as cases of 100; what is rare is not written as never.

    Examples
    --------
    >>> of_hundred(0.714), of_hundred(0.001), of_hundred(0.0), of_hundred(0.9999)
    ('71', '< 1', '0', '> 99')
    """
    if math.isnan(chance):
        return ""
    if 0 < chance < 0.005:
        return "< 1"
    if 0.995 <= chance < 1:
        return "> 99"
    return f"{100 * chance:.0f}"


def arrow_of(estimates: Iterable[Estimate]) -> str:
    """Point to where better is."""
    first = next(iter(estimates), None)
    return "\u2193" if first is None or first.lower_is_better else "\u2191"


def kilo_of(metric: str, *, thousand: bool) -> bool:
    """Tell whether the values of a metric are written times 1000."""
    return thousand and printed_x1000(metric)


def where(data: Split | None) -> str:
    """Name a data set, or all of them together; empty for the only one."""
    return _TOGETHER if data is None else split_name(data) if data else ""


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
