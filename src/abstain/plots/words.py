"""How figures, tables and terminals write what they are given: names, levels, p-values."""

import math
import re
from typing import TYPE_CHECKING, TypeVar

from abstain.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from abstain.evaluation import Comparison
    from abstain.typing import Split

ResultT = TypeVar("ResultT")

# Control characters, line and paragraph separators, half characters, and the marks that change
# the direction of the text around them.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str, *, keep: str = "") -> str:
    r"""Write control characters and changes of direction as Python does, all else as it is.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return _STEERING.sub(lambda found: _shown(found[0], keep), text)


def _shown(character: str, keep: str) -> str:
    return character if character in keep else ascii(character)[1:-1]


#: What the draws behind ranks and chances take for granted: they lie around the values found, so
#: a lead that is chance is drawn as a real one.
SUPPOSED = "if the values found were the true ones"

#: Goes with every range of ranks.
NOT_ADJUSTED = "not adjusted for the number of pairs, p is"


def returned(given: object, kind: type[ResultT], name: str, by: str) -> ResultT:
    """Refuse what is no result of the function that makes such results.

    Examples
    --------
    >>> returned({}, list, "rows", "rows_of")
    Traceback (most recent call last):
    abstain.errors.InputError: `rows` must be what `rows_of` returned; got dict
    """
    if not isinstance(given, kind):
        raise InputError(f"`{name}` must be what `{by}` returned; got {type(given).__name__}")
    return given


def checked(comparison: object) -> "Comparison":
    """Refuse what is no comparison."""
    from abstain.evaluation import Comparison

    return returned(comparison, Comparison, "comparison", "compare")


def metric_title(name: str) -> str:
    """Return the name of a metric that people read."""
    from abstain.metrics import metric_named

    try:
        title = metric_named(name).title
    except UnknownNameError:
        return name
    return sentence(title)


def sentence(words: str) -> str:
    """Start with a capital letter.

    Examples
    --------
    >>> sentence("with 5 runs this test finds nothing")
    'With 5 runs this test finds nothing'
    """
    return words[:1].upper() + words[1:]


def of_data(data: "Split | None") -> str:
    """Return the end of a title that names the data set; empty for the only one."""
    from abstain._foundation.names import split_name

    if data is None:
        return ", all data sets"
    return f", {split_name(data)}" if data else ""


def percent(level: float) -> str:
    """Write a level as people say it: 95 %."""
    return f"{100 * level:g} %"


def p_value(value: float) -> str:
    """Write a p-value as a reader needs it.

    Examples
    --------
    >>> p_value(0.2345), p_value(0.0123), p_value(0.00001), p_value(float("nan"))
    ('0.23', '0.012', '< 0.001', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    if value < 0.001:
        return "< 0.001"
    return f"{value:.2g}" if value < 0.995 else "1"


def ranks_note(*, is_adjusted: bool) -> str:
    """Return how ranks are adjusted, and whether the p-values beside them are."""
    return NOT_ADJUSTED if is_adjusted else "not adjusted for the number of pairs, nor is p"


def said_of_p(value: float, name: str = "p") -> str:
    """Write "p = 0.012" or "p < 0.001"."""
    text = p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"
