"""What the command line was given, and options of the library in its words."""

import shlex
from contextvars import ContextVar

#: The arguments of the run in progress, for the report to repeat.
ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


#: Options of the library that have another name on the command line, where --loss names a kind
#: of loss and one --limit follows another.
_NAMES_HERE = {"loss": "own_loss", "abstention_cost": "cost", "limits": "limit"}


def as_flag(name: str, value: object) -> str:
    """Write an option as a flag, its value as a shell takes it; for a list, a flag each.

    Examples
    --------
    >>> as_flag("unknown_label", None), as_flag("logits", "z_*"), as_flag("label", "-x")
    ('--unknown-label', "--logits 'z_*'", '--label=-x')
    """
    own = flag(_NAMES_HERE.get(name, name))
    if isinstance(value, list):
        return " ".join(as_flag(name, item) for item in value)
    if value is None or value is True:
        return own
    given = shlex.quote(str(value))
    return f"{own}={given}" if given.startswith("-") else f"{own} {given}"


def flag(name: str) -> str:
    """Write the name of an option as a flag."""
    return f"--{name.replace('_', '-')}"
