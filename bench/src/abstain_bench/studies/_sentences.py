"""Format numbers, counts and lists in the conclusions of studies."""

from collections.abc import Sequence


def signed(value: float, form: str = "{:+.1f}") -> str:
    """Format a number with a true minus sign. Zero never has a minus sign.

    Examples
    --------
    >>> signed(-0.25), signed(-0.0), signed(-0.5, "{:.2f}")
    ('−0.2', '+0.0', '−0.50')
    """
    return form.format(value + 0.0).replace("-", "\u2212")


def value_range(values: Sequence[float], form: str) -> str:
    """Format the range of some numbers, or one number if both bounds have the same text.

    Examples
    --------
    >>> value_range([0.5, 0.25], "{:.2f}"), value_range([-0.5], "{:+.1f}")
    ('0.25 to 0.50', '−0.5')
    """
    if not values:
        return "–"
    low, high = signed(min(values), form), signed(max(values), form)
    return low if low == high else f"{low} to {high}"


def counted(n: float, noun: str, plural: str = "") -> str:
    """Format a count with its noun.

    Examples
    --------
    >>> counted(1, "case"), counted(2, "case"), counted(2, "study", "studies")
    ('1 case', '2 cases', '2 studies')
    """
    return f"{n:g} {noun if n == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str], limit: int) -> str:
    """List at most `limit` names and the number of the remaining ones.

    Examples
    --------
    >>> listed(["a", "b"], 2), listed(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    text = ", ".join(names[:limit])
    return f"{text} and {len(names) - limit} more" if len(names) > limit else text
