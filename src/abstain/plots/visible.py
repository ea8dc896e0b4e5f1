r"""Text of a file as it may be shown: nothing in it steers a terminal or turns the reading."""

import re

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
