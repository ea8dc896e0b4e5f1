"""Access to the arguments of the command, and names of options as flags."""

import shlex
from contextvars import ContextVar

#: Arguments of the current command. Reports repeat them.
ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


#: Options of the library that have another name on the command line. On the command line, --loss
#: names a kind of loss, and --limit is repeated.
_FLAG_NAMES = {"loss": "own_loss", "abstention_cost": "cost", "limits": "limit"}


def format_flag(name: str, value: object) -> str:
    """Format an option and its value for a shell. For a list, the flag is repeated.

    Examples
    --------
    >>> format_flag("unknown_label", None), format_flag("logits", "z_*"), format_flag("label", "-x")
    ('--unknown-label', "--logits 'z_*'", '--label=-x')
    """
    option_flag = to_flag(_FLAG_NAMES.get(name, name))
    if isinstance(value, list):
        return " ".join(format_flag(name, item) for item in value)
    if value is None or value is True:
        return option_flag
    text = shlex.quote(str(value))
    return f"{option_flag}={text}" if text.startswith("-") else f"{option_flag} {text}"


def to_flag(name: str) -> str:
    """Format the name of an option as a flag."""
    return f"--{name.replace('_', '-')}"
