"""Formatting of names, percentages and p-values in figures, tables and terminals."""

import math
import re
from typing import TYPE_CHECKING, TypeVar

from abstain.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from abstain.evaluation import Comparison
    from abstain.typing import Split

ResultT = TypeVar("ResultT")

# Control characters, line and paragraph separators, surrogates, and characters that change the text
# direction.
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape_control_characters(text: str, *, allowed: str = "") -> str:
    r"""Replace control characters and marks of the writing direction by escape sequences.

    Examples
    --------
    >>> print(escape_control_characters("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return _CONTROL_CHARACTERS.sub(lambda match: _escape_character(match[0], allowed), text)


def _escape_character(character: str, allowed: str) -> str:
    return character if character in allowed else ascii(character)[1:-1]


#: Assumption of the simulated ranks and probabilities. Simulated values are centered at the
#: estimates, so a difference that is due to chance is treated as real.
SIMULATION_ASSUMPTION = "if the estimates were the true values"

#: Note for every range of ranks.
NOT_ADJUSTED = "not adjusted for multiple comparisons; p-values are"


def check_result_type(
    result: object, expected_type: type[ResultT], name: str, function: str
) -> ResultT:
    """Return a result if it has the expected type, else raise an error.

    Examples
    --------
    >>> check_result_type({}, list, "rows", "read_rows")
    Traceback (most recent call last):
    abstain.errors.InputError: `rows` must be what `read_rows` returned; got dict
    """
    if not isinstance(result, expected_type):
        raise InputError(
            f"`{name}` must be what `{function}` returned; got {type(result).__name__}"
        )
    return result


def check_comparison(comparison: object) -> "Comparison":
    """Return the argument if it is a comparison, else raise an error."""
    from abstain.evaluation import Comparison

    return check_result_type(comparison, Comparison, "comparison", "compare")


def metric_title(name: str) -> str:
    """Return the title of a metric, or its name if the metric is unknown."""
    from abstain.metrics import metric_named

    try:
        title = metric_named(name).title
    except UnknownNameError:
        return name
    return capitalize_first(title)


def capitalize_first(text: str) -> str:
    """Capitalize the first letter only.

    Examples
    --------
    >>> capitalize_first("the AUGRC of one run")
    'The AUGRC of one run'
    """
    return text[:1].upper() + text[1:]


def data_set_suffix(data: "Split | None") -> str:
    """Return the part of a title that names the data set, or "" if there is only one."""
    from abstain._foundation.names import split_name

    if data is None:
        return ", all data sets"
    return f", {split_name(data)}" if data else ""


def format_percent(fraction: float) -> str:
    """Format a fraction as a percentage.

    Examples
    --------
    >>> format_percent(0.95)
    '95%'
    """
    return f"{100 * fraction:g}%"


def format_p_value(value: float) -> str:
    """Format a p-value with two significant digits, or as "< 0.001".

    Examples
    --------
    >>> [format_p_value(value) for value in (0.2345, 0.0123, 0.00001, float("nan"))]
    ['0.23', '0.012', '< 0.001', 'undefined']
    """
    if math.isnan(value):
        return "undefined"
    if value < 0.001:
        return "< 0.001"
    return f"{value:.2g}" if value < 0.995 else "1"


def ranks_note(*, is_adjusted: bool) -> str:
    """Return a text that states whether ranks and p-values are adjusted."""
    return (
        NOT_ADJUSTED if is_adjusted else "not adjusted for multiple comparisons, nor are p-values"
    )


def format_p_equation(value: float, name: str = "p") -> str:
    """Format a p-value with its name, such as "p = 0.012" or "p < 0.001"."""
    text = format_p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"
