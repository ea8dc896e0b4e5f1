"""How figures and tables write what a comparison says: names, levels, p-values, two notes."""

import math

from abstain._foundation.names import split_name
from abstain.errors import InputError, UnknownNameError
from abstain.evaluation import Comparison
from abstain.metrics import metric_named
from abstain.typing import Split

#: What the draws behind ranks and chances take for granted: they lie around the values found, so
#: a lead that is chance is drawn as a real one.
SUPPOSED = "if the values found were the true ones"

#: Goes with every range of ranks.
NOT_ADJUSTED = "not adjusted for the number of pairs, p is"


def checked(comparison: object) -> Comparison:
    """Refuse what is no comparison."""
    if not isinstance(comparison, Comparison):
        msg = f"`comparison` must be what `compare` returned; got {type(comparison).__name__}"
        raise InputError(msg)
    return comparison


def metric_title(name: str) -> str:
    """Return the name of a metric that people read."""
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


def of_data(data: Split | None) -> str:
    """Return the end of a title that names the data set; empty for the only one."""
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


def said_of_p(value: float, name: str = "p") -> str:
    """Write "p = 0.012" or "p < 0.001"."""
    text = p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"
